"""What was known of a site at the beginning of each month: false-alarm budget and priors.

The budget sets the evidence that an alert needs. A prior is what all series of a file system show:
how often outliers occur, how long trouble lasts, and how runs depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from iobands.judge.detect.baseline import DEEP, FENCE, USUAL_CORRELATION
from iobands.judge.detect.spacing import NEW, Episode, Life, Spacing, episodes, new_of
from iobands.snapshot.history import Array, Flags, Times

#: The least evidence for an alert, in nats; with less, single runs would raise alarms.
DEGRADED: Final = 9.0
#: The evidence of a single run that is low, and of one that is far down.
LOW: Final = 0.5
FAR_DOWN: Final = 3.0
#: The evidence for recovery that ends a change.
RECOVERED_FROM: Final = 6.0
#: Runs to a false alarm at threshold h are at least exp(SLOPE * h) / DIVISOR, the smallest number
#: measured for any band, tail and size of history (docs/error-rates.md).
SLOPE: Final = 0.6
DIVISOR: Final = math.exp(-3.6)
# Evidence grows with each run of a lasting drop, and floating-point numbers end at exp(709).
_LARGEST_EXPONENT: Final = 700.0
_QUARTERS: Final = 4

# What is assumed of a file system without runs: `_FIRST` outlier in `_ASSUMED_RUNS` runs, and that
# `_AGAIN` of `_OUTLIERS` outliers follow another one.
_ASSUMED_RUNS: Final = 100.0
_FIRST: Final = 1.0
_OUTLIERS: Final = 5.0
_AGAIN: Final = 0.4
# The rate of all series counts like this many runs of one series.
_OWN_RUNS: Final = 20.0
# However rare outliers are, one run says no more than 5 nats.
_LEAST: Final = math.exp(-5.0)

# Only the newest runs of a series count; correlations are taken in blocks of `_BLOCK`.
_NEWEST_RUNS: Final = 400
_BLOCK: Final = 20
# The usual correlation counts like this many blocks.
_USUAL_BLOCKS: Final = 5
# The level of a run is the median of the runs up to this many before and after it. Runs with fewer
# after them may belong to a change that is not found yet, and do not count.
_AROUND: Final = 10
_WINDOW: Final = 2 * _AROUND + 1
# This many windows are sorted at a time: all at once would take 21 times the memory of the runs.
_AT_ONCE: Final = 2**16
# A longer streak is no outlier.
_LONGEST: Final = 3
# The runs of a pair are clipped to this many standard deviations.
_FURTHEST: Final = 2.5
# The middle half of a normal distribution is this many standard deviations wide.
_HALF: Final = 1.349


@dataclass(frozen=True)
class Budget:
    """The false-alarm budget of a system; `runs_a_year` is of all its series and groups."""

    false_alarms_a_year: float = 1.0
    runs_a_year: float = 365.0

    @cached_property
    def threshold(self) -> float:
        """The evidence for an alert, in nats, at least `DEGRADED`, rounded up to a quarter.

        The runs a year are an estimate that changes every day. Rounding keeps an alert from coming
        and going with it.
        """
        runs = max(self.runs_a_year, 1.0) / self.false_alarms_a_year
        exact = math.log(runs * DIVISOR) / SLOPE
        return max(DEGRADED, math.ceil(exact * _QUARTERS) / _QUARTERS)

    def years_to_false_alarm(self, score: float) -> float:
        """Return the mean number of years between false alarms of `score` on this system."""
        runs = math.exp(min(SLOPE * score, _LARGEST_EXPONENT)) / DIVISOR
        return max(1.0, runs) / max(self.runs_a_year, 1.0)


@dataclass(frozen=True)
class Prior:
    """What several series show: their `runs`, and the outliers that began or continued a streak.

    `correlation` is their median serial correlation, None if not known, `life` how long trouble
    lasts, and `new` the share of the variance that is new in each run.
    """

    runs: int = 0
    begun: int = 0
    continued: int = 0
    correlation: float | None = None
    life: Life = Life()  # noqa: RUF009 (frozen)
    new: float = NEW

    @cached_property
    def first(self) -> float:
        """The rate of outliers after an ordinary run, at least `_LEAST`."""
        return max(self.rate, _LEAST)

    @cached_property
    def rate(self) -> float:
        """The rate at which trouble begins that ends by itself."""
        return (self.begun + _FIRST) / (self.runs + _ASSUMED_RUNS)

    def first_of(self, own: int, runs: int) -> float:
        """Return `first` for a series with `own` outliers in `runs` runs: never a smaller rate."""
        return max((self.first * _OWN_RUNS + own) / (_OWN_RUNS + runs), self.first)

    @cached_property
    def again(self) -> float:
        """The rate of outliers after an outlier: no more of them than the runs allow for."""
        of_outliers = (self.continued + _AGAIN) / (self.begun + self.continued + _OUTLIERS)
        of_runs = (self.continued + _FIRST) / (self.runs + _ASSUMED_RUNS)
        return max(min(of_outliers, of_runs / self.first), self.first)

    def lasts(self, hours: float) -> float:
        """Return the probability that trouble still lasts `hours` after its first low run."""
        return self.life.lasts(hours, self.again)


@dataclass(frozen=True)
class Measured:
    """Runs of a series in the order of time: logarithms, and which of them were asked for."""

    times: Times
    values: Array
    asked: Flags


@dataclass(frozen=True)
class _Close:
    """What is learned from the runs of a series that are close together.

    `episodes` are times of trouble that ended. `pairs`, of shape (5, pairs), are the first two of
    runs close together: the place of the first, both in standard deviations from the level around
    it, the hours between them, and the usual gap. Places and ends count routine runs only.
    """

    episodes: Sequence[Episode] = ()
    pairs: Array = field(default_factory=lambda: np.empty((5, 0)))

    @classmethod
    def of(cls, runs: Measured) -> _Close:
        spacing = Spacing.of(runs.times, runs.asked)
        if not (spacing.close | runs.asked).any():
            return cls()
        routine: NDArray[np.int_] = np.cumsum(~runs.asked)  # how many there are up to each run
        around = _around(runs.values[~runs.asked], routine[-1:])
        around = np.pad(around, ((0, 0), (1, 0)), constant_values=-np.inf)
        fences, levels, spreads = around[:, routine]
        ended = episodes(spacing.hours, runs.values < fences, runs.asked)
        # Whether a second run is asked for depends on the first of a pair alone: given the first,
        # the second is like any other run that close to it.
        seconds = np.flatnonzero(spacing.close[1:] & ~spacing.close[:-1]) + 1
        firsts = seconds - 1
        lower = np.minimum(runs.values[firsts], runs.values[seconds])
        usable = (spreads[firsts] > 0) & (lower >= fences[firsts])
        firsts, seconds = firsts[usable], seconds[usable]
        off = (runs.values[[firsts, seconds]] - levels[firsts]) / spreads[firsts]
        gaps, usual = spacing.gaps[seconds], spacing.usual[seconds]
        pairs = np.vstack([routine[firsts], np.clip(off, -_FURTHEST, _FURTHEST), gaps, usual])
        return cls([replace(each, end=int(routine[each.end])) for each in ended], pairs)


def priors_of(series: Sequence[Measured], ends: Times) -> list[Prior]:
    """Return the prior at each of `ends`, from the runs of one series or more before it.

    Rates and correlation are learned from routine runs, for which no earlier run asked, and `life`
    and `new` from runs close together. A run counts once ten routine runs after it are known, so
    that later runs change no earlier prior.
    """
    parts = [each.values[~each.asked] for each in series]
    known = [np.searchsorted(each.times[~each.asked], ends) for each in series]
    close = [_Close.of(each) for each in series]
    values, stops = np.concatenate(parts), np.cumsum([len(each) for each in parts])
    settled = np.maximum(np.array(known) - _AROUND, 0)
    since = np.maximum(settled - _NEWEST_RUNS, 0)
    begins = np.append(0, stops[:-1])[:, None]
    outliers = _outliers(values, stops)
    begun, continued = (outliers[:, begins + settled] - outliers[:, begins + since]).sum(axis=1)
    correlations, block_of, series_of = _correlations(values, stops)
    first, last = -(-since // _BLOCK), settled // _BLOCK
    both = zip(close, settled, strict=True)
    lived = [(each.episodes, ended) for each, ended in both if each.episodes]
    pairs = [
        (each.pairs[1:], np.searchsorted(each.pairs[0], of_series, "right"))
        for each, *of_series in zip(close, since, settled, strict=True)
        if each.pairs.size
    ]
    found = []
    for place, runs in enumerate((settled - since).sum(axis=0).tolist()):
        within = (first[:, place][series_of] <= block_of) & (block_of < last[:, place][series_of])
        median = _shrunk(correlations[within])
        near = [pair[:, slice(*span[:, place])] for pair, span in pairs]
        seen = [one for each, ended in lived for one in each if one.end <= ended[place]]
        counts = (runs, int(begun[place]), int(continued[place]))
        found.append(Prior(*counts, median, Life.of(seen), new_of(near, median, _WINDOW)))
    return found


def _shrunk(correlations: Array) -> float | None:
    """Return the median correlation of the blocks, drawn towards the usual one; None if unknown."""
    known = correlations[np.isfinite(correlations)]
    if not len(known):
        return None
    median, size = float(np.median(known)), len(known)
    return (size * median + _USUAL_BLOCKS * USUAL_CORRELATION) / (size + _USUAL_BLOCKS)


def _outliers(values: Array, ends: NDArray[np.int_]) -> NDArray[np.int_]:
    """Return the numbers of outliers that began and that continued a streak before each run.

    Of shape (2, runs + 1), the last column for all runs. A streak counts once an ordinary run has
    followed it. The series in `values` follow one another, the next one from each of `ends` on.
    """
    counts = np.zeros((2, len(values) + 1), int)
    flags = values < _around(values, ends)[0]
    edges = np.flatnonzero(np.diff(flags, prepend=False, append=False))
    first, after = edges[::2], edges[1::2]
    short = after - first <= _LONGEST
    np.add.at(counts[0], after[short] + 1, 1)
    np.add.at(counts[1], after[short] + 1, after[short] - first[short] - 1)
    return counts.cumsum(axis=1)


def _around(values: Array, ends: NDArray[np.int_]) -> Array:
    """Return the fence as for `Baseline.deep`, level and spread of the runs around each run.

    Of shape (3, runs), minus infinity near the edges of a series. `ends` is as for `_outliers`.
    """
    found = np.full((3, len(values)), -np.inf)
    if len(values) < _WINDOW:
        return found
    places = (_WINDOW // 4, _WINDOW // 2, 3 * _WINDOW // 4)
    every = sliding_window_view(values, _WINDOW)
    for begin in range(0, len(every), _AT_ONCE):
        # sort() uses vector instructions, and takes a quarter of the time of partition()
        windows = np.sort(every[begin : begin + _AT_ONCE], axis=1)
        lower, level, upper = windows[:, places].T
        fence = np.minimum(lower - FENCE * (upper - lower), level + math.log(DEEP))
        middle = slice(_AROUND + begin, _AROUND + begin + len(windows))
        found[:, middle] = fence, level, (upper - lower) / _HALF
    near = (np.append(0, ends)[:, None] + np.arange(-_AROUND, _AROUND)).ravel()
    found[:, near[(near >= 0) & (near < len(values))]] = -np.inf
    return found


def _correlations(
    values: Array, ends: NDArray[np.int_]
) -> tuple[Array, NDArray[np.int_], NDArray[np.int_]]:
    """Return the lag-1 rank correlation of each block of runs, or NaN; its number; its series.

    As in `baseline.serial_correlation`, but a block with a shift of the level is not left out, as
    the median of many blocks is taken. Of shape (blocks,).
    """
    sizes = np.diff(ends, prepend=0)
    blocks = sizes // _BLOCK
    series_of = np.repeat(np.arange(len(ends)), blocks)
    block_of = np.arange(len(series_of)) - np.repeat(np.cumsum(blocks) - blocks, blocks)
    begins = (ends - sizes)[series_of] + _BLOCK * block_of
    runs = values[begins[:, None] + np.arange(_BLOCK)]
    ranks = sum(np.sign(runs - each[:, None]) for each in runs.T)  # their mean is 0
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (ranks[:, 1:] * ranks[:, :-1]).sum(axis=1) / (ranks**2).sum(axis=1)
    corrected: Array = (found * _BLOCK**2 / (_BLOCK - 1) + 1) / (_BLOCK - 3)
    return corrected, block_of, series_of


@dataclass(frozen=True)
class Month:
    """The threshold and the prior of a series, as learned at the beginning of a month.

    They judge the runs of the month, from `first` on: what is learned later does not change these.
    """

    first: int
    threshold: float
    prior: Prior


@dataclass(frozen=True)
class Months:
    """Budgets of a system, and priors of one of its file systems, at each of `since` (UTC)."""

    since: Times
    budgets: Sequence[Budget]
    priors: Sequence[Prior]

    def of(self, times: Times) -> tuple[Month, ...]:
        """Return the months that judge the runs of a series, made at the ordered `times`.

        The first judges runs from before it, too, which were made for a maintenance.
        """
        firsts = np.append(0, np.searchsorted(times, self.since[1:]))
        return tuple(
            Month(int(first), budget.threshold, prior)
            for first, budget, prior in zip(firsts, self.budgets, self.priors, strict=True)
        )


_DAY: Final = np.timedelta64(1, "D")
_MONTH: Final = np.timedelta64(1, "M")


def months_of(times: Iterable[Times]) -> Times:
    """Return when budgets and priors are learned from several series, with runs at ordered `times`.

    At the first run nothing is known, and a day later how many series there are. The rest is
    learned at the beginning of each month.
    """
    known = [each for each in times if len(each)]
    first, newest = min(each[0] for each in known), max(each[-1] for each in known)
    begin, end = first.astype("datetime64[M]"), newest.astype("datetime64[M]")
    months = np.arange(begin + _MONTH, end + _MONTH).astype("datetime64[ns]")
    return np.sort(np.concatenate((np.array([first, first + _DAY]), months)))
