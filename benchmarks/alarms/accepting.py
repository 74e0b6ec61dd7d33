"""Simulations of acceptances: how often a line is called met or missed wrongly, in how many runs.

Rates are log-normal with the spreads and the correlation of the real year, or its own residuals.
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
from iobands.bands.contract import Promise
from iobands.judge.acceptance import FEWEST_RUNS, decide
from iobands.snapshot.acceptance import Outcome

REAL: Final = "the real year's residuals"
SPREADS: Final = (0.02, 0.05, 0.10, 0.15, 0.20)
#: What the rate is, over the promise.
TRUTHS: Final = (0.9, 1.0, 1.05)
_MOST_RUNS: Final = 100
_COMMON: Final = 0.6
_DAY: Final = 24.0
_AROUND: Final = 31  # runs of which the median is the level of a real series
_PER_SIGMA: Final = 2 * NormalDist().inv_cdf(0.75)  # of the distance between quartiles


@dataclass(frozen=True)
class Accepted:
    """Of acceptances at one spread and truth: shares called met and missed, and the mean runs.

    `fixed` is the number of a test that takes all its runs and knows the spread.
    """

    spread: float
    truth: float
    met: float
    missed: float
    runs: float
    fixed: float


def accepted(
    correlation: float, outliers: float, gap: float, quantile: float, number: int, seed: int
) -> list[Accepted]:
    """Return what comes of runs `gap` hours apart, with this correlation from day to day."""
    lasting = -_DAY / math.log(correlation / _COMMON) if correlation else 0.0
    return [
        _accepted(
            _drawn(spread, lasting, outliers, gap, quantile),
            gap,
            quantile,
            truth,
            number,
            seed + place,
            spread,
            fixed_number(spread, lasting, gap, quantile),
        )
        for place, spread in enumerate(SPREADS)
        for truth in TRUTHS
    ]


def of_real_year(number: int, seed: int) -> list[Accepted]:
    """Return what comes of the residuals of a real year, in their order, at a run a day."""
    series = _residuals()
    spreads = [float(np.diff(np.quantile(one, (0.25, 0.75)))[0]) / _PER_SIGMA for one in series]
    lasting = -_DAY / math.log(0.3 / _COMMON)
    fixed = float(np.mean([fixed_number(each, lasting, _DAY, 0.5) for each in spreads]))

    def draw(random: Random) -> Array:
        one = series[random.integers(len(series))]
        begin = random.integers(len(one) - _MOST_RUNS)
        return one[begin : begin + _MOST_RUNS]

    middle = float(np.median(spreads))
    return [_accepted(draw, _DAY, 0.5, truth, number, seed, middle, fixed) for truth in TRUTHS]


def fixed_number(spread: float, lasting: float, gap: float, quantile: float) -> int:
    """Return the runs of a fixed number that tell both rates apart with errors of 5 %.

    By the mean of the logarithms, or by the count above the middle for another quantile.
    """
    normal = NormalDist()
    apart = -math.log(0.9) / spread
    if quantile != 0.5:  # noqa: PLR2004
        at = normal.inv_cdf(1 - quantile)
        good, bad = (normal.cdf(at + side * apart / 2) for side in (1, -1))
        deviation = math.sqrt(good * (1 - good)) + math.sqrt(bad * (1 - bad))
        needed = (normal.inv_cdf(0.95) * deviation / (good - bad)) ** 2
    else:
        needed = (2 * normal.inv_cdf(0.95) / apart) ** 2
    kept = math.exp(-gap / lasting) if lasting else 0.0
    runs = FEWEST_RUNS
    while runs / (1 + 2 * _COMMON * _sum(kept, runs)) < needed:
        runs += 1
    return runs


def _sum(kept: float, runs: int) -> float:
    """Return the sum of (1 - k / runs) kept^k, by which correlation widens a mean."""
    return sum((1 - k / runs) * kept**k for k in range(1, runs))


def _drawn(
    spread: float, lasting: float, outliers: float, gap: float, quantile: float
) -> Callable[[Random], Array]:
    kept = math.exp(-gap / lasting) if lasting else 0.0
    shift = spread * NormalDist().inv_cdf(quantile)

    def draw(random: Random) -> Array:
        common, fresh = random.standard_normal((2, _MOST_RUNS))
        for run in range(1, _MOST_RUNS):
            common[run] = kept * common[run - 1] + math.sqrt(1 - kept**2) * common[run]
        values = spread * (math.sqrt(_COMMON) * common + math.sqrt(1 - _COMMON) * fresh) - shift
        return with_outliers(random, values[None, :], outliers)[0]

    return draw


def _accepted(
    draw: Callable[[Random], Array],
    gap: float,
    quantile: float,
    truth: float,
    number: int,
    seed: int,
    spread: float,
    fixed: float,
) -> Accepted:
    promise = Promise(1.0, "GiB/s", _MOST_RUNS, quantile)
    hours = [gap * run for run in range(_MOST_RUNS)]
    random = np.random.default_rng(seed)
    found = [decide((truth * np.exp(draw(random))).tolist(), hours, promise) for _ in range(number)]
    share = {each: sum(one.outcome is each for one in found) / number for each in Outcome}
    runs = float(np.mean([one.runs for one in found]))
    return Accepted(spread, truth, share[Outcome.MET], share[Outcome.MISSED], runs, fixed)


@cache
def _residuals() -> list[Array]:
    """Return the logarithms of the real year's rates over their level, by series."""
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
