"""The baseline of a series: its runs, how they correlate, and how often one is an outlier."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from iobands.judge.scores import (
    SHIFTS,
    Array,
    Quartiles,
    Scores,
    band_cells,
    band_sample,
    blended,
    history_cells,
)

#: The fewest runs for a baseline, and the fewest for a baseline without a band.
FIRST_BASELINE: Final = 20
FULL_BASELINE: Final = 60
#: The runs of a full baseline, which is then frozen: a slow decline must not become normal.
LARGEST_BASELINE: Final = 200

# The correlation of the other series counts like this many runs of this series.
_PRIOR_RUNS: Final = 100
# A deep run lies under the outer fence of the baseline and this far under its median.
_FENCE: Final = 3.0
_DEEP: Final = 0.8
_MOST_DEEP: Final = 0.05


@dataclass(frozen=True)
class Baseline:
    """Accepted runs of a series, as logarithms of shape (runs,) in the order of time, and a band.

    With fewer than `FIRST_BASELINE` runs and no band, nothing is judged. `prior_correlation` is the
    serial correlation of the other series of the file system.
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
        """The serial correlation that scores are corrected for; 0 while there are too few runs.

        A young baseline has its estimate raised by up to one standard error.
        """
        if len(self.runs) < FIRST_BASELINE:
            return 0.0
        known = len(self.runs) + (_PRIOR_RUNS if self.prior_correlation is not None else 0)
        return min(self.likely_correlation + self.youth / np.sqrt(known), MOST_CORRELATION)

    @cached_property
    def likely_correlation(self) -> float:
        """The serial correlation of the runs, drawn towards the prior while they are few."""
        size = len(self.runs)
        found = serial_correlation(self.runs) if size >= FIRST_BASELINE else 0.0
        if self.prior_correlation is not None:
            found = (size * found + _PRIOR_RUNS * self.prior_correlation) / (size + _PRIOR_RUNS)
        return min(max(found, 0.0), MOST_CORRELATION)

    @property
    def youth(self) -> float:
        """How young the baseline is: 1 without runs, 0 from `LARGEST_BASELINE` on."""
        return max(0.0, 1 - len(self.runs) / LARGEST_BASELINE)

    @property
    def inflation(self) -> float:
        """The factor by which intervals are widened for the serial correlation."""
        return inflation(self.correlation)

    @cached_property
    def scores(self) -> Scores | None:
        """The scores of runs; None if nothing can be judged."""
        size = len(self.runs)
        published = band_cells(self.band) if self.band is not None else None
        if size < FIRST_BASELINE:
            return published
        # The mean of n correlated runs varies like a mean of fewer independent ones.
        own = history_cells(self.runs, size / self.inflation**2, self.youth)
        if published is None or size >= FULL_BASELINE:
            return own
        return blended(own, published, (size - FIRST_BASELINE) / (FULL_BASELINE - FIRST_BASELINE))

    @cached_property
    def deep(self) -> float:
        """The logarithm under which a run is deep: far below everything but outliers.

        It is the outer fence, three interquartile ranges under the lower quartile (Tukey,
        "Exploratory data analysis", 1977, chapter 2), and at least a fifth under the median. If
        more than a few runs of the baseline are that low, they are a mode, and no run is deep.
        """
        size = len(self._ordered)
        lower, median, upper = self._ordered[[size // 4, size // 2, 3 * size // 4]]
        fence = float(min(lower - _FENCE * (upper - lower), median + np.log(_DEEP)))
        below = int(np.searchsorted(self._ordered, fence))
        return fence if below <= _MOST_DEEP * size else -np.inf

    @cached_property
    def _ordered(self) -> Array:
        return np.sort(self.level())

    @cached_property
    def deep_runs(self) -> int:
        """How many of the runs are deep."""
        return int(np.count_nonzero(self.runs < self.deep))

    @cached_property
    def deep_shares(self) -> Array:
        """The share of runs that each design change would make deep, of shape (designs,)."""
        below = np.searchsorted(self._ordered, self.deep - SHIFTS)
        return below.mean(axis=1) / len(self._ordered)

    def level(self) -> Array:
        """Return logarithms spread like healthy runs, of shape (n,); empty where unknown."""
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

    The ranks are taken over all values and their mean over blocks of some 30, so that a shift of
    the level from one block to another does not count as correlation. The block that varies most,
    which a shift may lie in, is left out where there are four or more. What the block means take
    away is put back: for n runs a block the estimate is short by about (1 + 3 phi) / n (Kendall,
    "Note on bias in the estimation of autocorrelation", Biometrika 41, 1954).
    """
    size = len(values)
    blocks = max(1, round(size / _BLOCK))
    ordered = np.sort(values)
    ranks = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    starts = np.arange(blocks) * size // blocks
    lengths = np.diff(starts, append=size)
    centred = ranks - np.repeat(np.add.reduceat(ranks, starts) / lengths, lengths)
    following = centred * np.append(centred[1:], 0.0)
    following[starts[1:] - 1] = 0.0  # the next run is of another block
    squares = np.add.reduceat(centred**2, starts)
    products = np.add.reduceat(following, starts) * lengths / np.maximum(lengths - 1, 1)
    if blocks >= _BLOCKS_TO_SPARE:
        kept = np.arange(blocks) != np.argmax(squares)
        squares, products = squares[kept], products[kept]
    square = float(squares.sum())
    if square == 0:
        return 0.0
    found, length = float(products.sum()) / square, size / blocks
    corrected = (found * length + 1) / (length - 3) if length > 4 else found  # noqa: PLR2004
    return float(corrected)


def inflation(correlation: float) -> float:
    """Return the factor on a limit: sqrt((1 + phi) / (1 - phi)), for a series of type AR(1)."""
    return float(np.sqrt((1 + correlation) / (1 - correlation)))


def scale_for(correlation: float, threshold: float, watch: float, youth: float = 0.0) -> float:
    """Return the divisor of every score for the serial correlation phi of a series.

    For thresholds up to `watch` it is sqrt((1 + phi) / (1 - phi)). The higher the threshold, the
    more correlated runs add up to a false alarm, and in the end their long-run variance decides,
    (1 + phi) / (1 - phi). From twice `watch` on the exponent is 3/4, and 1 for a baseline of
    full `youth`, whose correlation is hardly known (docs/error-rates.md).
    """
    share = min(max((threshold - watch) / watch, 0.0), 1.0)
    return inflation(correlation) ** (1 + share * (1 + youth) / 2)


# Assumptions about a file system without runs: the rate of outliers, and how often the next run is
# one too. They count like this many runs and outliers.
_ASSUMED_RUNS: Final = 100.0

_PRIOR_FIRST: Final = 1.0

_PRIOR_OUTLIERS: Final = 5.0

_PRIOR_AGAIN: Final = 0.4

# The rate of all series counts like this many runs of one series.
_OWN_RUNS: Final = 20.0

# However rare outliers are, one run adds at most 5 nats.
_LEAST: Final = math.exp(-5.0)

# The fewest and the most runs for a correlation; the newest count.
_ENOUGH: Final = 20

_NEWEST_RUNS: Final = 400

# The level of a run is the median of the runs around it; a longer streak is no outlier.
_WINDOW: Final = 21

_LONGEST: Final = 3

# As for `Baseline.deep`.
_OUTLIER_FENCE: Final = 3.0

_DEEP_OUTLIER: Final = 0.8


@dataclass(frozen=True)
class Prior:
    """Counts of some series: `runs`, outliers that began a streak, and that continued one.

    `correlation` is their mean serial correlation, None if it is not known.
    """

    runs: int = 0
    begun: int = 0
    continued: int = 0
    correlation: float | None = None

    @property
    def first(self) -> float:
        """The rate of outliers after an ordinary run."""
        return max((self.begun + _PRIOR_FIRST) / (self.runs + _ASSUMED_RUNS), _LEAST)

    def first_of(self, own: int, runs: int) -> float:
        """Return the rate for a series with `own` outliers in `runs` runs."""
        return max((self.first * _OWN_RUNS + own) / (_OWN_RUNS + runs), self.first)

    @property
    def again(self) -> float:
        """The rate of outliers after an outlier."""
        outliers = self.begun + self.continued
        rate = (self.continued + _PRIOR_AGAIN) / (outliers + _PRIOR_OUTLIERS)
        return max(rate, self.first)


def prior_of(series: Iterable[Array]) -> Prior:
    """Return the prior of several series, each logarithms in the order of time."""
    runs = begun = continued = pairs = 0
    correlations = 0.0
    for every in series:
        values = every[-_NEWEST_RUNS:]
        if len(values) >= _ENOUGH:
            correlations += len(values) * serial_correlation(values)
            pairs += len(values)
        lengths = _streaks(_is_outlier(values))
        lengths = lengths[lengths <= _LONGEST]
        runs += len(values)
        begun += len(lengths)
        continued += int((lengths - 1).sum())
    return Prior(runs, begun, continued, correlations / pairs if pairs else None)


def _is_outlier(values: Array) -> NDArray[np.bool_]:
    """Return which runs are far below the level around them, of shape (runs,)."""
    if len(values) < _WINDOW:
        level = np.full(len(values), np.median(values)) if len(values) else values
    else:
        windows = sliding_window_view(values, _WINDOW)
        middle = np.partition(windows, _WINDOW // 2, axis=1)[:, _WINDOW // 2]
        level = np.pad(middle, _WINDOW // 2, mode="edge")
    residuals = values - level
    if not len(values):
        return np.zeros(0, dtype=bool)
    lower, upper = np.quantile(residuals, (0.25, 0.75))
    return residuals < min(lower - _OUTLIER_FENCE * (upper - lower), math.log(_DEEP_OUTLIER))


def _streaks(flags: NDArray[np.bool_]) -> NDArray[np.int_]:
    """Return the lengths of the streaks of true flags."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(int)))
    return edges[1::2] - edges[::2]
