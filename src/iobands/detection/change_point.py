"""A lasting change of level: when it began and how large it is, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from iobands.detection.scores import Array
from iobands.snapshot.change import Ratio

# Half the 95 % point of chi-squared with one degree of freedom.
_LIKELY: Final = 1.92
_NORMAL_95: Final = 1.96
# The size of a change is taken from so many of its runs at most, the oldest and the newest.
_MOST_RUNS: Final = 400


@dataclass(frozen=True)
class ChangePoint:
    """A lasting change; runs count from 0.

    The change began with run `onset`, most likely between `onset_low` and `onset_high`. The
    evidence `score` passed `threshold` (both in nats) at run `raised`. `ratio` is the level since
    over the baseline, and `baseline` the median of what the runs were judged by. `ended` is the
    first run after the change, `closed` the run at which that was known, `end` how it ended; all
    three are None while the change lasts.
    """

    direction: str
    raised: int
    onset: int
    onset_low: int
    onset_high: int
    ratio: Ratio
    baseline: float
    score: float
    threshold: float
    ended: int | None = None
    closed: int | None = None
    end: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether the change lasts."""
        return self.ended is None


def onset_interval(scores: Array, raised: int) -> tuple[int, int, int]:
    """Return the likeliest first run of a change, and the earliest and latest likely ones.

    `scores` is the evidence of each run for the change, so the log-likelihood of an onset at k,
    up to the run `raised`, is the sum from k on. The interval holds every onset within 1.92 of
    the largest, a 95 % interval where the likelihood is smooth.
    """
    likelihood = np.cumsum(scores[::-1])[::-1][: raised + 1]
    # Among equals the latest: the runs before it gave no evidence.
    best = raised - int(np.argmax(likelihood[::-1]))
    near = np.flatnonzero(likelihood >= likelihood[best] - _LIKELY)
    return best, int(near[0]), int(near[-1])


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
    differences.partition(sorted(set(wanted)))  # faster than sorting them all
    left, right, low, high = differences[wanted]
    if rank <= 0:
        low, high = -math.inf, math.inf
    return Ratio(float(np.exp((left + right) / 2)), float(np.exp(low)), float(np.exp(high)))
