"""Alerts in a line each, their lines fitted to a terminal, and the addresses of their pages."""

from __future__ import annotations

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

#: The headings under which alerts are listed.
ATTENTION: Final = "Needs attention"
ACKNOWLEDGED: Final = "Acknowledged"
INFORMATION: Final = "For information"
#: The number of past alerts that have a page: the newest.
MOST_PAST: Final = 40

# ReFrame's names contain every parameter, even one for which the site offers no choice.
_IDLE_PARAMETERS: Final = re.compile(r" %\w+=(null|default)\b")
# With fewer columns than this behind the subject, a reason is below it.
_LEAST_REASON: Final = 40
# An own level this close to 1, as a logarithm, counts as equal to the other peers.
_ALIKE: Final = 0.05


def sections(site: Snapshot) -> dict[str, list[Alert]]:
    """Return the alerts by heading; those for `INFORMATION` do not affect the exit status."""
    found: dict[str, list[Alert]] = {ATTENTION: [], ACKNOWLEDGED: [], INFORMATION: []}
    for alert in site.alerts:
        heading = INFORMATION if alert.exit_status == snapshot.OK else ATTENTION
        found[ACKNOWLEDGED if alert.is_quiet else heading].append(alert)
    found[INFORMATION].sort(key=lambda alert: alert.severity is Severity.COLLAPSED)
    return found


def details(alert: Alert, site: Snapshot, *, short: bool = False) -> list[str]:
    """Return what the digest shows of an alert behind its severity and subject.

    This is one text with the reason, with level and cause, or with who acknowledged it; otherwise
    four: level and next step, since when, certainty, and an acknowledgement that does not hold.
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
    """Return the level of an alert without a reason, since when, and the certainty.

    If the cause is known, `since when` is the cause with its date. The level of several members is
    their median ratio in percent; unstable members have none.
    """
    level = since = ""
    if alert.peer and (alert.peer.is_slow or not alert.members):
        place = place_of(alert, site)
        called = place.name_of(alert.peer.name.name) if place else ""
        name = "" if called in alert.subject else f"{called.partition(' of ')[0]} "
        if not alert.peer.is_slow:  # `since` is when it became slow
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
        day = day_text(alert.since, site.now)
        since = f"{word} {snapshot.day_and_time(alert.since) if known else day}"
    return level, since, alert.certainty.value if alert.certainty else ""


def _speed(peer: snapshot.SlowPeer) -> str:
    """Return the speed of a slow peer over its own level, or over the others if they agree."""
    worst = next((name for name, each in peer.ratios.items() if each == peer.ratio), "")
    own = peer.own.get(worst, 1.0)
    if abs(math.log(own)) < _ALIKE:
        return f"{writing.times(peer.ratio.value)} × the others"
    return f"{writing.times(peer.ratio.value / own)} × its level"


def place_of(alert: Alert, site: Snapshot) -> Place | None:
    """Return the place of the alert's slow target or node, None without one."""
    name = alert.peer and alert.peer.name
    wanted = name and (name.kind, name.system, name.where)
    return next((e for e in site.places if (e.kind, e.system, e.where) == wanted), None)


def cause_text(alert: Alert, site: Snapshot) -> str:
    """Return the cause of an alert with its date and odds; empty if unknown.

    It is empty, too, if the subject already names the slow target or node.
    """
    cause = alert.cause
    return "" if cause is None or alert.subject in cause.what else odds_text(cause, site.now)


def by_day(events: Iterable[snapshot.AlertEvent]) -> list[snapshot.AlertEvent]:
    """Return events, with the same event of several series on one day merged into one.

    In the log, each series has its own event, at the time of its own run in a session.
    """
    found: dict[object, snapshot.AlertEvent] = {}
    for each in events:
        is_of_series = each.kind in (snapshot.FELL, snapshot.TURNED)
        place = (each.when.date(), each.kind, each.state) if is_of_series else id(each)
        names = dict.fromkeys([*(found[place].names if place in found else ()), *each.names])
        found[place] = replace(each, names=tuple(names))
    return [*found.values()]


def news_text(event: snapshot.AlertEvent, site: Snapshot) -> str:
    """Return in a few words a further fall, or a cause that became known or uncertain."""
    if event.kind == snapshot.FELL:
        labels = [each.label for each in site.series if each.name in event.names]
        names = f": {some(labels)}" if labels else ""
        number = writing.plural(len(event.names), "series")
        return f"{number} fell again, seen on {day_text(event.when, site.now)}{names}"
    cause = odds_text(event.cause, site.now) if event.cause else "no longer certain"
    return f"the cause{' of the further fall' if event.names else ''}: {cause}"


def subject(alert: Alert) -> str:
    """Return the number and the subject of an alert, without idle parameters of a check."""
    about = _IDLE_PARAMETERS.sub("", alert.subject)
    return about if alert.number is None else f"{alert.number} {about}"


def title(alert: Alert | LedgerEntry, site: Snapshot) -> str:
    """Return the number and subject of an alert, with its system if the site has several.

    Each system has its own numbers, and a subject does not always name the system.
    """
    said = subject(alert) if isinstance(alert, Alert) else alert.subject
    return writing.at_system(said, alert.system, site)


def command_on(alert: Alert, site: Snapshot, command: str, options: str = "") -> str:
    """Return a command about an alert, with its system if another system uses the same number."""
    alike = {e.system for e in (*site.alerts, *site.past) if e.number == alert.number}
    is_shared = alert.number is not None and len(alike) > 1 and not site.only
    system = f"--system {shlex.quote(alert.system)}" if is_shared else ""
    return writing.command_text(command, alert.name, system, writing.view_options(site), options)


def sharing(site: Snapshot, alert: Alert) -> tuple[str, tuple[Series, ...]]:
    """Return the field that the members of an alert share, and all series with the same value.

    Series that were first measured after the change are left out. For an alert whose members share
    no field, return an empty string and its members.
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
    """Return whether a series had a run before the change at `since`, so that it could move."""
    return since is None or (len(series.history) > 0 and series.history.first < since)


def counted_members(alert: Alert, site: Snapshot) -> str:
    """Return how many of the series that its subject covers are members, as `2 of 4 series`.

    Members that the subject does not cover joined later: `6 of 6 series and 1 other`. Empty for an
    alert about a single series.
    """
    if alert.peer and alert.members:
        return f"with {len(alert.members)} series"
    is_single = len(alert.members) == 1 and alert.shared is None
    if not alert.members or is_single or alert.reason:
        return ""
    if alert.shared is None:  # the total is not known
        return f"{len(alert.members)} series"
    keys = {each.key for each in sharing(site, alert)[1]}
    mine = keys & alert.keys
    variables = {each.variable for each in mine}
    every = [each for each in keys if each.variable in variables]
    others = len(alert.keys) - len(mine)
    more = f" and {others} other{'' if others == 1 else 's'}" if others else ""
    return f"{len(mine)} of {len(every)} series{more}"


def named(alert: Alert, site: Snapshot, *, counted: bool = True) -> str:
    """Return the title of an alert, with the number of its series in brackets if `counted`."""
    number = counted_members(alert, site) if counted else ""
    return printable(title(alert, site)) + (f" ({number})" if number else "")


def alert_blocks(
    alerts: Sequence[Alert], site: Snapshot, width: int, *, cut: bool, members: bool
) -> tuple[list[list[str]], bool]:
    """Return the lines of each alert, and whether a reason was cut.

    If lines are too long, levels are shortened, then counts of members are left out, and then
    subjects are wrapped. `cut` shortens reasons to one line, unless they may end in a remedy.
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
    # reasons begin in the same column behind their subjects, if there is room
    rooms = [width - len(lines[0]) - len(GAP) for lines in found]
    fitting = (
        width - room
        for room, cells in zip(rooms, said, strict=True)
        if len(cells) == 1 and room >= min(len(cells[0]), _LEAST_REASON)
    )
    start, is_cut = max(fitting, default=width), False
    for alert, lines, cells in zip(alerts, found, said, strict=True):
        if len(cells) == 1:
            # a failure without a date is not of a check, and its reason ends in a remedy
            short = cut and not (alert.severity is Severity.FAILED and not alert.since)
            is_cut |= _add_reason(lines, cells[0], start, width, cut=short)
        elif cells[-1]:
            _add_reason(lines, cells[-1], width, width, cut=False)
        for each in alert.members if members and len(alert.members) > 1 else ():
            ratio = f": {ratio_text(each.ratio)}" if each.ratio else ""
            lines.extend(folded(f"{GAP * 3}{printable(each.series.label)}{ratio}", width))
    return found, is_cut


def _add_reason(lines: list[str], reason: str, start: int, width: int, *, cut: bool) -> bool:
    """Add a reason to an alert's lines, in column `start` or below; return whether it is cut."""
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
    """Return the path of an alert's page below the dashboard; empty without a number.

    It never changes, because numbers are permanent within a system.
    """
    if alert.number is None:
        return ""
    return f"alerts/{writing.page_name(alert.system)}-{alert.number}.html"


def address_of(alert: Alert, dashboard: str) -> str:
    """Return the address of an alert's page, or of the dashboard if the alert has no page.

    `dashboard` is the configured address, or empty.
    """
    page = page_of(alert)
    if not dashboard or not page:
        return dashboard
    base = dashboard.partition("#")[0].partition("?")[0]
    return f"{base.removesuffix('index.html').rstrip('/')}/{page}"


def with_pages(site: Snapshot) -> list[Alert]:
    """Return the alerts that have a page: open ones and the newest past ones."""
    past = sorted(site.past, key=lambda each: each.ended or site.now, reverse=True)
    return [each for each in (*site.alerts, *past[:MOST_PAST]) if each.number is not None]
