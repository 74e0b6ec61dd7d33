"""The band that a sample is held against: the published one of its time, or one that was learnt.

Pure functions over tables and bands; may know neither files nor views.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from iobands.bands import Band, Bands, log_fence
from iobands.series import SeriesKey

#: From how many runs of its own a series may learn a band.
ENOUGH_RUNS: Final = 20
#: What a learnt band says of its source.
OWN_HISTORY: Final = "own history, provisional"


def published_band(key: SeriesKey, sample: pd.Series, bands: Bands | None) -> Band | None:
    """Return the band of the bands file that was in force for `sample` when it was taken."""
    if bands is None:
        return None
    fields = {
        **key.fields(),
        "medium": sample["medium"],
        "file_system_type": sample["file_system_type"],
    }
    present = {name: None if pd.isna(cell) else cell for name, cell in fields.items()}
    return bands.band_for(present, sample["job_completion_time"].to_pydatetime())


def learnt_band(key: SeriesKey, values: NDArray[np.float64]) -> Band | None:
    """Return a band from earlier `values`, or None when there are too few.

    The quartiles interpolate linearly between order statistics, as type 7 of Hyndman and Fan,
    "Sample quantiles in statistical packages", The American Statistician 50 (1996).
    """
    if len(values) < ENOUGH_RUNS:
        return None
    lower, median, upper = (float(q) for q in np.quantile(values, (0.25, 0.5, 0.75)))
    return Band(
        match={},
        unit=key.unit,
        lower_quartile=lower,
        median=median,
        upper_quartile=upper,
        maximum=float(values.max()),
        floor=log_fence(lower, upper),
        runs=len(values),
        epoch="",
        source=OWN_HISTORY,
    )
