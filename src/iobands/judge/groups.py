"""Groups of series that share something that can fail for all of them, and their changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iobands.judge.baseline import MOST_CORRELATION, scale_for, serial_correlation
from iobands.judge.budget import WATCH, Budget
from iobands.judge.chart import SIDES, Chart
from iobands.judge.detection import Detection
from iobands.judge.scores import Array
from iobands.model import SeriesKey
from iobands.snapshot import DOWN, SHARED, History, Ratio, Times, level_ratio, moment


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
    """Return the groups of a site; `medium_of` has the series that may share a cause.

    Of several groups with the same series only the first in the order of `SHARED` is returned.
    """
    found: dict[tuple[SeriesKey, ...], Group] = {}
    for shared in SHARED:
        same: defaultdict[tuple[str, str, str], list[SeriesKey]] = defaultdict(list)
        for key, medium in medium_of.items():
            value = medium if shared == "medium" else getattr(key, shared)
            if value is not None:
                same[key.system, value, key.variable].append(key)
        for (system, value, variable), keys in same.items():
            if len(keys) > 1:
                group = Group(system, shared, value, variable, tuple(keys))
                found.setdefault(group.keys, group)
    return tuple(found.values())


def group_drops(
    groups: tuple[Group, ...],
    detections: Mapping[SeriesKey, Detection],
    histories: Mapping[SeriesKey, History],
    budget: Budget,
) -> tuple[GroupDrop, ...]:
    """Return the drops of groups, past ones included, as far as series in them can be judged."""
    able = {key: each for key, each in detections.items() if each.chart.can_judge}
    sessions = {key: histories[key].sessions[each.rows] for key, each in able.items()}
    found = []
    for group in groups:
        keys = tuple(key for key in group.keys if key in able and len(able[key].times))
        if len(keys) < 2:  # noqa: PLR2004
            continue
        known = Group(group.system, group.shared, group.value, group.variable, keys)
        members = [GroupMember(able[key].chart, sessions[key]) for key in keys]
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


#: From how much evidence of its own, in nats, a series counts as one that took part.
TOOK_PART: Final = 2.0

#: The newest sessions that are looked at: a group's older changes are over or are series' own.
NEWEST: Final = 400

# The evidence that ends a drop: some of several series always look healthy.
_RECOVERY: Final = 8.0

# The onsets that are tried, in sessions before the newest.
_LAGS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 30)

# The correlation between series until there are enough common sessions to measure it.
_UNKNOWN: Final = 0.3

_ENOUGH_SESSIONS: Final = 30

_SEVERAL: Final = 2

_OWN_BASELINE: Final = 200


@dataclass(frozen=True)
class GroupMember:
    """A series of a group: its chart, and the session of each run, by numbers that never fall.

    Of several runs of a session the last counts.
    """

    chart: Chart
    sessions: NDArray[np.int_]


@dataclass(frozen=True)
class GroupChange:
    """A drop that at least two of the series share.

    `onset`, `raised` and `ended` are session numbers, the last None while it lasts; `delay` is the
    number of sessions from the onset to the alert, both included. `score` is in nats. By series:
    `evidence` since the onset, in nats, and `ratios`, the level since over the level before.
    `members` are the places of the series that took part when it was raised, the strongest first.
    """

    onset: int
    raised: int
    ended: int | None
    delay: int
    score: float
    threshold: float
    evidence: tuple[float, ...]
    ratios: tuple[Ratio, ...]
    members: tuple[int, ...]


def group_changes(members: Sequence[GroupMember], threshold: float) -> tuple[GroupChange, ...]:
    """Return the drops of a group of series in the order of time; the last may be open.

    A drop lasts until the evidence against it reaches 8 nats in the series that took part.

    Raises:
        ValueError: there are fewer than two series.
    """
    if len(members) < _SEVERAL:
        raise ValueError(f"{len(members)} series are no group")
    sessions = np.unique(np.concatenate([each.sessions for each in members]))[-NEWEST:]
    if not len(sessions):
        return ()
    residuals = _residuals(members, sessions)
    discounts = _discounts(members, residuals, threshold)
    increments = _increments(members, sessions)
    sums = _Sums.of(increments, members, sessions)
    statistic = _statistic(sums, discounts)
    found: list[GroupChange] = []
    at = 0
    while at < len(sessions):
        over = np.flatnonzero(statistic[at:] >= threshold)
        if not over.size:
            break
        raised = at + int(over[0])
        at = raised + 1
        onset, design = _onset(sums, raised, discounts)
        then = sums.over(slice(onset, onset + 1), slice(raised, raised + 1))[0, design]
        chosen = np.flatnonzero(then >= TOOK_PART)
        if len(chosen) >= _SEVERAL:  # one series alone is its own alert
            against = -increments[raised + 1 :, design, chosen].sum(axis=1)
            back = np.cumsum(against) / discounts[len(chosen) - 1]
            back -= np.minimum(np.minimum.accumulate(back), 0.0)
            recovered = np.flatnonzero(back >= _RECOVERY)
            at = raised + 1 + int(recovered[0]) if recovered.size else len(sessions)
            evidence = increments[onset:at, design].sum(axis=0)
            found.append(
                GroupChange(
                    onset=int(sessions[onset]),
                    raised=int(sessions[raised]),
                    ended=int(sessions[at]) if recovered.size else None,
                    delay=raised - onset + 1,
                    score=float(statistic[raised]),
                    threshold=threshold,
                    evidence=tuple(float(each) for each in np.maximum(evidence, then)),
                    ratios=tuple(_ratio(column[:at], onset) for column in residuals.T),
                    members=tuple(sorted(chosen.tolist(), key=lambda place: -then[place])),
                )
            )
    return tuple(found)


def _increments(members: Sequence[GroupMember], sessions: NDArray[np.int_]) -> Array:
    """Return what each session added, of shape (sessions, designs, series); 0 without a run."""
    columns = SIDES[DOWN]
    found = np.zeros((len(sessions), columns.stop - columns.start, len(members)))
    for place, member in enumerate(members):
        first = int(np.searchsorted(member.sessions, sessions[0]))
        rows = np.searchsorted(sessions, member.sessions[first:])
        found[rows, :, place] = member.chart.increments[first:, columns]
    return found


def _residuals(members: Sequence[GroupMember], sessions: NDArray[np.int_]) -> Array:
    """Return logarithms over the median of the baseline, of shape (sessions, series), or NaN."""
    found = np.full((len(sessions), len(members)), np.nan)
    for place, member in enumerate(members):
        first = int(np.searchsorted(member.sessions, sessions[0]))
        level = member.chart.baseline.level()
        usual = float(np.median(level)) if len(level) else np.nan
        rows = np.searchsorted(sessions, member.sessions[first:])
        found[rows, place] = member.chart.logarithms[first:] - usual
    return found


@dataclass(frozen=True)
class _Sums:
    """What the sessions of a group add up to, without changes that series raised alone.

    `totals`, of shape (sessions + 1, designs, series), is what the sessions before each add up
    to, and `raises`, of shape (sessions + 1, series), how many changes a series had raised.
    """

    totals: Array
    raises: NDArray[np.int_]

    @classmethod
    def of(
        cls, increments: Array, members: Sequence[GroupMember], sessions: NDArray[np.int_]
    ) -> _Sums:
        """Return the sums of `increments`."""
        left = increments.copy()
        raises = np.zeros((len(sessions), len(members)), dtype=int)
        for place, member in enumerate(members):
            first = int(np.searchsorted(member.sessions, sessions[0]))
            rows = np.searchsorted(sessions, member.sessions[first:])
            for change in member.chart.changes:
                begun, ended = max(change.raised + 1 - first, 0), _from(change.ended, first)
                left[rows[begun:ended], :, place] = 0.0
                if change.raised >= first:
                    raises[rows[change.raised - first], place] += 1
        return cls(_before(left), _before(raises))

    def over(self, onsets: slice, newest: slice) -> Array:
        """Return what the sessions from `onsets` to `newest` add up to; each is a range of them.

        A series that raised a change between them adds nothing: that is an alert of its own.
        """
        after = slice(newest.start + 1, newest.stop + 1)
        found = self.totals[after] - self.totals[onsets]
        own = self.raises[newest] > self.raises[onsets]
        found[np.broadcast_to(own[:, None], found.shape)] = 0.0
        return found


def _from(run: int | None, first: int) -> int | None:
    return None if run is None else max(run - first, 0)


def _before(each: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate((np.zeros_like(each[:1]), np.cumsum(each, axis=0)))


def _statistic(sums: _Sums, discounts: Array) -> Array:
    """Return the statistic after each session, of shape (sessions,)."""
    size = len(sums.totals) - 1
    found = np.zeros(size)
    for lag in _LAGS:
        if lag > size:
            break
        since = sums.over(slice(0, size + 1 - lag), slice(lag - 1, size))
        found[lag - 1 :] = np.maximum(found[lag - 1 :], _scan(since, discounts).max(axis=1))
    return found


def _onset(sums: _Sums, raised: int, discounts: Array) -> tuple[int, int]:
    """Return the session and the design that fit the change best, seen from session `raised`."""
    first = max(0, raised + 1 - _LAGS[-1])
    since = sums.over(slice(first, raised + 1), slice(raised, raised + 1))
    found = _scan(since, discounts)[::-1]  # among equals the latest
    place, design = np.unravel_index(int(np.argmax(found)), found.shape)
    return raised - int(place), int(design)


def _scan(since: Array, discounts: Array) -> Array:
    """Return the most evidence of two or more series; the last axis of `since` has all of them."""
    number = np.arange(1, since.shape[-1] + 1)
    ways = np.cumsum(np.log(number[::-1] / number))  # to choose 1, 2, … of the series, as logarithm
    strongest = np.cumsum(-np.sort(-since, axis=-1), axis=-1)
    evidence: Array = strongest / discounts - ways
    return evidence[..., _SEVERAL - 1 :].max(axis=-1)


def _discounts(members: Sequence[GroupMember], residuals: Array, threshold: float) -> Array:
    """Return what the sum of the j strongest series is divided by, for j from 1 on.

    Correlated series fall by chance together. Where what they share lasts longer than what each
    has of its own, their mean has the larger serial correlation, and it counts.
    """
    found = 1 + np.arange(len(members)) * _correlation(residuals)
    lasting = serial_correlation(np.nanmean(residuals[:_OWN_BASELINE], axis=1))
    shared = scale_for(min(max(lasting, 0.0), MOST_CORRELATION), threshold, WATCH)
    own = float(np.mean([member.chart.scale for member in members]))
    return np.asarray(found * max(shared / own, 1.0), float)


def _correlation(residuals: Array) -> float:
    """Return the mean rank correlation between the series of a group, at least 0."""
    common = residuals[~np.isnan(residuals).any(axis=1)][:_OWN_BASELINE]
    if len(common) < _ENOUGH_SESSIONS:
        return _UNKNOWN
    ranks = np.argsort(np.argsort(common, axis=0), axis=0).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        matrix = np.corrcoef(ranks.T)
    found = matrix[np.triu_indices(len(matrix), 1)]
    return float(np.clip(np.nanmean(found), 0.0, MOST_CORRELATION)) if found.size else _UNKNOWN


def _ratio(residuals: Array, onset: int) -> Ratio:
    known = ~np.isnan(residuals)
    before = residuals[:onset][known[:onset]][-_OWN_BASELINE:]
    return level_ratio(before, residuals[onset:][known[onset:]])
