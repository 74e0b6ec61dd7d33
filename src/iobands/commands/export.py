"""Samples to and from other places: export, import, and a store's push, pull and forget."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from enum import Enum
from pathlib import Path
from typing import Annotated, Final

import typer

from iobands.commands.judging import samples_from, site_of
from iobands.commands.options import (
    DryRunOption,
    PerflogsOption,
    RootOption,
    SiteOptions,
    StoredSiteOptions,
    SystemOption,
    default_path,
    failure,
    seconds_option,
)
from iobands.model import FileError, naming, replace_file
from iobands.source.push import (
    copy,
    located,
    open_store,
    push_new,
    read_pushed,
    store_of,
    write_pushed,
)
from iobands.source.samples import samples_csv, samples_json, write_parquet
from iobands.source.store import StoreError, without_password
from iobands.views import age_text, plural
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


_SETTINGS: Final = "store.yaml"

_StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help="The store. [default: url in config/store.yaml]"),
]


def _store_of(store: str | None, options: SiteOptions) -> str:
    """Return the URL of the store that is given, or of the site's; end if there is none."""
    if store:
        return located(store, Path())
    if url := store_of(options.config_of(_SETTINGS)):
        return url
    raise failure(f"{options.config_of(_SETTINGS)}: no such file; write `url: …`, or give --store")


def push(store: _StoreOption = None, *, options: SiteOptions) -> None:
    """Push samples, logs, bands and run reports to a store, as far as it does not have them.

    The store is a directory or a bucket (s3://BUCKET/PATH), where Parquet files are kept, or a
    PostgreSQL database (postgresql://HOST/DATABASE). `iobands run` pushes after each session where
    config/store.yaml names a store. What fails is pushed the next time.
    """
    try:
        typer.echo(_push_to(_store_of(store, options), options))
    except StoreError as error:
        raise failure(str(error)) from None


def pull(
    to: Annotated[str, typer.Argument(metavar="DIR", help="The directory, or another store.")],
    store: _StoreOption = None,
    system: SystemOption = None,
    site: RootOption = None,
) -> None:
    """Copy what a store has into a directory of Parquet files, or into another store."""
    try:
        url, lost = _store_of(store, SiteOptions(root=site)), []
        with open_store(url) as source, open_store(to, new=True) as target:
            there = source.systems()
            if system and system not in there:
                known = ", ".join(there)
                raise failure(
                    f"{without_password(url)}: no samples of {system}; systems there: {known}"
                )
            for name in [system] if system else there:
                try:
                    typer.echo(f"{name}: {plural(copy(source, target, name), 'sample')}")
                except StoreError as error:  # which keeps nobody else's back
                    lost.append(f"{name}: {error}")
    except StoreError as error:
        raise failure(str(error)) from None
    if lost:
        raise failure("; ".join(lost))


def forget(
    older: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="The age, such as 3650d.")
    ],
    store: _StoreOption = None,
    system: SystemOption = None,
    dry_run: DryRunOption = False,
    site: RootOption = None,
) -> None:
    """Delete months of samples and run reports that are older than an age from a store.

    The perflogs of the clusters stay, and so do logs, bands and rejected lines in the store.
    """
    age = timedelta(seconds=seconds_option(older, "--older-than"))
    try:
        month = (datetime.now(timezone.utc) - age).replace(day=1, hour=0, minute=0, second=0)
        month = month.replace(microsecond=0)
    except OverflowError:
        raise failure(f"--older-than {older}: nothing is that old") from None
    verb = "would be deleted" if dry_run else "deleted"
    try:
        with open_store(_store_of(store, SiteOptions(root=site))) as opened:
            names = [name for name in opened.systems() if system in {None, name}]
            for name in names:
                count = plural(opened.forget(name, month, dry_run=dry_run), "sample")
                typer.echo(f"{name}: {count} before {month:%Y-%m-%d} {verb}")
            if not names:
                typer.echo(f"The store has no samples{f' of {system}' if system else ''}")
    except StoreError as error:
        raise failure(str(error)) from None


def push_after(options: SiteOptions) -> None:
    """Push after a session, if the site has a store; a failure is said, and costs nothing else."""
    try:
        if url := store_of(options.config_of(_SETTINGS)):
            _push_to(url, options)
    except (StoreError, FileError, OSError) as error:
        typer.echo(f"iobands: not pushed: {error}", err=True)


def _push_to(url: str, options: SiteOptions) -> str:
    """Push what is new to the store at `url`, and return what was done.

    Raises:
        StoreError: the store did not take it; the message says since when it lacks what is new.
    """
    perflogs, now = options.perflogs_directory, datetime.now(timezone.utc).replace(microsecond=0)
    before = read_pushed(perflogs, url)
    try:
        with open_store(url, new=True) as store:
            config = options.config_of("bands").parent
            after, rows, documents = push_new(store, perflogs, config, before, now)
    except StoreError as error:
        since = (
            f"the last push was {age_text(now - before.when)}" if before.when else "never pushed"
        )
        write_pushed(perflogs, replace(before, failed=str(error)))
        raise StoreError(f"{error}; {since}, and the next one sends it all") from error
    write_pushed(perflogs, after)
    return f"Pushed {plural(rows, 'sample')} and {plural(documents, 'document')}"
