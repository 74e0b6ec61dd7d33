"""The detector: runs of a series in, evidence and lasting changes out.

A CUSUM of robust likelihood ratios for each design change, on the ranks of the runs in the
baseline. Runs join the baseline once `LAG` later runs were quiet, never while a change is open.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from iobands.judge.detect.baseline import (
    FIRST_BASELINE,
    FULL_BASELINE,
    LARGEST_BASELINE,
    MOST_CORRELATION,
    WATCH,
    Baseline,
    scale_for,
)
from iobands.judge.detect.chart import (
    SIDES,
    SIZES,
    USED,
    Chart,
    OpenChange,
    Settled,
    Terms,
    deep_scores,
    direction_of,
    is_wider,
    kind_of,
    levels_of,
    onset_interval,
    recovery_designs,
    slide_begins,
)
from iobands.judge.detect.prior import RECOVERED_FROM, Month
from iobands.judge.detect.scores import (
    DESIGNS,
    EVERY,
    MODE,
    OTHERS,
    SPREAD,
    WEIGHTS,
    Quartiles,
    sure_end,
)
from iobands.judge.detect.spacing import Spacing
from iobands.snapshot.history import (
    ADOPTED,
    DOWN,
    RECOVERED,
    UP,
    Array,
    Change,
    Fall,
    Flags,
    Ratio,
    State,
    Turn,
    level_ratio,
    median_of,
)

#: How many later runs must have been quiet before a run joins the baseline.
LAG: Final = 30
#: The smallest change of level that counts, as a share of the baseline's.
LEAST: Final = 0.05
#: How many runs an improvement must last to become the baseline.
ADOPTION: Final = 30

# The sizes to which the baseline grows.
_GROWTH: Final = (FIRST_BASELINE, 30, 40, FULL_BASELINE, 90, 130, LARGEST_BASELINE)
_CHUNK: Final = 64
# How many runs are scored at a time. Scoring all that follows would be wasted at each change.
_AT_A_TIME: Final = 256
# The kind of an open change is decided again each time that it has this many more runs.
_AGAIN: Final = 10
# This many runs at the level of the baseline end a change; fewer do not, however steady they are.
_BACK: Final = 8
# Designs of at least this share of the certain size of a change have to show its recovery.
_SURELY: Final = 0.8
# The number of runs that give the level of a drop, under which a further drop is looked for: first
# the smaller, and later the larger if nothing happened by then.
_LEVELS: Final = (8, 30)
_QUIET: Final = 1.0
# Outliers come together: of two at most this many runs apart, the later one says less.
_TOGETHER: Final = 10
# A run that an earlier one asked for confirms a change if it shows more than this share of it.
_CONFIRMS: Final = 0.5
# The newest level comes from this many runs.
_NEWEST: Final = 10
# Runs that date an onset: before the last zero of the evidence, and after the change was raised.
_BEFORE_ONSET: Final = 60
_AFTER_RAISED: Final = 30


# The rows of the evidence.
_PLACES: Final = {DOWN: 0, UP: 1}


class Detector:
    """One pass over the runs of a series, in the order of time; arrays are filled in place.

    `baseline` judges the first runs. A change smaller than `least`, as a share of the level, does
    not count. The first of `months` begins with the first run. `settled` is the settled state of a
    chart of the first of these runs, with equal arguments.
    """

    def __init__(
        self,
        logarithms: Array,
        spacing: Spacing,
        baseline: Baseline,
        months: Sequence[Month],
        least: float,
        settled: Settled | None = None,
    ) -> None:
        """Begin before the first run, or where `settled` ends."""
        self.logarithms, self.spacing = logarithms, spacing
        self.total = len(logarithms)
        self.least = least
        self.months = months
        firsts = [month.first for month in months]
        self.month_of = np.searchsorted(firsts, np.arange(max(self.total, 1)), side="right") - 1
        self.thresholds = np.array([month.threshold for month in months])
        self.says = np.zeros((2, self.total, EVERY), dtype=np.float32)
        self.increments, self.alone = self.says
        self.evidence = np.zeros((2, self.total))
        self.sums, self.starts = np.zeros(EVERY), np.zeros(EVERY, dtype=int)
        self.usable, self.weights = ~spacing.asked, np.ones(self.total)
        self.changes: list[Change[int]] = []
        self.baselines = [(0, baseline)]
        self.open: OpenChange | None = None
        self.at, self.joined, self.dismissed = 0, 0, 0
        self.settled: Settled | None = None
        if settled is not None:
            self._go_on(settled)

    @property
    def baseline(self) -> Baseline:
        """The baseline that judges the next run."""
        return self.baselines[-1][1]

    def chart(self) -> Chart:
        """Judge all runs."""
        while self.at < self.total:
            if self.open is not None:
                self._while_open(self.open)
            elif self.baseline.can_judge:
                self._while_quiet()
            else:
                self._while_learning()
        settled = self._settle()
        if (change := self.open) is not None:
            self.changes.append(self._described(change, self.total))
        return Chart(
            baselines=tuple(self.baselines),
            threshold=self._month(self.total - 1).threshold,
            least=self.least,
            logarithms=self.logarithms,
            increments=self.increments,
            alone=self.alone,
            down=self.evidence[_PLACES[DOWN]],
            up=self.evidence[_PLACES[UP]],
            sums=self.sums,
            starts=self.starts,
            changes=tuple(self.changes),
            terms=self._terms(slice(-1, None)),
            back=self._back(change) if change else 0.0,
            back_since=change.recovery_start if change else 0,
            settled=settled,
        )

    def _settle(self) -> Settled:
        """Return the state before the first step that more runs would change, and keep it."""
        if self.settled is not None:
            return self.settled
        needed = [self.at - USED, int(self.starts.min(initial=self.at))]
        if self.open is not None:
            needed.append(self.open.start - _BEFORE_ONSET)
        newest = max(min(needed), 0)
        self.settled = Settled(
            at=self.at,
            says=self.says[:, newest : self.at].copy(),
            evidence=self.evidence[:, : self.at].copy(),
            usable=self.usable[: self.at].copy(),
            sums=self.sums.copy(),
            starts=self.starts.copy(),
            baselines=tuple(self.baselines),
            changes=tuple(self.changes),
            open=self.open,
            joined=self.joined,
            dismissed=self.dismissed,
        )
        return self.settled

    def _go_on(self, settled: Settled) -> None:
        self.at, self.joined = settled.at, settled.joined
        self.says[:, self.at - settled.says.shape[1] : self.at] = settled.says
        self.evidence[:, : self.at] = settled.evidence
        self.usable[: self.at] = settled.usable
        self.baselines, self.changes = [*settled.baselines], [*settled.changes]
        self.sums, self.starts = settled.sums.copy(), settled.starts.copy()
        self.open, self.dismissed = settled.open, settled.dismissed

    def _month(self, run: int) -> Month:
        return self.months[self.month_of[max(run, 0)]]

    def _learn(self, runs: Array, band: Quartiles | None, joined: int) -> None:
        """Judge the next runs by a baseline of `runs`, the usable ones before `joined`."""
        prior = self._month(self.at - 1).prior
        self.baselines.append((self.at, Baseline(runs, band, prior.correlation)))
        self.joined = joined

    def _terms(self, runs: slice) -> Terms:
        """Return the terms on which `runs` are scored, by the baseline and their months."""
        baseline, month_of = self.baseline, self.month_of[runs]
        own = (baseline.deep_runs, len(baseline.runs)) if baseline.can_judge else (0, 0)
        rows = []
        for month in self.months[month_of[0] : month_of[-1] + 1]:
            prior, threshold = month.prior, month.threshold
            correlation = baseline.correlation_by(prior.correlation)
            known = correlation if prior.correlation is None else prior.correlation
            scale = scale_for(correlation, threshold, baseline.youth)
            deep_scale = scale_for(min(max(known, 0.0), MOST_CORRELATION), threshold)
            first = prior.first_of(*own)
            rates = (first, max(prior.again, first), prior.rate)
            rows.append((scale, correlation, deep_scale, *rates, prior.new, prior.continued))
        return Terms(*np.array(rows).T[:, month_of - month_of[0]])

    def _scored(self, stop: int) -> Array:
        """Return the scores of the next runs, up to before `stop`, of shape (runs, designs)."""
        assert self.baseline.scores is not None
        begun = int(self.spacing.begun[self.at])
        runs = slice(begun, stop)
        measured, terms = self.logarithms[runs], self._terms(runs)
        close = self.spacing.close[runs]
        scores, weights = self.baseline.scores.scores(measured), np.ones(len(measured))
        alone = scores / terms.scale[:, None]
        if close.any():
            normal = self.baseline.normal(measured)
            weights, new, shown = self.spacing.foreseen(runs, normal, terms.correlation, terms.new)
            scores[close, OTHERS] = np.minimum(scores[close, OTHERS], 0.0)
            scores *= weights[:, None]
            # not while a change is open, as the level to predict runs from is hardly known, and
            # not with two modes, which a change does not move like a normal distribution
            if self.open is None and not self.baseline.lower_mode:
                shifts, moves = slice(0, len(DESIGNS)), self.baseline.moves
                found = moves * (new / shown)[close, None] - moves**2 / 2
                found = WEIGHTS[shifts] * found - self.baseline.scores.penalty[shifts]
                scores[close, shifts] = weights[close, None] * found
        scores /= terms.scale[:, None]
        first, places = max(begun - _TOGETHER, 0), np.arange(begun, stop)
        far = first + np.flatnonzero(self.logarithms[first : stop - 1] < self.baseline.fences[0])
        last_far = np.append(-_TOGETHER - 1, far)[np.searchsorted(far, places)]
        streak = places - last_far <= _TOGETHER
        deep = measured < self.baseline.deep
        if deep.any():
            # the correlation of ordinary runs, and the weights by it, do not hold for outliers
            weights[deep] = 1.0
            for says, after in ((scores, streak & ~close), (alone, streak)):
                says[:, SIDES[DOWN]] = deep_scores(
                    self.baseline, measured, says[:, SIDES[DOWN]], terms, after
                )
                says[deep, SPREAD] = 0.0  # an outlier says nothing about the spread
        self.weights[runs], self.alone[runs] = weights, alone
        if close.any() and self.open is None:
            down = scores[:, SIDES[DOWN]]
            lasts = [self.months[each].prior.lasts for each in self.month_of[runs]]
            ratios = np.exp(down.max(axis=1))
            after = streak & ~close
            lasting = self.spacing.lasting(runs, ratios, after, terms.rate, lasts)
            down[:] = np.where(down > 0, np.maximum(down - lasting[:, None], 0.0), down)
        return scores[self.at - begun :]

    def _while_learning(self) -> None:
        wanted = FIRST_BASELINE - len(self.baseline.runs)
        found = self.at + np.flatnonzero(self.usable[self.at :])[:wanted]
        end = self.total
        if len(found) == wanted:
            end = int(found[-1]) + 1
        else:
            self._settle()
        runs = np.concatenate((self.baseline.runs, self.logarithms[found]))
        self.starts[:] = end
        self.alone[self.at : end] = 0.0  # the step before may have scored them, if it adopted
        self.at = end
        self._learn(runs, self.baseline.band, end)

    def _while_quiet(self) -> None:
        joining, due = self._next_growth()
        wanted = min(max(due, self.at) + _CHUNK, self.at + _AT_A_TIME)
        end = min(wanted, self.total)
        scores = self._scored(end)
        sums = _cusum(scores, self.sums)
        most = sums.max(axis=1)
        last = len(most) - 1
        is_over = most >= self.thresholds[self.month_of[self.at : end]]
        if self.changes and (closed := self.changes[-1].closed) is not None:
            # at these runs it was not yet known that the change before had ended
            is_over[: max(closed - self.at, 0)] = False
        found = _first_true(is_over)
        grow = max(due - self.at, 0)
        grow += _first_true(most[grow:] < WATCH)
        event = min(found, grow, last)
        if event == last and wanted > self.total:
            self._settle()
        begun, done = self.at, self.at + event + 1
        self.increments[begun:done] = scores[: event + 1]
        for side, columns in SIDES.items():
            self.evidence[_PLACES[side], begun:done] = sums[: event + 1, columns].max(axis=1)
        self.starts = _after_last_zero(sums[: event + 1], begun, self.starts)
        self.sums = sums[event].copy()
        self.at = done
        if found == event:
            self._raise(done - 1)
        elif grow == event:
            joined = self.logarithms[self.joined : joining][self.usable[self.joined : joining]]
            runs = np.concatenate((self.baseline.runs, joined))
            self._learn(runs, self.baseline.band, joining)

    def _next_growth(self) -> tuple[int, int]:
        """Return the end of the runs that join the baseline next, and the run at which they do."""
        size = len(self.baseline.runs)
        target = next((milestone for milestone in _GROWTH if milestone > size), None)
        usable = np.flatnonzero(self.usable[self.joined :])
        if target is None or len(usable) < target - size:
            return 0, self.total
        newest = self.joined + int(usable[target - size - 1])
        later = newest + 1 + np.flatnonzero(~self.spacing.asked[newest + 1 :])
        return newest + 1, int(later[LAG - 1]) if len(later) >= LAG else self.total

    def _raise(self, raised: int) -> None:
        loudest = int(np.argmax(self.sums))
        start, score = int(self.starts[loudest]), float(self.sums[loudest])
        runs = self.logarithms[start : raised + 1]
        kind, design = kind_of(self.baseline, runs, loudest, self.least, at_first=True)
        direction = direction_of(design)
        since = level_ratio(self.baseline.level, runs)
        onset, low, high = self._onset(design, start, raised, raised + 1)
        change = Change(
            direction=direction,
            since=onset,
            since_low=low,
            since_high=high,
            raised=raised,
            ratio=self._ratio(slice(onset, raised + 1)),
            baseline=math.exp(self.baseline.middle),
            score=score,
            threshold=self._month(raised).threshold,
        )
        empty = np.zeros(len(recovery_designs(design)))
        found = OpenChange(design, start, change, empty, raised + 1)
        # In a history with two levels, leaving one may look like any change: runs that are no lower
        # than the baseline are no drop. A change that is too small to matter does not count either.
        is_none = (since.value < 1) != (direction == DOWN) or change.ratio.is_small(self.least)
        if kind is State.UNSTABLE:
            is_none = not is_wider(self.baseline, runs, self.least)
        if is_none:
            side = OTHERS if loudest in (MODE, SPREAD) else SIDES[direction_of(loudest)]
            self.sums[side], self.starts[side] = 0.0, raised + 1
            self.dismissed = raised + 1  # what follows is another change
        else:
            self.open = self._turned(found, kind, raised + 1)

    def _turned(self, change: OpenChange, kind: State, known: int) -> OpenChange:
        """Return the change, with a turn if the runs before `known` show another kind."""
        begins = None
        if kind is State.DEGRADED:
            first = max([0, *(each.ended for each in self.changes if each.ended is not None)])
            begins = slide_begins(self.logarithms[first:known], self.baseline.inflation)
            kind, begins = (kind, None) if begins is None else (State.SLIDING, first + begins)
        if kind is change.found.kind:
            return change
        turns = (*change.found.turns, Turn(known - 1, kind, begins))
        return replace(change, found=replace(change.found, turns=turns))

    def _look_again(self, change: OpenChange) -> OpenChange:
        """Return an open drop with the kind that all runs so far show; a slide stays one."""
        if not change.found.is_drop or change.found.kind is State.SLIDING:
            return change
        runs = self.logarithms[change.found.since : self.at]
        kind, design = kind_of(self.baseline, runs, change.design, self.least)
        turned = self._turned(change, kind, self.at)
        if turned is change or turned.found.kind is State.SLIDING:
            return turned
        recovery = np.zeros(len(recovery_designs(design)))
        return replace(turned, design=design, recovery=recovery, recovery_start=self.at)

    def _while_open(self, change: OpenChange) -> None:
        # the ends of steps must not depend on how many runs there are, as later steps know more
        due = (change.found.raised - self.at) % _AGAIN
        scores = self._scored(min(self.at + due + 1, self.total))
        back = _cusum(self._over(scores, change), change.recovery)
        last = len(back) - 1
        surely = back[:, -len(self._sure(change)) :].min(axis=1)
        recovered = _first_true(surely >= RECOVERED_FROM)
        level = self._back_to_baseline(change, self.at + min(recovered, last))
        lasted = not change.found.is_drop
        adopted = max(change.start + ADOPTION - 1 - self.at, 0) if lasted else last + 1
        event = min(recovered, last, adopted, last if level is None else level - self.at)
        if event == last < due:
            self._settle()
        begun, done = self.at, self.at + event + 1
        self.increments[begun:done] = scores[: event + 1]
        start = int(_after_last_zero(back[: event + 1, -1], begun, change.recovery_start))
        # it is only reported: an open change ends by the evidence for recovery alone
        shown = self.sums[change.design] + np.cumsum(scores[: event + 1, change.design])
        self.evidence[_PLACES[change.found.direction], begun:done] = np.maximum(shown, 0.0)
        self.sums[change.design] = shown[-1]
        self.at = done
        if level is not None and event == level - begun:
            self._recover(change, self._after_last_off(level), level)
        elif event == recovered:
            self._recover(change, start, done - 1)
        elif event == adopted:
            self._adopt(change)
        else:
            change = replace(change, recovery=back[event].copy(), recovery_start=start)
            self.open = self._look_again(change) if event == due else change

    def _over(self, scores: Array, change: OpenChange) -> Array:
        """Return the evidence of the next runs, with these scores, for the end of a change."""
        assert self.baseline.scores is not None
        runs, columns = slice(self.at, self.at + len(scores)), recovery_designs(change.design)
        # without the penalty for the error of the baseline, which no longer matters
        penalty = self.weights[runs, None] * self.baseline.scores.penalty[columns]
        penalty /= self._terms(runs).scale[:, None]
        found = -scores[:, columns] - penalty
        if change.found.kind is not State.DEGRADED:
            return found
        # the evidence of a run that the changed level never reaches is limited by stray runs alone
        level = median_of(self.logarithms[change.found.since : self.at]) - self.baseline.middle
        low, high = self.baseline.fences
        sure = self.logarithms[runs] > max(high + level, low)
        return np.where(sure[:, None], sure_end(self.spacing.gaps[runs])[:, None], found)

    def _sure(self, change: OpenChange) -> Sequence[int]:
        """Return the designs that have to show recovery: `_SURELY` of the certain size or more.

        All recovery designs while that is not known: the level lies between them and the baseline.
        """
        designs = recovery_designs(change.design)
        since = slice(change.found.since, self.at)
        if since.stop - since.start >= _BACK and change.design < len(DESIGNS):
            ratio = self._ratio(since)
            near = ratio.high if change.found.direction == DOWN else ratio.low
            size = _SURELY * abs(math.log(near)) if 0 < near < math.inf else 0.0
            return [each for each in designs if SIZES[each] >= size] or designs
        return designs

    def _back(self, change: OpenChange) -> float:
        """Return the evidence that the change is over, 0 if the newest run speaks against that."""
        designs = self._sure(change)
        speaks_against = self.increments[-1, designs].max() >= 0
        return 0.0 if speaks_against else float(change.recovery[-len(designs) :].min())

    def _back_to_baseline(self, change: OpenChange, newest: int) -> int | None:
        """Return the first run up to `newest` with which the level is surely back, or None."""
        first = max(change.found.raised + 1, self.at - _BACK + 1)
        if newest + 1 - first < _BACK or change.found.kind is State.UNSTABLE:
            return None
        windows = sliding_window_view(self.logarithms[first : newest + 1], _BACK)
        off = np.abs(np.median(windows, axis=1) - self.baseline.middle)
        for begin in (first + np.flatnonzero(off < -np.log1p(-self.least))).tolist():
            if self._ratio(slice(begin, begin + _BACK)).is_surely_small(self.least):
                return begin + _BACK - 1
        return None

    def _after_last_off(self, newest: int) -> int:
        """Return the run after the last one off the baseline, among `_BACK` runs up to `newest`."""
        first = newest + 1 - _BACK
        off = np.abs(self.logarithms[first:newest] - self.baseline.middle)
        far = np.flatnonzero(off >= -np.log1p(-self.least))
        return first + (int(far[-1]) + 1 if far.size else 0)

    def _recover(self, change: OpenChange, ended: int, closed: int) -> None:
        """End the change at `ended`, and judge the runs from there again, with no evidence yet."""
        self._end(ended, closed, RECOVERED)
        self.usable[change.start : ended] = False
        self.sums[:], self.starts[:] = 0.0, ended
        self.at = ended

    def _adopt(self, change: OpenChange) -> None:
        """Adopt an improvement that lasted: its runs since the onset become the baseline."""
        onset = self._dated(change, self.at).since
        self._end(self.at, self.at - 1, ADOPTED)
        self.sums[:], self.starts[:] = 0.0, self.at
        runs = self.logarithms[onset : self.at][~self.spacing.asked[onset : self.at]]
        self._learn(runs, None, self.at)

    def _end(self, ended: int, closed: int, end: str) -> None:
        assert self.open is not None
        change = self._described(self.open, ended)
        self.changes.append(replace(change, ended=ended, closed=closed, end=end))
        self.open = None

    def _described(self, change: OpenChange, ended: int) -> Change[int]:
        """Return the change by the runs up to `ended`, with its further drops."""
        found, falls = self._dated(change, ended), self._falls(change, ended)
        newest = max([found.since, ended - _NEWEST, *(each.since for each in falls[-1:])])
        runs = slice(found.since, ended)
        since, size = self.logarithms[runs], math.log(found.ratio.value)
        asked = since[self.spacing.asked[runs]]
        confirmed = (asked - self.baseline.middle) * size > _CONFIRMS * size**2
        was, now = levels_of(found.kind, self.baseline.level, since)
        return replace(
            found,
            delay=found.raised - found.since + 1,
            falls=falls,
            newest=self._ratio(slice(newest, ended)),
            repeats=len(asked),
            confirmed=int(np.count_nonzero(confirmed)),
            was=was,
            now=now,
        )

    def _falls(self, change: OpenChange, ended: int) -> tuple[Fall[int], ...]:
        """Return the further drops below the level of an open drop, before the run `ended`."""
        unstable = [each.when for each in change.found.turns if each.kind is State.UNSTABLE]
        ended = min([ended, *unstable])  # such a series has no level to fall from
        found = change.found
        begun, later = (max(found.raised + 1, found.since + runs) for runs in _LEVELS)
        if not found.is_drop or ended <= begun:
            return ()
        if begun == later:  # the drop was found so late that its level is known well
            later = ended
        chart = self._below(change, begun, min(later, ended))
        parts = [(begun, chart)]
        if later < ended and chart.open_change is None and chart.down[-1] < _QUIET:
            parts.append((later, self._below(change, later, ended)))
        elif later < ended:
            parts = [(begun, self._below(change, begun, ended))]
        falls = []
        for first, chart in parts:
            for each in chart.changes:
                points: tuple[Change[int] | Fall[int], ...] = (each, *each.falls)
                for fall in points if each.direction == DOWN else ():
                    since, raised = fall.since + first, fall.raised + first
                    runs = self.logarithms[since : raised + 1]
                    ratio = level_ratio(self.baseline.level, runs)
                    falls.append(Fall(since, raised, ratio))
        return tuple(falls)

    def _below(self, change: OpenChange, begun: int, ended: int) -> Chart:
        """Return the chart of runs of an open drop, judged by its level at the run `begun`.

        The baseline keeps its shape, and the level is the lowest that the runs allow.
        """
        onset = change.found.since
        runs = next(n for n in reversed(_LEVELS) if onset + n <= begun)
        ratio = self._ratio(slice(onset, onset + runs))
        shift = np.log(ratio.low if ratio.low > 0 else ratio.value)
        correlation = self._month(begun).prior.correlation
        baseline = Baseline(self.baseline.level + shift, None, correlation)
        known = self.months[self.month_of[begun] : self.month_of[ended - 1] + 1]
        months = [replace(each, first=max(each.first - begun, 0)) for each in known]
        runs_below = self.logarithms[begun:ended]
        spacing = self.spacing.between(begun, ended)
        return Detector(runs_below, spacing, baseline, months, self.least).chart()

    def _dated(self, change: OpenChange, ended: int) -> Change[int]:
        """Return the change with its onset and its size by the runs up to `ended`."""
        onset, low, high = self._onset(change.design, change.start, change.found.raised, ended)
        ratio = self._ratio(slice(onset, ended))
        return replace(change.found, since=onset, since_low=low, since_high=high, ratio=ratio)

    def _onset(self, design: int, start: int, raised: int, known: int) -> tuple[int, int, int]:
        """Return the onset of a change by the runs before `known`, see `onset_interval`."""
        stop = max(raised + 1, min(known, raised + 1 + _AFTER_RAISED))
        first = max(0, min(start, max(start - _BEFORE_ONSET, self.dismissed)))
        first = max([first, *(each.ended for each in self.changes if each.ended is not None)])
        # runs that the baseline was learned from were never judged, and have no increments
        unjudged = np.flatnonzero(~self.increments[first:start].any(axis=1))
        first += int(unjudged[-1]) + 1 if unjudged.size else 0
        speaking = self.increments[first:stop, design].astype(float)
        onset, low, high = onset_interval(speaking, raised - first)
        return first + onset, first + low, first + high

    def _ratio(self, runs: slice) -> Ratio:
        """Return the level of runs since an open change over the one before it."""
        return level_ratio(self.baseline.level, self.logarithms[runs], self.baseline.inflation)


def _cusum(scores: Array, begun: Array) -> Array:
    """Return the sums after each run by column, starting from `begun`, never below zero."""
    total = np.cumsum(scores, axis=0)
    return total - np.minimum(np.minimum.accumulate(total, axis=0), -begun)


def _after_last_zero(sums: Array, first: int, otherwise: ArrayLike) -> NDArray[np.int_]:
    """Return the run after the last zero of each column of `sums`, which begin with run `first`."""
    zeros = sums == 0
    after = first + len(zeros) - np.argmax(zeros[::-1], axis=0)
    return np.where(zeros.any(axis=0), after, otherwise)


def _first_true(flags: Flags) -> int:
    """Return the index of the first true flag, or how many flags there are."""
    return int(np.argmax(flags)) if flags.any() else len(flags)
