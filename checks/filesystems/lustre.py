"""Lustre: `lfs setstripe` on the run directory, `lfs getstripe` of the files below it.

`lfs setstripe` accepts more stripes than there are OSTs and gives fewer, so its exit status
proves nothing: only the layout of the files that were written counts. Tested on captured output
of Lustre 2.17.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..base.stage import call, read_output
from .layout import (
    ALL_TARGETS,
    LAYOUT_FILE,
    TARGETS_FILE,
    Asked,
    Layout,
    StripingError,
    Targets,
    agreed,
)

#: What stands for the stripe count in a site file's `layout`.
COUNT_MARK = "{stripe_count}"

# The index of an object's OST: in the table of a plain layout, in the list of a component.
_OBJECT = re.compile(r"\s+(\d+)\s+\d+\s+0x|\s+-\s+\d+: \{ l_ost_idx: +(\d+),")


@dataclass
class Component:
    """A component of a file: what `lfs getstripe` says, and the OST of each stripe in order."""

    fields: dict[str, str] = field(default_factory=dict)
    targets: list[int] = field(default_factory=list)

    @property
    def in_use(self) -> bool:
        """Whether data may lie there: a plain layout, or a component that was written to."""
        return "init" in self.fields.get("lcme_flags", "init")


class LustreStriping:
    """Plain layouts, or one that the site file writes out as options of `lfs setstripe`."""

    mounted_as = ("lustre",)
    script = Path(__file__).with_suffix(".sh")
    counts_clients = True

    def stripe(self, asked: Asked) -> list[str]:
        set_layout = [call("stripe", *setstripe_options(asked))] if asked.anything else []
        return ["note_targets", *set_layout]

    def in_effect(self, stage: Path, asked: Asked) -> Layout:
        files = components_of_files(read_output(stage / LAYOUT_FILE))
        targets = asked.targets
        if asked.stripe_count == ALL_TARGETS and targets is None:
            targets = active_targets(read_output(stage / TARGETS_FILE)).active
        overstriping = bool(
            asked.layout and re.search(r"(^| )(-C|--overstripe-count)", asked.layout)
        )
        layouts = []
        for path, components in files.items():
            if asked.layout is not None:
                _require_components(len(components), asked.layout)
            layouts.append(_layout(path, components, overstriping))
        # Fewer OSTs than stripes show in the layout itself, unless stripes were to share them.
        known = targets if asked.stripe_count == ALL_TARGETS else None
        return agreed(layouts, asked, known, "active OSTs")

    def targets_of_files(self, text: str) -> Mapping[str, tuple[int, ...]]:
        return {
            Path(path).name: tuple(i for each in components if each.in_use for i in each.targets)
            for path, components in components_of_files(text).items()
        }

    def count_targets(self, text: str) -> Targets | None:
        try:
            return active_targets(text)
        except StripingError:
            return None


def setstripe_options(asked: Asked) -> list[str]:
    """The options of `lfs setstripe` for what is asked."""
    if asked.layout is not None:
        return shlex.split(asked.layout.replace(COUNT_MARK, str(asked.stripe_count)))
    options = {
        "-c": asked.stripe_count,
        "-S": None if asked.size_kib is None else f"{asked.size_kib}k",
        "-i": asked.index,
        "-p": asked.pool,
    }
    return [
        word for name, value in options.items() if value is not None for word in (name, str(value))
    ]


def components_of_files(text: str) -> dict[str, list[Component]]:
    """The components of each file by its path, from `lfs getstripe`; a plain layout is one.

    Raises:
        StripingError: there is no file, one has no layout, or a line is no part of one.
    """
    files: dict[str, list[Component]] = {}
    components: list[Component] = []
    for line in filter(str.strip, text.splitlines()):
        field = re.match(r"\s*(l[cm]m[e_][\w.]*): *(.*)", line)
        if line.startswith("/"):
            components = files.setdefault(line, [])
        elif field:
            name, value = field.groups()
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
        if not found:
            raise StripingError(f"lfs getstripe gave no layout of {path}")
    return files


def file_layouts(text: str) -> list[Layout]:
    """The layout of each file, from `lfs getstripe`: that of its last component in use.

    Raises:
        StripingError: there is none, or it is not a layout.
    """
    return [_layout(*file, overstriping=False) for file in components_of_files(text).items()]


def _layout(path: str, components: list[Component], overstriping: bool) -> Layout:
    in_use = [component for component in components if component.in_use]
    if not in_use:
        raise StripingError(f"lfs getstripe shows no component of {path} that is in use")
    fields, targets = in_use[-1].fields, set(in_use[-1].targets)
    try:
        layout = Layout(
            stripe_count=int(fields["lmm_stripe_count"]),
            stripe_size=int(fields["lmm_stripe_size"]),
            # Data on the MDT has the index of that, which newer versions call so.
            index=int(fields.get("lmm_mdt_index") or fields["lmm_stripe_offset"]),
            pool=fields.get("lmm_pool"),
        )
    except (KeyError, ValueError) as error:
        raise StripingError(f"lfs getstripe gave no layout of {path} but {fields}") from error
    if not overstriping and len(targets) != layout.stripe_count:
        raise StripingError(
            f"stripe count in effect: {layout.stripe_count} on {len(targets)} OSTs; "
            "overstriping was not asked for"
        )
    return layout


def _require_components(found: int, layout: str) -> None:
    asked = max(1, len(re.findall(r"(?:^| )(?:-E|--component-end)", layout)))
    if found != asked:
        raise StripingError(f"components asked: {asked} ({layout}); in effect: {found}")


def active_targets(text: str) -> Targets:
    """How many OSTs are active and how many are not, from `lfs osts`.

    Raises:
        StripingError: none is active.
    """
    states = [line.split()[-1] for line in text.splitlines() if re.match(r"\d+: ", line)]
    active = states.count("ACTIVE")
    if not active:
        raise StripingError(f"lfs osts names no active OST: {text.strip()!r}")
    return Targets(active, len(states) - active)
