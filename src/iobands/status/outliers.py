"""Outliers: runs below the floor of their band and outside of any lasting drop."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.bands import Bands
from iobands.detection import DOWN
from iobands.detection.series import Detection, moment
from iobands.model.history import NOTHING, History, Times
from iobands.model.series import SeriesKey
from iobands.status.state import Status
from iobands.status.verdicts import band_of_each


@dataclass(frozen=True)
class Outliers:
    """How many of `runs` were outliers, and when the newest of them was taken (UTC)."""

    runs: int = 0
    outliers: int = 0
    newest: datetime | None = None

    def __add__(self, other: Outliers) -> Outliers:
        """Return the count of both."""
        times = [each.newest for each in (self, other) if each.newest]
        return Outliers(
            self.runs + other.runs, self.outliers + other.outliers, max(times, default=None)
        )


@dataclass(frozen=True)
class TransientRuns:
    """The runs of a series that have a band and are in no lasting drop, in the order of time.

    Arrays are of shape (runs,): `times` in UTC, `ratios` to the median of the band, and `low`,
    whether the run is under the floor.
    """

    times: Times
    ratios: NDArray[np.float64]
    low: NDArray[np.bool_]

    @property
    def outliers(self) -> Outliers:
        """Return how many of the runs are outliers."""
        newest = moment(self.times[self.low][-1]) if self.low.any() else None
        return Outliers(len(self.low), int(np.count_nonzero(self.low)), newest)


#: Of a series without a band.
NONE: Final = TransientRuns(NOTHING.times, NOTHING.values, NOTHING.passed)


def transient_runs(
    key: SeriesKey, history: History, bands: Bands | None, status: Status
) -> TransientRuns:
    """Return the runs of a series that were judged one by one."""
    detection = status.detection
    if detection is None or status.band is None:
        return NONE
    codes, found = band_of_each(key, history, bands, status.band if status.provisional else None)
    codes = codes[detection.rows]
    floors = np.array([band.floor if band else np.nan for band in found])[codes]
    medians = np.array([band.median if band else np.nan for band in found])[codes]
    judged = np.isfinite(floors) & ~in_drop(detection)
    values = detection.values[judged]
    return TransientRuns(detection.times[judged], values / medians[judged], values < floors[judged])


def in_drop(detection: Detection) -> NDArray[np.bool_]:
    """Return which of the runs are of a lasting drop, of shape (runs,)."""
    found = np.zeros(len(detection.rows), dtype=bool)
    for point in detection.chart.changes:
        if point.direction == DOWN:
            found[point.onset : point.ended] = True
    return found
