"""What an action does: the bands after it, and the level that is acknowledged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Final

import numpy as np

from iobands.bands import Band, Bands, Epoch, Span
from iobands.judge.baseline import FIRST_BASELINE
from iobands.judge.detection import Detection, change_of
from iobands.judge.detector import follow
from iobands.snapshot import (
    DISCARD,
    DOWN,
    REBASELINE,
    RESOLVE,
    Action,
    Change,
    in_utc,
    level_ratio,
)


def worse_since(detection: Detection, action: Action, threshold: float) -> Change | None:
    """Return the drop of a series below its acknowledged level, or None.

    The runs after the action are judged by a baseline at that level. The lower confidence bound of
    the level is used, so that a tighter estimate does not re-open the alert.
    """
    assert action.since is not None and action.until is not None
    begun = int(np.searchsorted(detection.times, in_utc(action.since)))
    ended = int(np.searchsorted(detection.times, in_utc(action.until), side="right"))
    baseline = detection.chart.baseline
    level, seen = baseline.level(), np.log(detection.values[begun:ended])
    factor = 1.0
    if action.direction == DOWN and len(seen) and len(level):
        ratio = level_ratio(level, seen)
        factor = min(1.0, ratio.low if ratio.low > 0 else ratio.value)
    own = len(baseline.runs) >= FIRST_BASELINE
    chart = follow(
        detection.values[ended:],
        None if own else _scaled(baseline.band, factor),
        history=factor * np.exp(level) if own else (),
        threshold=threshold,
        least=detection.chart.least,
    )
    point = chart.open_change
    if point is None or point.direction != DOWN:
        return None
    return change_of(point, detection.times[ended:])


def _scaled(band: object, factor: float) -> Band | None:
    """Return a band with its figures multiplied by `factor`."""
    if not isinstance(band, Band):
        return None
    return replace(
        band,
        lower_quartile=factor * band.lower_quartile,
        median=factor * band.median,
        upper_quartile=factor * band.upper_quartile,
        maximum=None if band.maximum is None else factor * band.maximum,
    )


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
