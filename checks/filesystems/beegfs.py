"""BeeGFS: the stripe pattern of the run directory, the entry information of each file, targets.

BeeGFS 7 has the command `beegfs-ctl` and BeeGFS 8 `beegfs`, which can print the style of its
predecessor. If there are fewer targets than the pattern asks for, a file gets fewer, so only the
number called `actual` counts. Users other than root may set a pattern if the metadata servers have
sysAllowUserSetPattern, but never a storage pool: the pool of a file is the pool of its targets.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..base.stage import call, read_output
from .layout import (
    ALL_TARGETS,
    BYTES_PER_KIB,
    LAYOUT_FILE,
    TARGETS_FILE,
    Asked,
    Layout,
    Space,
    Striping,
    StripingError,
    TargetFaults,
    Targets,
    agreed,
    pool_listed,
)

_SEVEN = "beegfs-ctl"  # the command of BeeGFS 7, which the script names before its output

# A line of BeeGFS 7: number and states, and pools if requested.
_OF_SEVEN = re.compile(
    r" *(\d+) +(Online|Offline|Probably-offline) +([\w-]+)(?: +(\d+) +(\w+))? +\w+ *$",
    re.IGNORECASE,
)

_SIZE_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


class BeegfsStriping(Striping):
    """The number of targets and the chunk size, which users may set, and the pool."""

    mounted_as = ("beegfs", "fhgfs")
    options = ("size_kib", "pool", "targets")
    has_stripes = True
    script = Path(__file__).with_suffix(".sh")
    names_targets = lists_stripes = True

    def stripe(self, asked: Asked) -> list[str]:
        chunk = asked.size_kib and asked.size_kib * BYTES_PER_KIB
        words = (asked.stripe_count, chunk, asked.targets, asked.pool)
        return [
            call("note_targets", *filter(None, [asked.pool])),
            *(
                [call("stripe", *("" if word is None else word for word in words))]
                if asked.stripe_count is not None or asked.size_kib
                else []
            ),
        ]

    def in_effect(self, stage: Path, asked: Asked) -> Layout:
        listed = listed_targets(read_output(stage / TARGETS_FILE))
        pools = {number: target.pool for number, target in listed.items()}
        layouts = file_layouts(read_output(stage / LAYOUT_FILE), pools)
        targets = None
        if asked.stripe_count == ALL_TARGETS:
            mine = [each for each in listed.values() if asked.pool in (None, each.pool)]
            targets = asked.targets or sum(each.online for each in mine) or None
        return agreed(layouts, asked, targets, "targets online")

    def command(self, asked: Asked, found: Layout) -> str | None:
        # BeeGFS has no word for all targets.
        chunk = (asked.size_kib and asked.size_kib * BYTES_PER_KIB) or found.stripe_size
        if found.shown_by == _SEVEN:
            options = [f"--numtargets={found.stripe_count}", f"--chunksize={chunk}"]
            return call(_SEVEN, "--setpattern", *options)
        options = [f"--num-targets={found.stripe_count}", f"--chunk-size={chunk}"]
        return call("beegfs", "entry", "set", *options)

    def targets_of_files(self, text: str) -> Mapping[str, tuple[int, ...]]:
        return {Path(path).name: _targets_of(entry) for path, entry in _entries(text).items()}

    def count_targets(self, text: str) -> Targets | None:
        states = [each.online for each in listed_targets(text).values()]
        return Targets(sum(states), len(states) - sum(states)) if states else None

    def targets_in_reach(self, text: str) -> Mapping[str, Space | None]:
        seven = _space(text)
        return {
            str(number): each.space or seven.get(number)
            for number, each in _of_pool(text).items()
            if each.online
        }

    def judge_targets(
        self, said: Mapping[str, str], tolerated: int, needed_kib: float, declared: int | None
    ) -> TargetFaults | None:
        listed = _of_pool(said.get("targets", ""))
        if not listed:
            return None
        space = _space(said.get("target space", ""))
        stopping, avoided = [], []
        for number, each in listed.items():
            seen = each.space or space.get(number)
            room = seen and seen.free_kib
            where = "free space is unknown" if room is None else f"{room} KiB are free"
            if each.fault:
                stopping.append(f"target {number} is {each.fault}")
            elif room is not None and room < needed_kib:
                stopping.append(f"target {number} is full: {where}, {needed_kib:.0f} are needed")
            elif each.capacity == "emergency":
                avoided.append(f"target {number} takes few new files (emergency; {where})")
        over = len(avoided) > tolerated
        return TargetFaults(
            stopping=tuple(stopping) if len(stopping) > tolerated else (),
            over_all=f"{len(listed)} targets, {'; '.join(avoided)}" if over else None,
            taking=len(listed) - len(avoided) - len(stopping),
        )


@dataclass(frozen=True)
class Target:
    """A target of the list: its states in lower case, None for missing ones."""

    reachability: str
    consistency: str = "good"
    pool: str | None = None
    capacity: str | None = None
    space: Space | None = None

    @property
    def online(self) -> bool:
        """Whether it is in service."""
        return self.fault is None

    @property
    def fault(self) -> str | None:
        """Why it is not in service."""
        if self.reachability != "online":
            return self.reachability
        return None if self.consistency == "good" else f"inconsistent ({self.consistency})"


def listed_targets(text: str) -> dict[int, Target]:
    """The storage targets by their numbers; empty if they could not be listed."""
    header, found = None, {}
    for line in text.splitlines():
        if line.startswith("ID "):  # BeeGFS 8; its cells may have single blanks
            header = re.split(r"\s{2,}", line.strip())
        elif header and re.match(r"s:\d+ ", line):
            values = re.split(r"\s{2,}", line.strip())
            if len(values) < len(header):  # cut off by a timeout
                continue
            cells = dict(zip(header, values, strict=False))
            size, free = (cells.get(name, "-") for name in ("SPACE", "SPACE_FREE"))
            known = size.isdigit() and free.isdigit()
            found[int(cells["ID"][2:])] = Target(
                cells["REACHABILITY"].lower(),
                cells["CONSISTENCY"].lower(),
                cells["STORAGE_POOL"].removeprefix("s:"),
                cells.get("CAP_POOL", "").lower() or None,
                Space(int(size) // BYTES_PER_KIB, int(free) // BYTES_PER_KIB) if known else None,
            )
        elif seven := _OF_SEVEN.match(line):
            number, *states = seven.groups()
            found[int(number)] = Target(*(each and each.lower() for each in states))
    return found


def _of_pool(text: str) -> dict[int, Target]:
    """The targets of the pool in the first line of the list, or all."""
    pool = pool_listed(text)
    return {n: each for n, each in listed_targets(text).items() if pool in (None, each.pool)}


def _space(text: str) -> dict[int, Space]:
    """The space of each target by `beegfs-ctl --listtargets --spaceinfo`.

    A server that did not answer has 0 of 0 GiB.
    """
    rows = re.findall(r"^ *(\d+) +([\d.]+)GiB +([\d.]+)GiB ", text, re.MULTILINE)
    return {
        int(number): Space(*(int(float(gib) * 2**20) for gib in (total, free)))
        for number, total, free in rows
        if float(total)
    }


def _entries(text: str) -> dict[str, str]:
    """The entry information of each file by its path, from the line `--- PATH` before it.

    Raises:
        StripingError: the text has no entry information.
    """
    parts = re.split(r"^--- (.*)\n", text, flags=re.MULTILINE)[1:]
    if not parts:
        raise StripingError("BeeGFS gave no entry information: were files written?")
    return dict(zip(parts[::2], parts[1::2], strict=True))


def file_layouts(text: str, pools: Mapping[int, str | None] | None = None) -> list[Layout]:
    """The layout of each file, from its entry information; `pools` are the pools of the targets.

    Raises:
        StripingError: the text has no entry information, or a file has no stripe pattern.
    """
    return [_layout(entry, pools or {}) for entry in _entries(text).values()]


def _targets_of(entry: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"^ *\+ (\d+) @ ", entry, re.MULTILINE)))


def _layout(entry: str, pools: Mapping[int, str | None]) -> Layout:
    size = re.search(r"^\+ Chunksize: (\d+) *([KMG]?)", entry, re.MULTILINE | re.IGNORECASE)
    count = re.search(r"^\+ Number of storage targets: .*actual: (\d+)", entry, re.MULTILINE)
    if not size or not count:
        raise StripingError(f"BeeGFS gave no stripe pattern of a file but {entry.strip()!r}")
    stripe_size = int(size[1]) * _SIZE_UNITS[size[2].upper()]
    names = {pools.get(target) for target in _targets_of(entry)} - {None}
    pool = " and ".join(sorted(map(str, names))) or None
    shown_by = _SEVEN if entry.startswith(f"by {_SEVEN}\n") else None
    return Layout(int(count[1]), stripe_size, pool=pool, shown_by=shown_by)
