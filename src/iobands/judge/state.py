"""Each series by itself: its state, which says whether a person has to act, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from iobands.bands import NO_BAND, Band, Bands, Epoch, Span, covered
from iobands.judge.detect import Months
from iobands.judge.detection import Detection, detect
from iobands.judge.memory import Remembered
from iobands.judge.normal import (
    Normal,
    TransientRuns,
    band_in_force,
    comparing,
    judged,
    limit_in_force,
    normal_of,
    nothing_known,
)
from iobands.judge.set_aside import Stage
from iobands.snapshot import (
    DISCARD,
    ENOUGH_RUNS,
    NOTHING,
    REBASELINE,
    RESOLVE,
    Action,
    History,
    MissingRun,
    Series,
    SeriesKey,
    State,
    Status,
    labels,
)
from iobands.source.known import Attempts, why
from iobands.source.missing_runs import missing_in_reports, overdue_after

_NO_ROWS: Final = np.empty(0, np.uint32)


@dataclass(frozen=True)
class Judged:
    """A series, and the basis of its judgement."""

    series: Series
    bands: Bands
    detection: Detection | None
    transient: TransientRuns


def judged_series(
    stage: Stage,
    attempts: Attempts,
    months: Mapping[tuple[str, str | None] | None, Months],
    memory: Mapping[SeriesKey, Remembered],
    *,
    with_power: bool,
) -> dict[SeriesKey, Judged]:
    """Return every series with its status, which says if it could not be judged.

    `months` are those of each system and file system, and of one without runs under None. What the
    judge has in `memory` is not detected again.
    """
    known, labelled = stage.known, labels(stage.keys)
    found = {}
    for key in stage.keys:
        history = known.histories.get(key, NOTHING)
        spans = known.maintenance[key.system].of(key.file_system)
        bands = bands_after(known.bands[key.system], stage.standing[key]).leaving_out(*spans)
        # of two runs at the same time max() takes the first, and reports have more details
        missing = [*missing_in_reports(key, stage.runs.get(key, ())), *stage.missing.get(key, ())]
        missing = [each for each in missing if not any(each.when in span for span in spans)]
        newest = max(missing, key=lambda miss: miss.when, default=None)
        status = _unjudged(history, newest.what if newest else "no sample")
        normal, detection = nothing_known(len(history)), None
        if len(history):
            try:
                of_place = months.get((key.system, key.file_system), months[None])
                detection, normal = _assessed(key, history, bands, of_place, memory.get(key))
                missed = _missing(key, history, newest, known.now, spans)
                status = _status(key, history, bands, detection, normal.newest, missed, with_power)
            except Exception as error:
                status = _unjudged(history, why(error))
                normal, detection = nothing_known(len(history)), None
        transient = _transient(normal, detection)
        lacking = {each.when: each for each in reversed(missing)}
        epoch = bands.epoch_at(status.when) if status.when else None
        series = Series(
            key=key,
            label=labelled[key],
            history=history,
            rows=known.samples.rows.get(key, _NO_ROWS),
            status=status,
            outliers=transient.outliers,
            verdicts=normal.verdicts(history),
            epoch=epoch and replace(epoch, bands=(), limits=()),
            epochs=tuple(replace(each, bands=(), limits=()) for each in bands.epochs),
            missing=tuple(lacking[when] for when in sorted(lacking)),
            actions=stage.actions[key],
        )
        found[key] = Judged(series, bands, detection, transient)
    return found


def _assessed(
    key: SeriesKey, history: History, bands: Bands, months: Months, kept: Remembered | None
) -> tuple[Detection, Normal]:
    """Return the detection on a series that has samples, and what is normal for it."""
    published = band_in_force(key, history.newest, history.last, bands)
    rows = judged(history, bands)
    detection = detect(history, rows, published, months, bands.least_change, kept)
    normal = normal_of(key, history, bands, detection.rows, detection.chart.baselines)
    return detection, normal


def _status(
    key: SeriesKey,
    history: History,
    bands: Bands,
    detection: Detection,
    band: Band | None,
    missing: str | None,
    with_power: bool,
) -> Status:
    """Return the status of a series that has samples; `band` is what is normal at the newest."""
    value, when, change = float(history.values[-1]), history.last, detection.open_change
    # the newest must not be judged by itself
    usable = (comparing(history, bands) & history.passed & ~history.asked)[:-1].sum()
    healthy = State.WATCH if detection.suspicion else State.HEALTHY
    state, why = change.kind if change else healthy, ""
    out = next((span.why for span in bands.left_out if when in span), "")
    if out:
        why = f"its newest sample is not judged: {out}"
    if band is None:
        state = State.CALIBRATING
        why = f"{usable + history.passed[-1]} of {ENOUGH_RUNS} runs"
    # A series that has degraded stays so while samples are missing.
    if missing and not (change and change.is_drop):
        state = State.NO_DATA
    limit = limit_in_force(key, history.newest, when, bands)
    judge = band or limit
    verdict = judge.verdict(value) if judge else NO_BAND
    is_own = band is not None and band.is_own
    evidence = detection.evidence(with_power=with_power)
    known = (value, when, verdict, band, is_own, len(history), int(usable))
    return Status(state, why, *known, evidence, missing, out, limit)


def _unjudged(history: History, why: str) -> Status:
    """Return the status of a series that could not be judged, with its reason: `no data`."""
    value, when = (float(history.values[-1]), history.last) if len(history) else (None, None)
    runs = len(history)
    return Status(State.NO_DATA, why, value, when, NO_BAND, None, False, runs, 0, missing=why)


def _missing(
    key: SeriesKey, history: History, miss: MissingRun | None, now: datetime, spans: Sequence[Span]
) -> str | None:
    """Return why the newest sample is not the expected one, or None.

    No sample is expected in the maintenances `spans`, nor of a case without a tag with an interval.
    """
    newest = history.last
    if miss and miss.when > newest:
        return miss.what
    on_demand = key.case is not None and not history.is_scheduled
    overdue = None if on_demand else overdue_after(history)
    if overdue is not None and now - newest - covered(spans, newest, now) > overdue:
        return f"the newest sample is {(now - newest) / timedelta(days=1):.0f} days old"
    return None


def _transient(normal: Normal, detection: Detection | None) -> TransientRuns:
    """Return the runs that were judged one by one."""
    if detection is None:
        return TransientRuns(NOTHING.times, NOTHING.values, NOTHING.passed)
    kept = ~detection.in_drop & normal.is_judged[detection.rows]
    floors, _, medians, _ = normal.figures[:, detection.rows[kept]]
    values = detection.basis.values[kept]
    return TransientRuns(detection.times[kept], values / medians, values < floors)


# Why the samples of an action are not judged.
_LEFT_OUT: Final = {RESOLVE: "resolved: {}", DISCARD: "discarded: {}"}


def bands_after(bands: Bands, actions: Iterable[Action]) -> Bands:
    """Return `bands` for one series after `actions`, all in force and about it.

    A rebaseline begins an epoch of this series in which no earlier band holds. Discarded samples,
    and samples of a resolved alert, are left out.
    """
    for action in actions:
        if action.kind == REBASELINE and action.since is not None:
            bands = _rebaselined(bands, action, action.since)
        if action.kind in _LEFT_OUT and action.since is not None and action.until is not None:
            why = _LEFT_OUT[action.kind].format(action.reason)
            bands = bands.leaving_out(Span(action.since, action.until, why))
    return bands


def _rebaselined(bands: Bands, action: Action, since: datetime) -> Bands:
    before = [epoch for epoch in bands.epochs if epoch.since <= since]
    old = [_identity(band) for epoch in before for band in epoch.bands]
    after = [
        replace(epoch, bands=tuple(one for one in epoch.bands if _identity(one) not in old))
        for epoch in bands.epochs
        if epoch.since > since
    ]
    anew = Epoch(f"{REBASELINE} {since:%Y-%m-%d}", since, action.who, (), action.reason)
    return replace(bands, epochs=(*before, anew, *after))


def _identity(band: Band) -> tuple[object, ...]:
    match = frozenset(band.wanted.items())
    return (match, band.lower_quartile, band.median, band.upper_quartile, band.maximum, band.floor)
