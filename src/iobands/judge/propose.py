"""A band from healthy runs of a series: its figures and their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.bands import ACTIVE, FROZEN, PROVISIONAL, log_fence
from iobands.judge.baseline import (
    FIRST_BASELINE,
    FULL_BASELINE,
    LARGEST_BASELINE,
    MOST_CORRELATION,
    inflation,
    serial_correlation,
)
from iobands.snapshot import CONFIDENCE, Interval

_Array = NDArray[np.float64]

#: Runs below the fence are outliers up to this share; more of them are normal for the series.
MOST_OUTLIERS: Final = 0.15

_DIGITS: Final = 4
_UPPER_OUTER_FENCE: Final = 3.0

Ranks = tuple[int, int] | None


class NoProposal(ValueError):
    """No band can be proposed; the message says why."""


@dataclass(frozen=True)
class Proposal:
    """A band learned from the runs of a series, in the unit of the values.

    `intervals` has 95 % intervals by the names of figures, without those that need more runs.
    `runs` is how many runs count. `notes` say which runs were left out.
    """

    lower_quartile: float
    median: float
    upper_quartile: float
    maximum: float
    floor: float
    intervals: dict[str, tuple[float, float]]
    state: str
    runs: int
    correlation: float
    notes: tuple[str, ...]


def ranks(runs: int, share: float, *, confidence: float = 0.95, widened: float = 1.0) -> Ranks:
    """Return the ranks, from 1, between which the quantile lies; None if there are too few runs.

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


def interval(values: _Array, share: float, *, confidence: float, correlation: float) -> Interval:
    """Return the interval of a quantile of `values`, None if there are too few.

    It is widened for their serial `correlation`, as `correlation_of` gives it.
    """
    found = ranks(len(values), share, confidence=confidence, widened=inflation(correlation))
    order = np.sort(values)
    return (float(order[found[0] - 1]), float(order[found[1] - 1])) if found else None


def correlation_of(values: _Array) -> float:
    """Return the serial correlation of the logarithms of `values`, from 0 to `MOST_CORRELATION`."""
    return float(np.clip(serial_correlation(np.log(values)), 0.0, MOST_CORRELATION))


def propose(values: _Array) -> Proposal:
    """Return the band of `values`, of shape (n,): healthy runs of one level in the order of time.

    The first 200 runs count, so that later ones change nothing.

    Raises:
        NoProposal: there are too few runs, or half of them are equal.
        ValueError: a value is not a positive finite number.
    """
    if not (np.isfinite(values) & (values > 0)).all():
        raise ValueError("a value is not a positive finite number")
    if len(values) < FIRST_BASELINE:
        raise NoProposal(f"{len(values)} healthy runs; a band needs {FIRST_BASELINE}")
    window = values[:LARGEST_BASELINE]
    state = ACTIVE if len(window) >= FULL_BASELINE else PROVISIONAL
    if len(window) >= LARGEST_BASELINE:
        state = FROZEN
    notes = []
    lower, _, upper = _quartiles(window)
    kept = window[window >= log_fence(lower, upper, len(window))]
    outliers = len(window) - len(kept)
    if outliers > MOST_OUTLIERS * len(window):
        notes.append(f"included: {outliers} runs below the fence, too many to be outliers")
        kept = window
    elif outliers:
        notes.append(f"left out: {outliers} outliers")
    lower, median, upper = _quartiles(kept)
    if lower == upper:
        raise NoProposal(
            f"half of {len(kept)} values are equal, {median:g}, so the band would have no width; "
            "check that the values are measured"
        )
    top = upper * (upper / lower) ** _UPPER_OUTER_FENCE
    beyond = int(np.count_nonzero(kept > top))
    if beyond:
        notes.append(f"left out of the maximum: {beyond} runs far above the others")
    figures = {
        "floor": log_fence(lower, upper, len(kept)),
        "lower_quartile": lower,
        "median": median,
        "upper_quartile": upper,
        "maximum": float(kept[kept <= top].max()),
    }
    correlation = correlation_of(window)
    return Proposal(
        **{name: _rounded(figure) for name, figure in figures.items()},
        intervals=_intervals(kept, correlation),
        state=state,
        runs=len(kept),
        correlation=correlation,
        notes=tuple(notes),
    )


def _quartiles(values: _Array) -> tuple[float, float, float]:
    lower, median, upper = (float(q) for q in np.quantile(values, (0.25, 0.5, 0.75)))
    return lower, median, upper


def _intervals(values: _Array, correlation: float) -> dict[str, tuple[float, float]]:
    """Return the 95 % intervals of the quartiles and of the floor.

    The floor rises with the lower and falls with the upper quartile. Intervals of 97.5 % of both
    hold them together in at least 95 % (Bonferroni), and so does what follows for the floor.
    """
    shares = {"lower_quartile": 0.25, "median": 0.5, "upper_quartile": 0.75}
    intervals = {
        name: interval(values, share, confidence=CONFIDENCE, correlation=correlation)
        for name, share in shares.items()
    }
    both = 1 - (1 - CONFIDENCE) / 2
    low, high = (
        interval(values, share, confidence=both, correlation=correlation) for share in (0.25, 0.75)
    )
    if low and high:
        # if the two overlap, the fence would be above the lower quartile
        highest = log_fence(low[1], max(low[1], high[0]), len(values))
        intervals = {"floor": (log_fence(low[0], high[1], len(values)), highest), **intervals}
    return {
        name: (_rounded(pair[0]), _rounded(pair[1])) for name, pair in intervals.items() if pair
    }


def _rounded(figure: float) -> float:
    # the significant digits of a band; rounding keeps figures in order
    return float(f"{figure:.{_DIGITS}g}")
