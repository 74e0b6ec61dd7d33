"""The prior: what all series of a file system say about one of them, which may be young.

How often runs are outliers, far below their level for no lasting reason, and how much runs depend
on each other. A single young series cannot know either.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from iobands.detection.correlation import serial_correlation
from iobands.detection.scores import Array

# What is assumed of a file system without runs: one outlier in so many, and how often the next
# run is one too. The counts are worth so many runs and outliers.
_PRIOR_RUNS: Final = 100.0
_PRIOR_FIRST: Final = 1.0
_PRIOR_OUTLIERS: Final = 5.0
_PRIOR_AGAIN: Final = 0.4
# The rate of all series is worth so many runs of one of them.
_OWN_RUNS: Final = 20.0
# However rare outliers are, one run says no more than 5 nats.
_LEAST: Final = math.exp(-5.0)

# A series has a correlation from so many runs on. The newest runs count.
_ENOUGH: Final = 20
_NEWEST: Final = 400

# The level of a run is the median of so many around it; a longer streak is no outlier.
_WINDOW: Final = 21
_LONGEST: Final = 3
# As for `Baseline.deep`.
_FENCE: Final = 3.0
_DEEP: Final = 0.8


@dataclass(frozen=True)
class Prior:
    """Counts of some series: `runs`, outliers that began a streak, and that continued one.

    `correlation` is their mean serial correlation, None where it is not known.
    """

    runs: int = 0
    begun: int = 0
    continued: int = 0
    correlation: float | None = None

    @property
    def first(self) -> float:
        """The rate of outliers after a run that is none."""
        return max((self.begun + _PRIOR_FIRST) / (self.runs + _PRIOR_RUNS), _LEAST)

    def first_of(self, own: int, runs: int) -> float:
        """Return the rate for a series of which `own` of `runs` are outliers themselves."""
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
        values = every[-_NEWEST:]
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
    return residuals < min(lower - _FENCE * (upper - lower), math.log(_DEEP))


def _streaks(flags: NDArray[np.bool_]) -> NDArray[np.int_]:
    """Return the lengths of the streaks of true flags."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(int)))
    return edges[1::2] - edges[::2]
