"""Selects what is judged of a site, and judges each series by itself: its state, and why.

Runs in maintenance, samples dated in the future and retired series are not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import numpy as np
import polars as pl

from iobands.bands import NO_BAND, Band, Bands, Epoch, Span, Spans
from iobands.judge.detect import Months
from iobands.judge.detection import Detection, detect
from iobands.judge.memory import Remembered
from iobands.judge.normal import Normal, TransientRuns, comparing, matched, normal_of, nothing_known
from iobands.snapshot import (
    ASKED,
    DISCARD,
    ENOUGH_RUNS,
    LONG_AGO,
    MANUAL,
    NOTHING,
    REBASELINE,
    RESOLVE,
    RETIRE,
    TARGET,
    TIME,
    Action,
    CheckRun,
    FutureSample,
    History,
    MissingRun,
    PeerName,
    Series,
    SeriesKey,
    State,
    Status,
    exact_moment,
    in_force,
    labels,
)
from iobands.source import missing_runs
from iobands.source.known import AHEAD, Known, problem_of

# Why a sample is dated in the future.
_WRONG: Final = "a clock was wrong"


class Stage:
    """What is judged of a site: its series and their runs.

    `superseded` lists the labels of series that another one replaced, `gone` the retired series.
    `measured` maps the other series to their histories, if they have one. `actions` are all actions
    about each series, `standing` those in force. `runs` are the runs of each series, and under None
    those without a series; `missing` are the runs in the perflogs without a sample. `obstacles` are
    current. `failed` and `skipped` are checks without a series, by their newest run.
    """

    def __init__(self, known: Known) -> None:
        """Set aside what is not judged."""
        self.known, histories, logs = known, known.histories, known.logs
        # a run that an earlier one asked for need not give a sample
        missed = known.samples.missed.filter(~pl.col("purpose").is_in(ASKED))
        missing = missing_runs.missing_in_perflogs(missed)
        seen = missing_runs.sightings(known.samples)
        names = labels({*histories, *missing, *(key for key, _ in known.future)})
        past = missing_runs.superseded(seen)
        self.superseded = tuple(names[key] for key in sorted(past, key=SeriesKey.sort_key))
        dated = sorted(known.future, key=lambda each: (each[1], names[each[0]]))
        standing = {key: in_force(logs[key.system].of(key)) for key, _ in dated}
        bands = {key: bands_after(known.bands[key.system], each) for key, each in standing.items()}
        self.future = tuple(
            FutureSample(key, names[key], when)
            for key, when in dated
            if not any(when in each for each in bands[key].left_out)
        )
        only_in_future = {
            each.key: [MissingRun(each.when, f"its sample is dated {each.when:%Y-%m-%d}: {_WRONG}")]
            for each in self.future
            if each.key not in histories
        }
        self.missing: Mapping[SeriesKey, Sequence[MissingRun]] = {**only_in_future, **missing}
        self.keys = sorted({*histories, *self.missing} - past, key=SeriesKey.sort_key)
        self.actions = {key: logs[key.system].of(key) for key in self.keys}
        self.standing = {key: in_force(each) for key, each in self.actions.items()}
        self.gone = frozenset(
            key
            for key, actions in self.standing.items()
            for each in actions  # a later sample brings a retired series back
            if each.kind == RETIRE and (key not in histories or histories[key].last <= each.when)
        )
        judged = (key for key in self.keys if key in histories and key not in self.gone)
        self.measured = {key: histories[key] for key in judged}
        runs = tuple(each for each in known.reports.runs if self._counts(each))
        self.reports = replace(known.reports, runs=runs)
        self.runs = missing_runs.runs_of_series(self.keys, seen, runs)
        self.obstacles = missing_runs.obstacles(self.runs, self.reports.newest)
        find = partial(missing_runs.findings, self.runs[None], self.reports)
        self.failed = tuple(find(lambda result: result not in missing_runs.FINE))
        self.skipped = tuple(find(lambda result: result == "skip"))

    def _counts(self, run: CheckRun) -> bool:
        """Return whether a failure of a run counts.

        It does not in maintenance, if an earlier run asked for it, or if it was manual and aborted.
        """
        spans = self.known.maintenance[run.system](run.fields.get("file_system"))
        stopped = run.purpose == MANUAL and run.result == "abort"
        return not stopped and run.purpose not in ASKED and run.when not in spans

    @property
    def missed_schedule(self) -> timedelta | None:
        """The shortest declared interval that passed twice without a session, or None.

        Time in maintenance does not count.
        """
        last, now = self.known.last_session, self.known.now
        # if a wrong clock dated the session, only samples tell when it ran
        began = last.began if last and last.began <= now + AHEAD else LONG_AGO
        rows = self.known.samples.values.select("purpose", TIME)
        routine = rows.filter(~pl.col("purpose").is_in(ASKED))
        began = max(began, routine.select(pl.col(TIME).max()).item() or LONG_AGO)
        missed = []
        for system, spans_of in self.known.maintenance.items():
            mine = [each for key, each in self.measured.items() if key.system == system]
            missed.append(missing_runs.missed_schedule(began, mine, spans_of(None), now))
        return min(filter(None, missed), default=None)


def spans_of_peers(
    known: Known, kind: str, system: str, where: str
) -> list[tuple[Spans, str | None]]:
    """Return the spans in which runs do not count for peers, each with its peer, or None for all.

    Runs do not count in maintenance, before the epoch, before a peer had the level that a person
    called normal, and while a peer was slow for a cause that a person resolved.
    """
    every = known.maintenance[system](where if kind == TARGET else None).every
    just_before = timedelta(microseconds=1)
    if begin := known.bands[system].compares_since(known.now):
        every = (*every, Span(LONG_AGO, begin - just_before, "before the epoch"))
    found: list[tuple[Spans, str | None]] = [(Spans(every), None)]
    for action in in_force(known.logs[system].actions):
        peer, since, until = getattr(action, kind), action.since, action.until
        if not peer or not since or not action.names(PeerName(kind, system, where, peer)):
            continue
        if action.kind == RESOLVE and until:
            found.append((Spans((Span(since, until, action.reason),)), peer))
        elif action.kind == REBASELINE:
            before = Span(LONG_AGO, since - just_before, action.reason)
            found.append((Spans((before,)), peer))
    return found


_NO_ROWS: Final = np.empty(0, np.uint32)


@dataclass(frozen=True)
class Judged:
    """A series, and what it was judged by."""

    series: Series
    bands: Bands
    detection: Detection | None
    transient: TransientRuns


def judged_series(
    stage: Stage,
    months: Mapping[tuple[str, str | None], Months],
    memory: Mapping[SeriesKey, Remembered],
    *,
    with_power: bool,
) -> dict[SeriesKey, Judged]:
    """Return every series with its status, which says if it could not be judged.

    `months` are the budgets and priors by system and file system. Charts continue from `memory`
    where that fits.
    """
    known, labelled = stage.known, labels(stage.keys)
    found = {}
    for key in stage.keys:
        history = known.histories.get(key, NOTHING)
        spans = known.maintenance[key.system](key.file_system)
        bands = bands_after(known.bands[key.system], stage.standing[key]).leaving_out(spans)
        # reports first: of two runs at the same time max() takes the first, with more details
        missing = [
            *missing_runs.missing_in_reports(key, stage.runs.get(key, ())),
            *stage.missing.get(key, ()),
        ]
        missing = [each for each in missing if each.when not in spans]
        newest = max(missing, key=lambda miss: miss.when, default=None)
        detection, why = None, newest.what if newest else "no sample"
        try:
            if len(history):
                of_place = months[key.system, key.file_system]
                detection = _detected(key, history, bands, of_place, memory.get(key))
                baselines = detection.chart.baselines
                normal = normal_of(key, history, bands, detection.rows, baselines)
                missed = _missing(key, history, newest, known.now, spans)
                status = _status(key, history, bands, detection, normal.newest, missed, with_power)
        except Exception as error:
            detection, why = None, problem_of(error)
        if detection is None:
            normal, status = nothing_known(len(history)), _unjudged(history, why)
        transient = _transient(normal, detection)
        lacking = {each.when: each for each in reversed(missing)}
        epochs = tuple(replace(each, bands=(), limits=()) for each in bands.epochs)
        bare = replace(bands, epochs=epochs)
        series = Series(
            key=key,
            label=labelled[key],
            history=history,
            rows=known.samples.rows.get(key, _NO_ROWS),
            status=status,
            outliers=transient.outliers,
            verdicts=normal.verdicts(history),
            epoch=bare.epoch_at(status.when) if status.when else None,
            epochs=epochs,
            missing=tuple(lacking[when] for when in sorted(lacking)),
            actions=stage.actions[key],
        )
        found[key] = Judged(series, bands, detection, transient)
    return found


def _detected(
    key: SeriesKey, history: History, bands: Bands, months: Months, kept: Remembered | None
) -> Detection:
    """Return what the detector finds in the runs that can be compared with the newest."""
    rows = np.flatnonzero(comparing(history, bands) & history.counted)
    # no band that began later judges these runs, nor one that was learned from them
    first = exact_moment(history.times[rows[0]]) if len(rows) else history.last
    published = bands.band_for(matched(key, history.newest), first)
    return detect(history, rows, published, months, least=bands.least_change, kept=kept)


def _status(
    key: SeriesKey,
    history: History,
    bands: Bands,
    detection: Detection,
    band: Band | None,
    missing: str | None,
    with_power: bool,
) -> Status:
    """Return the status of a series that has samples; `band` applies to the newest one."""
    value, when, change = float(history.values[-1]), history.last, detection.open_change
    learned_from = comparing(history, bands) & history.passed & ~history.asked
    usable = learned_from[:-1].sum()  # the newest must not be judged by itself
    healthy = State.WATCH if detection.suspicion else State.HEALTHY
    state, why = change.kind if change else healthy, ""
    out = next(filter(None, (each.why(when) for each in bands.left_out)), "")
    if out:
        why = f"its newest sample is not judged: {out}"
    if band is None:
        state = State.CALIBRATING
        runs = learned_from.sum()
        why = f"{runs} of {ENOUGH_RUNS} runs" if runs < ENOUGH_RUNS else "the next run is judged"
    # A series that has degraded stays so while samples are missing.
    if missing and not (change and change.is_drop):
        state = State.NO_DATA
    limit = bands.limit_for(matched(key, history.newest), when)
    judge, is_own = band or limit, band is not None and band.is_own
    # a band learned from judged runs gives no verdict on a run that is not judged
    verdict = NO_BAND if judge is None or (out and is_own) else judge.verdict(value)
    evidence = detection.evidence(with_power=with_power)
    return Status(
        state,
        why,
        value=value,
        when=when,
        verdict=verdict,
        band=band,
        provisional=is_own,
        runs=len(history),
        usable=int(usable),
        evidence=evidence,
        missing=missing,
        left_out=out,
        limit=limit,
    )


def _unjudged(history: History, why: str) -> Status:
    """Return the status of a series that could not be judged, with its reason: `no data`."""
    value, when = (float(history.values[-1]), history.last) if len(history) else (None, None)
    return Status(State.NO_DATA, why, value, when, runs=len(history), missing=why)


def _missing(
    key: SeriesKey, history: History, miss: MissingRun | None, now: datetime, spans: Spans
) -> str | None:
    """Return why the newest expected sample is missing, or None.

    No sample is expected in `spans`, the maintenances, nor of a case that runs on demand only.
    """
    newest = history.last
    if miss and miss.when > newest:
        return miss.what
    on_demand = key.case is not None and not history.is_scheduled
    overdue = None if on_demand else missing_runs.overdue_after(history)
    if overdue is not None and now - newest - spans.covered(newest, now) > overdue:
        days = (now - newest).days
        return f"the newest sample is {days} day{'' if days == 1 else 's'} old"
    return None


def _transient(normal: Normal, detection: Detection | None) -> TransientRuns:
    """Return the runs that were judged and are in no lasting drop."""
    if detection is None:
        return TransientRuns(NOTHING.times, NOTHING.values, NOTHING.passed)
    kept = ~detection.in_drop & normal.is_judged[detection.rows]
    floors, _, medians, _ = normal.figures[:, detection.rows[kept]]
    values = detection.basis.values[kept]
    return TransientRuns(detection.times[kept], values / medians, values < floors)


# Why the samples of an action are not judged.
_LEFT_OUT: Final = {RESOLVE: "resolved: {}", DISCARD: "discarded: {}"}


def bands_after(bands: Bands, actions: Iterable[Action]) -> Bands:
    """Return the bands of one series as changed by `actions`, all in force and about it.

    A rebaseline begins an epoch of this series without any earlier band, and without bands learned
    from earlier runs. Discarded samples, and samples of a resolved alert, are left out.
    """
    for action in actions:
        if action.kind == REBASELINE and action.since is not None:
            bands = _rebaselined(bands, action, action.since)
        if action.kind in _LEFT_OUT and action.since is not None and action.until is not None:
            why = _LEFT_OUT[action.kind].format(action.reason)
            bands = bands.leaving_out(Spans((Span(action.since, action.until, why),)))
    return bands


def _rebaselined(bands: Bands, action: Action, since: datetime) -> Bands:
    anew = Epoch(f"{REBASELINE} {since:%Y-%m-%d}", since, action.who, (), action.reason)
    # bands that were learned from earlier runs and began before the action
    void = [each for each in bands.epochs if each.since <= action.when and each.is_void([anew])]
    before = [epoch for epoch in bands.epochs if epoch.since <= since]
    old = [_identity(band) for epoch in (*before, *void) for band in epoch.bands]
    after = [
        replace(epoch, bands=tuple(one for one in epoch.bands if _identity(one) not in old))
        for epoch in bands.epochs
        if epoch.since > since
    ]
    return replace(bands, epochs=(*before, anew, *after))


def _identity(band: Band) -> tuple[object, ...]:
    match = frozenset(band.wanted.items())
    return (match, band.lower_quartile, band.median, band.upper_quartile, band.maximum, band.floor)
