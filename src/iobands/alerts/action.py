"""What people did about alerts, series and samples, and how each of it counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from typing import Final

from iobands.bands import Band, Bands, Epoch, Span
from iobands.model.fields import canonical
from iobands.model.series import SeriesKey
from iobands.status.peers import FIELD_OF, PeerName

ACKNOWLEDGE: Final = "acknowledge"
RESOLVE: Final = "resolve"
REBASELINE: Final = "rebaseline"
UNDO: Final = "undo"
RETIRE: Final = "retire"
DISCARD: Final = "discard"
KINDS: Final = (ACKNOWLEDGE, RESOLVE, REBASELINE, UNDO, RETIRE, DISCARD)
#: What a person says of an alert that was resolved.
REAL: Final = "real"
FALSE: Final = "false"
VERDICTS: Final = (REAL, FALSE)

#: Clocks of different machines differ by no more than this.
CLOCKS: Final = timedelta(hours=1)

# Why the samples of an action are not judged.
_LEFT_OUT: Final = {RESOLVE: "resolved: {}", DISCARD: "discarded: {}"}


@dataclass(frozen=True)
class Action:
    """What `who` did at `when`, and why; contract 5 defines the fields."""

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
    verdict: str | None = None
    subject: str | None = None
    target: str | None = None
    node: str | None = None

    def names(self, key: SeriesKey | PeerName) -> bool:
        """Return whether the action is about the series `key`, or the target or node."""
        if isinstance(key, PeerName):
            own = getattr(self, key.kind) == key.name
            return own and any(each.get(FIELD_OF[key.kind]) == key.where for each in self.series)
        if self.target or self.node:
            return False
        fields = _fields(key)
        return any(
            tuple(fields.get(name) for name in names) in values for names, values in self._wanted
        )

    @cached_property
    def _wanted(self) -> list[tuple[tuple[str, ...], set[tuple[object, ...]]]]:
        """The matches by the fields that they name: of many series these are mostly the same."""
        found: dict[tuple[str, ...], set[tuple[object, ...]]] = {}
        for match in self.series:
            names = tuple(sorted(match))
            found.setdefault(names, set()).add(tuple(canonical(match[name]) for name in names))
        return list(found.items())


@lru_cache(maxsize=10_000)
def _fields(key: SeriesKey) -> dict[str, object]:
    return {name: canonical(value) for name, value in key.fields().items()}


def is_future(action: Action, now: datetime) -> bool:
    """Return whether `action` is further ahead of `now` than clocks differ."""
    return action.when > now + CLOCKS


def in_force(actions: Iterable[Action], now: datetime) -> tuple[Action, ...]:
    """Return the actions, in the order of the log, that were neither undone nor are in the future.

    An undo takes back what stands before it: what is done again in the same second holds.
    """
    found: list[Action] = []
    for action in actions:
        if is_future(action, now):
            continue
        if action.kind == UNDO:
            found = [each for each in found if each.when != action.of]
        else:
            found.append(action)
    return tuple(found)


def bands_after(bands: Bands, actions: Iterable[Action]) -> Bands:
    """Return `bands` for one series after `actions`, all in force and about it.

    A rebaseline begins an epoch of this series in which no earlier band holds. Samples of an
    alert that was resolved, and those that were discarded, are left out.
    """
    for action in actions:
        if action.kind == REBASELINE and action.since is not None:
            bands = _rebaselined(bands, action, action.since)
        if action.kind in _LEFT_OUT and action.since is not None and action.until is not None:
            why = _LEFT_OUT[action.kind].format(action.reason)
            bands = bands.leaving_out(Span(action.since, action.until, why))
    return bands


def _rebaselined(bands: Bands, action: Action, since: datetime) -> Bands:
    before = [epoch for epoch in bands.epochs if epoch.since <= since]
    old = [_identity(band) for epoch in before for band in epoch.bands]
    after = [
        replace(epoch, bands=tuple(one for one in epoch.bands if _identity(one) not in old))
        for epoch in bands.epochs
        if epoch.since > since
    ]
    anew = Epoch(f"{REBASELINE} {since:%Y-%m-%d}", since, action.who, (), action.reason)
    return replace(bands, epochs=(*before, anew, *after))


def _identity(band: Band) -> tuple[object, ...]:
    match = frozenset(band.wanted.items())
    return (match, band.lower_quartile, band.median, band.upper_quartile, band.maximum, band.floor)
