"""The samples of a series as arrays, its sessions, its changes, and the evidence for them."""

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

#: Before any run.
LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
#: The phase that fails if a run measured its rates and they are too low.
PERFORMANCE: Final = "performance"
#: Samples that equal the newest one in these can be compared with it; of `suite_version`, only the
#: major version counts.
COMPARED: Final = ("tool_version", "fsync", "suite_version")


@dataclass(frozen=True)
class History:
    """The samples of a series in the order of time; each array is of shape (samples,).

    `times` are in UTC. `passed`: the run passed. `too_slow`: it failed in the performance phase.
    `alike`: it agrees with the newest sample in `COMPARED`. `sessions` are the numbers of
    `sessions_of`. `asked`: an earlier run asked for it. `newest` has the fields of the newest
    sample except its time, None for missing ones.
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
        """Return how many samples there are."""
        return len(self.times)

    @property
    def counted(self) -> Flags:
        """Which samples are judged: of runs that passed, or failed only by being too slow.

        Without the slow ones a file system with collapsed rates would look healthy.
        """
        return self.passed | self.too_slow

    @property
    def routine(self) -> History:
        """The samples that no earlier one asked for: the ones that anything is learned from."""
        if not self.asked.any():
            return self
        arrays = (name for name, each in vars(self).items() if isinstance(each, np.ndarray))
        return replace(self, **{name: getattr(self, name)[~self.asked] for name in arrays})

    @property
    def is_scheduled(self) -> bool:
        """Whether its checks run regularly, by the newest sample."""
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
    """Return `time`, which is in UTC, to the microsecond."""
    moment: datetime = time.astype("datetime64[us]").item()
    return moment.replace(tzinfo=timezone.utc)


def in_utc(when: datetime) -> np.datetime64:
    """Return `when`, which has an offset, as numpy time in UTC."""
    return np.datetime64(when.astimezone(timezone.utc).replace(tzinfo=None), "ns")


def day_and_time(when: datetime) -> str:
    """Return a time of the last months, such as `21 Nov 01:30`."""
    return f"{when.day} {when:%b %H:%M}"


def moment(time: np.datetime64) -> datetime:
    """Return `time`, which is in UTC and counts nanoseconds, to the second."""
    nanoseconds: int = time.item()  # type: ignore[assignment]
    return datetime.fromtimestamp(nanoseconds // 10**9, timezone.utc)


#: How often a series runs in a year, while it is too young to tell.
DAILY: Final = 365.0
_YEAR: Final = np.timedelta64(365, "D")
_ENOUGH_TIME: Final = np.timedelta64(30, "D")


def runs_a_year_at(times: Times, ends: Times) -> Array:
    """Return how often a series with runs at the ordered `times` ran in a year, at each of `ends`.

    From the year before by the usual gap between days with runs, so that a pause does not change
    it: a threshold that falls during a pause would raise alerts about the past. A series younger
    than a month counts as daily.
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
    # where more than half of the gaps are the usual one, so is their median
    usual = np.append(0, np.cumsum(gaps == middle))
    odd = 2 * (usual[until] - usual[since]) <= until - since
    enough = days[until] - days[since] >= _ENOUGH_TIME
    for each in np.flatnonzero(odd & enough):
        gap[each] = median_of(gaps[since[each] : until[each]])
    found[later[enough]] *= often[enough] / gap[enough]
    return found


#: The session of a run that names none, among the codes of sessions.
UNNAMED: Final = -1

Key = TypeVar("Key", bound=Hashable)


def session_codes(column: pl.Series) -> NDArray[np.int64]:
    """Return a number for each text, the same for equal ones; `UNNAMED` if it is missing."""
    return column.to_physical().cast(pl.Int64).fill_null(UNNAMED).to_numpy()


# The hour with the fewest runs has at most this share of those of a usual one, or none is quiet.
_QUIET: Final = 0.5


def days_of(times: Times) -> NDArray[np.int_]:
    """Return the day of each of `times`, in UTC and of any order, as whole numbers.

    It begins at the hour with the fewest runs, so that no night of runs is cut in two. If runs are
    made around the clock, later runs would move that hour, and it begins at midnight.
    """
    hours = times.astype("datetime64[h]").astype(np.int64)
    runs = np.bincount(hours % 24, minlength=24)
    is_quiet = runs.min() <= _QUIET * runs.mean()
    return (hours - (runs.argmin() if is_quiet else 0)) // 24


def sessions_of(
    times: Mapping[Key, Times], codes: Mapping[Key, NDArray[np.int_]]
) -> dict[Key, NDArray[np.int_]]:
    """Return the session of each run, as whole numbers that rise with time.

    `times`, ordered and in UTC, are of the runs of each series or check, and `codes` of the session
    that each run names, or `UNNAMED`. Of the runs that name none, a session is a day, and the n-th
    run of a day goes with the n-th of the others.
    """
    if not any(len(each) for each in times.values()):
        return {key: np.empty(0, dtype=np.int64) for key in times}
    every, named = (np.concatenate([*each.values()]) for each in (times, codes))
    ends = np.cumsum([len(each) for each in times.values()])[:-1]
    labels = named
    if (named == UNNAMED).any():
        days = days_of(every)
        nth = np.zeros(len(every), dtype=np.int64)
        for place in np.split(np.arange(len(every)), ends):
            mine = place[named[place] == UNNAMED]
            nth[mine] = np.arange(len(mine)) - np.searchsorted(days[mine], days[mine])
        guessed = days * (1 + nth.max()) + nth
        # what is guessed is odd, so that no name is among it
        odd = 2 * np.where(named == UNNAMED, guessed, named) + (named == UNNAMED)
        labels = np.unique(odd, return_inverse=True)[1]
    moments = every.view(np.int64)
    begins = np.full(1 + labels.max(), np.iinfo(np.int64).max)
    np.minimum.at(begins, labels, moments)
    numbers = np.argsort(np.argsort(begins, kind="stable"))
    # a clock that was set back within a session would let the numbers of a series fall
    found = map(np.maximum.accumulate, np.split(numbers[labels], ends))
    return dict(zip(times, found, strict=True))


#: How a change ended.
RECOVERED: Final = "recovered"
ADOPTED: Final = "adopted"

# A change of exactly the least size matters, despite rounding.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Ratio:
    """The level after a change over the level before, with its 95 % interval."""

    value: float
    low: float
    high: float

    def is_small(self, least: float) -> bool:
        """Return whether the ratio is within a relative change of `least`."""
        return _is_small(self.value, least)

    def is_surely_small(self, least: float) -> bool:
        """Return whether the whole interval is within a relative change of `least`."""
        return _is_small(self.low, least) and _is_small(self.high, least)


def _is_small(ratio: float, least: float) -> bool:
    return ratio > 0 and abs(math.log(ratio)) < -math.log1p(-least) - _ROUNDING


DOWN: Final = "down"

#: The direction of an alert about a flaky check.
FLAKY: Final = "flaky"
UP: Final = "up"

#: The larger one of the drops in `Evidence.power`, as a ratio.
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


#: Where something lies among the runs of a series: the detector counts them from 0, and everything
#: else has their times, in UTC.
At = TypeVar("At", int, datetime)


@dataclass(frozen=True)
class Fall(Generic[At]):
    """A further drop below the level of an open drop; `ratio` is to the level before them all."""

    since: At
    raised: At
    ratio: Ratio


@dataclass(frozen=True)
class Turn(Generic[At]):
    """What a change is from a time on; a slide began at `since`."""

    when: At
    kind: State
    since: At | None = None


@dataclass(frozen=True)
class Change(Generic[At]):
    """A lasting change of a series; times are in UTC.

    It began at `since`, most likely between `since_low` and `since_high`. Its evidence `score`
    passed `threshold`, both in nats, when it was `raised`. `baseline` and `level` are the medians
    before and since the change, in the unit of the series; `newest` is the level of the newest
    runs, of those since the last of its `falls`, over the baseline. `delay` is the number of runs
    from the first changed one to the alert, including both. It `ended` with the first run after
    it, and `closed` is when that was known. `repeats` are the runs since that an earlier one asked
    for, and `confirmed` is how many of them show the change.

    `turns` name its kind if it is not a change of the level, first and by later runs. `was` and
    `now` are the quartiles of an unstable series; `was` has the medians of both modes if one was
    lost.
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
        """What it is by the runs so far."""
        plain = State.DEGRADED if self.is_drop else State.IMPROVED
        return self.turns[-1].kind if self.turns else plain

    @property
    def began(self) -> At:
        """When it began: a slide before it could be seen."""
        since = self.turns[-1].since if self.turns else None
        return self.since if since is None else since

    @property
    def lately(self) -> Ratio:
        """The level of its newest runs over the baseline."""
        return self.newest or self.ratio

    @property
    def size(self) -> Ratio:
        """The level since over the baseline; a slide goes on, so its newest runs count."""
        return self.lately if self.kind is State.SLIDING else self.ratio

    @property
    def is_of_level(self) -> bool:
        """Whether it is a change of the level, which its size says."""
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
    """Evidence for a drop above the threshold of `watch`, but not enough for an alert."""

    since: datetime
    ratio: Ratio
    baseline: float
    score: float
    threshold: float


#: Why a series is measured again before its time: its newest run was low and more may follow, its
#: alert is not certain yet, or the alert may be over.
SUSPECTED: Final = "suspected"
UNCERTAIN: Final = "uncertain"
MAYBE_OVER: Final = "maybe over"
#: The evidence, in nats, that is worth a run of its own: a single slow session has as much.
SUSPECTED_FROM: Final = 2.5


@dataclass(frozen=True)
class Doubt:
    """What one more run would decide; `since` is the first run (UTC) that raised the question.

    `nats` is the evidence for a drop or, if the alert is maybe over, for its end.
    """

    kind: str
    since: datetime
    nats: float


@dataclass(frozen=True)
class Transient:
    """Low runs that were measured again and were over soon: `low` of `runs`, at `ratio`.

    It began with the low run at `since` and was over by the healthy one at `until` (UTC).
    """

    since: datetime
    until: datetime
    ratio: float
    low: int
    runs: int

    def __str__(self) -> str:
        """Return it in words."""
        hours = (self.until - self.since).total_seconds() / 3600
        lasted = f"{hours:.0f} h" if hours >= 1 else f"{60 * hours:.0f} min"
        return f"up to {lasted} at {self.ratio:.2f} ×, {self.low} of {self.runs} runs"


@dataclass(frozen=True)
class Evidence:
    """The detector's result for the runs of a series that can be compared with the newest.

    `rows`, of shape (runs,), are the places of these runs among the samples of the series. `down`
    and `up`, of the same shape, are the evidence after each run for a drop and for a rise, in
    nats. `watch` and `threshold` are the thresholds of evidence for these states. `today` is the
    larger of the two after the last run, 0 before the first. `changes` are in the order of time;
    the last one may be open. `level` is the median of the baseline in the unit of the series, None
    without one. It comes from `baseline_runs` accepted runs, or from a band if this is 0. Evidence
    is divided by `scale`, as successive runs have the serial `correlation`. `power` has the mean
    detection delay, in runs, of some drops, as ratios: None if a drop cannot be detected. It is
    empty unless it was requested. `doubt` says what one more run would decide now, if anything.
    `transients` are in the order of time.
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
        """The open change, or None."""
        newest = self.changes[-1] if self.changes else None
        return newest if newest and newest.is_open else None


def median_of(values: ArrayLike) -> float:
    """Return the median of a few values, of shape (n,), in a tenth of the time of `np.median`."""
    ordered = np.sort(values)
    half, size = len(ordered) // 2, len(ordered)
    return float((ordered[(size - 1) // 2] + ordered[half]) / 2) if size else math.nan


_NORMAL_95: Final = 1.96

# The size of a change comes from at most this many of its oldest and its newest runs.
_MOST_RUNS: Final = 400


def level_ratio(before: Array, after: Array, inflation: float = 1.0) -> Ratio:
    """Return the ratio of two levels from the logarithms of the runs `before` and `after`.

    The shift is the Hodges-Lehmann estimate, the median of all differences; its interval belongs
    to the rank-sum test (Hollander and Wolfe, "Nonparametric statistical methods", section 4.3),
    widened by `inflation` for runs that depend on each other.
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
