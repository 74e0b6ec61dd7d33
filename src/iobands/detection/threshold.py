"""What a threshold means: the false-alarm rate on one hand, the detection delay on the other."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from iobands.detection.chart import Chart
from iobands.detection.detector import WATCH
from iobands.detection.scores import DESIGNS, DROPS, Array

#: Runs to a false alarm at threshold h are at least exp(SLOPE * h) / DIVISOR: the least that was
#: measured for any band, tail and size of history (docs/error-rates.md).
SLOPE: Final = 0.6
DIVISOR: Final = math.exp(-3.6)

#: A threshold below this would make single runs an alarm.
LOWEST: Final = WATCH

# Evidence grows with each run of a drop that lasts, and numbers end at exp(709).
_LARGEST_EXPONENT: Final = 700.0
# How finely the evidence is cut for the Markov chain.
_STATES: Final = 60


def runs_between_false_alarms(threshold: float) -> float:
    """Return the mean number of runs of one healthy series to a false alarm at `threshold`."""
    return max(1.0, math.exp(min(SLOPE * threshold, _LARGEST_EXPONENT)) / DIVISOR)


def threshold_for(
    false_alarms_a_year: float = 1.0, series: int = 1, runs_a_year: float = 365.0
) -> float:
    """Return the threshold at which a whole site has at most so many false alarms a year.

    Args:
        false_alarms_a_year: how many the site allows itself, all series together.
        series: how many series and groups the site has.
        runs_a_year: how often each of them runs in a year.

    Raises:
        ValueError: one of them is not a positive finite number.
    """
    for number in (false_alarms_a_year, series, runs_a_year):
        if not (math.isfinite(number) and number > 0):
            raise ValueError(f"not a positive finite number: {number}")
    runs = series * runs_a_year / false_alarms_a_year
    return max(LOWEST, math.log(max(runs * DIVISOR, 1.0)) / SLOPE)


def power(chart: Chart, drop: float = 0.7, threshold: float | None = None) -> float:
    """Return the mean detection delay, in runs, of all values times `drop` on this series.

    `math.inf` where the chart cannot see the drop or would take more than a million runs. The
    evidence starts at 0. For each design the run length of its CUSUM is exact apart from a grid
    of 60 steps (Brook and Evans, "An approach to the probability distribution of CUSUM run
    length", Biometrika 59, 1972); the least of them is returned. `threshold` is the chart's own
    unless given.

    Raises:
        ValueError: `drop` or `threshold` is not a positive finite number.
    """
    height = chart.threshold if threshold is None else threshold
    for number in (drop, height):
        if not (math.isfinite(number) and number > 0):
            raise ValueError(f"not a positive finite number: {number}")
    if chart.baseline.scores is None:
        return math.inf
    scores, weights = _scores_after(chart, drop)
    columns = range(len(DROPS)) if drop < 1 else range(len(DROPS), len(DESIGNS))
    return min(_run_length(scores[:, column], weights, height) for column in columns)


def _scores_after(chart: Chart, drop: float) -> tuple[Array, Array]:
    """Return the scores of runs spread like the baseline, times `drop`, and their weights."""
    assert chart.baseline.scores is not None
    values = chart.baseline.level() + math.log(drop)
    found = chart.baseline.scores.scores(values) / chart.scale
    return found, np.full(len(values), 1 / len(values))


def _run_length(scores: Array, weights: Array, threshold: float) -> float:
    step = threshold / _STATES
    # the states are the middles of the steps; the first is everything around zero
    moves = np.clip(
        np.rint(np.arange(_STATES)[:, None] + scores[None, :] / step), 0, _STATES
    ).astype(int)
    chain = np.zeros((_STATES, _STATES + 1))
    np.add.at(
        chain,
        (np.repeat(np.arange(_STATES), len(scores)), moves.ravel()),
        np.tile(weights, _STATES),
    )
    try:
        lengths = np.linalg.solve(np.eye(_STATES) - chain[:, :_STATES], np.ones(_STATES))
    except np.linalg.LinAlgError:
        return math.inf
    length = float(lengths[0])
    return length if 1 <= length <= 1e6 else math.inf  # noqa: PLR2004
