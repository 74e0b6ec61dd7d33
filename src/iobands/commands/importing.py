"""The command `iobands import`: results of other tools, converted into perflogs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import PerflogsOption, default_path, failure
from iobands.views.format import plural

_SHOWN = 10  # rejected lines


def import_(
    source: Annotated[Path, typer.Argument(metavar="DIR", help="The directory with the results.")],
    mapping: Annotated[
        Path | None,
        typer.Option("--mapping", metavar="FILE", help="YAML file with what the results lack."),
    ] = None,
    perflogs: PerflogsOption = None,
) -> None:
    """Convert results of other tools into perflogs: CSV tables, and perflogs of ReFrame or EPCC.

    The rows go to `imported-NAME.log` next to the measured perflogs, which stay unchanged. Rows
    that were imported before are not added again. The exit status is 0, or 3 after an error.
    """
    from iobands.source.convert import (  # noqa: PLC0415
        FieldMapping,
        convert,
        read_mapping,
    )

    target = perflogs or default_path(Path("perflogs"))
    found = convert(source, read_mapping(mapping) if mapping else FieldMapping(), target)
    for rejected in found.rejected[:_SHOWN]:
        typer.echo(str(rejected))
    if len(found.rejected) > _SHOWN:
        typer.echo(f"and {len(found.rejected) - _SHOWN} more")
    typer.echo(
        f"{plural(found.written, 'row')} written to {plural(len(found.perflogs), 'perflog')} in "
        f"{target}, {found.known} already there, {found.passed_over} without a rate, "
        f"{plural(len(found.rejected), 'line')} rejected"
    )
    if any(not each.line for each in found.rejected):
        raise failure("some results could not be read; see above")
