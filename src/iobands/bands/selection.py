"""The bands of a system: the epoch in force at a time, and the band of a sample (contract 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Generic, TypeVar

from iobands.bands.band import Band, Judgement, Limit
from iobands.bands.maintenance import Span, Window
from iobands.model.fields import VARIABLE_UNITS, canonical
from iobands.model.schema import FileError

_Values = tuple[float | str | None, ...]
_Of = TypeVar("_Of", bound=Judgement)


@dataclass(frozen=True)
class _Index(Generic[_Of]):
    """Bands by the names of what they match, and by that: a site has one a series."""

    found: Mapping[tuple[str, ...], Mapping[_Values, Sequence[_Of]]]

    @classmethod
    def of(cls, bands: Iterable[_Of]) -> _Index[_Of]:
        found: dict[tuple[str, ...], dict[_Values, list[_Of]]] = {}
        for band in bands:
            names = tuple(sorted(band.wanted))
            values = tuple(band.wanted[name] for name in names)
            found.setdefault(names, {}).setdefault(values, []).append(band)
        return cls(found)

    def best(self, fields: Mapping[str, object]) -> _Of | None:
        """Return the one that names the most fields of those that apply, or None.

        One applies where all that its `match` names is equal in `fields`. A sample of a case needs
        one that names the case: no other field may set it apart.
        """
        known = {name: canonical(value) for name, value in fields.items()}
        variable, is_of_case = known.get("variable"), known.get("case") is not None
        applying = [
            band
            for names, by_values in self.found.items()
            for band in by_values.get(tuple(known.get(name) for name in names), ())
            if variable is None or band.unit == VARIABLE_UNITS.get(str(variable))
            if "case" in band.match or not is_of_case
        ]
        return max(applying, key=lambda band: len(band.match), default=None)


@dataclass(frozen=True)
class Epoch:
    """A span of time, from `since` to the next epoch, in which samples compare.

    With `continues` only the bands are new: its samples compare with those before it too.
    `runs_since` is when the first of the runs was taken that its bands were learned from.
    `limits` are single figures; where a band applies too, it alone judges.
    """

    name: str
    since: datetime
    source: str
    bands: tuple[Band, ...]
    reason: str = ""
    continues: bool = False
    runs_since: datetime | None = None
    limits: tuple[Limit, ...] = ()

    def is_void(self, others: Iterable[Epoch]) -> bool:
        """Return whether one of `others` began amid the runs that its bands were learned from."""
        return self.runs_since is not None and any(
            not each.continues and self.runs_since < each.since < self.since for each in others
        )

    def band_for(self, fields: Mapping[str, object]) -> Band | None:
        """Return the band that names the most fields of those that apply, or None."""
        return self._bands.best(fields)

    def limit_for(self, fields: Mapping[str, object]) -> Limit | None:
        """Return the limit that names the most fields of those that apply, or None."""
        return self._limits.best(fields)

    @cached_property
    def _bands(self) -> _Index[Band]:
        return _Index.of(self.bands)

    @cached_property
    def _limits(self) -> _Index[Limit]:
        return _Index.of(self.limits)


@dataclass(frozen=True)
class Bands:
    """The bands of one system, its epochs in the order of time.

    Samples in one of the spans `left_out` are kept and not judged. `maintenance` are the windows
    that the file declares; `iobands.site` adds those of a series to its spans.
    `least_change` is the smallest change that raises an alert, as a share of the level before;
    None where the file does not set it. `warnings` say what of its files is hardly meant.
    """

    system: str
    epochs: tuple[Epoch, ...]
    left_out: tuple[Span, ...] = ()
    least_change: float | None = None
    maintenance: tuple[Window, ...] = ()
    warnings: tuple[str, ...] = ()

    def leaving_out(self, *spans: Span) -> Bands:
        """Return the bands with further spans that are not judged."""
        return replace(self, left_out=(*self.left_out, *spans))

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
        epoch = self._epoch_for(fields, when)
        return epoch.band_for(fields) if epoch else None

    def limit_for(self, fields: Mapping[str, object], when: datetime) -> Limit | None:
        """Return the limit for a sample as `band_for` does the band."""
        epoch = self._epoch_for(fields, when)
        return epoch.limit_for(fields) if epoch else None

    def _epoch_for(self, fields: Mapping[str, object], when: datetime) -> Epoch | None:
        epoch = self.epoch_at(when)
        is_of_system = canonical(fields.get("system", self.system)) == canonical(self.system)
        return epoch if is_of_system else None


@dataclass(frozen=True)
class Maintenance:
    """The maintenances of one system that began by now, each with its window."""

    spans: tuple[tuple[Span, Window], ...] = ()

    def of(self, file_system: object) -> tuple[Span, ...]:
        """Return the maintenances of a file system."""
        return tuple(span for span, window in self.spans if window.is_of(file_system))


def maintenance_of(bands: Bands, now: datetime) -> Maintenance:
    """Return the maintenances that a bands file declares and that began by `now`.

    Raises:
        FileError: a rule of repetition is none.
    """
    found = []
    for window in bands.maintenance:
        try:
            found += [(span, window) for span in window.spans(now)]
            window.following(now)  # which pages show
        except (ValueError, OverflowError) as error:
            raise FileError(
                f"maintenance of {bands.system}, {window.reason!r}: repeat is "
                f"{window.repeat!r}: {error}; write a rule such as FREQ=MONTHLY;BYDAY=1WE"
            ) from error
    return Maintenance(tuple(found))
