"""The command `iobands cost`: what a selection writes and the node hours it takes, at most."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Annotated

import typer

from iobands.commands.options import AsSystemOption, RootOption, TagOption, failure, root_of
from iobands.measure import Selection, SessionError
from iobands.measure.cost import GIB_PER_TIB, capacities, costs_of
from iobands.measure.plan import limits_of
from iobands.measure.reframe import describe
from iobands.source.site_file import read_site_file
from iobands.views.format import printable
from iobands.views.layout import blocks, fitted, output_width

_DAYS_A_YEAR = 365
#: The most repeats of a healthy site, as a share of the scheduled runs (docs/error-rates.md).
_REPEATED = 0.1
_HEADINGS = (
    "FILE SYSTEM",
    "CHECKS",
    "TiB/RUN",
    "TiB/DAY",
    "TiB/YEAR",
    "WRITES/YEAR",
    "h/RUN",
    "h/YEAR",
)


def cost(
    root: RootOption = None,
    tag: TagOption = "daily",
    system: AsSystemOption = None,
    every: Annotated[
        float, typer.Option("--every", metavar="DAYS", min=0.01, help="Days between runs.")
    ] = 1,
) -> None:
    """Print what a selection of checks costs at most: TiB written and node hours.

    Nothing is measured. If the site file declares `capacity_tib` for a file system, the table also
    shows how many times a year its whole capacity is written.
    """
    found = root_of(root)
    try:
        costs = costs_of(describe(found, Selection(tag, system).arguments()))
    except (SessionError, ValueError) as error:
        raise failure(str(error)) from error
    if not costs:
        raise failure(f"no measuring check with the tag {tag} runs on this system")
    rows = [_HEADINGS]
    read = partial(read_site_file, found / "config" / "systems")
    capacity_of = capacities({each.partition for each in costs}, read)
    by_file_system = defaultdict(list)
    for each in costs:
        by_file_system[each.file_system].append(each)
    for name, group in [*by_file_system.items(), ("all", costs)]:
        tib = sum(each.written_gib for each in group) / GIB_PER_TIB
        hours = sum(each.node_hours for each in group)
        a_year = _DAYS_A_YEAR / every
        capacity = capacity_of.get(name)
        rows.append(
            (
                printable(name),
                str(len(group)),
                f"{tib:.3g}",
                f"{tib / every:.3g}",
                f"{tib * a_year:.3g}",
                f"{tib * a_year / capacity:.2g}" if capacity else "",
                f"{hours:.3g}",
                f"{hours * a_year:.3g}",
            )
        )
    right = range(1, len(_HEADINGS))
    said = [line for row in blocks(rows, output_width(), right=right, indent="") for line in row]
    said += ["", "Upper bounds: volume × repeats; nodes × time limit (h: node hours)."]
    limits = {place: limits_of(read, place) for place in sorted({e.partition for e in costs})}
    if any(own.allow for own in limits.values()):
        extra = _REPEATED * sum(each.node_hours for each in costs) * _DAYS_A_YEAR / every
        said.append(
            "What is in doubt is measured again: on a healthy site up to "
            f"{_REPEATED:.0%} more runs, {extra:.3g} node hours a year."
        )
    for place, own in limits.items():
        most = f"at most {own.node_hours_per_day:g} node hours a day" if own.allow else "off"
        said.append(f"Repeats on {place}: {most} (`suspects` in the site file).")
    unknown = sum(not each.written_gib and not each.node_hours for each in costs)
    if unknown:
        said.append(
            f"{unknown} checks are not counted, as the scheduler chooses their number of nodes."
        )
    typer.echo(fitted(said), nl=False)
