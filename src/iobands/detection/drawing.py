"""Further runs for a chart: evidence run by run, alarms, and a reference that grows meanwhile.

`extend` returns a chart with further runs, and `follow` begins one first. However the runs are
dealt out to calls of `extend`, the outcome is the same to the last bit. May know: numpy, the chart
and its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from iobands.detection.alarm import DOWN, NEW_NORMAL, RECOVERED, SETTLED, UP, Alarm, Found, told
from iobands.detection.change import level_ratio
from iobands.detection.chart import (
    DEGRADED,
    FIRST_REFERENCE,
    FULL_REFERENCE,
    LAG,
    LEAST,
    RECOVERY,
    WATCH,
    Chart,
    Learnt,
    begin,
    logarithms_of,
)
from iobands.detection.correlation import inflation
from iobands.detection.scores import DESIGNS, DROPS, Array, Quartiles, grained, logarithms
from iobands.detection.settling import (
    CREEPING,
    NEAR,
    Levels,
    after_the_last_off,
    begun_with,
    crept,
    is_back,
    is_surely_small,
    near,
    shifts,
)
from iobands.detection.sums import SIDES, cusum, first_true, last_zero, opposite, recovery_designs

#: The reference is learnt anew when it has grown to one of these sizes.
GROWTH: Final = (FIRST_REFERENCE, 25, 30, 40, 50, FULL_REFERENCE, 80, 100, 130, 160, 200)

_CHUNK: Final = 64


def follow(
    values: ArrayLike,
    band: Quartiles | None = None,
    *,
    history: ArrayLike = (),
    resets: Sequence[int] = (),
    limit: float = DEGRADED,
    watch: float = WATCH,
    least: float = LEAST,
) -> Chart:
    """Return the chart of a series: `begin`, then `extend`."""
    chart = begin(band, history=history, limit=limit, watch=watch, least=least)
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
            elif not self.chart.can_judge:
                self._while_learning(stop)
            else:
                self._while_quiet(stop)

    def _restart(self, mark: int) -> None:
        if self.chart.open is not None:
            # an onset cannot lie behind the mark, nor a mark before the run that raised it
            self._end(mark, mark, NEW_NORMAL)
        self.sums[:], self.starts[:] = 0.0, mark
        self.chart = replace(
            self.chart,
            learnt=Learnt(np.empty(0), None),
            joined=mark,
            levels=self._levels(mark, 0.0),
        )

    def _end(self, ended: int, closed: int, end: str) -> None:
        chart = self.chart
        assert chart.open is not None
        seen = self.logarithms, self.increments
        alarm = told(chart.open, chart.earlier, *seen, ended, closed, end)
        self.chart = replace(
            chart,
            open=None,
            recovery=np.zeros(1),
            recovery_start=0,
            ended=(*chart.ended, alarm),
        )

    def _while_learning(self, stop: int) -> None:
        needed = FIRST_REFERENCE - len(self.chart.reference)
        end = min(stop, self.at + needed)
        reference = np.concatenate((self.chart.reference, self.logarithms[self.at : end]))
        self.starts[:] = end
        self._learn(reference, end)
        self.at = end

    def _scored(self, stop: int) -> Array:
        """Return the increments of the runs up to `stop`, of shape (runs, designs)."""
        assert self.chart.scores is not None
        values = self.logarithms[self.at : stop] - self.chart.shift
        scores = self.chart.scores.scores(values)
        return grained(scores / self.chart.scale)

    def _while_quiet(self, stop: int) -> None:
        joining, due = self._next_growth()
        end = min(stop, max(due, self.at) + _CHUNK)
        scores = self._scored(end)
        sums = cusum(scores, self.sums)
        best = {name: sums[:, columns].max(axis=1) for name, columns in SIDES.items()}
        most = np.maximum(best[DOWN], best[UP])
        last = len(most) - 1
        alarm = first_true(most >= self.chart.limit, last + 1)
        grow = max(due - self.at, 0)
        grow += first_true(most[grow:] < self.chart.watch, last + 1)
        away = self._crept(end, last + 1)
        event = min(alarm, grow, away, last)
        begun, done = self.at, self.at + event + 1
        self.increments[begun:done] = scores[: event + 1]
        for name, evidence in best.items():
            self.evidence[name][begun:done] = evidence[: event + 1]
        zeros = sums[: event + 1] == 0
        latest = event - np.argmax(zeros[::-1], axis=0)
        self.starts = np.where(zeros.any(axis=0), begun + latest + 1, self.starts)
        self.sums = sums[event].copy()
        self.at = done
        if away == event:
            self._open(self._crept_away(done - 1))
        elif alarm == event:
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
        values = self.logarithms[first:joining] - shifts(self.chart.levels, first, joining)
        joined = values[self.usable[first:joining]]
        reference = np.concatenate((self.chart.reference, joined))
        self._learn(reference, joining)

    def _learn(self, reference: Array, joined: int) -> None:
        learnt = Learnt(reference, self.chart.band)
        self.chart = replace(self.chart, learnt=learnt, joined=joined)

    def _raise(self, raised: int) -> None:
        design = int(np.argmax(self.sums))
        found = Found(
            design=design,
            raised=raised,
            start=int(self.starts[design]),
            score=float(self.sums[design]),
            limit=self.chart.limit,
            before=self.chart.level(),
            inflation=inflation(self.chart.correlation),
        )
        is_down = design < len(DROPS)
        since = self.logarithms[found.start : raised + 1] - self.chart.shift
        if (level_ratio(found.before, since).value < 1) != is_down:
            # Where the history has two levels, leaving one of them may look like any change. What
            # is no lower than before is no drop, whatever its ranks say.
            mine = SIDES[DOWN if is_down else UP]
            self.sums[mine], self.starts[mine] = 0.0, raised + 1
            return
        seen = self.logarithms[: raised + 1], self.increments[: raised + 1]
        change = told(found, self.chart.earlier, *seen, raised + 1, raised, SETTLED)
        # of runs that depend on each other too few would ever be sure
        size = level_ratio(found.before, self.logarithms[change.onset : raised + 1])
        if is_surely_small(size, self.chart.least):
            self._settle(change)
        else:
            self._open(found)

    def _settle(self, change: Alarm) -> None:
        """Hold the runs from here on against the level after `change`, which does not matter."""
        shift = float(logarithms(np.array(change.ratio.value)))
        self.sums[:], self.starts[:] = 0.0, change.raised + 1
        self.chart = replace(
            self.chart,
            settled=(*self.chart.settled, change),
            levels=self._levels(change.onset, shift),
        )

    def _levels(self, since: int, shift: float) -> Levels:
        """Return the levels when there is another one `since` a run."""
        levels = self.chart.levels
        return (*levels, (since, shift)) if shift or levels else ()

    def _open(self, found: Found) -> None:
        """Open an alarm, which is held against the reference itself."""
        raised = found.raised
        against = opposite(found.design)
        self.sums[against], self.starts[against] = 0.0, raised + 1
        self.chart = replace(
            self.chart,
            open=found,
            recovery=np.zeros(len(recovery_designs(found.design))),
            recovery_start=raised + 1,
            levels=self._levels(raised + 1, 0.0),
        )

    def _crept(self, end: int, otherwise: int) -> int:
        """Return after how many of the runs before `end` the level has crept away."""
        if not self.chart.shift:
            return otherwise
        reference = float(np.median(self.chart.level()))
        off = crept(self.logarithms, self.chart.levels, self.at, end, reference)
        return first_true(off >= -math.log1p(-self.chart.least), otherwise)

    def _crept_away(self, raised: int) -> Found:
        """Return the alarm for a level that crept away in steps which were each too small."""
        levels = self.chart.levels
        side = DOWN if self.chart.shift < 0 else UP
        return Found(
            design=SIDES[side].start,  # the least of them
            raised=raised,
            start=begun_with(levels),
            score=self.chart.limit,  # which the first of these steps has passed
            limit=self.chart.limit,
            before=self.chart.level(),
            inflation=inflation(self.chart.correlation),
            crept=max(levels[-1][0], raised - CREEPING + 1),
        )

    def _while_open(self, stop: int) -> None:
        found = self.chart.open
        assert found is not None and self.chart.scores is not None
        scores = self._scored(stop)
        columns = recovery_designs(found.design)
        # without what was taken off for the error of the reference, which no longer matters
        penalty = self.chart.scores.penalty[columns] / self.chart.scale
        back = cusum(grained(-scores[:, columns] - penalty), self.chart.recovery)
        against = opposite(found.design)
        other = cusum(scores[:, against], self.sums[against])
        turned = other.max(axis=1) >= self.chart.limit
        over = (back.min(axis=1) >= RECOVERY) | turned
        event = min(first_true(over, len(over)), len(over) - 1)
        back_at = self._back_at(found, self.at + event + (not over[event]))
        if back_at is not None:
            event = back_at - self.at
        begun, done = self.at, self.at + event + 1
        self.increments[begun:done] = scores[: event + 1]
        start = last_zero(
            back[: event + 1, columns.index(found.design)], begun, self.chart.recovery_start
        )
        worst = int(np.argmax(other[event]))
        turn = last_zero(other[: event + 1, worst], begun, int(self.starts[against][worst]))
        # shown, and no more: an open alarm is closed by evidence for recovery alone
        shown = self.sums[found.design] + np.cumsum(scores[: event + 1, found.design])
        name = DOWN if found.design < len(DROPS) else UP
        self.evidence[name][begun:done] = np.maximum(shown, 0.0)
        self.sums[found.design] = shown[-1]
        zeros = other[: event + 1] == 0
        latest = event - np.argmax(zeros[::-1], axis=0)
        self.starts[against] = np.where(zeros.any(axis=0), begun + latest + 1, self.starts[against])
        self.sums[against] = other[event]
        self.at = done
        if back_at is not None:
            self._come_back(found, back_at)
        elif over[event]:
            # a change to the other side is the end of this one; the runs since are drawn again,
            # from no evidence, and raise the alarm that they deserve
            start = min(start, max(turn, found.raised + 1)) if turned[event] else start
            self._end(start, done - 1, RECOVERED)
            self.usable[found.start : start] = False
            self.sums[:], self.starts[:] = 0.0, start
            self.at = start
        else:
            self.chart = replace(self.chart, recovery=back[event].copy(), recovery_start=start)

    def _back_at(self, found: Found, stop: int) -> int | None:
        """Return the run before `stop` with which the level is as good as that of before."""
        first = max(found.raised + 1, self.at - NEAR + 1)
        for run in near(self.logarithms, first, stop, found.before, self.chart.least):
            newest = self.logarithms[run + 1 - NEAR : run + 1]
            if is_back(found.before, newest, found.inflation, self.chart.least):
                return int(run)
        return None

    def _come_back(self, found: Found, run: int) -> None:
        """End the open alarm with `run`, by a level that does not matter, and settle for it."""
        first = run + 1 - NEAR
        newest = self.logarithms[first : run + 1]
        level = level_ratio(found.before, newest).value
        start = first + after_the_last_off(newest, found.before, self.chart.least)
        self._end(start, run, RECOVERED)
        self.usable[found.start : start] = False
        self.sums[:], self.starts[:] = 0.0, start
        self.at = start
        shift = float(logarithms(np.array(level)))
        self.chart = replace(self.chart, levels=self._levels(start, shift))
