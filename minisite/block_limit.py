"""The block-I/O controller: a limit on the rate of one device, in cgroups of either version.

Version 1 writes data back on behalf of the root group, so the limit is set there, and limited
processes have to be in it. Version 2 has no limits in its root but charges the group that wrote
the data, so each site has a group.
"""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from minisite.errors import SiteError
from minisite.place import Place

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_rate(text: str) -> int | None:
    """Parse a rate such as 20M to bytes per second; `none` gives None, no limit."""
    if text == "none":
        return None
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not match or not int(match.group(1)):
        raise SiteError(f"{text} is not a rate; write a number such as 20M or 1G, or none")
    return int(match.group(1)) * _UNITS[match.group(2)]


@dataclass(frozen=True)
class GroupsV1:
    """The controller of cgroups version 1, mounted at `top`."""

    top: Path

    @property
    def group(self) -> Path:
        """The group whose processes are limited."""
        return self.top

    def make(self) -> None:
        """Do nothing: the root group always exists."""

    def put(self, number: str, rate: int | None) -> None:
        """Set the limit of a device, or lift it."""
        for way in ("read", "write"):
            file = self.top / f"blkio.throttle.{way}_bps_device"
            file.write_text(f"{number} {rate or 0}\n")

    def get(self, number: str) -> dict[str, int]:
        """The limits in effect, of reads and writes."""
        found: dict[str, int] = {}
        for way in ("read", "write"):
            lines = (self.top / f"blkio.throttle.{way}_bps_device").read_text().splitlines()
            for line in lines:
                if line.split()[0] == number:
                    found[way] = int(line.split()[1])
        return found

    def remove(self) -> bool:
        """Do nothing: the root group cannot be removed."""
        return True


@dataclass(frozen=True)
class GroupsV2:
    """The controller of version 2, with the site's own group."""

    top: Path
    name: str

    @property
    def group(self) -> Path:
        """The group whose processes are limited."""
        return self.top / self.name

    def make(self) -> None:
        """Make the group, with the controller in it."""
        try:
            (self.top / "cgroup.subtree_control").write_text("+io\n")
            self.group.mkdir(exist_ok=True)
        except OSError as error:
            raise SiteError(
                f"{self.top} does not allow a group with block-I/O limits: {error}"
            ) from error

    def put(self, number: str, rate: int | None) -> None:
        """Set the limit of a device, or lift it."""
        if self.group.is_dir():
            value = rate or "max"
            (self.group / "io.max").write_text(f"{number} rbps={value} wbps={value}\n")

    def get(self, number: str) -> dict[str, int]:
        """The limits in effect, of reads and writes."""
        for line in (self.group / "io.max").read_text().splitlines():
            if line.split()[0] == number:
                values = dict(item.split("=") for item in line.split()[1:])
                ways = {"read": "rbps", "write": "wbps"}
                return {way: int(values[key]) for way, key in ways.items() if values[key] != "max"}
        return {}

    def remove(self) -> bool:
        """Remove the group; return False while there are processes in it."""
        with suppress(FileNotFoundError):
            try:
                self.group.rmdir()
            except OSError:
                return False
        return True


def controller(place: Place) -> GroupsV1 | GroupsV2 | None:
    """Return the block-I/O controller of this machine, or None if it cannot be used."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, right = line.split(" - ", 1)
        top = Path(left.split()[4])
        kind, _, options = right.split(" ", 2)
        if kind == "cgroup" and "blkio" in options.split(","):
            file = top / "blkio.throttle.write_bps_device"
            return GroupsV1(top) if os.access(file, os.R_OK) else None
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, right = line.split(" - ", 1)
        top = Path(left.split()[4])
        there = top / "cgroup.controllers"
        if right.split()[0] == "cgroup2" and there.exists() and "io" in there.read_text().split():
            return GroupsV2(top, place.name)
    return None


def enter(groups: GroupsV1 | GroupsV2, pid: int) -> None:
    """Put a process and its future children under the limit."""
    try:
        (groups.group / "cgroup.procs").write_text(f"{pid}\n")
    except OSError as error:
        raise SiteError(f"no process can be put into {groups.group}: {error.strerror}") from error
