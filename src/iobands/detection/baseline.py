"""The baseline of a series: what its runs are judged by, and the scores that follow from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from iobands.detection.correlation import inflation, serial_correlation
from iobands.detection.scores import (
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


@dataclass(frozen=True)
class Baseline:
    """Accepted runs of a series, as logarithms of shape (runs,) in the order of time, and a band.

    Fewer than `FIRST_BASELINE` runs and no band judge nothing.
    """

    runs: Array = field(default_factory=lambda: np.empty(0))
    band: Quartiles | None = None

    @property
    def can_judge(self) -> bool:
        """Whether there is a band or enough runs for scores."""
        return self.band is not None or len(self.runs) >= FIRST_BASELINE

    @cached_property
    def correlation(self) -> float:
        """The serial correlation of the runs; 0 while there are too few."""
        return serial_correlation(self.runs) if len(self.runs) >= FIRST_BASELINE else 0.0

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
        own = history_cells(self.runs, size / self.inflation**2)
        if published is None or size >= FULL_BASELINE:
            return own
        return blended(own, published, (size - FIRST_BASELINE) / (FULL_BASELINE - FIRST_BASELINE))

    def level(self) -> Array:
        """Return logarithms spread like healthy runs, of shape (n,); empty where unknown."""
        if len(self.runs) < FIRST_BASELINE and self.band is not None:
            return band_sample(self.band)
        return self.runs
