"""The command `iobands table`: the rates that a site publishes, and where a page differs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import SiteOptions, failure, site_of
from iobands.judge.published import published_of
from iobands.model import OK, WARNING
from iobands.snapshot import HOLDS
from iobands.views.document import Block, DocumentFormat, written
from iobands.views.published import comment, drift, rates_section


def table(
    form: Annotated[
        DocumentFormat, typer.Option("--format", help="The format; csv has only the tables.")
    ] = DocumentFormat.MARKDOWN,
    check: Annotated[
        Path | None,
        typer.Option("--check", metavar="FILE", help="Report where a published page differs."),
    ] = None,
    holds: Annotated[
        float,
        typer.Option(
            "--holds", metavar="DAYS", min=1, help="Days that a rate holds after its newest run."
        ),
    ] = HOLDS / timedelta(days=1),
    *,
    options: SiteOptions,
) -> None:
    """Print a section for a documentation page: settings, their commands, and expected rates.

    The settings are the ones that the site file recommends, else the best measured. With --check
    the exit status is 0 if FILE agrees with the runs, 1 if it differs, and 3 after an error.
    """
    site = site_of(options)
    by_system, _ = published_of(site, options.config_of("systems"), timedelta(days=holds))
    if not by_system:
        raise failure("no run has a rate to publish")
    if check is None:
        blocks: list[Block] = []
        for name, found in by_system.items():
            blocks += [*rates_section(name, found, site.now), comment(found)]
        typer.echo(written(blocks, form), nl=False)
        return
    try:
        text = check.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise failure(f"{check}: {getattr(error, 'strerror', None) or error}") from None
    problems = drift(text, [each for found in by_system.values() for each in found], site.now)
    for problem in problems:
        typer.echo(f"{check}: {problem}")
    if not problems:
        typer.echo(f"{check}: agrees with the runs up to {site.now:%Y-%m-%d}")
    raise typer.Exit(WARNING if problems else OK)
