"""What a change is like once it is found: when it began, and how large it is, with intervals.

May know: numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Half the 95 % point of chi-squared with one degree of freedom.
_LIKELY: Final = 1.92
_NORMAL_95: Final = 1.96
# The newest and oldest runs of a change that its size is taken from, so that the cost is bounded.
_MOST_RUNS: Final = 400


@dataclass(frozen=True)
class Ratio:
    """The level after a change over the one before, and its 95 % interval."""

    value: float
    low: float
    high: float


def onset_interval(scores: Array, raised: int) -> tuple[int, int, int]:
    """Return the likeliest first changed run, and the first and last that are nearly as likely.

    `scores` has the evidence of each run for the change, so that the log-likelihood of an onset
    at k, not after the run `raised`, is the sum from k on. The interval holds all within 1.92 of
    the largest, as a 95 % interval does where the likelihood is smooth.
    """
    likelihood = np.cumsum(scores[::-1])[::-1]
    # among equals the latest: what came before gave no evidence
    possible = likelihood[: raised + 1]
    best = raised - int(np.argmax(possible[::-1]))
    near = np.flatnonzero(possible >= possible[best] - _LIKELY)
    return best, int(near[0]), int(near[-1])


def level_ratio(before: Array, after: Array, inflation: float = 1.0) -> Ratio:
    """Return the ratio of two levels from the logarithms of runs `before` and `after`.

    The shift is that of Hodges and Lehmann, the median of all differences, and its interval the
    one that belongs to the rank-sum test (Hollander and Wolfe, "Nonparametric statistical
    methods", section 4.3), widened by `inflation` for runs that depend on each other.
    """
    if len(after) > _MOST_RUNS:
        after = np.concatenate((after[: _MOST_RUNS // 2], after[-_MOST_RUNS // 2 :]))
    differences = np.subtract.outer(after, before).ravel()
    pairs = len(differences)
    spread = np.sqrt(pairs * (len(before) + len(after) + 1) / 12)
    rank = int(pairs / 2 - _NORMAL_95 * inflation * spread)
    wanted = [(pairs - 1) // 2, pairs // 2, max(rank, 0), pairs - 1 - max(rank, 0)]
    differences.partition(sorted(set(wanted)))  # a few ranks are had sooner than a whole order
    left, right, low, high = differences[wanted]
    if rank <= 0:
        low, high = -np.inf, np.inf
    return Ratio(float(np.exp((left + right) / 2)), float(np.exp(low)), float(np.exp(high)))
