"""The command `iobands compare`: series that differ in one field, by their histories."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import PerflogsOption, SystemOption, default_path, failure
from iobands.reporting.comparison import comparison_lines
from iobands.site.compare import FIELDS, read_histories
from iobands.site.compare import compare as compared


def compare(
    field: Annotated[
        str,
        typer.Argument(metavar="FIELD", help="A series field: transport, file_system, tasks, ..."),
    ],
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="VALUE", help="What is 1. [default: the first value]"),
    ] = None,
    case: Annotated[
        str, typer.Option("--case", metavar="TEXT", help="Only cases with TEXT in their name.")
    ] = "",
    days: Annotated[
        float,
        typer.Option("--within", metavar="DAYS", min=0, help="How far apart a pair may lie."),
    ] = 1,
    perflogs: PerflogsOption = None,
    system: SystemOption = None,
) -> None:
    """Compare series that differ in one field: the ratio, and an interval of 95 % for it.

    Samples that were measured near each other make pairs, and the ratio is the median of theirs,
    so that what changes from day to day cancels out. The interval is that of the sign test; it
    takes six pairs. A case that compares by itself has its ratio as a result: see `iobands status`.
    """
    if field not in FIELDS:
        raise failure(f"{field}: cannot be compared; one of {', '.join(FIELDS)} can")
    directory = perflogs or default_path(Path("perflogs"))
    try:
        samples = read_histories(directory, system, case)
    except FileNotFoundError:
        raise failure(f"{directory}: no perflogs there; measure with `iobands run`") from None
    found = compared(samples, field, against=against, within=timedelta(days=days))
    lines = comparison_lines(list(found), field)
    if not lines:
        what = f"no two series differ in {field} alone"
        raise failure(f"{directory}: {what}" + (f" from {against}" if against else ""))
    typer.echo("\n".join(lines))
