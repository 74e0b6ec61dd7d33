"""People's actions on alerts, series and samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from typing import Final

from iobands.bands.band import Window
from iobands.model.fields import canonical
from iobands.model.series import FIELD_OF, PeerName, SeriesKey

ACKNOWLEDGE: Final = "acknowledge"

RESOLVE: Final = "resolve"

REBASELINE: Final = "rebaseline"

UNDO: Final = "undo"

RETIRE: Final = "retire"

DISCARD: Final = "discard"

BEGIN: Final = "begin maintenance"

END: Final = "end maintenance"

ACTIONS: Final = (ACKNOWLEDGE, RESOLVE, REBASELINE, UNDO, RETIRE, DISCARD, BEGIN, END)

#: A person's verdict on a resolved alert.
REAL: Final = "real"

FALSE: Final = "false"

ANSWERS: Final = (REAL, FALSE)

#: The largest accepted difference between the clocks of machines.
CLOCKS: Final = timedelta(hours=1)

#: After this time a maintenance ends by itself, unless it was begun with an end.
LONGEST_MAINTENANCE: Final = timedelta(hours=12)


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
    alert: int | None = None
    ticket: str | None = None
    owner: str | None = None

    def names(self, key: SeriesKey | PeerName) -> bool:
        """Return whether the action is about the series `key`, or the target or node."""
        if isinstance(key, PeerName):
            own = getattr(self, key.kind) == key.name
            return own and any(each.get(FIELD_OF[key.kind]) == key.where for each in self.series)
        if self.target or self.node or self.kind in {BEGIN, END}:
            return False
        fields = _fields(key)
        return any(
            tuple(fields.get(name) for name in names) in values for names, values in self._wanted
        )

    @cached_property
    def _wanted(self) -> list[tuple[tuple[str, ...], set[tuple[object, ...]]]]:
        """The matches by the fields that they name, which are mostly the same for many series."""
        found: dict[tuple[str, ...], set[tuple[object, ...]]] = {}
        for match in self.series:
            names = tuple(sorted(match))
            found.setdefault(names, set()).add(tuple(canonical(match[name]) for name in names))
        return list(found.items())


@lru_cache(maxsize=10_000)
def _fields(key: SeriesKey) -> dict[str, object]:
    return {name: canonical(value) for name, value in key.fields().items()}


def is_future(action: Action, now: datetime) -> bool:
    """Return whether `action` is further ahead of `now` than clocks may differ."""
    return action.when > now + CLOCKS


def in_force(actions: Iterable[Action], now: datetime) -> tuple[Action, ...]:
    """Return the actions, in the order of the log, that were not undone and are not in the future.

    An undo withdraws only earlier lines, so an action repeated in the same second counts.
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


@dataclass(frozen=True)
class BegunMaintenance:
    """A maintenance that somebody began: its window, and when it was ended, None if not yet."""

    action: Action
    window: Window
    ended: datetime | None

    def is_open(self, now: datetime) -> bool:
        """Return whether it lasts."""
        return self.ended is None and now < self.window.end

    def is_forgotten(self, now: datetime) -> bool:
        """Return whether it had to end by itself."""
        return self.ended is None and self.action.until is None and now >= self.window.end


def begun(actions: Iterable[Action]) -> tuple[BegunMaintenance, ...]:
    """Return the maintenances that people began, by the log of actions, in the order of the log."""
    every = [*actions]
    ends = {each.of: each.until for each in every if each.kind == END}
    found = []
    for each in every:
        if each.kind != BEGIN:
            continue
        last = ends.get(each.when)
        begin = each.since or each.when
        end = last or each.until or begin + LONGEST_MAINTENANCE
        places = tuple(str(match["file_system"]) for match in each.series)
        window = Window(begin, max(begin, end), each.reason, file_systems=places)
        found.append(BegunMaintenance(each, window, last))
    return tuple(found)
