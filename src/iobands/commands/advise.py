"""The command `iobands advise`: the best settings of each pattern, as far as runs support them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import PerflogsOption, SystemOption, default_path, failure
from iobands.judge.advise import advise as advise_on
from iobands.source.perflog import read_perflogs
from iobands.views.advice import advice_lines, advice_section
from iobands.views.document import DocumentFormat, written


def advise(
    form: Annotated[
        DocumentFormat | None,
        typer.Option("--format", help="A section for a page. [default: lines for a terminal]"),
    ] = None,
    perflogs: PerflogsOption = None,
    system: SystemOption = None,
) -> None:
    """Say which file system, stripe count, transport and hints are best for each pattern.

    Runs of one day make pairs, and the ratio is the median of theirs. Advice that the newer half
    of the pairs no longer supports is withdrawn. Where the runs show nothing it says so, and about
    how many more are needed.
    """
    directory = perflogs or default_path(Path("perflogs"))
    histories = read_perflogs(directory, system).histories()
    advised, cases = advise_on(histories)
    if not advised and not cases:
        raise failure(f"{directory}: no two series differ in one setting alone")
    if form is None:
        typer.echo("\n".join(advice_lines(advised, cases)))
        return
    name = ", ".join(sorted({key.system for key in histories}))
    typer.echo(written(advice_section(name, advised, cases), form), nl=False)
