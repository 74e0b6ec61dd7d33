"""Transient collapses: what one is, how often they come, and whether that has changed.

A run under the floor of its band has collapsed. Real I/O does so about one day in twenty for no
lasting reason, and how often is a figure of a file system's health. Pure functions over runs in
the order of time. May know: numpy and scipy; nothing of series, bands or charts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

#: So many runs in a row that have not collapsed end an event. What follows sooner is mostly of the
#: same cause, and counted by itself it would make chance look like a change.
ENDING: Final = 3
#: The newest runs, and the most of those before that they are held against.
RECENT: Final = 60
EARLIER: Final = 365
#: A change is looked for from so many earlier runs and so many events on.
LEAST_EARLIER: Final = 60
LEAST_EVENTS: Final = 5
#: The greatest level at which a change is told, however few runs a site makes.
GREATEST_LEVEL: Final = 0.05
#: Each run is a look, but so many are worth one look of its own: the windows move by one run, and
#: hardly any test passes but when an event begins. Measured in docs/error-rates.md.
RUNS_A_LOOK: Final = 10.0

RISEN: Final = "risen"
FALLEN: Final = "fallen"
UNCHANGED: Final = "unchanged"

_CONFIDENCE: Final = 0.95
_TAIL: Final = (1 - _CONFIDENCE) / 2
# A longer gap than so many usual ones was not observed.
_LONG_GAP: Final = 3.0
_DAYS_A_YEAR: Final = 365.25

Interval = tuple[float, float]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Rate:
    """So many of something in an exposure, and the 95 % interval of its rate."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Count:
    """The events among some runs.

    `runs` were held against a floor and `collapsed` of them were under it, in `events` events.
    An event could begin with `chances` of the runs: with those that were in none already. `years`
    is the time observed, and `newest` the place of the first run of the newest event, or None.
    """

    runs: int
    collapsed: int
    events: int
    chances: int
    years: float
    newest: int | None

    @property
    def a_run(self) -> Rate | None:
        """Events a run in which one could begin; None without such runs."""
        if not self.chances:
            return None
        return Rate(self.events / self.chances, *binomial_interval(self.events, self.chances))

    @property
    def a_year(self) -> Rate | None:
        """Events a year of observation; None where there was none."""
        if not self.years > 0:
            return None
        low, high = poisson_interval(self.events)
        return Rate(self.events / self.years, low / self.years, high / self.years)


@dataclass(frozen=True)
class Window:
    """Some of the runs: `collapsed` of them did, in `events`; one could begin with `chances`."""

    runs: int
    collapsed: int
    chances: int
    events: int


@dataclass(frozen=True)
class Comparison:
    """The events of the newest runs against those of the runs before.

    `level` is the greatest chance at which a rise, or a fall, that is none is told: the test is
    one-sided either way. It is Fisher's, which is exact as long as each run collapses with the same
    chance, however large.
    """

    recent: Window
    earlier: Window
    level: float

    @property
    def is_possible(self) -> bool:
        """Whether there is enough to say anything."""
        return (
            min(self.recent.chances, self.earlier.chances) > 0
            and self.earlier.runs >= LEAST_EARLIER
            and self.recent.events + self.earlier.events >= LEAST_EVENTS
        )

    @cached_property
    def chance_of_more(self) -> float:
        """The chance of so many recent events or more if nothing has changed."""
        return _chance_of_more(self.recent, self.earlier)

    @cached_property
    def chance_of_fewer(self) -> float:
        """The chance of so few recent events or fewer if nothing has changed."""
        # as many recent events or fewer are as many earlier ones or more
        return _chance_of_more(self.earlier, self.recent)

    @property
    def outcome(self) -> str | None:
        """`RISEN`, `FALLEN` or `UNCHANGED`; None where there is too little to tell."""
        if not self.is_possible:
            return None
        if self.chance_of_more <= self.level:
            return RISEN
        return FALLEN if self.chance_of_fewer <= self.level else UNCHANGED

    @property
    def ratio(self) -> Rate | None:
        """The recent rate over the earlier one; None where there is too little to tell.

        The interval is exact for Poisson counts, given their sum (Przyborowski and Wilenski,
        "Homogeneity of results in testing samples from Poisson series", Biometrika 31, 1940).
        """
        if not self.is_possible:
            return None
        recent, earlier = self.recent.events, self.earlier.events
        exposure = self.earlier.chances / self.recent.chances
        low, high = binomial_interval(recent, recent + earlier)
        value = recent / earlier if earlier else math.inf
        return Rate(value * exposure, _odds(low) * exposure, _odds(high) * exposure)


def begins(collapsed: Flags) -> tuple[Flags, Flags]:
    """Return with which runs an event begins, and with which one could have begun.

    Runs are independent, and each collapses with the same chance: then it is the chance that an
    event begins with a run with which one could, whatever was before. That makes the test exact.
    """
    total = np.concatenate((np.zeros(ENDING + 1, dtype=np.int64), np.cumsum(collapsed)))
    before = total[ENDING : ENDING + len(collapsed)] - total[: len(collapsed)]
    possible = before == 0
    return collapsed & possible, possible


def count(collapsed: Flags, days: NDArray[np.int64]) -> Count:
    """Return the events of runs on the `days`, in the order of time."""
    beginning, possible = begins(collapsed)
    places = np.flatnonzero(beginning)
    return Count(
        runs=len(collapsed),
        collapsed=int(np.count_nonzero(collapsed)),
        events=len(places),
        chances=int(np.count_nonzero(possible)),
        years=observed_days(days) / _DAYS_A_YEAR,
        newest=int(places[-1]) if len(places) else None,
    )


def compare(collapsed: Flags, level: float, recent: int = RECENT) -> Comparison:
    """Return the events of the `recent` newest runs against those of up to `EARLIER` before."""
    start = max(0, len(collapsed) - recent)
    windows = _windows(collapsed, (start, len(collapsed)), (max(0, start - EARLIER), start))
    return Comparison(*windows, level)


def still_known(collapsed: Flags, first: int, last: int, level: float) -> bool:
    """Tell whether a rise that was acknowledged is the one that is told now, and no worse.

    A person knew of the runs from `first` to before `last`. It is worse once those since have risen
    above them, at the same `level`; and over, so that this is another one, where those between
    them and the newest had fallen again.
    """
    total = len(collapsed)
    known, since, between = _windows(
        collapsed, (first, last), (last, total), (last, max(last, total - RECENT))
    )
    if not (known.chances and since.chances):
        return True
    is_worse = _chance_of_more(since, known) <= level
    is_over = between.chances > 0 and _chance_of_more(known, between) <= GREATEST_LEVEL
    return not (is_worse or is_over)


def _windows(collapsed: Flags, *spans: tuple[int, int]) -> list[Window]:
    """Return the runs from the first to before the second of each of `spans`."""
    beginning, possible = begins(collapsed)
    counted = (collapsed, possible, beginning)
    return [
        Window(high - low, *(int(each[low:high].sum()) for each in counted)) for low, high in spans
    ]


def level_for(false_changes_a_year: float, runs_a_year: float) -> float:
    """Return the level at which so many rises a year are false, over all that is tested.

    `runs_a_year` is of all that is tested together; each run is a look.
    """
    looks = max(runs_a_year / RUNS_A_LOOK, 1.0)
    return min(GREATEST_LEVEL, false_changes_a_year / looks)


def observed_days(days: NDArray[np.int64]) -> float:
    """Return on how many days runs at `days`, in their order, have observed.

    A run stands for the time up to the next day with one. Of a gap more than three times as long
    as is usual the rest was not observed.
    """
    if not len(days):
        return 0.0
    gaps = np.diff(days).astype(float)
    gaps = gaps[gaps > 0]
    usual = float(np.median(gaps)) if len(gaps) else 1.0
    return usual + float(np.minimum(gaps, _LONG_GAP * usual).sum())


def poisson_interval(events: int) -> Interval:
    """Return the exact 95 % interval of a Poisson mean (Garwood, Biometrika 28, 1936)."""
    from scipy.special import gammaincinv  # noqa: PLC0415 (here and below: takes its time)

    low = float(gammaincinv(events, _TAIL)) if events else 0.0
    return low, float(gammaincinv(events + 1, 1 - _TAIL))


def binomial_interval(events: int, runs: int) -> Interval:
    """Return the exact 95 % interval of a share (Clopper and Pearson, Biometrika 26, 1934)."""
    from scipy.special import betaincinv  # noqa: PLC0415

    low = float(betaincinv(events, runs - events + 1, _TAIL)) if events else 0.0
    high = float(betaincinv(events + 1, runs - events, 1 - _TAIL)) if events < runs else 1.0
    return low, high


def _chance_of_more(one: Window, other: Window) -> float:
    """Return the chance of as many events in `one` or more, given the sum of both.

    In whole numbers, because scipy.stats takes as long to load as all else that `status` does.
    """
    both = one.events + other.events
    ways = sum(
        math.comb(one.chances, events) * math.comb(other.chances, both - events)
        for events in range(one.events, min(both, one.chances) + 1)
    )
    return ways / math.comb(one.chances + other.chances, both)


def _odds(share: float) -> float:
    return share / (1 - share) if share < 1 else math.inf
