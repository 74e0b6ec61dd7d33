"""Messages: the text about an event, made of lines of the digest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iobands.notify.news import ENDED, Cause, Event, Message
from iobands.snapshot import Alert, Snapshot
from iobands.views.alert_lines import counted_members, details, subject
from iobands.views.format import (
    command_text,
    day_text,
    printable,
    ratio_text,
    summary,
)

_MOST_ALERTS: Final = 10
_MOST_SERIES: Final = 20


def message_of(event: Event, site: Snapshot, page: str) -> Message:
    """Return the message about an event."""
    cause = event.cause
    lines = [line for alert in event.alerts[:_MOST_ALERTS] for line in _of_alert(alert, site)]
    hidden = len(event.alerts) - _MOST_ALERTS
    lines += [f"and {hidden} more"] if hidden > 0 else []
    if event.kind == ENDED:
        lines += _recovered(cause, site)
    elif event.alerts and not event.alerts[0].reason:
        name = event.alerts[0].name
        lines += ["", f"Next step: {command_text('explain', name)}"]
        lines += [f"If known: {command_text('acknowledge', name, '--reason TEXT')}"]
    lines += ["", summary(site), f"at {site.now:%Y-%m-%d %H:%M} UTC; all times are UTC"]
    lines += [page] if page else []
    first = f"{cause.severity} {_headline(event, site)}"
    return Message(
        id=event.id,
        cause=cause.id,
        kind=event.kind,
        severity=cause.severity,
        title=f"{event.kind}: {first}",
        text="\n".join(lines) + "\n",
        when=site.now.isoformat(),
        page=page,
    )


def _headline(event: Event, site: Snapshot) -> str:
    if len(event.alerts) != 1:
        return event.cause.title
    said = [printable(each) for each in details(event.alerts[0], site, short=True)[:2]]
    return ", ".join([_name(event.alerts[0], site), *filter(None, said)])[:180]


def _of_alert(alert: Alert, site: Snapshot) -> Iterator[str]:
    said = "  ".join(printable(each) for each in details(alert, site) if each)
    yield f"{alert.severity.value}  {_name(alert, site)}  {said}"
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


def _recovered(cause: Cause, site: Snapshot) -> Iterator[str]:
    """Yield since when a cause was known, and how it ended."""
    since = day_text(cause.began, site.now)
    yield f"{cause.title} is no longer {cause.severity}; known since {since}"
    for entry in site.ledger.entries:
        if entry.number is not None and cause.title.split()[0] == str(entry.number):
            yield printable(f"How it ended: {entry.ending}")
