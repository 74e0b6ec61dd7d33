"""How far apart the runs of a series are, and what a run adds that follows another closely."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from iobands.judge.episodes import DAY
from iobands.snapshot.history import Array, Flags, Times

#: The share of what varies that is new in each run, however soon it follows another.
NEW: Final = 0.4
#: Even where one day is not like the next, what varies fades over so many hours.
FADES: Final = 6.0

# The usual gap is the median of so many scheduled gaps before a run. A run is close to the one
# before it from half of that on.
_GAPS: Final = 9
_CLOSE: Final = 0.5
# However correlated successive runs are, a gap as long as the usual one makes some difference.
_MOST: Final = 0.95
_HOUR: Final = np.timedelta64(3_600_000_000_000, "ns")


@dataclass(frozen=True)
class Spacing:
    """Arrays of shape (runs,): `hours` of each run since any time, and whether it was `asked` for.

    Runs correlate by (1 - NEW) * kept ** gap. At the usual gap a run counts in full, since the
    divisor of all scores has its correlation already.
    """

    hours: Array
    asked: Flags

    @classmethod
    def of(cls, times: Times, asked: Flags) -> Spacing:
        """Return the spacing of runs at ordered `times`."""
        hours: Array = np.array((times - times[:1]) / _HOUR, dtype=np.float64)
        return cls(hours, asked)

    @classmethod
    def regular(cls, runs: int) -> Spacing:
        """Return the spacing of a run a day."""
        return cls(24.0 * np.arange(runs, dtype=np.float64), np.zeros(runs, dtype=bool))

    def between(self, first: int, stop: int) -> Spacing:
        """Return the spacing of some of the runs; their usual gap is still known."""
        found = Spacing(self.hours[first:stop], self.asked[first:stop])
        found.__dict__["usual"] = self.usual[first:stop]
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
        return np.asarray(self.gaps < _CLOSE * self.usual)

    @cached_property
    def begun(self) -> NDArray[np.int_]:
        """The first of the runs without a wide gap that each run is one of."""
        places = np.arange(len(self.hours))
        return np.maximum.accumulate(np.where(self.close, 0, places))

    def foreseen(
        self, runs: slice, values: Array, correlations: Array
    ) -> tuple[Array, Array, Array]:
        """Return how much each of the `runs` counts, what is new in it, and what that shows.

        `values` are of a standard normal distribution while nothing changes, and `correlations`
        those at the usual gap. A Kalman filter predicts a run from those shortly before. What it
        takes for chance by then is `mean`, of which a lasting change of the level would make the
        share `seen`; `left` is the variance of the prediction. What is new in a run, divided by
        its deviation, is standard normal again, and of a change of the level it shows the share
        `shown`. A run counts as what it tells of the level, the square of that, over what one does
        in a long series at the usual gap.
        """
        weights, shown = np.ones((2, runs.stop - runs.start))
        new = values.copy()
        mean, seen, left = 0.0, 0.0, 1 - NEW
        for place in np.flatnonzero(self._matters[runs]).tolist():
            run = runs.start + place
            if self.close[run]:
                usual = float(self.usual[run])
                per_gap = float(correlations[place]) / (1 - NEW)
                per_gap = min(max(per_gap, math.exp(-usual / FADES)), _MOST)
                kept = per_gap ** (float(self.gaps[run]) / usual)
                mean, seen = kept * mean, kept * seen
                left = kept**2 * left + (1 - kept**2) * (1 - NEW)
                long_run = NEW + (1 - NEW) * (1 + per_gap) / (1 - per_gap)
                deviation = math.sqrt(left + NEW)
                shown[place], new[place] = (
                    (1 - seen) / deviation,
                    (values[place] - mean) / deviation,
                )
                weights[place] = min(shown[place] ** 2 * long_run, 1.0)
            else:
                mean, seen, left = 0.0, 0.0, 1 - NEW
            gain = left / (left + NEW)
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
        """Return by how much evidence for a drop is too large, as trouble may just last, in nats.

        Of shape (runs,) are `ratios`, the likelihood ratios of a low run and a healthy one, and
        `streaks`, whether a run follows a low one of the day before. Trouble begins at `rates`, and
        `lasts` has the probability that it does for so many hours. The probability that it lasts
        follows from run to run; what it explains is no evidence for a drop.
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
