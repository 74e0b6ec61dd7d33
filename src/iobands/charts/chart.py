"""The chart of one series: evidence run by run, alarms, and a reference that grows meanwhile.

A chart is a value: `begin` makes one, `extend` returns it with further runs, and `follow` does
both. However the runs are dealt out to calls of `extend`, the outcome is the same to the last
bit. May know: numpy, and its neighbours for scores, correlation and the size of changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iobands.charts.change import Ratio, level_ratio, onset_interval
from iobands.charts.correlation import inflation, scale_for, serial_correlation
from iobands.charts.scores import (
    DESIGNS,
    DROPS,
    Array,
    Quartiles,
    Scores,
    band_cells,
    band_sample,
    blended,
    grained,
    history_cells,
)

DOWN: Final = "down"
UP: Final = "up"
#: Why an alarm ended.
RECOVERED: Final = "recovered"
NEW_NORMAL: Final = "new normal"

#: From how many own runs they are a reference, and from how many on they are the only one.
FIRST_REFERENCE: Final = 20
FULL_REFERENCE: Final = 60
#: A reference grows to so many runs and is frozen then: a slow decline must not become normal.
LARGEST_REFERENCE: Final = 200
#: How many later runs must have been quiet before a run joins the reference.
LAG: Final = 30
#: The reference is learnt anew when it has grown to one of these sizes.
GROWTH: Final = (FIRST_REFERENCE, 25, 30, 40, 50, FULL_REFERENCE, 80, 100, 130, 160, 200)

#: The limits, in nats, unless told otherwise; see `limits`.
WATCH: Final = 5.7
DEGRADED: Final = 9.0
#: The evidence for recovery at which an alarm is closed.
RECOVERY: Final = 8.0

_DIRECTIONS: Final = ((DOWN, slice(0, len(DROPS))), (UP, slice(len(DROPS), len(DESIGNS))))
# How far back from the last zero an onset is looked for, and how far on from the alarm.
_BEFORE_ONSET: Final = 60
_AFTER_ALARM: Final = 30
_CHUNK: Final = 64
# A little under a half, so that 0.9 goes with 0.8.
_RECOVERY_SHARE: Final = 0.45


@dataclass(frozen=True)
class Alarm:
    """A lasting change, as far as it is known; runs are counted from 0, as `follow` got them.

    `raised` is the run at which the evidence `score` passed `limit`, both in nats. The change
    began with run `onset`, most likely between `onset_low` and `onset_high`. `ratio` is the level
    since over the level before. `ended` is the first run that was no longer part of it, or None
    while the alarm is open, `closed` the run at which that was known, and `end` tells why it
    ended: `RECOVERED` or `NEW_NORMAL`. `design` is the factor that fitted best at the alarm.
    """

    direction: str
    raised: int
    onset: int
    onset_low: int
    onset_high: int
    ratio: Ratio
    score: float
    limit: float
    design: float
    ended: int | None
    closed: int | None
    end: str | None

    @property
    def is_open(self) -> bool:
        """Whether the change lasts."""
        return self.ended is None


@dataclass(frozen=True)
class _Found:
    design: int
    raised: int
    start: int
    score: float
    limit: float
    before: Array
    inflation: float
    ended: int | None = None
    closed: int | None = None
    end: str | None = None


@dataclass(frozen=True)
class Chart:
    """The state of a chart after `runs` runs. Make one by `begin`, `extend` or `follow`.

    Of shape (runs,): `down` and `up`, the evidence after each run for a drop and for a rise, in
    nats (0 while nothing can be said, and while an alarm is open that of the alarm's direction
    goes on growing). Of shape (runs, designs): `increments`, what each run added for each of
    `scores.DESIGNS`; pooled charts are made of them. `reference` has the logarithms of the
    reference in the order of time, and `correlation` its serial correlation.
    """

    band: Quartiles | None
    limit: float
    watch: float
    logarithms: Array
    increments: NDArray[np.float32]
    down: Array
    up: Array
    reference: Array
    correlation: float
    scores: Scores | None
    sums: Array
    starts: NDArray[np.int_]
    usable: NDArray[np.bool_]
    joined: int
    restarted: int
    open: _Found | None
    recovery: Array
    recovery_start: int
    found: tuple[_Found, ...] = field(default=())

    @property
    def scale(self) -> float:
        """What every score is divided by for the serial correlation of the series."""
        return scale_for(self.correlation, self.limit, WATCH)

    @property
    def runs(self) -> int:
        """How many runs the chart has seen."""
        return len(self.logarithms)

    @property
    def evidence(self) -> float:
        """The larger evidence after the last run, in nats; 0 before the first."""
        return max(float(self.down[-1]), float(self.up[-1])) if self.runs else 0.0

    @property
    def can_judge(self) -> bool:
        """Whether there is a band or enough history for evidence."""
        return self.scores is not None

    def level(self) -> Array:
        """Return logarithms that are spread like healthy values, of shape (n,); maybe empty."""
        if len(self.reference) < FIRST_REFERENCE and self.band is not None:
            return band_sample(self.band)
        return self.reference

    @property
    def is_watched(self) -> bool:
        """Whether the evidence for a drop is over the watch limit, and no alarm is open yet."""
        return self.open is None and self.runs > 0 and float(self.down[-1]) >= self.watch

    @property
    def open_alarm(self) -> Alarm | None:
        """The alarm that is open, or None."""
        return self._told(self.open) if self.open else None

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """All alarms in the order in which they were raised; the last may be open."""
        every = (*self.found, self.open) if self.open else self.found
        return tuple(self._told(found) for found in every)

    def _told(self, found: _Found) -> Alarm:
        stop = min(self.runs, found.raised + 1 + _AFTER_ALARM)
        if found.ended is not None:
            stop = max(found.raised + 1, min(stop, found.ended))
        first = max(0, found.start - _BEFORE_ONSET)
        earlier = [other.ended for other in self.found if other.raised < found.raised]
        first = max([first, *(ended for ended in earlier if ended is not None)])
        # runs that the reference was learnt from were never judged, and have no increments
        learnt = np.flatnonzero(~self.increments[first : found.start].any(axis=1))
        first += int(learnt[-1]) + 1 if learnt.size else 0
        increments = self.increments[first:stop, found.design].astype(float)
        onset, low, high = (first + i for i in onset_interval(increments, found.raised - first))
        after = self.logarithms[onset : found.ended]
        return Alarm(
            direction=DOWN if found.design < len(DROPS) else UP,
            raised=found.raised,
            onset=onset,
            onset_low=low,
            onset_high=high,
            ratio=level_ratio(found.before, after, found.inflation),
            score=found.score,
            limit=found.limit,
            design=DESIGNS[found.design],
            ended=found.ended,
            closed=found.closed,
            end=found.end,
        )


def begin(
    band: Quartiles | None = None,
    *,
    history: ArrayLike = (),
    limit: float = DEGRADED,
    watch: float = WATCH,
) -> Chart:
    """Return a chart that has seen no run.

    Args:
        band: published quartiles, in the unit of the series.
        history: earlier values that are known to be healthy, in the order of time; a reference
            from the first run on. The newest `LARGEST_REFERENCE` are used.
        limit: the evidence, in nats, at which an alarm is raised (`limits.limit_for`).
        watch: the evidence at which the reference stops growing.

    Raises:
        ValueError: a value of `history` or a quartile is not a positive finite number, the
            quartiles are out of order, or a limit is not positive.
    """
    if not (limit > 0 and watch > 0):
        raise ValueError(f"limits are positive: limit {limit}, watch {watch}")
    empty = np.empty(0)
    chart = Chart(
        band=band,
        limit=float(limit),
        watch=float(watch),
        logarithms=empty,
        increments=np.empty((0, len(DESIGNS)), dtype=np.float32),
        down=empty,
        up=empty,
        reference=logarithms_of(history)[-LARGEST_REFERENCE:],
        correlation=0.0,
        scores=None,
        sums=np.zeros(len(DESIGNS)),
        starts=np.zeros(len(DESIGNS), dtype=int),
        usable=np.empty(0, dtype=bool),
        joined=0,
        restarted=0,
        open=None,
        recovery=np.zeros(1),
        recovery_start=0,
    )
    return _learnt(chart)


def follow(
    values: ArrayLike,
    band: Quartiles | None = None,
    *,
    history: ArrayLike = (),
    resets: Sequence[int] = (),
    limit: float = DEGRADED,
    watch: float = WATCH,
) -> Chart:
    """Return the chart of a series: `begin`, then `extend`."""
    chart = begin(band, history=history, limit=limit, watch=watch)
    return extend(chart, values, resets=resets)


def extend(chart: Chart, values: ArrayLike, *, resets: Sequence[int] = ()) -> Chart:
    """Return `chart` with further runs.

    Args:
        chart: stays as it is.
        values: positive values in the unit of the series, in the order of time, one a job.
        resets: the runs, counted from the first that the chart ever got, from which on a person
            declared a new normal. The reference and the evidence start anew there, an open alarm
            ends, and the band, which describes the old normal, no longer holds.

    Raises:
        ValueError: a value is not a positive finite number, or a reset lies among runs that the
            chart has seen or beyond the last.
    """
    added = logarithms_of(values)
    total = chart.runs + len(added)
    marks = sorted(set(resets))
    if marks and not (chart.runs <= marks[0] and marks[-1] < total):
        raise ValueError(f"resets {marks} are not among the runs {chart.runs} to {total - 1}")
    return _Drawing(chart, added).through(marks)


def logarithms_of(values: ArrayLike) -> Array:
    """Return the logarithms of `values`, of shape (n,).

    Raises:
        ValueError: one of them is not a positive finite number.
    """
    numbers = np.atleast_1d(np.asarray(values, dtype=float))
    if numbers.ndim != 1:
        raise ValueError(f"the values of one series have one dimension, not {numbers.ndim}")
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers > 0)))
    if wrong.size:
        raise ValueError(f"value {wrong[0]} is {numbers[wrong[0]]}: not a positive finite number")
    return np.log(numbers)


def _learnt(chart: Chart) -> Chart:
    """Return `chart` with the scores that its reference and its band now give."""
    size = len(chart.reference)
    published = band_cells(chart.band) if chart.band is not None else None
    if size < FIRST_REFERENCE:
        return replace(chart, scores=published, correlation=0.0)
    correlation = serial_correlation(chart.reference)
    # the mean of n such runs varies like that of so many independent ones
    own = history_cells(chart.reference, size / inflation(correlation) ** 2)
    scores: Scores = own
    if published is not None and size < FULL_REFERENCE:
        share = (size - FIRST_REFERENCE) / (FULL_REFERENCE - FIRST_REFERENCE)
        scores = blended(own, published, share)
    return replace(chart, scores=scores, correlation=correlation)


class _Drawing:
    """One call of `extend` at work: the chart so far, and arrays that are filled in place."""

    def __init__(self, chart: Chart, added: Array) -> None:
        seen, total = chart.runs, chart.runs + len(added)
        self.at = seen
        self.total = total
        self.logarithms = np.concatenate((chart.logarithms, added))
        self.increments = np.zeros((total, len(DESIGNS)), dtype=np.float32)
        self.increments[:seen] = chart.increments
        self.evidence = {DOWN: np.zeros(total), UP: np.zeros(total)}
        self.evidence[DOWN][:seen], self.evidence[UP][:seen] = chart.down, chart.up
        self.usable = np.ones(total, dtype=bool)
        self.usable[:seen] = chart.usable
        self.chart = chart
        self.sums, self.starts = chart.sums.copy(), chart.starts.copy()

    def through(self, marks: Sequence[int]) -> Chart:
        """Draw all runs, starting anew at each of `marks`."""
        for mark in marks:
            self._until(mark)
            self._restart(mark)
        self._until(self.total)
        return replace(
            self.chart,
            logarithms=self.logarithms,
            increments=self.increments,
            down=self.evidence[DOWN],
            up=self.evidence[UP],
            usable=self.usable,
            sums=self.sums,
            starts=self.starts,
        )

    def _until(self, stop: int) -> None:
        while self.at < stop:
            if self.chart.open is not None:
                self._while_open(stop)
            elif self.chart.scores is None:
                self._while_learning(stop)
            else:
                self._while_quiet(stop)

    def _restart(self, mark: int) -> None:
        found = self.chart.found
        if self.chart.open is not None:
            # an onset cannot lie behind the mark, nor a mark before the run that raised it
            found = (*found, replace(self.chart.open, ended=mark, closed=mark, end=NEW_NORMAL))
        self.sums[:], self.starts[:] = 0.0, mark
        self.chart = _learnt(
            replace(
                self.chart,
                band=None,
                reference=np.empty(0),
                joined=mark,
                restarted=mark,
                open=None,
                found=found,
            )
        )

    def _while_learning(self, stop: int) -> None:
        needed = FIRST_REFERENCE - len(self.chart.reference)
        end = min(stop, self.at + needed)
        reference = np.concatenate((self.chart.reference, self.logarithms[self.at : end]))
        self.starts[:] = end
        self.chart = _learnt(replace(self.chart, reference=reference, joined=end))
        self.at = end

    def _scored(self, stop: int) -> Array:
        """Return the increments of the runs up to `stop`, of shape (runs, designs)."""
        assert self.chart.scores is not None
        scores = self.chart.scores.scores(self.logarithms[self.at : stop])
        return grained(scores / self.chart.scale)

    def _while_quiet(self, stop: int) -> None:
        joining, due = self._next_growth()
        end = min(stop, max(due, self.at) + _CHUNK)
        scores = self._scored(end)
        sums = _cusum(scores, self.sums)
        best = {name: sums[:, columns].max(axis=1) for name, columns in _DIRECTIONS}
        most = np.maximum(best[DOWN], best[UP])
        last = len(most) - 1
        alarm = _first(most >= self.chart.limit, last + 1)
        grow = max(due - self.at, 0)
        grow += _first(most[grow:] < self.chart.watch, last + 1)
        event = min(alarm, grow, last)
        begun, done = self.at, self.at + event + 1
        self.increments[begun:done] = scores[: event + 1]
        for name, evidence in best.items():
            self.evidence[name][begun:done] = evidence[: event + 1]
        zeros = sums[: event + 1] == 0
        latest = event - np.argmax(zeros[::-1], axis=0)
        self.starts = np.where(zeros.any(axis=0), begun + latest + 1, self.starts)
        self.sums = sums[event].copy()
        self.at = done
        if alarm == event:
            self._raise(done - 1)
        elif grow == event:
            self._grow(joining)

    def _next_growth(self) -> tuple[int, int]:
        """Return up to which run the reference grows next, and the run after which it may."""
        size = len(self.chart.reference)
        target = next((milestone for milestone in GROWTH if milestone > size), None)
        if target is None:
            return 0, self.total
        first = self.chart.joined
        there = np.flatnonzero(self.usable[first : first + target - size + self._gaps(first)])
        if len(there) < target - size:
            return 0, self.total
        newest = first + int(there[target - size - 1])
        return newest + 1, newest + LAG

    def _gaps(self, first: int) -> int:
        return int(np.count_nonzero(~self.usable[first:]))

    def _grow(self, joining: int) -> None:
        first = self.chart.joined
        joined = self.logarithms[first:joining][self.usable[first:joining]]
        reference = np.concatenate((self.chart.reference, joined))
        self.chart = _learnt(replace(self.chart, reference=reference, joined=joining))

    def _raise(self, raised: int) -> None:
        design = int(np.argmax(self.sums))
        found = _Found(
            design=design,
            raised=raised,
            start=int(self.starts[design]),
            score=float(self.sums[design]),
            limit=self.chart.limit,
            before=self.chart.level(),
            inflation=inflation(self.chart.correlation),
        )
        is_down = design < len(DROPS)
        since = self.logarithms[found.start : raised + 1]
        against = _opposite(design)
        if (level_ratio(found.before, since).value < 1) != is_down:
            # Where the history has two levels, leaving one of them may look like any change. What
            # is no lower than before is no drop, whatever its ranks say.
            mine = _DIRECTIONS[0 if is_down else 1][1]
            self.sums[mine], self.starts[mine] = 0.0, raised + 1
            return
        self.sums[against], self.starts[against] = 0.0, raised + 1
        self.chart = replace(
            self.chart,
            open=found,
            recovery=np.zeros(len(_recovery_designs(design))),
            recovery_start=raised + 1,
        )

    def _while_open(self, stop: int) -> None:
        found = self.chart.open
        assert found is not None and self.chart.scores is not None
        scores = self._scored(stop)
        columns = _recovery_designs(found.design)
        # without what was taken off for the error of the reference, which no longer matters
        penalty = self.chart.scores.penalty[columns] / self.chart.scale
        back = _cusum(grained(-scores[:, columns] - penalty), self.chart.recovery)
        against = _opposite(found.design)
        opposite = _cusum(scores[:, against], self.sums[against])
        turned = opposite.max(axis=1) >= self.chart.limit
        over = (back.min(axis=1) >= RECOVERY) | turned
        event = min(_first(over, len(over)), len(over) - 1)
        begun, done = self.at, self.at + event + 1
        self.increments[begun:done] = scores[: event + 1]
        start = _last_zero(
            back[: event + 1, columns.index(found.design)], begun, self.chart.recovery_start
        )
        worst = int(np.argmax(opposite[event]))
        turn = _last_zero(opposite[: event + 1, worst], begun, int(self.starts[against][worst]))
        # shown, and no more: an open alarm is closed by evidence for recovery alone
        shown = self.sums[found.design] + np.cumsum(scores[: event + 1, found.design])
        name = DOWN if found.design < len(DROPS) else UP
        self.evidence[name][begun:done] = np.maximum(shown, 0.0)
        self.sums[found.design] = shown[-1]
        zeros = opposite[: event + 1] == 0
        latest = event - np.argmax(zeros[::-1], axis=0)
        self.starts[against] = np.where(zeros.any(axis=0), begun + latest + 1, self.starts[against])
        self.sums[against] = opposite[event]
        self.at = done
        if over[event]:
            # a change to the other side is the end of this one; the runs since are drawn again,
            # from no evidence, and raise the alarm that they deserve
            start = min(start, max(turn, found.raised + 1)) if turned[event] else start
            ended = replace(found, ended=start, closed=done - 1, end=RECOVERED)
            self.usable[found.start : start] = False
            self.sums[:], self.starts[:] = 0.0, start
            self.at = start
            self.chart = replace(self.chart, open=None, found=(*self.chart.found, ended))
            return
        self.chart = replace(self.chart, recovery=back[event].copy(), recovery_start=start)


def _recovery_designs(design: int) -> list[int]:
    """Return the designs that must all speak for recovery: as large as `design`, down to half.

    The design that fitted best at an alarm may be larger than the change is. Then the true level
    lies between it and the healthy one, and it alone would soon take that for a recovery.
    """
    columns = next(columns for _, columns in _DIRECTIONS if columns.start <= design < columns.stop)
    size = abs(np.log(DESIGNS[design]))
    return [
        column
        for column in range(columns.start, design + 1)
        if abs(np.log(DESIGNS[column])) >= _RECOVERY_SHARE * size
    ]


def _opposite(design: int) -> slice:
    """Return the designs of the other direction than `design`."""
    return _DIRECTIONS[1 if design < len(DROPS) else 0][1]


def _cusum(scores: Array, begun: Array) -> Array:
    """Return the sums after each run, from `begun` on, never below zero; by column."""
    total = np.cumsum(scores, axis=0)
    return total - np.minimum(np.minimum.accumulate(total, axis=0), -begun)


def _last_zero(sums: Array, first: int, otherwise: int) -> int:
    """Return the run after the last of `sums` that is zero, the first of them being `first`."""
    zeros = np.flatnonzero(sums == 0)
    return first + int(zeros[-1]) + 1 if zeros.size else otherwise


def _first(true: NDArray[np.bool_], otherwise: int) -> int:
    """Return the first index at which `true` is so, or `otherwise`."""
    found = int(np.argmax(true)) if true.size else 0
    return found if true.size and true[found] else otherwise
