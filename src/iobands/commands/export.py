"""The command `iobands export`: the samples, or the state of the site, for other programs."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import SiteOptions, failure, site_of
from iobands.model import naming, replace_file
from iobands.source.perflog import read_perflogs
from iobands.source.samples import samples_csv, samples_json, write_parquet
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
    options: SiteOptions,
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


def _text(form: ExportFormat, history: bool, options: SiteOptions) -> str:
    if form is ExportFormat.OPENMETRICS:
        site = site_of(options)
        return history_metrics(site) if history else state_metrics(site)
    samples = read_perflogs(options.perflogs_directory, options.system)
    return samples_csv(samples) if form is ExportFormat.CSV else samples_json(samples)


def _parquet(output: Path | None, options: SiteOptions) -> None:
    if output is None:
        raise failure("--format parquet needs --output DIR")
    samples = read_perflogs(options.perflogs_directory, options.system)
    with naming(output):
        written = list(write_parquet(samples, output))
    typer.echo(f"{len(written)} files written below {output}; the others are unchanged")
