"""The commands `iobands push`, `pull` and `forget`: to a store, from it, and out of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Annotated, Final

import typer

from iobands.commands.options import (
    DryRunOption,
    SiteOptions,
    SystemOption,
    failure,
    seconds_option,
)
from iobands.model import FileError
from iobands.source.push import copy, open_store, push_new, read_pushed, store_of, write_pushed
from iobands.source.store import StoreError
from iobands.views import age_text, plural

_SETTINGS: Final = "store.yaml"


def push(
    store: Annotated[
        str | None,
        typer.Option(
            "--store", metavar="URL", help="The store. [default: url in config/store.yaml]"
        ),
    ] = None,
    *,
    options: SiteOptions,
) -> None:
    """Push samples, logs, bands and run reports to a store, as far as it does not have them.

    The store is a directory or a bucket (s3://BUCKET/PATH), where Parquet files are kept, or a
    PostgreSQL database (postgresql://HOST/DATABASE). `iobands run` pushes after each session where
    config/store.yaml names a store. What fails is pushed the next time.
    """
    url = store or store_of(options.config_of(_SETTINGS))
    if url is None:
        raise failure(
            f"{options.config_of(_SETTINGS)}: no such file; write `url: …`, or give --store"
        )
    try:
        typer.echo(_push_to(url, options))
    except StoreError as error:
        raise failure(str(error)) from None


def pull(
    url: Annotated[str, typer.Argument(metavar="URL", help="The store to copy from.")],
    to: Annotated[str, typer.Argument(metavar="DIR", help="The directory, or another store.")],
    system: SystemOption = None,
) -> None:
    """Copy what a store has into a directory of Parquet files, or into another store."""
    try:
        with open_store(url) as source, open_store(to) as target:
            for name in source.systems():
                if system in {None, name}:
                    typer.echo(f"{name}: {plural(copy(source, target, name), 'sample')}")
    except StoreError as error:
        raise failure(str(error)) from None


def forget(
    url: Annotated[str, typer.Argument(metavar="URL", help="The store.")],
    older: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="The age, such as 3650d.")
    ],
    system: SystemOption = None,
    dry_run: DryRunOption = False,
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
        with open_store(url) as store:
            for name in store.systems():
                if system in {None, name}:
                    count = plural(store.forget(name, month, dry_run=dry_run), "sample")
                    typer.echo(f"{name}: {count} before {month:%Y-%m-%d} {verb}")
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
        with open_store(url) as store:
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
