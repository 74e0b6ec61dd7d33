"""What is said of an alert in a line, how the lines of several fit a terminal, and its address."""

from __future__ import annotations

import hashlib
import math
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from textwrap import shorten
from typing import Final

from iobands import snapshot
from iobands.snapshot import Alert, LedgerEntry, Place, Series, Severity, Snapshot, printable
from iobands.views import writing
from iobands.views.writing import GAP, day_text, folded, odds_text, ratio_text, some

#: The headings of alerts.
ATTENTION: Final = "Needs attention"
ACKNOWLEDGED: Final = "Acknowledged"
INFORMATION: Final = "For information"
#: How many alerts of the past have a page: the newest.
MOST_PAST: Final = 40

# ReFrame's names contain every parameter, also those without a choice at the site.
_IDLE_PARAMETERS: Final = re.compile(r" %\w+=(null|default)\b")
# The least room for a reason behind its subject; else it is below it.
_LEAST_REASON: Final = 40
# A level this close to the others', as a logarithm, counts as theirs.
_ALIKE: Final = 0.05
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]{1,60}", re.ASCII)


def sections(site: Snapshot) -> dict[str, list[Alert]]:
    """Return the alerts by heading; alerts for `INFORMATION` do not change the exit status."""
    found: dict[str, list[Alert]] = {ATTENTION: [], ACKNOWLEDGED: [], INFORMATION: []}
    for alert in site.alerts:
        heading = INFORMATION if alert.exit_status == snapshot.OK else ATTENTION
        found[ACKNOWLEDGED if alert.is_quiet else heading].append(alert)
    found[INFORMATION].sort(key=lambda alert: alert.severity is Severity.COLLAPSED)
    return found


def details(alert: Alert, site: Snapshot, *, short: bool = False) -> list[str]:
    """Return what the digest shows of an alert after severity and subject.

    Either its level, what to do, since when, how certain and who acknowledged it; or in one text
    its level and its cause, or its reason.
    """
    level, since, certainty = finding(alert, site, short=short or alert.is_quiet)
    has_cause = alert.cause is not None and alert.peer is None
    said = (": " if has_cause else " ").join(filter(None, (level, since)))
    if alert.acknowledgement and alert.is_quiet:
        action = alert.acknowledgement.action
        who = f"{action.owner or action.who}, {day_text(action.when, site.now)}: {action.reason}"
        ticket = f" ({action.ticket})" if action.ticket else ""
        return [f"{said}; {who}{ticket}"]
    if alert.reason:
        return [alert.reason]
    known = writing.acknowledgement_text(alert)
    if has_cause:
        return ["; ".join(filter(None, (said, known)))]
    if alert.peer and alert.peer.is_slow:
        level += ": confirm it" if alert.certainty is snapshot.Certainty.POSSIBLE else ": drain it"
    return [level, since, certainty, known]


def finding(alert: Alert, site: Snapshot, *, short: bool = False) -> tuple[str, str, str]:
    """Return the level of an alert that has no reason, since when it holds, and how certain.

    With its cause since when that holds. The level of several members is their median; unstable
    ones have none.
    """
    level = since = ""
    if alert.peer and (alert.peer.is_slow or not alert.members):
        place = place_of(alert, site)
        called = place.name_of(alert.peer.name.name) if place else ""
        name = "" if called in alert.subject else f"{called.partition(' of ')[0]} "
        if not alert.peer.is_slow:  # it was slow since then
            return f"{name}no longer slow", "", ""
        level = f"{name}{_speed(alert.peer)}"
    elif len(alert.members) > 1 and alert.ratio is not None:
        level = writing.percent(alert.ratio)
    elif len(alert.members) == 1:
        level = writing.level_text(alert.members[0], short=short)
    if alert.cause and not alert.peer:
        since = writing.cause_since(alert.cause, site.now, short=True)
    elif alert.since:
        word = "on" if alert.severity is Severity.COLLAPSED else "since"
        changes = [each.series.status.change for each in alert.members]
        known = any(each and each.repeats for each in changes)
        since = f"{word} {(writing.hour_text if known else day_text)(alert.since, site.now)}"
    return level, since, alert.certainty.value if alert.certainty else ""


def _speed(peer: snapshot.SlowPeer) -> str:
    """Return how fast a slow peer is: over its own level, if this is not about the others'."""
    worst = next((name for name, each in peer.ratios.items() if each == peer.ratio), "")
    own = peer.own.get(worst, 1.0)
    if abs(math.log(own)) < _ALIKE:
        return f"{writing.times(peer.ratio.value)} × the others"
    return f"{writing.times(peer.ratio.value / own)} × its level"


def place_of(alert: Alert, site: Snapshot) -> Place | None:
    """Return the targets or nodes that are compared with the slow one of the alert."""
    name = alert.peer and alert.peer.name
    wanted = name and (name.kind, name.system, name.where)
    return next((e for e in site.places if (e.kind, e.system, e.where) == wanted), None)


def cause_text(alert: Alert, site: Snapshot) -> str:
    """Return what caused an alert, since when and how certainly; empty if it is not known.

    The name of a slow target or node says it already.
    """
    cause = alert.cause
    return "" if cause is None or alert.subject in cause.what else odds_text(cause, site.now)


def by_day(events: Iterable[snapshot.AlertEvent]) -> list[snapshot.AlertEvent]:
    """Return events; if the same happened to several series on one day, that is one.

    In the log, each series has the time of its own run of a session.
    """
    found: dict[object, snapshot.AlertEvent] = {}
    for each in events:
        is_of_series = each.kind in (snapshot.FELL, snapshot.TURNED)
        place = (each.when.date(), each.kind, each.state) if is_of_series else id(each)
        names = dict.fromkeys([*(found[place].names if place in found else ()), *each.names])
        found[place] = replace(each, names=tuple(names))
    return [*found.values()]


def news_text(event: snapshot.AlertEvent, site: Snapshot) -> str:
    """Return what a further fall, or what became known of a cause, is in a few words."""
    if event.kind == snapshot.FELL:
        labels = [each.label for each in site.series if each.name in event.names]
        names = f": {some(labels)}" if labels else ""
        number = writing.plural(len(event.names), "series")
        return f"{number} fell again, seen on {day_text(event.when, site.now)}{names}"
    cause = odds_text(event.cause, site.now) if event.cause else "no longer certain"
    return f"the cause{' of the further fall' if event.names else ''}: {cause}"


def subject(alert: Alert) -> str:
    """Return the number of an alert and what it is about.

    Parameters of a check that say nothing are left out.
    """
    about = _IDLE_PARAMETERS.sub("", alert.subject)
    return about if alert.number is None else f"{alert.number} {about}"


def title(alert: Alert | LedgerEntry, site: Snapshot) -> str:
    """Return what an alert is called at its site: with its system, if there are several.

    Each system has its own numbers, and only the label of a series may name it.
    """
    said = subject(alert) if isinstance(alert, Alert) else alert.subject
    return writing.at_system(said, alert.system, site)


def command_on(alert: Alert, site: Snapshot, command: str, options: str = "") -> str:
    """Return a command about an alert: with its system, if another one may have its number."""
    alike = {e.system for e in (*site.alerts, *site.past) if e.number == alert.number}
    is_shared = alert.number is not None and len(alike) > 1 and not site.only
    system = f"--system {shlex.quote(alert.system)}" if is_shared else ""
    return writing.command_text(command, alert.name, system, writing.view_options(site), options)


def sharing(site: Snapshot, alert: Alert) -> tuple[str, tuple[Series, ...]]:
    """Return the field that the subject of a shared alert names, and all series that share it.

    For any other alert, return no field and its members. What was first measured later is left out.
    """
    if alert.shared is None:
        return "", tuple(member.series for member in alert.members)
    field, value = alert.shared
    alike = (
        each
        for each in site.series
        if each.key.system == alert.system and each.shares_causes and each.trait(field) == value
        if each.key in alert.keys or could_move(each, alert.since)
    )
    return field, tuple(alike)


def could_move(series: Series, since: datetime | None) -> bool:
    """Return whether a series had a run before a change."""
    return since is None or (len(series.history) > 0 and series.history.first < since)


def counted_members(alert: Alert, site: Snapshot) -> str:
    """Return how many of the series with its subject an alert has, such as `2 of 4 series`.

    Series that it does not name have joined it since: `6 of 6 series and 1 other`. Empty for an
    alert of one series.
    """
    if alert.peer and alert.members:
        return f"with {len(alert.members)} series"
    is_single = len(alert.members) == 1 and alert.shared is None
    if not alert.members or is_single or alert.reason:
        return ""
    if alert.shared is None:  # of how many is not known
        return f"{len(alert.members)} series"
    keys = {each.key for each in sharing(site, alert)[1]}
    mine = keys & alert.keys
    variables = {each.variable for each in mine}
    every = [each for each in keys if each.variable in variables]
    others = len(alert.keys) - len(mine)
    more = f" and {others} other{'' if others == 1 else 's'}" if others else ""
    return f"{len(mine)} of {len(every)} series{more}"


def named(alert: Alert, site: Snapshot, *, counted: bool = True) -> str:
    """Return the number and the subject of an alert, and how many series it has of how many."""
    number = counted_members(alert, site) if counted else ""
    return printable(title(alert, site)) + (f" ({number})" if number else "")


def alert_blocks(
    alerts: Sequence[Alert], site: Snapshot, width: int, *, cut: bool, members: bool
) -> tuple[list[list[str]], bool]:
    """Return the lines of each alert, and whether a reason was cut.

    If lines would be too long, levels are shortened, then counts of members left out, and then
    subjects continue in further lines. With `cut`, a reason is one line if it has no remedy.
    """
    first = max(len(alert.severity.value) for alert in alerts)
    for short, counted in ((False, True), (True, True), (True, False)):
        said = [[*map(printable, details(each, site, short=short))] for each in alerts]
        heads = [
            [f"{each.severity.value:{first}}", named(each, site, counted=counted)]
            for each in alerts
        ]
        rows = [[*head, *cells[:-1]] for head, cells in zip(heads, said, strict=True) if cells[1:]]
        levels = writing.blocks(rows, width, wrapped=(1,))
        found = [
            next(levels) if cells[1:] else folded(GAP + GAP.join(head), width)
            for head, cells in zip(heads, said, strict=True)
        ]
        if all(len(lines) == 1 for lines in found):
            break
    # reasons stand in one column behind their subjects, where these leave room for them
    rooms = [width - len(lines[0]) - len(GAP) for lines in found]
    fitting = (
        width - room
        for room, cells in zip(rooms, said, strict=True)
        if len(cells) == 1 and room >= min(len(cells[0]), _LEAST_REASON)
    )
    start, is_cut = max(fitting, default=width), False
    for alert, lines, cells in zip(alerts, found, said, strict=True):
        if len(cells) == 1:
            # the remedy is at the end of what a check says
            short = cut and not (alert.severity is Severity.FAILED and not alert.since)
            is_cut |= _add_reason(lines, cells[0], start, width, cut=short)
        elif cells[-1]:
            _add_reason(lines, cells[-1], width, width, cut=False)
        for each in alert.members if members and len(alert.members) > 1 else ():
            ratio = f": {ratio_text(each.ratio)}" if each.ratio else ""
            lines.extend(folded(f"{GAP * 3}{printable(each.series.label)}{ratio}", width))
    return found, is_cut


def _add_reason(lines: list[str], reason: str, start: int, width: int, *, cut: bool) -> bool:
    """Add a reason behind an alert in column `start`, or below it; return whether it is cut."""
    is_behind = len(lines[-1]) < start < width
    indent = " " * (start if is_behind else len(GAP) * 3)
    room = width - len(indent)
    texts = [text.removeprefix(GAP) for text in folded(reason, room)]
    if is_cut := cut and len(texts) > 1:
        texts = [shorten(reason, room, placeholder="…")]
    if is_behind:
        lines[-1] = f"{lines[-1]:{start}}{texts.pop(0)}"
    lines += [f"{indent}{text}" for text in texts]
    return is_cut


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

    `dashboard` is the configured address, or empty.
    """
    page = page_of(alert)
    if not dashboard or not page:
        return dashboard
    base = dashboard.partition("#")[0].partition("?")[0]
    return f"{base.removesuffix('index.html').rstrip('/')}/{page}"


def with_pages(site: Snapshot) -> list[Alert]:
    """Return the alerts that have a page: the open ones and the newest of the past."""
    past = sorted(site.past, key=lambda each: each.ended or site.now, reverse=True)
    return [each for each in (*site.alerts, *past[:MOST_PAST]) if each.number is not None]
