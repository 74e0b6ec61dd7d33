"""Groups: a change that several series share, found sooner than in any one of them.

The statistic is a mixture: the largest over onsets k of the sum over series of
log(1 - p + p exp(S_k)), S_k being what the runs of a series since k add up to (Xie and Siegmund,
"Sequential multi-sensor change-point detection", Annals of Statistics 41, 2013). A change that
only some of the series show counts nearly as much as if the others were not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.detection.change_point import Ratio, level_ratio
from iobands.detection.chart import Chart
from iobands.detection.correlation import MOST as MOST_CORRELATION
from iobands.detection.cusum import DOWN, SIDES
from iobands.detection.detector import RECOVERY
from iobands.detection.scores import Array

#: The share of the series that is expected to change.
SHARE: Final = 0.2
#: From how much evidence of its own, in nats, a series counts as one that took part.
TOOK_PART: Final = 2.0
#: The newest sessions that are looked at: a group's older changes are over or are series' own.
NEWEST: Final = 400

# The onsets that are tried, in sessions before the newest.
_LAGS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 30)
# The correlation between series until there are enough common sessions to measure it.
_UNKNOWN: Final = 0.3
_ENOUGH_SESSIONS: Final = 30
_SEVERAL: Final = 2
_OWN_BASELINE: Final = 200


@dataclass(frozen=True)
class Member:
    """A series of a group: its chart, and the rising session number of each of its runs."""

    chart: Chart
    sessions: NDArray[np.int_]


@dataclass(frozen=True)
class GroupChange:
    """A drop that lasts and that at least two of the series share.

    `onset` and `raised` are session numbers, `score` is in nats. By series: `evidence` since the
    onset, in nats, and `ratios`, the level since over the level before.
    """

    onset: int
    raised: int
    score: float
    threshold: float
    evidence: tuple[float, ...]
    ratios: tuple[Ratio, ...]

    @property
    def members(self) -> tuple[int, ...]:
        """The places of the series that took part, the strongest first."""
        order = sorted(range(len(self.evidence)), key=lambda place: -self.evidence[place])
        return tuple(place for place in order if self.evidence[place] >= TOOK_PART)


def group_change(members: Sequence[Member], threshold: float) -> GroupChange | None:
    """Return the drop that lasts in a group of series, or None.

    It lasts until the evidence against it reaches `RECOVERY` in the series that took part.

    Raises:
        ValueError: there are fewer than two series.
    """
    if len(members) < _SEVERAL:
        raise ValueError(f"{len(members)} series are no group")
    sessions = np.unique(np.concatenate([each.sessions for each in members]))[-NEWEST:]
    if not len(sessions):
        return None
    increments, alone, residuals = _aligned(members, sessions)
    discount = 1 + (len(members) - 1) * _correlation(residuals)
    totals = _totals(increments)
    together = _totals(np.where(alone[:, :, None], 0.0, increments))
    statistic = _statistic(together) / discount
    at = 0
    while True:
        over = np.flatnonzero(statistic[at:] >= threshold)
        if not over.size:
            return None
        raised = at + int(over[0])
        onset, design = _onset(together, raised)
        then = (together[raised + 1] - together[onset])[:, design]
        chosen = np.flatnonzero(then >= TOOK_PART)
        if len(chosen) >= _SEVERAL:
            back = np.cumsum(-increments[raised + 1 :, chosen, design].sum(axis=1)) / discount
            back -= np.minimum(np.minimum.accumulate(back), 0.0)
            recovered = np.flatnonzero(back >= RECOVERY)
            if not recovered.size:
                break
            at = raised + 1 + int(recovered[0])
        else:
            at = raised + 1  # one series alone is its own alert
    evidence = (totals[-1] - totals[onset])[:, design]
    return GroupChange(
        onset=int(sessions[onset]),
        raised=int(sessions[raised]),
        score=float(statistic[raised]),
        threshold=threshold,
        evidence=tuple(float(each) for each in np.maximum(evidence, then)),
        ratios=tuple(_ratio(column, onset) for column in residuals.T),
    )


def _aligned(
    members: Sequence[Member], sessions: NDArray[np.int_]
) -> tuple[Array, NDArray[np.bool_], Array]:
    """Return increments, of shape (sessions, series, designs), and by session and series more.

    That is which runs are of a change that the series raised alone before, and the residuals:
    logarithms over the median of the baseline, NaN without a run. Without one there is no
    increment either.
    """
    columns = SIDES[DOWN]
    increments = np.zeros((len(sessions), len(members), columns.stop - columns.start))
    alone = np.zeros((len(sessions), len(members)), dtype=bool)
    residuals = np.full((len(sessions), len(members)), np.nan)
    for place, member in enumerate(members):
        first = int(np.searchsorted(member.sessions, sessions[0]))
        rows = np.searchsorted(sessions, member.sessions[first:])
        increments[rows, place] = member.chart.increments[first:, columns]
        for change in member.chart.changes:
            begun, ended = max(change.raised + 1 - first, 0), _from(change.ended, first)
            alone[rows[begun:ended], place] = True
        level = member.chart.baseline.level()
        usual = float(np.median(level)) if len(level) else np.nan
        residuals[rows, place] = member.chart.logarithms[first:] - usual
    return increments, alone, residuals


def _from(run: int | None, first: int) -> int | None:
    return None if run is None else max(run - first, 0)


def _totals(increments: Array) -> Array:
    """Return what the increments before each session add up to, and of all."""
    return np.concatenate((np.zeros_like(increments[:1]), np.cumsum(increments, axis=0)))


def _statistic(totals: Array) -> Array:
    """Return the mixture statistic after each session, of shape (sessions,)."""
    size = len(totals) - 1
    found = np.zeros(size)
    for lag in _LAGS:
        if lag > size:
            break
        since = totals[lag:] - totals[:-lag]
        mixed = np.log1p(SHARE * np.expm1(since)).sum(axis=1)
        found[lag - 1 :] = np.maximum(found[lag - 1 :], mixed.max(axis=1))
    return found


def _onset(totals: Array, raised: int) -> tuple[int, int]:
    """Return the session and the design that fit the change best, seen from session `raised`."""
    lags = np.arange(1, min(_LAGS[-1], raised + 1) + 1)
    since = totals[raised + 1] - totals[raised + 1 - lags]
    mixed = np.log1p(SHARE * np.expm1(since)).sum(axis=1)
    lag, design = np.unravel_index(int(np.argmax(mixed)), mixed.shape)
    return raised + 1 - int(lags[lag]), int(design)


def _correlation(residuals: Array) -> float:
    """Return the mean rank correlation between the series of a group, from 0 to `MOST`."""
    common = residuals[~np.isnan(residuals).any(axis=1)][:_OWN_BASELINE]
    if len(common) < _ENOUGH_SESSIONS:
        return _UNKNOWN
    ranks = np.argsort(np.argsort(common, axis=0), axis=0).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        matrix = np.corrcoef(ranks.T)
    found = matrix[np.triu_indices(len(matrix), 1)]
    return float(np.clip(np.nanmean(found), 0.0, MOST_CORRELATION)) if found.size else _UNKNOWN


def _ratio(residuals: Array, onset: int) -> Ratio:
    known = ~np.isnan(residuals)
    before = residuals[:onset][known[:onset]][-_OWN_BASELINE:]
    return level_ratio(before, residuals[onset:][known[onset:]])
