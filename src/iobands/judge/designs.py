"""Changes that are no shift of the level: an upper mode that is lost, and a spread that doubled.

They are further designs of the chart: how probable they make each cell follows from the ranks of
the runs of a baseline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from iobands.snapshot.history import Array, median_of

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
    lower = ordered.cumsum()[least - 1 : size - least]
    total = ordered.sum()
    mean = total / size
    centred = ordered - mean
    between = counts * (lower / counts - mean) ** 2
    between += (size - counts) * ((total - lower) / (size - counts) - mean) ** 2
    best = int(between.argmax())
    return int(counts[best]) if between[best] >= _TWO * (centred @ centred) else 0


def other_designs(
    ordered: Array, edges: Array, healthy: Array, below: Callable[[Array], Array]
) -> Array:
    """Return how probable each cell is by the designs of this module, of shape (2, cells).

    `ordered` are the runs of the baseline, `edges` and `healthy` those of its cells, and `below`
    returns the probability of values below. In a baseline of one mode no mode can be lost.
    """
    until = healthy.cumsum()
    lower = lower_mode(ordered) / (len(ordered) + 1)
    lost = np.minimum(until / lower, 1.0) if lower else until
    middle = median_of(ordered)
    wider = below(middle + (edges - middle) / _WIDER)
    found = shares_of(np.array([lost[:-1], wider]))
    found[0, -1] = lost[-1] - lost[-2]
    return found


def shares_of(until: Array) -> Array:
    """Return the probability of each of k cells by those of all below k - 1 edges, as rows."""
    found = np.empty((len(until), until.shape[1] + 1))
    found[:, :-1], found[:, -1] = until, 1.0
    found[:, 1:] -= until
    return found
