"""Sums of evidence that never fall below zero, and which designs they are looked up in.

May know: numpy, and the designs.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.detection.alarm import DOWN, UP
from iobands.detection.scores import DESIGNS, DROPS, Array

#: Which of the designs are of which direction.
SIDES: Final = {DOWN: slice(0, len(DROPS)), UP: slice(len(DROPS), len(DESIGNS))}
# A little under a half, so that 0.9 goes with 0.8.
_RECOVERY_SHARE: Final = 0.45


def recovery_designs(design: int) -> list[int]:
    """Return the designs that must all speak for recovery: as large as `design`, down to half.

    The design that fitted best at an alarm may be larger than the change is. Then the true level
    lies between it and the healthy one, and it alone would soon take that for a recovery.
    """
    columns = SIDES[DOWN if design < len(DROPS) else UP]
    size = abs(np.log(DESIGNS[design]))
    return [
        column
        for column in range(columns.start, design + 1)
        if abs(np.log(DESIGNS[column])) >= _RECOVERY_SHARE * size
    ]


def opposite(design: int) -> slice:
    """Return the designs of the other direction than `design`."""
    return SIDES[UP if design < len(DROPS) else DOWN]


def cusum(scores: Array, begun: Array) -> Array:
    """Return the sums after each run, from `begun` on, never below zero; by column."""
    total = np.cumsum(scores, axis=0)
    return total - np.minimum(np.minimum.accumulate(total, axis=0), -begun)


def last_zero(sums: Array, first: int, otherwise: int) -> int:
    """Return the run after the last of `sums` that is zero, the first of them being `first`."""
    zeros = np.flatnonzero(sums == 0)
    return first + int(zeros[-1]) + 1 if zeros.size else otherwise


def first_true(true: NDArray[np.bool_], otherwise: int) -> int:
    """Return the first index at which `true` is so, or `otherwise`."""
    found = int(np.argmax(true)) if true.size else 0
    return found if true.size and true[found] else otherwise
