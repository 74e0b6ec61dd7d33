"""The commands `iobands advise`, `compare` and `table`: settings and rates, by the runs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import (
    SampleOptions,
    StoredSiteOptions,
    failure,
    samples_from,
    site_of,
)
from iobands.judge.advise import advise as advise_on
from iobands.judge.advise import compare as compared
from iobands.judge.published import published_of
from iobands.model import ACCEPTANCE, OK, WARNING
from iobands.snapshot import COMPARABLE, HOLDS
from iobands.views import Block, DocumentFormat, fitted, written
from iobands.views.advice import advice_lines, advice_section, comparison_lines
from iobands.views.published import comment, drift, rates_section


def advise(
    form: Annotated[
        DocumentFormat | None,
        typer.Option("--format", help="Print a section for a page. [default: plain text]"),
    ] = None,
    *,
    options: SampleOptions,
) -> None:
    """Recommend a file system, stripe count, transport and hints for each pattern.

    Runs of one day are compared in pairs; the printed ratio is the median over the pairs. If the
    newer half of the pairs no longer supports an advice, it is withdrawn. If the runs do not decide
    a setting, the output says so, and about how many more runs are needed.
    """
    histories = samples_from(options).without(ACCEPTANCE).histories()
    advised, cases = advise_on(histories)
    if not advised and not cases:
        raise failure(f"{options.source}: no two series differ in only one setting")
    if form is None:
        typer.echo(fitted(advice_lines(advised, cases)), nl=False)
        return
    name = ", ".join(sorted({key.system for key in histories}))
    typer.echo(written(advice_section(name, advised, cases), form), nl=False)


def compare(
    field: Annotated[
        str,
        typer.Argument(metavar="FIELD", help="A series field: transport, file_system, tasks, ..."),
    ],
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="VALUE", help="The divisor. [default: the first value]"),
    ] = None,
    *,
    options: SampleOptions,
) -> None:
    """Compare series that differ in one field: print their ratio and its 95 % interval.

    Samples measured within a day of each other form pairs. The ratio is the median over the pairs,
    so changes from day to day cancel out. The interval comes from the sign test and needs six
    pairs. Some cases (measurements taken from a published text) compare two settings in one run;
    their ratio is in `iobands status`.
    """
    if field not in COMPARABLE:
        raise failure(f"{field}: cannot be compared; give one of {', '.join(COMPARABLE)}")
    every = samples_from(options).without(ACCEPTANCE).histories()
    histories = {key: each.routine for key, each in every.items()}
    found = compared(histories, field, against=against)
    lines = comparison_lines(list(found), field)
    if not lines:
        what = f"no two series differ in only {field}"
        raise failure(f"{options.source}: {what}" + (f" from {against}" if against else ""))
    typer.echo(fitted(lines), nl=False)


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
    options: StoredSiteOptions,
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
