"""The text of `iobands explain` about a series, or about an alert that several series share."""

from __future__ import annotations

from iobands.snapshot import Alert, Series, Snapshot
from iobands.views import MAIL_WIDTH, fitted
from iobands.views.alert_lines import subject
from iobands.views.explain_alert import of_alert
from iobands.views.explain_series import of_series


def chosen(site: Snapshot, wanted: str) -> list[Alert | Series]:
    """Return the names that match `wanted`: the exact name, or else all with each of its words.

    If no name matches, return the series that have the words as values of their fields.
    """
    numbered = [each for each in (*site.alerts, *site.past) if each.number and wanted == each.name]
    if numbered or wanted.isdecimal():  # such as 7, which is no part of a name
        return [*numbered]
    alerts = {
        each.subject: each for each in reversed(site.alerts) if len(each.members) != 1 or each.peer
    }
    series = {name: each for each in site.series for name in (each.name, each.label)}
    exact = alerts.get(wanted) or series.get(wanted)
    if exact:
        return [exact]
    words = wanted.casefold().split()
    named: list[Alert | Series] = [*alerts.values(), *site.series]
    found = [
        each for each in named if words and all(word in name_of(each).casefold() for word in words)
    ]
    return found or [
        each
        for each in site.series
        if words and set(words) <= {str(value).casefold() for value in each.key.fields().values()}
    ]


def name_of(found: Alert | Series) -> str:
    """Return what an alert or a series is called."""
    return subject(found) if isinstance(found, Alert) else found.label


def explanation(site: Snapshot, found: Alert | Series, width: int = MAIL_WIDTH) -> str:
    """Return an explanation as text."""
    lines = of_alert(site, found) if isinstance(found, Alert) else of_series(site, found)
    return fitted(lines, width)
