"""The command `iobands demo`: a made-up site and its dashboard, for a first look."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import SiteOptions, failure, judgement_of
from iobands.commands.report import report_to
from iobands.model import MADE_UP, naming


def demo(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A directory that is new or empty.")
    ] = Path("demo"),
) -> None:
    """Write a made-up site and its dashboard to DIR. Nothing in it was measured.

    The site has two file systems and a year of runs up to today: an upgrade, an incident,
    maintenance, gaps, a drop that was repaired, one that lasts, a full storage target and new empty
    ones.
    """
    from iobands.source.demo import write_demo  # noqa: PLC0415

    mine = directory / "perflogs" / MADE_UP
    if directory.is_dir() and any(directory.iterdir()) and not mine.is_dir():
        raise failure(f"{directory}: is not empty; name a new directory")
    with naming(directory):
        write_demo(directory, datetime.now(timezone.utc))
    options = SiteOptions(root=directory)
    judged = judgement_of(options)
    typer.echo(f"A made-up site of {len(judged.snapshot.series)} series is in {directory}.")
    report_to(directory / "dashboard", judged, options.config_of("systems"))
    typer.echo(f"Try other commands in {directory}, such as `iobands status`.")
