"""CephFS: `setfattr` for the run directory's layout, `getfattr` for the layout of each file.

Ceph accepts any stripe count, also above the number of OSDs, and records it in the layout. So only
a count of the OSDs shows how many can serve a file. If the node has the command, a configuration
and a key, a plain user can count them with `ceph osd stat`; otherwise the site file has `targets`.
A hash decides the OSDs of a file's objects, so four stripes need not lie on four OSDs. `ceph osd
map` shows on which they lie.
"""

import json
import re
import shlex
from dataclasses import replace
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


class CephStriping(Striping):
    """The layout attributes of the run directory, which new files inherit; they name no OSD.

    The monitors know which OSD has an object, if they can be asked.
    """

    mounted_as = ("ceph", "fuse.ceph-fuse", "fuse.ceph")
    options = ("size_kib", "object_size_kib", "pool", "targets")
    has_stripes = True
    script = Path(__file__).with_suffix(".sh")
    lists_stripes = True

    def stripe(self, asked: Asked) -> list[str]:
        commands = ["note_targets"]
        if asked.stripe_count not in (None, 1):
            known = [] if asked.targets is None else [asked.targets]
            commands.append(call("require_targets", asked.stripe_count, *known))
        if asked.anything:
            commands.append(" ".join(["stripe", *_attributes(asked)]))
        return commands

    def in_effect(self, stage: Path, asked: Asked) -> Layout:
        layouts = file_layouts(read_output(stage / LAYOUT_FILE))
        targets = asked.targets
        if targets is None:
            seen = self.count_targets(read_output(stage / TARGETS_FILE))
            targets = seen.active if seen else None
        if targets is None and (asked.stripe_count or 1) > 1:
            raise StripingError(
                f"stripe count requested: {asked.stripe_count}; how many OSDs are up could not be "
                "seen: set `targets` in the site file's striping"
            )
        return agreed(layouts, asked, targets, "OSDs up")

    def command(self, asked: Asked, found: Layout) -> str | None:
        # Ceph has no word for all targets.
        size_kib = asked.size_kib or (found.stripe_size or 0) // BYTES_PER_KIB or None
        shown = replace(asked, stripe_count=found.stripe_count, size_kib=size_kib)
        layout = " ".join(f"{name}={value}" for name, value in _values(shown))
        return call("setfattr", "-n", "ceph.dir.layout", "-v", layout)

    def count_targets(self, text: str) -> Targets | None:
        return up_osds(text)


def _values(asked: Asked) -> list[tuple[str, int | str]]:
    values = {
        "stripe_unit": _in_bytes(asked.size_kib),
        "stripe_count": asked.stripe_count,
        "object_size": _in_bytes(asked.object_size_kib),
        "pool": asked.pool,
    }
    return [(name, value) for name, value in values.items() if value is not None]


def _attributes(asked: Asked) -> list[str]:
    return [
        # the number that require_targets has counted
        '"stripe_count=$targets"'
        if (name, value) == ("stripe_count", ALL_TARGETS)
        else shlex.quote(f"{name}={value}")
        for name, value in _values(asked)
    ]


def _in_bytes(kib: int | None) -> int | None:
    return None if kib is None else kib * BYTES_PER_KIB


def file_layouts(text: str) -> list[Layout]:
    """The layout of each file, from `getfattr -n ceph.file.layout`.

    Raises:
        StripingError: the text has no layout, or a line that is not one.
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
    """How many OSDs are up and how many are not, from `ceph osd stat`; None if unknown."""
    try:
        counts = json.loads(text)
        return Targets(counts["num_up_osds"], counts["num_osds"] - counts["num_up_osds"])
    except (ValueError, KeyError, TypeError):
        return None
