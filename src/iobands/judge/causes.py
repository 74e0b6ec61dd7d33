"""From series, group drops and incidents to alerts: one alert a cause.

An alert is of one series, or of series that share a file system, partition, transport, pattern or
medium and changed at about the same time; then these are its members.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from iobands.bands import COLLAPSED
from iobands.judge.actions import acknowledging, worse_since
from iobands.judge.budget import Budget
from iobands.judge.correlated import NEAR, all_or_part, certainty, common_name, correlated, ratio_of
from iobands.judge.detection import Detection
from iobands.judge.groups import GroupDrop
from iobands.model import COMPLETED, RUNNING, LastSession, SeriesKey
from iobands.snapshot import (
    DOWN,
    Acknowledgement,
    Action,
    Alert,
    Change,
    Finding,
    Incident,
    Member,
    Obstacle,
    Ratio,
    Series,
    Severity,
    State,
)

#: From how many series of a file system on newest runs that collapsed are one alert.
_MANY: Final = 4
#: A group whose strongest series are in another alert is one of its own with so much of the
#: evidence left.
_LEFT: Final = 0.5


def alerts_of(
    series: Sequence[Series],
    drops: Sequence[GroupDrop],
    incidents: Sequence[Incident],
    actions: Mapping[SeriesKey, Sequence[Action]],
    budget: Budget,
    detections: Mapping[SeriesKey, Detection],
    unfit: frozenset[SeriesKey] = frozenset(),
) -> tuple[Alert, ...]:
    """Return the alerts of all series.

    `actions` are those in force about each of them; the checks of `unfit` were stopped by an
    obstacle, which is their alert.
    """
    by_key = {each.key: each for each in series}
    found = [*_of_groups(by_key, drops, budget)]
    covered = frozenset[SeriesKey]().union(*(alert.keys for alert in found))
    changed = [each for each in series if each.status.change and each.key not in covered]
    found += correlated([_of_change(each, budget) for each in changed], series)
    # A drop explains the low runs of its series; what is left is an incident.
    dropped = covered | {each.key for each in changed if _is_drop(each)}
    trouble = [*_of_incidents(by_key, incidents, dropped)]
    covered |= frozenset[SeriesKey]().union(*(alert.keys for alert in trouble))
    found = [_acknowledged(alert, actions, budget, detections) for alert in (*trouble, *found)]
    found += [
        _of_suspicion(each, budget)
        for each in series
        if each.status.state is State.WATCH and each.key not in covered
    ]
    found += _missing(series, covered | unfit)
    alerted = covered | {each.key for each in changed}
    found += _collapsed(series, alerted)
    return tuple(found)


def of_preflight(obstacles: Iterable[Obstacle], several: bool) -> Iterator[Alert]:
    """Yield an alert for each obstacle; `several` says that a site has more than one partition."""
    for each in obstacles:
        where = f" on {each.system}:{each.partition}" if several else ""
        number = len(each.checks)
        stopped = f"{number} check{'' if number == 1 else 's'} not run" if number else ""
        reason = "; ".join(filter(None, (each.why, stopped)))
        yield Alert(Severity.UNFIT, f"{each.subject}{where}", since=each.when, reason=reason)


def of_session(last: LastSession, missed: timedelta | None = None) -> list[Alert]:
    """Return the alert of a last session that did not complete, or lost something.

    Also if no session followed for two of the schedule's intervals; `missed` is the interval.
    """
    if last.how in {COMPLETED, RUNNING} and not last.reason and not missed:
        return []
    how = f"{last.how}: {last.reason}" if last.reason else last.how
    reason = f"{how}; it began {last.began:%d %b %H:%M} UTC on {last.host}"
    if missed:
        hours = missed / timedelta(hours=1)
        late = f"no session for more than {2 * hours:g} h (scheduled every {hours:g} h)"
        reason = f"{late}; the last {reason}"
    return [Alert(Severity.FAILED, "last session", reason=reason)]


def of_failures(findings: Iterable[Finding]) -> Iterator[Alert]:
    """Yield an alert for each check that failed and never gave a series."""
    for each in findings:
        phase = f" in {each.phase}" if each.phase else ""
        reason = f"on {each.system}:{each.partition}{phase}: {each.reason}"
        yield Alert(Severity.FAILED, each.name, since=each.when, reason=reason)


def _of_change(series: Series, budget: Budget) -> Alert:
    change, evidence = series.status.change, series.status.evidence
    assert change is not None and evidence is not None
    score = evidence.today  # and not of the day of raising
    return Alert(
        Severity.DEGRADED if change.is_drop else Severity.IMPROVED,
        series.label,
        (Member(series, change.ratio, change.baseline),),
        change.since,
        change.since_low,
        change.since_high,
        change.direction,
        score,
        certainty(score, budget),
        raised=change.raised,
        delay=change.delay,
    )


def _of_suspicion(series: Series, budget: Budget) -> Alert:
    evidence = series.status.evidence
    assert evidence is not None and evidence.suspicion is not None
    found = evidence.suspicion
    return Alert(
        Severity.WATCH,
        series.label,
        (Member(series, found.ratio, found.baseline),),
        found.since,
        found.since,
        found.since,
        score=found.score,
        certainty=certainty(found.score, budget),
    )


def _of_groups(
    series: Mapping[SeriesKey, Series], drops: Sequence[GroupDrop], budget: Budget
) -> Iterator[Alert]:
    """Yield an alert for each drop of a group, the strongest first, each series in one of them.

    Writes and reads of a group that fell at about the same time are one alert.
    """
    taken: set[SeriesKey] = set()
    left = [each for each in drops if each.ended is None]
    left.sort(key=lambda each: -sum(each.change.evidence))
    while left:
        lead = left[0]
        together = [
            each
            for each in left
            if each.group.cause == lead.group.cause and abs(each.since - lead.since) <= NEAR
        ]
        members: list[Member] = []
        evidence = rest = 0.0
        for each in together:
            for place in each.change.members:
                key = each.group.keys[place]
                evidence += each.change.evidence[place]
                own = series[key].status.change
                fell_before = own is not None and own.since_high < each.since - NEAR
                if key not in taken and not fell_before:
                    rest += each.change.evidence[place]
                    members.append(_member(series[key], each.change.ratios[place]))
        left = [each for each in left if each not in together]
        if len(members) > 1 and rest >= _LEFT * evidence:
            taken |= {member.series.key for member in members}
            members.sort(key=ratio_of)
            score = rest
            own_drops = [
                member.series.status.change for member in members if _is_drop(member.series)
            ]
            raised, delay = min(
                [(each.raised, each.change.delay) for each in together]
                + [(drop.raised, drop.delay) for drop in own_drops if drop]
            )
            yield Alert(
                Severity.DEGRADED,
                common_name(members, series.values()),
                tuple(members),
                lead.since,
                lead.since,
                lead.since,
                DOWN,
                score,
                certainty(score, budget),
                raised=raised,
                delay=delay,
            )


def _is_drop(series: Series) -> bool:
    return series.status.change is not None and series.status.change.is_drop


def _of_incidents(
    series: Mapping[SeriesKey, Series],
    incidents: Sequence[Incident],
    dropped: frozenset[SeriesKey],
) -> Iterator[Alert]:
    """Yield an alert for each open incident, unless a drop explains half of its series."""
    for each in incidents:
        left = {key: ratio for key, ratio in each.ratios.items() if key not in dropped}
        if each.is_open and 2 * len(left) > len(each.ratios):
            members = []
            for key, ratio in left.items():
                band = series[key].status.band
                level = band.median if band else None
                members.append(Member(series[key], Ratio(ratio, ratio, ratio), level))
            times = (each.since, each.since, each.since)
            yield Alert(
                Severity.INCIDENT, each.name, tuple(members), *times, DOWN, raised=each.raised
            )


def _member(series: Series, ratio: Ratio) -> Member:
    change, evidence = series.status.change, series.status.evidence
    if change and change.is_drop:
        return Member(series, change.ratio, change.baseline)
    return Member(series, ratio, evidence.level if evidence else None)


def _acknowledged(
    alert: Alert,
    actions: Mapping[SeriesKey, Sequence[Action]],
    budget: Budget,
    detections: Mapping[SeriesKey, Detection],
) -> Alert:
    """Return the alert with its acknowledgement, if all of its members have one."""
    answers: list[Acknowledgement] = []
    for member in alert.members:
        series = member.series
        change = series.status.change or _as_change(alert)
        action = acknowledging(change, actions[series.key])
        if action is None or series.key not in detections:
            return alert
        worse = worse_since(detections[series.key], action, budget.threshold)
        answers.append(Acknowledgement(action, worse))
    loud = [answer for answer in answers if not answer.holds]
    newest = (loud or sorted(answers, key=lambda answer: answer.action.when))[-1]
    return replace(alert, acknowledgement=newest)


def _as_change(alert: Alert) -> Change:
    """Return the change of a group for a member without a change of its own."""
    assert alert.since and alert.since_low and alert.since_high and alert.direction
    ratio = Ratio(1.0, 0.0, float("inf"))
    times = (alert.since, alert.since_low, alert.since_high, alert.since)
    return Change(alert.direction, *times, ratio, 0.0, alert.score, 0.0)


def _missing(series: Sequence[Series], explained: frozenset[SeriesKey]) -> Iterator[Alert]:
    """Yield an alert for the series of a file system that miss their newest sample alike."""
    found: defaultdict[tuple[str, str, str], list[Series]] = defaultdict(list)
    for each in series:
        reason = each.status.missing
        if reason and each.status.state is State.NO_DATA and each.key not in explained:
            found[each.key.system, each.key.file_system or "", reason].append(each)
    for (_, file_system, reason), alike in found.items():
        subject = alike[0].label if len(alike) == 1 else f"{len(alike)} series of {file_system}"
        since = min((each.status.when for each in alike if each.status.when), default=None)
        members = tuple(Member(each) for each in alike)
        yield Alert(Severity.NO_DATA, subject, members, since, reason=reason)


def _collapsed(series: Sequence[Series], alerted: Collection[SeriesKey]) -> Iterator[Alert]:
    """Yield the newest runs under their floors; many of a file system are one alert.

    One run in twenty or fifty collapses for no lasting reason: a site of hundreds of series has
    some every day. The exit status does not follow them.
    """
    found: defaultdict[tuple[str, str], list[Member]] = defaultdict(list)
    for each in series:
        status = each.status
        if each.key in alerted or status.left_out or status.verdict != COLLAPSED:
            continue
        if status.band and status.value:
            ratio = status.value / status.band.median
            member = Member(each, Ratio(ratio, ratio, ratio), status.band.median)
            found[each.key.system, each.key.file_system or ""].append(member)
    places = Counter((each.key.system, each.key.file_system, each.key.variable) for each in series)
    for (system, file_system), members in found.items():
        members.sort(key=ratio_of)
        groups = [members] if len(members) >= _MANY else [[member] for member in members]
        variables = {member.series.key.variable for member in members}
        every = sum(places[system, file_system, variable] for variable in variables)
        subject = all_or_part("file_system", file_system, len(members), every)
        for group in groups:
            subject = group[0].series.label if len(group) == 1 else subject
            when = group[0].series.status.when
            yield Alert(Severity.COLLAPSED, subject, tuple(group), when)
