"""The command `iobands advise`: the best settings for each pattern, as far as runs support them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import PerflogsOption, SystemOption, default_path, failure
from iobands.judge.advise import advise as advise_on
from iobands.model import ACCEPTANCE
from iobands.source.perflog import read_perflogs
from iobands.views.advice import advice_lines, advice_section
from iobands.views.document import DocumentFormat, written
from iobands.views.layout import fitted


def advise(
    form: Annotated[
        DocumentFormat | None,
        typer.Option("--format", help="Print a section for a page. [default: plain text]"),
    ] = None,
    perflogs: PerflogsOption = None,
    system: SystemOption = None,
) -> None:
    """Recommend a file system, stripe count, transport and hints for each pattern.

    Runs of one day are compared in pairs; the printed ratio is the median over the pairs. If the
    newer half of the pairs no longer supports an advice, it is withdrawn. If the runs do not decide
    a setting, the output says so, and about how many more runs are needed.
    """
    directory = perflogs or default_path(Path("perflogs"))
    histories = read_perflogs(directory, system).without(ACCEPTANCE).histories()
    advised, cases = advise_on(histories)
    if not advised and not cases:
        raise failure(f"{directory}: no two series differ in only one setting")
    if form is None:
        typer.echo(fitted(advice_lines(advised, cases)), nl=False)
        return
    name = ", ".join(sorted({key.system for key in histories}))
    typer.echo(written(advice_section(name, advised, cases), form), nl=False)
