"""Messages: the text about an event, made of lines of the digest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iobands.notify.news import ALERT, ENDED, Event, Message, Topic
from iobands.snapshot import Alert, Snapshot
from iobands.views.alert_lines import (
    address_of,
    cause_text,
    counted_members,
    details,
    news_text,
    subject,
)
from iobands.views.format import (
    command_text,
    day_text,
    printable,
    ratio_text,
    summary,
    time_text,
)

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
    told = [each for each in (*event.alerts, *site.past) if each.number == number and number]
    told = [each for each in told if each.system == system]
    page = address_of(told[0], page) if told else page
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
    return ", ".join([_name(event.alerts[0], site), *filter(None, said)])[:180]


def _of_alert(alert: Alert, site: Snapshot) -> Iterator[str]:
    said = "  ".join(printable(each) for each in details(alert, site) if each)
    yield f"{alert.severity.value}  {_name(alert, site)}  {said}"
    if cause := cause_text(alert, site):
        yield printable(f"Cause: {cause}")
    if len(alert.members) > 1:
        for member in alert.members[:_MOST_SERIES]:
            ratio = f": {ratio_text(member.ratio)}" if member.ratio else ""
            yield f"  {printable(member.series.label)}{ratio}"
        hidden = len(alert.members) - _MOST_SERIES
        if hidden > 0:
            yield f"  and {hidden} more"


def _name(alert: Alert, site: Snapshot) -> str:
    counted = counted_members(alert, site)
    return printable(subject(alert)) + (f" ({counted})" if counted else "")


def _recovered(cause: Topic, site: Snapshot) -> Iterator[str]:
    """Yield since when a cause was known, and how it ended."""
    since = day_text(cause.began, site.now)
    yield f"{cause.title} is no longer {cause.severity}; known since {since}"
    for entry in site.ledger.entries:
        if entry.number is not None and cause.title.split()[0] == str(entry.number):
            yield printable(f"How it ended: {entry.ending}")
