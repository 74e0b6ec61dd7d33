"""Changes that are too small to matter: how small, and what runs are held against after them.

A steady series shows a change of a thousandth within three runs. It is true, and nobody has to
look. Such a change settles: what follows is held against the new level, so that a drop from there
is seen as soon as any, while the size of whatever comes is that against the reference, so that
nothing creeps away in small steps. May know: numpy, and the size of changes.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from iobands.detection.change import Array, Ratio, level_ratio

#: For the runs from one on, what their logarithms are less by; in the order of these runs.
Levels = tuple[tuple[int, float], ...]

#: Over how many of the newest runs the level is taken that may have crept away.
CREEPING: Final = 60
#: From how many runs a level is known well enough to say that it has crept away, or is back.
NEAR: Final = 8

# A change of exactly what matters does, whatever the last bit says.
_ROUNDING: Final = 1e-9


def is_small(ratio: float, least: float) -> bool:
    """Tell whether a level that is `ratio` of the one before is off by less than `least`."""
    return ratio > 0 and abs(math.log(ratio)) < -math.log1p(-least) - _ROUNDING


def is_surely_small(ratio: Ratio, least: float) -> bool:
    """Tell whether the whole interval of `ratio` is off by less than `least`.

    Where runs vary by more than that, a few of them look like a small change of any drop.
    """
    return is_small(ratio.low, least) and is_small(ratio.high, least)


def shifts(levels: Levels, first: int, stop: int) -> Array:
    """Return what the logarithms of the runs from `first` to before `stop` are less by."""
    found = np.zeros(stop - first)
    for since, shift in levels:
        found[max(since - first, 0) :] = shift
    return found


def crept(logarithms: Array, levels: Levels, begun: int, stop: int, reference: float) -> Array:
    """Return how far the level is off `reference` at each run from `begun` to before `stop`.

    It is the median of the newest runs since the last change that settled, in its direction; 0
    while there are fewer than `NEAR`.
    """
    since, shift = levels[-1]
    first = max(since, begun - CREEPING + 1)
    found = np.full(stop - begun, reference)
    short = min(stop, max(begun, since + CREEPING - 1))  # before it the window is not full yet
    for run in range(max(begun, since + NEAR - 1), short):
        found[run - begun] = np.median(logarithms[since : run + 1])
    if short < stop:
        windows = sliding_window_view(logarithms[first:stop], CREEPING)
        found[short - begun :] = np.median(windows[short - stop :], axis=1)
    return np.sign(shift) * (found - reference)


def is_back(before: Array, newest: Array, inflation: float, least: float) -> bool:
    """Tell whether the level of the `newest` runs surely is the one `before`, or as good as it.

    Its whole 95 % interval lies within what matters. Where runs vary by so much that they cannot
    tell, it does not.
    """
    return is_surely_small(level_ratio(before, newest, inflation), least)


def near(logarithms: Array, first: int, stop: int, before: Array, least: float) -> NDArray[np.int_]:
    """Return the runs, each the last of `NEAR` from `first` on, whose median is near `before`."""
    if stop - first < NEAR:
        return np.empty(0, dtype=int)
    medians = np.median(sliding_window_view(logarithms[first:stop], NEAR), axis=1)
    off = np.abs(medians - np.median(before))
    return first + NEAR - 1 + np.flatnonzero(off < -math.log1p(-least))


def after_the_last_off(newest: Array, before: Array, least: float) -> int:
    """Return the place after the last of `newest`, but the very last, that is far off `before`."""
    off = np.abs(newest[:-1] - np.median(before)) >= -math.log1p(-least)
    found = np.flatnonzero(off)
    return int(found[-1]) + 1 if found.size else 0


def begun_with(levels: Levels) -> int:
    """Return the first run of the newest levels that lie all to one side of the reference."""
    found, side = levels[-1]
    for since, shift in reversed(levels):
        if shift * side <= 0:
            break
        found = since
    return found
