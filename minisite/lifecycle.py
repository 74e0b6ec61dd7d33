"""Starting a whole site, ending it, and reporting its state."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from minisite import block_limit, ceph, disks, mounts, munge, place, processes, slow_disk, slurm
from minisite.configuration import fill
from minisite.errors import SiteError
from minisite.place import Place
from minisite.requirements import check, free_ports, is_free


@dataclass(frozen=True)
class Part:
    """One part of a site: its name, whether it works, and a description."""

    name: str
    up: bool
    what: str


def up(site: Place) -> None:
    """Start the site unless it is up; restart a site if only some of its parts are up."""
    check(site)
    end_abandoned(site)
    with place.held(site, patience=180):
        if site.read_settings():
            down_parts = [part.name for part in parts(site) if not part.up]
            if not down_parts:
                print(f"The site in {site.root} is already up")
                return
            print(f"Parts of the site are down: {', '.join(down_parts)}. Restarting all of it")
        _end(site)
        place.claim(site)
        began = time.monotonic()
        _start_with_ports(site)
        print(f"The site in {site.root} is up, after {time.monotonic() - began:.0f} s")


def end_abandoned(but: Place) -> None:
    """End the remains of other sites whose directories were deleted."""
    for root in sorted(processes.roots() | mounts.roots()):
        site = Place(root)
        if root == but.root or site.marker.exists():
            continue
        try:
            _down(site)
            print(f"Ended the site in {root}; its directory had been deleted")
        except SiteError as error:
            print(f"The site in {root} could not be ended after its directory was deleted: {error}")


def _start_with_ports(site: Place) -> None:
    count = slurm.PORTS + ceph.PORTS
    avoid: frozenset[int] = frozenset()
    for last in (False, False, True):
        ports = free_ports(site, count, avoid)
        try:
            _start(site, ports)
            return
        except BaseException as error:
            # The logs stay until the next `up` or `down`.
            _end(site, but=site.logs)
            taken = frozenset(port for port in ports if not is_free(port))
            if last or not taken or not isinstance(error, SiteError):
                raise
            # Another program took the port between our check and our start.
            avoid |= taken
            _end(site)


def _start(site: Place, ports: list[int]) -> None:
    for directory in (site.logs, site.run, site.spool, site.ceph, site.fast, site.slow):
        directory.mkdir(mode=0o755)
    with ThreadPoolExecutor() as together:
        tasks = [
            together.submit(_start_slurm, site, ports[: slurm.PORTS]),
            together.submit(_start_ceph, site, ports[slurm.PORTS :]),
            together.submit(_start_disks, site),
        ]
        for task in tasks:
            task.result()
    fill(site, "env")
    site.settings.write_text(json.dumps({"ports": ports}) + "\n")


def _start_slurm(site: Place, ports: list[int]) -> None:
    munge.begin(site)
    slurm.begin(site, ports)
    slurm.wait(site)


def _start_ceph(site: Place, ports: list[int]) -> None:
    ceph.begin(site, ports)
    ceph.wait(site)


def _start_disks(site: Place) -> None:
    disks.begin(site, site.fast_image, site.fast)
    slow_disk.begin(site)
    slow_disk.prove(site)


def down(site: Place) -> None:
    """End all of the site and remove its directory."""
    if os.geteuid():
        raise SiteError("only root can end a site's daemons and mounts; call it with sudo")
    _down(site)
    print(f"The site in {site.root} is removed")


def _down(site: Place) -> None:
    with place.held(site, patience=180):
        _end(site)
        if not place.remove(site):
            raise SiteError(f"{site.root} has files that do not belong to a site, and stays")


def _end(site: Place, but: Path | None = None) -> None:
    """End everything that belongs to the site, so that after an interruption it can be repeated."""
    foreign = mounts.foreign(site)
    if foreign:
        raise SiteError(
            f"these mounts do not belong to the site; unmount them first: {', '.join(foreign)}"
        )
    # First, so that nothing waits for a slow disk. Without its settings the site counts as not up.
    slow_disk.lift(site)
    if site.marker.exists():
        site.settings.unlink(missing_ok=True)
    left = [f"process {process.pid} ({process.name})" for process in processes.end_all(site)]
    users = processes.holders(site)
    left += [f"mount {point}" for point in mounts.unmount_all(site, patience=2)]
    held = mounts.detach_all(site, patience=2)
    groups = block_limit.controller(site)
    if groups is not None and not groups.remove():
        left.append(f"the cgroup {groups.group}")
    if left:
        raise SiteError(f"could not be removed: {'; '.join(left)}")
    if held:
        names = ", ".join(f"{process.pid} ({process.name})" for process in users)
        devices = " and ".join(f"/dev/{device}" for device in held)
        print(f"{devices} is detached once process {names or 'unknown'} closes it")
    _empty(site, but)


def _empty(site: Place, but: Path | None) -> None:
    if not site.marker.exists():
        return
    with suppress(FileNotFoundError):
        for entry in site.root.iterdir():
            if entry not in (site.marker, but):
                place.discard(entry)


def parts(site: Place) -> list[Part]:
    """Return the state of each part of the site, found by using the part."""
    with ThreadPoolExecutor() as together:
        tasks = [
            together.submit(look, site)
            for look in (_munge, _slurm, _ceph, _ceph_mount, _fast, _slow)
        ]
        return [task.result() for task in tasks]


def _munge(site: Place) -> Part:
    return Part("munge", munge.is_up(site), f"authentication, by {site.run}/munge/socket")


def _slurm(site: Place) -> Part:
    states = slurm.states(site)
    working = len(states) == len(slurm.NODES) and not any(map(slurm.is_lost, states))
    listed = ", ".join(f"{n} {s}" for n, s in zip(slurm.NODES, states, strict=False))
    return Part("slurm", working, f"partition compute: {listed or 'no controller answers'}")


def _ceph(site: Place) -> Part:
    state = ceph.state(site)
    if not state:
        return Part("ceph", False, "no monitor answers")
    stores = state["osdmap"]["num_up_osds"]
    return Part(
        "ceph",
        stores == ceph.STORES,
        f"{stores} of {ceph.STORES} stores, {state['health']['status']}",
    )


def _ceph_mount(site: Place) -> Part:
    works = ceph.is_mounted(site) and ceph.answers(site)
    return Part("ceph mount", works, f"CephFS on {site.ceph}")


def _fast(site: Place) -> Part:
    works = mounts.type_of(site.fast) == "ext4"
    return Part("fast disk", works, f"ext4 on {site.fast}")


def _slow(site: Place) -> Part:
    rate = slow_disk.rate(site)
    limit = f"limited to {rate / 2**20:g} MiB/s" if rate else "without limit"
    return Part("slow disk", mounts.type_of(site.slow) == "ext4", f"ext4 on {site.slow}, {limit}")
