"""The judged part of a site, and what is set aside: maintenance, the future, retired series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import polars as pl

from iobands.bands import Bands, Span
from iobands.model import CheckRun, RunReports
from iobands.snapshot import (
    ASKED,
    DISCARD,
    LONG_AGO,
    NOTHING,
    REBASELINE,
    RESOLVE,
    RETIRE,
    TARGET,
    TIME,
    Action,
    Finding,
    FutureSample,
    History,
    MissingRun,
    Obstacle,
    PeerName,
    SeriesKey,
    in_force,
    labels,
)
from iobands.source.action_log import Log
from iobands.source.known import AHEAD, OVERDUE, Known, Maintenance
from iobands.source.missing_runs import (
    FINE,
    findings,
    missed_schedule,
    missing_in_perflogs,
    obstacles,
    runs_of_series,
    sightings,
    superseded,
)

#: The reason for a sample of the future.
WRONG: Final = "a clock was wrong"


@dataclass(frozen=True)
class Stage:
    """The judged part of a site: its series and their runs, without what was set aside.

    `names` are the labels of all series, `past` those that are superseded, `gone` the retired.
    `actions` has all actions about each series, `standing` the ones in force. `runs` are by series,
    and under None the ones without a series; `missing` are runs without a sample, by the perflogs.
    """

    known: Known
    keys: tuple[SeriesKey, ...]
    names: Mapping[SeriesKey, str]
    past: frozenset[SeriesKey]
    future: tuple[FutureSample, ...]
    missing: Mapping[SeriesKey, Sequence[MissingRun]]
    actions: Mapping[SeriesKey, tuple[Action, ...]]
    standing: Mapping[SeriesKey, tuple[Action, ...]]
    reports: RunReports
    runs: Mapping[SeriesKey | None, Sequence[CheckRun]]
    gone: frozenset[SeriesKey]

    @classmethod
    def of(cls, known: Known) -> Stage:
        """Return the judged part of a site."""
        now, histories, logs = known.now, known.histories, known.logs
        # a run that was made again need not give a sample
        missed = known.samples.missed
        missing = missing_in_perflogs(missed.filter(~pl.col("purpose").is_in(ASKED)))
        seen = sightings(known.samples)
        past = superseded(seen)
        runs = outside_maintenance(known.reports.runs, known.maintenance)
        reports = replace(known.reports, runs=runs)
        names = labels({*histories, *missing, *(key for key, _ in known.future)})
        future = future_samples(known.future, names, logs, now)
        missing = {**only_in_future(future, histories), **missing}
        keys = sorted({*histories, *missing} - past, key=SeriesKey.sort_key)
        actions = {key: logs[key.system].of(key) for key in keys}
        standing = {key: in_force(each, now) for key, each in actions.items()}
        gone = {key for key in keys if is_retired(standing[key], histories.get(key, NOTHING))}
        return cls(
            known,
            tuple(keys),
            names,
            frozenset(past),
            future,
            missing,
            actions,
            standing,
            reports,
            runs_of_series(keys, seen, reports.runs),
            frozenset(gone),
        )

    @property
    def measured(self) -> dict[SeriesKey, History]:
        """The histories of the series that are judged."""
        known = self.known.histories
        return {key: known[key] for key in self.keys if key in known and key not in self.gone}

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """The obstacles that stand now."""
        return obstacles(self.runs, self.reports.newest, OVERDUE)

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The checks without a series that failed in their newest run."""
        return self._findings(lambda result: result not in FINE)

    @property
    def skipped(self) -> tuple[Finding, ...]:
        """The checks without a series that were skipped in their newest run."""
        return self._findings(lambda result: result == "skip")

    def _findings(self, wanted: Callable[[str], bool]) -> tuple[Finding, ...]:
        return tuple(findings(self.runs[None], self.reports, OVERDUE, wanted))

    @property
    def missed_schedule(self) -> timedelta | None:
        """The shortest declared interval if no session ran for two of them, else None."""
        last, now = self.known.last_session, self.known.now
        spans = [span for each in self.known.maintenance.values() for span in each.of(None)]
        # dated by a wrong clock: only the samples tell when a session ran
        began = last.began if last and last.began <= now + AHEAD else LONG_AGO
        rows = self.known.samples.measured.filter(~pl.col("purpose").is_in(ASKED))
        newest = rows.select(pl.col(TIME).max()).item()
        began = max(began, newest or LONG_AGO)
        return missed_schedule(began, self.measured.values(), spans, now)


def spans_of_peers(
    bands_of: Mapping[str, Bands],
    windows: Mapping[str, Maintenance],
    logs: Mapping[str, Log],
    now: datetime,
    kind: str,
    system: str,
    where: str,
) -> list[tuple[Span, str | None]]:
    """Return when runs do not count for targets or nodes: spans, each with a peer or None for all.

    They are maintenance, the time before the epoch, before the level of a peer that a person called
    normal, and while a peer was slow for a reason that a person resolved.
    """
    found = [*windows[system].of(where if kind == TARGET else None)]
    begin = bands_of[system].compares_since(now)
    if begin:
        before = begin - timedelta(microseconds=1)
        found.append(Span(LONG_AGO, before, "before the epoch"))
    of_peers = acted_on_peers(logs[system], kind, system, where, now)
    return [*((span, None) for span in found), *of_peers]


def outside_maintenance(
    runs: Iterable[CheckRun], windows: Mapping[str, Maintenance]
) -> tuple[CheckRun, ...]:
    """Return the runs outside maintenance, as failures during maintenance are expected.

    Nor does a run that was made again make a sample missing.
    """

    def is_inside(run: CheckRun) -> bool:
        spans = windows[run.system].of(run.fields.get("file_system"))
        return any(run.when in span for span in spans)

    return tuple(run for run in runs if run.purpose not in ASKED and not is_inside(run))


def is_retired(actions: Iterable[Action], history: History) -> bool:
    """Return whether a series is retired: by an action in force, and without a sample since."""
    return any(
        action.kind == RETIRE and (not len(history) or history.last <= action.when)
        for action in actions
    )


def future_samples(
    found: Iterable[tuple[SeriesKey, datetime]],
    labels: Mapping[SeriesKey, str],
    logs: Mapping[str, Log],
    now: datetime,
) -> tuple[FutureSample, ...]:
    """Return the samples of the future that were not discarded, in the order of time."""
    return tuple(
        FutureSample(key, labels[key], when)
        for key, when in sorted(found, key=lambda each: (each[1], labels[each[0]]))
        if not _is_left_out(when, in_force(logs[key.system].of(key), now))
    )


def only_in_future(
    future: Iterable[FutureSample], histories: Mapping[SeriesKey, History]
) -> dict[SeriesKey, list[MissingRun]]:
    """Return the missing runs of series with samples of the future only."""
    return {
        each.key: [MissingRun(each.when, f"its sample is dated {each.when:%Y-%m-%d}: {WRONG}")]
        for each in future
        if each.key not in histories
    }


def _is_left_out(when: datetime, actions: Iterable[Action]) -> bool:
    return any(
        each.kind in (RESOLVE, DISCARD)
        and each.since is not None
        and each.until is not None
        and each.since <= when <= each.until
        for each in actions
    )


def acted_on_peers(
    log: Log, kind: str, system: str, where: str, now: datetime
) -> list[tuple[Span, str]]:
    """Return when runs of each peer of a place do not count because of what a person said."""
    found = []
    for action in in_force(log.actions, now):
        peer = getattr(action, kind)
        if not peer or not action.since or not action.names(PeerName(kind, system, where, peer)):
            continue
        before = action.since - timedelta(microseconds=1)
        spans = {RESOLVE: (action.since, action.until), REBASELINE: (LONG_AGO, before)}
        begin, end = spans.get(action.kind, (None, None))
        if begin and end:
            found.append((Span(begin, end, action.reason), peer))
    return found
