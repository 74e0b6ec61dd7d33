"""Turns a person's request into the action to log: about which alert or series, since when."""

from __future__ import annotations

import math
import shlex
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any, Final

from iobands.snapshot import (
    ACKNOWLEDGE,
    DISCARD,
    FIELD_OF,
    LASTING,
    REBASELINE,
    RESOLVE,
    RETIRE,
    UNDO,
    Action,
    Alert,
    Member,
    PeerName,
    Series,
    SeriesKey,
    Severity,
    Span,
    exact_moment,
    in_force,
    slug,
)

#: The alerts that people can act on: they are about a change.
CHANGES: Final = (Severity.INCIDENT, *LASTING, Severity.FLAKY, Severity.IMPROVED)

# Added to the time of the newest sample, which may have a fraction of a second.
_NEXT: Final = timedelta(seconds=1)
_NAMED: Final = 8
_NEAREST: Final = 3


_Log = Mapping[SeriesKey | PeerName, Sequence[Action]]


class RequestError(ValueError):
    """There is nothing to act on; the message says why and what to do."""


@dataclass(frozen=True)
class Request:
    """A person's request; `at` is the span of the samples to discard.

    `system` is the value of `--system`, which the commands suggested in messages need as well.
    """

    kind: str
    who: str
    reason: str
    since: datetime | None = None
    force: bool = False
    verdict: str | None = None
    at: Span | None = None
    ticket: str | None = None
    owner: str | None = None
    system: str | None = None


@dataclass(frozen=True)
class Subject:
    """What can be acted on: an alert with its members, or one series, which may be in an alert.

    A slow `peer` is a subject without series: the series that fell with it are a second subject of
    the same alert, which `follows`. `number` is the number of the alert, open or past. `missing` is
    the name of the alert about a missing sample of the series, or empty.
    """

    name: str
    series: tuple[Series, ...]
    alert: Alert | None = None
    peer: PeerName | None = None
    number: int | None = None
    follows: bool = False
    missing: str = ""

    @property
    def title(self) -> str:
        """The number of its alert, if any, and its name."""
        return f"{self.number} {self.name}" if self.number else self.name

    @property
    def called(self) -> tuple[str, str]:
        """Its system and its title: numbers and names are unique within a system only."""
        return (self.system if self.keys else ""), self.title

    @property
    def keys(self) -> tuple[SeriesKey | PeerName, ...]:
        """The series, or the peer, that an action on it names."""
        return (self.peer,) if self.peer else tuple(each.key for each in self.series)

    @property
    def system(self) -> str:
        """The system of its series or peer."""
        return self.keys[0].system


def subjects_of(
    series: Sequence[Series], alerts: Sequence[Alert], past: Sequence[Alert]
) -> list[Subject]:
    """Return what can be acted on: open alerts, past alerts, every series."""
    changed = [alert for alert in alerts if alert.severity in CHANGES]
    of_series = {key: alert for alert in reversed(changed) for key in alert.keys}  # worst wins
    lost = {
        k: each.subject for each in alerts if each.severity is Severity.NO_DATA for k in each.keys
    }
    own = (
        Subject(each.label, (each,), of_series.get(each.key), missing=lost.get(each.key, ""))
        for each in series
    )
    known = {each.key: each for each in series}
    of_alerts = (one for each in (*changed, *reversed(past)) for one in _of_alert(each, known))
    return [*of_alerts, *own]


def _of_alert(alert: Alert, known: Mapping[SeriesKey, Series]) -> list[Subject]:
    peer = alert.peer.name if alert.peer else None
    members = [known[key] for key in alert.keys if key in known]
    if not alert.keys:  # of a past alert whose series are retired, only names are left
        names = {name for each in alert.events for name in each.names}
        members = [each for each in known.values() if each.name in names]
    members.sort(key=lambda each: each.key.sort_key())
    about = alert if alert.ended is None else None
    own = Subject(
        alert.subject, tuple(members), about, number=alert.number, follows=peer is not None
    )
    if peer is None:
        return [own]
    return [Subject(alert.subject, (), about, peer, alert.number), *([own] if members else [])]


def selected(
    subjects: Sequence[Subject], words: str, request: Request, *, every: bool, log: _Log
) -> list[Subject]:
    """Return the subjects that `words` select: by number, exact name, or all words in any order.

    With `every`, an exact name does not hide other subjects with all words. The series that fell
    with a slow target or node are selected with it if the action ends their alert, or undoes that.
    Only subjects on which the action is possible count. Members of a selected alert are not
    selected again, and past alerts only if nothing else is.

    Raises:
        RequestError: `words` match nothing or, without `every`, more than one subject.
    """
    numbered = [each for each in subjects if each.number and words == str(each.number)]
    acted = [each for each in subjects if each.keys]  # the series of a past alert may be retired
    said = words.casefold()
    exact = [each for each in acted if said in _names(each)]
    asked = set() if words.isdecimal() else {*said.split()}  # a number alone is no part of a name
    named = [each for each in acted if asked and asked <= _words(each)]
    matching = numbered or (named or exact if every else exact or named)
    if not matching:
        if words.isdecimal():
            what, listed = "alert has the number", "alerts"
            near = [each.title for each in subjects if each.alert and each.number]
            known = "open alerts"
        else:
            what, listed = "series or alert is named", "status"
            near = get_close_matches(words, {each.title for each in acted}, _NEAREST, cutoff=0)
            known = "the closest are"
        names = "; ".join(dict.fromkeys(near)) or "none"
        raise RequestError(
            f"no {what} {words!r}; {known}: {names}; list all with: iobands {listed} --all"
        )
    # an alert that is over hides no open one whose name begins with its own
    others = [] if any(each.alert or not each.number for each in matching) else named
    possible = ([e for e in some if _is_possible(e, request, log)] for some in (matching, others))
    able = next(filter(None, possible), matching)
    newest = [each for each in able if each.called == able[0].called]
    able = [each for each in able if each.alert or not each.number] or newest
    shared = [each.alert for each in able if each.number]
    able = [each for each in able if each.number or each.alert not in shared]
    titles = [*dict.fromkeys(each.called for each in able)]
    if len(titles) > 1 and not every:
        several = len({system for system, _ in titles}) > 1
        names = "; ".join(
            f"{t} system={s}" if several and f" system={s} " not in t else t
            for s, t in titles[:_NAMED]
        )
        more = f"; and {len(titles) - _NAMED} more" if len(titles) > _NAMED else ""
        system = "--system or " if several else ""
        raise RequestError(f"{words!r} matches {names}{more}; name one, or give {system}--all")
    return able


def action_of(
    subject: Subject,
    request: Request,
    every: Sequence[Series],
    log: _Log,
    now: datetime,
    future: Mapping[SeriesKey, Sequence[datetime]],
) -> Action | None:
    """Return the action to log, or None if the same action is in force already.

    `every` are all series of the site, `log` has all actions about each, and `future` has the
    times of samples that are dated in the future and so in no history.

    Raises:
        RequestError: there is no such alert or series, nothing to undo, or the time is impossible.
    """
    if request.since and request.since > now:
        raise RequestError(f"{request.since.isoformat()} is in the future; give an earlier time")
    if not subject.keys:
        why = "its series are retired, superseded or missing; to act on a retired one, name it"
        raise RequestError(f"{subject.title}: {why}")
    action, last = _about(subject, request, every, now), last_action(subject, log)
    if request.kind == UNDO:
        if last is None:
            raise RequestError(f"{subject.title}: there is nothing to undo")
        # an alert that was answered may no longer show all the series that the answer names
        is_answer = subject.number and last.alert == subject.number
        return replace(action, of=last.when, series=last.series if is_answer else action.series)
    if why := _why_not(subject, request, last):
        raise RequestError(f"{subject.title} {why}")
    if request.kind == RETIRE:
        is_done = last and last.kind == RETIRE and all(map(last.names, subject.keys))
        return None if is_done else action
    if request.kind == DISCARD:
        span = _discarded(subject, request, future)
        return replace(action, since=span.begin, until=span.end)
    if subject.alert is None:  # a rebaseline since a given time
        return replace(action, since=request.since)
    return _answer(subject, subject.alert, request, action)


def _answer(subject: Subject, alert: Alert, request: Request, action: Action) -> Action | None:
    """Return the answer to an open alert, or None if the same one is in force already."""
    if request.kind == ACKNOWLEDGE and (known := alert.acknowledgement):
        before = known.action  # its owner and its ticket stay, unless others are given
        owner, ticket = action.owner or before.owner, action.ticket or before.ticket
        action = replace(action, owner=owner, ticket=ticket)
        said = (before.reason, before.owner, before.ticket)
        if alert.is_quiet and said == (action.reason, owner, ticket):
            return None
    peer = alert.peer if subject.peer else None
    members = [each for each in alert.members if peer or each.series in subject.series]
    if request.kind == RESOLVE and not request.force and (low := _still_low(members)):
        raise RequestError(
            f"{low}, and the runs since the change would no longer count. If that is right, give "
            "--force. If the cause is known, use `iobands acknowledge`; if the level stays, "
            "`iobands rebaseline`"
        )
    level = peer.ratio.value if peer else replace(alert, members=tuple(members)).ratio
    ratio = round(level, 4) if level and math.isfinite(level) else None
    action = replace(action, direction=alert.direction, verdict=request.verdict, ratio=ratio)
    if request.kind == REBASELINE:
        level_began = alert.since if peer else _level_began(alert, members)
        return replace(action, since=request.since or level_began)
    begin = _begin(alert, [] if peer else [each.series for each in members])
    if request.since and request.since < begin:
        raise RequestError(f"{subject.title}: the change began later: {begin.isoformat()}")
    # All samples so far belong to the alert, also ones dated by a clock that is ahead of ours.
    newest = (each.status.when + _NEXT for each in subject.series if each.status.when)
    return replace(action, since=begin, until=request.since or max([action.when, *newest]))


def _begin(alert: Alert, series: Sequence[Series]) -> datetime:
    """Return the time from which runs of an alert do not count: its earliest likely beginning.

    But the runs that showed the end of an earlier change stay, or it would be open again.
    """
    assert alert.since is not None and alert.since_low is not None
    found = [each.status.evidence for each in series if each.status.evidence]
    # a drop or rise of a flaky check's series belongs to another alert
    own = [c for e in found if (c := e.open_change) and c.direction == alert.direction]
    since = min([alert.since, *(each.since for each in own)])
    ends = (each.closed for evidence in found for each in evidence.changes)
    before = (end + _NEXT for end in ends if end and end < since)
    return max([min([alert.since_low, *(each.since_low for each in own)]), *before])


def _level_began(alert: Alert, members: Sequence[Member]) -> datetime:
    """Return since when all members have their newest level, which further falls have lowered."""
    assert alert.since is not None
    found = [alert.since]
    for member in members:
        change = member.series.status.change
        if change and change.direction == alert.direction:
            found += [change.since, *(fall.since for fall in change.falls)]
    return max(found)


def _why_not(subject: Subject, request: Request, last: Action | None) -> str:
    """Return why an action is not possible, or ""; `last` is the last one in force."""
    kind, alert = request.kind, subject.alert
    if subject.peer and kind not in (ACKNOWLEDGE, RESOLVE, REBASELINE):
        return "is not a series; acknowledge, resolve or rebaseline it"
    if kind == REBASELINE and alert and alert.severity is Severity.FLAKY and not request.since:
        return "is about failed runs, not about a level; acknowledge or resolve it"
    # to discard the newest sample by the number of a past alert is most likely a wrong number
    by_kind = {DISCARD: request.at or not subject.number, REBASELINE: request.since, RETIRE: True}
    if alert or by_kind.get(kind):
        return ""
    system = f" --system {shlex.quote(request.system)}" if request.system else ""
    if subject.number:
        return f"has no open alert: it is over; see `iobands explain {subject.number}{system}`"
    if not subject.peer and subject.series[0].status.is_low_once:
        command = f"iobands discard {shlex.quote(subject.name)}{system} --reason TEXT"
        return f"is one collapsed run and needs no answer; to ignore it: {command}"
    own = "" if subject.peer else subject.series[0].status.state.value
    done = f"; the last action was {last.kind} on {last.when:%Y-%m-%d}" if last else ""
    why = f"its state is {own}" if own else "it is as fast as the others"
    return f"has no open alert: {why}{done}"


def _about(subject: Subject, request: Request, every: Sequence[Series], now: datetime) -> Action:
    """Return the action with its subject: a target or a node, or else series."""
    peer = subject.peer
    matches = ({FIELD_OF[peer.kind]: peer.where},) if peer else _matches(subject.series, every)
    named: dict[str, Any] = {peer.kind: peer.name} if peer else {}
    named |= {"subject": subject.name, "alert": subject.number}
    said = (request.who, request.reason, matches)
    return Action(request.kind, now, *said, **named, ticket=request.ticket, owner=request.owner)


def _discarded(
    subject: Subject, request: Request, future: Mapping[SeriesKey, Sequence[datetime]]
) -> Span:
    """Return the span of the samples to discard: the given one, or else the newest sample.

    Raises:
        RequestError: a series has no sample there.
    """
    times = {
        each.label: [*map(exact_moment, each.history.times), *future.get(each.key, ())]
        for each in subject.series
    }
    newest = [max(found) for found in times.values() if found]
    if not newest:
        raise RequestError(f"{subject.title} has no sample")
    span = request.at or Span(min(newest), max(newest))
    for label, found in times.items():
        if found and not any(when in span for when in found):
            near = min(found, key=lambda when: abs(when - span.begin)).isoformat()
            at = span.begin.isoformat()
            raise RequestError(f"{label} has no sample at {at}; the nearest is at {near}")
        if not request.at and sum(when in span for when in found) > 1:
            why = f"{label} has several samples since the newest of another series; give --at"
            raise RequestError(f"{subject.title}: {why}")
    return span


def last_action(subject: Subject, log: _Log) -> Action | None:
    """Return the newest action in force on all series of `subject`, or None.

    If the alert has a number, answers to other alerts do not count. An answer to it may name series
    that it no longer has.
    """
    mine = [
        action
        for key, every in log.items()
        if subject.number and key.system == subject.system
        for action in in_force(every)
        if action.alert == subject.number
        and bool(action.target or action.node) == bool(subject.peer)
    ]
    if mine:
        return max(mine, key=lambda action: action.when)
    of_each = [in_force(log.get(key, ())) for key in subject.keys]
    common = [action for action in of_each[0] if all(action in others for others in of_each)]
    known = [each for each in common if not (subject.number and each.alert)]
    return known[-1] if known else None


def _names(subject: Subject) -> set[str]:
    """Return its names in other commands, case-folded: also with its number and its system."""
    own = [slug(each.key) for each in subject.series]
    names = (subject.name, subject.title, *filter(None, [subject.missing]))
    named = (*names, *(f"{each} system={subject.system}" for each in names))
    return {each.casefold() for each in (*named, *(own if len(own) == 1 else ()))}


def _words(subject: Subject) -> set[str]:
    return {*f"{subject.title} system={subject.system}".casefold().split()}


def _is_possible(subject: Subject, request: Request, log: _Log) -> bool:
    if request.kind == UNDO:
        last = last_action(subject, log) if subject.keys else None
        return last is not None and not (subject.follows and last.alert != subject.number)
    if subject.follows:
        # series that are fast again have no new level to call normal
        members = subject.alert.members if subject.alert and request.kind == REBASELINE else ()
        return bool(_still_low(members)) or (request.kind == RESOLVE and subject.alert is not None)
    if request.kind in (RETIRE, DISCARD):
        return len(subject.series) == 1
    return subject.alert is not None or (request.kind == REBASELINE and request.since is not None)


def _still_low(members: Sequence[Member]) -> str:
    """Return a sentence about a newest run that is nearer to the drop than to the baseline, or "".

    Members that changed only as a group count by their median, as one of many is low by chance.
    """
    found: list[tuple[str, float, float]] = []
    of_group: list[tuple[float, float]] = []
    for each in members:
        value, change = each.series.status.value, each.series.status.change
        if value is None:
            continue
        if change and change.is_drop:
            found.append((each.series.label, value / change.baseline, change.ratio.value))
        elif change is None and each.ratio and each.baseline:
            of_group.append((value / each.baseline, each.ratio.value))
    if of_group:
        ratio, dropped = map(statistics.median, zip(*of_group, strict=True))
        found.append((f"{len(of_group)} series of the group", ratio, dropped))
    for name, ratio, dropped in found:
        if ratio < math.sqrt(min(dropped, 1.0)):
            return f"{name}: the newest run is still at {ratio:.2g} × the baseline"
    return ""


def _matches(series: Sequence[Series], every: Sequence[Series]) -> tuple[Mapping[str, object], ...]:
    """Return the fields that all `series` and no other ones share, or else the fields of each."""
    fields = [
        {name: value for name, value in each.key.fields().items() if name != "system"}
        for each in series
    ]
    of_first = fields[0].items()
    shared = {name: value for name, value in of_first if all(e[name] == value for e in fields)}
    wanted = {"system": series[0].key.system, **shared}.items()
    alike = sum(wanted <= each.key.fields().items() for each in every)
    return (shared,) if alike == len(series) else tuple(fields)
