"""What people did about alarms: acknowledged, closed, told a new normal, or took one back.

Pure functions; may know series, bands and the contracts' vocabulary, nothing of files or of how
it is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from typing import Final

from iobands.bands import Band, Bands, Epoch, Span
from iobands.series import SeriesKey
from iobands.vocabulary import canonical

ACKNOWLEDGE: Final = "acknowledge"
#: Of the collapses of a file system, which have become more frequent.
ACKNOWLEDGE_COLLAPSES: Final = "acknowledge-collapses"
CLOSE: Final = "close"
NEW_NORMAL: Final = "new-normal"
REOPEN: Final = "reopen"
KINDS: Final = (ACKNOWLEDGE, ACKNOWLEDGE_COLLAPSES, CLOSE, NEW_NORMAL, REOPEN)

#: What is ahead of our clock by no more than this was done by a machine with another clock.
CLOCKS: Final = timedelta(hours=1)


@dataclass(frozen=True)
class Act:
    """What `who` did at `when`, and why, about an alarm of all series that agree with `series`.

    The alarm's change began at `since` at the earliest, and its samples were known up to `until`;
    of a new normal `since` is its beginning. `direction` and `ratio` are of the change. With
    `on_nodes` it is about the runs alone that touched one of these nodes. A `REOPEN` takes the act
    back that was done at `of`, for the series that it names itself.
    """

    kind: str
    when: datetime
    who: str
    reason: str
    series: tuple[Mapping[str, object], ...]
    since: datetime | None = None
    until: datetime | None = None
    direction: str | None = None
    ratio: float | None = None
    of: datetime | None = None
    on_nodes: tuple[str, ...] = ()

    def names(self, key: SeriesKey) -> bool:
        """Tell whether the act is about the series `key`."""
        fields = _fields(key)
        return any(
            tuple(fields[name] for name in names) in values for names, values in self._wanted
        )

    @cached_property
    def _wanted(self) -> list[tuple[tuple[str, ...], set[tuple[object, ...]]]]:
        """The entries by the names of what they name: of many series these are mostly the same."""
        found: dict[tuple[str, ...], set[tuple[object, ...]]] = {}
        for wanted in self.series:
            names = tuple(sorted(wanted))
            found.setdefault(names, set()).add(tuple(canonical(wanted[name]) for name in names))
        return list(found.items())


@dataclass(frozen=True)
class Acts:
    """All acts of one system, in the order of time."""

    system: str
    every: tuple[Act, ...] = ()

    def of(self, key: SeriesKey) -> tuple[Act, ...]:
        """Return the acts about the series `key`, those that were taken back among them."""
        return tuple(act for act in self.every if act.names(key))

    def future(self, now: datetime) -> tuple[Act, ...]:
        """Return the acts that do not hold yet, as they are of the future."""
        return tuple(act for act in self.every if is_future(act, now))


@lru_cache(maxsize=10_000)
def _fields(key: SeriesKey) -> dict[str, object]:
    return {name: canonical(value) for name, value in key.fields().items()}


def standing(acts: Iterable[Act], now: datetime) -> tuple[Act, ...]:
    """Return which of `acts`, all about one series, nobody took back; none of the future."""
    done = [act for act in acts if not is_future(act, now)]
    taken_back = {act.of for act in done if act.kind == REOPEN}
    return tuple(act for act in done if act.kind != REOPEN and act.when not in taken_back)


def is_future(act: Act, now: datetime) -> bool:
    """Tell whether `act` is further ahead of `now` than clocks differ."""
    return act.when > now + CLOCKS


def bands_for(bands: Bands | None, acts: Sequence[Act], system: str) -> Bands | None:
    """Return `bands` as one series has them after `acts`, all of which are about it.

    A new normal is an epoch of this series alone, in which no band holds that was there before.
    What was taken under an alarm that was closed compares with nothing.
    """
    found = bands
    for act in acts:
        if act.kind == NEW_NORMAL and act.since is not None:
            found = _begun_anew(found or Bands(system, ()), act, act.since)
        if act.kind == CLOSE and act.since is not None and act.until is not None:
            found = found or Bands(system, ())
            span = Span(act.since, act.until, act.on_nodes)
            found = replace(found, left_out=(*found.left_out, span))
    return found


def _begun_anew(bands: Bands, act: Act, since: datetime) -> Bands:
    before = [epoch for epoch in bands.epochs if epoch.since <= since]
    old = [_identity(band) for epoch in before for band in epoch.bands]
    after = [
        replace(epoch, bands=tuple(one for one in epoch.bands if _identity(one) not in old))
        for epoch in bands.epochs
        if epoch.since > since
    ]
    anew = Epoch(f"{NEW_NORMAL} {since:%Y-%m-%d}", since, act.who, (), act.reason)
    return replace(bands, epochs=(*before, anew, *after))


def _identity(band: Band) -> tuple[object, ...]:
    match = frozenset((name, canonical(value)) for name, value in band.match.items())
    return (match, band.lower_quartile, band.median, band.upper_quartile, band.maximum, band.floor)
