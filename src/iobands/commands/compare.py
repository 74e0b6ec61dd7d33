"""The command `iobands compare`: series that differ in one field, by their histories."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import PerflogsOption, SystemOption, default_path, failure
from iobands.judge.advise import compare as compared
from iobands.snapshot import COMPARABLE
from iobands.source.perflog import read_perflogs
from iobands.views.advice import comparison_lines


def compare(
    field: Annotated[
        str,
        typer.Argument(metavar="FIELD", help="A series field: transport, file_system, tasks, ..."),
    ],
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="VALUE", help="What is 1. [default: the first value]"),
    ] = None,
    perflogs: PerflogsOption = None,
    system: SystemOption = None,
) -> None:
    """Compare series that differ in one field: the ratio, and an interval of 95 % for it.

    Samples that were measured within a day of each other make pairs, and the ratio is the median
    of theirs, so that what changes from day to day cancels out. The interval comes from the
    sign test, which takes six pairs. A case that compares by itself has its ratio as a result: see
    `iobands status`.
    """
    if field not in COMPARABLE:
        raise failure(f"{field}: cannot be compared; one of {', '.join(COMPARABLE)} can")
    directory = perflogs or default_path(Path("perflogs"))
    histories = read_perflogs(directory, system).histories()
    found = compared(histories, field, against=against)
    lines = comparison_lines(list(found), field)
    if not lines:
        what = f"no two series differ in {field} alone"
        raise failure(f"{directory}: {what}" + (f" from {against}" if against else ""))
    typer.echo("\n".join(lines))
