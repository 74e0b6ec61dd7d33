"""What Lustre's `lfs` prints: layouts of files, and its targets. Pure.

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
    """A component of a file: what `lfs getstripe` says, and the OST of each stripe in order."""

    fields: dict[str, str] = field(default_factory=dict)
    targets: list[int] = field(default_factory=list)

    @property
    def mirror(self) -> str | None:
        """The number of its mirror."""
        return self.fields.get("lcme_mirror_id")

    @property
    def in_use(self) -> bool:
        """Whether data may lie there: a plain layout, or a component that was written to.

        Of mirrors, a write goes to one and leaves the others stale.
        """
        flags = self.fields.get("lcme_flags", "init").split(",")
        return "init" in flags and "stale" not in flags


@dataclass(frozen=True)
class Ost:
    """A target of `lfs osts`: its name, as `lustre-OST0003`, and whether the client has it."""

    name: str
    active: bool

    def __str__(self) -> str:
        """The name without that of the file system."""
        return self.name.rpartition("-")[2]


@dataclass(frozen=True)
class OstSpace(Space):
    """What `lfs df` says of a target: its space, and the letters of its state."""

    letters: str


def components_of_files(text: str) -> dict[str, list[Component]]:
    """The components of each file by its path, from `lfs getstripe`; a plain layout is one.

    Without those that stand for what a self-extending one may grow by, which hold no data.

    Raises:
        StripingError: there is no file, one has no layout, or a line is no part of one.
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
        raise StripingError("lfs getstripe gave no layout: were files written, and is it Lustre?")
    for path, found in files.items():
        found[:] = [each for each in found if each.fields.get("lcme_flags") != "extension"]
        if not found:
            raise StripingError(f"lfs getstripe gave no layout of {path}")
    return files


def listed_osts(text: str) -> dict[int, Ost]:
    """The targets by their indices, from `lfs osts`, and of these the members of a pool.

    Where `lfs pool_list` of one pool follows, its members alone count.
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
    """What `lfs df` says of each target by its name: its space, or why it does not know."""
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
    """The targets that the client does not reach by `lfs check osts`, and what it said of each.

    What a plain user may not ask says nothing of a target.
    """
    said = re.findall(r"check '(\S+?)-osc-(?!MDT)\S*': (.+?)(?: \(\d+\))?$", text, re.MULTILINE)
    inactive = re.findall(r"^(\S+?)-osc-(?!MDT)\S* inactive", text, re.MULTILINE)
    failed = {name: words for name, words in said if words not in _REFUSALS}
    return {**failed, **dict.fromkeys(inactive, "inactive")}
