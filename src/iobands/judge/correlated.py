"""Series that changed at about the same time: what they share, and how sure that is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from iobands.judge.budget import Budget
from iobands.snapshot import SHARED, Alert, Certainty, Member, Series

#: Changes that began within this time of each other may have one cause.
NEAR: Final = timedelta(days=3)


def correlated(alerts: Sequence[Alert], series: Sequence[Series]) -> list[Alert]:
    """Return `alerts` of single series, with alerts of one cause merged.

    The cause is what most of them share; of equals, the most specific one.
    """
    left = list(alerts)
    found: list[Alert] = []
    while left:
        groups: defaultdict[tuple[str, str, str, str], list[Alert]] = defaultdict(list)
        for alert in left:
            key = alert.members[0].series.key
            for shared in SHARED:
                value = _shared(alert.members[0].series, shared)
                if value is not None and alert.members[0].series.shares_causes:
                    groups[alert.severity, key.system, shared, value].append(alert)
        best: list[Alert] = []
        for candidates in groups.values():
            near = _together(candidates)
            if len(near) > max(len(best), 1):
                best = near
        if not best:
            return found + left
        found.append(_joined(best, common_name([each.members[0] for each in best], series)))
        left = [alert for alert in left if alert not in best]
    return found


def common_name(members: Sequence[Member], series: Iterable[Series]) -> str:
    """Return the name of what the members share; of several, the one that fewest series share."""
    system = members[0].series.key.system
    variables = {member.series.key.variable for member in members}
    found = []
    for shared in SHARED:
        values = {_shared(member.series, shared) for member in members}
        if len(values) == 1 and (value := values.pop()) is not None:
            every = sum(
                each.key.system == system
                and each.key.variable in variables
                and _shared(each, shared) == value
                for each in series
            )
            found.append((every, shared, value))
    every, shared, value = min(found, key=lambda each: each[0])
    return all_or_part(shared, value, len(members), every)


def all_or_part(shared: str, value: str, members: int, every: int) -> str:
    """Return the name of series that share `value`: all of them, or a part."""
    most = "all" if 2 * members >= every else "part of"
    return f"{most} {SHARED[shared].format(value)}"


def _shared(series: Series, field: str) -> str | None:
    value = series.history.newest.get("medium") if field == "medium" else getattr(series.key, field)
    return None if value is None else str(value)


def _together(alerts: Sequence[Alert]) -> list[Alert]:
    """Return the largest set of `alerts` that may have begun at the same time."""
    sets = ([each for each in alerts if overlap(lead, each)] for lead in alerts)
    return max(sets, key=len, default=[])


def overlap(one: Alert, other: Alert) -> bool:
    """Return whether two changes began at about the same time."""
    assert one.since_low and one.since_high and other.since_low and other.since_high
    return one.since_low <= other.since_high + NEAR and other.since_low <= one.since_high + NEAR


def _joined(alerts: Sequence[Alert], name: str) -> Alert:
    lead = max(alerts, key=lambda each: each.score)
    members = [member for each in alerts for member in each.members]
    members.sort(key=ratio_of)
    raised, delay = min((each.raised, each.delay) for each in alerts if each.raised and each.delay)
    return replace(lead, subject=name, members=tuple(members), raised=raised, delay=delay)


def ratio_of(member: Member) -> float:
    """Return the ratio of a member, 1 if it is not known."""
    return member.ratio.value if member.ratio else 1.0


# The odds that a change is real, if one real change a year is expected on the site.
_CERTAIN_ODDS: Final = 1000.0

_LIKELY_ODDS: Final = 10.0


def certainty(score: float, budget: Budget) -> Certainty:
    """Return how certain a change with the evidence `score` is on a site with this budget.

    The odds compare one real change a year with the false alarms a year of such a score.
    """
    odds = budget.years_to_false_alarm(score)
    if odds >= _CERTAIN_ODDS:
        return Certainty.CERTAIN
    return Certainty.LIKELY if odds >= _LIKELY_ODDS else Certainty.POSSIBLE
