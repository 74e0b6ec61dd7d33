"""How far apart the runs of a series are, and how much a run adds that follows another closely."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from iobands.judge.scores import Array
from iobands.snapshot import Flags, Times

#: The share of what varies that is new in each run, however soon it follows another.
NEW: Final = 0.4
#: How many hours trouble lasts that ends by itself, until a file system shows its own.
LIFE: Final = 6.0

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

    Runs correlate by (1 - NEW) * phi ** gap. At the usual gap a run counts in full, since the
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

    def weights(self, runs: slice, correlations: Array, life: float = LIFE) -> Array:
        """Return how much each of the `runs` counts, by the correlation at the usual gap.

        What a run adds to what is known of the level, over what it would add at the usual gap. A
        Kalman filter predicts it from the runs before: `seen` is the share of a change of level
        that it takes for chance by now, and `left` the variance of its prediction.
        """
        found = np.ones(runs.stop - runs.start)
        seen, left = 0.0, 1 - NEW
        for place in np.flatnonzero(self._matters[runs]).tolist():
            run = runs.start + place
            usual, gap = float(self.usual[run]), float(self.gaps[run])
            per_gap = float(correlations[place]) / (1 - NEW)
            if self.close[run]:
                per_gap = min(max(per_gap, math.exp(-usual / life)), _MOST)
                kept = per_gap ** (gap / usual)
                found[place] = min(_adds(seen, left, kept) / _adds(seen, left, per_gap), 1.0)
                seen, left = kept * seen, _spread(left, kept)
            else:
                seen, left = 0.0, 1 - NEW
            gain = left / (left + NEW)
            seen, left = seen + gain * (1 - seen), (1 - gain) * left
        return found

    def lasting(self, runs: slice, ratios: Array, rates: Array, life: float = LIFE) -> Array:
        """Return by how much evidence for a drop is too large, as trouble may just last, in nats.

        `ratios`, of shape (runs,), are likelihood ratios of a low run and a healthy one. Trouble
        begins at `rates`, and is over by the usual gap. The probability that it lasts follows from
        run to run; what it explains is no evidence for a drop.
        """
        found = np.zeros(len(ratios))
        trouble, since = 0.0, 0.0
        for place in np.flatnonzero(self._matters[runs]).tolist():
            run = runs.start + place
            now, left = self.hours[run], 0.0
            if self.close[run]:
                before = self._left(self.hours[run - 1] - since, run, life)
                left = trouble * self._left(now - since, run, life) / before if before else 0.0
                found[place] = max(math.log1p(left * (ratios[place] - 1)), 0.0)
            if left <= rates[place]:
                left, since = rates[place], now
            trouble = left * ratios[place] / (1 + left * (ratios[place] - 1))
        return found

    @cached_property
    def _matters(self) -> Flags:
        return self.close | np.append(self.close[1:], False)

    def _left(self, hours: float, run: int, life: float) -> float:
        """Return the probability that trouble lasts so long."""
        return max(math.exp(-hours / life) - math.exp(-float(self.usual[run]) / life), 0.0)


def _spread(left: float, kept: float) -> float:
    """Return the variance of a prediction after a gap over which the correlation is `kept`."""
    return kept**2 * left + (1 - kept**2) * (1 - NEW)


def _adds(seen: float, left: float, kept: float) -> float:
    """Return what a run adds after such a gap, as a share of what the first one tells."""
    return (1 - kept * seen) ** 2 / (_spread(left, kept) + NEW)
