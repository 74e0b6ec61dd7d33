"""What is new since the last time, and the text of the message about it.

Alerts begin, become worse, are still open or are over. A cause is the subject of a message: one
alert, or several that belong together. A cause is recognised by its series, as the name of an alert
changes while it grows.
"""

from __future__ import annotations

import math
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from iobands.notify.outbox import (
    ALERT,
    BEGAN,
    CONFIRMED,
    ENDED,
    NEW_CAUSE,
    NEW_NAME,
    OPEN,
    WORSE,
    Event,
    Message,
    Topic,
)
from iobands.snapshot import (
    CAUSED,
    CLOCK,
    FELL,
    LASTING,
    Alert,
    AlertEvent,
    Certainty,
    Severity,
    Snapshot,
)
from iobands.views import (
    address_of,
    cause_text,
    command_text,
    day_text,
    details,
    named,
    news_text,
    printable,
    ratio_text,
    subject,
    summary,
    time_text,
    worst_member,
)

#: After this time an open cause is sent once more.
_REMIND: Final = timedelta(days=7)
_KINDS: Final = {
    Severity.INCIDENT: "drop",
    **dict.fromkeys(LASTING, "drop"),
    Severity.NO_DATA: "missing",
    Severity.UNFIT: "unfit",
    Severity.FAILED: "failed",
    Severity.FLAKY: "flaky",
    Severity.WATCH: "suspicion",
    Severity.COLLAPSED: "collapse",
    Severity.IMPROVED: "rise",
}
_RANK: Final = {severity.value: place for place, severity in enumerate(Severity)}
#: For these the number of members shows how bad it is; for a change, the level does.
_COUNTED: Final = ("missing", "unfit", "failed")
#: The fields that a cause keeps when it becomes worse.
_KEPT: Final = ("id", "members", "began", "reminded", "events")
# Prefix of a member that is the subject of an alert without series.
_NAME: Final = "name:"


def changes(
    before: Sequence[Topic], site: Snapshot, severities: frozenset[str]
) -> tuple[list[Topic], list[Event]]:
    """Return the open causes now, the oldest first, and what changed since `before`.

    A cause that began in the future was recorded under a wrong clock. It counts as new, as its
    reminder would otherwise not come for years. While the clock is wrong, only the clock is news,
    and no cause is over.
    """
    before = [replace(each, began=min(each.began, site.now)) for each in before]
    alerts = [each for each in site.alerts if each.severity.value in severities]
    if site.clock:
        alerts = [each for each in alerts if each.subject == CLOCK]
    in_doubt = any(each.subject == CLOCK for each in site.alerts)
    of_cause, merged, new = _assigned(before, alerts)
    known = {each.name for each in (*site.series, *site.retired)}
    causes: list[Topic] = []
    events: list[Event] = []
    for cause in before:
        mine = of_cause.get(cause.id, [])
        if cause.id in merged:
            continue
        if not mine:
            if in_doubt or not _is_over(cause, known):
                causes.append(cause)
            elif cause.sent:
                events.append(Event(ENDED, _counted(cause)))
            continue
        kind, after = _followed(cause, mine, site.now)
        if kind:
            after = _counted(after)
            news = _events(mine, FELL)[cause.falls :]
            news += [] if cause.found is None else _events(mine, CAUSED)[cause.found :]
            events.append(Event(kind, after, tuple(mine), tuple(news)))
        causes.append(after)
    for group in _grouped(new):
        begun = _begun(group, site.now)
        causes.append(begun)
        if begun.sent:
            events.append(Event(BEGAN, begun, tuple(group)))
    return causes, events


def _assigned(
    before: Sequence[Topic], alerts: Iterable[Alert]
) -> tuple[dict[str, list[Alert]], set[str], list[Alert]]:
    """Return the alerts by cause, the causes that became part of another, and new alerts."""
    of_cause: defaultdict[str, list[Alert]] = defaultdict(list)
    merged: set[str] = set()
    new: list[Alert] = []
    for alert in alerts:
        mine = [
            cause.id
            for cause in before
            if cause.kind == _KINDS[alert.severity] and _is_of(alert, cause)
        ]
        if mine:
            of_cause[mine[0]].append(alert)
            merged |= set(mine[1:])
        else:
            new.append(alert)
    return of_cause, merged - of_cause.keys(), new


def _is_of(alert: Alert, cause: Topic) -> bool:
    if alert.number is not None and any(each.startswith(ALERT) for each in cause.members):
        return _numbered(alert) in cause.members
    return not _members([alert]).isdisjoint(cause.members)  # so also what was noted before numbers


def _grouped(alerts: Iterable[Alert]) -> list[list[Alert]]:
    """Return alerts that began, grouped by cause. A change is a cause of its own.

    Missing samples of a file system have one cause, and so have checks that fail in the same way.
    """
    found: defaultdict[tuple[object, ...], list[Alert]] = defaultdict(list)
    for number, alert in enumerate(alerts):
        kind = _KINDS[alert.severity]
        if kind == "missing" and alert.members:
            key = alert.members[0].series.key
            found[kind, key.system, key.file_system].append(alert)
        elif kind in _COUNTED:
            found[kind, alert.reason].append(alert)
        else:
            found[kind, number].append(alert)
    return list(found.values())


def _begun(alerts: Sequence[Alert], now: datetime) -> Topic:
    low, high = _level(alerts)
    quiet = all(alert.is_quiet for alert in alerts)
    members = _members(alerts)
    return Topic(
        id=uuid.uuid4().hex,
        kind=_KINDS[alerts[0].severity],
        title=title(alerts),
        severity=_worst(alerts),
        members=tuple(sorted(members)),
        number=len(members),
        began=now,
        low=low,
        high=high,
        sent=not quiet,
        quiet=quiet,
        falls=len(_events(alerts, FELL)),
        found=len(_events(alerts, CAUSED)),
        certain=_is_certain(alerts),
    )


def _followed(cause: Topic, alerts: Sequence[Alert], now: datetime) -> tuple[str | None, Topic]:
    """Return what is new about an open cause, if anything, and its current state."""
    members = _members(alerts)
    quiet = all(alert.is_quiet for alert in alerts)
    found = len(_events(alerts, CAUSED))
    members_now = tuple(sorted(members.union(cause.members)))
    after = replace(cause, members=members_now, quiet=quiet, found=found)
    if not quiet and _is_worse(cause, alerts):
        kept = {name: getattr(after, name) for name in _KEPT}
        kept["reminded"] = cause.reminded or now - cause.began >= _REMIND
        return WORSE, replace(_begun(alerts, now), **kept)
    if not quiet and cause.sent and not cause.certain and _is_certain(alerts):
        return CONFIRMED, replace(after, certain=True)
    if not quiet and cause.sent and cause.found is not None and found > cause.found:
        return NEW_CAUSE, replace(after, title=title(alerts))
    is_known = all(_numbered(each) in cause.members for each in alerts)
    if not quiet and cause.sent and is_known and title(alerts) != cause.title:
        return NEW_NAME, replace(after, title=title(alerts))
    if not quiet and cause.sent and not cause.reminded and now - cause.began >= _REMIND:
        return OPEN, replace(after, reminded=True)
    return None, after


def _is_worse(cause: Topic, alerts: Sequence[Alert]) -> bool:
    """Return whether a cause is worse than when it was last sent.

    That is so if its severity is worse, if it is critical again after it was acknowledged, if it
    fell again, if its level is lower by intervals that do not overlap, or if twice as many members
    are missing, unfit or failed.
    """
    if _RANK[_worst(alerts)] < _RANK[cause.severity] or cause.quiet:
        return True
    if len(_events(alerts, FELL)) > cause.falls:
        return True
    if cause.kind in _COUNTED:
        return len(_members(alerts)) >= 2 * cause.number
    _, high = _level(alerts)
    if cause.kind != "drop" or high is None or cause.low is None:
        return False
    return high < cause.low


def _events(alerts: Iterable[Alert], kind: str) -> list[AlertEvent]:
    return [each for alert in alerts for each in alert.events if each.kind == kind]


def _is_certain(alerts: Iterable[Alert]) -> bool:
    return all(each.certainty in (None, Certainty.CERTAIN) for each in alerts)


def _is_over(cause: Topic, known: set[str]) -> bool:
    """Return whether a cause without alerts is over; without its series that is not known."""
    named = [each for each in cause.members if not each.startswith((_NAME, ALERT))]
    return not named or any(each in known for each in named)


def _members(alerts: Iterable[Alert]) -> set[str]:
    """Return the numbers of alerts and the names of their series in files, or the subjects."""
    found: set[str] = set()
    for alert in alerts:
        names = {member.series.name for member in alert.members}
        names |= {_numbered(alert)} if alert.number is not None else set()
        found |= names or {f"{_NAME}{alert.subject}"}
    return found


def _numbered(alert: Alert) -> str:
    return f"{ALERT}{alert.system}:{alert.number}"


def _level(alerts: Sequence[Alert]) -> tuple[float | None, float | None]:
    """Return the interval of the worst level over its baseline, None if it is not known."""
    ratios = [worst_member(each).ratio for each in alerts if each.members]
    known = [each for each in ratios if each and math.isfinite(each.low + each.high)]
    least = min(known, key=lambda each: each.value, default=None)
    return (least.low, least.high) if least else (None, None)


def _worst(alerts: Iterable[Alert]) -> str:
    return min((alert.severity.value for alert in alerts), key=lambda each: _RANK[each])


def title(alerts: Sequence[Alert]) -> str:
    """Return the name of a cause: its alert, or the first one and the number of the others."""
    names = [printable(subject(alert)) for alert in alerts]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _counted(cause: Topic) -> Topic:
    return replace(cause, events=cause.events + 1)


_MOST_ALERTS: Final = 10
_MOST_SERIES: Final = 20


def message_of(event: Event, site: Snapshot, page: str) -> Message:
    """Return the message about an event."""
    cause = event.cause
    lines = [printable(f"New: {news_text(each, site)}") for each in event.news]
    lines += [line for alert in event.alerts[:_MOST_ALERTS] for line in _of_alert(alert, site)]
    hidden = len(event.alerts) - _MOST_ALERTS
    lines += [f"and {hidden} more"] if hidden > 0 else []
    if event.kind == ENDED:
        lines += _recovered(cause, site)
    elif event.alerts and not event.alerts[0].reason:
        name = event.alerts[0].name
        lines += ["", f"Next step: {command_text('explain', name)}"]
        lines += [f"If known: {command_text('acknowledge', name, '--reason TEXT')}"]
    system, number = alert_of(event)
    where = f"{system}, " if system else ""
    lines += ["", summary(site), f"{where}at {time_text(site.now)} UTC; all times are UTC"]
    for alert in (*event.alerts, *site.past):
        if number and (alert.system, alert.number) == (system, number):
            page = address_of(alert, page)
            break
    lines += [page] if page else []
    first = f"{cause.severity} {_headline(event, site)}"
    worst = event.alerts[0] if event.alerts else None
    return Message(
        id=event.id,
        cause=cause.id,
        kind=event.kind,
        severity=cause.severity,
        title=f"{event.kind}: {first}",
        text="\n".join(lines) + "\n",
        when=site.now.isoformat(),
        page=page,
        system=system,
        alert=number,
        subject=printable(worst.subject) if worst else cause.title,
        found=printable(cause_text(worst, site)) if worst else "",
        since=(worst.since if worst and worst.since else cause.began).isoformat(),
        certainty=worst.certainty.value if worst and worst.certainty else "",
        ratio=worst.ratio if worst else None,
        series=list(
            dict.fromkeys(
                printable(member.series.label) for alert in event.alerts for member in alert.members
            )
        )[:_MOST_SERIES],
    )


def alert_of(event: Event) -> tuple[str, int | None]:
    """Return the system of a cause and, if it is one alert with a number, that number."""
    numbered = [each for each in event.cause.members if each.startswith(ALERT)]
    if len(numbered) == 1:
        system, _, number = numbered[0].removeprefix(ALERT).rpartition(":")
        return system, int(number)
    systems = {key.system for alert in event.alerts for key in alert.keys}
    return (systems.pop() if len(systems) == 1 else ""), None


def _headline(event: Event, site: Snapshot) -> str:
    if len(event.alerts) != 1:
        return event.cause.title
    said = [printable(each) for each in details(event.alerts[0], site, short=True)[:2]]
    return ", ".join([named(event.alerts[0], site), *filter(None, said)])[:180]


def _of_alert(alert: Alert, site: Snapshot) -> Iterator[str]:
    said = "  ".join(printable(each) for each in details(alert, site) if each)
    yield f"{alert.severity.value}  {named(alert, site)}  {said}"
    if cause := cause_text(alert, site):
        yield printable(f"Cause: {cause}")
    if len(alert.members) > 1:
        for member in alert.members[:_MOST_SERIES]:
            ratio = f": {ratio_text(member.ratio)}" if member.ratio else ""
            yield f"  {printable(member.series.label)}{ratio}"
        hidden = len(alert.members) - _MOST_SERIES
        if hidden > 0:
            yield f"  and {hidden} more"


def _recovered(cause: Topic, site: Snapshot) -> Iterator[str]:
    """Yield since when a cause was known, and how it ended."""
    since = day_text(cause.began, site.now)
    yield f"{cause.title} is no longer {cause.severity}; known since {since}"
    for entry in site.ledger.entries:
        if entry.number is not None and cause.title.split()[0] == str(entry.number):
            yield printable(f"How it ended: {entry.ending}")
