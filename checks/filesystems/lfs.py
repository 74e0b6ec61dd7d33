"""Parses the output of Lustre's `lfs`: layouts of files, and targets. Pure functions.

Tested on captured output of Lustre 2.17.
"""

import re
from dataclasses import dataclass, field

from .layout import Space, StripingError

# The index of an object's OST: in the table of a plain layout, in the list of a component.
_OBJECT = re.compile(r"\s+(\d+)\s+\d+\s+0x|\s+-\s+\d+: \{ l_ost_idx: +(\d+),")

_REFUSALS = ("Permission denied", "Operation not permitted")


@dataclass
class Component:
    """A component of a file by `lfs getstripe`, with the OST of each stripe in order."""

    fields: dict[str, str] = field(default_factory=dict)
    targets: list[int] = field(default_factory=list)

    @property
    def mirror(self) -> str | None:
        """The number of its mirror."""
        return self.fields.get("lcme_mirror_id")

    @property
    def in_use(self) -> bool:
        """Whether it may have data: a plain layout, or a component that was written to.

        A write goes to one mirror and leaves the others stale.
        """
        flags = self.fields.get("lcme_flags", "init").split(",")
        return "init" in flags and "stale" not in flags


@dataclass(frozen=True)
class Ost:
    """A target of `lfs osts`: its name, such as `lustre-OST0003`, and whether it is active."""

    name: str
    active: bool

    def __str__(self) -> str:
        """The name without the file system's name."""
        return self.name.rpartition("-")[2]


@dataclass(frozen=True)
class OstSpace(Space):
    """A target by `lfs df`: its space, and the letters of its state."""

    letters: str


def components_of_files(text: str) -> dict[str, list[Component]]:
    """The components of each file by its path, from `lfs getstripe`; a plain layout is one.

    The extension components of self-extending layouts are left out, as they hold no data.

    Raises:
        StripingError: there is no file, a file has no layout, or a line is not part of a layout.
    """
    files: dict[str, list[Component]] = {}
    components: list[Component] = []
    for line in filter(str.strip, text.splitlines()):
        entry = re.match(r"\s*(l[cm]m[e_][\w.]*): *(.*)", line)
        if line.startswith("/"):
            components = files.setdefault(line, [])
        elif entry:
            name, value = entry.groups()
            if name == "lcme_id" or not (components or name.startswith("lcm_")):
                components.append(Component())
            if components:
                components[-1].fields[name] = value.strip()
        elif components and (target := _OBJECT.match(line)):
            components[-1].targets.append(int(target[1] or target[2]))
        elif line.split() != ["obdidx", "objid", "objid", "group"]:
            raise StripingError(f"lfs getstripe gave no layout but {line.strip()!r}")
    if not files:
        raise StripingError("lfs getstripe gave no layout: were files written, and to Lustre?")
    for path, found in files.items():
        found[:] = [each for each in found if each.fields.get("lcme_flags") != "extension"]
        if not found:
            raise StripingError(f"lfs getstripe gave no layout of {path}")
    return files


def listed_osts(text: str) -> dict[int, Ost]:
    """The targets by their indices, from `lfs osts`.

    If the output of `lfs pool_list` for a pool follows, only its members count.
    """
    osts = {
        int(index): Ost(name, state == "ACTIVE")
        for index, name, state in re.findall(r"^(\d+): (\S+?)(?:_UUID)? (\S+)", text, re.MULTILINE)
    }
    if not re.search(r"^Pool: ", text, re.MULTILINE):
        return osts
    members = set(re.findall(r"^(\S+?)(?:_UUID)?$", text.partition("Pool: ")[2], re.MULTILINE))
    return {index: ost for index, ost in osts.items() if ost.name in members}


def space_of_osts(text: str) -> dict[str, OstSpace | str]:
    """The space of each target by its name, from `lfs df`, or why it is not known."""
    found: dict[str, OstSpace | str] = dict(
        re.findall(r"^(\S+?-OST\w+?)(?:_UUID)? *: (.+)$", text, re.MULTILINE)
    )
    for name, size, free, letters in re.findall(
        r"^(\S+?)(?:_UUID)?\s+(\d+)\s+\d+\s+(\d+)\s+\d+%\s+.*\[OST:\d+\] *(\w*)",
        text,
        re.MULTILINE,
    ):
        found[name] = OstSpace(int(size), int(free), letters)
    return found


def failed_checks(text: str) -> dict[str, str]:
    """The targets that the client cannot reach, from `lfs check osts`, each with the message.

    If a plain user is refused an answer, that proves nothing about a target.
    """
    said = re.findall(r"check '(\S+?)-osc-(?!MDT)\S*': (.+?)(?: \(\d+\))?$", text, re.MULTILINE)
    inactive = re.findall(r"^(\S+?)-osc-(?!MDT)\S* inactive", text, re.MULTILINE)
    failed = {name: words for name, words in said if words not in _REFUSALS}
    return {**failed, **dict.fromkeys(inactive, "inactive")}
