"""CUSUM: sums of evidence that never fall below zero, one a design."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.detection.scores import DESIGNS, DROPS, Array
from iobands.snapshot.change import DOWN, UP

#: The designs of each direction, as columns.
SIDES: Final = {DOWN: slice(0, len(DROPS)), UP: slice(len(DROPS), len(DESIGNS))}

# A little under a half, so that 0.9 goes with 0.8.
_RECOVERY_SHARE: Final = 0.45


def direction_of(design: int) -> str:
    """Return the direction of a design."""
    return DOWN if design < len(DROPS) else UP


def recovery_designs(design: int) -> list[int]:
    """Return the designs that must all show recovery: from half the size of `design` up to it.

    The design that fitted best when the change was found may be larger than the change. The true
    level then lies between it and the baseline, and that design alone would see a recovery.
    """
    size = abs(np.log(DESIGNS[design]))
    return [
        column
        for column in range(SIDES[direction_of(design)].start, design + 1)
        if abs(np.log(DESIGNS[column])) >= _RECOVERY_SHARE * size
    ]


def cusum(scores: Array, begun: Array) -> Array:
    """Return the sums after each run by column, starting from `begun`, never below zero."""
    total = np.cumsum(scores, axis=0)
    return total - np.minimum(np.minimum.accumulate(total, axis=0), -begun)


def after_last_zero(sums: Array, first: int, otherwise: int) -> int:
    """Return the run after the last zero of `sums`, whose first run is `first`."""
    zeros = np.flatnonzero(sums == 0)
    return first + int(zeros[-1]) + 1 if zeros.size else otherwise


def first_true(flags: NDArray[np.bool_], otherwise: int) -> int:
    """Return the index of the first true flag, or `otherwise`."""
    found = int(np.argmax(flags)) if flags.size else 0
    return found if flags.size and flags[found] else otherwise
