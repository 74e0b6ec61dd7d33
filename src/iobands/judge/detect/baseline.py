"""The baseline of a series: its runs, how they correlate, and how far out an outlier lies."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.judge.detect.scores import (
    DESIGNS,
    SHIFTS,
    Blend,
    Cells,
    Quartiles,
    band_cells,
    band_sample,
    history_cells,
    lower_mode,
)
from iobands.snapshot.history import Array, median_of

#: The fewest runs for a baseline, and the fewest with which a published band no longer counts.
FIRST_BASELINE: Final = 20
FULL_BASELINE: Final = 60
#: A baseline of this many runs is frozen: a slow decline must not become normal.
LARGEST_BASELINE: Final = 200

#: The evidence, in nats, from which a drop is suspected.
WATCH: Final = 5.7
# The correlation of the other series counts like this many runs of this series.
_PRIOR_RUNS: Final = 100
#: The serial correlation of an unknown file system; it counts like this many runs.
USUAL_CORRELATION: Final = 0.2
_USUAL_RUNS: Final = 10
#: A run is deep if it lies this many interquartile ranges under the lower quartile of the baseline,
#: and under this share of its median. No run is deep if more than `_MOST_DEEP` of the baseline are.
FENCE: Final = 3.0
DEEP: Final = 0.8
_MOST_DEEP: Final = 0.05


@dataclass(frozen=True)
class Baseline:
    """Accepted runs, as logarithms of shape (runs,) in the order of time, and a published band.

    With fewer than `FIRST_BASELINE` runs and no band, nothing is judged. `prior_correlation` is the
    serial correlation of the series of the file system.
    """

    runs: Array = field(default_factory=lambda: np.empty(0))
    band: Quartiles | None = None
    prior_correlation: float | None = None

    @property
    def can_judge(self) -> bool:
        """Whether there is a band or enough runs for scores."""
        return self.band is not None or len(self.runs) >= FIRST_BASELINE

    @cached_property
    def correlation(self) -> float:
        """The serial correlation that scores are corrected for; 0 while there are too few runs."""
        return self.correlation_by(self.prior_correlation)

    def correlation_by(self, prior: float | None) -> float:
        """Return the serial correlation; `prior` is the file system's, None if not known.

        The fewer the runs, the more their own correlation is drawn to `prior`, or to a usual one.
        For a young baseline it is raised by up to one standard error.
        """
        size = len(self.runs)
        if size < FIRST_BASELINE:
            return 0.0
        others = _USUAL_RUNS if prior is None else _PRIOR_RUNS
        prior = USUAL_CORRELATION if prior is None else prior
        known = size + others
        found = (size * self._own_correlation + others * prior) / known
        return min(max(found, 0.0) + self.youth / math.sqrt(known), MOST_CORRELATION)

    @cached_property
    def _own_correlation(self) -> float:
        return serial_correlation(self.runs)

    @cached_property
    def youth(self) -> float:
        """How young the baseline is: 1 without runs, 0 from `LARGEST_BASELINE` on."""
        return max(0.0, 1 - len(self.runs) / LARGEST_BASELINE)

    @cached_property
    def inflation(self) -> float:
        """The factor by which intervals are widened for the serial correlation."""
        return inflation(self.correlation)

    @cached_property
    def scores(self) -> Cells | Blend | None:
        """What gives runs their scores; None if nothing can be judged."""
        size = len(self.runs)
        published = band_cells(self.band) if self.band is not None else None
        if size < FIRST_BASELINE:
            return published
        # The mean of n correlated runs varies like a mean of fewer independent ones.
        own = history_cells(self.runs, size / self.inflation**2, self.youth)
        if published is None or size >= FULL_BASELINE:
            return own
        return Blend(own, published, (size - FIRST_BASELINE) / (FULL_BASELINE - FIRST_BASELINE))

    @cached_property
    def fences(self) -> tuple[float, float]:
        """The outer fences: logarithms, three interquartile ranges beyond the quartiles.

        Runs beyond them are far out (Tukey, "Exploratory data analysis", 1977, chapter 2).
        """
        size = len(self.ordered)
        lower, upper = float(self.ordered[size // 4]), float(self.ordered[3 * size // 4])
        return lower - FENCE * (upper - lower), upper + FENCE * (upper - lower)

    @cached_property
    def deep(self) -> float:
        """The logarithm under which a run is deep: far below everything but outliers.

        It is the lower fence, or a fifth under the median if that is lower; minus infinity if more
        than a few runs of the baseline would be deep, as these are a mode and no outliers.
        """
        size = len(self.ordered)
        fence = min(self.fences[0], float(self.ordered[size // 2] + np.log(DEEP)))
        below = int(self.ordered.searchsorted(fence))
        return fence if below <= _MOST_DEEP * size else -np.inf

    @cached_property
    def ordered(self) -> Array:
        """`level`, in rising order."""
        return np.sort(self.level)

    def normal(self, logarithms: Array) -> Array:
        """Return the ranks of runs in the baseline, as quantiles of the standard normal."""
        sides = (np.searchsorted(self.ordered, logarithms, side) for side in ("left", "right"))
        return np.asarray(self._quantiles[sum(sides)])

    @cached_property
    def _quantiles(self) -> Array:
        size = 2 * len(self.ordered) + 1
        return np.array([NormalDist().inv_cdf((place + 0.5) / size) for place in range(size)])

    @cached_property
    def moves(self) -> Array:
        """How far each design change moves `normal`, of shape (designs,)."""
        return self.normal(self.ordered + np.log(DESIGNS)[:, None]).mean(axis=1)

    @cached_property
    def lower_mode(self) -> int:
        """How many of `ordered` are in the lower one of two modes, 0 if there is one mode."""
        return lower_mode(self.ordered)

    @cached_property
    def deep_runs(self) -> int:
        """How many of the runs are deep."""
        return int(np.count_nonzero(self.runs < self.deep))

    @cached_property
    def deep_shares(self) -> Array:
        """The share of runs that each design change would make deep, of shape (designs,)."""
        below = self.ordered.searchsorted(self.deep - SHIFTS)
        return below.mean(axis=1) / len(self.ordered)

    @cached_property
    def middle(self) -> float:
        """The median of `level`."""
        return median_of(self.ordered)

    @cached_property
    def level(self) -> Array:
        """Logarithms spread like healthy runs, of shape (n,); empty where unknown."""
        if len(self.runs) < FIRST_BASELINE and self.band is not None:
            return band_sample(self.band)
        return self.runs


#: The largest correlation that scores are corrected for: beyond it a chart would find nothing.
MOST_CORRELATION: Final = 0.7

# A level shift correlates all runs on one side; within blocks of this length it is rare.
_BLOCK: Final = 30

_BLOCKS_TO_SPARE: Final = 4


def serial_correlation(values: Array) -> float:
    """Return the lag-1 rank correlation of `values`, in the order of time; it may be negative.

    The ranks are taken over all values, and their means over blocks of some 30, so that a shift of
    the level from one block to another does not count as correlation. Of four blocks or more, the
    one that varies most is left out, as a shift may lie in it. The bias of the block means is
    corrected: with n runs a block the estimate is too low by about (1 + 3 phi) / n (Kendall, "Note
    on bias in the estimation of autocorrelation", Biometrika 41, 1954).
    """
    size, ordered = len(values), np.sort(values)
    ranks = ordered.searchsorted(values, "left") + ordered.searchsorted(values, "right")
    starts, lengths = _blocks(size)
    centred = ranks - (np.add.reduceat(ranks, starts) / lengths).repeat(lengths)
    following = np.zeros(size)
    following[:-1] = centred[:-1] * centred[1:]
    following[starts[1:] - 1] = 0.0  # the next run is in another block
    squares = np.add.reduceat(centred**2, starts)
    products = np.add.reduceat(following, starts) * lengths / np.maximum(lengths - 1, 1)
    if len(starts) >= _BLOCKS_TO_SPARE:
        kept = np.arange(len(starts)) != squares.argmax()
        squares, products = squares[kept], products[kept]
    square = float(squares.sum())
    if square == 0:
        return 0.0
    found, length = float(products.sum()) / square, size / len(starts)
    corrected = (found * length + 1) / (length - 3) if length > 4 else found  # noqa: PLR2004
    return float(corrected)


@lru_cache
def _blocks(size: int) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Return the first run and the number of runs of each block."""
    blocks = max(1, round(size / _BLOCK))
    starts = np.arange(blocks) * size // blocks
    return starts, np.diff(starts, append=size)


def inflation(correlation: float) -> float:
    """Return the factor on a confidence limit for AR(1) series: sqrt((1 + phi) / (1 - phi))."""
    return math.sqrt((1 + correlation) / (1 - correlation))


@lru_cache(2**16)
def scale_for(correlation: float, threshold: float, youth: float = 0.0) -> float:
    """Return the divisor of every score for the serial correlation phi of a series.

    It is a power of (1 + phi) / (1 - phi). Up to the threshold `WATCH` the exponent is 1/2. The
    higher the threshold, the more correlated runs make up a false alarm, and their long-run
    variance, with exponent 1, counts. So from twice `WATCH` on it is 3/4, and 1 for a baseline of
    full `youth`, whose correlation is hardly known (docs/error-rates.md).
    """
    share = min(max((threshold - WATCH) / WATCH, 0.0), 1.0)
    return float(inflation(correlation) ** (1 + share * (1 + youth) / 2))


def ranks(
    runs: int, share: float, *, confidence: float = 0.95, widened: float = 1.0
) -> tuple[int, int] | None:
    """Return the ranks, from 1, between which the quantile lies; None if there are too few runs.

    The number of `runs` independent runs under the quantile `share` is binomial (David and
    Nagaraja, Order Statistics, 3rd edition, 2003, section 7.1). Each tail has at most
    (1 - confidence) / 2; then the ranks move together as far as `confidence` in all allows. For
    runs that depend on each other, they are moved `widened` times as far from `runs` x `share`.
    """
    from scipy.stats import binom  # noqa: PLC0415 (slow to load, and only calibration needs it)

    tail = (1 - confidence) / 2
    low, high = int(binom.ppf(tail, runs, share)), int(binom.ppf(1 - tail, runs, share)) + 1
    if low < 1 or high > runs:
        return None
    covered = float(binom.cdf(high - 1, runs, share) - binom.cdf(low - 1, runs, share))
    while True:
        at_low, at_high = (float(binom.pmf(k, runs, share)) for k in (low, high - 1))
        covered -= min(at_low, at_high)
        if covered < confidence:
            break
        low, high = (low + 1, high) if at_low <= at_high else (low, high - 1)
    centre = runs * share
    low = min(low, int(np.floor(centre - (centre - low) * widened)))
    high = max(high, int(np.ceil(centre + (high - centre) * widened)))
    return (low, high) if low >= 1 and high <= runs else None


def interval(
    values: Array, share: float, *, confidence: float, correlation: float
) -> tuple[float, float] | None:
    """Return the confidence interval of the quantile `share` of `values`, None if they are too few.

    It is widened for their serial `correlation`, see `correlation_of`.
    """
    found = ranks(len(values), share, confidence=confidence, widened=inflation(correlation))
    order = np.sort(values)
    return (float(order[found[0] - 1]), float(order[found[1] - 1])) if found else None


def correlation_of(values: Array) -> float:
    """Return the serial correlation of the ranks of `values`, from 0 to `MOST_CORRELATION`."""
    return float(np.clip(serial_correlation(values), 0.0, MOST_CORRELATION))
