"""The time between runs: how long trouble lasts, and what a run adds soon after another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from iobands.snapshot.history import Array, Flags, Times

# Without history, most trouble is over within `_LIFE` hours of the first low run, a guess worth
# `_EPISODES` episodes, and one episode in `_IN` lasts longer than a day.
_LIFE: Final = 5.5
_EPISODES: Final = 10
_IN: Final = 100
#: In hours.
DAY: Final = 24.0
# Low runs for longer than this are a change and no episode.
_LONGEST: Final = 3 * DAY


@dataclass(frozen=True)
class Episode:
    """Trouble that ended by itself: it lasted for at least `low` hours, and at most `over`.

    Hours count from the first low run. The run `end` showed that it was over.
    """

    low: float
    over: float
    end: int


@dataclass(frozen=True)
class Life:
    """How long trouble lasts from the first low run on, by the episodes seen so far.

    `ended` is the number of those that were over within a day, `squares` the sum of the squares of
    their hours, `longer` the number of those that lasted longer and ended by themselves.
    """

    ended: int = 0
    squares: float = 0.0
    longer: int = 0

    @classmethod
    def of(cls, seen: Sequence[Episode]) -> Life:
        """Return the life of trouble by the episodes `seen`."""
        # the mean square of the hours that each may have lasted
        short = [(each.low**2 + each.over**2) / 2 for each in seen if each.over <= DAY]
        return cls(len(short), sum(short), len(seen) - len(short))

    @property
    def hours(self) -> float:
        """The root mean square of the hours of trouble that is over within a day."""
        return math.sqrt((_EPISODES * _LIFE**2 + self.squares) / (_EPISODES + self.ended))

    @property
    def days(self) -> float:
        """The share of trouble that lasts longer than a day."""
        return (1 + self.longer) / (_IN + self.ended + self.longer)

    def lasts(self, hours: float, again: float) -> float:
        """Return the probability that trouble still lasts after this many hours.

        The hours of trouble that is over within a day have a Rayleigh distribution, whose rate of
        ending rises with age: others' jobs, rebuilds and backups end. Of longer trouble, the share
        `again` goes on from one day to the next.
        """
        short = math.exp(-((hours / self.hours) ** 2))
        return (1 - self.days) * short + self.days * again ** max(hours / DAY - 1, 0)


def episodes(hours: Array, low: Flags, asked: Flags) -> Iterator[Episode]:
    """Yield the streaks of `low` runs that were measured again and ended, in the order of time.

    A low run before a healthy one of the next day has no known length: it may have been a minute.
    """
    edges = np.flatnonzero(np.diff(low, prepend=False, append=False))
    for first, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        begun, again = hours[first], asked[first : end + 1].any()
        if end < len(low) and again and hours[end] - begun <= _LONGEST:
            yield Episode(float(hours[end - 1] - begun), float(hours[end] - begun), end)


#: The usual share of the variance that is new in each run, however soon it follows another.
NEW: Final = 0.4
#: Even where one day is not like the next, the rest of the variation fades over this many hours.
FADES: Final = 6.0

# The usual gap is the median of this many routine gaps before a run. A run is close to the one
# before it if the gap is less than half the usual one.
_GAPS: Final = 9
_CLOSE: Final = 0.5
# However correlated successive runs are, a gap as long as the usual one makes some difference.
_MOST: Final = 0.95
# Pairs of close runs teach which share of the variance is new in each run. The usual share counts
# as `_USUAL_PAIRS` pairs, the result stays within `_SHARES`, and `_ROUNDS` rounds find it.
_USUAL_PAIRS: Final = 50.0
_SHARES: Final = (0.05, 0.9)
_ROUNDS: Final = 20
_HOUR: Final = np.timedelta64(3_600_000_000_000, "ns")


@dataclass(frozen=True)
class Spacing:
    """When runs were made, in `hours` from any origin, and whether an earlier run `asked` for them.

    Runs correlate by (1 - new) * kept ** gap. At the usual gap a run counts in full, since the
    divisor of all scores already corrects for the correlation there. Arrays are of shape (runs,).
    """

    hours: Array
    asked: Flags

    @classmethod
    def of(cls, times: Times, asked: Flags) -> Spacing:
        """Return the spacing of runs at ordered `times`."""
        hours: Array = np.array((times - times[:1]) / _HOUR, dtype=np.float64)
        return cls(hours, asked)

    def between(self, first: int, stop: int) -> Spacing:
        """Return the spacing of some of the runs; usual gaps still come from the runs before."""
        found = Spacing(self.hours[first:stop], self.asked[first:stop])
        found.__dict__["usual"] = self.usual[first:stop]
        found.__dict__["close"] = np.append(False, self.close[first + 1 : stop])
        return found

    @cached_property
    def usual(self) -> Array:
        """The usual gap before each run, in hours; 0 where it is not known yet."""
        routine = np.flatnonzero(~self.asked)
        found = np.zeros(len(self.hours))
        if len(routine) > _GAPS:
            windows = sliding_window_view(np.diff(self.hours[routine]), _GAPS)
            medians = np.sort(windows, axis=1)[:, _GAPS // 2]
            known = np.searchsorted(routine, np.arange(len(self.hours))) - 1 - _GAPS
            found[known >= 0] = medians[known[known >= 0]]
        return found

    @cached_property
    def gaps(self) -> Array:
        """The hours since the run before."""
        return np.diff(self.hours, prepend=-np.inf)

    @cached_property
    def close(self) -> Flags:
        """Which runs follow another so closely that they say less."""
        # a median of nine gaps is wide only if five are, which never happens in most series
        wide = (self.gaps > self.gaps.min(initial=np.inf) / _CLOSE).cumsum()
        if (wide[_GAPS:] - wide[:-_GAPS] <= _GAPS // 2).all() and not self.asked.any():
            return np.zeros(len(self.hours), dtype=bool)
        return np.asarray(self.gaps < _CLOSE * self.usual)

    @cached_property
    def begun(self) -> NDArray[np.int_]:
        """The first run of the sequence of close runs that each run is in."""
        places = np.arange(len(self.hours))
        return np.maximum.accumulate(np.where(self.close, 0, places))

    def foreseen(
        self, runs: slice, values: Array, correlations: Array, shares: Array
    ) -> tuple[Array, Array, Array]:
        """Return the weight of each of the `runs`, what is new in it, and its share of a change.

        `values` are standard normal while nothing changes. `correlations` hold at the usual gap,
        and `shares` of the variance are new in each run. A Kalman filter predicts a run from the
        runs shortly before: `mean` is the prediction, `left` its variance, and `seen` the share of
        a lasting change that it contains. What is new in a run, divided by its deviation, is
        standard normal again, and shows the share `shown` of a change. The weight is the square of
        `shown`, relative to a run of a long series at the usual gap, and at most 1.
        """
        weights, shown = np.ones((2, runs.stop - runs.start))
        new = values.copy()
        mean, seen, left = 0.0, 0.0, 0.0
        for place in np.flatnonzero(self._matters[runs]).tolist():
            run, share = runs.start + place, float(shares[place])
            if self.close[run]:
                usual, correlation = float(self.usual[run]), float(correlations[place])
                per_gap = float(kept_over(usual, usual, correlation, share))
                kept = per_gap ** (float(self.gaps[run]) / usual)
                mean, seen = kept * mean, kept * seen
                left = kept**2 * left + (1 - kept**2) * (1 - share)
                long_run = share + (1 - share) * (1 + per_gap) / (1 - per_gap)
                deviation = math.sqrt(left + share)
                shown[place] = (1 - seen) / deviation
                new[place] = (values[place] - mean) / deviation
                weights[place] = min(shown[place] ** 2 * long_run, 1.0)
            else:
                mean, seen, left = 0.0, 0.0, 1 - share
            gain = left / (left + share)
            mean, seen = mean + gain * (values[place] - mean), seen + gain * (1 - seen)
            left *= 1 - gain
        return weights, new, shown

    def lasting(
        self,
        runs: slice,
        ratios: Array,
        streaks: Flags,
        rates: Array,
        lasts: Sequence[Callable[[float], float]],
    ) -> Array:
        """Return the evidence for a drop that lasting trouble explains, in nats, of shape (runs,).

        `ratios` are the likelihood ratios of a low run and a healthy one, `streaks` says whether a
        run follows a low one of the day before, and `rates` is how often trouble begins, all of
        shape (runs,). `lasts` returns, for each run, the probability that trouble lasts some hours.
        """
        found = np.zeros(len(ratios))
        trouble, since = 0.0, 0.0
        for place in np.flatnonzero(self._matters[runs]).tolist():
            run = runs.start + place
            now, left, rate = float(self.hours[run]), 0.0, float(rates[place])
            if self.close[run]:
                still = lasts[place]
                left = trouble * still(now - since) / still(float(self.hours[run - 1]) - since)
                found[place] = max(math.log1p(left * (ratios[place] - 1)), 0.0)
            if left <= rate:
                left, since = rate, now - (DAY if streaks[place] else 0.0)
            trouble = left * ratios[place] / (1 + left * (ratios[place] - 1))
        return found

    @cached_property
    def _matters(self) -> Flags:
        return self.close | np.append(self.close[1:], False)


def kept_over(hours: ArrayLike, usual: ArrayLike, correlation: float, new: float) -> Array:
    """Return the share of the lasting part of the variation that is kept over `hours`.

    `correlation` holds for runs a usual gap apart, and `new` the share that does not last.
    """
    per_gap = np.clip(correlation / (1 - new), np.exp(-np.asarray(usual) / FADES), _MOST)
    return np.asarray(per_gap ** np.divide(hours, usual))


def new_of(parts: Sequence[Array], correlation: float | None, window: int) -> float:
    """Return the share of the variance that is new in each run, by pairs of close runs.

    Each part, of shape (4, pairs), has both runs in standard deviations from the level around the
    first, the hours between them, and the usual gap. The share is 1 less the slope of the second
    run on the part of the first that is kept.
    """
    first, second, gaps, usual = np.concatenate(parts, axis=1) if parts else np.empty((4, 0))
    if correlation is None or not first.size:
        return NEW
    lags, day, new = np.arange(1, window), float(np.median(usual)), NEW
    for _ in range(_ROUNDS):  # what is kept depends on the share
        kept = kept_over(gaps, usual, correlation, new)
        # the level, a mean of `window` runs, includes these two and takes part of what they share
        days = max(correlation, 0.0) * kept_over(day * (lags - 1), day, correlation, new)
        level, own = 1 + 2 * (1 - lags / window) @ days, 1 + 2 * days[: window // 2].sum()
        apart = (1 - (2 * own - level) / window) * window / (window - 1)
        seen = kept * first
        shared = seen @ (first - apart * (first - second))
        slope = (shared + _USUAL_PAIRS * (1 - NEW)) / (seen @ seen + _USUAL_PAIRS)
        new = min(max(1 - float(slope), _SHARES[0]), _SHARES[1])
    return new
