"""The chart of one series: evidence run by run, the lasting changes in it, and their kinds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iobands.judge.detect.baseline import WATCH, Baseline
from iobands.judge.detect.prior import FAR_DOWN, LOW
from iobands.judge.detect.scores import DESIGNS, DROPS, EVERY, MODE, SPREAD, WEIGHTS, lower_mode
from iobands.snapshot.history import (
    DOWN,
    SUSPECTED_FROM,
    UP,
    Array,
    Change,
    Flags,
    Ratio,
    State,
    level_ratio,
    median_of,
)

# Runs this many times as far below the level as the fence are scored without correlation.
_BEYOND: Final = 2.0


class Terms(NamedTuple):
    """The terms on which runs are scored, by their baseline and month; arrays of shape (runs,).

    Scores are divided by `scale`, for the serial `correlation`; those of deep runs by `deep_scale`.
    `first` is the rate of deep runs, and `again` their rate soon after a run that was far out. The
    rest is as in `Prior`.
    """

    scale: Array
    correlation: Array
    deep_scale: Array
    first: Array
    again: Array
    rate: Array
    new: Array
    continued: Array


def deep_scores(
    baseline: Baseline, values: Array, scores: Array, terms: Terms, streak: Flags
) -> Array:
    """Return the scores for a drop, in which a deep run counts by how often such runs occur.

    All series show how often that is, in general and in a `streak`: soon after a far-out run. The
    usual variation explains some deep runs near the fence, and none far beyond it.
    """
    rates = np.where(streak, terms.again, terms.first)
    beyond = values < baseline.middle - _BEYOND * (baseline.middle - baseline.fences[0])
    divisors = np.where(beyond, 1.0, terms.deep_scale)
    found = np.log1p(baseline.deep_shares[SIDES[DOWN]] / rates[:, None]) / divisors[:, None]
    if not baseline.deep_runs:
        # unless streaks of outliers are known, a deep run counts at least as much as its cell
        found = np.where(terms.continued[:, None] > 0, found, np.maximum(found, scores))
    return np.where((values < baseline.deep)[:, None], found, scores)


@dataclass(frozen=True)
class Chart:
    """What the detector found in all runs of a series; made by `detector.Detector`.

    Of shape (runs,): `logarithms` of the values, and `down` and `up`, the evidence for a drop and
    for a rise after each run, in nats. Of shape (runs, designs): `increments`, what each run added
    to the evidence, and `alone`, what it would have added without the runs shortly before it.
    `sums` and `starts`, of shape (designs,), are the evidence after the last run, and the run at
    which it began.
    `baselines` judged the runs, each from the given run on; the last one judges the next run.
    `changes` are in the order of time, and the last one may be open. A change smaller than `least`,
    a share of the level, does not count. `back` is the evidence that the open change is over, since
    the run `back_since`; 0 if the newest run speaks against that. `terms` are those of the newest
    run, and `settled` is the state from which the detector continues when there are more runs.
    """

    baselines: tuple[tuple[int, Baseline], ...]
    threshold: float
    least: float
    logarithms: Array
    increments: NDArray[np.float32]
    alone: NDArray[np.float32]
    down: Array
    up: Array
    sums: Array
    starts: NDArray[np.int_]
    changes: tuple[Change[int], ...]
    terms: Terms
    back: float
    back_since: int
    settled: Settled

    @property
    def baseline(self) -> Baseline:
        """The baseline that judges the next run."""
        return self.baselines[-1][1]

    @property
    def scale(self) -> float:
        """The divisor of scores for the serial correlation."""
        return float(self.terms.scale[0])

    @property
    def runs(self) -> int:
        """The number of runs."""
        return len(self.logarithms)

    @cached_property
    def residuals(self) -> Array:
        """The logarithms relative to the level at the time, of shape (runs,); NaN if not known."""
        levels = np.full(self.runs, np.nan)
        for first, baseline in self.baselines:
            if baseline.can_judge:
                levels[first if np.isfinite(levels).any() else 0 :] = baseline.middle
        return self.logarithms - levels

    def baseline_at(self, run: int) -> Baseline:
        """Return the baseline that judged a run; for the first runs, the first that can judge."""
        able = [each for each in self.baselines if each[1].can_judge] or [*self.baselines]
        return next((each for first, each in reversed(able) if first <= run), able[0][1])

    def by_itself(self, runs: slice | NDArray[np.int_], baseline: Baseline | None = None) -> Array:
        """Return the evidence for a drop that each of `runs` gives by itself, in nats.

        They are judged by the newest baseline unless one is given.
        """
        logarithms, by = self.logarithms[runs], baseline or self.baseline
        if by.scores is None:
            return np.zeros(len(logarithms))
        says = by.scores.scores(logarithms)[:, SIDES[DOWN]].max(axis=1)
        # in a small baseline, no cell gives as much evidence as the depth of a run does
        return np.asarray(np.where(logarithms < by.deep, np.maximum(says, FAR_DOWN), says))

    @property
    def open_change(self) -> Change[int] | None:
        """The change that lasts, or None."""
        return self.changes[-1] if self.changes and self.changes[-1].is_open else None

    @cached_property
    def suspicion(self) -> tuple[int, Ratio] | None:
        """The first run and the size of a suspected drop, or None.

        A drop is suspected while its evidence exceeds `WATCH`, no change is open, and the level of
        its runs is off by `least`.
        """
        if self.open_change is not None or self.runs == 0 or float(self.down[-1]) < WATCH:
            return None
        design = int(np.argmax(self.sums[SIDES[DOWN]]))
        start = min(int(self.starts[design]), self.runs - 1)
        speaking = self.increments[start:, design].astype(float)
        onset = start + onset_interval(speaking, self.runs - 1 - start)[0]
        ratio = level_ratio(self.baseline.level, self.logarithms[onset:])
        return None if ratio.is_small(self.least) else (onset, ratio)


# Half of the 95 % point of chi-squared with one degree of freedom.
_LIKELY: Final = 1.92


@dataclass(frozen=True)
class OpenChange:
    """A change that lasts: its design, and the run `start` at which its evidence began.

    `found` is the change by the runs up to the one that raised it, with its turns so far.
    `recovery` is the evidence of each recovery design that it is over, since `recovery_start`.
    """

    design: int
    start: int
    found: Change[int]
    recovery: Array
    recovery_start: int


#: The number of newest runs whose increments a settled state keeps, and groups use.
USED: Final = 1000


@dataclass(frozen=True)
class Settled:
    """The state of the detector before the run `at`, which later runs do not change.

    The detector continues from it with the same result as from the first run. Arrays are for the
    runs before `at`, and otherwise as in `Chart`: `says` stacks `increments` and `alone`, for the
    newest runs only, and `evidence` stacks `down` and `up`. The `usable` runs before `joined` are
    in the baseline, and evidence from before the run `dismissed` dates no change.
    """

    at: int
    says: NDArray[np.float32]
    evidence: Array
    usable: NDArray[np.bool_]
    sums: Array
    starts: NDArray[np.int_]
    baselines: tuple[tuple[int, Baseline], ...]
    changes: tuple[Change[int], ...]
    open: OpenChange | None
    joined: int
    dismissed: int


def onset_interval(scores: Array, raised: int) -> tuple[int, int, int]:
    """Return the likeliest first run of a change, and the earliest and latest likely ones.

    `scores` is the evidence of each run for the change, so the log-likelihood of an onset at k,
    up to the run `raised`, is the sum from k on. The interval holds every onset within 1.92 of
    the largest, a 95 % interval where the likelihood is smooth.
    """
    likelihood = np.cumsum(scores[::-1])[::-1][: raised + 1]
    # Of equally likely runs the latest, as the ones before it gave no evidence.
    best = raised - int(np.argmax(likelihood[::-1]))
    near = np.flatnonzero(likelihood >= likelihood[best] - _LIKELY)
    return best, int(near[0]), int(near[-1])


#: The designs of each direction, as columns, and the sizes of all of them.
SIDES: Final = {DOWN: slice(0, len(DROPS)), UP: slice(len(DROPS), len(DESIGNS))}
SIZES: Final = np.abs(np.log(DESIGNS))


def doubtful(chart: Chart, runs: slice = slice(None)) -> NDArray[np.bool_]:
    """Return after which of `runs` a drop would be suspected if no change were open.

    The run is far down, or it is low and the evidence has reached `SUSPECTED_FROM`.
    """
    says = chart.by_itself(runs)
    return (says >= FAR_DOWN) | ((chart.down[runs] >= SUSPECTED_FROM) & (says >= LOW))


# A little under a half, so that 0.9 is a recovery design of 0.8.
_RECOVERY_SHARE: Final = 0.45


def direction_of(design: int) -> str:
    """Return the direction of a design."""
    return UP if len(DROPS) <= design < len(DESIGNS) else DOWN


def recovery_designs(design: int) -> range:
    """Return the designs that must all show recovery: from half the size of `design` up to it.

    The design that fitted best when the change was found may be larger than the change. The true
    level then lies between it and the baseline, and that design alone would see a recovery.
    """
    first = design
    if design < len(DESIGNS):
        side = SIDES[direction_of(design)]
        first = side.start + int(SIZES[side].searchsorted(_RECOVERY_SHARE * SIZES[design]))
    return range(first, design + 1)


# The newest runs show the kind of a change. Another kind has to lead by this much evidence.
_NEWEST: Final = 30
_LEADS: Final = 5.0
# A spread that is wider by less than this factor is no change.
_WIDER: Final = 1.4
# At least this share of the runs lies on each side of a level that has not moved.
_BOTH: Final = 0.2

_KINDS: Final = {MODE: State.MODE_LOST, SPREAD: State.UNSTABLE}

# A slide is looked for in the medians of blocks of this many runs, the newest `_BLOCKS` of them.
_BLOCK: Final = 5
_BLOCKS: Final = 200
# The evidence for a slide in nats (it has as many parameters as a step), and its least length.
_SLIDES: Final = 1.5
_LEAST_BLOCKS: Final = 8


def kind_of(
    baseline: Baseline, runs: Array, design: int, least: float, *, at_first: bool = False
) -> tuple[State, int]:
    """Return the kind of a change by its `runs`, and the design that describes it best.

    `runs` are logarithms in the order of time. `design` is the one that raised it (`at_first`), or
    later the best one so far, which another one has to surpass clearly.
    """
    assert baseline.scores is not None
    newest = runs[-_NEWEST:]
    scores = baseline.scores.scores(newest) + baseline.scores.penalty
    found = (scores / WEIGHTS).sum(axis=0)
    sides = [direction_of(design), *([UP] if at_first and design == SPREAD else [])]
    levels = [column for side in sides for column in range(EVERY)[SIDES[side]]]
    now = design if design in _KINDS else max(levels, key=found.__getitem__)
    others = [SPREAD] if is_wider(baseline, newest, least) else []
    if DOWN in sides and baseline.lower_mode:
        others.append(MODE)
    best = max([now, *levels, *others], key=found.__getitem__)
    leads = 0.0 if at_first else _LEADS * baseline.inflation**2
    best = best if found[best] >= max(found[now] + leads, 0.0) else now
    best = design if best in levels and design in levels else best
    plain = State.IMPROVED if direction_of(best) == UP else State.DEGRADED
    return _KINDS.get(best, plain), best


def is_wider(baseline: Baseline, runs: Array, least: float) -> bool:
    """Return whether `runs` vary clearly more than the baseline, on both sides of its level."""
    middle = baseline.middle
    now, usual = (median_of(np.abs(each - middle)) for each in (runs, baseline.ordered))
    share = float((runs < middle).mean())
    return min(share, 1 - share) >= _BOTH and now >= max(_WIDER * usual, -np.log1p(-least))


def levels_of(kind: State, before: Array, since: Array) -> tuple[tuple[float, ...], ...]:
    """Return `was` and `now` of a change: quartiles if it is unstable, modes if one was lost."""
    if kind is State.UNSTABLE:
        return tuple(_values(np.percentile(each, [25, 75])) for each in (before, since))
    if kind is State.MODE_LOST:
        ordered = np.sort(before)
        lower = lower_mode(ordered)
        return _values([np.median(ordered[:lower]), np.median(ordered[lower:])]), ()
    return (), ()


def _values(logarithms: Array | list[float]) -> tuple[float, ...]:
    return tuple(float(each) for each in np.exp(logarithms))


def slide_begins(runs: Array, inflation: float) -> int | None:
    """Return the first run of a slide that goes on until the newest of `runs`, or None.

    A ramp, a level that falls steadily from some run on, must describe the medians of blocks of
    runs better than one or two steps do.
    """
    size = min(len(runs) // _BLOCK, _BLOCKS)
    if size < 2 * _LEAST_BLOCKS:
        return None
    first = len(runs) - size * _BLOCK
    blocks = np.sort(runs[first:].reshape(size, _BLOCK), axis=1)[:, _BLOCK // 2]
    blocks = blocks - blocks.mean()
    # a ramp that begins with a block has 1, 2, … in the blocks after it
    after = size - 1 - np.arange(size - _LEAST_BLOCKS)
    along = blocks[::-1].cumsum().cumsum()[after - 1]
    square = after * (after + 1) * (2 * after + 1) / 6 - (after * (after + 1) / 2) ** 2 / size
    explained = np.where(along < 0, along**2 / square, 0.0)
    best, every = int(np.argmax(explained)), float(blocks @ blocks)
    if explained[best] == 0:
        return None
    sums, floor = np.append(0.0, np.cumsum(blocks[:-1])), 1e-9 * every

    def nats(steps: Array) -> float:
        """Return the evidence for the ramp against `steps`, by the squares that these explain."""
        rest = every - float(explained[best]) + floor
        return size / 2 * math.log((every - float(steps.max()) + floor) / rest)

    places = np.arange(1, size)
    if nats(sums[1:] ** 2 / places + sums[1:] ** 2 / (size - places)) < _SLIDES * inflation:
        return None
    low, high = np.triu_indices(size, 1)
    steps = sums[low] ** 2 / np.maximum(low, 1) + (sums[high] - sums[low]) ** 2 / (high - low)
    steps += sums[high] ** 2 / (size - high)
    is_better = nats(steps) + math.log(size) >= _SLIDES * inflation
    return first + best * _BLOCK if is_better else None
