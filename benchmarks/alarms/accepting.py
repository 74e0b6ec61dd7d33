"""Simulations of acceptances: how often a promise is called met or missed, and after how many runs.

Rates are log-normal with the spreads and correlations of the real year, or the year's residuals.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import pandas as pd

from benchmarks.alarms.tokio import write_reduced
from benchmarks.alarms.worlds import Array, Random, with_outliers
from iobands.bands.contract import MEDIAN_QUANTILE, Outcome, Promise
from iobands.judge.acceptance import FEWEST_RUNS, decide

REAL: Final = "the real year's residuals"
SPREADS: Final = (0.02, 0.05, 0.10, 0.15, 0.20)
#: The true rate relative to the promise.
TRUTHS: Final = (0.9, 1.0, 1.05)
_MOST_RUNS: Final = 100
_COMMON: Final = 0.6
_DAY: Final = 24.0
_AROUND: Final = 31  # runs; their median is the level of a real series
_RISK: Final = 0.05
_PER_SIGMA: Final = 2 * NormalDist().inv_cdf(0.75)  # of the distance between quartiles

_Draw = Callable[[Random], Array]


@dataclass(frozen=True)
class Accepted:
    """Simulated acceptances at one spread and truth: shares met and missed, and the mean runs.

    `fixed` is the number of runs of a fixed-size test that knows spread and correlation.
    """

    spread: float
    truth: float
    met: float
    missed: float
    runs: float
    fixed: float


def accepted(
    correlation: float,
    outliers: float,
    gap: float,
    lasting: float,
    quantile: float,
    number: int,
    seed: int,
) -> list[Accepted]:
    """Simulate `number` acceptances at each spread and truth, with runs `gap` hours apart.

    `correlation` is from day to day; the contract assumes that conditions last `lasting` hours.
    """
    promise = Promise(1.0, "GiB/s", _MOST_RUNS, quantile, lasting_hours=lasting)
    kept = (correlation / _COMMON) ** (gap / _DAY)
    return [
        each
        for place, spread in enumerate(SPREADS)
        for each in _accepted(
            _drawn(spread, kept, outliers, quantile),
            promise,
            gap,
            number,
            seed + place,
            spread,
            fixed_number(spread, kept, quantile),
        )
    ]


def of_real_year(number: int, seed: int) -> list[Accepted]:
    """Simulate acceptances with one run per day from stretches of a real year's residuals."""
    series = _residuals()
    promise = Promise(1.0, "GiB/s", _MOST_RUNS)

    def draw(random: Random) -> Array:
        one = series[random.integers(len(series))]
        begin = random.integers(len(one) - _MOST_RUNS)
        return one[begin : begin + _MOST_RUNS]

    spreads = [float(np.diff(np.quantile(one, (0.25, 0.75)))[0]) / _PER_SIGMA for one in series]
    fixed = float(np.mean([fixed_number(each, 0.3 / _COMMON) for each in spreads]))
    return _accepted(draw, promise, _DAY, number, seed, 0.0, fixed)


def _drawn(spread: float, kept: float, outliers: float, quantile: float) -> _Draw:
    shift = spread * NormalDist().inv_cdf(quantile)

    def draw(random: Random) -> Array:
        common, own = random.standard_normal((2, _MOST_RUNS))
        for run in range(1, _MOST_RUNS):
            common[run] = kept * common[run - 1] + math.sqrt(1 - kept**2) * common[run]
        values = spread * (math.sqrt(_COMMON) * common + math.sqrt(1 - _COMMON) * own) - shift
        return with_outliers(random, values[None, :], outliers)[0]

    return draw


def _accepted(
    draw: _Draw, promise: Promise, gap: float, number: int, seed: int, spread: float, fixed: float
) -> list[Accepted]:
    hours = [gap * run for run in range(_MOST_RUNS)]
    random = np.random.default_rng(seed)
    drawn = [draw(random) for _ in range(number)]
    rows = []
    for truth in TRUTHS:
        found = [decide((truth * np.exp(each)).tolist(), hours, promise) for each in drawn]
        share = {each: sum(one.outcome is each for one in found) / number for each in Outcome}
        runs = float(np.mean([one.runs for one in found]))
        rows.append(Accepted(spread, truth, share[Outcome.MET], share[Outcome.MISSED], runs, fixed))
    return rows


def fixed_number(spread: float, kept: float, quantile: float = MEDIAN_QUANTILE) -> int:
    """Return the runs that a fixed-size test needs to detect a rate of 0.9, with errors of 5 %.

    It tests the mean of the logarithms or, for a quantile other than the median, the count above
    the middle. `kept` is the correlation of the lasting part between one run and the next.
    """
    normal = NormalDist()
    apart = -math.log(0.9) / spread
    deviations = 2 / apart
    if quantile != MEDIAN_QUANTILE:
        at = normal.inv_cdf(1 - quantile)
        good, bad = (normal.cdf(at + side * apart / 2) for side in (1, -1))
        both = math.sqrt(good * (1 - good)) + math.sqrt(bad * (1 - bad))
        deviations = both / (good - bad)
    needed = (normal.inv_cdf(1 - _RISK) * deviations) ** 2
    runs = FEWEST_RUNS
    while runs / (1 + 2 * _COMMON * _sum(kept, runs)) < needed:
        runs += 1
    return runs


def _sum(kept: float, runs: int) -> float:
    """Return the sum of (1 - k / runs) kept^k, by which correlation widens a mean."""
    return sum((1 - k / runs) * kept**k for k in range(1, runs))


@cache
def _residuals() -> list[Array]:
    """Return for each series of the real year the logarithms of its rates over a running median."""
    table = Path(os.environ["IOBANDS_REAL_DATA"])
    with TemporaryDirectory() as temporary:
        reduced = table
        if "bandwidth_gib_s" not in pd.read_csv(table, nrows=0).columns:
            reduced = Path(temporary) / "year.csv"
            write_reduced(table, reduced)
        runs = pd.read_csv(reduced).sort_values("time")
    by_series = defaultdict(list)
    for *name, rate in runs[
        ["file_system", "application", "pattern", "operation", "bandwidth_gib_s"]
    ].itertuples(index=False):
        by_series[tuple(name)].append(math.log(rate))
    found = []
    for values in (np.array(each) for each in by_series.values()):
        if len(values) > 2 * _MOST_RUNS:
            half = _AROUND // 2
            level = [
                np.median(values[max(0, at - half) : at + half + 1]) for at in range(len(values))
            ]
            found.append(values - level - np.median(values - level))
    return found
