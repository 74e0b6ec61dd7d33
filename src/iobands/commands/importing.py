"""The command `iobands import`: results of other tools, converted into perflogs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import PerflogsOption, default_path, failure
from iobands.views.format import plural

_SHOWN = 10  # rejected lines


def import_(
    source: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where the results of the other tool are.")
    ],
    mapping: Annotated[
        Path | None,
        typer.Option("--mapping", metavar="FILE", help="What the results do not contain, in YAML."),
    ] = None,
    perflogs: PerflogsOption = None,
) -> None:
    """Convert results of other tools into perflogs: CSV tables, and perflogs of ReFrame or EPCC.

    They are added as `imported-NAME.log` beside the perflogs of measurements, which stay as they
    are. What was imported before is not added again. The exit status is 0, and 3 for an error.
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
        f"{target}, {found.known} there before, {found.passed_over} without a rate, "
        f"{plural(len(found.rejected), 'line')} rejected"
    )
    if any(not each.line for each in found.rejected):
        raise failure("not everything could be read: see above")
