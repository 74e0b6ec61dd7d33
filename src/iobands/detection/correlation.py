"""Serial correlation: how much one run of a series says about the next."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: The largest correlation that scores are corrected for: beyond it a chart would see nothing.
MOST: Final = 0.7

# A level shift correlates all runs of one side; within blocks of this length it is a rare thing.
_BLOCK: Final = 30
_BLOCKS_TO_SPARE: Final = 4


def serial_correlation(values: Array) -> float:
    """Return the lag-1 rank correlation of `values`, in the order of time; it may be negative.

    The ranks are taken over all values and their mean over blocks of some 30, so that a shift of
    the level from one block to another does not count as correlation. The block that varies most,
    which a shift may lie in, is left out where there are four or more. What the block means take
    away is put back: for n runs a block the estimate is short by about (1 + 3 phi) / n (Kendall,
    "Note on bias in the estimation of autocorrelation", Biometrika 41, 1954).
    """
    size = len(values)
    blocks = max(1, round(size / _BLOCK))
    ordered = np.sort(values)
    ranks = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    starts = np.arange(blocks) * size // blocks
    lengths = np.diff(starts, append=size)
    centred = ranks - np.repeat(np.add.reduceat(ranks, starts) / lengths, lengths)
    following = centred * np.append(centred[1:], 0.0)
    following[starts[1:] - 1] = 0.0  # the next run is of another block
    squares = np.add.reduceat(centred**2, starts)
    products = np.add.reduceat(following, starts) * lengths / np.maximum(lengths - 1, 1)
    if blocks >= _BLOCKS_TO_SPARE:
        kept = np.arange(blocks) != np.argmax(squares)
        squares, products = squares[kept], products[kept]
    square = float(squares.sum())
    if square == 0:
        return 0.0
    found, length = float(products.sum()) / square, size / blocks
    corrected = (found * length + 1) / (length - 3) if length > 4 else found  # noqa: PLR2004
    return float(corrected)


def inflation(correlation: float) -> float:
    """Return the factor on a limit: sqrt((1 + phi) / (1 - phi)), for a series of type AR(1)."""
    return float(np.sqrt((1 + correlation) / (1 - correlation)))


def scale_for(correlation: float, threshold: float, watch: float, youth: float = 0.0) -> float:
    """Return the divisor of every score for the serial correlation phi of a series.

    For thresholds up to `watch` it is sqrt((1 + phi) / (1 - phi)). The higher the threshold, the
    more correlated runs add up to a false alarm, and in the end their long-run variance decides,
    (1 + phi) / (1 - phi). From twice `watch` on the exponent is 3/4, and 1 for a baseline of
    full `youth`, whose correlation is hardly known (docs/error-rates.md).
    """
    share = min(max((threshold - watch) / watch, 0.0), 1.0)
    return inflation(correlation) ** (1 + share * (1 + youth) / 2)
