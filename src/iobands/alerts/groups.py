"""Groups of series that share something that can fail for all of them, and their changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np

from iobands.detection.groups import GroupChange, Member, group_change
from iobands.detection.series import Budget, Detection, moment
from iobands.detection.sessions import Sessions, sessions_of
from iobands.model.series import SeriesKey

#: What series may share, the most specific first: series field, and how a name says it.
SHARED: Final = {
    "file_system": "{}",
    "partition": "partition {}",
    "transport": "transport {}",
    "pattern": "pattern {}",
    "medium": "medium {}",
}


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
    """A drop that series of a group share, since the time `since` (UTC)."""

    group: Group
    change: GroupChange
    since: datetime

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


def sessions_a_year(groups: tuple[Group, ...], sessions: Sessions[SeriesKey]) -> float:
    """Return how many sessions a year the groups are judged in, all together."""
    return sum(sessions.a_year(group.keys) for group in groups)


def group_drops(
    groups: tuple[Group, ...], detections: Mapping[SeriesKey, Detection], budget: Budget
) -> tuple[GroupDrop, ...]:
    """Return the drops that last in groups, as far as series in them can be judged."""
    able = {key: each for key, each in detections.items() if each.chart.can_judge}
    sessions = sessions_of({key: each.times for key, each in able.items()}).numbers
    found = []
    for group in groups:
        keys = tuple(key for key in group.keys if key in able and len(able[key].times))
        if len(keys) > 1:
            members = [Member(able[key].chart, sessions[key]) for key in keys]
            change = group_change(members, budget.threshold)
            if change:
                first = min(
                    able[key].times[np.searchsorted(sessions[key], change.onset)]
                    for place in change.members
                    for key in [keys[place]]
                    if sessions[key][-1] >= change.onset
                )
                known = Group(group.system, group.shared, group.value, group.variable, keys)
                found.append(GroupDrop(known, change, moment(first)))
    return tuple(found)
