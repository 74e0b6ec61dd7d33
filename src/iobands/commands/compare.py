"""The command `iobands compare`: the histories of series that differ in one field."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import PerflogsOption, SystemOption, default_path, failure
from iobands.judge.advise import compare as compared
from iobands.model import ACCEPTANCE
from iobands.snapshot import COMPARABLE
from iobands.source.perflog import read_perflogs
from iobands.views.advice import comparison_lines
from iobands.views.layout import fitted


def compare(
    field: Annotated[
        str,
        typer.Argument(metavar="FIELD", help="A series field: transport, file_system, tasks, ..."),
    ],
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="VALUE", help="The divisor. [default: the first value]"),
    ] = None,
    perflogs: PerflogsOption = None,
    system: SystemOption = None,
) -> None:
    """Compare series that differ in one field: print their ratio and its 95 % interval.

    Samples measured within a day of each other form pairs. The ratio is the median over the pairs,
    so changes from day to day cancel out. The interval comes from the sign test and needs six
    pairs. Some cases (measurements taken from a published text) compare two settings in one run;
    their ratio is in `iobands status`.
    """
    if field not in COMPARABLE:
        raise failure(f"{field}: cannot be compared; give one of {', '.join(COMPARABLE)}")
    directory = perflogs or default_path(Path("perflogs"))
    every = read_perflogs(directory, system).without(ACCEPTANCE).histories()
    histories = {key: each.routine for key, each in every.items()}
    found = compared(histories, field, against=against)
    lines = comparison_lines(list(found), field)
    if not lines:
        what = f"no two series differ in only {field}"
        raise failure(f"{directory}: {what}" + (f" from {against}" if against else ""))
    typer.echo(fitted(lines), nl=False)
