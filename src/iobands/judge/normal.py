"""What is normal for a series at each time: its verdicts, floors and outliers follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import compress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.bands import ABOVE, BELOW, COLLAPSED, NO_BAND, WITHIN, Band, Bands, Spans, log_fence
from iobands.judge.detect import FIRST_BASELINE, Baseline
from iobands.snapshot import VERDICTS, History, Outliers, SeriesKey, Times, Verdicts, in_utc, moment

#: The source of a learned band.
OWN_HISTORY: Final = "own history, provisional"

_SECOND: Final = np.timedelta64(1, "s")
# The significant digits of a learned figure: the logarithm rounds any further ones.
_DIGITS: Final = 12
# The lower quartile, the median, the upper quartile and the maximum.
_SHARES: Final = np.array((0.25, 0.5, 0.75, 1.0))


def matched(key: SeriesKey, sample: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a sample that bands and limits are matched with."""
    return {**key.fields(), **{name: sample[name] for name in ("medium", "file_system_type")}}


def comparing(history: History, bands: Bands) -> NDArray[np.bool_]:
    """Return which samples can be compared with the newest: equal settings, comparable epochs."""
    since = bands.compares_since(history.last)
    chosen = history.alike & ~left_out(history, bands)
    return chosen if since is None else chosen & (history.times >= in_utc(since))


def left_out(history: History, bands: Bands) -> NDArray[np.bool_]:
    """Return which samples are kept but not judged: resolved, discarded or in maintenance."""
    found = np.zeros(len(history), dtype=bool)
    for spans in bands.left_out:
        found |= inside(spans, history.times)
    return found


def inside(spans: Spans, times: Times) -> NDArray[np.bool_]:
    """Return which of `times`, in UTC, are in one of the spans."""
    begins, ends = _edges(spans)
    if not len(begins):
        return np.zeros(len(times), dtype=bool)
    place = np.searchsorted(begins, times, "right") - 1
    return np.asarray((place >= 0) & (times <= ends[place]))


@lru_cache(256)  # each series asks for the same maintenances
def _edges(spans: Spans) -> tuple[Times, Times]:
    begins, ends = (np.array([*map(in_utc, each)], "datetime64[ns]") for each in spans.edges)
    return begins, ends


@dataclass(frozen=True)
class Normal:
    """What is normal for a series at each of its samples; arrays are of shape (samples,).

    `places` are indices into `bands`, -1 where nothing is known. A band is declared in the bands
    file, or learned: the baseline that the detector judged the run by, which follows adopted
    levels. `is_judged` marks runs that no earlier run asked for and whose band was known when they
    were made. `newest` is the band at the newest sample, even if that sample is left out.
    """

    bands: tuple[Band, ...]
    places: NDArray[np.int_]
    is_judged: NDArray[np.bool_]
    newest: Band | None

    @cached_property
    def figures(self) -> NDArray[np.float64]:
        """The floor and the quartiles, of shape (4, samples), NaN where nothing is known."""
        found = [(b.floor, b.lower_quartile, b.median, b.upper_quartile) for b in self.bands]
        return np.array([*found, (np.nan,) * 4])[self.places].T

    def verdicts(self, history: History) -> Verdicts:
        """Return the verdicts of the samples in `history`."""
        floor, lower, _, upper = self.figures
        values, times = history.values, (history.times - np.datetime64(0, "ns")) // _SECOND
        # the first condition that holds decides
        holds = [np.isnan(floor), values < floor, values < lower, values > upper]
        verdicts = map(VERDICTS.index, (NO_BAND, COLLAPSED, BELOW, ABOVE))
        codes = np.select(holds, [*verdicts], VERDICTS.index(WITHIN))
        is_other = self.places[1:] != self.places[:-1]
        begins = np.flatnonzero(np.append(True, is_other)[: len(values)])
        segments = tuple((int(times[begin]), int(self.places[begin])) for begin in begins)
        return Verdicts(times, codes, self.bands, segments)


def normal_of(
    key: SeriesKey,
    history: History,
    bands: Bands,
    judged: NDArray[np.int_],
    baselines: Sequence[tuple[int, Baseline]],
) -> Normal:
    """Return what is normal for a series, by the bands file and by its chart.

    `judged` are the rows of the chart's runs in `history`, and `baselines` its baselines, each with
    the first run that it judges. The first one also applies to the runs it was learned from.
    """
    found: list[Band | Baseline] = []
    size = len(history)
    own, is_judged = np.full(size, -1), np.zeros(size, dtype=bool)
    # the newest has a verdict even if it failed
    rows = np.append(judged[judged < size - 1], size - 1)
    for first, baseline in baselines:
        if len(baseline.runs) >= FIRST_BASELINE and first < len(rows):
            own[rows[first if found else 0 :]] = len(found)
            is_judged[rows[first:]] = True
            found.append(baseline)
    places = own.copy()
    for epoch in bands.epochs:
        # The fields of the newest sample, such as its medium, stand for all samples.
        declared = bands.band_for(matched(key, history.newest), epoch.since)
        since = int(np.searchsorted(history.times, in_utc(epoch.since)))
        places[since:] = len(found) if declared else own[since:]
        found += [declared] if declared else []
    is_judged = (is_judged | (places != own)) & ~history.asked
    used = np.bincount(places + 1, minlength=len(found) + 1)[1:] > 0
    places = np.append(used.cumsum() - 1, -1)[places]  # -1, for nothing known, stays -1
    inside = compress(found, used)
    known = tuple(_learned(key, each) if isinstance(each, Baseline) else each for each in inside)
    newest = known[places[-1]] if places[-1] >= 0 else None
    if newest and newest.is_own and left_out(history, bands)[-1]:
        places[-1] = -1
    return Normal(known, places, is_judged, newest)


def _learned(key: SeriesKey, baseline: Baseline) -> Band:
    """Return the band of a baseline.

    Quartiles interpolate linearly between order statistics: type 7 of Hyndman and Fan, "Sample
    quantiles in statistical packages", The American Statistician 50 (1996).
    `np.quantile` takes ten times as long for a few values, and sorts them again.
    """
    values = np.exp(baseline.ordered)
    figures = np.interp(_SHARES * (len(values) - 1), np.arange(len(values)), values)
    lower, median, upper, maximum = (float(f"{each:.{_DIGITS}g}") for each in figures)
    return Band(
        unit=key.unit,
        runs=len(baseline.runs),
        source=OWN_HISTORY,
        lower_quartile=lower,
        median=median,
        upper_quartile=upper,
        maximum=maximum,
        floor=log_fence(lower, upper, len(baseline.runs)),
    )


def nothing_known(runs: int) -> Normal:
    """Return a `Normal` without any band, for a series of `runs` runs that cannot be judged."""
    return Normal((), np.full(runs, -1), np.zeros(runs, dtype=bool), None)


@dataclass(frozen=True)
class TransientRuns:
    """The runs of a series that were judged and are in no lasting drop, in the order of time.

    Arrays are of shape (runs,): `times` in UTC, `ratios` over the median of the band, and `low`,
    whether the run is under its floor.
    """

    times: Times
    ratios: NDArray[np.float64]
    low: NDArray[np.bool_]

    @property
    def outliers(self) -> Outliers:
        """Return the number of outliers, without a streak of low runs that may go on."""
        ended = int(np.flatnonzero(~self.low)[-1]) + 1 if not self.low.all() else 0
        times, low = self.times[:ended], self.low[:ended]
        newest = moment(times[low][-1]) if low.any() else None
        return Outliers(ended, int(np.count_nonzero(low)), newest)
