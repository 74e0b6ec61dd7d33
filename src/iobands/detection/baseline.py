"""The baseline of a series: what its runs are judged by, and the scores that follow from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from iobands.detection.correlation import MOST, inflation, serial_correlation
from iobands.detection.scores import (
    SHIFTS,
    Array,
    Quartiles,
    Scores,
    band_cells,
    band_sample,
    blended,
    history_cells,
)

#: From so many own runs on they are a baseline, and from so many on the only one.
FIRST_BASELINE: Final = 20
FULL_BASELINE: Final = 60
#: A baseline grows to so many runs and is then frozen: a slow decline must not become normal.
LARGEST_BASELINE: Final = 200

# The correlation of other series is worth so many runs of this one.
_PRIOR_RUNS: Final = 100
# A run is deep that lies under the outer fence of the baseline and this far under its median.
_FENCE: Final = 3.0
_DEEP: Final = 0.8
_MOST_DEEP: Final = 0.05


@dataclass(frozen=True)
class Baseline:
    """Accepted runs of a series, as logarithms of shape (runs,) in the order of time, and a band.

    Fewer than `FIRST_BASELINE` runs and no band judge nothing. `prior_correlation` is the serial
    correlation of other series of the file system.
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
        return min(self.likely_correlation + self.youth / np.sqrt(known), MOST)

    @cached_property
    def likely_correlation(self) -> float:
        """The serial correlation of the runs, drawn towards the prior while they are few."""
        size = len(self.runs)
        found = serial_correlation(self.runs) if size >= FIRST_BASELINE else 0.0
        if self.prior_correlation is not None:
            found = (size * found + _PRIOR_RUNS * self.prior_correlation) / (size + _PRIOR_RUNS)
        return min(max(found, 0.0), MOST)

    @property
    def youth(self) -> float:
        """How young the baseline is: 1 without runs, 0 from `LARGEST_BASELINE` on."""
        return max(0.0, 1 - len(self.runs) / LARGEST_BASELINE)

    @property
    def inflation(self) -> float:
        """How much wider intervals are for the serial correlation."""
        return inflation(self.correlation)

    @cached_property
    def scores(self) -> Scores | None:
        """What gives a run its scores; None where nothing can be judged."""
        size = len(self.runs)
        published = band_cells(self.band) if self.band is not None else None
        if size < FIRST_BASELINE:
            return published
        # The mean of n correlated runs varies like that of fewer independent ones.
        own = history_cells(self.runs, size / self.inflation**2, self.youth)
        if published is None or size >= FULL_BASELINE:
            return own
        return blended(own, published, (size - FIRST_BASELINE) / (FULL_BASELINE - FIRST_BASELINE))

    @cached_property
    def deep(self) -> float:
        """The logarithm under which a run is deep: far below everything but outliers.

        The outer fence, three interquartile ranges under the lower quartile (Tukey, "Exploratory
        data analysis", 1977, chapter 2), and a fifth under the median at the least. No run is deep
        where more than a few of the baseline would be: these are a mode and no outliers.
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
        """How many of the runs are deep themselves."""
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
