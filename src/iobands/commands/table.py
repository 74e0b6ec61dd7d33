"""The command `iobands table`: the rates that a site publishes, and where a page drifted."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import SiteOptions, failure, site_of
from iobands.judge.advise import advise
from iobands.judge.published import published
from iobands.model import OK, WARNING
from iobands.snapshot import HOLDS, Recommended, Snapshot
from iobands.source.site_file import read_site_file
from iobands.views.document import Block, DocumentFormat, written
from iobands.views.published import comment, drift, section


def table(
    form: Annotated[
        DocumentFormat, typer.Option("--format", help="Of the section; csv is the tables alone.")
    ] = DocumentFormat.MARKDOWN,
    check: Annotated[
        Path | None,
        typer.Option("--check", metavar="FILE", help="Say where a published page has drifted."),
    ] = None,
    holds: Annotated[
        float,
        typer.Option(
            "--holds", metavar="DAYS", min=1, help="How long rates hold after their newest run."
        ),
    ] = HOLDS / timedelta(days=1),
    *,
    options: SiteOptions,
) -> None:
    """Print the section of a documentation page: settings, their commands, and rates to expect.

    Settings are those that the site file recommends, else the best measured. With --check the exit
    status is 0 if FILE agrees, 1 if it has drifted, and 3 for an error.
    """
    site = site_of(options)
    by_system = _published(site, options.config_of("systems"), timedelta(days=holds))
    if check is None:
        blocks: list[Block] = []
        for name, found in by_system.items():
            blocks += [*section(name, found, site.now), comment(found)]
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


def _published(site: Snapshot, systems: Path, holds: timedelta) -> dict[str, list[Recommended]]:
    """Return what to publish of each system, or end with a message."""
    advised, _ = advise({each.key: each.history for each in site.series})
    found = {}
    for name in sorted({each.key.system for each in site.series}):
        site_file = read_site_file(systems, name)
        part = [each for each in site.series if each.key.system == name]
        found[name] = published(part, site_file, advised, holds)
    if not found:
        raise failure("there is no run to publish a rate of")
    return found
