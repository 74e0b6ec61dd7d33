"""Groups of series that share something that can fail for all of them, and their common drops."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from iobands.judge.detect import (
    MOST_CORRELATION,
    SIDES,
    USED,
    Baseline,
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

#: Series of one system and variable that have one of the `SHARED` traits in common.
Group = tuple[SeriesKey, ...]


@dataclass(frozen=True)
class GroupDrop:
    """A drop that series of a group share; times are in UTC, `ended` is None while it lasts.

    `ratios` maps the series that took part, the strongest first, to their levels since over those
    before. `delay` and `evidence` are as in `GroupChange`.
    """

    system: str
    since: datetime
    raised: datetime
    ended: datetime | None
    delay: int
    evidence: float
    ratios: Mapping[SeriesKey, Ratio]


def groups_of(medium_of: Mapping[SeriesKey, str | None]) -> tuple[Group, ...]:
    """Return the groups of a site, each once, from the series that may share a cause."""
    found: dict[Group, None] = {}
    for shared in SHARED:
        same: defaultdict[tuple[str, str, str], list[SeriesKey]] = defaultdict(list)
        for key, medium in medium_of.items():
            value = medium if shared == "medium" else getattr(key, shared)
            if value is not None:
                same[key.system, value, key.variable].append(key)
        found |= dict.fromkeys(tuple(keys) for keys in same.values() if len(keys) > 1)
    return tuple(found)


def group_drops(
    groups: tuple[Group, ...],
    detections: Mapping[SeriesKey, Detection],
    histories: Mapping[SeriesKey, History],
    months: Mapping[str, Months],
) -> tuple[GroupDrop, ...]:
    """Return the drops of groups, including past ones, by the series that can be judged.

    A session is judged by what was known of its system at the beginning of its month.
    """
    able = {
        key: (GroupMember(each.routine_chart, histories[key].sessions[each.rows]), each.times)
        for key, each in detections.items()
        if each.chart.baseline.can_judge and len(each.times)
    }
    found = []
    for group in groups:
        mine = [(key, *of_key) for key in group if (of_key := able.get(key))]
        if len(mine) < _SEVERAL:
            continue
        keys, members, _ = zip(*mine, strict=True)
        runs = [(member.sessions, times) for _, member, times in mine]
        known = months[group[0].system].of(session_begins(runs))
        for change in group_changes(members, known):
            since = min(
                times[np.searchsorted(numbers, change.onset)]
                for numbers, times in (runs[place] for place in change.ratios)
                if numbers[-1] >= change.onset
            )
            ratios = {keys[place]: ratio for place, ratio in change.ratios.items()}
            drop = GroupDrop(
                group[0].system,
                since=moment(since),
                raised=_last_run(runs, change.raised),
                ended=None if change.ended is None else _last_run(runs, change.ended),
                delay=change.delay,
                evidence=change.evidence,
                ratios=ratios,
            )
            found.append(drop)
    return tuple(found)


def session_begins(runs: Sequence[tuple[NDArray[np.int_], Times]]) -> Times:
    """Return when the sessions of a group began, from the sessions and times of each series' runs.

    A session begins with its first run in the first series that has one. Sessions that no run names
    may overlap: then the later one is taken to begin no earlier.
    """
    numbers, times = (np.concatenate(each)[::-1] for each in zip(*runs, strict=True))
    begins = np.full(1 + numbers.max(), _NEVER)
    begins[numbers] = times
    return np.maximum.accumulate(begins[~np.isnat(begins)])


def _last_run(runs: Sequence[tuple[NDArray[np.int_], Times]], session: int) -> datetime:
    found = np.concatenate([times[numbers == session] for numbers, times in runs])
    return moment(found.max())


_NEVER: Final = np.datetime64("NaT", "ns")

#: From this much evidence of its own on, in nats, a series takes part in a drop.
TOOK_PART: Final = 2.0

#: The number of newest sessions that are examined: older drops are over, or alerts of single series
#: by now. If a series ran several times in each, its newest `USED` runs count.
NEWEST: Final = 400

# The evidence that ends a drop: it is high, as some of several series always look healthy.
_RECOVERY: Final = 8.0

# The spans that are tried for a drop, in sessions from its onset to the newest, both included.
_LAGS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 30)

# The correlation between series until there are enough common sessions to measure it.
_UNKNOWN: Final = 0.3

_ENOUGH_SESSIONS: Final = 30

_SEVERAL: Final = 2

_OWN_BASELINE: Final = 200

# Correlations are learned from the first common sessions: the largest of these numbers available.
_LEARNED: Final = (_OWN_BASELINE, 120, 60, _ENOUGH_SESSIONS)


@dataclass(frozen=True)
class GroupMember:
    """A series of a group: its chart, and the session number of each run, which never decreases.

    Of several runs of a session the last counts.
    """

    chart: Chart
    sessions: NDArray[np.int_]

    @cached_property
    def judging(self) -> tuple[list[int], list[Baseline]]:
        """The session after which each baseline that judges runs was known, and these baselines."""
        runs = len(self.sessions)
        known = [each for each in self.chart.baselines if each[1].can_judge and each[0] <= runs]
        after = [int(self.sessions[first - 1]) if first else -1 for first, _ in known]
        return after, [baseline for _, baseline in known]


@dataclass(frozen=True)
class GroupChange:
    """A drop that at least two of the series share.

    `onset`, `raised` and `ended` are session numbers, the last None while it lasts; `delay` is the
    number of sessions from the onset to the alert, both included. `evidence`, in nats, counts from
    the onset on. `ratios` are levels since the onset over levels before it, by the places of the
    series that took part when it was raised, the strongest first.
    """

    onset: int
    raised: int
    ended: int | None
    delay: int
    evidence: float
    ratios: Mapping[int, Ratio]


def group_changes(
    members: Sequence[GroupMember], months: Sequence[Month]
) -> tuple[GroupChange, ...]:
    """Return the drops of a group of two series or more in the order of time; the last may be open.

    A drop lasts until the evidence against it reaches 8 nats in the series that took part. Each of
    `months` gives the threshold from its first session on, a place among all sessions; from there
    on, the correlations learned before that session hold as well.
    """
    sessions = np.flatnonzero(np.bincount(np.concatenate([each.sessions for each in members])))
    group = _Evidence(members, sessions, months)
    sessions, increments = sessions[-NEWEST:], group.increments
    statistic, thresholds = group.statistic(), group.thresholds
    found: list[GroupChange] = []
    at = 0
    while at < len(sessions):
        over = np.flatnonzero(statistic[at:] >= thresholds[at:])
        if not over.size:
            break
        raised = at + int(over[0])
        at = raised + 1
        onset, design = group.onset(raised)
        then = group.over(slice(onset, onset + 1), slice(raised, raised + 1))[0, design]
        rest = then - increments[onset : raised + 1, design].max(axis=0)
        chosen = np.flatnonzero((then >= TOOK_PART) & (rest > 0))  # not in one bad session alone
        if len(chosen) >= _SEVERAL:  # one series alone is its own alert
            against = -increments[raised + 1 :, design, chosen].sum(axis=1)
            back = np.cumsum(against) / group.discounts[raised, len(chosen) - 1]
            back -= np.minimum(np.minimum.accumulate(back), 0.0)
            recovered = np.flatnonzero(back >= _RECOVERY)
            at = raised + 1 + int(recovered[0]) if recovered.size else len(sessions)
            if recovered.size:
                group.forget(at)
                changed = slice(at, at + _LAGS[-1])  # later sessions look no further back
                statistic[changed] = group.statistic(changed.start, changed.stop)
            evidence = np.maximum(increments[onset:at, design].sum(axis=0), then).tolist()
            took_part = sorted(chosen.tolist(), key=lambda place: -then[place])
            found.append(
                GroupChange(
                    onset=int(sessions[onset]),
                    raised=int(sessions[raised]),
                    ended=int(sessions[at]) if recovered.size else None,
                    delay=raised - onset + 1,
                    evidence=sum(evidence[place] for place in took_part),
                    ratios={n: _ratio(group.residuals[:at, n], onset) for n in took_part},
                )
            )
    return tuple(found)


class _Evidence:
    """The evidence of a group, with a row for each of the newest sessions.

    `increments`, of shape (sessions, designs, series), is what each session added, 0 without a run.
    `residuals` are logarithms relative to the level at the time, NaN without a run. The sum of the
    j strongest series is divided by `discounts`, for j from 1 on.
    """

    def __init__(
        self, members: Sequence[GroupMember], sessions: NDArray[np.int_], months: Sequence[Month]
    ) -> None:
        """Collect it from the charts; a month is judged by what was known before it."""
        old, size = max(len(sessions) - NEWEST, 0), len(members)
        columns, newest = SIDES[DOWN], len(sessions) - old
        place_of = np.zeros(1 + sessions[-1], dtype=int)
        place_of[sessions] = np.arange(len(sessions))
        residuals = np.full((size, len(sessions)), np.nan).T
        self.increments = np.zeros((newest, columns.stop - columns.start, size))
        raises, is_own = np.zeros((2, newest, size), dtype=int)
        for place, (chart, of_runs) in enumerate((each.chart, each.sessions) for each in members):
            places = place_of[of_runs]
            residuals[places, place] = chart.residuals
            mine = places[-USED:]
            mine = mine[mine >= old] - old
            first = len(of_runs) - len(mine)
            self.increments[mine, :, place] = chart.increments[first:, columns]
            for change in chart.changes:
                stop = None if change.ended is None else max(change.ended - first, 0)
                is_own[mine[max(change.raised + 1 - first, 0) : stop], place] = True
                if change.raised >= first:
                    raises[mine[change.raised - first], place] += 1
        # without what follows a change that a series raised by itself, until that is over
        self._totals = _before(np.where(is_own[:, None], 0.0, self.increments))
        self._raises = _before(raises)
        places = np.arange(old, len(sessions))
        month_of = np.searchsorted([each.first for each in months], places, "right") - 1
        judging, month_of = np.unique(month_of, return_inverse=True)
        months = [months[each] for each in judging]
        self.residuals = residuals[old:]
        self.thresholds = np.array([each.threshold for each in months])[month_of]
        self.discounts = _discounts(members, sessions, residuals, months)[month_of]
        begins = place_of[[each.sessions[0] for each in members if len(each.sessions)]]
        known = np.searchsorted(np.sort(begins), places, "right")
        numbers, number_of = np.unique(known, return_inverse=True)
        self._ways = _ways(numbers, size)[number_of]

    def forget(self, until: int) -> None:
        """Let no session before `until` count again, as its drop is over."""
        self._totals[:until], self._raises[:until] = self._totals[until], self._raises[until]

    def over(self, onsets: slice, newest: slice) -> Array:
        """Return the evidence from each session of `onsets` to its session of `newest`, two slices.

        A series that raised a change of its own in between adds nothing: that has its own alert.
        """
        found = self._totals[newest.start + 1 : newest.stop + 1] - self._totals[onsets]
        own = self._raises[newest] > self._raises[onsets]
        found[np.broadcast_to(own[:, None], found.shape)] = 0.0
        return found

    def statistic(self, first: int = 0, stop: int | None = None) -> Array:
        """Return the statistic after each session from `first` to `stop`, which is not included.

        It is 0 where it certainly stays below the threshold.
        """
        stop = len(self.increments) if stop is None else min(stop, len(self.increments))
        found = np.zeros(stop - first)
        discount, ways = self.discounts.min(axis=1), self._ways[:, _SEVERAL - 1 :].min(axis=1)
        for lag in (each for each in _LAGS if each <= stop):
            begin = max(lag - 1, first)
            ends = slice(begin, stop)
            since = self.over(slice(begin + 1 - lag, stop + 1 - lag), ends)
            # an upper bound: no choice of series adds up to more than all that are above 0
            most = np.maximum(since, 0.0).sum(axis=-1).T / discount[ends] - ways[ends]
            designs, near = np.nonzero(most >= self.thresholds[ends])
            best = self._scan(since[near, designs], near + begin)
            np.maximum.at(found, near + begin - first, best)
        return found

    def onset(self, raised: int) -> tuple[int, int]:
        """Return the session and the design that fit the change best, seen from `raised`."""
        then = slice(raised, raised + 1)
        since = self.over(slice(max(0, raised + 1 - _LAGS[-1]), raised + 1), then)
        found = self._scan(since, (then, None))[::-1]  # among equals the latest
        place, design = np.unravel_index(int(np.argmax(found)), found.shape)
        return raised - int(place), int(design)

    def _scan(self, since: Array, sessions: tuple[slice, None] | NDArray[np.int_]) -> Array:
        """Return the largest evidence of any two or more series, the last axis of `since`."""
        strongest = np.cumsum(np.sort(since, axis=-1)[..., ::-1], axis=-1)
        evidence: Array = strongest / self.discounts[sessions] - self._ways[sessions]
        return evidence[..., _SEVERAL - 1 :].max(axis=-1)


def _before(each: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate((np.zeros_like(each[:1]), np.cumsum(each, axis=0)))


def _ways(sizes: NDArray[np.int_], most: int) -> Array:
    """Return the logarithms of the numbers of ways to choose 1, 2, … `most` of `sizes` series."""
    factorials = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, most + 1)))))
    of, chosen = sizes[:, None], np.arange(1, most + 1)
    rest = factorials[np.maximum(of - chosen, 0)]
    return np.where(of < chosen, np.inf, factorials[of] - factorials[chosen] - rest)


def _discounts(
    members: Sequence[GroupMember],
    sessions: NDArray[np.int_],
    residuals: Array,
    months: Sequence[Month],
) -> Array:
    """Return the divisors, in each month, of the sum of the j strongest series, for j from 1 on.

    Correlated series fall together by chance. If what they share lasts longer than what is their
    own, their mean has a larger serial correlation than they have, and that one counts.
    """
    own: list[list[float]] = [[] for _ in months]
    begins = sessions[[min(each.first, len(sessions) - 1) for each in months]].tolist()
    for member in members:
        after, baselines = member.judging
        for scales, month, begin in zip(own, months, begins, strict=True):
            if known := bisect_left(after, begin):
                by = baselines[known - 1]
                scales.append(scale_for(by.correlation, month.threshold, by.youth))
    found = []
    correlations = _correlations(residuals, [each.first for each in months])
    for scales, month, (between, lasting) in zip(own, months, correlations, strict=True):
        shared = scale_for(min(max(lasting, 0.0), MOST_CORRELATION), month.threshold)
        by_place = 1 + np.arange(len(members)) * between
        found.append(by_place * max(shared / np.mean(scales or [1.0]), 1.0))
    return np.array(found)


def _correlations(residuals: Array, sessions: Iterable[int]) -> Iterator[tuple[float, float]]:
    """Yield the correlations of the series as they were known before each of `sessions`.

    They are the mean rank correlation between series, at least 0, and the serial correlation of
    their mean, both learned from the first `_LEARNED` sessions that the series have in common.
    """
    ran = ~np.isnan(residuals)
    runs, counted = np.zeros(residuals.shape[1], dtype=int), 0
    in_common: dict[bytes, NDArray[np.int_]] = {}
    learned: dict[tuple[int, bytes], tuple[float, float]] = {}
    for session in sessions:
        runs, counted = runs + ran[counted:session].sum(axis=0), session
        chosen = runs >= _ENOUGH_SESSIONS
        name = chosen.tobytes()
        if name not in in_common:
            in_common[name] = np.flatnonzero(ran[:, chosen].all(axis=1))[: _LEARNED[0]]
        number = np.searchsorted(in_common[name], session)
        size = next((n for n in _LEARNED if number >= n), 0)
        if chosen.sum() < _SEVERAL or not size:
            yield _UNKNOWN, 0.0
            continue
        if (size, name) not in learned:
            past = residuals[in_common[name][:size]][:, chosen]
            between = min(max(rank_correlation(past), 0.0), MOST_CORRELATION)
            learned[size, name] = between, serial_correlation(past.mean(axis=1))
        yield learned[size, name]


def rank_correlation(values: Array) -> float:
    """Return the mean of Spearman's rank correlations of all pairs of columns.

    Equal values share a rank, and a column of equal values correlates with no other. Ranks are
    scaled to one variance, so that the excess variance of their row sums is what columns share.
    """
    size, columns = values.shape
    every = pl.DataFrame(values).select(pl.all().rank())
    ranks = every.to_numpy().T - (size + 1) / 2
    of_one, squares = size * (size**2 - 1) / 12, (ranks**2).sum(axis=1)
    ranks *= np.sqrt(of_one / np.maximum(squares, 1.0))[:, None]
    of_sums = float((ranks.sum(axis=0) ** 2).sum())
    return (of_sums / of_one - np.count_nonzero(squares)) / (columns * (columns - 1))


def _ratio(residuals: Array, onset: int) -> Ratio:
    known = ~np.isnan(residuals)
    before = residuals[:onset][known[:onset]][-_OWN_BASELINE:]
    return level_ratio(before, residuals[onset:][known[onset:]])
