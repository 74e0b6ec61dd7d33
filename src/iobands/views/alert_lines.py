"""What is said of an alert in a line, how the lines of several fit a terminal, and its address."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from textwrap import shorten, wrap
from typing import Final

from iobands.snapshot import (
    FELL,
    OK,
    Alert,
    AlertEvent,
    Certainty,
    Series,
    Severity,
    Snapshot,
)
from iobands.views.document import GAP, blocks, folded, printable
from iobands.views.format import (
    acknowledgement_text,
    cause_since,
    day_text,
    hour_text,
    level_text,
    odds_text,
    percent,
    plural,
    ratio_text,
    some,
    speed_text,
)

#: The headings of alerts.
ATTENTION: Final = "Needs attention"
ACKNOWLEDGED: Final = "Acknowledged"
INFORMATION: Final = "For information"

# ReFrame's names contain every parameter, also those without a choice at the site.
_IDLE_PARAMETERS: Final = re.compile(r" %\w+=(null|default)\b")
# The least room for a reason behind its subject; else it is below it.
_LEAST_REASON: Final = 40
# The severity and the subject are said of each alert; then its level and more, or a reason.
_SAID: Final = 2


def sections(site: Snapshot) -> dict[str, list[Alert]]:
    """Return the alerts by heading; those of `INFORMATION` do not change the exit status."""
    found: dict[str, list[Alert]] = {ATTENTION: [], ACKNOWLEDGED: [], INFORMATION: []}
    for alert in site.alerts:
        heading = INFORMATION if alert.exit_status == OK else ATTENTION
        found[ACKNOWLEDGED if alert.is_quiet else heading].append(alert)
    found[INFORMATION].sort(key=lambda alert: alert.severity is Severity.COLLAPSED)
    return found


def details(alert: Alert, site: Snapshot, *, short: bool = False) -> list[str]:
    """Return what the digest shows of an alert after severity and subject.

    Either its level, what to do, since when, how certain and who acknowledged it; or in one text
    its level and its cause, or its reason.
    """
    if alert.acknowledgement and alert.is_quiet:
        action = alert.acknowledgement.action
        level, since, _ = finding(alert, site, short=True)
        ticket = f" ({action.ticket})" if action.ticket else ""
        who = action.owner or action.who
        who = f"{who}, {day_text(action.when, site.now)}: {action.reason}{ticket}"
        mark = ":" if alert.cause and not alert.peer else ""
        return [f"{level}{mark} {since}; {who}"]
    if alert.reason:
        return [alert.reason]
    level, *others = finding(alert, site, short=short)
    if alert.cause and not alert.peer:
        known = acknowledgement_text(alert)
        return [f"{level}: {others[0]}{f'; {known}' if known else ''}"]
    if alert.peer and alert.peer.is_slow:
        level += ": confirm it" if alert.certainty is Certainty.POSSIBLE else ": drain it"
    return [level, *others, acknowledgement_text(alert)]


def finding(alert: Alert, site: Snapshot, *, short: bool = False) -> tuple[str, str, str]:
    """Return the level of an alert that has no reason, since when it holds, and how certain.

    With its cause since when that holds. The level of several members is their median.
    """
    if alert.peer:
        level = f"{_peer_name(alert, site)}{speed_text(alert.peer)}"
    elif len(alert.members) > 1 and alert.ratio is not None:
        level = percent(alert.ratio)
    else:
        level = level_text(alert.members[0], short=short) if alert.members else ""
    since = ""
    if alert.cause and not alert.peer:
        since = cause_since(alert.cause, site.now)
    elif alert.since:
        word = "on" if alert.severity is Severity.COLLAPSED else "since"
        changes = [each.series.status.change for each in alert.members]
        known = any(each and each.repeats for each in changes)
        since = f"{word} {(hour_text if known else day_text)(alert.since, site.now)}"
    return level, since, alert.certainty.value if alert.certainty else ""


def _peer_name(alert: Alert, site: Snapshot) -> str:
    """Return such as `OST 7` and a blank for a slow target that the alert is not named by."""
    for place in site.places:
        name = alert.peer and alert.peer.name
        if name and (place.kind, place.system, place.where) == (name.kind, name.system, name.where):
            called = place.name_of(name.name)
            return "" if called in alert.subject else f"{called.partition(' of ')[0]} "
    return ""


def cause_text(alert: Alert, site: Snapshot) -> str:
    """Return what caused an alert, since when and how certainly; empty if it is not known.

    The name of a slow target or node says it already.
    """
    cause = alert.cause
    return "" if cause is None or alert.subject in cause.what else odds_text(cause, site.now)


def news_text(event: AlertEvent, site: Snapshot) -> str:
    """Return what a further fall, or what became known of a cause, is in a few words."""
    labels = [each.label for each in site.series if each.name in event.names]
    names = f": {some(labels)}" if labels else ""
    day = day_text(event.when, site.now)
    if event.kind == FELL:
        return f"{plural(len(event.names), 'series')} fell again, seen on {day}{names}"
    cause = odds_text(event.cause, site.now) if event.cause else "no longer certain"
    return f"the cause{' of the further fall' if event.names else ''}: {cause}"


def subject(alert: Alert) -> str:
    """Return the number of an alert and what it is about.

    Parameters of a check that say nothing are left out.
    """
    about = _IDLE_PARAMETERS.sub("", alert.subject)
    return about if alert.number is None else f"{alert.number} {about}"


def counted_members(alert: Alert, site: Snapshot) -> str:
    """Return how many of the series with its subject an alert has, such as `2 of 4 series`.

    Empty for an alert of one series.
    """
    if alert.peer and alert.members:
        return f"with {len(alert.members)} series"
    if len(alert.members) < 2 or alert.reason:  # noqa: PLR2004
        return ""
    variables = {member.series.key.variable for member in alert.members}
    every = [each for each in sharing(site, alert)[1] if each.key.variable in variables]
    return f"{len(alert.members)} of {len(every)} series"


def alert_blocks(
    alerts: Sequence[Alert], site: Snapshot, width: int, *, cut: bool, members: bool
) -> tuple[list[list[str]], bool]:
    """Return the lines of each alert, and whether a reason was cut.

    If lines would be too long, levels are shortened, then counts of members left out, and then
    subjects continue in further lines. With `cut`, a reason is one line if it has no remedy.
    """
    first = max(len(alert.severity.value) for alert in alerts)
    for short, counted in ((False, True), (True, True), (True, False)):
        rows = [(alert, details(alert, site, short=short)) for alert in alerts]
        table = [
            [f"{alert.severity.value:{first}}", named(alert, site, counted=counted)]
            + [printable(cell) for cell in said if len(said) > 1]
            for alert, said in rows
        ]
        levels = blocks([row for row in table if len(row) > _SAID], width, wrapped=(1, 5))
        found = [
            next(levels) if len(row) > _SAID else folded(GAP + GAP.join(row), width)
            for row in table
        ]
        if all(len(lines) == 1 for lines in found):
            break
    starts = (
        len(lines[0]) + len(GAP)
        for lines, (_, said) in zip(found, rows, strict=True)
        if len(said) == 1
        and width - len(lines[0]) - len(GAP) >= min(len(printable(said[0])), _LEAST_REASON)
    )
    start = max(starts, default=width)
    is_cut = False
    for lines, (alert, said) in zip(found, rows, strict=True):
        if len(said) == 1:
            # the remedy is at the end of what a check says
            short = cut and not (alert.severity is Severity.FAILED and not alert.since)
            is_cut |= _add_reason(lines, printable(said[0]), start, width, cut=short)
        if members and len(alert.members) > 1:
            lines += [part for each in _members(alert) for part in folded(each, width)]
    return found, is_cut


def named(alert: Alert, site: Snapshot, *, counted: bool = True) -> str:
    """Return the number and the subject of an alert, and how many series it has of how many."""
    number = counted_members(alert, site) if counted else ""
    return printable(subject(alert)) + (f" ({number})" if number else "")


def _add_reason(lines: list[str], reason: str, start: int, width: int, *, cut: bool) -> bool:
    """Add a reason behind an alert in column `start`, or below it; return whether it is cut."""
    is_behind = len(lines[-1]) < start < width
    indent = " " * (start if is_behind else len(GAP) * 3)
    room = width - len(indent)
    texts = wrap(reason, room, break_on_hyphens=False) or [""]
    if is_cut := cut and len(texts) > 1:
        texts = [shorten(reason, room, placeholder="…")]
    if is_behind:
        lines[-1] = f"{lines[-1]:{start}}{texts.pop(0)}"
    lines += [f"{indent}{text}" for text in texts]
    return is_cut


def _members(alert: Alert) -> list[str]:
    names = [(printable(each.series.label), each.ratio) for each in alert.members]
    return [f"{GAP * 3}{name}{f': {ratio_text(ratio)}' if ratio else ''}" for name, ratio in names]


_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]{1,60}", re.ASCII)


def page_of(alert: Alert) -> str:
    """Return the file of an alert's page below the dashboard; empty without a number.

    It never changes: numbers are permanent in their system.
    """
    if alert.number is None:
        return ""
    system = alert.system
    if not _PLAIN.fullmatch(system):  # ReFrame has no such names, but a directory may
        system = hashlib.sha256(system.encode("utf-8", "replace")).hexdigest()[:10]
    return f"alerts/{system}-{alert.number}.html"


def address_of(alert: Alert, dashboard: str) -> str:
    """Return the address of an alert's page; of the dashboard itself for other alerts.

    `dashboard` is the configured address, empty if there is none.
    """
    page = page_of(alert)
    if not dashboard or not page:
        return dashboard
    base = dashboard.partition("#")[0].partition("?")[0]
    return f"{base.removesuffix('index.html').rstrip('/')}/{page}"


#: How many alerts of the past have a page: the newest.
MOST_PAST: Final = 40


def with_pages(site: Snapshot) -> list[Alert]:
    """Return the alerts that have a page: the open ones and the newest of the past."""
    past = sorted(site.past, key=lambda each: each.ended or site.now, reverse=True)
    return [each for each in (*site.alerts, *past[:MOST_PAST]) if each.number is not None]


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


def cause_of(alert: Alert) -> str:
    """Return the cause in a few words, empty if it is not known or names the alert."""
    what = alert.cause.what if alert.cause else ""
    return "" if alert.subject in what else what
