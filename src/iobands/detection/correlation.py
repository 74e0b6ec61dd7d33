"""How much one run tells of another: of the next of its series, and of those of other series.

May know: numpy.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: No more than this is taken off: beyond it a chart would see nothing.
MOST: Final = 0.7

# A level shift correlates all runs of one side; within blocks of this length it is a rare thing.
_BLOCK: Final = 30
_BLOCKS_TO_SPARE: Final = 4
# Two series need so many common sessions for a correlation between them.
_ENOUGH_SESSIONS: Final = 30


def serial_correlation(values: Array) -> float:
    """Return the lag-1 rank correlation of `values`, in the order of time, from 0 to `MOST`.

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
    sums = []
    for part in np.array_split(ranks.astype(float), blocks):
        centred = part - part.mean()
        product = float(centred[1:] @ centred[:-1]) * len(part) / max(len(part) - 1, 1)
        sums.append((float(centred @ centred), product))
    if blocks >= _BLOCKS_TO_SPARE:
        sums.remove(max(sums))
    square, product = (sum(column) for column in zip(*sums, strict=True))
    if square == 0:
        return 0.0
    found, length = product / square, size / blocks
    corrected = (found * length + 1) / (length - 3) if length > 4 else found  # noqa: PLR2004
    return float(np.clip(corrected, 0.0, MOST))


def inflation(correlation: float) -> float:
    """Return the factor on a limit: sqrt((1 + phi) / (1 - phi)), for a series of type AR(1)."""
    return float(np.sqrt((1 + correlation) / (1 - correlation)))


def scale_for(correlation: float, limit: float, watch: float) -> float:
    """Return what every score is divided by for the serial correlation of a series.

    For limits up to `watch` it is sqrt((1 + phi) / (1 - phi)). The higher the limit, the more
    runs that depend on each other add up to a false alarm, and in the end their long-run variance
    decides, which is (1 + phi) / (1 - phi) times as large. From twice `watch` on the exponent is
    3/4, which is what was measured to hold (docs/error-rates.md).
    """
    share = min(max((limit - watch) / watch, 0.0), 1.0)
    return inflation(correlation) ** (1 + share / 2)


def correlation_between(table: Array) -> float | None:
    """Return the mean correlation between columns, by ranks; None where too few rows are common.

    `table` is of shape (sessions, series), NaN where a session has no run of a series. Ranks are
    held against their mean over blocks of some 30 sessions: a level shift that all series share is
    what the chart is to find, and no correlation. Pairs of series count as many times as they have
    sessions in common. All pairs at once are a few products of matrices, which is what makes
    hundreds of series cheap.
    """
    there = ~np.isnan(table)
    # NaN sorts last, so that the ranks of what is there come out right
    ranks = np.where(there, np.argsort(np.argsort(table, axis=0), axis=0), 0.0)
    centred = np.zeros_like(table)
    for rows in np.array_split(np.arange(len(table)), max(1, round(len(table) / _BLOCK))):
        middle = ranks[rows].sum(axis=0) / np.maximum(there[rows].sum(axis=0), 1)
        centred[rows] = np.where(there[rows], ranks[rows] - middle, 0.0)
    mask = there.astype(float)
    number = mask.T @ mask
    sums = centred.T @ mask  # of the first of a pair, over the sessions that both have
    squares = (centred**2).T @ mask
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = squares - sums**2 / number
        covariance = centred.T @ centred - sums * sums.T / number
        found = covariance / np.sqrt(spread * spread.T)
    pairs = np.triu(number >= _ENOUGH_SESSIONS, 1) & np.isfinite(found)
    if not pairs.any():
        return None
    return float(np.average(found[pairs], weights=number[pairs]))
