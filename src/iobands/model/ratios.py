"""Ratios of pairs that were measured together, and an interval of their median.

The interval comes from the sign test: its ends are two of the ratios themselves. It assumes only
that pairs do not depend on each other. ReFrame checks import it: standard library only.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

#: The least confidence of an interval.
CONFIDENCE: Final = 0.95

#: The fewest pairs for this confidence, with the smallest and largest ratio: 1 - 2 / 2**6 = 0.969.
FEWEST_PAIRS: Final = 6


@dataclass(frozen=True)
class PairedRatio:
    """The median of the ratios of some pairs, and an interval that contains the true median.

    `confidence` belongs to the interval and is at least `CONFIDENCE`. With fewer pairs than
    `FEWEST_PAIRS` no two ratios reach it, and the ends are None.
    """

    median: float
    lower: float | None
    upper: float | None
    confidence: float | None
    pairs: int


def paired_ratio(pairs: Sequence[tuple[float, float]]) -> PairedRatio:
    """Return the ratio of the first to the second of each pair.

    The median of an even number is the geometric mean of the two in the middle, so that swapping
    the sides gives the reciprocal.

    Raises:
        ValueError: there is no pair, or something in them is not above 0.
    """
    if not pairs:
        raise ValueError("there are no pairs to give a ratio")
    if not all(value > 0 and math.isfinite(value) for pair in pairs for value in pair):
        raise ValueError("a ratio needs two numbers above 0")
    logs = sorted(math.log(first / second) for first, second in pairs)
    number, outside = len(logs), 0
    lower, upper, confidence = None, None, None
    # the median is beyond the ratio at `place` if that many or fewer are on one side of it, each
    # with probability one half
    for place in range(number // 2):
        outside += math.comb(number, place)
        if (inside := 1 - 2 * outside / 2**number) < CONFIDENCE:
            break
        lower, upper, confidence = math.exp(logs[place]), math.exp(logs[-1 - place]), inside
    return PairedRatio(math.exp(statistics.median(logs)), lower, upper, confidence, number)
