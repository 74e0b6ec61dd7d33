"""The judged part of a site, and what is set aside: maintenance, the future, retired series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import polars as pl

from iobands.bands import Bands, Span
from iobands.model import CheckRun
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

# The reason for a sample of the future.
_WRONG: Final = "a clock was wrong"


class Stage:
    """The judged part of a site: its series and their runs, without what was set aside.

    `names` are the labels of all series, `past` those that are superseded, `gone` the retired.
    `actions` has all actions about each series, `standing` the ones in force. `runs` are by series,
    and under None the ones without a series; `missing` are runs without a sample, by the perflogs.
    """

    def __init__(self, known: Known) -> None:
        """Set aside what is not judged."""
        self.known, now, histories, logs = known, known.now, known.histories, known.logs
        # a run that was made again need not give a sample
        missed = known.samples.missed.filter(~pl.col("purpose").is_in(ASKED))
        missing = missing_in_perflogs(missed)
        seen = sightings(known.samples)
        self.past = frozenset(superseded(seen))
        self.names = labels({*histories, *missing, *(key for key, _ in known.future)})
        dated = sorted(known.future, key=lambda each: (each[1], self.names[each[0]]))
        self.future = tuple(
            FutureSample(key, self.names[key], when)
            for key, when in dated
            if not _is_left_out(when, in_force(logs[key.system].of(key), now))
        )
        only_in_future = {
            each.key: [MissingRun(each.when, f"its sample is dated {each.when:%Y-%m-%d}: {_WRONG}")]
            for each in self.future
            if each.key not in histories
        }
        self.missing: Mapping[SeriesKey, Sequence[MissingRun]] = {**only_in_future, **missing}
        keys = sorted({*histories, *self.missing} - self.past, key=SeriesKey.sort_key)
        self.keys = tuple(keys)
        self.actions = {key: logs[key.system].of(key) for key in keys}
        self.standing = {key: in_force(each, now) for key, each in self.actions.items()}
        self.gone = frozenset(filter(self._is_retired, keys))
        runs = tuple(each for each in known.reports.runs if self._counts(each))
        self.reports = replace(known.reports, runs=runs)
        self.runs = runs_of_series(keys, seen, runs)

    def _is_retired(self, key: SeriesKey) -> bool:
        """Return whether it is retired: by an action in force, and without a sample since."""
        history = self.known.histories.get(key, NOTHING)
        return any(
            action.kind == RETIRE and (not len(history) or history.last <= action.when)
            for action in self.standing[key]
        )

    def _counts(self, run: CheckRun) -> bool:
        """Return whether a run is outside maintenance, in which failures are expected.

        Nor does a run that was made again make a sample missing.
        """
        spans = self.known.maintenance[run.system].of(run.fields.get("file_system"))
        return run.purpose not in ASKED and not any(run.when in span for span in spans)

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
        began = max(began, rows.select(pl.col(TIME).max()).item() or LONG_AGO)
        return missed_schedule(began, self.measured.values(), spans, now)


def _is_left_out(when: datetime, actions: Iterable[Action]) -> bool:
    spans = ((each.since, each.until) for each in actions if each.kind in (RESOLVE, DISCARD))
    return any(since and until and since <= when <= until for since, until in spans)


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
    every = [*windows[system].of(where if kind == TARGET else None)]
    just_before = timedelta(microseconds=1)
    if begin := bands_of[system].compares_since(now):
        every.append(Span(LONG_AGO, begin - just_before, "before the epoch"))
    found: list[tuple[Span, str | None]] = [(span, None) for span in every]
    for action in in_force(logs[system].actions, now):
        peer, since, until = getattr(action, kind), action.since, action.until
        if not peer or not since or not action.names(PeerName(kind, system, where, peer)):
            continue
        if action.kind == RESOLVE and until:
            found.append((Span(since, until, action.reason), peer))
        elif action.kind == REBASELINE:
            found.append((Span(LONG_AGO, since - just_before, action.reason), peer))
    return found
