"""The slow disk: the block-I/O controller limits its rate, which a test write and read prove."""

import shlex
import time
from contextlib import suppress
from pathlib import Path

from minisite import block_limit, disks
from minisite.commands import run
from minisite.errors import SiteError
from minisite.mounts import loop_devices
from minisite.place import Place

#: Slow enough that the disk is the bottleneck, and not the processes on two shared cores.
RATE = 20 << 20
#: How many times its limit the rate of the disk may seem in a measurement of about a second.
TOLERANCE = 1.5


def _record(place: Place) -> Path:
    return place.root / "slow.device"


def begin(place: Place) -> None:
    """Make the disk, and put the limit on it."""
    groups = needed_controller(place)
    groups.make()
    device = disks.begin(place, place.slow_image, place.slow)
    # Recorded before the limit is set: a limit on an unknown device could never be lifted.
    _record(place).write_text(disks.number(device))
    groups.put(disks.number(device), RATE)


def needed_controller(place: Place) -> block_limit.GroupsV1 | block_limit.GroupsV2:
    """Return the controller; an error if the machine has none."""
    groups = block_limit.controller(place)
    if groups is None:
        raise SiteError(
            "the slow disk needs the block-I/O controller of cgroups, blkio (version 1) or io "
            "(version 2), which is not mounted on this machine or in this container"
        )
    return groups


def device(place: Place) -> str | None:
    """Return the name of the block device, if there is one."""
    image = str(place.slow_image)
    return next((name for name, file in loop_devices(place).items() if file == image), None)


def rate(place: Place) -> int | None:
    """Return the limit in effect on reads and writes, in bytes per second; None if not both."""
    groups, name = block_limit.controller(place), device(place)
    if groups is None or name is None:
        return None
    try:
        limits = groups.get(disks.number(name))
    except OSError:
        return None
    return min(limits.values()) if len(limits) == len(("read", "write")) else None


def change(place: Place, wanted: int | None) -> None:
    """Change the limit, or lift it, while the site is running."""
    name = device(place)
    if name is None:
        raise SiteError(f"there is no slow disk in {place.root}; start the site with minisite/up")
    try:
        needed_controller(place).put(disks.number(name), wanted)
    except PermissionError as error:
        raise SiteError("changing the rate of the slow disk needs root") from error
    if rate(place) != wanted:
        raise SiteError(f"{wanted} bytes per second requested, but {rate(place)} are in effect")


def prove(place: Place) -> None:
    """Write and read for about a second, and check that neither is faster than the limit."""
    groups = needed_controller(place)
    file = place.slow / ".ready"
    mebibytes = RATE >> 20
    ways = {
        "written": f"if=/dev/zero of={file} conv=fsync",
        "read": f"if={file} of=/dev/null iflag=direct",
    }
    for way, words in ways.items():
        into = shlex.quote(str(groups.group / "cgroup.procs"))
        began = time.monotonic()
        command = f"echo $$ >{into} && exec dd {words} bs=1M count={mebibytes} status=none"
        run(place, ["sh", "-c", command])
        measured = (mebibytes << 20) / (time.monotonic() - began)
        if measured > TOLERANCE * RATE:
            raise SiteError(
                f"the slow disk is {way} at {measured / 2**20:.0f} MiB/s in spite of its limit of "
                f"{RATE >> 20} MiB/s in {groups.group}"
            )
    file.unlink()


def lift(place: Place) -> None:
    """Remove the limit, even of a site that was started only in part."""
    groups = block_limit.controller(place)
    if groups is None:
        return
    # These include the fast disk, which has no limit; lifting it does no harm.
    numbers = {disks.number(name) for name in loop_devices(place)}
    with suppress(OSError):
        recorded = _record(place).read_text()
        # The recorded device, unless its number now belongs to another one.
        if recorded and not Path(f"/sys/dev/block/{recorded}/loop/backing_file").exists():
            numbers.add(recorded)
    for number in numbers:
        with suppress(OSError):
            groups.put(number, None)
