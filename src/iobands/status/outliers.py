"""Outliers: runs below the floor of their band and outside of any lasting drop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.bands import Bands, log_fence
from iobands.detection.series import Detection, moment
from iobands.model.history import NOTHING, History, Times
from iobands.model.series import SeriesKey
from iobands.snapshot.change import DOWN
from iobands.snapshot.series import Outliers
from iobands.status.verdicts import band_of_each, learned_quartiles


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
    key: SeriesKey, history: History, bands: Bands, detection: Detection | None
) -> TransientRuns:
    """Return the runs of a series that were judged one by one.

    Each is judged by the published band, else by the one that the runs before it give.
    """
    if detection is None:
        return NONE
    kept = ~in_drop(detection)
    values = detection.values[kept]
    lower, medians, upper = learned_quartiles(values)
    floors = np.array(
        [log_fence(*each) for each in zip(lower.tolist(), upper.tolist(), strict=True)]
    )
    codes, found = band_of_each(key, history, bands, None)
    for code, band in enumerate(found[:-1]):
        published = codes[detection.rows[kept]] == code
        if band is not None:
            floors[published], medians[published] = band.floor, band.median
    judged = np.isfinite(floors)
    values, floors, medians = values[judged], floors[judged], medians[judged]
    return TransientRuns(detection.times[kept][judged], values / medians, values < floors)


def in_drop(detection: Detection) -> NDArray[np.bool_]:
    """Return which of the runs are of a lasting drop, of shape (runs,)."""
    found = np.zeros(len(detection.rows), dtype=bool)
    for point in detection.chart.changes:
        if point.direction == DOWN:
            found[point.onset : point.ended] = True
    return found
