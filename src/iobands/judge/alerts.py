"""Alerts from happenings: their members, severity, evidence today and acknowledgement."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from typing import Final

import numpy as np

from iobands.judge.causes import Records, candidates, tell_causes
from iobands.judge.conditions import ENDED_BY, WITHDRAWN, certainty, shared_by, subject_of
from iobands.judge.detect import Budget
from iobands.judge.fold import NEAR, Ending, Flaky, Happening, Story, fold
from iobands.judge.groups import GroupDrop
from iobands.judge.onset import onset_of
from iobands.snapshot import (
    ACKNOWLEDGE,
    CAUSED,
    CLOSED,
    DOWN,
    FLAKY,
    MERGED,
    RECOVERED,
    RETIRE,
    SHARED,
    TARGET,
    UP,
    Acknowledgement,
    Action,
    Alert,
    AlertEvent,
    Array,
    Cause,
    Change,
    Incident,
    Member,
    PeerName,
    Place,
    Ratio,
    Series,
    SeriesKey,
    Severity,
    SlowPeer,
    State,
    Times,
    in_utc,
    level_ratio,
    median_of,
    moment,
    ratio_of,
)

#: Which source describes a member that several happenings name: its own change first.
_SOURCES: Final = (Change, GroupDrop, Incident, Series, Flaky, PeerName)
_SEVERITIES: Final = {UP: Severity.IMPROVED, FLAKY: Severity.FLAKY}
# An acknowledged peer is critical again below this share of its acknowledged speed.
_WORSE: Final = 0.8
# Above this share of its level before, a series without a change of its own has not fallen.
_STAYED: Final = 0.95
# If more than one member in this many lacks the value that named its alert, the name says little.
_OTHERS: Final = 4
# The number of runs before a fall that give the level before it.
_BEFORE: Final = 200


@dataclass(frozen=True)
class System:
    """What the alerts of one system are made from; `series` are keyed by their names in files.

    `actions` are those in force, in the order of the log. `retired` are the series that are no
    longer judged. If the system `is_incomplete`, some of its files cannot be read.
    """

    name: str
    series: Mapping[str, Series]
    retired: Mapping[str, SeriesKey]
    places: Sequence[Place]
    actions: Sequence[Action]
    budget: Budget
    records: Records
    is_incomplete: bool = False

    @cached_property
    def _ends(self) -> Times:
        """The end of each session of the system, in order."""
        histories = [each.history for each in self.series.values()]
        last = max((each.sessions.max(initial=-1) for each in histories), default=-1)
        found = np.zeros(last + 1, "M8[ns]")
        for each in histories:
            np.maximum.at(found, each.sessions, each.times)
        return np.maximum.accumulate(found)

    def session_end(self, when: datetime) -> datetime:
        """Return the end of the session of a run at `when`, as far as it is known."""
        place = int(np.searchsorted(self._ends, in_utc(when)))
        return max(when, moment(self._ends[place])) if place < len(self._ends) else when

    @cached_property
    def peers(self) -> dict[str, PeerName]:
        """The targets and nodes by their names in texts."""
        return {
            place.name_of(name): PeerName(place.kind, place.system, place.where, name)
            for place in self.places
            for name in place.peers()
        }


def alerts_of(
    system: System,
    happenings: Sequence[Happening],
    logged: Sequence[AlertEvent] | None,
    now: datetime,
) -> list[Alert]:
    """Return the alerts of a system, past ones included, in the order of their numbers.

    `logged` are the events in the log of alerts. If it is None, the log cannot be read: then only
    open alerts are returned, without their numbers, since the numbers of this judgement may differ.
    """
    called, ended = partial(_subject, system), partial(_ended, system, now)
    stories = fold(happenings, logged or (), _traits(system), called, ended, now)
    find = partial(_candidates, system, [e for e in happenings if isinstance(e.source, PeerName)])
    found = []
    for story in stories:
        is_level = story.direction != FLAKY
        if is_level and (story.closed is None or story.logged < len(story.events)):
            tell_causes(story, now, system.session_end, find)
        alert = _of_story(system, story)
        causes = [each.cause for each in alert.events if each.kind == CAUSED and not each.names]
        likely = () if story.closed or not is_level else find(story, now, None) or ()
        found.append(replace(alert, cause=causes[-1] if causes else None, candidates=likely))
    if logged is None:
        found = [replace(each, number=None) for each in found if each.ended is None]
    return [each if each.ended else _acknowledged(system, each) for each in found]


def with_states(
    series: Sequence[Series], alerts: Sequence[Alert]
) -> tuple[list[Series], list[Alert]]:
    """Return the series and alerts, with the state of each open alert given to its members."""
    ways: defaultdict[SeriesKey, set[str | None]] = defaultdict(set)
    for alert in alerts:
        for key in alert.keys if alert.ended is None and alert.direction != FLAKY else ():
            ways[key].add(alert.direction)
    found = {}
    for each in series:
        state, change, mine = each.status.state, each.status.change, ways[each.key]
        if DOWN in mine:
            state = change.kind if change and change.is_drop else State.DEGRADED
        elif mine and state in (State.HEALTHY, State.WATCH):
            state = State.IMPROVED
        found[each.key] = replace(each, status=replace(each.status, state=state))

    def of(member: Member) -> Member:
        return replace(member, series=found.get(member.series.key, member.series))

    alerts_now = [replace(each, members=tuple(map(of, each.members))) for each in alerts]
    return [*found.values()], alerts_now


def _candidates(
    system: System, slow: Sequence[Happening], story: Story, when: datetime, fall: AlertEvent | None
) -> tuple[Cause, ...] | None:
    """Return the possible causes of an alert as it was at `when`, None if its onset is unknown.

    With `fall`, return those of this further fall: what did not fall again counts as unmoved.
    """
    parts = [each for each in story.certain if each.raised <= when]
    after, joined = None, {name for name, at in story.joined.items() if at <= when}
    if fall:
        after = max((each.high for each in parts if each.raised < fall.when), default=None)
        parts = [each for each in parts if each.raised == fall.when]
        joined = set(fall.names)
    mine = [each for name, each in system.series.items() if name in joined]
    if not parts or not mine:
        return None
    others = [e for name, e in system.series.items() if name not in joined and e.shares_causes]
    lead = min(parts, key=lambda each: each.raised)
    onset = onset_of(mine, others, lead, when, after)
    known = [each for each in slow if each.raised <= when]
    return candidates(onset, system.records, known) if onset else None


def _traits(system: System) -> dict[str, dict[str, str]]:
    """Return, by name and field, the values that members may share; a target has a file system."""
    found = {
        name: {"file_system": peer.where} if peer.kind == TARGET else {}
        for name, peer in system.peers.items()
    }
    for name, each in system.series.items():
        fields = SHARED if each.shares_causes else ()
        found[name] = {field: value for field in fields if (value := each.trait(field))}
    return found


def _subject(system: System, names: Sequence[str]) -> str:
    """Return the name of an alert about `names`: a target or node among them, or their series."""
    members = [system.series[name] for name in names if name in system.series]
    if peers := [name for name in names if name in system.peers]:
        return peers[0]
    return subject_of(members, system.series.values()) if members else names[0]  # retired since


def _ended(system: System, now: datetime, story: Story, over: Ending | None) -> Ending | None:
    """Return when and how an alert ended: by an action, or else with its last happening, `over`."""
    left = [system.series[name].key for name in story.names if name in system.series]
    gone = [key for name in story.names if (key := system.retired.get(name))]
    peers = [system.peers[name] for name in story.names if name in system.peers]
    for action in reversed(system.actions):
        is_answer = action.alert == story.number
        if action.kind == RETIRE and (over or not left):
            is_answer = is_answer or any(map(action.names, gone))
        if over:  # what the action ended is no longer found, and the rest was over before
            is_answer = is_answer and action.when > over[0]
        else:
            is_answer |= any(map(action.names, left)) or any(map(action.names, peers))
        if action.kind in ENDED_BY and is_answer and action.when >= story.opened:
            return action.when, ENDED_BY[action.kind]
    # what is no longer found may be in files that cannot be read
    return over or (None if system.is_incomplete else (now, WITHDRAWN))


def _of_story(system: System, story: Story) -> Alert:
    """Return an alert as it is now, or as it was when it ended."""
    parts = [each for each in story.found if each.over is None]
    if story.closed:  # a happening that lasts longer counts until then
        parts = [replace(e, over=min(e.over or story.closed, story.closed)) for e in story.found]
    # each member is described by its own change, or else by what it shares with others
    parts.sort(key=lambda each: _SOURCES.index(type(each.source)))
    end = ""
    for each in story.events if story.closed else ():
        if each.kind in (CLOSED, MERGED):
            end = f"merged into {each.into}" if each.kind == MERGED else each.end or ""
    members, over_then = _members(system, story, parts, end)
    peers = [system.peers[name] for name in story.names if name in system.peers]
    series = [member.series for member in members.values()]
    certain = [each for each in parts if each.certain]
    kinds = {type(each.source) for each in certain}
    severity = Severity.INCIDENT if kinds == {Incident} else _severity(story, certain, members)
    flaky = [each.source for each in parts if isinstance(each.source, Flaky)]
    lead = min(story.found, key=lambda each: each.raised, default=None)
    is_answered = end in ENDED_BY.values()
    lasted = [e.ended or e.over for e in story.certain if e.over and not is_answered] or over_then
    score = max((_score(each, system.series) for each in parts), default=0.0)
    slides = certain if severity is Severity.SLIDING else ()
    alert = Alert(
        severity,
        story.subject,
        tuple(sorted(members.values(), key=ratio_of)),
        *_began(story, lead, slides),
        direction=story.direction,
        score=score,
        certainty=None if kinds <= {Incident, Flaky} else certainty(score, system.budget),
        reason=max(flaky, key=lambda each: each.failed).reason if flaky else "",
        raised=story.opened,
        delay=_delay(system, story),
        number=story.number,
        system=system.name,
        shared=_shared(system, story, series),
        events=tuple(story.events),
        ended=story.closed and min(max(lasted, default=story.closed), story.closed),
        end=end,
    )
    return _with_peer(system, alert, peers[0]) if peers else alert


def _members(
    system: System, story: Story, parts: Sequence[Happening], end: str
) -> tuple[dict[str, Member], list[datetime]]:
    """Return the members by name, and when those that are no longer found were back."""
    own = {each.names[0]: each.over for each in story.found if isinstance(each.source, Change)}
    members: dict[str, Member] = {}
    for part in parts:
        for name in part.names:
            back = own.get(name) if story.closed is None else None
            has_left = back is not None and part.raised <= back
            if name in system.series and name not in members and not has_left:
                members[name] = _member(system.series[name], part)
    over_then: list[datetime] = []
    lost = [name for name in story.names if name in system.series and name not in members]
    for name in lost:
        mine, until = system.series[name], story.closed
        if until is None:  # an open alert has none of those who left
            break
        if story.direction == FLAKY:  # what a person resolved is no longer found
            members[name] = Member(mine)
            continue
        if end == RECOVERED:
            until = _back_by(mine, story.low, until)
        before, since = _runs_then(mine, story.low, until)
        ratio = level_ratio(before, since) if len(before) and len(since) else None
        members[name] = Member(mine, ratio, _level(before))
        over_then.append(until)
    if story.direction == DOWN:
        members = {n: m for n, m in members.items() if n in own or _has_fallen(m)} or members
    return members, over_then


def _delay(system: System, story: Story) -> int | None:
    """Return the number of runs from the first changed one to the one that raised the alert.

    After an action, a new epoch or another budget, the change may no longer be found: then the runs
    of that time are counted.
    """
    lead = next((each for each in story.found if each.delay), None)
    if lead is None and story.found:
        return None
    if lead and lead.raised == story.opened:
        return lead.delay
    names = lead.names if lead else story.events[0].names
    since, opened = in_utc(lead.since if lead else story.low), in_utc(story.opened)
    runs = (system.series[name].history for name in names if name in system.series)
    taken = [(since <= each.times) & (each.times <= opened) & each.passed for each in runs]
    return max((int(each.sum()) for each in taken), default=0) or None


def _severity(story: Story, parts: Sequence[Happening], members: Collection[str]) -> Severity:
    """Return the severity of an alert: the worst kind among its certain `parts`.

    For a member with a change of its own, which may slide, a drop shared with others says nothing.
    """
    if story.direction in _SEVERITIES:
        return _SEVERITIES[story.direction]
    kinds = {e.names[0]: e.source.kind for e in parts if isinstance(e.source, Change)}
    found = [*kinds.values()]
    for each in parts:
        mine = [name for name in each.names if name in members]
        if isinstance(each.source, PeerName) or any(name not in kinds for name in mine):
            found.append(State.DEGRADED)
    if not found:  # what a person resolved is no longer found
        found = [each.state for each in story.events if each.state][-1:] or [State.DEGRADED]
    return Severity(next(each for each in State if each in found).value)


def _began(
    story: Story, lead: Happening | None, slides: Sequence[Happening]
) -> tuple[datetime, datetime, datetime]:
    """Return when an alert began, the earliest and the latest likely time."""
    since = [turn.since for each in slides for turn in each.turns if turn.since]
    if since:
        return min(since), min(since), max(since)
    if lead and lead.since <= story.opened:
        return lead.since, lead.low, lead.high
    # if a new epoch hides its first happening, only the log knows when the alert began
    return story.low, story.low, min(story.high, story.opened)


def _score(found: Happening, series: Mapping[str, Series]) -> float:
    """Return the evidence today, or the largest evidence of a happening that is over."""
    if isinstance(found.source, GroupDrop):
        return found.source.evidence
    mine = series.get(found.names[0]) if isinstance(found.source, Change) else None
    evidence = mine.status.evidence if mine else None
    if not mine or not evidence:
        return 0.0
    if not found.over:
        return evidence.today
    first, last = np.searchsorted(mine.judged[0], [in_utc(found.raised), in_utc(found.over)])
    every = evidence.down if found.direction == DOWN else evidence.up
    return float(every[first : last + 1].max(initial=0.0))


def _member(series: Series, part: Happening) -> Member:
    source, band, evidence = part.source, series.status.band, series.status.evidence
    if isinstance(source, Change):
        # once an unstable series has recovered, a ratio would look like a moved level
        has_moved = not part.over or source.kind is not State.UNSTABLE
        return Member(series, source.lately if has_moved else None, source.baseline)
    if isinstance(source, Flaky):
        return Member(series)
    before, since = _runs_then(series, part.low, part.over)
    if part.over:
        level = _level(before)
    elif isinstance(source, Incident):
        level = band.median if band else None
    else:
        level = evidence.level if evidence else None
    if isinstance(source, GroupDrop):
        return Member(series, source.ratios[series.key], level)
    if isinstance(source, Incident):
        ratio = source.ratios[series.key]
        return Member(series, Ratio(ratio, ratio, ratio), level)
    return Member(series, level_ratio(before, since), level)


def _shared(system: System, story: Story, members: Sequence[Series]) -> tuple[str, str] | None:
    """Return the field and value from which an alert has its name.

    The members at the time of naming share it. Later ones need not, and most of the first may have
    left. If more than a quarter of the `members` lack it, return what all that ever joined share.
    """
    every = [*system.series.values()]
    known = [system.series[name] for name in story.names if name in system.series]
    first = set(story.names if story.subject in system.peers else story.names[: story.named])
    named = [each for each in known if each.name in first]
    if not members or len(named) < 2:  # noqa: PLR2004
        return None
    found = shared_by(named, every)
    place = named[0].key.file_system
    is_one = all(each.key.file_system == place for each in named)
    if is_one and place and any(each.key.file_system != place for each in every):
        found = "file_system", place  # as in its name, even if fewer series share something else
    others = [each for each in members if found and each.trait(found[0]) != found[1]]
    return shared_by(known, every) if _OTHERS * len(others) > len(members) else found


def _has_fallen(member: Member) -> bool:
    """Return whether a member's level is lower or not known yet; else it only had a bad day."""
    ratio = member.ratio
    return ratio is None or ratio.value <= _STAYED or ratio.high < 1


def _runs_then(series: Series, low: datetime, over: datetime | None) -> tuple[Array, Array]:
    """Return the logarithms of the runs before `low`, and from then until before `over`.

    If it is over, runs that are no longer judged count as well, such as before a rebaseline.
    """
    begin, (times, values) = in_utc(low), series.judged
    before, since = values[times < begin], values[times >= begin]
    if over:
        times, values = _taken(series)
        since = values[(times >= begin) & (times < in_utc(over))]
        before = before if len(before) else values[times < begin]
    return np.log(before[-_BEFORE:]), np.log(since)


def _back_by(series: Series, low: datetime, over: datetime) -> datetime:
    """Return when a series was back at its level after a change from `low`, known to be `over`.

    The time is the least-squares split of the runs between: those before it have a level of their
    own, and the later ones the level before the change.
    """
    before, since = _runs_then(series, low, over)
    if not (len(before) and len(since)):
        return over
    sums = np.cumsum(since - median_of(before))
    kept = int(np.argmax(sums**2 / np.arange(1, len(sums) + 1))) + 1
    times = _taken(series)[0]
    later = times[(times >= in_utc(low)) & (times < in_utc(over))][kept:]
    return moment(later[0]) if len(later) else over


def _taken(series: Series) -> tuple[Times, Array]:
    """Return the times and values of all runs of a series, including those no longer judged."""
    history, counted = series.history, series.history.counted
    return history.times[counted], history.values[counted]


def _level(logarithms: Array) -> float | None:
    return float(np.exp(median_of(logarithms))) if len(logarithms) else None


def _with_peer(system: System, alert: Alert, name: PeerName) -> Alert:
    """Return the alert with its target or node, which is slow or, in a past alert, was slow."""
    place = next(e for e in system.places if (e.kind, e.where) == (name.kind, name.where))
    unknown = Ratio(math.nan, 0.0, math.inf)
    if alert.since and alert.ended:
        ratios = place.then(name.name, alert.since, alert.ended)
        # sessions that an action took out have no speeds
        said = (e.ratio for e in system.actions if e.alert == alert.number and e.names(name))
        by = next(filter(None, said), None)
        found = [*ratios.values(), *([Ratio(by, by, by)] if by else [])]
        worst = min(found, key=lambda ratio: ratio.value, default=unknown)
        sure = alert.certainty if alert.score else None
        return replace(alert, certainty=sure, peer=SlowPeer(name, worst, ratios))
    slow = place.slow().get(name.name)
    if slow is None:
        return replace(alert, peer=SlowPeer(name, unknown, {}))
    worst = min((each.ratio for each in slow.values()), key=lambda ratio: ratio.value)
    score = max(each.score for each in slow.values())
    sure = certainty(score, replace(system.budget, runs_a_year=place.comparisons_a_year))
    ratios = {variable: each.ratio for variable, each in slow.items()}
    own = {variable: each.own for variable, each in slow.items() if each.own}
    peer = SlowPeer(name, worst, ratios, own)
    return replace(alert, severity=Severity.DEGRADED, score=score, certainty=sure, peer=peer)


def _acknowledged(system: System, alert: Alert) -> Alert:
    """Return the alert with its newest acknowledgement, unless it has become worse since then."""
    actions = [each for each in system.actions if _acknowledges(each, alert)]
    if not actions:
        return alert
    newest = actions[-1]
    if alert.peer:
        is_worse = alert.peer.ratio.high < _WORSE * (newest.ratio or 1.0)
    else:
        named = {each.series.key for each in alert.members if newest.alert == alert.number}
        named |= {key for key in alert.keys for action in actions if action.names(key)}
        is_worse = 2 * len(named) <= len(alert.members)
    return alert if is_worse else replace(alert, acknowledgement=Acknowledgement(newest))


def _acknowledges(action: Action, alert: Alert) -> bool:
    """Return whether an action acknowledged an alert, or a part of it.

    Actions from before alerts had numbers name series and a span of time: the alert has to begin
    in it, or at most `NEAR` before.
    """
    if action.kind != ACKNOWLEDGE or action.direction != alert.direction:
        return False
    if action.alert is not None:
        return action.alert == alert.number
    if action.since is None or action.until is None or alert.since is None:
        return False
    begun = alert.since <= action.until
    if alert.peer:
        return begun and action.names(alert.peer.name)
    near = alert.since_high is not None and action.since <= alert.since_high + NEAR
    return begun and near and any(action.names(key) for key in alert.keys)
