"""The commands that move samples: export, import, and push, pull and forget of a store."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

from iobands.commands import cli
from iobands.commands.judging import opened_store, samples_from, site_of
from iobands.model import in_time, naming
from iobands.source import push as pushing
from iobands.source import store as stores
from iobands.source.samples import samples_csv, samples_json, write_parquet
from iobands.views.openmetrics import history_metrics, state_metrics
from iobands.views.writing import age_text, plural

_OUTPUT: Final = "The file, or for parquet the directory. [default: standard output]"


def export(
    options: cli.StoredSiteOptions,
    format_: Annotated[
        Literal["csv", "json", "parquet", "openmetrics"], "A table of samples, or metrics."
    ],
    output: Annotated[Path | None, "PATH", _OUTPUT] = None,
    history: Annotated[bool, "With openmetrics: all values, with their times."] = False,
) -> None:
    """Export all samples (csv, json, parquet), or the state of the site now (openmetrics).

    Parquet has a file for each system and month. The metrics are for node_exporter's textfile
    collector; with --history, for `promtool tsdb create-blocks-from openmetrics`.
    """
    if format_ != "openmetrics":
        if history:
            raise cli.failure("--history needs --format openmetrics; tables always have all values")
        cli.refuse(f"with --format {format_}", "config", "false_alarms")
    if format_ == "parquet":
        if output is None:
            raise cli.failure("--format parquet needs --output DIR")
        samples = samples_from(options)
        with naming(output):
            written = list(write_parquet(samples, output))
        files = plural(len(written), "file")
        cli.say(f"{output}: {files} new or changed")
        return
    if format_ == "openmetrics":
        text = (history_metrics if history else state_metrics)(site_of(options))
    else:
        text = (samples_csv if format_ == "csv" else samples_json)(samples_from(options))
    content = text.encode("utf-8", "replace")
    if output is None:
        sys.stdout.buffer.write(content)
    else:
        # node_exporter reads the metrics as another user, whatever the umask
        is_collected = format_ == "openmetrics" and not history
        cli.write_file(output, content, 0o644 if is_collected else None)


_SHOWN = 10  # the most rejected lines that are printed


def import_(
    source: Annotated[Path, cli.argument("DIR", "The directory with the results.")],
    mapping: Annotated[Path | None, "FILE", "YAML file with what the results lack."] = None,
    perflogs: cli.PerflogsOption = None,
    root: cli.RootOption = None,
) -> None:
    """Convert results of other tools into perflogs: CSV tables, and perflogs of ReFrame or EPCC.

    The rows go to `imported-NAME.log` next to the measured perflogs, which stay unchanged. Rows
    that were imported before are not added again. The exit status is 0, or 3 after an error.
    """
    from iobands.source.convert import FieldMapping, convert, read_mapping  # noqa: PLC0415

    target = cli.SiteOptions(perflogs, root=root).perflogs_directory
    if cli.is_site(source) or source.resolve().is_relative_to(target.resolve()):
        raise cli.failure(f"{source}: has perflogs of iobands; name the results of another tool")
    found = convert(source, read_mapping(mapping) if mapping else FieldMapping(), target)
    for rejected in found.rejected[:_SHOWN]:
        cli.say(str(rejected))
    if len(found.rejected) > _SHOWN:
        cli.say(f"and {len(found.rejected) - _SHOWN} more")
    cli.say(
        f"{plural(found.written, 'row')} written to {plural(len(found.perflogs), 'perflog')} in "
        f"{target}, {found.known} already there, {found.passed_over} without a rate, "
        f"{plural(len(found.rejected), 'line')} rejected"
    )
    if any(not each.line for each in found.rejected):
        raise cli.failure("some results could not be read; see above")
    if found.rejected and not (found.written or found.known):
        raise cli.failure("no row could be used; see above")


#: The limit of a push in seconds; ten years of a site take some minutes.
_LONGEST_PUSH: Final = 3600.0
_SETTINGS: Final = "store.yaml"

_StoreOption = Annotated[str | None, "URL", "The store. [default: url in config/store.yaml]"]


def _store_of(store: str | None, options: cli.SiteOptions) -> str:
    """Return the URL of the given store, or of the site's; exit without one."""
    if store:
        return stores.located(store, Path())
    settings = options.config_of(_SETTINGS)
    if url := stores.store_of(settings):
        return url
    raise cli.failure(f"{settings}: no such file; write `url: …`, or give --store or --site")


@dataclass(frozen=True)
class PushOptions(cli.UnjudgedOptions):
    """The options of a push, which takes all systems of a site."""

    system: str | None = None


def push(options: PushOptions, store: _StoreOption = None) -> None:
    """Push new samples, logs, bands and run reports to a store.

    The store is a directory or a bucket (s3://BUCKET/PATH) of Parquet files, or a PostgreSQL
    database (postgresql://HOST/DATABASE). If config/store.yaml names a store, `iobands run` pushes
    after each session. After a failed push, the next one sends what is missing.
    """
    cli.say(_push_to(_store_of(store, options), options))


def _refuse_site(url: str, *own: Path) -> None:
    """Raise StoreError if a store at `url` would be among the files of a site, or in `own`."""
    if "://" not in url and cli.is_within_site(Path(url), *own):
        raise stores.StoreError(f"{url}: has files of a site; name another directory for the store")


def _store_or_of(store: str | None, site: Path | None) -> str:
    if store:
        cli.refuse("with --store", "site")
    return _store_of(store, cli.SiteOptions(root=site))


def _systems_in(opened: stores.Store, url: str, system: str | None) -> list[str]:
    """Return the systems of a store, or only `system`; fail if the store has others alone."""
    there = opened.systems()
    names = [name for name in there if system in {None, name}]
    if there and not names:
        lacks = f"no samples of {system}; systems there: {', '.join(there)}"
        raise cli.failure(f"{stores.without_password(url)}: {lacks}")
    return names


def pull(
    to: Annotated[str, cli.argument("DIR", "The directory, or another store.")],
    store: _StoreOption = None,
    system: cli.SystemOption = None,
    site: cli.RootOption = None,
) -> None:
    """Copy a store into a directory of Parquet files, or into another store."""
    url = _store_or_of(store, site)
    if stores.located(to, Path()) == url:
        raise cli.failure(f"{stores.without_password(url)}: a store cannot be copied into itself")
    _refuse_site(stores.located(to, Path()))
    with opened_store(url) as source:
        names = _systems_in(source, url, system)
        if not names:
            problem = "the store has no samples yet; measure and push"
            raise cli.failure(f"{stores.without_password(url)}: {problem}")
        with opened_store(to, new=True) as target:
            copied = partial(pushing.copy, source, target)
            _of_each(names, lambda name: plural(copied(name), "sample"), "copied")


def forget(
    older_than: Annotated[str, "AGE", "Delete what is older, such as 3650d."],
    store: _StoreOption = None,
    system: cli.SystemOption = None,
    dry_run: cli.DryRunOption = False,
    site: cli.RootOption = None,
) -> None:
    """Delete old samples and run reports from a store, by whole months.

    The perflogs of the clusters stay, and so do logs, bands and rejected lines in the store.
    """
    age = timedelta(seconds=cli.seconds_option(older_than, "--older-than"))
    day = (datetime.now(timezone.utc) - age).date().replace(day=1)
    month = datetime.combine(day, datetime.min.time(), timezone.utc)
    verb = "would be deleted" if dry_run else "deleted"
    url = _store_or_of(store, site)
    with opened_store(url) as opened:
        names = _systems_in(opened, url, system)

        def delete(name: str) -> str:
            count = opened.forget(name, month, dry_run=dry_run)
            is_logged = stores.document_of(opened, name, f"perflogs/{name}/alerts.jsonl").content
            news = "; alerts may get other numbers, as the store has no log of them"
            news = "" if is_logged or not count else news
            return f"{plural(count, 'sample')} before {month:%Y-%m-%d} {verb}{news}"

        _of_each(names, delete, "deleted")
        if not names:
            cli.say("The store has no samples")


def _of_each(systems: Sequence[str], act: Callable[[str], str], done: str) -> None:
    """Print what `act` did for each system; if the store refuses some, fail after the others."""
    refused = []
    for name in systems:
        try:
            cli.say(f"{name}: {act(name)}")
        except stores.StoreError as error:
            refused.append(f"{name}: {error}")
    if refused:
        raise cli.failure("\n  ".join([f"not everything was {done}:", *refused]))


def push_after(options: cli.SiteOptions) -> None:
    """Push after a session if the site has a store; print a failure, but raise nothing."""
    try:
        if url := stores.store_of(options.config_of(_SETTINGS)):
            _push_to(url, options)
    except Exception as error:
        cli.note(f"not pushed: {cli.reason_of(error, '; see iobands push')}")


def _push_to(url: str, options: cli.SiteOptions) -> str:
    """Push what is new to the store at `url`, and return a message with the counts.

    Raises StoreError, which says when the last push succeeded, if this one failed or its record
    beside the perflogs cannot be written.
    """
    perflogs, now = options.perflogs_directory, datetime.now(timezone.utc).replace(microsecond=0)
    _refuse_site(url, perflogs)
    before, config = pushing.read_pushed(perflogs, url), options.config_of("bands").parent

    def work() -> tuple[pushing.Pushed, int, int]:
        with stores.open_store(url, new=True) as store:
            return pushing.push_new(store, perflogs, config, before, now)

    # without a limit, an engine that never answers would block a session forever
    late = stores.StoreError(f"the store has not taken a push within {_LONGEST_PUSH:g} s")
    try:
        after, rows, documents = in_time(_LONGEST_PUSH, work, late)
        if after.failed:
            before = replace(after, when=before.when)
            raise stores.StoreError(after.failed)
        pushing.write_pushed(perflogs, url, after)
    except (stores.StoreError, OSError) as error:
        if isinstance(error, OSError) and error.strerror is None:  # there are no perflogs
            raise
        kept = "; nothing is lost" if isinstance(error, OSError) else ""
        said = f"{cli.reason_of(error)}{kept}"
        with suppress(OSError):  # the disk may be full
            pushing.write_pushed(perflogs, url, replace(before, failed=said))
        if before.when is None:  # perhaps the URL is wrong, and no later push succeeds either
            raise stores.StoreError(f"{said}; no push there has finished yet") from error
        age = age_text(now - before.when)
        last = f"the last push was {age}; a later push sends what is missing"
        raise stores.StoreError(f"{said}; {last}") from error
    return f"Pushed {plural(rows, 'sample')} and {plural(documents, 'document')}"
