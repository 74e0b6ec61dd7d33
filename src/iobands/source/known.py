"""Reads everything about a site, before it is judged.

The packages above this one read no files of a site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import polars as pl

from iobands.bands import Bands, Span, Spans, Window, load_bands
from iobands.measure import read_last_session, read_leftovers, read_plan, read_run_reports
from iobands.model import (
    ACCEPTANCE,
    TIME,
    Ask,
    FileError,
    LastSession,
    Leftover,
    Rejected,
    RunReports,
    SeriesKey,
)
from iobands.snapshot import AlertEvent, History, begun
from iobands.source.action_log import Log, alert_log, log_path, read_alert_log, read_log
from iobands.source.missing_runs import OVERDUE, overdue_after
from iobands.source.perflog import read_perflogs
from iobands.source.samples import KEY, Samples

#: How far the clock that dated a sample may be ahead of ours.
AHEAD: Final = timedelta(days=1)
#: Returns the maintenances of a file system of one system.
Maintenance = Callable[[object], Spans]

_P = ParamSpec("_P")
_T = TypeVar("_T")
_U = TypeVar("_U")


@dataclass
class Attempts:
    """Runs steps one by one: a step that fails becomes a problem, and the next one runs.

    `problems` lists the subject and the reason of each failure.
    """

    problems: list[tuple[str, str]] = field(default_factory=list)

    def of(
        self, subject: object, otherwise: _U, work: Callable[_P, _T], *of: _P.args, **by: _P.kwargs
    ) -> _T | _U:
        """Return what `work` returns or, if it fails, `otherwise`, and record the problem."""
        try:
            return work(*of, **by)
        except Exception as error:
            self.problems.append((str(subject), problem_of(error)))
            return otherwise


def problem_of(error: Exception) -> str:
    """Return the reason to show for the error of a step."""
    if isinstance(error, FileError):
        return str(error)
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    return f"cannot be judged: {type(error).__name__}: {error}; please report this"


@dataclass(frozen=True)
class Known:
    """Everything that was read about a site, or about one of its systems, as of `now`.

    `samples` reach to `now` and, as clocks differ, a day more. `future` lists series and time of
    later ones. `histories` are the series of `samples`. `bands`, `maintenance`, `logs` (what people
    did) and `alert_log` (what happened to alerts, None if unknown) are by system. With `as_of`,
    `now` is in the past, and nothing later counts. `system` is the only one that was read, None if
    all were. `problems` lists what could not be read, and why. `incomplete` says, by system, which
    perflogs, bands or logs could not be read, so that its alerts may be wrong.
    """

    now: datetime
    as_of: bool
    system: str | None
    samples: Samples
    future: tuple[tuple[SeriesKey, datetime], ...]
    histories: Mapping[SeriesKey, History]
    reports: RunReports
    bands: Mapping[str, Bands]
    maintenance: Mapping[str, Maintenance]
    logs: Mapping[str, Log]
    alert_log: Mapping[str, tuple[AlertEvent, ...] | None]
    last_session: LastSession | None
    planned: tuple[Ask, ...]
    leftovers: tuple[Leftover, ...]
    rejected: tuple[Rejected, ...]
    problems: tuple[tuple[str, str], ...]
    incomplete: Mapping[str, str]

    @property
    def unlogged(self) -> dict[str, str]:
        """Why the log of alerts of a system cannot be read, so that they have no numbers."""
        return {
            name: self.incomplete[name] for name, events in self.alert_log.items() if events is None
        }


def read_known(
    perflogs: Path,
    bands: Path,
    alerts: Path,
    *,
    now: datetime,
    system: str | None = None,
    as_of: bool = False,
    samples: Samples | None = None,
    keeps: bool = False,
) -> Known:
    """Read everything about a site; `perflogs`, `bands` and `alerts` are directories.

    `samples` from a store replace those of the perflogs. What cannot be read becomes a problem and
    affects nothing else; a system with unusable bands has none. `keeps` caches parsed perflogs.

    Raises:
        FileNotFoundError: there are no perflogs.
    """
    samples = (samples or read_perflogs(perflogs, system, keeps=keeps)).without(ACCEPTANCE)
    if as_of:
        samples = samples.until(now)
    # in this order, the columns that are read for the few later rows are kept for all
    later = samples.values.select(*KEY, TIME).filter(samples.values[TIME] > now + AHEAD)
    future = tuple((SeriesKey(*key), when) for *key, when in later.iter_rows())
    samples, until = samples.until(now + AHEAD), now if as_of else now + AHEAD
    samples, reports = _with_reports(samples, perflogs, system, until, as_of=as_of)
    missed = samples.missed["system"].cast(pl.String).to_list()
    systems = {key.system for key in {*samples.histories, *(key for key, _ in future)}}
    systems |= {*missed, *(run.system for run in reports.runs)}
    attempts, logs, found, alert_logs, incomplete = Attempts(), {}, {}, {}, {}
    for name in sorted(systems):
        before, of_bands, none = len(attempts.problems), f"bands of {name}", Bands(name, ())
        path = log_path(alerts, name)
        logs[name] = attempts.of(path, Log(), read_log, alerts, name, now, as_of=as_of)
        declared = attempts.of(of_bands, none, load_bands, bands, name)
        without = _with_begun(none, logs[name], now)
        found[name] = attempts.of(of_bands, without, _with_begun, declared, logs[name], now)
        path = alert_log(perflogs, name)
        named = (perflogs, name, until, logs[name].actions)
        alert_logs[name] = attempts.of(path, (None, ()), read_alert_log, *named)
        if new := attempts.problems[before:]:
            incomplete[name] = "; ".join(map(": ".join, new))
    for each in samples.rejected:
        if each.is_unread:
            incomplete |= dict.fromkeys(each.path.relative_to(perflogs).parts[:1], str(each))
    rejected = [*samples.rejected, *reports.rejected]
    rejected += [line for log in logs.values() for line in log.rejected]
    rejected += [line for _, lines in alert_logs.values() for line in lines]
    asks = () if as_of else read_plan(perflogs).asks
    return Known(
        now=now,
        as_of=as_of,
        system=system,
        samples=samples,
        future=future,
        histories=samples.histories,
        reports=reports,
        bands={name: each for name, (each, _) in found.items()},
        maintenance={name: each for name, (_, each) in found.items()},
        logs=logs,
        alert_log={name: events for name, (events, _) in alert_logs.items()},
        last_session=None if as_of else read_last_session(perflogs, rejected),
        planned=tuple(each for each in asks if system in {None, each.system}),
        leftovers=() if as_of else read_leftovers(perflogs, system),
        rejected=tuple(rejected),
        problems=tuple(attempts.problems),
        incomplete=incomplete,
    )


def _with_reports(
    samples: Samples, perflogs: Path, system: str | None, until: datetime, *, as_of: bool
) -> tuple[Samples, RunReports]:
    """Return the samples with the sessions that only run reports name, and the run reports."""
    recent = recent_of(samples.histories.values())
    within = timedelta.max if as_of else recent
    found = read_run_reports(perflogs, system, within, until, as_of=as_of)
    runs = [each for each in found.runs if each.purpose != ACCEPTANCE]
    last = found.newest or until
    named = samples.with_sessions_of([each for each in runs if last - each.when <= recent])
    return named, replace(found, runs=tuple(runs))


def recent_of(histories: Iterable[History]) -> timedelta:
    """Return the age at which every series is overdue; older run reports add nothing."""
    return max([OVERDUE, *filter(None, map(overdue_after, histories))])


def _with_begun(declared: Bands, log: Log, now: datetime) -> tuple[Bands, Maintenance]:
    """Return bands with the maintenances that people began, and the times of all maintenances.

    Raises:
        FileError: see `maintenance_of`.
    """
    windows = (each.window for each in begun(log.actions))
    found = replace(declared, maintenance=(*declared.maintenance, *windows))
    return found, maintenance_of(found, now)


#: The most maintenances of a system, as a file of a few kilobytes can declare millions of them.
_MOST_SPANS: Final = 100_000


def maintenance_of(bands: Bands, now: datetime) -> Maintenance:
    """Return the maintenances that a bands file declares and that began by `now`.

    Raises:
        FileError: a `repeat` is not a rule, or there are too many maintenances.
    """
    found: list[tuple[Span, Window]] = []
    for window in bands.maintenance:
        try:
            spans = window.spans(now)
            if not spans and not window.following(now):
                raise ValueError("no day of the next ten years")
            found += [(span, window) for span in spans]
            if len(found) > _MOST_SPANS:
                raise ValueError(f"with those before it, more than {_MOST_SPANS:,} times")
        except (ValueError, OverflowError, LookupError) as error:
            raise FileError(
                f"maintenance of {bands.system}, {window.reason!r}: repeat is "
                f"{window.repeat!r}: {error}; write a rule such as "
                "FREQ=MONTHLY;BYDAY=1WE;UNTIL=20271231T230000Z"
            ) from error

    @cache  # called for each series
    def of(file_system: object) -> Spans:
        return Spans(tuple(span for span, window in found if window.is_of(file_system)))

    return of
