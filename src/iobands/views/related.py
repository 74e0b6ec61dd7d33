"""What moved with a series and what did not, as lines of an explanation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np

from iobands.snapshot import (
    DOWN,
    REBASELINE,
    RESOLVE,
    UP,
    Action,
    Alert,
    Change,
    Ratio,
    Series,
    Snapshot,
    in_force,
    in_utc,
    level_ratio,
)
from iobands.views.format import action_text, day_text, figure, listed, plural, ratio_text

#: Runs before a change, as many as the largest baseline has, and runs since. Later runs may have
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

    `change` is its own change at that time. Without one, `leaning` is the level of its next `runs`
    runs over the level before, if they clearly differ. `action` is the action that ended a change
    of that time.
    """

    series: Series
    shared: tuple[str, ...]
    change: Change | None = None
    leaning: Ratio | None = None
    runs: int = 0
    action: Action | None = None

    @property
    def direction(self) -> str | None:
        """The direction in which it moved, None if it did not."""
        if self.change:
            return self.change.direction
        if self.action:
            return self.action.direction
        return None if self.leaning is None else DOWN if self.leaning.value < 1 else UP


@dataclass(frozen=True)
class OnsetTime:
    """When a change began: most likely at `since`, between `low` and `high`."""

    since: datetime
    low: datetime
    high: datetime


def onset_time_of(series: Series) -> OnsetTime | None:
    """Return when the open change of a series, or the suspicion behind `watch`, began."""
    evidence = series.status.evidence
    if evidence is None:
        return None
    if change := evidence.open_change:
        return OnsetTime(change.since, change.since_low, change.since_high)
    suspicion = evidence.suspicion
    return OnsetTime(suspicion.since, suspicion.since, suspicion.since) if suspicion else None


def related(site: Snapshot, series: Series, onset: OnsetTime | None) -> list[Related]:
    """Return the other series of its system, first the ones that share the most with `series`."""
    found = []
    for other in site.series:
        if other is not series and other.key.system == series.key.system:
            values = ((name, series.trait(name), other.trait(name)) for name in SHARED_FIELDS)
            shared = tuple(name for name, one, another in values if one and one == another)
            found.append(_moved(site, other, shared, onset) if onset else Related(other, shared))
    return sorted(found, key=lambda each: -len(each.shared))


def sharing(site: Snapshot, alert: Alert) -> tuple[str, tuple[Series, ...]]:
    """Return the field that the subject of a shared alert names, and all series that share it.

    For any other alert, return no field and its members.
    """
    if alert.shared is None:
        return "", tuple(member.series for member in alert.members)
    field, value = alert.shared
    alike = (
        each
        for each in site.series
        if each.key.system == alert.system and each.shares_causes and each.trait(field) == value
    )
    return field, tuple(alike)


def leaning(series: Series, since: datetime) -> tuple[Ratio, int] | None:
    """Return the level of the next runs over the one before, if its interval leaves no doubt."""
    times, values = series.judged
    start, logarithms = int(np.searchsorted(times, in_utc(since))), np.log(values)
    before, after = logarithms[max(0, start - BEFORE) : start], logarithms[start : start + NEXT]
    if len(before) < _LEAST_BEFORE or len(after) < _LEAST_SINCE:
        return None
    ratio = level_ratio(before, after)
    return (ratio, len(after)) if ratio.high < _LEANS or ratio.low > 1 / _LEANS else None


def _moved(site: Snapshot, other: Series, shared: tuple[str, ...], onset: OnsetTime) -> Related:
    evidence = other.status.evidence
    low, high = onset.low - _NEAR, onset.high + _NEAR
    for change in reversed(evidence.changes if evidence else ()):
        if change.since_low <= high and change.since_high >= low:
            return Related(other, shared, change)
    for action in reversed(in_force(other.actions, site.now)):
        is_end = action.kind in {RESOLVE, REBASELINE} and action.direction
        if is_end and action.since and low <= action.since <= high:
            return Related(other, shared, action=action)
    # A change at another time, in the series or in one of its groups, does not count here.
    elsewhere = other.status.change is not None or any(
        alert.certainty and alert.since and not low <= alert.since <= high
        for alert in site.alerts_on(other.key)
    )
    leans = None if elsewhere else leaning(other, onset.since)
    return Related(other, shared, None, *leans) if leans else Related(other, shared)


_FAR: Final = 2.0  # times as many files on the busiest target as with round-robin placement

#: From this difference in free space on, Lustre no longer places files round-robin.
WEIGHTED_PERCENT: Final = 17


def uneven(sample: Mapping[str, Any]) -> str | None:
    """Return how far the files of a run are from round-robin placement, and why if known."""
    busiest = sample.get("busiest_target")
    if busiest is None or busiest < _FAR:
        return None
    text = f"the busiest target has {figure(busiest)} × its round-robin share of files"
    spread, fullest = sample.get("free_spread_percent"), sample.get("fullest_target")
    if spread is None or spread < WEIGHTED_PERCENT or not fullest:
        return text
    full = f"{fullest} is {sample['fullest_target_percent']:.0f} % full"
    return f"{text}: {full}, and targets with more free space get more files"


_NAMED: Final = 6


def section(heading: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines under a heading."""
    yield from ("", heading, *(f"  {line}" for line in list(lines) or ["nothing recorded"]))


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows of a table, indented, with each column as wide as its longest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()


def some(names: Sequence[str]) -> str:
    """Return the first few of many names."""
    hidden = len(names) - _NAMED
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {hidden} more" if hidden > 0 else shown


def move(site: Snapshot, each: Related) -> str:
    """Return how another series moved."""
    shared = (
        f" (same {listed([SHARED_FIELDS[name] for name in each.shared])})" if each.shared else ""
    )
    if change := each.change:
        until = f" to {day_text(change.ended, site.now)}" if change.ended else ""
        since = f"{change.direction} since {day_text(change.since, site.now)}{until}"
        return f"{since}, {ratio_text(change.ratio)}{shared}"
    if each.action:
        ratio = f", {each.action.ratio:.2f} ×" if each.action.ratio else ""
        return f"{each.action.direction}{ratio}; {action_text(each.action)}{shared}"
    assert each.leaning is not None
    others = [alert.subject for alert in site.alerts_on(each.series.key) if alert.certainty]
    where = f"part of '{others[0]}'" if others else "without an alert"
    runs = plural(each.runs, "run")
    return f"{ratio_text(each.leaning)} in its next {runs}, {where}{shared}"
