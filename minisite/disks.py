"""The two disks: files of a bounded size, as block devices with a file system each."""

import os
from pathlib import Path

from minisite.commands import run
from minisite.place import Place

PROGRAMS = ("losetup", "mkfs.ext4", "mount", "umount")
SIZE = 4 << 30


def begin(place: Place, file: Path, point: Path) -> str:
    """Make a disk of a file, mount it, and return the name of its block device."""
    with file.open("wb") as made:
        # A sparse file takes space on the machine's disk only as it is written.
        made.truncate(SIZE)
    run(place, ["mkfs.ext4", "-q", "-m", "0", "-F", file])
    # With direct I/O if possible, so that each byte is in the page cache only once.
    device = run(place, ["losetup", "--find", "--show", "--direct-io=on", file]).strip()
    # No background writing of empty tables during a measurement.
    run(place, ["mount", "-t", "ext4", "-o", "noatime,noinit_itable", device, point])
    point.chmod(0o1777)
    return Path(device).name


def number(device: str) -> str:
    """Return the major and minor number of a block device, as the controller names it."""
    status = Path(f"/dev/{device}").stat()
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
