"""Lustre: `lfs setstripe` on the run directory, `lfs getstripe` on the files below it.

`lfs setstripe` accepts more stripes than there are OSTs and gives fewer, so its exit status proves
nothing: only the layout of the written files counts. Tested on captured output of Lustre 2.17.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..base.stage import call, read_output
from . import osts
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
)
from .lfs import Component, Ost, components_of_files, listed_osts, space_of_osts

#: The placeholder of the stripe count in a site file's `layout`.
COUNT_MARK = "{stripe_count}"


class LustreStriping(Striping):
    """Plain layouts, or a layout that the site file gives as options of `lfs setstripe`."""

    mounted_as = ("lustre",)
    options = ("size_kib", "index", "pool", "layout", "targets")
    has_stripes = True
    script = Path(__file__).with_suffix(".sh")
    names_targets = lists_stripes = True
    counts_clients = True

    def stripe(self, asked: Asked) -> list[str]:
        set_layout = [call("stripe", *setstripe_options(asked))] if asked.anything else []
        return [call("note_targets", *filter(None, [asked.pool])), *set_layout]

    def in_effect(self, stage: Path, asked: Asked) -> Layout:
        files = components_of_files(read_output(stage / LAYOUT_FILE))
        overstriping = bool(
            asked.layout and re.search(r"(^| )(-C|--overstripe-count)", asked.layout)
        )
        for components in files.values() if asked.layout is not None else ():
            _require_components(len(components), asked.layout)
        layouts = file_layouts(files, overstriping=overstriping)
        listed = listed_osts(read_output(stage / TARGETS_FILE))
        active = {index: ost for index, ost in listed.items() if ost.active}
        wanted = asked.targets or len(active)
        # A count equal to the number of OSTs means all of them, too.
        if asked.stripe_count not in (ALL_TARGETS, wanted):
            _require_whole_files(files, layouts, asked.stripe_count)
            # Fewer OSTs than stripes show in the layout itself, unless stripes may share OSTs.
            return agreed(layouts, asked, None, "active OSTs")
        if not wanted:
            raise StripingError("lfs osts names no active OST")
        if 0 < len(active) < wanted - asked.tolerated:
            where = f"the pool {asked.pool} has" if asked.pool else "there are"
            raise StripingError(
                f"stripe count requested: all {wanted} targets of the site file; "
                f"{where} {len(active)}",
                layouts[0],
            )
        _require_whole_files(files, layouts, wanted)
        fewer = _stripes_over_all(asked, wanted, active, layouts, files)
        return agreed(layouts, replace(asked, stripe_count=ALL_TARGETS), fewer, "active OSTs")

    def command(self, asked: Asked, found: Layout) -> str | None:
        size_kib = asked.size_kib or (found.stripe_size or 0) // BYTES_PER_KIB or None
        shown = replace(asked, size_kib=size_kib, index=None)
        return call("lfs", "setstripe", *setstripe_options(shown))

    def targets_of_files(self, text: str) -> Mapping[str, tuple[int, ...]]:
        return {
            Path(path).name: tuple(i for each in components if each.in_use for i in each.targets)
            for path, components in components_of_files(text).items()
        }

    def count_targets(self, text: str) -> Targets | None:
        states = [ost.active for ost in listed_osts(text.partition("Pool: ")[0]).values()]
        return Targets(sum(states), len(states) - sum(states)) if any(states) else None

    def targets_in_reach(self, text: str) -> Mapping[str, Space | None]:
        space = space_of_osts(text)
        active = [ost for ost in listed_osts(text).values() if ost.active]
        return {
            str(ost): seen if isinstance(seen := space.get(ost.name), Space) else None
            for ost in active
        }

    def judge_targets(
        self, said: Mapping[str, str], tolerated: int, needed_kib: float, declared: int | None
    ) -> TargetFaults | None:
        return osts.judge(said, tolerated, needed_kib, declared)


def _targets_of_mirror(components: Sequence[Component]) -> set[int]:
    """The targets of the last mirror in use, as a target has parts of one mirror only."""
    in_use = [each for each in components if each.in_use]
    mirror = (each for each in in_use if each.mirror == in_use[-1].mirror)
    return {target for each in mirror for target in each.targets}


def _stripes_over_all(
    asked: Asked,
    wanted: int,
    active: Mapping[int, Ost],
    layouts: Sequence[Layout],
    files: Mapping[str, Sequence[Component]],
) -> int:
    """How many stripes files over all targets have, if `asked.tolerated` ones may take no files.

    Lustre keeps the targets of one component out of the next one, so all components count.

    Raises:
        StripingError: they have fewer. The message names the targets without files if these explain
            the missing stripes, unless there is one stripe, the usual layout of a directory.
    """
    count = min(layout.stripe_count or 0 for layout in layouts)
    found = [_targets_of_mirror(components) for components in files.values()]
    missing = wanted - min(map(len, found))
    if not 0 < count < wanted or missing <= asked.tolerated:
        return min(count, wanted) or wanted
    message = f"stripe count requested: all {wanted} active OSTs; in effect: {wanted - missing}"
    pool = layouts[0].pool
    unused = [str(ost) for index, ost in active.items() if index not in set().union(*found)]
    if pool and not asked.pool:
        message += f", in the directory's default pool {pool}: set `pool` in the site file"
    elif missing < wanted - 1 and len(unused) == missing:
        message += f": {', '.join(unused)} took no files"
    raise StripingError(message, layouts[0])


def _require_whole_files(
    files: Mapping[str, Sequence[Component]], layouts: Sequence[Layout], wanted: int | None
) -> None:
    """Raise a StripingError if a file ends before the component with the stripe count asked for."""
    for (path, components), layout in zip(files.items(), layouts, strict=True):
        last = [component for component in components if component.in_use][-1]
        mirror = [component for component in components if component.mirror == last.mirror]
        used = mirror.index(last) + 1
        if wanted is not None and used < len(mirror) and layout.stripe_count != wanted:
            end = last.fields.get("lcme_extent.e_end", "?")
            raise StripingError(
                f"{Path(path).name} ends in component {used} of {len(mirror)}, before byte "
                f"{end}: the component with the requested stripe count {wanted} has no data; write "
                "more to each file",
                layout,
            )


def setstripe_options(asked: Asked) -> list[str]:
    """The options of `lfs setstripe` for a request."""
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


def file_layouts(
    files: Mapping[str, Sequence[Component]], *, overstriping: bool = False
) -> list[Layout]:
    """The layout of each file: the layout of its last component in use.

    Raises:
        StripingError: a file has no such component, its layout cannot be read, or some of its
            stripes share a target, unless `overstriping` was requested.
    """
    return [_layout(*file, overstriping) for file in files.items()]


def _layout(path: str, components: Sequence[Component], overstriping: bool) -> Layout:
    in_use = [component for component in components if component.in_use]
    if not in_use:
        raise StripingError(f"lfs getstripe shows no component of {path} that is in use")
    fields, targets = in_use[-1].fields, set(in_use[-1].targets)
    try:
        layout = Layout(
            stripe_count=int(fields["lmm_stripe_count"]),
            stripe_size=int(fields["lmm_stripe_size"]),
            # Data on the MDT has the index of the MDT, which newer versions print as lmm_mdt_index.
            index=int(fields.get("lmm_mdt_index") or fields["lmm_stripe_offset"]),
            pool=fields.get("lmm_pool"),
        )
    except (KeyError, ValueError) as error:
        raise StripingError(f"lfs getstripe gave no layout of {path} but {fields}") from error
    if not overstriping and len(targets) != layout.stripe_count:
        raise StripingError(
            f"stripe count in effect: {layout.stripe_count} on {len(targets)} OSTs; "
            "overstriping was not requested"
        )
    return layout


def _require_components(found: int, layout: str) -> None:
    # The options of a single mirror, or the options that follow each number of mirrors.
    first, *others = re.split(r"(?:^| )(?:-N|--mirror-count=?)(\d*)(?= |$)", layout)
    mirrors = list(zip(others[::2], others[1::2], strict=True)) or [("1", first)]
    asked = sum(
        int(number or 1) * max(1, len(re.findall(r"(?:^| )(?:-E|--component-end)", options)))
        for number, options in mirrors
    )
    if found != asked:
        raise StripingError(f"components requested: {asked} ({layout}); in effect: {found}")
