"""The commands `iobands export` and `iobands import`: samples for, and results of, other tools."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import (
    PerflogsOption,
    StoredSiteOptions,
    default_path,
    failure,
    samples_from,
    site_of,
)
from iobands.model import naming, replace_file
from iobands.source.samples import samples_csv, samples_json, write_parquet
from iobands.views import plural
from iobands.views.openmetrics import history_metrics, state_metrics


class ExportFormat(str, Enum):
    """What `iobands export` writes."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    OPENMETRICS = "openmetrics"


def export(
    form: Annotated[ExportFormat, typer.Option("--format", help="Tables of samples, or metrics.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="PATH",
            help="File, replaced atomically; parquet: directory. [default: standard output]",
        ),
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="openmetrics: all values, with their times.")
    ] = False,
    *,
    options: StoredSiteOptions,
) -> None:
    """Export all samples (csv, json, parquet), or the state of the site now (openmetrics).

    Parquet has a file for each system and month. The metrics are for node_exporter's textfile
    collector; with --history, for `promtool tsdb create-blocks-from openmetrics`.
    """
    if history and form is not ExportFormat.OPENMETRICS:
        raise failure("--history needs --format openmetrics; tables always have all values")
    if form is ExportFormat.PARQUET:
        _parquet(output, options)
        return
    text = _text(form, history, options).encode("utf-8", "replace")
    try:
        if output is None:
            sys.stdout.buffer.write(text)
            sys.stdout.flush()
        elif output.exists() and not output.is_file():
            output.write_bytes(text)  # do not replace a device or a pipe
        else:
            replace_file(output, text)
    except OSError as error:
        raise failure(f"{output or 'standard output'}: {error.strerror or error}") from None


def _text(form: ExportFormat, history: bool, options: StoredSiteOptions) -> str:
    if form is ExportFormat.OPENMETRICS:
        site = site_of(options)
        return history_metrics(site) if history else state_metrics(site)
    samples = samples_from(options)
    return samples_csv(samples) if form is ExportFormat.CSV else samples_json(samples)


def _parquet(output: Path | None, options: StoredSiteOptions) -> None:
    if output is None:
        raise failure("--format parquet needs --output DIR")
    samples = samples_from(options)
    with naming(output):
        written = list(write_parquet(samples, output))
    typer.echo(f"{len(written)} files written below {output}; the others are unchanged")


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
