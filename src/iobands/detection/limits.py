"""What a limit means: false alarms on the one hand, runs to see a drop on the other.

May know: numpy, and the charts.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from iobands.detection.chart import WATCH, Chart
from iobands.detection.scores import DESIGNS, DROPS, Array, grained

#: Runs to a false alarm at limit h are at least exp(SLOPE * h) / DIVISOR: the least that was
#: measured for any band, tail and size of history (docs/error-rates.md).
SLOPE: Final = 0.6
DIVISOR: Final = math.exp(-3.6)

#: A limit below this would raise alarms for single runs.
LOWEST: Final = WATCH

# How finely the evidence is cut for the Markov chain.
_STATES: Final = 60


def runs_between_false_alarms(limit: float) -> float:
    """Return the mean number of runs of one healthy series to a false alarm at `limit`."""
    return max(1.0, math.exp(SLOPE * limit) / DIVISOR)


def limit_for(
    false_alarms_a_year: float = 1.0, series: int = 1, runs_a_year: float = 365.0
) -> float:
    """Return the limit at which a whole site has at most so many false alarms a year.

    Args:
        false_alarms_a_year: how many the site allows itself, all series together.
        series: how many series (and pooled charts) the site has.
        runs_a_year: how often each of them runs in a year.

    Raises:
        ValueError: one of them is not a positive finite number.
    """
    for number in (false_alarms_a_year, series, runs_a_year):
        if not (math.isfinite(number) and number > 0):
            raise ValueError(f"not a positive finite number: {number}")
    runs = series * runs_a_year / false_alarms_a_year
    return max(LOWEST, math.log(max(runs * DIVISOR, 1.0)) / SLOPE)


def power(chart: Chart, drop: float = 0.7, limit: float | None = None) -> float:
    """Return how many runs it takes on average to see all values times `drop` on this series.

    `math.inf` where the chart cannot see it at all, has neither band nor history, or would take
    more than a million runs. The evidence starts at 0. For each design the run length of its
    CUSUM is exact (Brook and Evans, "An approach to the probability distribution of CUSUM run
    length", Biometrika 59, 1972), apart from a grid of 60 steps; the least of them is returned, so
    that the chart, which has all designs, is as fast or a little faster. What is taken as given
    is that the reference is right; `limit` is the chart's own unless told otherwise.

    Raises:
        ValueError: `drop` or `limit` is not a positive finite number.
    """
    height = chart.limit if limit is None else limit
    for number in (drop, height):
        if not (math.isfinite(number) and number > 0):
            raise ValueError(f"not a positive finite number: {number}")
    if chart.scores is None:
        return math.inf
    scores, weights = _scores_after(chart, drop)
    columns = range(len(DROPS)) if drop < 1 else range(len(DROPS), len(DESIGNS))
    return min(_run_length(scores[:, column], weights, height) for column in columns)


def _scores_after(chart: Chart, drop: float) -> tuple[Array, Array]:
    """Return the scores of runs spread like the reference, times `drop`, and their weights."""
    assert chart.scores is not None
    values = chart.level() + math.log(drop)
    found = grained(chart.scores.scores(values) / chart.scale)
    return found, np.full(len(values), 1 / len(values))


def _run_length(scores: Array, weights: Array, limit: float) -> float:
    step = limit / _STATES
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
