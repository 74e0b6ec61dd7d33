"""The quartile bands of a system: which one applies to a sample, and the verdict (contract 3).

Both ReFrame checks and iobands' analysis judge by them; `iobands.bands_file` reads them. May
know: the standard library and the contracts' vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Final

from iobands.vocabulary import VARIABLE_UNITS, canonical

ABOVE: Final = "above"
WITHIN: Final = "within"
BELOW: Final = "below"
COLLAPSED: Final = "collapsed"
NO_BAND: Final = "no band"

#: How far a band has been learnt: it may still move, it holds, or no further run changes it.
PROVISIONAL: Final = "provisional"
ACTIVE: Final = "active"
FROZEN: Final = "frozen"

_Values = tuple[float | str | None, ...]

#: The floor is a tenth under the lower quartile at the least. Where values hardly differ, the fence
#: would lie at the quartile, and the steadiest file systems would "collapse" by a percent.
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
    the figures come from. `state` is `PROVISIONAL`, `ACTIVE` or `FROZEN` for a learnt band, None
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

    def applies_to(self, fields: Mapping[str, object]) -> bool:
        """Tell whether every field that `match` names is equal in `fields`.

        A band of a case names it: a case may differ from all else in no other field.
        """
        if "case" not in self.match and canonical(fields.get("case")) is not None:
            return False
        variable = fields.get("variable")
        if variable is not None and VARIABLE_UNITS.get(str(variable)) != self.unit:
            return False
        return all(canonical(fields.get(k)) == value for k, value in self.wanted.items())


@dataclass(frozen=True)
class Epoch:
    """A span of time, from `since` to the next epoch, in which samples compare.

    With `continues` only the bands are new: its samples compare with those before it too.
    """

    name: str
    since: datetime
    source: str
    bands: tuple[Band, ...]
    reason: str = ""
    continues: bool = False

    def band_for(self, fields: Mapping[str, object]) -> Band | None:
        """Return the band that names the most fields of those that apply, or None."""
        told = {name: canonical(value) for name, value in fields.items()}
        applying = [
            band
            for names, by_values in self._by_fields
            for band in by_values.get(tuple(told.get(name) for name in names), ())
            if band.applies_to(fields)
        ]
        return max(applying, key=lambda band: len(band.match), default=None)

    @cached_property
    def _by_fields(self) -> Sequence[tuple[tuple[str, ...], Mapping[_Values, Sequence[Band]]]]:
        """The bands by the names of what they match, and by that: a site has one a series."""
        found: dict[tuple[str, ...], dict[_Values, list[Band]]] = {}
        for band in self.bands:
            names = tuple(sorted(band.wanted))
            values = tuple(band.wanted[name] for name in names)
            found.setdefault(names, {}).setdefault(values, []).append(band)
        return list(found.items())


@dataclass(frozen=True)
class Span:
    """The runs from `begin` to `end`, of any nodes if there are no `nodes`."""

    begin: datetime
    end: datetime
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bands:
    """The bands of one system, its epochs in the order of time.

    What was measured in one of the spans `left_out` compares with nothing: a person found its
    cause. `least_change` is by which share of the level before it a change must differ to be told
    as an alarm, None where the file does not say.
    """

    system: str
    epochs: tuple[Epoch, ...]
    left_out: tuple[Span, ...] = ()
    least_change: float | None = None

    def epoch_at(self, when: datetime) -> Epoch | None:
        """Return the epoch in force at `when`: the last that began by then, or None.

        Raises:
            ValueError: `when` has no UTC offset.
        """
        if when.utcoffset() is None:
            raise ValueError(f"the time {when.isoformat()} has no UTC offset")
        return next((epoch for epoch in reversed(self.epochs) if epoch.since <= when), None)

    def compares_since(self, when: datetime) -> datetime | None:
        """Return from when on samples compare with one taken at `when`, None for any time.

        That is the beginning of the last epoch by then which does not continue the one before.

        Raises:
            ValueError: `when` has no UTC offset.
        """
        if when.utcoffset() is None:
            raise ValueError(f"the time {when.isoformat()} has no UTC offset")
        breaks = [e.since for e in self.epochs if e.since <= when and not e.continues]
        return max(breaks, default=None)

    def band_for(self, fields: Mapping[str, object], when: datetime) -> Band | None:
        """Return the band for a sample taken at `when`, or None where there is no band.

        `fields` holds series fields, `variable`, `medium` and `file_system_type`. Their types do
        not matter: the text "64" of a perflog equals the number 64 of a bands file.

        Raises:
            ValueError: `when` has no UTC offset.
        """
        epoch = self.epoch_at(when)
        if epoch is None or canonical(fields.get("system", self.system)) != canonical(self.system):
            return None
        return epoch.band_for(fields)
