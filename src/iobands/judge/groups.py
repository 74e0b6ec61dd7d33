"""Groups of series that share something that can fail for all of them, and their changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iobands.judge.detect import (
    MOST_CORRELATION,
    SIDES,
    WATCH,
    Chart,
    Month,
    Months,
    scale_for,
    serial_correlation,
)
from iobands.judge.detection import Detection
from iobands.snapshot import (
    DOWN,
    SHARED,
    Array,
    History,
    Ratio,
    SeriesKey,
    Times,
    level_ratio,
    moment,
)


@dataclass(frozen=True)
class Group:
    """Series of one variable that have the same `value` of the field `shared`."""

    system: str
    shared: str
    value: str
    variable: str
    keys: tuple[SeriesKey, ...]


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
    months: Months,
) -> tuple[GroupDrop, ...]:
    """Return the drops of groups, past ones included, as far as series in them can be judged.

    A session is judged by what was known at the beginning of its month.
    """
    able = {key: each for key, each in detections.items() if each.chart.can_judge}
    sessions = {key: histories[key].sessions[each.rows] for key, each in able.items()}
    found = []
    for group in groups:
        keys = tuple(key for key in group.keys if key in able and len(able[key].times))
        if len(keys) < 2:  # noqa: PLR2004
            continue
        known = Group(group.system, group.shared, group.value, group.variable, keys)
        members = [GroupMember(able[key].routine_chart, sessions[key]) for key in keys]
        runs = [(sessions[key], able[key].times) for key in keys]
        numbers = np.concatenate([each for each, _ in runs])
        every = np.concatenate([times for _, times in runs])[np.argsort(numbers, kind="stable")]
        begins = every[np.unique(np.sort(numbers), return_index=True)[1]]
        for change in group_changes(members, months.of(begins)):
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

# How series correlate is learned from this many common sessions.
_LEARNED: Final = (_OWN_BASELINE, 120, 60, _ENOUGH_SESSIONS)


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
    number of sessions from the onset to the alert, both included. `score` is in nats, and so is the
    `evidence` of each series since the onset. `members` are the places of the series that took part
    when it was raised, the strongest first, and `ratios` their levels since over those before.
    """

    onset: int
    raised: int
    ended: int | None
    delay: int
    score: float
    threshold: float
    evidence: tuple[float, ...]
    ratios: Mapping[int, Ratio]
    members: tuple[int, ...]


def group_changes(
    members: Sequence[GroupMember], months: Sequence[Month]
) -> tuple[GroupChange, ...]:
    """Return the drops of a group of series in the order of time; the last may be open.

    A drop lasts until the evidence against it reaches 8 nats in the series that took part.
    `months` have the threshold from a session on, which is a place among all sessions; from then
    on counts how the series correlated before.

    Raises:
        ValueError: there are fewer than two series.
    """
    if len(members) < _SEVERAL:
        raise ValueError(f"{len(members)} series are no group")
    every = np.unique(np.concatenate([each.sessions for each in members]))
    sessions = every[-NEWEST:]
    if not len(sessions):
        return ()
    terms = _Terms.of(members, every, months)
    increments = _increments(members, sessions)
    sums = _Sums.of(increments, members, sessions)
    statistic = _statistic(sums, terms)
    found: list[GroupChange] = []
    at = 0
    while at < len(sessions):
        over = np.flatnonzero(statistic[at:] >= terms.thresholds[at:])
        if not over.size:
            break
        raised = at + int(over[0])
        at = raised + 1
        onset, design = _onset(sums, raised, terms)
        then = sums.over(slice(onset, onset + 1), slice(raised, raised + 1))[0, design]
        chosen = np.flatnonzero(then >= TOOK_PART)
        if len(chosen) >= _SEVERAL:  # one series alone is its own alert
            against = -increments[raised + 1 :, design, chosen].sum(axis=1)
            back = np.cumsum(against) / terms.discounts[raised, len(chosen) - 1]
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
                    threshold=float(terms.thresholds[raised]),
                    evidence=tuple(float(each) for each in np.maximum(evidence, then)),
                    ratios={n: _ratio(terms.residuals[:at, n], onset) for n in chosen.tolist()},
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
    """Return logarithms over the level at the time, of shape (sessions, series), or NaN."""
    found = np.full((len(sessions), len(members)), np.nan)
    for place, member in enumerate(members):
        found[np.searchsorted(sessions, member.sessions), place] = member.chart.residuals
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


@dataclass(frozen=True)
class _Terms:
    """How a group is judged after each of the newest sessions; arrays have a row for each.

    `discounts` are what the sum of the j strongest series is divided by, for j from 1 on, and
    `ways` the logarithms of how many ways there are to choose them of those known by then.
    """

    residuals: Array
    thresholds: Array
    discounts: Array
    ways: Array

    @classmethod
    def of(
        cls, members: Sequence[GroupMember], sessions: NDArray[np.int_], months: Sequence[Month]
    ) -> _Terms:
        """Return the terms by what was known before each month."""
        residuals = _residuals(members, sessions)
        places = np.arange(len(sessions))[-NEWEST:]
        month_of = np.searchsorted([each.first for each in months], places, "right") - 1
        used, month_of = np.unique(month_of, return_inverse=True)
        months = [months[each] for each in used]
        discounts = _discounts(members, sessions, _Correlations(residuals), months)
        thresholds = np.array([each.threshold for each in months])
        begins = np.searchsorted(
            sessions, [each.sessions[0] for each in members if len(each.sessions)]
        )
        known = np.searchsorted(np.sort(begins), places, "right")
        sizes, size_of = np.unique(known, return_inverse=True)
        ways = _ways(sizes, len(members))[size_of]
        return cls(residuals[-NEWEST:], thresholds[month_of], discounts[month_of], ways)


def _ways(sizes: NDArray[np.int_], most: int) -> Array:
    """Return the logarithm of the ways to choose 1, 2, … `most` of each number of series."""
    factorials = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, most + 1)))))
    of, chosen = sizes[:, None], np.arange(1, most + 1)
    rest = factorials[np.maximum(of - chosen, 0)]
    return np.where(of < chosen, np.inf, factorials[of] - factorials[chosen] - rest)


def _statistic(sums: _Sums, terms: _Terms) -> Array:
    """Return the statistic after each session, of shape (sessions,), 0 where it raises nothing."""
    size = len(sums.totals) - 1
    found = np.zeros(size)
    least = terms.discounts.min(axis=1), terms.ways[:, _SEVERAL - 1 :].min(axis=1)
    for lag in _LAGS:
        if lag > size:
            break
        ends = slice(lag - 1, size)
        since = sums.over(slice(0, size + 1 - lag), ends)
        # no choice of series adds up to more than all that speak for the drop
        most = np.maximum(since, 0.0).sum(axis=-1).max(axis=1) / least[0][ends] - least[1][ends]
        near = np.flatnonzero(most >= terms.thresholds[ends])
        places = near + lag - 1
        found[places] = np.maximum(
            found[places], _scan(since[near], terms, places).max(axis=1, initial=0.0)
        )
    return found


def _onset(sums: _Sums, raised: int, terms: _Terms) -> tuple[int, int]:
    """Return the session and the design that fit the change best, seen from session `raised`."""
    first, then = max(0, raised + 1 - _LAGS[-1]), slice(raised, raised + 1)
    since = sums.over(slice(first, raised + 1), then)
    found = _scan(since, terms, then)[::-1]  # among equals the latest
    place, design = np.unravel_index(int(np.argmax(found)), found.shape)
    return raised - int(place), int(design)


def _scan(since: Array, terms: _Terms, sessions: slice | NDArray[np.int_]) -> Array:
    """Return the most evidence of two or more series; the last axis of `since` has all of them."""
    strongest = np.cumsum(-np.sort(-since, axis=-1), axis=-1)
    discounts, ways = (each[sessions, None] for each in (terms.discounts, terms.ways))
    evidence: Array = strongest / discounts - ways
    return evidence[..., _SEVERAL - 1 :].max(axis=-1)


def _discounts(
    members: Sequence[GroupMember],
    sessions: NDArray[np.int_],
    correlations: _Correlations,
    months: Sequence[Month],
) -> Array:
    """Return what the sum of the j strongest series is divided by in each month, for j from 1 on.

    Correlated series fall by chance together. Where what they share lasts longer than what each
    has of its own, their mean has the larger serial correlation, and it counts.
    """
    own: list[list[float]] = [[] for _ in months]
    begins = sessions[[min(each.first, len(sessions) - 1) for each in months]]
    for member in members:
        judging = [each for each in member.chart.baselines if each[1].can_judge]
        runs = np.searchsorted(member.sessions, begins)
        known = np.searchsorted([first for first, _ in judging], runs, "right")
        for scales, month, place in zip(own, months, known.tolist(), strict=True):
            if place:
                by = judging[place - 1][1]
                scales.append(scale_for(by.correlation, month.threshold, WATCH, by.youth))
    found = np.empty((len(months), len(members)))
    for row, scales, month in zip(found, own, months, strict=True):
        between, lasting = correlations.before(month.first)
        shared = scale_for(min(max(lasting, 0.0), MOST_CORRELATION), month.threshold, WATCH)
        by_place = 1 + np.arange(len(members)) * between
        row[:] = by_place * max(shared / np.mean(scales or [1.0]), 1.0)
    return found


class _Correlations:
    """How the series of a group correlated before a session: with each other, and their mean.

    Learned from the first sessions that they have in common; `_LEARNED` says how many.
    """

    def __init__(self, residuals: Array) -> None:
        self.residuals = residuals
        self.ran = ~np.isnan(residuals)
        self.runs = self.ran.cumsum(axis=0)
        self.common: dict[bytes, NDArray[np.int_]] = {}
        self.known: dict[tuple[int, bytes], tuple[float, float]] = {}

    def before(self, session: int) -> tuple[float, float]:
        """Return the mean rank correlation, at least 0, and the serial one of the mean."""
        chosen = (
            self.runs[session - 1] >= _ENOUGH_SESSIONS if session else self.runs[:0].any(axis=0)
        )
        name = chosen.tobytes()
        if name not in self.common:
            self.common[name] = np.flatnonzero(self.ran[:, chosen].all(axis=1))[: _LEARNED[0]]
        common = self.common[name]
        number = int(np.searchsorted(common, session))
        size = next((n for n in _LEARNED if number >= n), 0)
        if chosen.sum() < _SEVERAL or not size:
            return _UNKNOWN, 0.0
        found = self.known.get((size, name))
        if found is None:
            past = self.residuals[common[:size]][:, chosen]
            found = _correlation(past), serial_correlation(past.mean(axis=1))
            self.known[size, name] = found
        return found


def _correlation(common: Array) -> float:
    ranks = np.argsort(np.argsort(common, axis=0), axis=0).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        matrix = np.corrcoef(ranks.T)
    found = matrix[np.triu_indices(len(matrix), 1)]
    return float(np.clip(np.nanmean(found), 0.0, MOST_CORRELATION))


def _ratio(residuals: Array, onset: int) -> Ratio:
    known = ~np.isnan(residuals)
    before = residuals[:onset][known[:onset]][-_OWN_BASELINE:]
    return level_ratio(before, residuals[onset:][known[onset:]])
