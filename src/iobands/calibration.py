"""Learning a band from a series' own history: which runs count, and how far they can be trusted.

Pure functions over numbers; may know bands, charts, numpy, and scipy and ruptures where they are
used. Knows nothing of files, tables or how a proposal is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.bands import ACTIVE, FROZEN, PROVISIONAL, log_fence
from iobands.detection import (
    FIRST_REFERENCE,
    FULL_REFERENCE,
    LARGEST_REFERENCE,
    LEAST,
    Chart,
    Quartiles,
    follow,
)
from iobands.detection.correlation import inflation, serial_correlation
from iobands.levels import NoProposal, level, quartiles, segments

Array = NDArray[np.float64]

#: What is below the fence is left out as contamination up to this share; more is how the series is.
MOST_CONTAMINATION: Final = 0.15

_CONFIDENCE: Final = 0.95
_DIGITS: Final = 4
_UPPER_OUTER_FENCE: Final = 3.0


Ranks = tuple[int, int] | None


@dataclass(frozen=True)
class Proposal:
    """A band as a history gives it; figures are in the unit of the values.

    `intervals` has 95 % intervals by the names of figures; one that so few runs cannot give is
    left out. `used` are the runs that were looked at, by index, and `runs` is how many of them
    count: the others are contamination. `below_maximum` is the share of runs that, with 95 %
    confidence, stay below the maximum. `why` tells which level was used.
    """

    lower_quartile: float
    median: float
    upper_quartile: float
    maximum: float
    floor: float
    intervals: dict[str, tuple[float, float]]
    state: str
    runs: int
    used: NDArray[np.int_]
    below_maximum: float
    correlation: float
    why: str


def ranks(runs: int, share: float, *, confidence: float = 0.95, widened: float = 1.0) -> Ranks:
    """Return the ranks, from 1, between which the quantile lies; None where there are too few runs.

    The number of `runs` independent runs under the quantile `share` is binomial (David and
    Nagaraja, Order Statistics, 3rd edition, 2003, section 7.1). Each tail has at most
    (1 - confidence) / 2; then the ranks come as close together as `confidence` in all allows. They
    lie `widened` times as far from `runs` x `share` where runs depend on each other.

    Raises:
        ValueError: `runs` is less than 1, or `share` or `confidence` is not between 0 and 1.
    """
    from scipy.stats import binom  # noqa: PLC0415 (slow to load, and only calibration needs it)

    if runs < 1 or not (0 < share < 1 and 0 < confidence < 1):
        raise ValueError(f"no ranks of {runs} runs, share {share}, confidence {confidence}")
    tail = (1 - confidence) / 2
    low, high = int(binom.ppf(tail, runs, share)), int(binom.ppf(1 - tail, runs, share)) + 1
    if low < 1 or high > runs:
        return None
    covered = float(binom.cdf(high - 1, runs, share) - binom.cdf(low - 1, runs, share))
    while True:
        at_low, at_high = (float(binom.pmf(k, runs, share)) for k in (low, high - 1))
        covered -= min(at_low, at_high)
        if covered < confidence:
            break
        low, high = (low + 1, high) if at_low <= at_high else (low, high - 1)
    centre = runs * share
    low = min(low, int(np.floor(centre - (centre - low) * widened)))
    high = max(high, int(np.ceil(centre + (high - centre) * widened)))
    return (low, high) if low >= 1 and high <= runs else None


def healthy(
    values: Array, band: Quartiles | None = None, least: float | None = None
) -> tuple[NDArray[np.int_], Chart]:
    """Return the indices of the runs that are under no alarm, and the chart that says so.

    `least` is by which share the level must be off for an alarm, `LEAST` unless told otherwise.

    Raises:
        ValueError: a value is not a positive finite number, or the quartiles are out of order.
    """
    chart = follow(values, band, least=LEAST if least is None else least)
    free = np.ones(len(values), dtype=bool)
    for alarm in chart.alarms:
        free[alarm.onset : alarm.ended] = False
    return np.flatnonzero(free), chart


def propose(values: Sequence[float] | Array, times: Sequence[datetime] | None = None) -> Proposal:
    """Return the band of `values`, of shape (n,), which are healthy and in the order of time.

    Of several levels the newest with at least 20 runs is used, together with earlier ones that are
    the same but for chance: the median of one lies between the quartiles of the other. Its first
    200 runs count, so that later ones change nothing. `times` are used in what is said alone.

    Raises:
        NoProposal: there are too few runs of one level, or all are equal.
        ValueError: a value is not a positive finite number.
    """
    numbers = np.asarray(values, dtype=float)
    if not (np.isfinite(numbers) & (numbers > 0)).all():
        raise ValueError("a value is not a positive finite number")
    if len(numbers) < FIRST_REFERENCE:
        raise NoProposal(f"{len(numbers)} healthy runs of {FIRST_REFERENCE} that a band needs")
    found = segments(numbers)
    used, why = level(numbers, found, times)
    used = used[:LARGEST_REFERENCE]
    window = numbers[used]
    if len(used) >= LARGEST_REFERENCE:
        state = FROZEN
    else:
        state = ACTIVE if len(used) >= FULL_REFERENCE else PROVISIONAL
    lower, _, upper = quartiles(window)
    kept = window[window >= log_fence(lower, upper)]
    collapsed = len(window) - len(kept)
    if collapsed > MOST_CONTAMINATION * len(window):
        why += f"; {collapsed} runs are below the fence, too many to be exceptions, and count"
        kept = window
    elif collapsed:
        why += f"; {collapsed} collapsed runs left out"
    lower, median, upper = quartiles(kept)
    if lower == upper:
        raise NoProposal(
            f"half of {len(kept)} values are the same, {median:g}: a band needs a width; look "
            "whether the check measures what it should"
        )
    top = upper * (upper / lower) ** _UPPER_OUTER_FENCE
    beyond = int(np.count_nonzero(kept > top))
    if beyond:
        why += f"; the maximum passes over {beyond} runs far above the others"
    figures = {
        "floor": log_fence(lower, upper),
        "lower_quartile": lower,
        "median": median,
        "upper_quartile": upper,
        "maximum": float(kept[kept <= top].max()),
    }
    correlation = serial_correlation(np.log(window))
    rounded = {name: _rounded(figure) for name, figure in figures.items()}
    return Proposal(
        **rounded,
        intervals=_intervals(kept, correlation),
        state=state,
        runs=len(kept),
        used=used,
        below_maximum=(1 - _CONFIDENCE) ** (1 / len(kept)),
        correlation=correlation,
        why=why,
    )


def _intervals(values: Array, correlation: float) -> dict[str, tuple[float, float]]:
    """Return the 95 % intervals of the quartiles and of the floor.

    The floor rises with the lower and falls with the upper quartile. Intervals of 97.5 % of both
    hold them together in at least 95 % (Bonferroni), and so does what follows for the floor.
    """
    order = np.sort(values)
    widened = inflation(correlation)

    def interval(share: float, confidence: float) -> tuple[float, float] | None:
        found = ranks(len(order), share, confidence=confidence, widened=widened)
        return (float(order[found[0] - 1]), float(order[found[1] - 1])) if found else None

    intervals = {
        "lower_quartile": interval(0.25, _CONFIDENCE),
        "median": interval(0.5, _CONFIDENCE),
        "upper_quartile": interval(0.75, _CONFIDENCE),
    }
    both = 1 - (1 - _CONFIDENCE) / 2
    low, high = interval(0.25, both), interval(0.75, both)
    if low and high:
        # where the two overlap, a fence above the lower quartile would be none
        highest = log_fence(low[1], max(low[1], high[0]))
        intervals = {"floor": (log_fence(low[0], high[1]), highest), **intervals}
    return {
        name: (_rounded(pair[0]), _rounded(pair[1])) for name, pair in intervals.items() if pair
    }


def _rounded(figure: float) -> float:
    # the digits that a band can bear; rounding keeps figures in order
    return float(f"{figure:.{_DIGITS}g}")
