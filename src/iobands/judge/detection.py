"""One series through the detector: samples in, changes and power out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iobands.bands import Band
from iobands.judge.detect import (
    FAR_DOWN,
    LEAST,
    LOW,
    SIDES,
    USED,
    WATCH,
    Chart,
    Months,
    Spacing,
    deep_scores,
    doubtful,
)
from iobands.judge.memory import Basis, Remembered
from iobands.snapshot.history import (
    ADOPTED,
    DOWN,
    LARGE_DROP,
    MAYBE_OVER,
    SUSPECTED,
    UNCERTAIN,
    UP,
    Array,
    Change,
    Doubt,
    Evidence,
    History,
    Suspicion,
    Times,
    Transient,
    moment,
)

#: The drops, as ratios, for which the power of a series is given.
POWER_DROPS: Final = (0.8, LARGE_DROP)
# The fields of a change that are runs in a chart, and times elsewhere.
_WHEN: Final = ("since", "since_low", "since_high", "raised", "ended", "closed")


@dataclass(frozen=True)
class Detection:
    """The chart of a series and the runs in it.

    `rows` are the places of these runs among the samples, `times` are in UTC. `basis` is all that
    the chart is computed from, with the values in the unit of the series.
    """

    rows: NDArray[np.int_]
    times: Times
    chart: Chart
    basis: Basis

    @cached_property
    def changes(self) -> tuple[Change[datetime], ...]:
        """All lasting changes in the order of time; the last may be open."""
        return tuple(map(self._change, self.chart.changes))

    def _change(self, change: Change[int]) -> Change[datetime]:
        """Return a change with times in place of runs."""

        def at(run: int | None) -> Any:  # noqa: ANN401 (None of None)
            return None if run is None else moment(self.times[run])

        if change.end == ADOPTED:  # the first run after it may not exist yet
            change = replace(change, ended=change.closed)
        when = {name: at(getattr(change, name)) for name in _WHEN}
        falls = tuple(replace(e, since=at(e.since), raised=at(e.raised)) for e in change.falls)
        turns = tuple(replace(e, when=at(e.when), since=at(e.since)) for e in change.turns)
        found: Any = replace(change, **when, falls=falls, turns=turns)
        return found

    @cached_property
    def routine_chart(self) -> Chart:
        """The chart for groups: scheduled runs count in full, and those asked for do not count.

        Trouble that several series share for hours is one event, however often it was measured.
        """
        asked, chart = self.basis.spacing.asked, self.chart
        if not asked.any():
            return chart
        return replace(chart, increments=np.where(asked[:, None], np.float32(0), chart.alone))

    @cached_property
    def transients(self) -> tuple[Transient, ...]:
        """Low runs that were measured again and were over before the next scheduled run."""
        spacing, found = self.basis.spacing, []
        for begin in np.flatnonzero(np.diff(spacing.close.astype(int)) == 1).tolist():
            runs = np.flatnonzero(spacing.begun == begin)
            baseline = self.chart.baseline_at(begin)
            says = self.chart.by_itself(runs, baseline)
            is_low = (says >= LOW) & ~self.in_drop[runs]
            low = runs[is_low]
            over = runs[(says < 0) & (runs > low[0])] if low.size else low
            if not (over.size and spacing.asked[over[0]] and says[is_low].max() >= FAR_DOWN):
                continue
            low = low[low < over[0]]
            level = np.median(self.chart.logarithms[low]) - np.median(baseline.level)
            since, until = (moment(self.times[place]) for place in (low[0], over[0]))
            ratio, seen = float(np.exp(level)), int(over[0] - low[0]) + 1
            found.append(Transient(since, until, ratio, len(low), seen))
        return tuple(found)

    @property
    def remembered(self) -> Remembered:
        """The settled part of the chart, from which the judge goes on when there are more runs."""
        settled = self.chart.settled
        return Remembered(self.basis.identity(settled.at), settled)

    @property
    def is_as_anew(self) -> bool:
        """Whether a full recalculation from all runs gives the same chart."""
        chart, anew = self.chart, self.basis.chart()
        newest = (each.increments[-USED:] for each in (chart, anew))
        pairs = (tuple(newest), (chart.down, anew.down), (chart.up, anew.up))
        return chart.changes == anew.changes and all(np.array_equal(*pair) for pair in pairs)

    @property
    def open_change(self) -> Change[datetime] | None:
        """The change that lasts, or None."""
        return self.changes[-1] if self.chart.open_change else None

    @cached_property
    def suspicion(self) -> Suspicion | None:
        """The suspicion behind `watch`, or None."""
        chart = self.chart
        if chart.suspicion is None:
            return None
        since, ratio = chart.suspicion
        return Suspicion(
            since=moment(self.times[since]),
            ratio=ratio,
            baseline=float(np.exp(chart.baseline.middle)),
            score=float(chart.down[-1]),
            threshold=chart.threshold,
        )

    @property
    def doubt(self) -> Doubt | None:
        """What one more run would decide now, or None."""
        chart, change = self.chart, self.open_change
        if not chart.runs or (change and not change.is_drop):
            return None
        if change is None:
            design = int(np.argmax(chart.sums[SIDES[DOWN]]))
            since = moment(self.times[min(int(chart.starts[design]), chart.runs - 1)])
            is_suspected = doubtful(chart, slice(-1, None))[0]
            return Doubt(SUSPECTED, since, float(chart.down[-1])) if is_suspected else None
        if chart.back > 0:
            since = moment(self.times[min(chart.back_since, chart.runs - 1)])
            return Doubt(MAYBE_OVER, since, chart.back)
        return Doubt(UNCERTAIN, change.since, float(chart.down[-1]))

    def evidence(self, *, with_power: bool) -> Evidence:
        """Return the evidence of the snapshot; `with_power` is slow."""
        chart = self.chart
        delays = {f"{drop:g}": power(chart, drop) for drop in POWER_DROPS} if with_power else {}
        return Evidence(
            rows=self.rows,
            down=chart.down,
            up=chart.up,
            changes=self.changes,
            suspicion=self.suspicion,
            today=max(float(chart.down[-1]), float(chart.up[-1])) if chart.runs else 0.0,
            watch=WATCH,
            threshold=chart.threshold,
            can_judge=chart.baseline.can_judge,
            level=float(np.exp(chart.baseline.middle)) if chart.baseline.can_judge else None,
            baseline_runs=len(chart.baseline.runs),
            correlation=chart.baseline.correlation,
            scale=chart.scale,
            power={drop: runs if math.isfinite(runs) else None for drop, runs in delays.items()},
            doubt=self.doubt,
            transients=self.transients,
        )

    @cached_property
    def in_drop(self) -> NDArray[np.bool_]:
        """Which of the runs are in a lasting drop, of shape (runs,)."""
        found = np.zeros(len(self.rows), dtype=bool)
        for change in self.chart.changes:
            if change.is_drop:
                found[change.since : change.ended] = True
        return found


def detect(
    history: History,
    rows: NDArray[np.int_],
    band: Band | None,
    months: Months,
    least: float | None = None,
    kept: Remembered | None = None,
) -> Detection:
    """Return the detection on the samples at `rows`, which are in the order of time.

    `months` hold what was known when the runs were made. `least` is the smallest change of level
    that counts, by default `LEAST`. The chart continues from `kept` if that fits these runs.
    """
    values, times = history.values[rows], history.times[rows]
    spacing = Spacing.of(times, history.asked[rows])
    figures = (band.lower_quartile, band.median, band.upper_quartile, band.maximum) if band else ()
    published = tuple(each for each in figures if each is not None) or None
    basis = Basis(values, spacing, published, months.of(times), LEAST if least is None else least)
    return Detection(rows, times, basis.chart(kept), basis)


# The number of states of the Markov chain, steps of the evidence from 0 to the threshold.
_STATES: Final = 60


def power(chart: Chart, drop: float) -> float:
    """Return the mean detection delay, in runs, of a change of all values by the factor `drop`.

    It is `math.inf` if the chart cannot detect the drop or would take more than a million runs. The
    evidence starts at 0. The run length of each design's CUSUM is exact but for a grid of 60 steps
    (Brook and Evans, "An approach to the probability distribution of CUSUM run length", Biometrika
    59, 1972), and the shortest is returned. Deep runs after the first one count less.
    """
    baseline, terms = chart.baseline, chart.terms
    if baseline.scores is None:
        return math.inf
    values, direction = baseline.level + math.log(drop), DOWN if drop < 1 else UP
    scores = [baseline.scores.scores(values)[:, SIDES[direction]] / chart.scale] * 2
    if direction == DOWN:
        streaks = np.array([[False], [True]])
        scores = [deep_scores(baseline, values, scores[0], terms, each) for each in streaks]
    return _run_length(np.stack(scores).swapaxes(1, 2), chart.threshold)


def _run_length(scores: Array, threshold: float) -> float:
    """Return the shortest mean run length of any design.

    `scores` are of shape (2, designs, runs): of the first run, and of all later ones.
    """
    # the states are the middles of the steps; the first is everything around zero
    steps = np.clip(np.rint(scores / (threshold / _STATES)), -_STATES, _STATES)
    counts = (steps[..., None] == np.arange(-_STATES, _STATES + 1)).sum(axis=2)
    states = np.arange(_STATES)
    chains = counts[..., _STATES + states - states[:, None]]
    chains[..., 0] = counts.cumsum(axis=2)[..., _STATES - states]
    chains = chains[:, steps[1].max(axis=1) > 0] / scores.shape[2]
    return min(map(_steps_through, *chains), default=math.inf)


def _steps_through(first: Array, later: Array) -> float:
    """Return the mean number of steps from the first state until a Markov chain is left.

    The transition matrix is `first` for the first step, and `later` for all others; shape (n, n).
    """
    try:
        lengths = np.linalg.solve(np.eye(len(later)) - later, np.ones(len(later)))
    except np.linalg.LinAlgError:  # practically never left
        return math.inf
    length = float(lengths[0] + (first[0] - later[0]) @ lengths)
    return length if 1 <= length <= 1e6 else math.inf  # noqa: PLR2004
