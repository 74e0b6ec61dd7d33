"""Mounts and loop devices below a site's directory."""

import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from minisite.commands import run
from minisite.errors import SiteError
from minisite.place import FAST_IMAGE, SLOW_IMAGE, Place

#: The kernel's suffix for the path of a deleted file.
DELETED = " (deleted)"
_OCTAL = re.compile(r"\\([0-7]{3})")


def _plain(path: str) -> str:
    """Decode a path of the kernel's tables, which write characters such as spaces in octal."""
    return _OCTAL.sub(lambda match: chr(int(match.group(1), 8)), path)


@dataclass(frozen=True)
class Mount:
    """A line of the mount table."""

    point: str
    kind: str
    source: str


def _table() -> list[Mount]:
    mounts = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, right = line.split(" - ", 1)
        kind, source, _ = right.split(" ", 2)
        mounts.append(Mount(_plain(left.split()[4]).removesuffix("//deleted"), kind, source))
    return mounts


def mounted(place: Place) -> list[str]:
    """Return the mount points of the site, the last mounted first.

    Leaves out mounts below the site's directory that the site did not make; see `foreign`.
    """
    devices = {f"/dev/{device}" for device in loop_devices(place)}
    points = {str(point) for point in (place.ceph, place.fast, place.slow)}
    return [
        mount.point
        for mount in reversed(_table())
        if mount.point in points and (mount.kind == "fuse.ceph-fuse" or mount.source in devices)
    ]


def foreign(place: Place) -> list[str]:
    """Return mounts below the site's directory that are not its own: a removal would empty them."""
    own = {str(point) for point in (place.ceph, place.fast, place.slow)}
    return sorted(
        {m.point for m in _table() if m.point.startswith(f"{place.root}/") and m.point not in own}
    )


def type_of(point: Path) -> str | None:
    """Return the type of the file system mounted at `point`, or None."""
    return next((m.kind for m in reversed(_table()) if m.point == str(point)), None)


def loop_devices(place: Place) -> dict[str, str]:
    """Return the site's loop devices and their files; a removed file's name ends in ` (deleted)`.

    A device outlives its file while a mount of it is still in use.
    """
    images = {str(image) for image in (place.fast_image, place.slow_image)}
    return {
        device: file
        for device, file in _backing_files().items()
        if file.removesuffix(DELETED) in images
    }


def roots() -> set[Path]:
    """The directories of all sites that have a loop device."""
    files = [Path(file.removesuffix(DELETED)) for file in _backing_files().values()]
    return {file.parent for file in files if file.name in (FAST_IMAGE, SLOW_IMAGE)}


def _backing_files() -> dict[str, str]:
    found = {}
    for entry in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):
            found[entry.parts[3]] = entry.read_text().strip()
    return found


def unmount_all(place: Place, patience: float) -> list[str]:
    """Unmount the site's mounts, lazily if still in use after `patience`; return what is left."""
    end = time.monotonic() + patience
    while points := mounted(place):
        lazy = time.monotonic() > end
        for point in points:
            with suppress(SiteError):
                run(place, ["umount", *(["--lazy"] if lazy else []), "--no-canonicalize", point])
        if time.monotonic() > end + patience:
            break
        if mounted(place):
            time.sleep(0.1)
    return mounted(place)


def detach_all(place: Place, patience: float) -> list[str]:
    """Detach the site's loop devices; return those that are still in use."""
    end = time.monotonic() + patience
    while devices := loop_devices(place):
        for device in devices:
            # The kernel detaches a device that is still in use later.
            with suppress(SiteError):
                run(place, ["losetup", "--detach", f"/dev/{device}"])
        if time.monotonic() > end:
            break
        if loop_devices(place):
            time.sleep(0.1)
    return list(loop_devices(place))
