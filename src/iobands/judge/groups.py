"""Groups of series that share something that can fail for all of them, and their changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from iobands.judge.detection import Budget, Detection
from iobands.judge.group_scan import GroupChange, Member, group_changes
from iobands.model.history import Times, moment
from iobands.model.series import SeriesKey
from iobands.model.sessions import sessions_of
from iobands.snapshot import SHARED


@dataclass(frozen=True)
class Group:
    """Series of one variable that have the same `value` of the field `shared`."""

    system: str
    shared: str
    value: str
    variable: str
    keys: tuple[SeriesKey, ...]

    @property
    def cause(self) -> tuple[str, str, str]:
        """What the series have in common: system, field and value."""
        return self.system, self.shared, self.value


@dataclass(frozen=True)
class GroupDrop:
    """A drop that series of a group share; times are in UTC, `ended` is None while it lasts."""

    group: Group
    change: GroupChange
    since: datetime
    raised: datetime
    ended: datetime | None

    @property
    def members(self) -> tuple[SeriesKey, ...]:
        """The series that took part, the strongest first."""
        return tuple(self.group.keys[place] for place in self.change.members)


def groups_of(medium_of: Mapping[SeriesKey, str | None]) -> tuple[Group, ...]:
    """Return the groups of a site; `medium_of` has its series.

    Of several groups with the same series only the first in the order of `SHARED` is returned.
    """
    found: dict[tuple[SeriesKey, ...], Group] = {}
    for shared in SHARED:
        same: defaultdict[tuple[str, str, str], list[SeriesKey]] = defaultdict(list)
        for key, medium in medium_of.items():
            value = medium if shared == "medium" else getattr(key, shared)
            if value is not None and key.case is None:
                same[key.system, value, key.variable].append(key)
        for (system, value, variable), keys in same.items():
            if len(keys) > 1:
                group = Group(system, shared, value, variable, tuple(keys))
                found.setdefault(group.keys, group)
    return tuple(found.values())


def group_drops(
    groups: tuple[Group, ...], detections: Mapping[SeriesKey, Detection], budget: Budget
) -> tuple[GroupDrop, ...]:
    """Return the drops of groups, past ones included, as far as series in them can be judged."""
    able = {key: each for key, each in detections.items() if each.chart.can_judge}
    sessions = sessions_of({key: each.times for key, each in able.items()}).numbers
    found = []
    for group in groups:
        keys = tuple(key for key in group.keys if key in able and len(able[key].times))
        if len(keys) < 2:  # noqa: PLR2004
            continue
        known = Group(group.system, group.shared, group.value, group.variable, keys)
        members = [Member(able[key].chart, sessions[key]) for key in keys]
        runs = [(sessions[key], able[key].times) for key in keys]
        for change in group_changes(members, budget.threshold):
            since = min(
                times[np.searchsorted(numbers, change.onset)]
                for numbers, times in (runs[place] for place in change.members)
                if numbers[-1] >= change.onset
            )
            ended = None if change.ended is None else _last_run(runs, change.ended)
            raised = _last_run(runs, change.raised)
            found.append(GroupDrop(known, change, moment(since), raised, ended))
    return tuple(found)


def _last_run(runs: Sequence[tuple[NDArray[np.int_], Times]], session: int) -> datetime:
    """Return when the last run of a session was, of the session and the time of each run."""
    return moment(
        max(each[numbers == session].max() for numbers, each in runs if session in numbers)
    )
