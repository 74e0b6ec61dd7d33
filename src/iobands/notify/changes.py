"""Finds what has changed since the last messages, and writes the new ones.

Alerts begin, become worse, are still open or are over. A topic is the subject of a message: one
alert, or several that belong together. A topic is recognised by its series, as the name of an alert
changes while it grows.
"""

from __future__ import annotations

import math
import re
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from iobands import snapshot
from iobands.notify.outbox import ENDED, Message, Topic
from iobands.snapshot import Alert, AlertEvent, Severity, Snapshot, printable
from iobands.views import alert_lines, writing

BEGAN: Final = "began"
WORSE: Final = "worse"
CONFIRMED: Final = "confirmed"
OPEN: Final = "still open"
NEW_NAME: Final = "renamed"
NEW_CAUSE: Final = "cause"

#: Prefix of a member that is a numbered alert; its system, a colon and its number follow.
_ALERT: Final = "alert:"
#: After this time an open topic is sent once more. Further falls are sent at most this often.
_REMIND: Final = timedelta(days=7)
# A flaky check is news again when it has failed this many times in a row.
_IN_A_ROW: Final = 3
_MOST_REASONS: Final = 10  # of a topic that are news, as each run may say something else
_KINDS: Final = {
    Severity.INCIDENT: "drop",
    **dict.fromkeys(snapshot.LASTING, "drop"),
    Severity.NO_DATA: "missing",
    Severity.UNFIT: "unfit",
    Severity.FAILED: "failed",
    Severity.FLAKY: "flaky",
    Severity.WATCH: "suspicion",
    Severity.COLLAPSED: "collapse",
    Severity.IMPROVED: "rise",
}
_RANK: Final = {severity.value: place for place, severity in enumerate(Severity)}
#: The kinds that are worse with more members; a change is worse with a lower level.
_COUNTED: Final = ("missing", "unfit", "failed")
# Prefix of a member that is the subject of an alert without series.
_NAME: Final = "name:"


@dataclass(frozen=True)
class Event:
    """A change of a topic, to be sent; `alerts` are its current alerts, empty if it is over.

    `news` are further falls of alerts, and causes found, since the last message. It is `undone` if
    nothing became worse, but the acknowledgement was withdrawn.
    """

    kind: str
    topic: Topic
    alerts: tuple[Alert, ...] = ()
    news: tuple[AlertEvent, ...] = ()
    undone: bool = False


def changes(
    before: Sequence[Topic], site: Snapshot, severities: frozenset[str]
) -> tuple[list[Topic], list[Event]]:
    """Return the open topics now, the oldest first, and what changed since `before`.

    Only alerts with `severities` begin a topic; it then goes on, whatever its severity becomes.
    A topic that began in the future was recorded under a wrong clock. It counts as begun now, as
    its reminder would otherwise not come for years. While the clock is wrong, only alerts about the
    clock are news, and no topic is over.
    """
    before = [replace(each, began=min(each.began, site.now)) for each in before]
    alerts = [each for each in site.alerts if not site.clock or each.subject == snapshot.CLOCK]
    in_doubt = any(each.subject == snapshot.CLOCK for each in site.alerts)
    of_topic: defaultdict[str, list[Alert]] = defaultdict(list)
    merged: set[str] = set()  # topics whose alerts another topic reports; they stay open with it
    new: list[Alert] = []
    for alert in alerts:
        kind = _KINDS[alert.severity]
        ids = [each.id for each in before if each.kind == kind and _is_of(alert, each)]
        if ids:
            of_topic[ids[0]].append(alert)
            merged.update(ids[1:])
        elif alert.severity.value in severities and not _is_flaky_again(alert, site, severities):
            new.append(alert)
    topics: list[Topic] = []
    events: list[Event] = []
    for topic in before:
        if mine := of_topic.get(topic.id):
            what, after = _followed(topic, mine, site.now)
            if what:
                after = replace(after, events=after.events + 1, severities=tuple(_heard(topic)))
                news = _events(mine, snapshot.FELL)[topic.falls :]
                news += [] if topic.found is None else _events(mine, snapshot.CAUSED)[topic.found :]
                is_known = any(each.acknowledgement for each in mine)
                fell = after.falls > topic.falls
                is_worse = is_known or _is_worse(replace(topic, quiet=False), after, fell=fell)
                undone = topic.quiet and not is_worse
                events.append(Event(what, after, tuple(mine), tuple(news), undone))
            topics.append(after)
        elif topic.id in merged or in_doubt or not _is_over(topic, site):
            topics.append(topic)
        elif topic.sent:
            events.append(Event(ENDED, replace(topic, events=topic.events + 1)))
    for group in _grouped(new):
        topics.append(_begun(group, site.now))
        if topics[-1].sent:
            events.append(Event(BEGAN, topics[-1], tuple(group)))
    return topics, events


def _is_flaky_again(alert: Alert, site: Snapshot, severities: frozenset[str]) -> bool:
    """Return whether samples are missing only because a check failed that is known to be flaky."""
    if alert.severity is not Severity.NO_DATA or Severity.FLAKY.value not in severities:
        return False
    flaky = {key for each in site.alerts if each.severity is Severity.FLAKY for key in each.keys}
    for series in (member.series for member in alert.members):
        newest = series.status.when or snapshot.LONG_AGO
        failed = [miss.is_failure for miss in series.missing if miss.when > newest]
        is_known = series.key in flaky and site.now - newest < _REMIND
        if not (is_known and all(failed) and 0 < len(failed) < _IN_A_ROW):
            return False
    return True


def _is_of(alert: Alert, topic: Topic) -> bool:
    if topic.system and topic.system != _system_of([alert]):
        return False
    if alert.number is not None and any(each.startswith(_ALERT) for each in topic.members):
        return _numbered(alert) in topic.members
    return not _members([alert]).isdisjoint(topic.members)  # also from before alerts had numbers


def _system_of(alerts: Iterable[Alert]) -> str:
    """Return the system of alerts; empty if they are of several or of none."""
    found = {name for alert in alerts for name in (alert.system, *(e.system for e in alert.keys))}
    return found.pop() if len(found := found - {""}) == 1 else ""


def _grouped(alerts: Iterable[Alert]) -> list[list[Alert]]:
    """Return new alerts, grouped by topic; each change is a topic of its own.

    Missing samples of a file system are one topic, and so are checks that fail alike in one phase,
    and what is unfit for one reason.
    """
    found: defaultdict[tuple[object, ...], list[Alert]] = defaultdict(list)
    for number, alert in enumerate(alerts):
        kind = _KINDS[alert.severity]
        if kind == "missing" and alert.members:
            key = alert.members[0].series.key
            found[kind, key.system, key.file_system].append(alert)
        elif kind == "unfit":
            found[kind, alert.system, alert.reason].append(alert)
        elif kind in _COUNTED:
            found[kind, alert.failure].append(alert)
        else:
            found[kind, number].append(alert)
    return list(found.values())


def _begun(alerts: Sequence[Alert], now: datetime) -> Topic:
    members, quiet = _members(alerts), all(alert.is_quiet for alert in alerts)
    severities = (alert.severity.value for alert in alerts)
    ratios = [writing.worst_member(each).ratio for each in alerts if each.members]
    levels = [each for each in ratios if each and math.isfinite(each.low + each.high)]
    worst = min(levels, key=lambda each: each.value, default=None)
    more = f" and {len(alerts) - 1} more" if len(alerts) > 1 else ""
    return Topic(
        id=uuid.uuid4().hex,
        kind=_KINDS[alerts[0].severity],
        title=printable(alert_lines.subject(alerts[0])) + more,
        severity=min(severities, key=_RANK.__getitem__),
        members=tuple(sorted(members)),
        number=len(members),
        began=now,
        low=worst.low if worst else None,
        high=worst.high if worst else None,
        sent=not quiet,
        quiet=quiet,
        falls=len(_events(alerts, snapshot.FELL)),
        found=len(_events(alerts, snapshot.CAUSED)),
        system=_system_of(alerts),
        reasons=tuple(sorted({*_reasons(alerts)})),
        certain=all(each.certainty in (None, snapshot.Certainty.CERTAIN) for each in alerts),
    )


def _followed(topic: Topic, alerts: Sequence[Alert], now: datetime) -> tuple[str | None, Topic]:
    """Return what is new about an open topic, if anything, and its current state."""
    today = _begun(alerts, now)
    members = tuple(sorted({*today.members, *topic.members}))
    heard = tuple(sorted({*(topic.reasons or ()), *(today.reasons or ())}))[:_MOST_REASONS]
    after = replace(topic, members=members, quiet=today.quiet, found=today.found, reasons=heard)
    is_due = not topic.reminded and now - topic.began >= _REMIND
    falls = _events(alerts, snapshot.FELL)
    # the series of a slide fall again one by one
    known, fell = falls[: topic.falls], len(falls) > topic.falls
    fell &= not known or now - known[-1].when >= _REMIND
    if not today.quiet and _is_worse(topic, today, fell=fell):
        kept = {"id": topic.id, "members": members, "began": topic.began, "events": topic.events}
        kept |= {"system": topic.system, "reasons": heard}
        kept |= {"certain": topic.certain or today.certain, "reminded": topic.reminded or is_due}
        return WORSE, replace(today, **kept)
    if today.quiet or not topic.sent:
        return None, after
    said = replace(after, severity=today.severity, title=today.title, falls=today.falls)
    if not topic.certain and today.certain:
        return CONFIRMED, replace(said, certain=True)
    is_new_reason = topic.reasons is not None and len(heard) > len(topic.reasons)
    if is_new_reason or (topic.found is not None and (today.found or 0) > topic.found):
        return NEW_CAUSE, said
    is_known = all(_numbered(each) in topic.members for each in alerts)
    if is_known and (today.title != topic.title or today.severity not in _heard(topic)):
        return NEW_NAME, said
    return (OPEN, replace(said, reminded=True)) if is_due else (None, after)


def _reasons(alerts: Iterable[Alert]) -> Iterator[str]:
    """Yield what failed, without what differs from run to run; nothing where only time passes."""
    for reason in (each.reason for each in alerts if _KINDS[each.severity] in _COUNTED):
        if (failed := snapshot.what_failed(reason)) != reason:
            yield failed[:_MOST_TITLE]


def _heard(topic: Topic) -> list[str]:
    """Return the severities that the messages about a topic had."""
    return sorted({*topic.severities, topic.severity} if topic.sent else ())


def _is_worse(topic: Topic, today: Topic, *, fell: bool) -> bool:
    """Return whether a topic is worse than when it was last sent.

    That is so if its severity is worse, if it is critical again after it was acknowledged, if it
    `fell` again, if its level is lower by intervals that do not overlap, or if twice as many
    members are missing, unfit or failed.
    """
    is_graver = _RANK[today.severity] < _RANK[topic.severity]
    if is_graver or topic.quiet or fell:
        return True
    if topic.kind in _COUNTED:
        return today.number >= 2 * topic.number
    if topic.kind != "drop" or today.high is None or topic.low is None:
        return False
    return today.high < topic.low


def _events(alerts: Iterable[Alert], kind: str) -> list[AlertEvent]:
    return [each for alert in alerts for each in alert.events if each.kind == kind]


def _is_over(topic: Topic, site: Snapshot) -> bool:
    """Return whether a topic without alerts is over, and not just unread.

    Its system must be in the snapshot, and one of its series, or samples of a superseded one.
    """
    if topic.system and topic.system not in site.systems | {each.system for each in site.alerts}:
        return False
    named = {each for each in topic.members if not each.startswith((_NAME, _ALERT))}
    if named.isdisjoint(each.name for each in (*site.series, *site.retired)):
        fields = snapshot.SeriesKey.__dataclass_fields__
        columns = [snapshot.VARIABLE if name == "variable" else name for name in fields]
        rows = site.samples.select(*columns).unique().iter_rows()
        return not named or any(snapshot.slug(snapshot.SeriesKey(*row)) in named for row in rows)
    return True


def _members(alerts: Iterable[Alert]) -> set[str]:
    """Return the members of a topic: numbers of alerts and names of their series, or subjects."""
    found: set[str] = set()
    for alert in alerts:
        names = {member.series.name for member in alert.members}
        names |= {_numbered(alert)} if alert.number is not None else set()
        found |= names or {f"{_NAME}{alert.subject}"}
    return found


def _numbered(alert: Alert) -> str:
    return f"{_ALERT}{alert.system}:{alert.number}"


_MOST_ALERTS: Final = 10
_MOST_SERIES: Final = 20
# characters; services refuse a long message, and the remedy is at the end of a reason
_MOST_LINE: Final = 1000
_MOST_TEXT: Final = 16_000  # Mattermost splits a longer post, and code in it becomes Markdown
_MOST_TITLE: Final = 180
# What stands in a reason before the cause; the text of a message has it.
_BEFORE_THE_CAUSE: Final = re.compile(
    r"the (run|check) of \d+ \w+ \d+ \d+:\d+ (failed: )?(sanity error: )?(exit status \d+: )?"
)
#: The text about alerts that are over, by severity; by default `no longer SEVERITY`.
_ENDING_TEXTS: Final = {
    Severity.NO_DATA.value: "no sample is missing any more",
    Severity.INCIDENT.value: "no longer an incident",
}


def message_of(event: Event, site: Snapshot, page: str) -> Message:
    """Return the message about an event."""
    topic = event.topic
    news = [alert_lines.news_text(each, site) for each in alert_lines.by_day(event.news)]
    lines = [printable(f"New: {each}") for each in dict.fromkeys(news)]
    lines += [line for alert in event.alerts[:_MOST_ALERTS] for line in _of_alert(alert, site)]
    if (hidden := len(event.alerts) - _MOST_ALERTS) > 0:
        lines.append(f"and {hidden} more")
    system, number = _alert_of(event, site)
    alike = (each for each in (*event.alerts, *site.past) if each.system == system)
    own = next((each for each in alike if number and each.number == number), None)
    word = "no longer acknowledged" if event.undone else event.kind
    if event.kind == NEW_NAME and topic.severity not in topic.severities:
        word = "now"  # it is another kind of alert
    if event.kind == BEGAN and own and any(e.kind == snapshot.REOPENED for e in own.events):
        word = snapshot.REOPENED
    headline = _headline(event, own, site)
    if event.kind == ENDED:
        word, *said = _ending(topic, own, headline, site)
        lines += said
    elif event.alerts and event.alerts[0].members:
        # a part of a command might do something else
        steps = (each for each in _steps(event.alerts[0], site) if len(each) <= _MOST_LINE)
        lines += ["", *steps]
    when = f"{system}, at" if system else "at"
    when = f"{when} {writing.time_text(site.now)} UTC; all times are UTC"
    lines += ["", writing.summary(site), when]
    page = alert_lines.address_of(own, page) if own else page
    lines += [page] if page else []
    lines = [writing.cut(each, _MOST_LINE) for each in lines]
    alerts = event.alerts or ((own,) if own else ())
    members = (member for alert in alerts for member in alert.members)
    labels = (writing.cut(printable(member.series.label), _MOST_LINE) for member in members)
    worst = alerts[0] if alerts else None
    return Message(
        id=f"{topic.id}-{topic.events}",
        cause=topic.id,
        kind=event.kind,
        severity=topic.severity,
        title=f"{word}: {topic.severity} {headline}",
        text=writing.cut(writing.fitted(lines, writing.MAIL_WIDTH), _MOST_TEXT),
        when=site.now.isoformat(),
        page=page,
        system=system,
        alert=number,
        subject=writing.cut(printable(worst.subject) if worst else topic.title, _MOST_LINE),
        found=printable(alert_lines.cause_text(worst, site)) if worst else "",
        since=(worst.since if worst and worst.since else topic.began).isoformat(),
        certainty=worst.certainty.value if worst and worst.certainty else "",
        ratio=worst.ratio if worst else None,
        series=tuple(dict.fromkeys(labels))[:_MOST_SERIES],
    )


def _steps(alert: Alert, site: Snapshot) -> Iterator[str]:
    """Yield what to do about an alert with members, with the command."""
    if alert.reason:  # about missing samples, `explain` says more for a series than for the alert
        label, options = alert.members[0].series.label, writing.view_options(site)
        yield f"Next step: {writing.command_text('explain', label, options)}"
        return
    yield f"Next step: {alert_lines.command_on(alert, site, 'explain')}"
    known = alert_lines.command_on(alert, site, "acknowledge", "--reason TEXT")
    yield f"If the cause is known: {known}"


def _alert_of(event: Event, site: Snapshot) -> tuple[str, int | None]:
    """Return the system of a topic and, if it is one alert with a number, that number.

    A topic without a system, such as a failed session, gets the system of a site with only one.
    """
    numbered = [each for each in event.topic.members if each.startswith(_ALERT)]
    if len(numbered) == 1:
        system, _, number = numbered[0].removeprefix(_ALERT).rpartition(":")
        return system, int(number)
    if system := event.topic.system or _system_of(event.alerts):
        return system, None
    if len(site.systems) == 1 and not any(alert.keys for alert in event.alerts):
        return next(iter(site.systems)), None
    return "", None


def _headline(event: Event, own: Alert | None, site: Snapshot) -> str:
    """Return the subject of a message for its title, with details of an open alert, the first."""
    if len(event.alerts) == 1:
        (alert,) = event.alerts
        said = [printable(each) for each in alert_lines.details(alert, site, short=True)[:2]]
        words = [alert_lines.named(alert, site), *filter(None, said)]
    elif own and not event.alerts:
        words = [alert_lines.named(own, site, counted=False)]
    else:
        words = [writing.at_system(event.topic.title, event.topic.system, site)]
        words += [printable(each.reason) for each in event.alerts[:1] if each.reason]
    title = _BEFORE_THE_CAUSE.sub("", ", ".join(words))
    return title if len(title) <= _MOST_TITLE else f"{title[:_MOST_TITLE]}…"


def _of_alert(alert: Alert, site: Snapshot) -> Iterator[str]:
    said = "  ".join(printable(each) for each in alert_lines.details(alert, site) if each)
    yield f"{alert.severity.value}  {alert_lines.named(alert, site)}  {said}"
    if cause := alert_lines.cause_text(alert, site):
        yield printable(f"Cause: {cause}")
    if len(alert.members) > 1:
        for member in alert.members[:_MOST_SERIES]:
            ratio = f": {writing.ratio_text(member.ratio)}" if member.ratio else ""
            yield f"  {printable(member.series.label)}{ratio}"
        if (hidden := len(alert.members) - _MOST_SERIES) > 0:
            yield f"  and {hidden} more"


def _ending(topic: Topic, own: Alert | None, name: str, site: Snapshot) -> Iterator[str]:
    """Yield a word for how a topic ended, then lines about its beginning and end.

    The word is `replaced` if its series now have a graver alert, or no sample for another reason.
    """
    since = f"known since {writing.day_text(topic.began, site.now)}"
    end = own.end if own and snapshot.MERGED not in own.end else ""
    keys = {each.key for each in site.series if each.name in topic.members}
    if topic.kind == "missing":
        found = (e.subject for e in site.obstacles if keys & e.keys)
        after = [f"{Severity.UNFIT.value} {subject}" for subject in dict.fromkeys(found)]
    else:
        graver = [e for e in site.alerts if _RANK[e.severity.value] <= _RANK[topic.severity]]
        also = (each for each in graver if keys & each.keys)
        after = [f"{each.severity.value} {alert_lines.named(each, site)}" for each in also]
    if after and not end:
        yield "replaced"
        yield printable(f"{name}: now {'; '.join(after)}; {since}")
    else:
        is_retired = not keys and any(each.name in topic.members for each in site.retired)
        is_rise = topic.severity == Severity.IMPROVED
        end = end or ("retired" if is_retired else ENDED)
        yield snapshot.how_ended(end, snapshot.UP if is_rise else None)
        yield f"{name}: {_ENDING_TEXTS.get(topic.severity, f'no longer {topic.severity}')}; {since}"
    for entry in site.ledger.entries:
        if own and entry.identity == own.identity:
            yield printable(f"How it ended: {entry.ending}")
