"""The verdict of each sample: which band judges it, and which runs are outliers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from iobands.bands import ABOVE, BELOW, COLLAPSED, NO_BAND, WITHIN, Band, Bands, Limit, log_fence
from iobands.judge.detection import Detection
from iobands.model import SeriesKey
from iobands.snapshot import (
    DOWN,
    ENOUGH_RUNS,
    NOTHING,
    VERDICTS,
    History,
    Outliers,
    Times,
    Verdicts,
    in_utc,
    moment,
)

_NEWEST: Final = 100
#: The source of a learned band.
OWN_HISTORY: Final = "own history, provisional"

_SECOND: Final = np.timedelta64(1, "s")
# The other fields that a band may match.
_OF_BANDS: Final = ("medium", "file_system_type")


def band_in_force(
    key: SeriesKey, sample: Mapping[str, object], when: datetime, bands: Bands
) -> Band | None:
    """Return the band of the bands file for a sample with these fields taken at `when`."""
    return bands.band_for({**key.fields(), **{name: sample[name] for name in _OF_BANDS}}, when)


def limit_in_force(
    key: SeriesKey, sample: Mapping[str, object], when: datetime, bands: Bands
) -> Limit | None:
    """Return the limit of the bands file for a sample; see `band_in_force`."""
    return bands.limit_for({**key.fields(), **{name: sample[name] for name in _OF_BANDS}}, when)


def comparing(history: History, bands: Bands) -> NDArray[np.bool_]:
    """Return which samples can be compared with the newest: equal settings, comparable epochs."""
    since = bands.compares_since(history.last)
    chosen = history.alike & ~left_out(history, bands)
    return chosen if since is None else chosen & (history.times >= in_utc(since))


def comparable(history: History, bands: Bands) -> NDArray[np.bool_]:
    """Return which earlier samples passed and can be compared with the newest."""
    chosen = comparing(history, bands) & history.passed
    chosen[-1] = False  # the newest must not be judged by itself
    return chosen


def judged(history: History, bands: Bands) -> NDArray[np.int_]:
    """Return the places of the samples that the detector judges, in the order of time.

    Runs that failed because they were too slow count: without them a file system with collapsed
    rates would look healthy.
    """
    return np.flatnonzero(comparing(history, bands) & (history.passed | history.too_slow))


def left_out(history: History, bands: Bands) -> NDArray[np.bool_]:
    """Return which samples are kept but not judged: resolved, discarded or in maintenance."""
    found = np.zeros(len(history), dtype=bool)
    for span in bands.left_out:
        found |= (history.times >= in_utc(span.begin)) & (history.times <= in_utc(span.end))
    return found


def learned_band(key: SeriesKey, values: NDArray[np.float64]) -> Band | None:
    """Return a band from the newest of earlier `values`, or None if there are too few.

    Quartiles interpolate linearly between order statistics: type 7 of Hyndman and Fan, "Sample
    quantiles in statistical packages", The American Statistician 50 (1996).
    """
    if len(values) < ENOUGH_RUNS:
        return None
    values = values[-_NEWEST:]
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


def learned_quartiles(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the quartiles of `learned_band` before each of `values`, of shape (3, runs), or NaN.

    Each is as of its time, so a file system that became faster has a higher floor.
    """
    runs = pl.lit(pl.Series(values))
    found = pl.select(
        runs.rolling_quantile(q, "linear", window_size=_NEWEST, min_samples=ENOUGH_RUNS)
        .shift(1)
        .alias(f"{q}")
        for q in (0.25, 0.5, 0.75)
    )
    return found.to_numpy().T  # null becomes NaN


def verdicts_of(key: SeriesKey, history: History, bands: Bands, learned: Band | None) -> Verdicts:
    """Return the verdicts of all samples of a series."""
    times = (history.times - np.datetime64(0, "ns")) // _SECOND
    if not len(history):
        return Verdicts(times, np.zeros(0, int), (), ())
    codes, found = band_of_each(key, history, bands, learned)
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
    known = tuple(each for each in found if each)
    place = {id(each): number for number, each in enumerate(known)}
    begins = np.flatnonzero(np.diff(codes, prepend=-1))
    segments = tuple(
        (int(times[begin]), place.get(id(found[codes[begin]]), -1)) for begin in begins
    )
    return Verdicts(times, verdicts, known, segments)


def band_of_each(
    key: SeriesKey, history: History, bands: Bands, learned: Band | None
) -> tuple[NDArray[np.int_], list[Band | None]]:
    """Return for each sample the place of the band that judges it, and these bands.

    The band is the one in force in the bands file at that time. Otherwise it is `learned`, if the
    sample can be compared with the ones that it was learned from. The last band is None, for
    samples without one.
    """
    found: list[Band | None] = [learned]
    covered = comparable(history, bands)
    covered[-1] = not left_out(history, bands)[-1]
    codes = np.where(covered & (learned is not None), 0, -1)
    own = codes.copy()
    for epoch in bands.epochs:
        # The fields of the newest sample, such as its medium, stand for all samples.
        published = band_in_force(key, history.newest, epoch.since, bands)
        first = int(np.searchsorted(history.times, in_utc(epoch.since)))
        codes[first:] = len(found) if published else own[first:]
        found += [published] if published else []
    return codes, [*found, None]


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


#: For a series without a band.
NONE: Final = TransientRuns(NOTHING.times, NOTHING.values, NOTHING.passed)


def transient_runs(
    key: SeriesKey, history: History, bands: Bands, detection: Detection | None
) -> TransientRuns:
    """Return the runs of a series that were judged one by one.

    Each is judged by the published band, else by the band learned from the runs before it.
    """
    if detection is None:
        return NONE
    kept = ~in_drop(detection) & ~history.asked[detection.rows]
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
    """Return which of the runs are in a lasting drop, of shape (runs,)."""
    found = np.zeros(len(detection.rows), dtype=bool)
    for point in detection.chart.changes:
        if point.direction == DOWN:
            found[point.onset : point.ended] = True
    return found
