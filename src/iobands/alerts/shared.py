"""What several series have in common: a change of all that share something, told once.

May know: series, their charts and pools; nothing of files or of how it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.alerts.pools import KINDS, Pool
from iobands.alerts.sessions import sessions_of
from iobands.detection import LARGEST_REFERENCE, Part, PooledChart, Ratio, follow_together
from iobands.detection.change import level_ratio
from iobands.series import SeriesKey
from iobands.status.following import (
    Budget,
    Change,
    Following,
    Times,
    change_of,
    ratio_text,
    span_text,
    years_text,
)

_SEVERAL: Final = 2
#: Changes of writes and of reads that began within so much of each other are one.
_NEAR: Final = np.timedelta64(3, "D")


@dataclass(frozen=True)
class Pooled:
    """A pool's series of one variable, followed together.

    `parts` are what `keys` brought into the chart, and `moments` the times of their runs. A change
    by less than `least` is passed over.
    """

    pool: Pool
    variable: str
    keys: tuple[SeriesKey, ...]
    parts: tuple[Part, ...]
    moments: tuple[Times, ...]
    chart: PooledChart
    least: float

    @cached_property
    def times(self) -> Times:
        """The time of each session of the chart: that of its last run."""
        found = np.full(len(self.chart.sessions), np.datetime64(0, "ns"))
        for part, moments in zip(self.parts, self.moments, strict=True):
            places = np.searchsorted(self.chart.sessions, part.sessions)
            found[places] = np.maximum(found[places], moments)
        return found

    @property
    def direction(self) -> str:
        """The direction of the alarm that is open."""
        assert self.chart.open_alarm is not None
        return self.chart.open_alarm.alarm.direction

    def span(self) -> tuple[np.datetime64, np.datetime64]:
        """Return between which times the open change most likely began."""
        assert self.chart.open_alarm is not None
        alarm = self.chart.open_alarm.alarm
        return self.times[alarm.onset_low], self.times[alarm.onset_high]


@dataclass(frozen=True)
class Member:
    """A series of a pool since the common change began: its own ratio, and its evidence in nats."""

    key: SeriesKey
    ratio: Ratio
    evidence: float
    took_part: bool


@dataclass(frozen=True)
class Common:
    """A lasting change that series of a pool share.

    `changes` are by variable, and `members` all series of the pool, each the strongest first.
    """

    pool: Pool
    changes: Mapping[str, Change]
    members: tuple[Member, ...] = field(repr=False)

    @property
    def name(self) -> str:
        """What it is called in every view."""
        return self.pool.name

    @property
    def change(self) -> Change:
        """The change of the variable that speaks most for it."""
        return next(iter(self.changes.values()))

    @property
    def keys(self) -> tuple[SeriesKey, ...]:
        """The series that took part, the strongest first."""
        return tuple(member.key for member in self.members if member.took_part)

    def text(self) -> str:
        """Return it in words that can be read aloud, as those of a change of one series."""
        lead = self.change
        if len({key.variable for key in self.pool.keys}) == 1:
            return lead.text()
        sizes = ", ".join(
            f"{variable} {ratio_text(change.ratio)}" for variable, change in self.changes.items()
        )
        return (
            f"since {span_text(lead.since, lead.since_low, lead.since_high)}: {sizes} its former "
            f"level; a false alarm as strong comes once in {years_text(lead.years)} on this site"
        )


def follow_pools(
    pools: Sequence[Pool],
    followings: Mapping[SeriesKey, Following],
    budget: Budget,
) -> tuple[Pooled, ...]:
    """Return each pool followed, variable by variable, as far as series in it can be judged."""
    able = {key: each for key, each in followings.items() if each.chart.can_judge}
    sessions = sessions_of({key: each.times for key, each in able.items()})
    parts = {key: Part.of(each.chart, sessions.numbers[key]) for key, each in able.items()}
    found = []
    for pool in pools:
        for variable, keys in pool.by_variable().items():
            brought = {}
            for key in keys:
                if key in parts:
                    mine = pool.of(key, able[key].rows)
                    if mine.any():
                        brought[key] = parts[key].only(mine), able[key].times[mine]
            if len(brought) >= _SEVERAL:
                of, moments = zip(*brought.values(), strict=True)
                least = next(able[key].chart.least for key in brought)
                chart = follow_together(of, limit=budget.limit, least=least)
                found.append(Pooled(pool, variable, tuple(brought), of, moments, chart, least))
    return tuple(found)


def common_changes(
    pooled: Sequence[Pooled], followings: Mapping[SeriesKey, Following], budget: Budget
) -> tuple[Common, ...]:
    """Return the changes that last and that at least two series of a pool share, each once.

    Of several pools that a change shows in, that one is told which has the most evidence in all
    its runs since the change began. A run that is not slow speaks against it: a pool that is too
    large has series that did not change, and one that is too small lacks some that did. What the
    runs that are told so do not account for is then looked for in the pools that remain.
    """
    left = [each for each in pooled if _is_common(each, followings)]
    found = []
    while left:
        best = max((_together(each, left) for each in left), key=_weight)
        found.append(_told(best, pooled, followings, budget))
        told = {(each.pool.name, each.variable) for each in best}
        explained = dict(_explained(best, followings))
        left = [
            rest
            for each in left
            if (each.pool.name, each.variable) not in told
            for rest in [_without(each, explained, budget)]
            if rest is not None and _is_common(rest, followings)
        ]
    return tuple(found)


def _weight(group: Sequence[Pooled]) -> tuple[float, int]:
    total = sum(each.chart.open_alarm.total for each in group if each.chart.open_alarm)
    return total, -KINDS.index(group[0].pool.kind)


def _together(lead: Pooled, others: Sequence[Pooled]) -> list[Pooled]:
    """Return `lead` and what else changed in its pool, in its direction, at about its time."""
    low, high = lead.span()
    group = [
        each
        for each in others
        if each is not lead and each.pool is lead.pool and each.direction == lead.direction
        if each.span()[0] <= high + _NEAR and each.span()[1] >= low - _NEAR
    ]
    return [lead, *group]


def _is_common(pooled: Pooled, followings: Mapping[SeriesKey, Following]) -> bool:
    return len(list(_took_part(pooled, followings))) >= _SEVERAL


def _took_part(pooled: Pooled, followings: Mapping[SeriesKey, Following]) -> Iterator[int]:
    """Yield which series took part in the open change; one that fell before did not."""
    alarm = pooled.chart.open_alarm
    for column in alarm.series if alarm else ():
        own = followings[pooled.keys[column]].open_change
        before = own is not None and np.datetime64(own.since_high.replace(tzinfo=None)) < (
            pooled.span()[0] - _NEAR
        )
        if not before:
            yield column


def _explained(
    group: Sequence[Pooled], followings: Mapping[SeriesKey, Following]
) -> Iterator[tuple[SeriesKey, NDArray[np.int_]]]:
    """Yield the series that took part, with the sessions of their runs since the change began."""
    for each in group:
        alarm = each.chart.open_alarm
        assert alarm is not None
        since = each.chart.sessions[alarm.alarm.onset_low]
        for column in _took_part(each, followings):
            sessions = each.parts[column].sessions
            yield each.keys[column], sessions[sessions >= since]


def _without(
    pooled: Pooled, explained: Mapping[SeriesKey, NDArray[np.int_]], budget: Budget
) -> Pooled | None:
    """Return `pooled` without runs that are explained, None if fewer than two series remain."""
    if not explained.keys() & set(pooled.keys):
        return pooled
    rest = {}
    for key, part, moments in zip(pooled.keys, pooled.parts, pooled.moments, strict=True):
        kept = ~np.isin(part.sessions, explained.get(key, ()))
        if kept.any():
            rest[key] = part.only(kept), moments[kept]
    if len(rest) < _SEVERAL:
        return None
    parts, moments = zip(*rest.values(), strict=True)
    chart = follow_together(
        parts, limit=budget.limit, depends=pooled.chart.depends, least=pooled.least
    )
    return replace(pooled, keys=tuple(rest), parts=parts, moments=moments, chart=chart)


def _told(
    group: Sequence[Pooled],
    every: Sequence[Pooled],
    followings: Mapping[SeriesKey, Following],
    budget: Budget,
) -> Common:
    """Return what is to be said of a change that shows in `group`, a variable each."""
    changes, members = {}, []
    for each in group:
        alarm = each.chart.open_alarm
        assert alarm is not None
        changes[each.variable] = change_of(alarm.alarm, each.times, budget)
        moved = set(_took_part(each, followings))
        since = int(each.chart.sessions[alarm.alarm.onset])
        members += [
            Member(key, ratio_since(each.parts[column], since), evidence, column in moved)
            for column, (key, evidence) in enumerate(
                zip(each.keys, alarm.contributions, strict=True)
            )
        ]
    known = {member.key for member in members}
    lead = group[0]
    assert lead.chart.open_alarm is not None
    since = int(lead.chart.sessions[lead.chart.open_alarm.alarm.onset])
    for each in every:
        if each.pool is lead.pool:
            members += [
                member_since(key, part, since, lead.direction)
                for key, part in zip(each.keys, each.parts, strict=True)
                if key not in known
            ]
    members.sort(key=lambda member: (not member.took_part, -member.evidence))
    return Common(lead.pool, changes, tuple(members))


def member_since(key: SeriesKey, part: Part, since: int, direction: str) -> Member:
    """Return what a series did since the session `since`, in a change that is not its own."""
    evidence = float(part.sums(since, None, direction).max())
    return Member(key, ratio_since(part, since), evidence, False)


def ratio_since(part: Part, since: int) -> Ratio:
    """Return the level of a series since the session `since` over the one before."""
    first = int(np.searchsorted(part.sessions, since))
    before = part.residuals[max(0, first - LARGEST_REFERENCE) : first]
    after = part.residuals[first:]
    if not (len(before) and len(after)):
        return Ratio(float("nan"), 0.0, float("inf"))
    return level_ratio(before, after)
