"""Healthy series with a chosen spread, serial correlation and rate of outliers.

All functions return logarithms of values, of shape (series, runs).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
Random = np.random.Generator


def modes(normal: Array, share: float = 0.4) -> Array:
    """Return series of two modes, with `share` of their runs in the lower one."""
    at = np.clip(stats.norm.cdf(normal), 1e-9, 1 - 1e-9)
    within = np.where(at < share, at / share, (at - share) / (1 - share))
    mode = np.where(at < share, np.log(0.6), 0.0)
    return mode + 0.08 * stats.norm.ppf(np.clip(within, 1e-6, 1 - 1e-6))


#: Maps standard normal variates to the values of a world.
WORLDS: Final[Mapping[str, Callable[[Array], Array]]] = {
    "log-normal": lambda normal: 0.2 * normal,
    "gamma": lambda normal: np.log(stats.gamma(12).ppf(stats.norm.cdf(normal)) / 12),
    "two modes": modes,
    "heavy tail": lambda normal: 0.12 * stats.t(3).ppf(stats.norm.cdf(normal)),
}


def normals(random: Random, series: int, runs: int, correlation: float = 0.0) -> Array:
    """Return normal variates; `correlation` is between one run and the next."""
    found = random.standard_normal((series, runs))
    fresh = np.sqrt(1 - correlation**2)
    for run in range(1, runs if correlation else 0):
        found[:, run] = correlation * found[:, run - 1] + fresh * found[:, run]
    return found


def with_outliers(random: Random, values: Array, rate: float, *, pairs: bool = False) -> Array:
    """Return `values` with a share `rate` of all runs at 0.1 to 0.5, singly or in pairs."""
    begun = random.random(values.shape) < (rate / 2 if pairs else rate)
    if pairs:
        begun[:, 1:] |= begun[:, :-1].copy()
    depth = np.log(random.uniform(0.1, 0.5, values.shape))
    return np.where(begun, values + depth, values)


def shared(random: Random, series: int, runs: int, share: float, lasting: float) -> Array:
    """Return log-normal series that have a factor of the day in common.

    It makes `share` of their variance; `lasting` is its correlation from day to day.
    """
    day = normals(random, 1, runs, lasting)
    own = normals(random, series, runs)
    return 0.2 * (np.sqrt(share) * day + np.sqrt(1 - share) * own)


def mode_lost(normal: Array, since: int, share: float) -> Array:
    """Return series with `share` of their runs in the lower one of two modes, then all."""
    found = modes(normal, share)
    found[:, since:] = np.log(0.6) + 0.08 * normal[:, since:]
    return found


def spread_doubled(normal: Array, since: int, spread: float) -> Array:
    """Return log-normal series that vary twice as much from some run on."""
    found = spread * normal
    found[:, since:] *= 2
    return found


def sliding(normal: Array, since: int, spread: float) -> Array:
    """Return log-normal series that lose 3 % in each 30 runs."""
    found = spread * normal
    found[:, since:] += np.log(0.97) / 30 * np.arange(1, normal.shape[1] - since + 1)
    return found


def rounded(values: Array) -> Array:
    """Return series with ten steps between the 1 % and the 99 % point of each."""
    low, high = np.percentile(np.exp(values), [1, 99], axis=1, keepdims=True)
    step = (high - low) / 10
    return np.asarray(np.log(step * np.maximum(np.round(np.exp(values) / step), 1)))


_QUARTILE: Final = NormalDist().inv_cdf(0.75)
_HIGH: Final = NormalDist().inv_cdf(0.995)
_AT: Final = np.linspace(-6, 6, 4801)

#: The bands that ARCHER2's documentation publishes: quartiles and maximum in GiB/s.
BANDS: Final[Mapping[str, tuple[float, float, float, float]]] = {
    "NVMe FPP": (135, 150, 180, 200),
    "SSF NVMe": (9, 10, 11, 20),
    "SSF HDD": (8, 10, 12, 22),
    "FPP HDD": (30, 90, 160, 170),
}


@dataclass(frozen=True)
class Banded:
    """A series with the quartiles of a published band.

    The slope of the logarithms between lower quartile and median goes on below, and the maximum
    is the 99.5 % point.
    """

    band: str

    @property
    def _quantiles(self) -> Array:
        low, middle, high, top = np.log(BANDS[self.band])
        down, up = (middle - low) / _QUARTILE, (high - middle) / _QUARTILE
        over = (top - high) / (_HIGH - _QUARTILE)
        found = np.where(_AT < 0, middle + down * _AT, middle + up * _AT)
        return np.where(_AT > _QUARTILE, high + over * (_AT - _QUARTILE), found)

    def draw(self, random: Random, series: int, runs: int) -> Array:
        """Return logarithms of independent healthy runs."""
        return self.at(random.standard_normal((series, runs)))

    def at(self, normal: Array) -> Array:
        """Return the logarithms at quantiles of the normal distribution."""
        return np.interp(normal, _AT, self._quantiles)

    def log_density(self, values: Array) -> Array:
        """Return the log-density of a run at the logarithms `values`."""
        quantiles = self._quantiles
        at = np.interp(values, quantiles, _AT)
        return -at * at / 2 - np.log(np.interp(at, _AT, np.gradient(quantiles, _AT)))
