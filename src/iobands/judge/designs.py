"""Changes that are no shift of the level: an upper mode that is lost, and a spread that doubled.

They are further designs of the chart: how probable they make each cell follows from the ranks of
the runs of a baseline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: The designs of this module, after those that are shifts.
MODE, SPREAD = 8, 9
OTHERS: Final = slice(MODE, SPREAD + 1)

# Two modes explain this share of the variance, where one normal mode cut in two explains 0.64
# (Otsu, "A threshold selection method from gray-level histograms", IEEE Trans. SMC 9, 1979).
_TWO: Final = 0.8
# The least share of the runs in a mode, and their least number.
_LEAST_SHARE: Final = 0.15
_LEAST_RUNS: Final = 8
_WIDER: Final = 2.0


def lower_mode(ordered: Array) -> int:
    """Return how many of the runs are in the lower one of two modes, 0 if there is one mode.

    `ordered` are their logarithms in rising order.
    """
    size = len(ordered)
    least = max(_LEAST_RUNS, round(_LEAST_SHARE * size))
    if size < 2 * least or ordered[0] == ordered[-1]:
        return 0
    counts = np.arange(least, size - least + 1)
    lower = np.cumsum(ordered)[counts - 1]
    total, mean = ordered.sum(), ordered.mean()
    between = counts * (lower / counts - mean) ** 2
    between += (size - counts) * ((total - lower) / (size - counts) - mean) ** 2
    best = int(np.argmax(between))
    return int(counts[best]) if between[best] >= _TWO * size * ordered.var() else 0


def other_designs(
    ordered: Array, edges: Array, healthy: Array, below: Callable[[Array], Array]
) -> Array:
    """Return how probable each cell is by the designs of this module, of shape (2, cells).

    `ordered` are the runs of the baseline, `edges` and `healthy` those of its cells, and `below`
    returns the probability of values below. In a baseline of one mode no mode can be lost.
    """
    until = np.cumsum(healthy)
    lower = lower_mode(ordered) / (len(ordered) + 1)
    lost = np.minimum(until / lower, 1.0) if lower else until
    middle = np.median(ordered)
    wider = np.append(below(middle + (edges - middle) / _WIDER), 1.0)
    return np.diff([lost, wider], axis=1, prepend=0.0)
