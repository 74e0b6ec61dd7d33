"""Read and judge the site, or the sites of a store, that the options of a command name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from iobands.commands import cli
from iobands.judge.memory import Remembered, read_memory, write_memory
from iobands.judge.site import JudgedSite, judge
from iobands.measure import clock_problem
from iobands.model import SeriesKey, entries, slug
from iobands.snapshot import Snapshot
from iobands.source import store as stores
from iobands.source.kept import user_cache
from iobands.source.known import Known, read_known
from iobands.source.perflog import read_perflogs
from iobands.source.push import late
from iobands.source.samples import Samples


def site_of(options: cli.SiteOptions, *, with_power: bool = False) -> Snapshot:
    """Return the snapshot of `judgement_of`."""
    return judgement_of(options, with_power=with_power).snapshot


def judgement_of(
    options: cli.SiteOptions,
    *,
    with_power: bool = False,
    memory: Mapping[SeriesKey, Remembered] | None = None,
    keeps: bool = False,
) -> JudgedSite:
    """Judge the site that the options name; exit with a message if it is missing.

    The judge goes on from `memory`, by default from what the last session wrote, or for a store
    from what this reader cached. `keeps`: cache parsed lines of perflogs for the next call.
    """
    if options.config and not options.config.is_dir():  # the default need not exist
        raise cli.failure(
            f"{options.config}: no such directory; give the one with bands and systems"
        )
    found = _judged(known_of(options, keeps=keeps), options, with_power, memory)
    if not (found.snapshot.series or options.store):
        _require_system(options)
    return found


def _judged(
    known: Known,
    options: cli.SiteOptions,
    with_power: bool,
    memory: Mapping[SeriesKey, Remembered] | None = None,
) -> JudgedSite:
    """Judge what is known; for a store, the judge's memory is in the user's cache.

    Raises FileNotFoundError if `options.as_of` is before the first sample.
    """
    work = partial(judge, known, false_alarms=options.false_alarms, with_power=with_power)
    if options.as_of:
        found = work()
        if not (found.snapshot.series or found.snapshot.alerts):
            raise FileNotFoundError(f"no samples before {known.now:%Y-%m-%d %H:%M} UTC")
        return found
    if options.store:
        systems = sorted({key.system for key in known.histories})
        place = user_cache(source_of(options), systems, options.false_alarms)
        kept = read_memory(place)
        found = checked(work(memory=kept), work)
        before, now = ({k: e.identity for k, e in of.items()} for of in (kept, found.memory))
        if before != now:
            with suppress(OSError):
                write_memory(place, found.memory)
        return found
    perflogs, clock = options.perflogs_directory, None
    with suppress(OSError):  # a reader who may not write cannot get the file system's time
        clock = clock_problem(perflogs)
    found = work(memory=read_memory(perflogs) if memory is None else memory, clock=clock)
    unpushed = late(perflogs, options.config_of("store.yaml"), found.snapshot.now)
    return replace(found, snapshot=replace(found.snapshot, unpushed=unpushed))


def _require_system(options: cli.SiteOptions) -> None:
    """Exit with a message if the system that the options name has no perflogs."""
    perflogs = options.perflogs_directory
    names = [each.name for each in entries(perflogs, []) if each.is_dir()]
    if options.system and options.system not in names:
        there = ", ".join(sorted(names)) or "none"
        problem = f"no perflogs of system {options.system}; systems there: {there}"
        raise cli.failure(f"{perflogs}: {problem}")


def checked(judged: JudgedSite, anew: Callable[[], JudgedSite]) -> JudgedSite:
    """Return `judged`, or the judgement `anew` if spot checks show that a memory was wrong."""
    if not (differing := judged.differing()):
        return judged
    wrong = "the judge's memory and all runs gave different results; all runs count"
    cli.note(f"{wrong}; please report this: {slug(differing[0])}")
    return anew()


def source_of(options: cli.SiteOptions) -> str:
    """Return the directory or URL of the samples, for messages."""
    if not options.store:
        return str(options.perflogs_directory)
    return stores.without_password(stores.located(options.store, Path()))


def _moment(options: cli.SiteOptions) -> tuple[datetime, bool]:
    """Return the time as of which the site is shown, and whether --as-of gave it."""
    if options.as_of is not None:
        return cli.past_time(options.as_of), True
    return datetime.now(timezone.utc).replace(microsecond=0), False


def _perflogs_of(options: cli.SiteOptions) -> Path:
    """Return the directory of the perflogs; exit with a message outside of any site."""
    found, is_given = options.perflogs_directory, options.perflogs or options.root
    if not (is_given or found.is_dir() or cli.find_root(Path.cwd())):
        here = "not in the directory of a site"
        raise cli.failure(f"{here}: cd into it, or give --site DIR or --store URL")
    return found


def known_of(options: cli.SiteOptions, *, keeps: bool = False) -> Known:
    """Return the data of the site that the options name."""
    now, is_past = _moment(options)
    if not options.store:
        bands, alerts = options.config_of("bands"), options.config_of("alerts")
        where, only = _perflogs_of(options), options.system
        return read_known(where, bands, alerts, now=now, system=only, as_of=is_past, keeps=keeps)
    with opened_store(options.store) as store:
        sites = stores.sites_of(store)
        systems = [name for site in sites for name in site]
        if options.system is None and len(sites) > 1:
            names = ", ".join(systems)
            problem = f"the store has {len(sites)} sites; choose with --system: {names}"
            raise cli.failure(f"{source_of(options)}: {problem}")
        known = stores.read_stored(store, systems, now=now, system=options.system, as_of=is_past)
    # in a site of one system, naming the system leaves nothing out
    has_others = any(options.system in each for each in sites if len(each) > 1)
    return known if has_others else replace(known, system=None)


def samples_from(options: cli.SiteOptions) -> Samples:
    """Return all samples, whatever their purpose, of the perflogs or store in the options."""
    if not options.store:
        place = _perflogs_of(options)
        found = read_perflogs(place, options.system)
        if not len(found.values):
            _require_system(options)
        for each in found.rejected:
            if not each.line:  # the whole file is unreadable
                cli.note(str(each))
        return found
    with opened_store(options.store) as store:
        return stores.stored_samples(store, [options.system] if options.system else store.systems())


@contextmanager
def opened_store(url: str, *, new: bool = False) -> Iterator[stores.Store]:
    """Open the store at `url`, with `new` make it if needed; exit with a message if missing."""
    url = stores.located(url, Path())
    try:
        with stores.open_store(url, new=new) as store:
            yield store
    except FileNotFoundError as error:
        raise cli.failure(f"{stores.without_password(url)}: {error}") from None


def sites_in_store(
    options: cli.PastSiteOptions, *, with_power: bool = False
) -> Iterator[tuple[str, JudgedSite | str]]:
    """Yield the name of each site of a store, and its judgement or why it cannot be read.

    Yields nothing if the options name a system, or the store has only one site.
    """
    if options.store is None or options.system is not None:
        return
    now, is_past = _moment(options)
    with opened_store(options.store) as store:
        sites = stores.sites_of(store)
        for systems in sites if len(sites) > 1 else ():
            found: JudgedSite | str
            try:
                found = _judged(
                    stores.read_stored(store, systems, now=now, as_of=is_past), options, with_power
                )
            except Exception as error:  # go on with the other sites
                found = cli.reason_of(error, f"; see iobands status --system {systems[0]}")
            yield ", ".join(systems), found
            del found  # free its memory before the next site is read
