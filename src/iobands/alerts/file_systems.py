"""Transient collapses of each series and of each file system, from charts and bands.

A collapse that belongs to a lasting drop is no transient one, and neither a chance for one: such
runs do not count at all. Jobs of one file system in one night that collapse are one event. May
know: series, their states, charts and bands; nothing of files or of how it is shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.alerts import collapses
from iobands.alerts.acts import ACKNOWLEDGE_COLLAPSES, Act
from iobands.alerts.collapses import RISEN, Comparison, Count
from iobands.alerts.sessions import sessions_of
from iobands.alerts.shared import Common
from iobands.bands import Bands
from iobands.detection import DOWN
from iobands.series import SeriesKey
from iobands.status.following import Budget, Following, Times, in_utc, is_drop, moment, runs_a_year
from iobands.status.states import Status, band_in_force

#: How many rises of a rate are told a year that are none, for each false alarm that the site
#: allows: all file systems together, and all series together.
FALSE_RISES: Final = 0.5
#: A series counts in the comparison if its share of the rounds has at most doubled or halved. The
#: more series there are the more rounds have a collapse, and that is no change of the file system.
_ALIKE: Final = 2.0


@dataclass(frozen=True)
class Collapses:
    """The transient collapses of a series, in runs, or of a file system, in rounds of runs.

    `newest` is when the newest event began, and `recent_since` when the newest of those that are
    compared did, in UTC. With no `count` nothing was counted, and `why` says why.
    """

    count: Count | None = None
    comparison: Comparison | None = None
    newest: datetime | None = None
    recent_since: datetime | None = None
    why: str = ""

    @property
    def outcome(self) -> str | None:
        """Whether the rate has risen or fallen; None where there is too little to tell."""
        return self.comparison.outcome if self.comparison else None


@dataclass(frozen=True)
class FileSystem:
    """A file system of `system`, and the collapses of so many `series` with a floor.

    `known` is the act by which a person acknowledged that they are more frequent, as long as that
    holds, else None.
    """

    system: str
    name: str
    series: int
    collapses: Collapses
    known: Act | None = None

    @property
    def has_risen(self) -> bool:
        """Whether it collapses more often than it did."""
        return self.collapses.outcome == RISEN

    @property
    def is_loud(self) -> bool:
        """Whether it collapses more often than it did, and nobody knows of it."""
        return self.has_risen and self.known is None


@dataclass(frozen=True)
class SiteCollapses:
    """The collapses of all series and file systems of a site."""

    of_series: Mapping[SeriesKey, Collapses] = field(default_factory=dict)
    file_systems: tuple[FileSystem, ...] = ()

    @property
    def has_risen(self) -> bool:
        """Whether any file system collapses more often than it did, and nobody knows of it."""
        return any(each.is_loud for each in self.file_systems)

    def of(self, key: SeriesKey) -> Collapses:
        """Return the collapses of a series."""
        return self.of_series.get(key, Collapses(why="no sample"))


@dataclass(frozen=True)
class Watched:
    """What is needed of a series: as the survey has it, and what its newest sample says."""

    key: SeriesKey
    newest: Mapping[str, object]
    bands: Bands | None
    status: Status


@dataclass(frozen=True)
class _Runs:
    """The runs of a series that were held against a floor, and in no lasting drop."""

    times: Times
    collapsed: NDArray[np.bool_]


def site_collapses(
    series: Iterable[Watched],
    common: Sequence[Common],
    budget: Budget,
    acts: Mapping[SeriesKey, Sequence[Act]],
) -> SiteCollapses:
    """Return the collapses of each series and of each file system; `acts` are those in force."""
    runs: dict[SeriesKey, _Runs] = {}
    found: dict[SeriesKey, Collapses] = {}
    for each in series:
        counted = _runs(each, common)
        if isinstance(counted, str):
            found[each.key] = Collapses(why=counted)
        else:
            runs[each.key] = counted
    allowed = FALSE_RISES * budget.false_alarms_a_year
    level = collapses.level_for(allowed, sum(runs_a_year(each.times) for each in runs.values()))
    found.update({key: _of_series(each, level) for key, each in runs.items()})
    grouped: defaultdict[tuple[str, str], list[SeriesKey]] = defaultdict(list)
    for key in runs:
        grouped[key.system, key.file_system or "none"].append(key)
    rounds = {place: _Rounds.of([runs[key] for key in keys]) for place, keys in grouped.items()}
    level = collapses.level_for(allowed, sum(runs_a_year(each.times) for each in rounds.values()))
    return SiteCollapses(
        found,
        tuple(
            _file_system(place, each, level, [acts.get(key, ()) for key in grouped[place]])
            for place, each in sorted(rounds.items())
        ),
    )


def _file_system(
    place: tuple[str, str], rounds: _Rounds, level: float, acts: Sequence[Sequence[Act]]
) -> FileSystem:
    """Return a file system; `acts` are those in force, of each of its series."""
    found = FileSystem(*place, len(acts), rounds.collapses(level))
    of_all = [act for act in acts[0] if all(act in each for each in acts)]
    known = [act for act in of_all if act.kind == ACKNOWLEDGE_COLLAPSES]
    if not (found.has_risen and known and rounds.still_known(known[-1], level)):
        return found
    return replace(found, known=known[-1])


def _of_series(runs: _Runs, level: float) -> Collapses:
    days = runs.times.astype("datetime64[D]").astype(np.int64)
    return _told(
        collapses.count(runs.collapsed, days),
        collapses.compare(runs.collapsed, level),
        runs.times,
    )


def _told(count: Count, comparison: Comparison, times: Times) -> Collapses:
    newest = None if count.newest is None else moment(times[count.newest])
    recent = moment(times[max(0, len(times) - collapses.RECENT)])
    return Collapses(count, comparison, newest, recent)


@dataclass(frozen=True)
class _Rounds:
    """The runs of the series of a file system, in rounds; `places` has the round of each run.

    The `numbers` of the rounds of one day are the same when divided by `a_day`.
    """

    numbers: NDArray[np.int_]
    a_day: int
    times: Times
    places: tuple[NDArray[np.int_], ...]
    collapsed: tuple[NDArray[np.bool_], ...]

    @staticmethod
    def of(series: Sequence[_Runs]) -> _Rounds:
        """Return the rounds of several series; a round has each of them once at most."""
        sessions = sessions_of({place: each.times for place, each in enumerate(series)})
        parts = [sessions.numbers[place] for place in range(len(series))]
        numbers, places = np.unique(np.concatenate(parts), return_inverse=True)
        times = np.empty(len(numbers), dtype="datetime64[ns]")
        times[places] = np.concatenate([each.times for each in series])
        ends = np.cumsum([len(part) for part in parts])[:-1]
        return _Rounds(
            numbers,
            sessions.a_day,
            times,
            tuple(np.split(places, ends)),
            tuple(each.collapsed for each in series),
        )

    def collapses(self, level: float) -> Collapses:
        """Return the collapses of the file system."""
        chosen = range(len(self.places))
        count = collapses.count(self._hit(chosen), self.numbers // self.a_day)
        return _told(count, self._comparison(level), self.times)

    def still_known(self, act: Act, level: float) -> bool:
        """Tell whether `act` is about the rise that there is now, and it is no worse since."""
        assert act.since is not None and act.until is not None
        first, last = np.searchsorted(self.times, [in_utc(act.since), in_utc(act.until)])
        hit = self._hit(range(len(self.places)))
        return collapses.still_known(hit, int(first), int(last), level)

    def _hit(self, series: Iterable[int]) -> NDArray[np.bool_]:
        """Return in which rounds any of `series` collapsed."""
        hit = np.zeros(len(self.numbers), dtype=bool)
        for each in series:
            hit[self.places[each][self.collapsed[each]]] = True
        return hit

    def _comparison(self, level: float) -> Comparison:
        """Return the newest rounds against those before, of the series that are in both alike."""
        start = max(0, len(self.numbers) - collapses.RECENT)
        first = max(0, start - collapses.EARLIER)
        chosen = [
            each
            for each, places in enumerate(self.places)
            if _is_alike(places, first, start, len(self.numbers))
        ]
        seen = np.zeros(len(self.numbers), dtype=bool)
        for each in chosen:
            seen[self.places[each]] = True
        seen[:first] = False
        return collapses.compare(self._hit(chosen)[seen], level, int(seen[start:].sum()))


def _is_alike(places: NDArray[np.int_], first: int, start: int, end: int) -> bool:
    """Tell whether a series has a like share of the rounds before `start` and from it on."""
    low, middle = np.searchsorted(places, (first, start))
    before, since = (middle - low) * (end - start), (len(places) - middle) * (start - first)
    return bool(before and since and max(before, since) <= _ALIKE * min(before, since))


def _runs(each: Watched, common: Sequence[Common]) -> _Runs | str:
    """Return the runs that count, or why there are none."""
    following = each.status.following
    if following is None:
        return "no sample"
    if each.status.band is None:
        return "no floor: too few runs for a band"
    floors = _floors(each, following)
    with_floor = np.isfinite(floors)
    if not with_floor.any():
        return "no floor: no band for the runs that compare"
    counted = with_floor & ~_dropped(each.key, following, common)
    if not counted.any():
        return "all runs are of a lasting drop"
    return _Runs(following.times[counted], following.values[counted] < floors[counted])


def _floors(each: Watched, following: Following) -> NDArray[np.float64]:
    """Return the floor of each run: of the band in force then, else of the learnt one, else NaN."""
    band = each.status.band
    assert band is not None
    learnt = band.floor if each.status.provisional else np.nan
    floors = np.full(len(following.rows), learnt)
    if each.bands is None:
        return floors
    # as in a figure, what is known of the newest sample stands for all
    for epoch in each.bands.epochs:
        published = band_in_force(each.key, each.newest, epoch.since, each.bands)
        floors[_place(following, epoch.since) :] = published.floor if published else learnt
    return floors


def _dropped(key: SeriesKey, following: Following, common: Sequence[Common]) -> NDArray[np.bool_]:
    """Return which runs are of a drop that was raised, of the series or of a pool that it is in."""
    found = np.zeros(len(following.rows), dtype=bool)
    for alarm in following.chart.alarms:
        if alarm.direction == DOWN:
            found[alarm.onset : alarm.ended] = True
    for each in common:
        if key in each.keys and is_drop(each.change):
            since = _place(following, each.changes[key.variable].since)
            found[since:] |= each.pool.of(key, following.rows[since:])
    return found


def _place(following: Following, when: datetime) -> int:
    """Return the first run at `when` or later, to the second as `moment` has it."""
    naive = when.astimezone(timezone.utc).replace(tzinfo=None)
    return int(np.searchsorted(following.times.astype("datetime64[s]"), np.datetime64(naive, "s")))
