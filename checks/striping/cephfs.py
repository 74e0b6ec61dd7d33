"""CephFS: `setfattr` of the run directory's layout, `getfattr` of the layout of each file.

Ceph takes any stripe count, also one above the number of OSDs, and the layout of the files says
that number: only a count of the OSDs shows that no more can serve a file. A plain user can count
them with `ceph osd stat`, where the node has that command, a configuration and a key; elsewhere
the site file says `targets`. Which OSDs a file's objects come to lie on is drawn by a hash, so
four stripes on four OSDs are spread over four of them only on average.
"""

import json
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
TARGETS_FILE = "targets.json"


class CephStriping:
    """The layout attributes of the run directory, which new files inherit."""

    mounted_as = ("ceph", "fuse.ceph-fuse", "fuse.ceph")
    tools = (("setfattr",), ("getfattr",))
    client_statistics = ""
    targets_command = "timeout 20 ceph osd stat --format json"

    def set_commands(self, asked: Asked) -> list[str]:
        commands = [
            f"{self.targets_command} > {TARGETS_FILE} 2> /dev/null || :",
            *self._count_for(asked),
        ]
        if asked.anything:
            # All at once: the size of a stripe is checked against that of an object.
            set_layout = f'setfattr -n ceph.dir.layout -v "{_attributes(asked)}" "$run_directory"'
            problem = "Ceph did not take the layout asked for (a client needs the capability p)"
            commands.append(or_refuse(set_layout, problem))
        return commands

    @staticmethod
    def _count_for(asked: Asked) -> list[str]:
        if asked.stripe_count in (None, 1):
            return []
        if asked.targets is not None:
            count = f"targets={asked.targets}"
        else:
            count = f"targets=$(sed -n 's/.*\"num_up_osds\": *\\([0-9]*\\).*/\\1/p' {TARGETS_FILE})"
        every = asked.stripe_count == ALL_TARGETS
        wanted = "all OSDs" if every else asked.stripe_count
        unseen = refuse(
            f"stripe count asked: {wanted}; how many are up cannot be seen here with ceph osd "
            "stat: say it as targets in the site file's striping"
        )
        commands = [count, f'[ -n "$targets" ] || {unseen}']
        if not every:
            few = refuse(f"stripe count asked: {asked.stripe_count}; there are $targets OSDs up")
            commands.append(f'[ "$targets" -ge {asked.stripe_count} ] || {few}')
        return commands

    def read_back_commands(self) -> list[str]:
        return [
            'find "$run_directory" -type f -exec '
            f"getfattr --absolute-names -n ceph.file.layout {{}} + > {LAYOUT_FILE} 2>&1",
        ]

    def in_effect(self, stage_directory: Path, asked: Asked) -> Layout:
        layouts = file_layouts(read_output(stage_directory / LAYOUT_FILE))
        targets = asked.targets
        if targets is None:
            seen = self.targets(stage_directory)
            targets = seen.active if seen else None
        if targets is None and (asked.stripe_count or 1) > 1:
            raise StripingError(
                f"stripe count asked: {asked.stripe_count}; how many OSDs are up could not be "
                "seen: say it as `targets` in the site file's striping"
            )
        return agreed(layouts, asked, targets, "OSDs up")

    def targets(self, stage_directory: Path) -> Targets | None:
        return self.count_targets(read_output(stage_directory / TARGETS_FILE))

    def count_targets(self, text: str) -> Targets | None:
        return up_osds(text)


def _attributes(asked: Asked) -> str:
    count = "$targets" if asked.stripe_count == ALL_TARGETS else asked.stripe_count
    values = {
        "stripe_unit": _in_bytes(asked.size_kib),
        "stripe_count": count,
        "object_size": _in_bytes(asked.object_size_kib),
        "pool": asked.pool,
    }
    return " ".join(f"{name}={value}" for name, value in values.items() if value is not None)


def _in_bytes(kib: int | None) -> int | None:
    return None if kib is None else kib * BYTES_PER_KIB


def file_layouts(text: str) -> list[Layout]:
    """The layout of each file, from `getfattr -n ceph.file.layout`.

    Raises:
        StripingError: there is none, or getfattr said anything else.
    """
    layouts = []
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("# file: "):
            continue
        if not line.startswith('ceph.file.layout="'):
            raise StripingError(f"getfattr gave no layout but {line!r}")
        fields = dict(re.findall(r"(\w+)=(\S+)", line.partition("=")[2].strip('"')))
        try:
            layouts.append(
                Layout(
                    stripe_count=int(fields["stripe_count"]),
                    stripe_size=int(fields["stripe_unit"]),
                    object_size=int(fields["object_size"]),
                    pool=fields["pool"],
                )
            )
        except (KeyError, ValueError) as error:
            raise StripingError(f"getfattr gave no layout but {line!r}") from error
    if not layouts:
        raise StripingError("getfattr gave no layout: were files written, and is it CephFS?")
    return layouts


def up_osds(text: str) -> Targets | None:
    """How many OSDs are up and how many are not, from `ceph osd stat`; None if it did not say."""
    try:
        counts = json.loads(text)
        return Targets(counts["num_up_osds"], counts["num_osds"] - counts["num_up_osds"])
    except (ValueError, KeyError, TypeError):
        return None
