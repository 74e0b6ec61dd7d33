"""One chart for several series that share something: a file system, a transport, a set of nodes.

What each series' own chart found in a run is put together session by session, so that a change
that all of them have in common is seen sooner than in any one of them. May know: numpy and the
charts of single series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from iobands.charts.change import level_ratio, onset_interval
from iobands.charts.chart import (
    DEGRADED,
    DOWN,
    LARGEST_REFERENCE,
    RECOVERED,
    RECOVERY,
    UP,
    Alarm,
    Chart,
)
from iobands.charts.scores import DESIGNS, DROPS, Array, grained

#: What series of one session have in common at the least, as a correlation, and what is taken
#: for it until there are enough sessions to measure it.
LEAST_SHARED: Final = 0.3
UNKNOWN_SHARED: Final = 0.5
MOST_SHARED: Final = 0.9
_ENOUGH_SESSIONS: Final = 30

_BEFORE_ONSET: Final = 60
_AFTER_ALARM: Final = 30


@dataclass(frozen=True)
class CommonAlarm:
    """A lasting change that several series share; `alarm` counts sessions where others count runs.

    `contributions`, one a series, is the evidence that each gave from the onset to the alarm.
    """

    alarm: Alarm
    contributions: tuple[float, ...]

    @property
    def series(self) -> tuple[int, ...]:
        """Which series, by column, speak for the change, the strongest first."""
        order = sorted(range(len(self.contributions)), key=lambda j: -self.contributions[j])
        return tuple(j for j in order if self.contributions[j] > 0)


@dataclass(frozen=True)
class PooledChart:
    """The outcome of `follow_together`; `down` and `up` are of shape (sessions,), in nats.

    `shared` is the correlation between series that the chart reckoned with.
    """

    down: Array
    up: Array
    shared: float
    alarms: tuple[CommonAlarm, ...]

    @property
    def open_alarm(self) -> CommonAlarm | None:
        """The alarm that is open, or None."""
        return self.alarms[-1] if self.alarms and self.alarms[-1].alarm.is_open else None


def follow_together(
    values: ArrayLike,
    charts: Sequence[Chart],
    *,
    limit: float = DEGRADED,
    shared: float | None = None,
) -> PooledChart:
    """Return the chart of what several series have in common.

    The scores of a session's m runs are added and divided by 1 + (m - 1) rho, rho being the
    correlation between series: the sum of m normal scores that correlate so has the variance
    m (1 + (m - 1) rho), and the quotient is again a log-likelihood ratio of about the right size.
    A series speaks until its own alarm is raised, and again when that is over: one series alone
    can therefore never raise a common alarm.

    Args:
        values: of shape (sessions, series), in the units of the series, NaN where a session has
            no sample of a series.
        charts: one a column: `follow` over the column without its NaN.
        limit: the evidence, in nats, at which an alarm is raised.
        shared: rho; None to measure it on the first 200 sessions, from 0.3 to 0.9.

    Raises:
        ValueError: there are fewer than two series, or a chart does not fit its column.
    """
    table = np.asarray(values, dtype=float)
    if table.ndim != 2 or table.shape[1] != len(charts) or len(charts) < 2:  # noqa: PLR2004
        raise ValueError(f"{len(charts)} charts for values of shape {table.shape}: two at least")
    present = ~np.isnan(table)
    for column, chart in enumerate(charts):
        if int(present[:, column].sum()) != chart.runs:
            raise ValueError(f"the chart of column {column} has not the runs of that column")
    increments = np.zeros((*table.shape, len(DESIGNS)))
    speaks = np.zeros(table.shape, dtype=bool)
    residuals = np.full(table.shape, np.nan)
    for column, chart in enumerate(charts):
        rows = np.flatnonzero(present[:, column])
        increments[rows, column] = chart.increments
        speaks[rows, column] = _speaks(chart)
        if chart.can_judge:
            residuals[rows, column] = chart.logarithms - np.median(chart.level())
    rho = _shared(residuals) if shared is None else shared
    return _Drawing(increments, present, speaks, residuals, rho, limit).through()


def _speaks(chart: Chart) -> Array:
    speaks = np.ones(chart.runs, dtype=bool)
    for alarm in chart.alarms:
        speaks[alarm.raised + 1 : alarm.ended] = False
    return speaks


def _shared(residuals: Array) -> float:
    """Return the mean correlation between the columns of the first sessions, by ranks."""
    early = residuals[:LARGEST_REFERENCE]
    found, weights = 0.0, 0
    for one in range(early.shape[1]):
        for other in range(one):
            both = ~np.isnan(early[:, one]) & ~np.isnan(early[:, other])
            if both.sum() < _ENOUGH_SESSIONS:
                continue
            ranks = [np.argsort(np.argsort(early[both, j])) for j in (one, other)]
            found += float(np.corrcoef(*ranks)[0, 1]) * int(both.sum())
            weights += int(both.sum())
    return float(np.clip(found / weights, LEAST_SHARED, MOST_SHARED)) if weights else UNKNOWN_SHARED


def _together(increments: Array, taken: Array, shared: float) -> Array:
    """Return the scores of sessions, of shape (sessions, designs)."""
    count = taken.sum(axis=1)
    total = np.where(taken[:, :, None], increments, 0.0).sum(axis=1)
    return grained(total / (1 + np.maximum(count - 1, 0) * shared)[:, None])


class _Drawing:
    def __init__(
        self,
        increments: Array,
        present: Array,
        speaks: Array,
        residuals: Array,
        shared: float,
        limit: float,
    ) -> None:
        self.increments = increments
        self.residuals = residuals
        self.shared = shared
        self.limit = limit
        self.quiet = _together(increments, speaks, shared)
        self.all = _together(increments, present, shared)
        self.down = np.zeros(len(present))
        self.up = np.zeros(len(present))
        self.alarms: list[CommonAlarm] = []

    def through(self) -> PooledChart:
        at = 0
        while at < len(self.down):
            at = self._until_alarm(at)
        return PooledChart(self.down, self.up, self.shared, tuple(self.alarms))

    def _until_alarm(self, begun: int) -> int:
        total = np.cumsum(self.quiet[begun:], axis=0)
        sums = total - np.minimum(np.minimum.accumulate(total, axis=0), 0.0)
        self.down[begun:] = sums[:, : len(DROPS)].max(axis=1)
        self.up[begun:] = sums[:, len(DROPS) :].max(axis=1)
        over = np.flatnonzero(sums.max(axis=1) >= self.limit)
        if not over.size:
            return len(self.down)
        design = int(np.argmax(sums[over[0]]))
        return self._raise(begun, begun + int(over[0]), design, float(sums[over[0], design]))

    def _raise(self, begun: int, raised: int, design: int, score: float) -> int:
        is_down = design < len(DROPS)
        evidence = self.down if is_down else self.up
        later = self.all[raised + 1 :, design]
        evidence[raised + 1 :] = np.maximum(score + np.cumsum(later), 0.0)
        (self.up if is_down else self.down)[raised + 1 :] = 0.0
        back = np.cumsum(-later)
        sums = back - np.minimum(np.minimum.accumulate(back), 0.0)
        over = np.flatnonzero(sums >= RECOVERY)
        ended = closed = None
        if over.size:
            zeros = np.flatnonzero(sums[: over[0]] == 0)
            ended = raised + 1 + (int(zeros[-1]) + 1 if zeros.size else 0)
            closed = raised + 1 + int(over[0])
        alarm = Alarm(
            direction=DOWN if is_down else UP,
            raised=raised,
            onset=raised,
            onset_low=raised,
            onset_high=raised,
            ratio=level_ratio(np.zeros(1), np.zeros(1)),
            score=score,
            limit=self.limit,
            design=DESIGNS[design],
            ended=ended,
            closed=closed,
            end=RECOVERED if over.size else None,
        )
        self.alarms.append(self._dated(alarm, begun, design))
        return len(self.down) if ended is None else ended

    def _dated(self, alarm: Alarm, begun: int, design: int) -> CommonAlarm:
        stop = min(len(self.down), alarm.raised + 1 + _AFTER_ALARM)
        if alarm.ended is not None:
            stop = max(alarm.raised + 1, min(stop, alarm.ended))
        first = max(begun, alarm.raised - _BEFORE_ONSET - _AFTER_ALARM)
        dated = onset_interval(self.all[first:stop, design], alarm.raised - first)
        onset, low, high = (first + i for i in dated)
        levels = np.array([_median(row) for row in self.residuals])
        before = levels[max(0, onset - LARGEST_REFERENCE) : onset]
        after = levels[onset : alarm.ended]
        before, after = before[~np.isnan(before)], after[~np.isnan(after)]
        ratio = level_ratio(before if before.size else np.zeros(1), after)
        told = replace(alarm, onset=onset, onset_low=low, onset_high=high, ratio=ratio)
        shares = self.increments[onset : alarm.raised + 1, :, design].sum(axis=0)
        return CommonAlarm(told, tuple(float(share) for share in shares))


def _median(row: Array) -> float:
    there = row[~np.isnan(row)]
    return float(np.median(there)) if there.size else float("nan")
