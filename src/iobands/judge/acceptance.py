"""The verdict on a promise of a contract, by a sequential probability ratio test.

There are two hypotheses about the promised quantile of the rate, usually the median: it is as
promised, or lower by the tolerance. The test ends when the evidence for one of them crosses Wald's
bound (A. Wald, "Sequential tests of statistical hypotheses", Ann. Math. Stat. 16, 1945). Each run
is scored by its distance from the midpoint of the two, in units of a spread learned from the runs
and clipped as in P. J. Huber's censored test ("A robust version of the probability ratio test",
Ann. Math. Stat. 36, 1965), and weighted for its correlation with the other runs.
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

#: No promise is decided by fewer runs.
FEWEST_RUNS: Final = 3
# The share of the variance that simultaneous runs have in common. In daily series of a real year
# the logarithms correlate by 0.29, 0.16 and 0.07 over one, two and three days, once level shifts
# are taken out: 0.6 exp(-24 / 36) is 0.31.
_COMMON: Final = 0.6
# The spread of the logarithms that is assumed beforehand, and how many runs it counts for.
_ASSUMED_SPREAD: Final = 0.12
_ASSUMED_RUNS: Final = 3
# A spread from n effective runs may be too small by chance: the factor on its square is 1 + 3 / n.
_CAUTION: Final = 3.0
# A run further from the midpoint than this, in spreads, counts as if it were at this distance.
_CLIP: Final = 1.5
# From `_OUTLIERS_FROM` runs on, distances from the median are clipped to this multiple of their own
# median before they give the spread.
_OUTLIER: Final = 4.0
_OUTLIERS_FROM: Final = 5
_LEAST_CHANCE: Final = 0.05
_FAR: Final = 2.0  # spreads
_FAR_COSTS: Final = math.log(4)
_NORMAL: Final = NormalDist()
_MEAN_DISTANCE: Final = math.sqrt(2 / math.pi)  # of a normal variate from its mean
# The interval is two-sided, with 5 % on each side, as each error of the test is one-sided.
_INTERVAL: Final = 0.90


def decide(rates: Sequence[float], hours: Sequence[float], promise: Promise) -> Decision:
    """Return the decision on a promise by the `rates` of runs made at `hours`, in ascending order.

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
    """Return the evidence, in nats, for the promise against the promise less its tolerance.

    `logs` are logarithms of the rates relative to the promised one. If two spreads exceed the
    tolerance, both hypotheses are also tested against a rate that is two spreads off. As this gives
    chance more ways to decide, such a rate has to be four times as likely.
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
    """Return the score of each run for the upper of two levels, which lie `apart` spreads apart.

    `places` are distances from their midpoint, in spreads; off the median only their signs count.
    """
    if quantile == MEDIAN_QUANTILE:
        return np.clip(places, -_CLIP, _CLIP) * apart
    at = _NORMAL.inv_cdf(1 - quantile)
    chances = (_NORMAL.cdf(at + side * apart / 2) for side in (1, -1))
    good, bad = (min(max(each, _LEAST_CHANCE), 1 - _LEAST_CHANCE) for each in chances)
    return np.where(places > 0, math.log(good / bad), math.log((1 - good) / (1 - bad)))


def spread_of(logs: _Array, effective: float) -> float:
    """Return a robust spread of logarithms of rates, deliberately wide while the runs are few.

    Correlated runs vary less among themselves than the rate does; `effective` corrects for this.
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
    """Return the weight of each run; the sum is the effective number of runs.

    Runs correlate by 0.6 exp(-gap / lasting). These are the weights of the best linear estimate of
    their common mean, divided by its variance in units of the squared spread.
    """
    gaps = np.abs(np.subtract.outer(hours, hours))
    common = np.exp(-gaps / lasting) if lasting else np.eye(len(hours))
    matrix = _COMMON * common + (1 - _COMMON) * np.eye(len(hours))
    return tuple(np.linalg.solve(matrix, np.ones(len(hours))).tolist())
