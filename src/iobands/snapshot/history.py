"""The samples of a series as arrays, their sessions, and what the detector found in them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from enum import Enum
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

Times = NDArray[np.datetime64]
Flags = NDArray[np.bool_]
Array = NDArray[np.float64]

#: A time before any run.
LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
#: The phase of a check that fails if the rates were measured but are too low.
PERFORMANCE: Final = "performance"
#: Samples that agree with the newest one in these columns can be compared with it. Only the major
#: version of `suite_version` counts.
COMPARED: Final = ("tool_version", "fsync", "suite_version")


@dataclass(frozen=True)
class History:
    """The samples of a series in the order of time; each array has the shape (samples,).

    `times` are in UTC. `passed`: the run passed. `too_slow`: it failed in the performance phase.
    `alike`: it agrees with the newest sample in `COMPARED`. `asked`: the purpose of the run is one
    of `ASKED`. `sessions` are the numbers from `sessions_of`. `newest` maps the columns of the
    newest sample, except its time, to their values, None if missing.
    """

    times: Times = field(repr=False, compare=False)
    values: Array = field(repr=False, compare=False)
    passed: Flags = field(repr=False, compare=False)
    too_slow: Flags = field(repr=False, compare=False)
    alike: Flags = field(repr=False, compare=False)
    sessions: NDArray[np.int_] = field(repr=False, compare=False)
    asked: Flags = field(repr=False, compare=False)
    newest: Mapping[str, Any]

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.times)

    @property
    def counted(self) -> Flags:
        """Which samples are judged: those of runs that passed or were only too slow.

        Without the slow ones, a file system with collapsed rates would look healthy.
        """
        return self.passed | self.too_slow

    @property
    def routine(self) -> History:
        """The history without `asked` samples, from which nothing is learned."""
        if not self.asked.any():
            return self
        arrays = (name for name, each in vars(self).items() if isinstance(each, np.ndarray))
        return replace(self, **{name: getattr(self, name)[~self.asked] for name in arrays})

    @property
    def is_scheduled(self) -> bool:
        """Whether the newest sample belongs to a tag with an interval, so runs are regular."""
        return bool(self.newest.get("interval_days"))

    @property
    def first(self) -> datetime:
        """When the first sample was taken."""
        return exact_moment(self.times[0])

    @cached_property
    def last(self) -> datetime:
        """When the newest sample was taken."""
        return exact_moment(self.times[-1])


_NONE: Final = np.empty(0, bool)
#: The history of a series without samples.
NOTHING: Final = History(
    np.empty(0, "datetime64[ns]"), np.empty(0), _NONE, _NONE, _NONE, np.empty(0, int), _NONE, {}
)


def exact_moment(time: np.datetime64) -> datetime:
    """Return a numpy time in UTC as a datetime, to the microsecond."""
    moment: datetime = time.astype("datetime64[us]").item()
    return moment.replace(tzinfo=timezone.utc)


def in_utc(when: datetime) -> np.datetime64:
    """Return a datetime with an offset as a numpy time in UTC."""
    return np.datetime64(when.astimezone(timezone.utc).replace(tzinfo=None), "ns")


def day_and_time(when: datetime) -> str:
    """Return day and time without the year, such as `21 Nov 01:30`."""
    return f"{when.day} {when:%b %H:%M}"


def moment(time: np.datetime64) -> datetime:
    """Return a numpy time in UTC, which counts nanoseconds, as a datetime, to the second."""
    nanoseconds: int = time.item()  # type: ignore[assignment]
    return datetime.fromtimestamp(nanoseconds // 10**9, timezone.utc)


#: The runs a year of a series that is too young to tell.
DAILY: Final = 365.0
_YEAR: Final = np.timedelta64(365, "D")
_ENOUGH_TIME: Final = np.timedelta64(30, "D")


def runs_a_year_at(times: Times, ends: Times) -> Array:
    """Return the runs a year of a series with runs at the ordered `times`, as of each of `ends`.

    This comes from the year before: the runs on a day with runs, over the median gap between such
    days. So a pause does not change it; a threshold that fell during a pause would raise alerts
    about the past. A series younger than a month counts as daily.
    """
    found = np.full(len(ends), DAILY)
    every = times.astype("datetime64[D]")
    if not len(every) or every[-1] - every[0] < _ENOUGH_TIME:
        return found
    first = np.flatnonzero(np.append(True, every[1:] != every[:-1]))
    days = every[first]
    gaps = np.diff(days).astype(float)
    runs = np.searchsorted(times, ends)
    later = np.flatnonzero(runs)
    last = runs[later] - 1
    begin = np.searchsorted(times, times[last] - _YEAR)
    since, until = np.searchsorted(first, (begin, last), side="right") - 1
    often = np.maximum(1, np.rint((last + 1 - begin) / (until - since + 1)))
    middle = median_of(gaps)
    gap = np.full(len(later), middle)
    # if more than half of the gaps equal the overall median, so does their median
    usual = np.append(0, np.cumsum(gaps == middle))
    odd = 2 * (usual[until] - usual[since]) <= until - since
    enough = days[until] - days[since] >= _ENOUGH_TIME
    for each in np.flatnonzero(odd & enough):
        gap[each] = median_of(gaps[since[each] : until[each]])
    found[later[enough]] *= often[enough] / gap[enough]
    return found


#: The session code of a run that names no session.
UNNAMED: Final = -1

Key = TypeVar("Key", bound=Hashable)


def session_codes(column: pl.Series) -> NDArray[np.int64]:
    """Return the code of each session name, equal for equal names; `UNNAMED` for null."""
    return column.to_physical().cast(pl.Int64).fill_null(UNNAMED).to_numpy()


# An hour of the day is quiet if it has at most this share of the mean number of runs per hour.
_QUIET: Final = 0.5


def days_of(times: Times) -> NDArray[np.int_]:
    """Return the number of the day of each of `times`, which are in UTC and in any order.

    A day begins at the hour with the fewest runs, so that a night of runs stays in one day. If runs
    are made around the clock, it begins at midnight, as later runs would move that hour.
    """
    hours = times.astype("datetime64[h]").astype(np.int64)
    runs = np.bincount(hours % 24, minlength=24)
    is_quiet = runs.min() <= _QUIET * runs.mean()
    return (hours - (runs.argmin() if is_quiet else 0)) // 24


def sessions_of(
    times: Mapping[Key, Times], codes: Mapping[Key, NDArray[np.int_]]
) -> dict[Key, NDArray[np.int_]]:
    """Return the number of the session of each run; the numbers rise with time.

    `times` are the ordered times (UTC) of the runs of each series or check, and `codes` are those
    of the sessions that they name, or `UNNAMED`. For runs that name no session, the n-th runs of a
    day of all series or checks form one.
    """
    every, named = (np.concatenate([*each.values()]) for each in (times, codes))
    ends = np.cumsum([len(each) for each in times.values()])[:-1]
    labels = named
    if (is_unnamed := named == UNNAMED).any():
        days = days_of(every)
        nth = np.zeros(len(every), dtype=np.int64)
        for place in np.split(np.arange(len(every)), ends):
            mine = place[is_unnamed[place]]
            nth[mine] = np.arange(len(mine)) - np.searchsorted(days[mine], days[mine])
        days -= days.min()
        most = np.zeros(1 + days.max(), dtype=np.int64)  # sessions of each day
        np.maximum.at(most, days, 1 + nth)
        guessed = (most.cumsum() - most)[days] + nth
        labels = np.where(is_unnamed, 1 + named.max() + guessed, named)
    moments = every.view(np.int64)
    begins = np.full(1 + labels.max(), np.iinfo(np.int64).max)
    np.minimum.at(begins, labels, moments)
    numbers = np.argsort(np.argsort(begins, kind="stable"))
    # if a clock was set back within a session, numbers would fall within a series
    found = map(np.maximum.accumulate, np.split(numbers[labels], ends))
    return dict(zip(times, found, strict=True))


#: How a change ended.
RECOVERED: Final = "recovered"
ADOPTED: Final = "adopted"

# Despite rounding, a change of exactly the least size is not small.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Ratio:
    """The level after a change over the level before, with its 95 % interval."""

    value: float
    low: float
    high: float

    def is_small(self, least: float) -> bool:
        """Return whether the change is smaller than `least`, such as 0.1 for a loss of 10 %."""
        return _is_small(self.value, least)

    def is_surely_small(self, least: float) -> bool:
        """Return whether both ends of the interval are changes smaller than `least`."""
        return _is_small(self.low, least) and _is_small(self.high, least)


def _is_small(ratio: float, least: float) -> bool:
    return ratio > 0 and abs(math.log(ratio)) < -math.log1p(-least) - _ROUNDING


DOWN: Final = "down"

#: The direction of an alert about a flaky check.
FLAKY: Final = "flaky"
UP: Final = "up"


def how_ended(end: str, direction: str | None) -> str:
    """Return the word for the end of a change or an alert: an improvement does not recover."""
    return "fell back" if (end, direction) == (RECOVERED, UP) else end


#: The larger of the two drops in `Evidence.power`, as a ratio.
LARGE_DROP: Final = 0.7


class State(str, Enum):
    """The state of a series, the worst first."""

    DEGRADED = "degraded"
    MODE_LOST = "mode lost"
    SLIDING = "sliding"
    UNSTABLE = "unstable"
    NO_DATA = "no data"
    WATCH = "watch"
    IMPROVED = "improved"
    HEALTHY = "healthy"
    CALIBRATING = "calibrating"


#: A place among the runs of a series: an index from 0 inside the detector, elsewhere the time (UTC)
#: of the run.
At = TypeVar("At", int, datetime)


@dataclass(frozen=True)
class Fall(Generic[At]):
    """A further drop during an open drop; `ratio` is the new level over the baseline."""

    since: At
    raised: At
    ratio: Ratio


@dataclass(frozen=True)
class Turn(Generic[At]):
    """The kind of a change from `when` on; `since` is the beginning of a slide."""

    when: At
    kind: State
    since: At | None = None


@dataclass(frozen=True)
class Change(Generic[At]):
    """A lasting change of a series; times are in UTC.

    It most likely began at `since`, between `since_low` and `since_high`. Its evidence `score`
    passed `threshold`, both in nats, when it was `raised`. `baseline` and `level` are the medians
    before and since the change, in the unit of the series. `newest` is the level of the newest
    runs, since the last of its `falls`, over the baseline. `delay` is the number of runs from the
    first changed one to the alert, both included. `ended` is the first run after the change, and
    `closed` is when that was known. `repeats` counts the runs since that earlier runs asked for,
    and `confirmed` those of them that show the change.

    If it is not a plain change of level, `turns` gives its kinds, each with the run that showed it.
    `was` and `now` are the quartiles of an unstable series before and since; if a mode was lost,
    `was` gives the medians of both modes.
    """

    direction: str
    since: At
    since_low: At
    since_high: At
    raised: At
    ratio: Ratio
    baseline: float
    score: float
    threshold: float
    ended: At | None = None
    end: str | None = None
    delay: int = 0
    closed: At | None = None
    falls: tuple[Fall[At], ...] = ()
    newest: Ratio | None = None
    repeats: int = 0
    confirmed: int = 0
    turns: tuple[Turn[At], ...] = ()
    was: tuple[float, ...] = ()
    now: tuple[float, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether it lasts."""
        return self.ended is None

    @property
    def kind(self) -> State:
        """The kind of the change, by the runs so far."""
        plain = State.DEGRADED if self.is_drop else State.IMPROVED
        return self.turns[-1].kind if self.turns else plain

    @property
    def began(self) -> At:
        """When it began; for a slide, before it could be seen."""
        since = self.turns[-1].since if self.turns else None
        return self.since if since is None else since

    @property
    def lately(self) -> Ratio:
        """The level of the newest runs over the baseline."""
        return self.newest or self.ratio

    @property
    def size(self) -> Ratio:
        """The level since over the baseline; for a slide, which goes on, of its newest runs."""
        return self.lately if self.kind is State.SLIDING else self.ratio

    @property
    def is_of_level(self) -> bool:
        """Whether the level changed, so that `size` describes the change."""
        return self.kind not in (State.UNSTABLE, State.MODE_LOST)

    @property
    def level(self) -> float:
        """The level since, in the unit of the series."""
        return self.baseline * self.size.value

    @property
    def is_drop(self) -> bool:
        """Whether the change is for the worse."""
        return self.direction == DOWN


@dataclass(frozen=True)
class Suspicion:
    """A possible drop: evidence above the threshold of `watch`, but not enough for an alert."""

    since: datetime
    ratio: Ratio
    baseline: float
    score: float
    threshold: float


#: Why a series is measured ahead of schedule: its newest run was low and more may follow, its alert
#: is not certain yet, or its alert may be over.
SUSPECTED: Final = "suspected"
UNCERTAIN: Final = "uncertain"
MAYBE_OVER: Final = "maybe over"
#: The evidence, in nats, from which an extra run is worthwhile: a single slow session has as much.
SUSPECTED_FROM: Final = 2.5


@dataclass(frozen=True)
class Doubt:
    """A question that one more run may decide; `since` is the first run (UTC) that raised it.

    `nats` is the evidence for a drop or, if `kind` is `maybe over`, for the end of the alert.
    """

    kind: str
    since: datetime
    nats: float


@dataclass(frozen=True)
class Transient:
    """A short drop that repeats showed to be over: `low` of `runs` were low, at `ratio`.

    It lasted from the low run at `since` to at most the healthy run at `until` (UTC).
    """

    since: datetime
    until: datetime
    ratio: float
    low: int
    runs: int

    def __str__(self) -> str:
        """Return duration, ratio and numbers of runs in words."""
        hours = (self.until - self.since).total_seconds() / 3600
        lasted = f"{hours:.0f} h" if hours >= 1 else f"{60 * hours:.0f} min"
        return f"up to {lasted} at {self.ratio:.2g} ×, {self.low} of {self.runs} runs"


@dataclass(frozen=True)
class Evidence:
    """What the detector found in the runs of a series that can be compared with the newest.

    `rows`, of shape (runs,), are the indices of these runs among the samples of the series. `down`
    and `up`, of the same shape, are the evidence for a drop and for a rise after each run, in nats;
    `today` is the larger of the two after the last run, 0 before the first. A series is on watch
    from `watch`, and an alert is raised from `threshold`. `changes` and `transients` are in the
    order of time; the last change may be open. `level` is the median of the baseline in the unit of
    the series, None without a baseline. It comes from `baseline_runs` accepted runs, or from a band
    if that is 0. Evidence is divided by `scale` because of the serial `correlation` of the runs.
    `power` maps drops, as ratios, to their mean detection delays in runs, None if undetectable; it
    is empty unless requested. `doubt` is what one more run would decide now, if anything.
    """

    rows: NDArray[np.int_] = field(repr=False, compare=False)
    down: Array = field(repr=False, compare=False)
    up: Array = field(repr=False, compare=False)
    changes: tuple[Change[datetime], ...]
    suspicion: Suspicion | None
    today: float
    watch: float
    threshold: float
    can_judge: bool
    level: float | None
    baseline_runs: int
    correlation: float
    scale: float
    power: Mapping[str, float | None]
    doubt: Doubt | None = None
    transients: tuple[Transient, ...] = ()

    @property
    def open_change(self) -> Change[datetime] | None:
        """The newest change if it is open, else None."""
        newest = self.changes[-1] if self.changes else None
        return newest if newest and newest.is_open else None


def median_of(values: ArrayLike) -> float:
    """Return the median of shape (n,), NaN if empty; for a few values 10 times as fast as numpy."""
    ordered = np.sort(values)
    half, size = len(ordered) // 2, len(ordered)
    return float((ordered[(size - 1) // 2] + ordered[half]) / 2) if size else math.nan


_NORMAL_95: Final = 1.96

# The size of a change comes from at most this many runs: half its oldest, half its newest.
_MOST_RUNS: Final = 400


def level_ratio(before: Array, after: Array, inflation: float = 1.0) -> Ratio:
    """Return the level after over the level before, from the logarithms of the runs on each side.

    The shift is the Hodges-Lehmann estimate, the median of all differences. Its interval is the one
    of the rank-sum test (Hollander and Wolfe, "Nonparametric statistical methods", section 4.3),
    made `inflation` times wider for correlated runs.
    """
    if not (len(before) and len(after)):
        return Ratio(math.nan, 0.0, math.inf)
    if len(after) > _MOST_RUNS:
        after = np.concatenate((after[: _MOST_RUNS // 2], after[-_MOST_RUNS // 2 :]))
    differences = np.subtract.outer(after, before).ravel()
    pairs = len(differences)
    spread = np.sqrt(pairs * (len(before) + len(after) + 1) / 12)
    rank = int(pairs / 2 - _NORMAL_95 * inflation * spread)
    wanted = [(pairs - 1) // 2, pairs // 2, max(rank, 0), pairs - 1 - max(rank, 0)]
    differences.sort()  # faster than partition(), as it has vector instructions
    left, right, low, high = differences[wanted]
    if rank <= 0:
        low, high = -math.inf, math.inf
    return Ratio(float(np.exp((left + right) / 2)), float(np.exp(low)), float(np.exp(high)))
