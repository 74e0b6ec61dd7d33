"""Which other series moved at the same time as one, and which did not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from iobands.model.history import in_utc
from iobands.snapshot import (
    DOWN,
    REBASELINE,
    RESOLVE,
    SHARED,
    UP,
    Action,
    Alert,
    Change,
    Ratio,
    Series,
    Snapshot,
    in_force,
    level_ratio,
)

#: Runs before a change, as many as the largest baseline has, and runs since: later ones may have
#: moved for another reason.
BEFORE: Final = 200
NEXT: Final = 30
_LEAST_BEFORE: Final = 20
_LEAST_SINCE: Final = 3
_LEANS: Final = 0.97  # or its inverse: a level that differs by less has not moved
_NEAR: Final = timedelta(days=3)
#: The fields that one series may share with another, and their names in a sentence.
SHARED_FIELDS: Final = {
    "file_system": "file system",
    "pattern": "pattern",
    "variable": "variable",
    "transport": "transport",
    "environ": "environment",
    "partition": "partition",
}


@dataclass(frozen=True)
class Related:
    """Another series of the same system, and the fields that both share.

    `change` is its own change of that time. Without one, `leaning` is the level of its next
    `runs` runs over the level before, if they clearly differ. `action` is what a person did
    about a change of that time, which then is none any more.
    """

    series: Series
    shared: tuple[str, ...]
    change: Change | None = None
    leaning: Ratio | None = None
    runs: int = 0
    action: Action | None = None

    @property
    def direction(self) -> str | None:
        """Where it moved, None if it did not."""
        if self.change:
            return self.change.direction
        if self.action:
            return self.action.direction
        return None if self.leaning is None else DOWN if self.leaning.value < 1 else UP


@dataclass(frozen=True)
class Onset:
    """When a change began: most likely at `since`, between `low` and `high`."""

    since: datetime
    low: datetime
    high: datetime


def onset_of(series: Series) -> Onset | None:
    """Return when the open change of a series, or what `watch` is about, began."""
    evidence = series.status.evidence
    if evidence is None:
        return None
    if change := evidence.open_change:
        return Onset(change.since, change.since_low, change.since_high)
    suspicion = evidence.suspicion
    return Onset(suspicion.since, suspicion.since, suspicion.since) if suspicion else None


def related(site: Snapshot, series: Series, onset: Onset | None) -> list[Related]:
    """Return the other series of its system, those first that share the most with `series`."""
    found = []
    for other in site.series:
        if other is not series and other.key.system == series.key.system:
            values = (
                (name, value_of(series, name), value_of(other, name)) for name in SHARED_FIELDS
            )
            shared = tuple(name for name, one, another in values if one and one == another)
            found.append(_moved(site, other, shared, onset) if onset else Related(other, shared))
    return sorted(found, key=lambda each: -len(each.shared))


def sharing(site: Snapshot, alert: Alert) -> tuple[str, tuple[Series, ...]]:
    """Return the field that the subject of a shared alert names, and all series that share it.

    For any other alert that is no field, and its members.
    """
    one = alert.members[0].series
    for field, name in SHARED.items():
        value = value_of(one, field)
        named = "" if value is None else name.format(value)
        subject = alert.subject.removeprefix("all ").removeprefix("part of ")
        if named and subject in {named, f"{named} {one.key.variable}"}:
            alike = [
                each
                for each in site.series
                if each.key.system == one.key.system
                and each.key.case is None
                and value_of(each, field) == value
            ]
            return field, tuple(alike)
    return "", tuple(member.series for member in alert.members)


def leaning(series: Series, since: datetime) -> tuple[Ratio, int] | None:
    """Return the level of the next runs over the one before, if its interval leaves no doubt."""
    times, values = series.judged
    start, logarithms = int(np.searchsorted(times, in_utc(since))), np.log(values)
    before, after = logarithms[max(0, start - BEFORE) : start], logarithms[start : start + NEXT]
    if len(before) < _LEAST_BEFORE or len(after) < _LEAST_SINCE:
        return None
    ratio = level_ratio(before, after)
    return (ratio, len(after)) if ratio.high < _LEANS or ratio.low > 1 / _LEANS else None


def _moved(site: Snapshot, other: Series, shared: tuple[str, ...], onset: Onset) -> Related:
    evidence = other.status.evidence
    low, high = onset.low - _NEAR, onset.high + _NEAR
    for change in reversed(evidence.changes if evidence else ()):
        if change.since_low <= high and change.since_high >= low:
            return Related(other, shared, change)
    for action in reversed(in_force(other.actions, site.now)):
        is_end = action.kind in {RESOLVE, REBASELINE} and action.direction
        if is_end and action.since and low <= action.since <= high:
            return Related(other, shared, action=action)
    # A change of another time, of the series or of a group that it is in, is none of this one.
    elsewhere = other.status.change is not None or any(
        alert.certainty and alert.since and not low <= alert.since <= high
        for alert in site.alerts_on(other.key)
    )
    leans = None if elsewhere else leaning(other, onset.since)
    return Related(other, shared, None, *leans) if leans else Related(other, shared)


def value_of(series: Series, field: str) -> str | None:
    """Return the value of a series field or, for `medium`, of the newest sample."""
    of_sample = field == "medium"
    value = series.history.newest.get(field) if of_sample else getattr(series.key, field)
    return None if value is None else str(value)
