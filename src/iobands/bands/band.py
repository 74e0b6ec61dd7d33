"""A quartile band and the verdict on a value (contract 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from iobands.model.fields import canonical

ABOVE: Final = "above"
WITHIN: Final = "within"
BELOW: Final = "below"
COLLAPSED: Final = "collapsed"
NO_BAND: Final = "no band"

#: The states of a learned band: it may still move, it holds, or no further run changes it.
PROVISIONAL: Final = "provisional"
ACTIVE: Final = "active"
FROZEN: Final = "frozen"

#: The floor is at least a tenth below the lower quartile. Where values hardly differ, the fence
#: is at the quartile, and the steadiest file systems would "collapse" by a percent.
_LEAST_FALL: Final = 0.9


def log_fence(lower_quartile: float, upper_quartile: float) -> float:
    """Return the lower fence of a band on the logarithmic scale, at most 0.9 LQ, in its unit.

    The fence is exp(ln LQ - 1.5 (ln UQ - ln LQ)) = LQ (LQ / UQ)**1.5: Tukey's inner fence
    (Exploratory Data Analysis, 1977, chapter 2) of the logarithms, as contract 3 has it.
    """
    return lower_quartile * min((lower_quartile / upper_quartile) ** 1.5, _LEAST_FALL)


@dataclass(frozen=True)
class Band:
    """The quartiles that healthy values of some series have; all figures are in `unit`.

    `floor` is always a number: the one that the file gives, else `log_fence`. `runs` is how many
    runs the band was computed from, None when that is not known. `epoch` and `source` say where
    the figures come from. `state` is `PROVISIONAL`, `ACTIVE` or `FROZEN` for a learned band, None
    for a published one; `intervals` has 95 % intervals (low, high) by the names of figures.
    """

    match: Mapping[str, object]
    unit: str
    lower_quartile: float
    median: float
    upper_quartile: float
    maximum: float | None
    floor: float
    runs: int | None
    epoch: str
    source: str
    state: str | None = None
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @cached_property
    def wanted(self) -> Mapping[str, float | str | None]:
        """The fields of `match` in the form in which they are compared."""
        return {name: canonical(value) for name, value in self.match.items()}

    def verdict(self, value: float) -> str:
        """Return `above`, `within`, `below` or `collapsed` for `value`, which is in `unit`.

        The quartiles themselves are `within`, and the floor itself is `below`.

        Raises:
            ValueError: `value` is not a number.
        """
        if math.isnan(value):
            raise ValueError("NaN has no verdict: a run without a value is not a sample")
        if value < self.floor:
            return COLLAPSED
        if value < self.lower_quartile:
            return BELOW
        return WITHIN if value <= self.upper_quartile else ABOVE

    def reference(self) -> tuple[float, float, None, str]:
        """Return ReFrame's reference, under which only a collapsed run fails.

        It is (median, floor / median - 1, None, unit), so that median * (1 + lower) is the floor
        to within rounding.
        """
        return (self.median, self.floor / self.median - 1, None, self.unit)
