"""CephFS: a monitor, a manager, a metadata server and four stores in memory, and its client."""

import json
import time
import uuid
from pathlib import Path

from minisite.commands import run, start
from minisite.configuration import fill
from minisite.errors import SiteError
from minisite.mounts import type_of
from minisite.place import Place
from minisite.waiting import PATIENCE_S, wait_until

PROGRAMS = (
    "ceph-mon",
    "ceph-mgr",
    "ceph-osd",
    "ceph-mds",
    "ceph-fuse",
    "ceph",
    "monmaptool",
    "setfattr",
)
STORES = 4
#: The file system is full at FULL_BYTES of data, and reports SAID_BYTES as its size. The limit is a
#: quota, because no file can be removed once a store itself is full. It takes effect some seconds
#: late, and the stores have room for that.
FULL_BYTES = 3 << 30
SAID_BYTES = 4 << 30
STORE_BYTES = 2 << 30
#: The monitor's two ports; the other daemons find theirs themselves.
PORTS = 2


def begin(place: Place, ports: list[int]) -> None:
    """Start the daemons and make a file system on them."""
    cluster = str(uuid.uuid4())
    configuration = fill(
        place,
        "ceph.conf",
        fsid=cluster,
        monitor_port=ports[0],
        old_monitor_port=ports[1],
        store_bytes=STORE_BYTES,
    )
    for name in ("mon", "mgr", "mds", "crash", *(f"osd{store}" for store in range(STORES))):
        (place.spool / name).mkdir()
    monitors = place.spool / "monmap"
    # With only the old protocol's address, every client would wait forever.
    both = f"[v2:127.0.0.1:{ports[0]},v1:127.0.0.1:{ports[1]}]"
    run(
        place,
        ["monmaptool", "--create", "--addv", "a", both, "--fsid", cluster, monitors],
    )
    common = ["-c", configuration]
    run(place, ["ceph-mon", *common, "--mkfs", "-i", "a", "--monmap", monitors])
    foreground = [*common, "-f"]
    start(place, "ceph-mon", ["ceph-mon", *foreground, "-i", "a"])
    start(place, "ceph-mgr", ["ceph-mgr", *foreground, "-i", "x"])
    identities = [str(uuid.uuid4()) for _ in range(STORES)]
    makers = [
        start(
            place,
            f"ceph-osd-{store}",
            ["ceph-osd", *common, "-i", str(store), "--mkfs", "--osd-uuid", identity],
        )
        for store, identity in enumerate(identities)
    ]
    orders = [f"osd new {identity} {store}" for store, identity in enumerate(identities)]
    # Metadata on store 0 alone: if another store stops, only its data are out of reach.
    orders += [f"osd crush add {n} 1 root=default host=minisite" for n in range(STORES)]
    orders += [
        "osd crush set-device-class meta 0",
        "osd crush rule create-replicated meta default osd meta",
        "osd pool create metadata 8 8 replicated meta",
        "osd pool create data 32 32",
        f"osd pool set-quota data max_bytes {FULL_BYTES}",
        "fs new cephfs metadata data",
    ]
    _order(place, orders)
    for store, maker in enumerate(makers):
        if maker.wait(timeout=PATIENCE_S):
            raise SiteError(f"store {store} could not be made: see {place.logs}/osd.{store}.log")
    for store in range(STORES):
        start(place, f"ceph-osd-{store}", ["ceph-osd", *foreground, "-i", str(store)])
    start(place, "ceph-mds", ["ceph-mds", *foreground, "-i", "m"])


def _order(place: Place, orders: list[str]) -> None:
    """Send commands to the cluster in one session, as each call of `ceph` takes a second."""
    words = ["ceph", "-c", str(place.root / "ceph.conf"), "--connect-timeout", str(PATIENCE_S)]
    said = run(place, words, given="\n".join(orders) + "\n")
    wrong = [line for line in said.splitlines() if "Error" in line]
    if wrong:
        raise SiteError(f"ceph: {wrong[0]}")


def wait(place: Place) -> None:
    """Mount CephFS, and wait until a file can be written on it."""
    log = place.logs / "client.fuse.log"
    end = time.monotonic() + PATIENCE_S
    while True:
        client = start(
            place,
            "ceph-fuse",
            ["ceph-fuse", "-f", "-c", place.root / "ceph.conf", "--id", "fuse", place.ceph],
        )
        try:
            wait_until(lambda: is_mounted(place), "the CephFS client", log, client)
        except SiteError:
            # The client gives up at once while the metadata server is still starting.
            if time.monotonic() > end or client.poll() is None:
                raise
            time.sleep(0.3)
            continue
        break
    place.ceph.chmod(0o1777)
    run(place, ["setfattr", "-n", "ceph.quota.max_bytes", "-v", str(SAID_BYTES), place.ceph])
    write_through(place.ceph / ".ready", place, log)


def write_through(path: Path, place: Place, log: Path) -> None:
    """Write a file in a separate process, so that this one does not hang with the file system."""
    try:
        run(
            place,
            ["dd", "if=/dev/zero", f"of={path}", "bs=1M", "count=8", "conv=fsync", "status=none"],
        )
        path.unlink()
    except SiteError as error:
        raise SiteError(f"{path.parent} cannot be written: {error}; see {log}") from error


def answers(place: Place) -> bool:
    """Whether the mount answers, tested by a separate process that may hang."""
    try:
        run(place, ["stat", "--file-system", place.ceph], seconds=20)
    except SiteError:
        return False
    return True


def is_mounted(place: Place) -> bool:
    """Whether the client has mounted CephFS."""
    return type_of(place.ceph) == "fuse.ceph-fuse"


def state(place: Place) -> dict:
    """The cluster's own status; empty if it gives none."""
    words = ["ceph", "-c", str(place.root / "ceph.conf"), "--connect-timeout", "15"]
    try:
        return json.loads(run(place, [*words, "status", "--format=json"], seconds=40))
    except (SiteError, ValueError):
        return {}
