"""BeeGFS: the stripe pattern of the run directory, and the entry information of each file.

BeeGFS 7 has the command `beegfs-ctl` and BeeGFS 8 `beegfs`, which prints the same when it is
asked for its predecessor's style. A file is striped over fewer targets than the pattern desires
where there are no more, so only the number that is called `actual` counts. Users other than root
may set a pattern where the metadata servers have sysAllowUserSetPattern. Tested on documented
output; no BeeGFS has been seen.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from ..base.stage import call, read_output
from .layout import (
    ALL_TARGETS,
    BYTES_PER_KIB,
    LAYOUT_FILE,
    TARGETS_FILE,
    Asked,
    Layout,
    Striping,
    StripingError,
    Targets,
    agreed,
)

_SIZE_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


class BeegfsStriping(Striping):
    """The number of targets and the chunk size, which are what users may set."""

    mounted_as = ("beegfs", "fhgfs")
    script = Path(__file__).with_suffix(".sh")

    def stripe(self, asked: Asked) -> list[str]:
        chunk = asked.size_kib and asked.size_kib * BYTES_PER_KIB
        words = (asked.stripe_count, chunk, asked.targets)
        return [
            "note_targets",
            *(
                [call("stripe", *("" if word is None else word for word in words))]
                if asked.anything
                else []
            ),
        ]

    def in_effect(self, stage: Path, asked: Asked) -> Layout:
        layouts = file_layouts(read_output(stage / LAYOUT_FILE))
        targets = None
        if asked.stripe_count == ALL_TARGETS:
            seen = self.count_targets(read_output(stage / TARGETS_FILE))
            targets = asked.targets or (seen.active if seen else None)
        return agreed(layouts, asked, targets, "targets online")

    def targets_of_files(self, text: str) -> Mapping[str, tuple[int, ...]]:
        return {Path(path).name: _targets_of(entry) for path, entry in _entries(text).items()}

    def count_targets(self, text: str) -> Targets | None:
        return online_targets(text)


def _entries(text: str) -> dict[str, str]:
    """The entry information of each file by its path, which is in the line `--- PATH` before it.

    Raises:
        StripingError: there is none.
    """
    parts = re.split(r"^--- (.*)\n", text, flags=re.MULTILINE)[1:]
    if not parts:
        raise StripingError("BeeGFS gave no entry information: were files written?")
    return dict(zip(parts[::2], parts[1::2], strict=True))


def file_layouts(text: str) -> list[Layout]:
    """The layout of each file, from its entry information.

    Raises:
        StripingError: there is none, or one of them has no stripe pattern.
    """
    return [_layout(entry) for entry in _entries(text).values()]


def _targets_of(entry: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"^ *\+ (\d+) @ ", entry, re.MULTILINE)))


def _layout(entry: str) -> Layout:
    size = re.search(r"^\+ Chunksize: (\d+) *([KMG]?)", entry, re.MULTILINE | re.IGNORECASE)
    count = re.search(r"^\+ Number of storage targets: .*actual: (\d+)", entry, re.MULTILINE)
    if not size or not count:
        raise StripingError(f"BeeGFS gave no stripe pattern of a file but {entry.strip()!r}")
    return Layout(int(count[1]), int(size[1]) * _SIZE_UNITS[size[2].upper()])


def online_targets(text: str) -> Targets | None:
    """How many storage targets are online and how many are not; None if it did not say."""
    # A target's line names its reachability; no other line does.
    states = re.findall(r"^ *\S+ .*?\b(Probably-offline|Offline|Online)\b", text, re.M | re.I)
    online = sum(state.lower() == "online" for state in states)
    return Targets(online, len(states) - online) if states else None
