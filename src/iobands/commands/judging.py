"""The site that the options of a command name: what is known of it, and how it is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from iobands.commands.options import PastSiteOptions, SiteOptions, failure, time_of
from iobands.model import slug

if TYPE_CHECKING:
    from iobands.judge.memory import Remembered
    from iobands.judge.site import JudgedSite
    from iobands.model import SeriesKey
    from iobands.snapshot import Snapshot
    from iobands.source.known import Known
    from iobands.source.samples import Samples
    from iobands.source.store import Store

_WRONG: Final = "the judge's memory gave another result than all runs, which count now"


def site_of(options: SiteOptions, *, with_power: bool = False) -> Snapshot:
    """Return the snapshot of the site that the options name, as `judgement_of` does."""
    return judgement_of(options, with_power=with_power).snapshot


def judgement_of(
    options: SiteOptions,
    *,
    with_power: bool = False,
    memory: Mapping[SeriesKey, Remembered] | None = None,
    keeps: bool = False,
) -> JudgedSite:
    """Judge the site that the options name; end with a message if it is missing.

    It goes on from `memory`: what the judge remembered after the last session, unless given. Of a
    store it is what this reader judged last. With `keeps`, the lines of perflogs are kept for the
    next time.
    """
    from iobands.judge.memory import read_memory  # noqa: PLC0415 (slow to load)
    from iobands.judge.site import judge  # noqa: PLC0415

    if options.config and not options.config.is_dir():  # the default need not exist
        raise failure(
            f"{options.config}: no such directory; give the one with bands, alerts and systems"
        )
    if options.store:
        return _judged_of_store(known_of(options), options, with_power=with_power)
    perflogs = options.perflogs_directory
    if memory is None:
        memory = {} if options.as_of else read_memory(perflogs)
    found = judge(
        known_of(options, keeps=keeps),
        false_alarms=options.false_alarms,
        clock=None if options.as_of else _clock_problem(perflogs),
        with_power=with_power,
        memory=memory,
    )
    if not options.as_of:
        from iobands.source.push import late  # noqa: PLC0415 (slow to load)

        unpushed = late(perflogs, options.config_of("store.yaml"), found.snapshot.now)
        found = replace(found, snapshot=replace(found.snapshot, unpushed=unpushed))
    site = found.snapshot
    if options.system and not (site.series or site.alerts):
        known = ", ".join(sorted(p.name for p in perflogs.iterdir() if p.is_dir())) or "none"
        raise failure(f"{perflogs}: no perflogs of system {options.system}; systems there: {known}")
    return found


def checked(judged: JudgedSite, anew: Callable[[], JudgedSite]) -> JudgedSite:
    """Return a judgement, or what all runs give where the memory behind it gave something else."""
    if not (differing := judged.differing()):
        return judged
    typer.echo(f"iobands: {_WRONG}; please report this: {slug(differing[0])}", err=True)
    return anew()


def remember(options: SiteOptions, judged: JudgedSite) -> None:
    """Keep what the judge remembers beside the perflogs, or say that it is not kept."""
    from iobands.judge.memory import write_memory  # noqa: PLC0415 (slow to load)

    try:
        write_memory(options.perflogs_directory, judged.memory)
    except OSError as error:
        typer.echo(f"iobands: the judge's memory is not kept, which costs time: {error}", err=True)


def source_of(options: SiteOptions) -> str:
    """Return where the samples are."""
    from iobands.source.store import without_password  # noqa: PLC0415 (slow to load)

    return without_password(options.store) if options.store else str(options.perflogs_directory)


def _judged_of_store(known: Known, options: SiteOptions, *, with_power: bool) -> JudgedSite:
    """Judge what a store knows, and keep the judge's memory in the user's cache if possible."""
    from iobands.judge.memory import (  # noqa: PLC0415 (slow to load)
        memory_of_store,
        read_memory,
        write_memory,
    )
    from iobands.judge.site import judge  # noqa: PLC0415

    work = partial(judge, known, false_alarms=options.false_alarms, with_power=with_power)
    if options.as_of:
        return work()
    systems = sorted({key.system for key in known.histories})
    source = source_of(options)
    source = source if "://" in source else str(Path(source).resolve())
    place = memory_of_store(source, systems, options.false_alarms)
    found = checked(work(memory=read_memory(place)), work)
    with suppress(OSError):
        write_memory(place, found.memory)
    return found


def known_of(options: SiteOptions, *, keeps: bool = False) -> Known:
    """Return what is known of the site that the options name."""
    from iobands.source.known import read_known  # noqa: PLC0415 (slow to load)

    as_of = None if options.as_of is None else time_of(options.as_of, "--as-of")
    now = as_of or datetime.now(timezone.utc).replace(microsecond=0)
    if options.store:
        return _stored(options, now, as_of=as_of is not None)
    return read_known(
        options.perflogs_directory,
        options.config_of("bands"),
        options.config_of("alerts"),
        now=now,
        system=options.system,
        as_of=as_of is not None,
        keeps=keeps,
    )


def samples_from(options: SiteOptions) -> Samples:
    """Return the samples of all purposes in the perflogs or the store that the options name."""
    from iobands.source.perflog import read_perflogs  # noqa: PLC0415 (slow to load)

    if not options.store:
        return read_perflogs(options.perflogs_directory, options.system)
    from iobands.source.store import stored_samples  # noqa: PLC0415 (slow to load)

    with _open_store(options.store) as store:
        return stored_samples(store, [options.system] if options.system else store.systems())


def _stored(options: SiteOptions, now: datetime, *, as_of: bool) -> Known:
    from iobands.source.store import read_stored, sites_of  # noqa: PLC0415 (slow to load)

    with _open_store(options.store or "") as store:
        sites = sites_of(store)
        if options.system is None and len(sites) > 1:
            names = ", ".join(name for site in sites for name in site)
            raise failure(f"the store has {len(sites)} sites; choose with --system: {names}")
        systems = [name for site in sites for name in site]
        return read_stored(store, systems, now=now, system=options.system, as_of=as_of)


@contextmanager
def _open_store(url: str) -> Iterator[Store]:
    from iobands.source.push import open_store  # noqa: PLC0415 (slow to load)
    from iobands.source.store import StoreError, without_password  # noqa: PLC0415

    try:
        with open_store(url) as store:
            yield store
    except StoreError as error:
        raise failure(str(error)) from None
    except FileNotFoundError as error:
        raise failure(f"{without_password(url)}: {error}") from None


def sites_in_store(options: PastSiteOptions) -> Iterator[tuple[str, JudgedSite | str]]:
    """Judge the sites of a store one by one; yield each with its name, or why it cannot be read.

    Nothing if the options name a system, or the store has one site.
    """
    from iobands.source.store import StoreError, read_stored, sites_of  # noqa: PLC0415 (slow to load)

    if options.store is None or options.system is not None:
        return
    as_of = None if options.as_of is None else time_of(options.as_of, "--as-of")
    now = as_of or datetime.now(timezone.utc).replace(microsecond=0)
    with _open_store(options.store) as store:
        sites = sites_of(store)
        for systems in sites if len(sites) > 1 else ():
            judged: JudgedSite | str
            try:
                known = read_stored(store, systems, now=now, as_of=as_of is not None)
                judged = _judged_of_store(known, options, with_power=False)
            except (StoreError, FileNotFoundError) as error:
                judged = str(error)
            except Exception as error:  # which costs no other site its line
                judged = (
                    f"{type(error).__name__}: {error}; see iobands status --system {systems[0]}"
                )
            yield ", ".join(systems), judged


def _clock_problem(perflogs: Path) -> str | None:
    from iobands.measure import clock_problem  # noqa: PLC0415 (slow to load)

    with suppress(OSError):  # a reader without write permission cannot get the file system's time
        return clock_problem(perflogs)
    return None
