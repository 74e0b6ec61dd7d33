"""The verdicts of all samples of a series as arrays, and the band that holds from when on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.bands import ABOVE, BELOW, COLLAPSED, NO_BAND, WITHIN, Band
from iobands.status.series import Series
from iobands.status.verdicts import band_of_each

#: The verdicts by their codes, which grow with what is wrong.
VERDICTS: Final = (NO_BAND, WITHIN, ABOVE, BELOW, COLLAPSED)
_SECOND: Final = np.timedelta64(1, "s")


@dataclass(frozen=True)
class Judged:
    """For each sample its time in seconds since 1970 and the code of its verdict.

    `segments` has the times from which on a band holds, and its place in `bands`, -1 for none.
    """

    times: NDArray[np.int64]
    verdicts: NDArray[np.int_]
    bands: tuple[Band, ...]
    segments: tuple[tuple[int, int], ...]


def judged(series: Series) -> Judged:
    """Return the verdicts of a series."""
    history, status = series.history, series.status
    times = (history.times - np.datetime64(0, "ns")) // _SECOND
    if not len(history):
        return Judged(times, np.zeros(0, int), (), ())
    learned = status.band if status.provisional else None
    codes, found = band_of_each(series.key, history, series.bands, learned)
    codes = np.where(codes < 0, len(found) - 1, codes)
    limits = np.array(
        [
            (each.floor, each.lower_quartile, each.upper_quartile) if each else (np.nan,) * 3
            for each in found
        ]
    )
    floor, lower, upper = limits[codes].T
    values = history.values
    verdicts = np.select(
        [np.isnan(floor), values < floor, values < lower, values > upper],
        [VERDICTS.index(each) for each in (NO_BAND, COLLAPSED, BELOW, ABOVE)],
        VERDICTS.index(WITHIN),
    )
    bands = tuple(each for each in found if each)
    place = {id(each): number for number, each in enumerate(bands)}
    begins = np.flatnonzero(np.diff(codes, prepend=-1))
    segments = tuple(
        (int(times[begin]), place.get(id(found[codes[begin]]), -1)) for begin in begins
    )
    return Judged(times, verdicts, bands, segments)
