"""Changes of level, and the evidence for them, as every view reads them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

#: How a change ended.
RECOVERED: Final = "recovered"

ADOPTED: Final = "adopted"

# A change of exactly the least size matters, whatever the last bit says.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Ratio:
    """The level after a change over the level before, with its 95 % interval."""

    value: float
    low: float
    high: float

    def is_small(self, least: float) -> bool:
        """Return whether the ratio is within a relative change of `least`."""
        return self.value > 0 and _is_small(self.value, least)

    def is_surely_small(self, least: float) -> bool:
        """Return whether the whole interval is within a relative change of `least`."""
        return self.low > 0 and _is_small(self.low, least) and _is_small(self.high, least)


def _is_small(ratio: float, least: float) -> bool:
    return abs(math.log(ratio)) < -math.log1p(-least) - _ROUNDING


DOWN: Final = "down"

UP: Final = "up"

#: The larger of the drops, as ratios, that `Evidence.power` is of.
LARGE_DROP: Final = 0.7


@dataclass(frozen=True)
class Change:
    """A lasting change of a series; times are in UTC.

    `baseline` and `level` are the medians before and since, in the unit of the series; `delay` is
    the number of runs from the first changed one to the alert, both included.
    """

    direction: str
    since: datetime
    since_low: datetime
    since_high: datetime
    raised: datetime
    ratio: Ratio
    baseline: float
    score: float
    threshold: float
    ended: datetime | None = None
    end: str | None = None
    delay: int = 0

    @property
    def level(self) -> float:
        """The level since, in the unit of the series."""
        return self.baseline * self.ratio.value

    @property
    def is_drop(self) -> bool:
        """Whether the change is for the worse."""
        return self.direction == DOWN


@dataclass(frozen=True)
class Suspicion:
    """Evidence for a drop over the watch threshold, and not yet enough for an alert."""

    since: datetime
    ratio: Ratio
    baseline: float
    score: float
    threshold: float


@dataclass(frozen=True)
class Evidence:
    """What the detector found in the runs of a series that compare with its newest.

    `rows`, of shape (runs,), are the places of these runs among the samples of the series. `down`
    and `up`, of the same shape, are the evidence after each run for a drop and for a rise, in
    nats: `watch` and `threshold` say from where on it counts. `changes` are in the order of time;
    the last may be open. `level` is the median of the baseline in the unit of the series, None
    without one; it is of `baseline_runs` accepted runs, 0 where a band gives it. Evidence is
    divided by `scale`, as successive runs have the serial `correlation`. `power` has the mean
    detection delay in runs of some drops, as ratios: None where one is not seen, and empty unless
    the snapshot was asked for it.
    """

    rows: NDArray[np.int_]
    down: NDArray[np.float64]
    up: NDArray[np.float64]
    changes: tuple[Change, ...]
    suspicion: Suspicion | None
    watch: float
    threshold: float
    can_judge: bool
    level: float | None
    baseline_runs: int
    correlation: float
    scale: float
    power: Mapping[str, float | None]

    @property
    def open_change(self) -> Change | None:
        """The change that lasts, or None."""
        newest = self.changes[-1] if self.changes else None
        return newest if newest and newest.ended is None else None

    @property
    def today(self) -> float:
        """The larger evidence after the last run, in nats; 0 before the first."""
        return max(float(self.down[-1]), float(self.up[-1])) if len(self.rows) else 0.0


_NORMAL_95: Final = 1.96

# The size of a change is taken from so many of its runs at most, the oldest and the newest.
_MOST_RUNS: Final = 400


def level_ratio(
    before: NDArray[np.float64], after: NDArray[np.float64], inflation: float = 1.0
) -> Ratio:
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
    differences.partition(sorted(set(wanted)))  # faster than sorting them all
    left, right, low, high = differences[wanted]
    if rank <= 0:
        low, high = -math.inf, math.inf
    return Ratio(float(np.exp((left + right) / 2)), float(np.exp(low)), float(np.exp(high)))
