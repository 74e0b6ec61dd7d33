"""Series with known quartiles and a chosen tail, correlation and share of outliers.

A world is given by its quantile function: logarithms of values at quantiles of the normal
distribution. All worlds of a band have its quartiles; what lies below the lower and above the
upper one differs. May know: numpy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_QUARTILE: Final = NormalDist().inv_cdf(0.75)
_HIGH: Final = NormalDist().inv_cdf(0.995)
_AT: Final = np.linspace(-6, 6, 4801)
_LEAST_DENSITY: Final = -50.0
#: What an outlier is, as a share of the median.
_OUTLIER: Final = 0.25


@dataclass(frozen=True)
class Quartiles:
    """A published band, in GiB/s."""

    lower_quartile: float
    median: float
    upper_quartile: float
    maximum: float


#: The bands that ARCHER2's documentation publishes.
BANDS: Final[Mapping[str, Quartiles]] = {
    "NVMe FPP": Quartiles(135, 150, 180, 200),
    "SSF NVMe": Quartiles(9, 10, 11, 20),
    "SSF HDD": Quartiles(8, 10, 12, 22),
    "FPP HDD": Quartiles(30, 90, 160, 170),
}

#: The tails, and what they are. The last four were not looked at while the chart was made.
TAILS: Final[Mapping[str, str]] = {
    "plain": "the slope between lower quartile and median goes on; the maximum is the 99.5 % point",
    "heavy": "twice the slope below the lower quartile",
    "collapse": "5 % of the runs at half the median and below, none just above that",
    "light": "half the slope below the lower quartile",
    "top light": "half the slope above the upper quartile",
    "top heavy": "twice the slope above the upper quartile",
    "two modes": "runs crowd at the quartiles, few lie between them",
}
HELD_OUT: Final = ("light", "top light", "top heavy", "two modes")


@dataclass(frozen=True)
class World:
    """A kind of healthy series; `quantiles` are logarithms at `_AT`."""

    band: str
    tail: str
    quantiles: Array
    correlation: float = 0.0
    outliers: float = 0.0

    def draw(self, random: np.random.Generator, series: int, runs: int) -> Array:
        """Return logarithms of healthy values, of shape (series, runs)."""
        normal = random.standard_normal((runs, series))
        fresh = np.sqrt(1 - self.correlation**2)
        for run in range(1, runs if self.correlation else 0):
            normal[run] = self.correlation * normal[run - 1] + fresh * normal[run]
        values = self.at(normal.T)
        if self.outliers:
            stray = random.random(values.shape) < self.outliers
            values[stray] = np.log(BANDS[self.band].median * _OUTLIER)
        return values

    def at(self, normal: Array) -> Array:
        """Return the logarithms of healthy values at quantiles of the normal distribution."""
        return np.interp(normal, _AT, self.quantiles)

    def log_density(self, values: Array) -> Array:
        """Return the log-density of independent runs at the logarithms `values`."""
        slope = np.gradient(self.quantiles, _AT)
        at = np.interp(values, self.quantiles, _AT)
        found = -at * at / 2 - np.log(np.interp(at, _AT, slope))
        outside = (values < self.quantiles[0]) | (values > self.quantiles[-1])
        return np.where(outside, _LEAST_DENSITY, found)


def world(band: str, tail: str, correlation: float = 0.0, outliers: float = 0.0) -> World:
    """Return the world with the quartiles of `band` and the tail `tail`."""
    return World(band, tail, _quantiles(BANDS[band], tail), correlation, outliers)


def _quantiles(band: Quartiles, tail: str) -> Array:
    low, middle, high, top = np.log(
        [band.lower_quartile, band.median, band.upper_quartile, band.maximum]
    )
    down, up, over = (middle - low) / _QUARTILE, (high - middle) / _QUARTILE, 0.0
    over = (top - high) / (_HIGH - _QUARTILE)
    below = {"heavy": 2.0, "light": 0.5}.get(tail, 1.0)
    above = {"top heavy": 2.0, "top light": 0.5}.get(tail, 1.0)
    found = np.where(_AT < 0, middle + down * _AT, middle + up * _AT)
    found = np.where(_AT > _QUARTILE, high + above * over * (_AT - _QUARTILE), found)
    found = np.where(_AT < -_QUARTILE, low + below * down * (_AT + _QUARTILE), found)
    if tail == "collapse":
        rare, rarer, edge = -1.645, -2.576, -1.55
        collapsed = min(low + down * (rare + _QUARTILE), middle + np.log(0.5))
        deep = collapsed + np.log(0.3)
        knots = [-6, rarer, rare, edge, -_QUARTILE]
        values = [deep - 1, deep, collapsed, low + 0.8 * down * (edge + _QUARTILE), low]
        found = np.where(_AT < -_QUARTILE, np.interp(_AT, knots, values), found)
    if tail == "two modes":
        knots = [-6, -_QUARTILE, -0.25, 0, 0.25, _QUARTILE, 6]
        values = [
            low - down * (6 - _QUARTILE),
            low,
            low + 0.15 * (middle - low),
            middle,
            high - 0.3 * (high - middle),
            high,
            high + over * (6 - _QUARTILE),
        ]
        found = np.interp(_AT, knots, values)
    return found
