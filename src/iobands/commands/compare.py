"""The command `iobands compare`: series that differ in one field, by their histories.

May know comparing and the readers; no analysis here.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import PerflogsOption, SystemOption, default_path, failure


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(compare)


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
    from iobands.readers.perflog import read_perflogs  # noqa: PLC0415
    from iobands.reporting.comparing import FIELDS, told  # noqa: PLC0415 (slow to load)
    from iobands.reporting.comparing import compare as compared  # noqa: PLC0415

    if field not in FIELDS:
        raise failure(f"{field}: cannot be compared; one of {', '.join(FIELDS)} can")
    logs = perflogs or default_path(Path("perflogs"))
    try:
        samples = read_perflogs(logs, system).samples
    except FileNotFoundError:
        raise failure(f"{logs}: no perflogs there; measure first with `iobands run`") from None
    if case:
        samples = samples[
            samples["case"].astype("string").str.contains(case, regex=False).fillna(False)
        ]
    lines = told(
        list(compared(samples, field, against=against, within=timedelta(days=days))), field
    )
    if not lines:
        what = f"no two series differ in {field} alone"
        raise failure(f"{logs}: {what}" + (f" from {against}" if against else ""))
    typer.echo("\n".join(lines))
