"""A quartile band and the verdict on a value (contract 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

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
_NO_VERDICT: Final = "NaN has no verdict: a run without a value is not a sample"


def log_fence(lower_quartile: float, upper_quartile: float) -> float:
    """Return the lower fence of a band on the logarithmic scale, at most 0.9 LQ, in its unit.

    The fence is exp(ln LQ - 1.5 (ln UQ - ln LQ)) = LQ (LQ / UQ)**1.5: Tukey's inner fence
    (Exploratory Data Analysis, 1977, chapter 2) of the logarithms, as contract 3 has it.
    """
    return lower_quartile * min((lower_quartile / upper_quartile) ** 1.5, _LEAST_FALL)


@dataclass(frozen=True)
class Judgement:
    """What judges the values of some series: those whose fields equal all that `match` names.

    All figures are in `unit`; `epoch` and `source` say where they come from. `runs` is how many
    runs they are of, None when that is not known.
    """

    match: Mapping[str, object]
    unit: str
    runs: int | None
    epoch: str
    source: str

    @cached_property
    def wanted(self) -> Mapping[str, float | str | None]:
        """The fields of `match` in the form in which they are compared."""
        return {name: canonical(value) for name, value in self.match.items()}


@dataclass(frozen=True)
class Limit(Judgement):
    """A single published figure: the most, the least or about what a healthy value is.

    It says nothing of how far healthy values differ, so that none of them collapses, and a series
    learns a band of its own beside it.
    """

    kind: Literal["at_most", "at_least", "about"]
    value: float

    def verdict(self, value: float) -> str:
        """Return `above`, `within` or `below` for `value`, which is in `unit`.

        The limit itself is `within`, as is all from half to double of what is only about a figure.

        Raises:
            ValueError: `value` is not a number.
        """
        if math.isnan(value):
            raise ValueError(_NO_VERDICT)
        if self.kind != "at_most" and value < self.value / (2 if self.kind == "about" else 1):
            return BELOW
        if self.kind != "at_least" and value > self.value * (2 if self.kind == "about" else 1):
            return ABOVE
        return WITHIN

    def reference(self) -> tuple[float, None, None, str]:
        """Return ReFrame's reference, under which no run fails."""
        return (self.value, None, None, self.unit)


@dataclass(frozen=True, kw_only=True)
class Band(Judgement):
    """The quartiles that healthy values of some series have; all figures are in `unit`.

    `floor` is always a number: the one that the file gives, else `log_fence`. `state` is
    `PROVISIONAL`, `ACTIVE` or `FROZEN` for a learned band, None for a published one; `intervals`
    has 95 % intervals (low, high) by the names of figures.
    """

    lower_quartile: float
    median: float
    upper_quartile: float
    maximum: float | None
    floor: float
    state: str | None = None
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def verdict(self, value: float) -> str:
        """Return `above`, `within`, `below` or `collapsed` for `value`, which is in `unit`.

        The quartiles themselves are `within`, and the floor itself is `below`.

        Raises:
            ValueError: `value` is not a number.
        """
        if math.isnan(value):
            raise ValueError(_NO_VERDICT)
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
