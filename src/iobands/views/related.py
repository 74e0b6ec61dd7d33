"""What moved with a series and what did not, as lines of an explanation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np

from iobands.model import CONTEXT, FIELD
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
class Onset:
    """When a change began: most likely at `since`, between `low` and `high`."""

    since: datetime
    low: datetime
    high: datetime


def onset_of(series: Series) -> Onset | None:
    """Return when the open change of a series, or the suspicion behind `watch`, began."""
    evidence = series.status.evidence
    if evidence is None:
        return None
    if change := evidence.open_change:
        return Onset(change.since, change.since_low, change.since_high)
    suspicion = evidence.suspicion
    return Onset(suspicion.since, suspicion.since, suspicion.since) if suspicion else None


def related(site: Snapshot, series: Series, onset: Onset | None) -> list[Related]:
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
    # A change at another time, in the series or in one of its groups, does not count here.
    elsewhere = other.status.change is not None or any(
        alert.certainty and alert.since and not low <= alert.since <= high
        for alert in site.alerts_on(other.key)
    )
    leans = None if elsewhere else leaning(other, onset.since)
    return Related(other, shared, None, *leans) if leans else Related(other, shared)


_LEAST_VALUES: Final = 5

_USUAL: Final = (5, 95)  # percentiles

_FAR: Final = 2.0  # times as many files on the busiest target as with round-robin placement

#: From this difference in free space on, Lustre no longer places files round-robin.
WEIGHTED_PERCENT: Final = 17

_FEW_VALUES: Final = 0.5  # more different texts than this share of runs: it always changes


@dataclass(frozen=True)
class Covariates:
    """Sentences by column: texts that changed, numbers that moved, and the rest."""

    changed: dict[str, str] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    still: dict[str, str] = field(default_factory=dict)


def covariates(site: Snapshot, series: Series, since: datetime) -> Covariates:
    """Return how the next runs after a change differ from the runs before, apart from the rate."""
    start = int(np.searchsorted(series.history.times, in_utc(since)))
    first = max(0, start - BEFORE)
    samples = site.samples[series.rows[first : start + NEXT]]
    before, after = samples[: start - first], samples[start - first :]
    found = Covariates()
    for name in CONTEXT:
        earlier, later = (part[name].drop_nulls().to_list() for part in (before, after))
        if len(earlier) < _LEAST_VALUES or not later:
            continue
        if FIELD[name].type == "text":
            is_other, text = _text_changed(earlier, later)
            (found.changed if is_other else found.still)[name] = text
        else:
            is_other, text = _number_moved(earlier, later)
            (found.moved if is_other else found.still)[name] = text
    if "busiest_target" in found.moved:
        usual = {"busiest_target": after["busiest_target"].median()}
        if why := uneven(after.row(-1, named=True) | usual):
            found.moved["busiest_target"] += f": {why}"
    if "fullest_target_percent" in found.moved and (fullest := after["fullest_target"][-1]):
        found.moved["fullest_target_percent"] += f", on {fullest}"
    return found


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


def _number_moved(before: Sequence[float], after: Sequence[float]) -> tuple[bool, str]:
    """Tell whether the median since lies well outside the middle 90 % of the values before.

    Well outside means by half of that width, as a slow trend, such as a file system that fills up,
    is always somewhat outside.
    """
    low, high = (float(each) for each in np.percentile(before, _USUAL))
    margin = (high - low) / 2
    now, was = float(np.median(after)), float(np.median(before))
    span = f"({_number_text(low)} to {_number_text(high)})" if low < high else ""
    if low - margin <= now <= high + margin:
        return False, f"{_number_text(now)} {span}".rstrip()
    return True, f"{_number_text(was)} {span}".rstrip() + f" before, {_number_text(now)} since"


def _number_text(value: float) -> str:
    """Return a number; a whole one, such as a stripe size, with all digits."""
    return f"{value:.0f}" if value.is_integer() else figure(value)


def _text_changed(before: Sequence[object], after: Sequence[object]) -> tuple[bool, str]:
    """Tell whether half of the runs since have a value that no run before had."""
    earlier, later = Counter(map(str, before)), Counter(map(str, after))
    usual, newest = earlier.most_common(1)[0][0], later.most_common(1)[0][0]
    if len(earlier) > max(1, earlier.total() * _FEW_VALUES):
        return False, "differs from run to run"
    new = sum(count for value, count in later.items() if value not in earlier)
    if 2 * new >= later.total():
        return True, f"{usual} before, {newest} since"
    return False, newest


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
