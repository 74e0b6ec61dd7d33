"""Requirements of the machine, checked before anything is started."""

import os
import shutil
import socket
from pathlib import Path

from minisite import ceph, disks, munge, slow_disk, slurm
from minisite.commands import environment
from minisite.errors import SiteError
from minisite.place import Place

PROGRAMS = munge.PROGRAMS + slurm.PROGRAMS + ceph.PROGRAMS + disks.PROGRAMS
#: For a test's data and for logs: the disks take space only as they are written.
FREE_BYTES = 4 << 30
FREE_MEMORY = 3 << 30


def check(place: Place) -> None:
    """Fail with one line about what is missing and how to get it."""
    if os.geteuid():
        raise SiteError(
            "a site mounts file systems and starts Slurm's daemons, which needs root; "
            "call it with sudo"
        )
    path = environment(place)["PATH"]
    missing = [program for program in PROGRAMS if shutil.which(program, path=path) is None]
    if missing:
        raise SiteError(
            f"missing: {' '.join(missing)}; run setup/system-packages minisite, which installs "
            "or names the packages"
        )
    if not Path("/dev/fuse").exists():
        raise SiteError(
            "/dev/fuse is missing, and CephFS needs it: load the kernel module fuse, "
            "or give the container the device"
        )
    if not Path("/dev/loop-control").exists():
        raise SiteError(
            "/dev/loop-control is missing, and the disks need it: load the kernel module "
            "loop, or give the container the devices"
        )
    slow_disk.needed_controller(place)
    above = place.root if place.root.is_dir() else place.root.parent
    if not above.is_dir():
        raise SiteError(f"{above} does not exist; set IOBANDS_MINISITE to an existing path")
    if shutil.disk_usage(above).free < FREE_BYTES:
        raise SiteError(
            f"{above} has less than {FREE_BYTES >> 30} GiB free; "
            "set IOBANDS_MINISITE to a directory on another disk"
        )
    memory = dict(
        line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines() if ":" in line
    )
    if int(memory["MemAvailable"].split()[0]) << 10 < FREE_MEMORY:
        raise SiteError(f"less than {FREE_MEMORY >> 30} GiB of memory are free, for CephFS")


def free_ports(place: Place, count: int, avoid: frozenset[int] = frozenset()) -> list[int]:
    """Return consecutive free ports, below the range that the kernel assigns by itself.

    The search starts at a port that depends on the directory, so that sites that start at the same
    time do not choose the same ports.
    """
    first, step, blocks = 20000, 16, 750
    begin = int(place.name.removeprefix("iobands-"), 16)
    for block in range(blocks):
        ports = [first + step * ((begin + block) % blocks) + index for index in range(count)]
        if not avoid & set(ports) and all(map(is_free, ports)):
            return ports
    raise SiteError("no free ports between 20000 and 32000")


def is_free(port: int) -> bool:
    """Whether a daemon could listen on a port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
            probe.listen()
        except OSError:
            return False
    return True
