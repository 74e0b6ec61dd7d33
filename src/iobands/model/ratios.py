"""The median ratio of values that were measured in pairs, and its interval.

The interval comes from the sign test: its ends are two of the ratios themselves. It assumes only
that the pairs are independent. ReFrame checks import this: standard library only.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

#: The least confidence of an interval.
CONFIDENCE: Final = 0.95

#: The fewest pairs whose smallest and largest ratio give this confidence: 1 - 2 / 2**6 = 0.969.
FEWEST_PAIRS: Final = 6


@dataclass(frozen=True)
class PairedRatio:
    """The median ratio of `pairs` pairs, and a confidence interval of the true median.

    Its `confidence` is at least `CONFIDENCE`. With fewer pairs than `FEWEST_PAIRS`, no two ratios
    reach that: the ends and the confidence are None.
    """

    median: float
    lower: float | None
    upper: float | None
    confidence: float | None
    pairs: int


def paired_ratio(pairs: Sequence[tuple[float, float]]) -> PairedRatio:
    """Return the median ratio of the first to the second value of the pairs.

    With an even number of pairs, it is the geometric mean of the middle two ratios, so that
    swapping first and second values gives the reciprocal.

    Raises:
        ValueError: there are no pairs, or a value is not finite and above 0.
    """
    if not pairs:
        raise ValueError("there are no pairs to give a ratio")
    if not all(value > 0 and math.isfinite(value) for pair in pairs for value in pair):
        raise ValueError("a ratio needs two numbers above 0")
    logs = sorted(math.log(first / second) for first, second in pairs)
    number, outside = len(logs), 0
    lower, upper, confidence = None, None, None
    # the true median is beyond the ratio at `place` if at most `place` ratios lie on one side of
    # it, as each does with probability one half
    for place in range(number // 2):
        outside += math.comb(number, place)
        if (inside := 1 - 2 * outside / 2**number) < CONFIDENCE:
            break
        lower, upper, confidence = math.exp(logs[place]), math.exp(logs[-1 - place]), inside
    return PairedRatio(math.exp(statistics.median(logs)), lower, upper, confidence, number)
