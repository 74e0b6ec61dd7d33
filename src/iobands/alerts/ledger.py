"""The ledger: open and past alerts, how each ended, and the site's own precision and delay."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from iobands.alerts.action import FALSE, REAL, RESOLVE, Action
from iobands.alerts.alert import Alert
from iobands.alerts.correlated import NEAR
from iobands.alerts.incident import Incident
from iobands.detection.series import Change
from iobands.model.series import SeriesKey
from iobands.status.series import Series


@dataclass(frozen=True)
class Entry:
    """An alert of the past or the present; `raised` and `ended` are None where not known.

    `subject` names it, `ratio` is the level since over the baseline, and `end` says how it ended,
    empty while it is open.
    """

    subject: str
    since: datetime
    raised: datetime | None = None
    ended: datetime | None = None
    ratio: float | None = None
    end: str = ""


@dataclass(frozen=True)
class Ledger:
    """Entries with the newest first, and the site's own figures.

    `real` and `false` count the verdicts of people. `delay` is the median number of runs from the
    onset of a drop to its alert, None without one.
    """

    entries: tuple[Entry, ...]
    real: int
    false: int
    delay: float | None


def ledger_of(
    alerts: Iterable[Alert],
    series: Sequence[Series],
    incidents: Iterable[Incident],
    actions: Mapping[SeriesKey, Sequence[Action]],
) -> Ledger:
    """Return the ledger; `actions` are all about each series that are in force."""
    entries = [
        Entry(each.subject, each.since, ratio=_ratio(each))
        for each in alerts
        if each.direction is not None and each.since is not None
    ]
    entries += [*_changes(series), *_incidents(incidents)]
    every = {action.when: action for each in actions.values() for action in each}
    done = [action for action in every.values() if action.kind == RESOLVE]
    entries += [_resolved(action, series) for action in done if action.since]
    delays = [
        point.raised - point.onset + 1
        for each in series
        if each.status.detection
        for point in each.status.detection.chart.changes
        if point.ratio.value < 1
    ]
    return Ledger(
        tuple(sorted(entries, key=lambda entry: entry.since, reverse=True)),
        sum(action.verdict == REAL for action in done),
        sum(action.verdict == FALSE for action in done),
        statistics.median(delays) if delays else None,
    )


def _ratio(alert: Alert) -> float | None:
    found = [member.ratio.value for member in alert.members if member.ratio]
    return min(found, default=None)


_Past = tuple[Change, Series]


def _changes(series: Sequence[Series]) -> list[Entry]:
    """Return the changes that ended, those of one variable on a file system as one."""
    past = sorted(
        (
            (change, each)
            for each in series
            if each.status.detection
            for change in each.status.detection.changes
            if change.ended and change.end
        ),
        key=lambda item: item[0].since,
    )
    groups: list[list[_Past]] = []
    for change, each in past:
        for group in groups:
            first, other = group[0]
            if (
                first.direction == change.direction
                and other.key.system == each.key.system
                and other.key.file_system == each.key.file_system
                and other.key.variable == each.key.variable
                and change.since - first.since <= NEAR
            ):
                group.append((change, each))
                break
        else:
            groups.append([(change, each)])
    return [_change(group) for group in groups]


def _change(group: Sequence[_Past]) -> Entry:
    change, series = min(group, key=lambda item: item[0].ratio.value)
    several = f"{len(group)} series of {series.key.file_system} {series.key.variable}"
    return Entry(
        series.label if len(group) == 1 else several,
        change.since,
        min(each.raised for each, _ in group),
        max(each.ended for each, _ in group if each.ended),
        change.ratio.value,
        change.end,
    )


def _incidents(incidents: Iterable[Incident]) -> list[Entry]:
    return [
        Entry(
            each.name,
            each.since,
            each.raised,
            each.until,
            min(each.ratios.values(), default=None),
            "incident over",
        )
        for each in incidents
        if not each.is_open
    ]


def _resolved(action: Action, series: Sequence[Series]) -> Entry:
    named = [each for each in series if action.names(each.key)]
    subject = action.subject or (named[0].label if len(named) == 1 else f"{len(named)} series")
    verdict = f" ({action.verdict})" if action.verdict else ""
    assert action.since is not None
    return Entry(
        subject,
        action.since,
        ended=action.when,
        ratio=action.ratio,
        end=f"resolved{verdict} by {action.who}: {action.reason}",
    )
