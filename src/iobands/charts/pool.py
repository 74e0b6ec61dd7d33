"""One chart for several series that share something: a file system, a transport, a set of nodes.

What each series' own chart found in a run is put together session by session, so that a change
that all of them have in common is seen sooner than in any one of them. May know: numpy and the
charts of single series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iobands.charts.change import level_ratio, onset_interval
from iobands.charts.chart import (
    DEGRADED,
    DOWN,
    LARGEST_REFERENCE,
    RECOVERED,
    RECOVERY,
    UP,
    WATCH,
    Alarm,
    Chart,
)
from iobands.charts.correlation import correlation_between, scale_for, serial_correlation
from iobands.charts.scores import DESIGNS, DROPS, Array, grained

#: What series of one session have in common at the least, as a correlation, and what is taken
#: for it until there are enough sessions to measure it.
LEAST_SHARED: Final = 0.1
UNKNOWN_SHARED: Final = 0.5
MOST_SHARED: Final = 0.9
#: From how much evidence of its own, in nats, a series counts as one that took part in a change.
TOOK_PART: Final = 2.0

_BEFORE_ONSET: Final = 60
_AFTER_ALARM: Final = 30
_SIDES: Final = {DOWN: slice(0, len(DROPS)), UP: slice(len(DROPS), len(DESIGNS))}


@dataclass(frozen=True)
class Part:
    """What one series brings into a pool, run by run, in the order of `sessions`.

    `sessions`, whole numbers of shape (runs,), rise strictly: runs of several series that have
    the same one belong together. `increments` is of shape (runs, designs), and `judged` tells which
    runs have any, as those that a reference was first learnt from have none. `speaks` tells which
    count: a series speaks until its own alarm is raised, and again when that is over, so
    that one series alone can never raise a common alarm. `residuals` are logarithms over the
    usual level, NaN where that is not known. `scale` is what the increments were divided by for
    serial correlation, and `penalty`, of shape (designs,), what each is less by for the error of
    the reference.
    """

    sessions: NDArray[np.int_]
    increments: NDArray[np.float32]
    judged: NDArray[np.bool_]
    speaks: NDArray[np.bool_]
    residuals: Array
    scale: float
    penalty: Array

    @classmethod
    def of(cls, chart: Chart, sessions: ArrayLike) -> Part:
        """Return what the series of `chart` brings, whose runs belong to `sessions`.

        Raises:
            ValueError: there are not as many sessions as runs, or they do not rise.
        """
        places = np.asarray(sessions, dtype=np.int64)
        if places.shape != (chart.runs,) or (np.diff(places) <= 0).any():
            raise ValueError(f"{len(places)} sessions, not rising ones for {chart.runs} runs")
        judged = chart.increments.any(axis=1)
        speaks = judged.copy()
        for alarm in chart.alarms:
            speaks[alarm.raised + 1 : alarm.ended] = False
        usual = float(np.median(chart.level())) if chart.can_judge else np.nan
        penalty = chart.scores.penalty / chart.scale if chart.scores else np.zeros(len(DESIGNS))
        residuals = chart.logarithms - usual
        return cls(places, chart.increments, judged, speaks, residuals, chart.scale, penalty)

    def only(self, runs: NDArray[np.bool_]) -> Part:
        """Return the part that `runs`, of shape (runs,), marks."""
        if runs.all():
            return self
        return replace(
            self,
            sessions=self.sessions[runs],
            increments=self.increments[runs],
            judged=self.judged[runs],
            speaks=self.speaks[runs],
            residuals=self.residuals[runs],
        )

    def sums(self, since: int, until: int | None, direction: str) -> Array:
        """Return the evidence of the sessions from `since` to before `until`, in nats.

        It is of shape (designs,), for the designs of `direction`.
        """
        span = _within(self.sessions, since, until)
        return self.increments[span, _SIDES[direction]].sum(axis=0, dtype=float)


@dataclass(frozen=True)
class CommonAlarm:
    """A lasting change that several series share; `alarm` counts sessions where others count runs.

    `contributions`, one a part, is the evidence that each has given since the onset for the design
    that fits it best. `total` is that of all of them for the one that fits them together best.
    """

    alarm: Alarm
    contributions: tuple[float, ...]
    total: float

    @property
    def series(self) -> tuple[int, ...]:
        """Which parts took part in the change, the strongest first."""
        order = sorted(range(len(self.contributions)), key=lambda j: -self.contributions[j])
        return tuple(j for j in order if self.contributions[j] >= TOOK_PART)


@dataclass(frozen=True)
class PooledChart:
    """The outcome of `follow_together`; `down` and `up` are of shape (sessions,), in nats.

    `sessions` are the numbers that the parts had for them, and `depends` is what the chart
    reckoned with.
    """

    sessions: NDArray[np.int_]
    down: Array
    up: Array
    depends: Dependence
    alarms: tuple[CommonAlarm, ...]

    @property
    def open_alarm(self) -> CommonAlarm | None:
        """The alarm that is open, or None."""
        return self.alarms[-1] if self.alarms and self.alarms[-1].alarm.is_open else None


def follow_together(
    parts: Sequence[Part], *, limit: float = DEGRADED, depends: Dependence | None = None
) -> PooledChart:
    """Return the chart of what several series have in common.

    The scores of a session's m runs are added and divided by 1 + (m - 1) rho, rho being the
    correlation between series: the sum of m normal scores that correlate so has the variance
    m (1 + (m - 1) rho), and the quotient is again a log-likelihood ratio of about the right size.
    The errors of m references are not all to one side either: of what was taken off the scores for
    them so much is given back that the rest grows with m like the error of their sum.

    Args:
        parts: one a series, two at least.
        limit: the evidence, in nats, at which an alarm is raised.
        depends: rho, and more; None to measure it on the first 200 sessions.

    Raises:
        ValueError: there are fewer than two series.
    """
    if len(parts) < 2:  # noqa: PLR2004
        raise ValueError(f"{len(parts)} series have nothing in common: two at least")
    sessions = _every([part.sessions for part in parts])
    placed = [replace(part, sessions=np.searchsorted(sessions, part.sessions)) for part in parts]
    depends = depends or _dependence(placed, len(sessions), limit)
    return _Drawing(sessions, placed, depends, limit).through()


@dataclass(frozen=True)
class Dependence:
    """How much the runs of a pool depend on each other.

    `shared` is the correlation between the series of a session. The scores of a pool are divided
    by `scale`, 1 or more: what the series share may last from one session to the next while each
    of them, whose own noise hides that, reckons with less.
    """

    shared: float
    scale: float


def _dependence(parts: Sequence[Part], sessions: int, limit: float) -> Dependence:
    """Return what the first sessions that have runs of several series tell."""
    count = np.zeros(sessions, dtype=int)
    for part in parts:
        count[part.sessions] += 1
    early = np.flatnonzero(count > 1)[:LARGEST_REFERENCE]
    table = np.full((len(early), len(parts)), np.nan)
    for column, part in enumerate(parts):
        of_early = np.isin(part.sessions, early)
        rows = np.searchsorted(early, part.sessions[of_early])
        table[rows, column] = part.residuals[of_early]
    found = correlation_between(table)
    if found is None:
        return Dependence(UNKNOWN_SHARED, 1.0)
    known = ~np.isnan(table)
    together = np.where(known, table, 0.0).sum(axis=1)[known.any(axis=1)]
    together /= known.sum(axis=1)[known.any(axis=1)]
    needed = scale_for(serial_correlation(together), limit, WATCH)
    usual = float(np.mean([part.scale for part in parts]))
    return Dependence(float(np.clip(found, LEAST_SHARED, MOST_SHARED)), max(1.0, needed / usual))


class _Drawing:
    def __init__(
        self, sessions: NDArray[np.int_], parts: Sequence[Part], depends: Dependence, limit: float
    ) -> None:
        self.sessions = sessions
        self.parts = parts
        self.depends = depends
        self.limit = limit
        self.quiet = self._together([part.speaks for part in parts])
        self.down = np.zeros(len(sessions))
        self.up = np.zeros(len(sessions))
        self.alarms: list[CommonAlarm] = []

    def through(self) -> PooledChart:
        at = 0
        while at < len(self.down):
            at = self._until_alarm(at)
        return PooledChart(self.sessions, self.down, self.up, self.depends, tuple(self.alarms))

    @cached_property
    def all(self) -> Array:
        """The scores of sessions with all runs, as after an alarm, of shape (sessions, designs)."""
        return self._together([part.judged for part in self.parts])

    def _together(self, runs: Sequence[NDArray[np.bool_]]) -> Array:
        """Return the scores of sessions, of shape (sessions, designs), of these runs of each."""
        total = np.zeros((len(self.sessions), len(DESIGNS)))
        taken_off = np.zeros_like(total)
        count = np.zeros(len(self.sessions))
        for part, chosen in zip(self.parts, runs, strict=True):
            places = _span(part.sessions[chosen])
            total[places] += part.increments[_span(np.flatnonzero(chosen))]
            taken_off[places] += part.penalty
            count[places] += 1
        count = np.maximum(count, 1)[:, None]
        spread = 1 + (count - 1) * self.depends.shared
        total += taken_off * (1 - np.minimum(np.sqrt(spread / count) * self.depends.scale, 1.0))
        return grained(total / spread / self.depends.scale)

    def _until_alarm(self, begun: int) -> int:
        total = np.cumsum(self.quiet[begun:], axis=0)
        sums = total - np.minimum(np.minimum.accumulate(total, axis=0), 0.0)
        self.down[begun:] = sums[:, _SIDES[DOWN]].max(axis=1)
        self.up[begun:] = sums[:, _SIDES[UP]].max(axis=1)
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
        before = self._levels(max(0, onset - LARGEST_REFERENCE), onset)
        after = self._levels(onset, alarm.ended)
        ratio = level_ratio(before if before.size else np.zeros(1), after)
        told = replace(alarm, onset=onset, onset_low=low, onset_high=high, ratio=ratio)
        given = [part.sums(onset, alarm.ended, alarm.direction) for part in self.parts]
        total = float(np.sum(given, axis=0).max())
        return CommonAlarm(told, tuple(float(sums.max()) for sums in given), total)

    def _levels(self, first: int, last: int | None) -> Array:
        """Return the median residual of each session from `first` to before `last` that has one."""
        spans = [_within(part.sessions, first, last) for part in self.parts]
        places = np.concatenate(
            [part.sessions[span] for part, span in zip(self.parts, spans, strict=True)]
        )
        values = np.concatenate(
            [part.residuals[span] for part, span in zip(self.parts, spans, strict=True)]
        )
        known = ~np.isnan(values)
        places, values = places[known], values[known]
        order = np.lexsort((values, places))
        values = values[order]
        _, starts, counts = np.unique(places[order], return_index=True, return_counts=True)
        return (values[starts + (counts - 1) // 2] + values[starts + counts // 2]) / 2


def _every(lists: Sequence[NDArray[np.int_]]) -> NDArray[np.int_]:
    """Return all numbers that occur, in their order; the lists rise and lie close together."""
    first = min((int(each[0]) for each in lists if each.size), default=0)
    last = max((int(each[-1]) for each in lists if each.size), default=-1)
    found = np.zeros(last - first + 1, dtype=bool)
    for each in lists:
        found[each - first] = True
    return first + np.flatnonzero(found)


def _span(rising: NDArray[np.int_]) -> slice | NDArray[np.int_]:
    """Return `rising` as an index: a slice where it has no gap, which is several times as fast."""
    if rising.size and rising[-1] - rising[0] == len(rising) - 1:
        return slice(int(rising[0]), int(rising[-1]) + 1)
    return rising


def _within(sessions: NDArray[np.int_], first: int, last: int | None) -> slice:
    """Return which of the rising `sessions` lie from `first` to before `last`."""
    stop = len(sessions) if last is None else int(np.searchsorted(sessions, last))
    return slice(int(np.searchsorted(sessions, first)), stop)
