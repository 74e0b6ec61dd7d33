"""The verdict on a line of a contract: a sequential test of what it promises.

The test weighs two statements about the promised median, or other quantile, of the rate: it is as
promised, or it is less by the tolerance. Wald's bounds decide as soon as one of them is likely
enough (A. Wald, "Sequential tests of statistical hypotheses", Ann. Math. Stat. 16, 1945). Each run
counts by its distance from the middle of the two, clipped as in P. J. Huber's censored test ("A
robust version of the probability ratio test", Ann. Math. Stat. 36, 1965), in units of a spread that
is learned from the runs, and with the weight that correlated runs leave it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.bands.contract import MEDIAN_QUANTILE, Decision, Outcome, Promise

_Array = NDArray[np.float64]

#: The fewest runs that decide a line.
FEWEST_RUNS: Final = 3
# The share of the variance that runs at one time have in common. In daily series of a real year the
# logarithms correlate by 0.29, 0.16 and 0.07 over one, two and three days, once level shifts are
# taken out: 0.6 exp(-24 / 36) is 0.31.
_COMMON: Final = 0.6
# What is assumed of the spread of the logarithms, and how many runs that counts for.
_ASSUMED_SPREAD: Final = 0.12
_ASSUMED_RUNS: Final = 3
# A spread from few effective runs may be too small by chance: its square gets 1 + 3 / runs.
_CAUTION: Final = 3.0
# No run counts for more than one at this distance from the middle, in spreads.
_CLIP: Final = 1.5
# A run this many times as far from the median as half of the runs is an outlier, and does not
# count for the spread.
_OUTLIER: Final = 4.0
_OUTLIERS_FROM: Final = 5
_LEAST_CHANCE: Final = 0.05
_FAR: Final = 2.0  # spreads
_FAR_COSTS: Final = math.log(4)
_NORMAL: Final = NormalDist()
_MEAN_DISTANCE: Final = math.sqrt(2 / math.pi)  # of a normal variate from its mean
# Two-sided, as each error of 5 % is one-sided.
_INTERVAL: Final = 0.90


def decide(rates: Sequence[float], hours: Sequence[float], promise: Promise) -> Decision:
    """Return what the `rates` of runs at ordered `hours` decide of a promise.

    The test ends with the first run that decides, or with the last one that the promise allows.
    Later runs do not count.
    """
    logs = np.log(np.array(rates[: promise.runs], dtype=np.float64) / promise.rate)
    to_meet = math.log((1 - promise.vendor_risk) / promise.site_risk)
    to_miss = -math.log((1 - promise.site_risk) / promise.vendor_risk)
    path: list[float] = []
    outcome = Outcome.UNDECIDED
    for number in range(1, len(logs) + 1):
        so_far = tuple(hours[:number])
        path.append(evidence_of(logs[:number], so_far, promise) if number > 1 else 0.0)
        if number >= FEWEST_RUNS and not to_miss < path[-1] < to_meet:
            outcome = Outcome.MET if path[-1] > 0 else Outcome.MISSED
            break
    used, share = len(path), promise.quantile
    if not used:
        return Decision(outcome, 0, 0.0, (), to_meet, to_miss)
    effective = float(sum(weights_of(tuple(hours[:used]), promise.lasting_hours)))
    level = float(np.quantile(logs[:used], share))
    rate = promise.rate * math.exp(level)
    found = Decision(outcome, used, effective, tuple(path), to_meet, to_miss, rate)
    if used < FEWEST_RUNS:
        return found
    spread = spread_of(logs[:used], effective)
    density = _NORMAL.pdf(_NORMAL.inv_cdf(share))
    error = math.sqrt(share * (1 - share) / effective) / density * spread
    aside = _NORMAL.inv_cdf((1 + _INTERVAL) / 2) * error
    low, high = (promise.rate * math.exp(level + side) for side in (-aside, aside))
    return replace(found, lower=low, upper=high, spread=spread)


def evidence_of(logs: _Array, hours: tuple[float, ...], promise: Promise) -> float:
    """Return the evidence for the promise and against the promise less its tolerance, in nats.

    `logs` are logarithms of rates over the promised rate. Where rates vary by more than the
    tolerance, a rate that is two spreads off either of the two is a better alternative to it. As
    there are more ways to err then, it has to be likelier by a factor.
    """
    weights = np.array(weights_of(hours, promise.lasting_hours))
    spread = spread_of(logs, float(weights.sum()))
    between = -math.log(1 - promise.tolerance)

    def weighed(middle: float, apart: float) -> float:
        places = (logs - middle) / spread
        return float(weights @ _scores(places, apart / spread, promise.quantile))

    found = weighed(-between / 2, between)
    if (far := _FAR * spread) > between:
        above = weighed(far / 2 - between, far) - _FAR_COSTS
        below = weighed(-far / 2, far) + _FAR_COSTS
        found = max(found, above) if found > 0 or above > -found else min(found, below)
    return found


def _scores(places: _Array, apart: float, quantile: float) -> _Array:
    """Return what each run says about two levels at a distance of `apart`, by its place.

    Of a quantile other than the median, by which share of the runs lies above it, and no more.
    """
    if quantile == MEDIAN_QUANTILE:
        return np.clip(places, -_CLIP, _CLIP) * apart
    at = _NORMAL.inv_cdf(1 - quantile)
    chances = (_NORMAL.cdf(at + side * apart / 2) for side in (1, -1))
    good, bad = (min(max(each, _LEAST_CHANCE), 1 - _LEAST_CHANCE) for each in chances)
    return np.where(places > 0, math.log(good / bad), math.log((1 - good) / (1 - bad)))


def spread_of(logs: _Array, effective: float) -> float:
    """Return the spread of logarithms of rates: robust, and cautious while the runs are few.

    Correlated runs vary less among themselves than the rate does, by their `effective` number.
    """
    distances = np.abs(logs - np.median(logs))
    if len(logs) >= _OUTLIERS_FROM:
        distances = np.minimum(distances, _OUTLIER * np.median(distances))
    own = float(np.mean(distances)) / _MEAN_DISTANCE
    own_square = own**2 / (1 - 1 / effective) * (1 + _CAUTION / effective)
    runs = len(logs)
    assumed = _ASSUMED_RUNS * _ASSUMED_SPREAD**2
    return math.sqrt((assumed + runs * own_square) / (_ASSUMED_RUNS + runs))


@lru_cache(maxsize=512)
def weights_of(hours: tuple[float, ...], lasting: float) -> tuple[float, ...]:
    """Return how much each run counts for the level; the sum is the effective number of runs.

    Runs correlate by 0.6 exp(-gap / lasting). These are the weights of the best linear estimate of
    their common mean, over its variance in squares of the spread.
    """
    gaps = np.abs(np.subtract.outer(hours, hours))
    common = np.exp(-gaps / lasting) if lasting else np.eye(len(hours))
    matrix = _COMMON * common + (1 - _COMMON) * np.eye(len(hours))
    return tuple(np.linalg.solve(matrix, np.ones(len(hours))).tolist())
