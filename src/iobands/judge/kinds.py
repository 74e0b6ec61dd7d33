"""What kind a change of a series is: of its level, of its modes, of its spread, or a slide."""

from __future__ import annotations

from typing import Final

import numpy as np

from iobands.judge.baseline import Baseline
from iobands.judge.chart import SIDES, direction_of
from iobands.judge.designs import MODE, SPREAD, lower_mode
from iobands.judge.scores import EVERY, WEIGHTS
from iobands.snapshot.history import DOWN, UP, Array, State, median_of

#: After so many runs it is looked again what kind an open change is.
AGAIN: Final = 10
# The newest runs say it, and one that was something else has to lead by so much evidence.
_NEWEST: Final = 30
_LEADS: Final = 5.0
# Below this factor nobody would call a spread another.
_WIDER: Final = 1.4
# At least this share of the runs lies on each side of a level that has not moved.
_BOTH: Final = 0.2

_KINDS: Final = {MODE: State.MODE_LOST, SPREAD: State.UNSTABLE}

# Runs are taken in blocks of so many, of which the newest are looked at.
_BLOCK: Final = 5
_BLOCKS: Final = 200
# The evidence in nats for a slide, which has as many parameters as a step, and its least length.
_SLIDES: Final = 1.5
_LEAST_BLOCKS: Final = 8


def kind_of(
    baseline: Baseline, runs: Array, design: int, least: float, *, at_first: bool = False
) -> tuple[State, int]:
    """Return the kind of a change by its `runs`, and the design that describes it best.

    `runs` are logarithms in the order of time. `design` is the one that raised it, or after that
    the best one so far, which another one has to surpass clearly.
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
    """Return whether `runs` vary by more than the baseline, on both sides, as much as matters."""
    middle = baseline.middle
    now, usual = (median_of(np.abs(each - middle)) for each in (runs, baseline.ordered))
    share = float((runs < middle).mean())
    return min(share, 1 - share) >= _BOTH and now >= max(_WIDER * usual, -np.log1p(-least))


def levels_of(kind: State, before: Array, since: Array) -> tuple[tuple[float, ...], ...]:
    """Return what an unstable series varied between and varies between, or the modes it had."""
    quartiles = [25, 75]
    if kind is State.UNSTABLE:
        return tuple(_values(np.percentile(each, quartiles)) for each in (before, since))
    if kind is State.MODE_LOST:
        ordered = np.sort(before)
        lower = lower_mode(ordered)
        return _values([np.median(ordered[:lower]), np.median(ordered[lower:])]), ()
    return (), ()


def _values(logarithms: Array | list[float]) -> tuple[float, ...]:
    return tuple(float(each) for each in np.exp(logarithms))


def slide_begins(runs: Array, inflation: float) -> int | None:
    """Return the run with which a slide down to the newest of `runs` began, None if it is none.

    A level that falls steadily from some run on must describe the medians of blocks of runs
    better than one or two steps do.
    """
    size = min(len(runs) // _BLOCK, _BLOCKS)
    if size < 2 * _LEAST_BLOCKS:
        return None
    first = len(runs) - size * _BLOCK
    blocks = np.median(runs[first:].reshape(size, _BLOCK), axis=1)
    blocks = blocks - blocks.mean()
    at = np.arange(size)
    ramps = np.maximum(at - at[: size - _LEAST_BLOCKS, None], 0.0)
    ramps -= ramps.mean(axis=1, keepdims=True)
    along, square = ramps @ blocks, (ramps**2).sum(axis=1)
    explained = np.where(along < 0, along**2 / square, 0.0)
    best, every = int(np.argmax(explained)), float(blocks @ blocks)
    if explained[best] == 0:
        return None
    sums = np.append(0.0, np.cumsum(blocks))
    low, high = np.triu_indices(size, 1)
    steps = sums[low] ** 2 / np.maximum(low, 1) + (sums[high] - sums[low]) ** 2 / (high - low)
    steps += sums[high] ** 2 / (size - high)
    one, two = (every - float(each) for each in (steps[low == 0].max(), steps.max()))
    floor = 1e-9 * every
    evidence = [np.log((each + floor) / (every - explained[best] + floor)) for each in (one, two)]
    nats = min(size / 2 * evidence[0], size / 2 * evidence[1] + np.log(size))
    return first + best * _BLOCK if nats >= _SLIDES * inflation else None
