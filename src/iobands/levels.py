"""The levels of a history: where it changed for good, and which of its runs are of one level.

Pure functions over numbers; may know numpy, and ruptures where it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.detection import FIRST_REFERENCE
from iobands.detection.correlation import MOST, inflation

Array = NDArray[np.float64]

#: A level that lasts for fewer runs is an excursion, and no segment of its own.
SHORTEST_SEGMENT: Final = 10
# A change of level must explain so many variances, times log n: at 3, about one series of a
# hundred that has no change is cut.
_PENALTY: Final = 3.0


class NoProposal(ValueError):
    """There can be no band, and the message says why and what to do."""


@dataclass(frozen=True)
class Segment:
    """Runs of one level: those from `begin` to before `end`, with their median."""

    begin: int
    end: int
    median: float


def segments(values: Array) -> tuple[Segment, ...]:
    """Return the levels of `values`, of shape (n,) and in the order of time.

    The means of the ranks are cut by PELT (Killick, Fearnhead and Eckley, Journal of the American
    Statistical Association 107, 2012); ranks, so that no collapse weighs more than its place. Runs
    that depend on each other look like changes too: what was cut is cut again, with a penalty
    that grows with the serial correlation inside the levels.
    """
    size = len(values)
    placed = _placed(values)
    spread = float(np.std(placed))
    if size < 2 * SHORTEST_SEGMENT or spread == 0:
        ends = [size] if size else []
    else:
        from ruptures import KernelCPD  # noqa: PLC0415 (slow to load)

        penalty = _PENALTY * np.log(size)
        search = KernelCPD(kernel="linear", min_size=SHORTEST_SEGMENT)
        search.fit(((placed - placed.mean()) / spread)[:, None])
        ends = search.predict(pen=penalty)
        if len(ends) > 1:
            penalty *= inflation(_correlation_inside(np.log(values), ends)) ** 2
            ends = search.predict(pen=penalty)
    ends = [int(end) for end in ends]
    begins = [0, *ends[:-1]]
    return tuple(
        Segment(begin, end, float(np.median(values[begin:end])))
        for begin, end in zip(begins, ends, strict=True)
    )


def _placed(values: Array) -> Array:
    """Return twice the ranks of `values`, ties sharing theirs."""
    order = np.sort(values)
    both = np.searchsorted(order, values, "left") + np.searchsorted(order, values, "right")
    return both.astype(float)


def _correlation_inside(logarithms: Array, ends: Sequence[int]) -> float:
    """Return the lag-1 rank correlation, from 0 to `MOST`, of what the levels leave over.

    It is put right for what the levels take away, as in `serial_correlation`.
    """
    parts = np.split(logarithms, ends[:-1])
    ranked = _placed(np.concatenate([part - np.median(part) for part in parts]))
    centred = ranked - ranked.mean()
    square = float(centred @ centred)
    if square == 0:
        return 0.0
    length = len(logarithms) / len(parts)
    found = float(centred[1:] @ centred[:-1]) / square
    return float(np.clip((found * length + 1) / (length - 3), 0.0, MOST))


def level(
    values: Array, found: Sequence[Segment], times: Sequence[datetime] | None
) -> tuple[NDArray[np.int_], str]:
    """Return the runs of the level to use, and why it is that one."""
    if len(found) == 1:
        return np.arange(len(values)), f"all {len(values)} runs, of one level"
    long_enough = [one for one in found if one.end - one.begin >= FIRST_REFERENCE]
    if not long_enough:
        raise NoProposal(
            f"{len(found)} levels in {len(values)} runs, none of them with {FIRST_REFERENCE}: "
            "wait until the level has settled"
        )
    chosen = long_enough[-1]
    joined = [
        one
        for one in found
        if one is chosen or (one.begin < chosen.begin and _is_one_level(values, one, chosen))
    ]
    used = np.concatenate([np.arange(one.begin, one.end) for one in joined])
    since = f" since {times[chosen.begin]:%Y-%m-%d}" if times is not None else ""
    others = [f"{one.median:.3g}" for one in found if one not in joined]
    why = f"{len(used)} of {len(values)} runs: the level around {chosen.median:.3g}{since}"
    if chosen is not found[-1]:
        late = found[-1].end - chosen.end
        why += f", since the newest {late} runs are too few for a level of their own"
    else:
        why += ", the newest"
    if len(joined) > 1:
        why += f", and {len(joined) - 1} earlier stretches of the same level"
    return used, why + (f"; not the runs around {', '.join(others)}" if others else "")


def _is_one_level(values: Array, one: Segment, other: Segment) -> bool:
    """Tell whether the median of one of the two lies between the quartiles of the other."""
    for inner, outer in ((one, other), (other, one)):
        lower, _, upper = quartiles(values[outer.begin : outer.end])
        if lower <= inner.median <= upper:
            return True
    return False


def quartiles(values: Array) -> tuple[float, float, float]:
    """Return the quartiles of type 7 (Hyndman and Fan), as learnt bands have them."""
    lower, median, upper = (float(q) for q in np.quantile(values, (0.25, 0.5, 0.75)))
    return lower, median, upper
