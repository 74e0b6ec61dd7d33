"""Outliers: runs far below the baseline that did not last, counted by series and file system."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from iobands.bands import Bands
from iobands.detection import DOWN
from iobands.detection.series import Detection, moment
from iobands.model.history import History
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


def outliers_of(key: SeriesKey, history: History, bands: Bands | None, status: Status) -> Outliers:
    """Count the runs of a series that lie under the floor of their band and in no lasting drop.

    Runs without a band and runs of a lasting drop do not count at all.
    """
    if status.detection is None or status.band is None:
        return Outliers()
    learned = status.band if status.provisional else None
    codes, found = band_of_each(key, history, bands, learned)
    floors = np.array([band.floor if band else np.nan for band in found])
    floors = floors[codes[status.detection.rows]]
    counted = np.isfinite(floors) & ~in_drop(status.detection)
    below = np.flatnonzero(counted & (status.detection.values < floors))
    newest = moment(status.detection.times[below[-1]]) if below.size else None
    return Outliers(int(np.count_nonzero(counted)), len(below), newest)


def in_drop(detection: Detection) -> NDArray[np.bool_]:
    """Return which of the runs are of a lasting drop, of shape (runs,)."""
    found = np.zeros(len(detection.rows), dtype=bool)
    for point in detection.chart.changes:
        if point.direction == DOWN:
            found[point.onset : point.ended] = True
    return found


def total(counts: Iterable[Outliers]) -> Outliers:
    """Return the sum of `counts`."""
    return sum(counts, Outliers())
