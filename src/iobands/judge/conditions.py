"""Alerts of the day, which have no number; the name and certainty of any alert; the ledger.

The ledger lists open and past alerts and how each ended, with the site's own precision and delay.
"""

from __future__ import annotations

import math
import shlex
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from iobands.judge.detect import Budget
from iobands.snapshot import (
    COLLAPSED,
    COMPLETED,
    FALSE,
    REAL,
    REBASELINE,
    RESOLVE,
    RETIRE,
    RUNNING,
    SHARED,
    Action,
    Alert,
    Certainty,
    Finding,
    LastSession,
    Ledger,
    LedgerEntry,
    Member,
    Obstacle,
    Ratio,
    Series,
    SeriesKey,
    Severity,
    Span,
    State,
    begun,
    day_and_time,
    grouped_by,
    ratio_of,
    slug,
    what_failed,
)

#: From this many series of a file system on, their low runs are one alert.
_MANY: Final = 4
#: For how long an alert that was withdrawn is reported if its samples are gone.
_LOST: Final = timedelta(days=7)


def of_preflight(obstacles: Iterable[Obstacle], several: bool) -> Iterator[Alert]:
    """Yield an alert for each unfit subject of a system, about all partitions together.

    `several` says that a site has more than one partition; the reason then names them.
    """
    alike = grouped_by(obstacles, lambda each: (each.system, each.subject))
    for (system, subject), found in alike.items():
        reasons = []
        for why, mine in grouped_by(found, lambda each: each.why).items():
            number = sum(len(each.checks) for each in mine)
            stopped = f"{number} check{'' if number == 1 else 's'} not run" if number else ""
            on = [each.partition for each in mine if several and each.partition != subject]
            where = f"on {', '.join(on)}: " if on else ""
            reasons.append(where + "; ".join(filter(None, (why, stopped))))
        since = min(each.when for each in found)
        yield Alert(Severity.UNFIT, subject, since=since, reason="; ".join(reasons), system=system)


def of_session(last: LastSession, missed: timedelta | None = None) -> list[Alert]:
    """Return an alert if the last session did not complete or lost something, or the next is late.

    `missed` is the interval of the schedule if no session followed for two of them.
    """
    if last.how in {COMPLETED, RUNNING} and not last.reason and not missed:
        return []
    how = f"{last.how}: {last.reason}" if last.reason else last.how
    reason = f"{how}; it began {day_and_time(last.began)} UTC on {last.host}"
    if missed:
        hours = missed / timedelta(hours=1)
        late = f"no session for more than {2 * hours:g} h (scheduled every {hours:g} h)"
        reason = f"{late}; the last {reason}"
    return [Alert(Severity.FAILED, "last session", reason=reason)]


def of_forgotten(actions: Iterable[Action], system: str, now: datetime) -> Iterator[Alert]:
    """Yield an alert for each maintenance of a system that nobody ended."""
    for each in begun(actions):
        if each.is_forgotten(now):
            reason = (
                f"{each.action.who} did not end it ({each.action.reason}); it ended by itself on "
                f"{day_and_time(each.window.end)} UTC, and runs since then are judged: "
                f"iobands maintenance end --system {shlex.quote(system)}"
            )
            about, since = f"maintenance of {system}", each.window.begin
            yield Alert(Severity.FAILED, about, since=since, reason=reason, system=system)


def of_lost(past: Iterable[Alert], known: Mapping[str, Span], now: datetime) -> Iterator[Alert]:
    """Yield an alert for each one that was withdrawn in the last week and whose samples are gone.

    `known` has the time of the samples of each series, by its name in files.
    """
    never = Span(now, now)
    for each in past:
        is_new = each.end == WITHDRAWN and each.ended and now - each.ended < _LOST
        # a target or a node, whose name has blanks, may have other reasons to be no longer compared
        seen = ((e.when, name) for e in each.events for name in e.names if " " not in name)
        if is_new and any(when not in known.get(name, never) for when, name in seen):
            # the reason is not public, but the subject is, and may be a node
            reason = (
                f"{each.subject}: withdrawn, as perflogs of {each.system} lack the samples that "
                "raised it; restore them, and the alert opens again"
            )
            yield Alert(Severity.FAILED, f"alert {each.number}", reason=reason, system=each.system)


def of_equal_names(series: Iterable[Series]) -> Iterator[Alert]:
    """Yield an alert for each name in files that several series have, as one hides the others."""
    for mine in grouped_by(series, lambda each: slug(each.key)).values():
        if len(mine) > 1:
            reason = (
                f"{len(mine)} series have sizes that differ only after the sixth digit, and only "
                "one of them can have alerts; give them one size"
            )
            yield Alert(Severity.FAILED, mine[0].label, reason=reason, system=mine[0].key.system)


def of_failures(findings: Iterable[Finding]) -> Iterator[Alert]:
    """Yield an alert for each check that failed and never gave a series."""
    for each in findings:
        phase = f" in {each.phase}" if each.phase else ""
        reason = f"on {each.system}:{each.partition}{phase}: {each.reason}"
        yield Alert(Severity.FAILED, each.name, since=each.when, reason=reason, system=each.system)


def of_suspicions(series: Iterable[Series], budgets: Mapping[str, Budget]) -> Iterator[Alert]:
    """Yield an alert for each series with a suspected drop."""
    for each in series:
        found = each.status.evidence and each.status.evidence.suspicion
        if found and each.status.state is State.WATCH:
            yield Alert(
                Severity.WATCH,
                each.label,
                (Member(each, found.ratio, found.baseline),),
                since=found.since,
                since_low=found.since,
                since_high=found.since,
                score=found.score,
                certainty=certainty(found.score, budgets[each.key.system]),
            )


def of_missing(series: Iterable[Series], explained: Collection[SeriesKey]) -> Iterator[Alert]:
    """Yield an alert for series of a file system whose newest samples are missing for one cause.

    Series in `explained` have an alert about the obstacle that stopped their checks.
    """
    found: defaultdict[tuple[str, str, str], list[Series]] = defaultdict(list)
    for each in series:
        # also of degraded series: neither their state nor their alert says that samples are missing
        reason = each.status.missing
        if reason and each.key not in explained:
            kind = what_failed(reason)
            found[each.key.system, each.key.file_system or "", kind].append(each)
    for (system, file_system, _), alike in found.items():
        subject = f"{len(alike)} series" + (f" of {file_system}" if file_system else "")
        label, variable = alike[0].label, alike[0].key.variable
        checks = {replace(each.key, variable="") for each in alike}
        if len(checks) == 1:
            subject = label if len(alike) == 1 else label.removesuffix(variable).strip()
        reason = alike[0].status.missing or ""
        more = len(checks) - 1
        if more and len({each.status.missing for each in alike}) > 1:
            reason += f"; likewise in {more} more check{'s' * (more > 1)}"
        since = min((each.status.when for each in alike if each.status.when), default=None)
        members = tuple(Member(each) for each in alike)
        yield Alert(Severity.NO_DATA, subject, members, since, reason=reason, system=system)


def of_low_runs(series: Sequence[Series], alerted: Collection[SeriesKey]) -> Iterator[Alert]:
    """Yield alerts about low newest runs, and about transients that ended less than a day before.

    Series in `alerted` have another alert, which is enough.
    One run in twenty to fifty collapses for no lasting reason, so a site of hundreds of series has
    some every day. They do not affect the exit status.
    """
    transients, over, newest = {}, [], []
    for each in series:
        status, evidence = each.status, each.status.evidence
        if each.key in alerted or not status.when:
            continue
        found = evidence.transients[-1] if evidence and evidence.transients else None
        if found and status.when - found.until < timedelta(days=1):
            transients[each.key] = found
            over.append(Member(each, Ratio(found.ratio, found.ratio, found.ratio)))
        if status.verdict == COLLAPSED and not status.left_out and status.band and status.value:
            ratio = status.value / status.band.median
            newest.append(Member(each, Ratio(ratio, ratio, ratio), status.band.median))

    def alert(members: tuple[Member, ...], since: datetime | None, reason: str = "") -> Alert:
        subject = subject_of([each.series for each in members], series)
        return Alert(Severity.COLLAPSED, subject, members, since, reason=reason)

    for members in _together(over):
        of_each = [transients[each.series.key] for each in members]
        longest = max(of_each, key=lambda each: each.until - each.since)
        yield alert(members, longest.since, f"already over: {longest}")
    for members in _together(newest):
        yield alert(members, members[0].series.status.when)


def _together(members: Iterable[Member]) -> Iterator[tuple[Member, ...]]:
    """Yield the members of each alert, the lowest first: many of a file system together, or one."""
    found = grouped_by(members, lambda each: (each.series.key.system, each.series.key.file_system))
    for several in found.values():
        several.sort(key=ratio_of)
        yield from [tuple(several)] if len(several) >= _MANY else zip(several, strict=True)


# The words in names of alerts for the variables that nearly every check has.
_WORDS: Final = {"write_bw": "writes", "read_bw": "reads"}


def shared_by(members: Sequence[Series], series: Iterable[Series]) -> tuple[str, str] | None:
    """Return the field and value that all members share; of several, those fewest series share.

    None if they share nothing that can fail for all of them.
    """
    kinds = {(each.key.system, each.key.variable) for each in members}
    every = [each for each in series if (each.key.system, each.key.variable) in kinds]
    found = {}
    for field in SHARED:
        values = {each.trait(field) for each in members}
        if len(values) == 1 and (value := values.pop()) is not None:
            found[field, value] = sum(each.trait(field) == value for each in every)
    return min(found, key=found.__getitem__, default=None)


def subject_of(members: Sequence[Series], series: Iterable[Series]) -> str:
    """Return the name of an alert: the label of its only series, or such as `scratch writes`."""
    if len(members) == 1:
        return members[0].label
    places = {each.trait("file_system") for each in members}
    patterns = {each.trait("pattern") for each in members}
    if len(places) == 1 and None not in places:
        words = [*map(str, places), *map(str, patterns if len(patterns) == 1 else ())]
    else:
        shared = shared_by(members, series)
        words = [SHARED[shared[0]].format(shared[1])] if shared else [f"{len(members)} series"]
    variables = {each.key.variable for each in members}
    if len(variables) == 1:
        words += (_WORDS.get(each, each) for each in variables)
    return " ".join(words)


# The odds that a change is real, if one real change a year is expected on the site.
_CERTAIN_ODDS: Final = 1000.0
_LIKELY_ODDS: Final = 10.0


#: How an alert ends if it is no longer found.
WITHDRAWN: Final = "withdrawn"
#: How an alert ends if a person acts on it.
ENDED_BY: Final = {RESOLVE: "resolved", REBASELINE: "rebaselined", RETIRE: "retired"}


def certainty(score: float, budget: Budget) -> Certainty:
    """Return how certain a change with the evidence `score` is on a site with this budget.

    The odds compare one real change a year with the false alarms a year of such a score.
    """
    odds = budget.years_to_false_alarm(score)
    if odds >= _CERTAIN_ODDS:
        return Certainty.CERTAIN
    return Certainty.LIKELY if odds >= _LIKELY_ODDS else Certainty.POSSIBLE


def ledger_of(
    alerts: Iterable[Alert],
    series: Sequence[Series],
    actions: Iterable[tuple[str, Sequence[Action]]],
) -> Ledger:
    """Return the ledger of `alerts`, open and past ones.

    `actions` are the system of each series, target or node, and the actions in force about it.
    """
    # alerts that were resolved together have an action each
    done: dict[tuple[str, datetime | None, int | None], Action] = {
        (name, a.when, a.alert): a for name, each in actions for a in each if a.kind in ENDED_BY
    }
    entries = [
        _entry(
            each,
            done.get((each.system, each.ended, each.number))
            or done.get((each.system, each.ended, None)),
        )
        for each in alerts
        if each.number is not None
    ]
    ended = {(each.system, each.ended) for each in entries}
    # resolved before there was a log of alerts
    entries += [
        _resolved(each, [one for one in series if one.key.system == name], name)
        for (name, when, _), each in done.items()
        if each.kind == RESOLVE and each.since and (name, when) not in ended
    ]
    delays = [each.delay for each in entries if each.delay and each.ratio and each.ratio < 1]
    return Ledger(
        tuple(sorted(entries, key=lambda entry: entry.since, reverse=True)),
        sum(action.verdict == REAL for action in done.values()),
        sum(action.verdict == FALSE for action in done.values()),
        statistics.median(delays) if delays else None,
    )


def _entry(alert: Alert, by: Action | None) -> LedgerEntry:
    assert alert.since is not None
    ratio = alert.peer.ratio.value if alert.peer else alert.ratio
    entry = LedgerEntry(
        alert.subject,
        alert.since,
        raised=alert.raised,
        ended=alert.ended,
        ratio=ratio if ratio and math.isfinite(ratio) else None,
        end=alert.end,
        delay=alert.delay,
        kind=alert.peer.name.kind if alert.peer else None,
        number=alert.number,
        cause=alert.cause,
        system=alert.system,
    )
    return _ended_by(entry, by) if by else entry


def _ended_by(entry: LedgerEntry, action: Action) -> LedgerEntry:
    verdict = f" ({action.verdict})" if action.verdict else ""
    end = f"{ENDED_BY[action.kind]}{verdict}"
    return replace(entry, end=end, who=action.who, reason=action.reason)


def _resolved(action: Action, series: Sequence[Series], system: str) -> LedgerEntry:
    named = [each for each in series if action in each.actions]
    subject = action.subject or subject_of(named, series)
    assert action.since is not None
    entry = LedgerEntry(subject, action.since, ended=action.when, ratio=action.ratio, system=system)
    return _ended_by(entry, action)
