"""Sessions: which runs of different series belong together because they are of one day."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from iobands.model.history import Times

#: How often a series runs in a year while it is too young to know.
DAILY: Final = 365.0

_YEAR: Final = np.timedelta64(365, "D")

_ENOUGH_TIME: Final = np.timedelta64(30, "D")


def runs_a_year(times: Times) -> float:
    """Return how often a series with runs at the ordered `times` runs in a year.

    From its newest year by the usual gap between days with runs, so that a pause does not change
    it: a threshold that falls during a pause would raise alerts about the past. A series younger
    than a month counts as daily.
    """
    if len(times) < 2 or times[-1] - times[0] < _ENOUGH_TIME:  # noqa: PLR2004
        return DAILY
    recent = times[np.searchsorted(times, times[-1] - _YEAR) :]
    days = np.unique(recent.astype("datetime64[D]"))
    if days[-1] - days[0] < _ENOUGH_TIME:
        return DAILY
    gap = np.median(np.diff(days).astype(float))
    return DAILY * max(1, round(len(recent) / len(days))) / float(gap)


_DAYS_A_YEAR: Final = 365

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Sessions(Generic[Key]):
    """The session of each sample of each series, as whole numbers that rise with time.

    A session is a day, and the n-th run of a day goes with the n-th of the others. The day begins
    at the hour with the fewest runs, so that no night of runs is cut in two. `a_day` is how many
    sessions a day has room for.
    """

    numbers: Mapping[Key, NDArray[np.int_]]
    a_day: int

    def a_year(self, keys: Iterable[Key]) -> float:
        """Return in how many sessions a year one of the series `keys` has a run."""
        every = [self.numbers[key] for key in keys]
        newest = max((int(each[-1]) for each in every if len(each)), default=0)
        recent = newest - _DAYS_A_YEAR * self.a_day
        of_year = [each[np.searchsorted(each, recent) :] for each in every]
        days = np.unique(np.concatenate(of_year)) // self.a_day
        return runs_a_year(days.astype("datetime64[D]").astype("datetime64[ns]"))


def sessions_of(times: Mapping[Key, Times]) -> Sessions[Key]:
    """Return the sessions of series with runs at the ordered `times`, in UTC."""
    if not any(len(each) for each in times.values()):
        return Sessions({key: np.empty(0, dtype=np.int64) for key in times}, 1)
    hours = np.concatenate(list(times.values())).astype("datetime64[h]").astype(np.int64) % 24
    begin = np.timedelta64(int(np.argmin(np.bincount(hours, minlength=24))), "h")
    days = {
        key: (each - begin).astype("datetime64[D]").astype(np.int64) for key, each in times.items()
    }
    nth = {key: np.arange(len(day)) - np.searchsorted(day, day) for key, day in days.items()}
    a_day = 1 + max(int(each.max(initial=0)) for each in nth.values())
    return Sessions({key: day * a_day + nth[key] for key, day in days.items()}, a_day)
