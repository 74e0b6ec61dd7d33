"""BeeGFS: the stripe pattern of the run directory, and the entry information of each file.

BeeGFS 7 has the command `beegfs-ctl` and BeeGFS 8 `beegfs`, which prints the same when it is
asked for its predecessor's style. A file is striped over fewer targets than the pattern desires
where there are no more, so only the number that is called `actual` counts. Users other than root
may set a pattern where the metadata servers have sysAllowUserSetPattern. Tested on documented
output; no BeeGFS has been seen.
"""

import re
from pathlib import Path

from ..program_output import read_output
from ..refusal import or_refuse, refuse
from .layout import (
    ALL_TARGETS,
    BYTES_PER_KIB,
    Asked,
    Layout,
    StripingError,
    Targets,
    agreed,
)

LAYOUT_FILE = "layout.txt"
TARGETS_FILE = "targets.txt"

_SIZE_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def _either(seven: str, eight: str) -> str:
    return f"if command -v beegfs-ctl > /dev/null; then {seven}; else {eight}; fi"


# A node may have several mounted, each with a configuration of its own.
_MOUNT_POINT = 'mount_point=$(df --output=target "$file_system" | tail -n 1)'
_LIST_TARGETS = _either(
    'timeout 20 beegfs-ctl --listtargets --nodetype=storage --state --mount="$mount_point"',
    "timeout 20 beegfs target list --node-type storage --state",
)


class BeegfsStriping:
    """The number of targets and the chunk size, which are what users may set."""

    mounted_as = ("beegfs", "fhgfs")
    tools = (("beegfs-ctl", "beegfs"),)
    client_statistics = ""

    @property
    def targets_command(self) -> str:
        return f"{_MOUNT_POINT}; {_LIST_TARGETS}"

    def set_commands(self, asked: Asked) -> list[str]:
        commands = [
            _MOUNT_POINT,
            f"{_LIST_TARGETS} > {TARGETS_FILE} 2> /dev/null || :",
        ]
        count = asked.stripe_count
        if count == ALL_TARGETS:
            counted = f"$(grep -c -w Online {TARGETS_FILE} || :)"
            commands.append(f"targets={asked.targets or counted}")
            problem = refuse(
                "stripe count asked: all targets; how many are online cannot be seen here: "
                "say it as targets in the site file's striping"
            )
            commands.append(f'[ "${{targets:-0}}" -ge 1 ] || {problem}')
            count = '"$targets"'
        options = {"num": count, "chunk": asked.size_kib and f"{asked.size_kib * BYTES_PER_KIB}"}
        if asked.anything:
            problem = (
                "BeeGFS did not take the layout asked for (users may set one where the servers "
                "have sysAllowUserSetPattern)"
            )
            seven = (
                f"beegfs-ctl --setpattern {_options(options, 'numtargets', 'chunksize')} "
                '--mount="$mount_point" "$run_directory"'
            )
            eight = (
                f"beegfs entry set {_options(options, 'num-targets', 'chunk-size')} "
                '"$run_directory"'
            )
            commands.append(or_refuse(_either(seven, eight), problem))
        return commands

    def read_back_commands(self) -> list[str]:
        each = _either(
            'beegfs-ctl --getentryinfo --mount="$mount_point" "$file"',
            'beegfs entry info --retro --raw "$file"',
        )
        return [
            'find "$run_directory" -type f | while read -r file; do '
            f'echo "---"; {each} 2>&1; done > {LAYOUT_FILE}',
        ]

    def in_effect(self, stage_directory: Path, asked: Asked) -> Layout:
        layouts = file_layouts(read_output(stage_directory / LAYOUT_FILE))
        targets = None
        if asked.stripe_count == ALL_TARGETS:
            seen = self.targets(stage_directory)
            targets = asked.targets or (seen.active if seen else None)
        return agreed(layouts, asked, targets, "targets online")

    def targets(self, stage_directory: Path) -> Targets | None:
        return self.count_targets(read_output(stage_directory / TARGETS_FILE))

    def count_targets(self, text: str) -> Targets | None:
        return online_targets(text)


def _options(values: dict[str, object], num: str, chunk: str) -> str:
    names = {"num": num, "chunk": chunk}
    return " ".join(f"--{names[key]}={value}" for key, value in values.items() if value)


def file_layouts(text: str) -> list[Layout]:
    """The layout of each file, from its entry information after a line of three dashes.

    Raises:
        StripingError: there is none, or one of them has no stripe pattern.
    """
    entries = text.split("---\n")[1:]
    if not entries:
        raise StripingError("BeeGFS gave no entry information: were files written?")
    return [_layout(entry) for entry in entries]


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
