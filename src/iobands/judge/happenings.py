"""What alerts are made of: changes, drops of groups, incidents, slow targets and nodes.

An incident is what docs/glossary.md defines: most series of a file system far down at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.judge.fold import Happening
from iobands.judge.groups import GroupDrop
from iobands.judge.normal import TransientRuns
from iobands.snapshot import (
    DOWN,
    Change,
    Incident,
    PeerName,
    PeerState,
    Place,
    Series,
    SeriesKey,
    days_of,
    moment,
    slug,
)

# From how much evidence on, in nats, a series that fell with an alert belongs to it: of healthy
# series 1.3 % have as much on any evening, and few of them since just then.
_JOINS: Final = 4.0
# How the alert of a peer ends that was slow when it was last compared.
_ENDS: Final = {
    PeerState.UNUSED: "no longer used",
    PeerState.UNKNOWN: "no longer compared",
}
_AS_FAST: Final = "again as fast as the others"


def happenings_of(
    series: Sequence[Series],
    drops: Iterable[GroupDrop],
    incidents: Iterable[Incident],
    places: Iterable[Place],
) -> list[Happening]:
    """Return all that was found of one system, what is over included."""
    return [
        *(found for each in series for change in _changes(each) for found in _of(each, change)),
        *(leaning for each in series if each.shares_causes for leaning in _leanings(each)),
        *map(_of_group, drops),
        *map(_of_incident, incidents),
        *(peer for place in places for peer in _of_place(place)),
    ]


def _changes(series: Series) -> tuple[Change, ...]:
    evidence = series.status.evidence
    return evidence.changes if evidence else ()


def _of(series: Series, change: Change) -> Iterator[Happening]:
    """Yield a change, and each further fall while it lasted."""
    whole = Happening(
        change,
        change.direction,
        (slug(series.key),),
        change.since,
        change.since_low,
        change.since_high,
        change.raised,
        change.ended,
        change.closed,
        change.end or "",
        change.delay,
        turns=change.turns,
    )
    yield whole
    for fall in change.falls:
        since = fall.since
        yield replace(whole, since=since, low=since, high=since, raised=fall.raised, turns=())


def _leanings(series: Series) -> Iterator[Happening]:
    """Yield when a series had some evidence for a drop, from its first run to the one after."""
    evidence = series.status.evidence
    if evidence is None or not (evidence.down >= _JOINS).any():
        return
    times, _ = series.judged
    speaks = np.flatnonzero(evidence.down >= _JOINS)
    zeros = np.concatenate(([-1], np.flatnonzero(evidence.down <= 0), [len(times)]))
    after, places = np.unique(np.searchsorted(zeros, speaks), return_index=True)
    for zero, place in zip(after, speaks[places], strict=True):
        first, raised, end = moment(times[zeros[zero - 1] + 1]), moment(times[place]), zeros[zero]
        over = moment(times[end]) if end < len(times) else None
        span = (first, first, first, raised, over, over)
        yield Happening(series, DOWN, (slug(series.key),), *span, certain=False)


def _of_group(drop: GroupDrop) -> Happening:
    names = tuple(slug(key) for key in drop.members)
    times = (drop.since, drop.since, drop.since, drop.raised, drop.ended, drop.ended)
    return Happening(drop, DOWN, names, *times, delay=drop.change.delay)


def _of_incident(incident: Incident) -> Happening:
    names = tuple(slug(key) for key in incident.ratios)
    ended = incident.closed and incident.until
    times = (incident.since, incident.since, incident.since, incident.raised)
    return Happening(incident, DOWN, names, *times, ended, incident.closed)


def _of_place(place: Place) -> Iterator[Happening]:
    """Yield when a target or a node was slow, in one variable each."""
    for name, found in place.peers().items():
        for peer in found.values():
            for raised, ended in peer.alarms:
                is_slow = ended is None and peer.state is PeerState.SLOW
                over = None if is_slow else ended or peer.last
                since = peer.since if is_slow and peer.since else raised
                yield Happening(
                    PeerName(place.kind, place.system, place.where, name),
                    DOWN,
                    (place.name_of(name),),
                    since,
                    peer.since_low if is_slow and peer.since_low else raised,
                    since,
                    raised,
                    over,
                    over,
                    _AS_FAST if ended else _ENDS.get(peer.state, _AS_FAST),
                )


_WINDOW: Final = 3
_BAD: Final = 2
_SEVERAL: Final = 2
_WEEK: Final = 7


def incidents_of(runs: Mapping[SeriesKey, TransientRuns], now: datetime) -> tuple[Incident, ...]:
    """Return all incidents in the order of time, those that are open at `now` included."""
    if not runs:
        return ()
    every = days_of(np.concatenate([each.times for each in runs.values()]))
    ends = np.cumsum([len(each.times) for each in runs.values()])[:-1]
    days = dict(zip(runs, np.split(every, ends), strict=True))
    groups: defaultdict[tuple[str, str, str], list[SeriesKey]] = defaultdict(list)
    for key in runs:
        if key.file_system is not None:
            groups[key.system, key.file_system, key.variable].append(key)
    found = []
    for place, keys in groups.items():
        if len(keys) >= _SEVERAL:
            mine = {key: (runs[key], days[key]) for key in keys}
            spans = _spans(list(mine.values()))
            found += [_incident(place, mine, *span, now) for span in spans]
    return tuple(sorted(found, key=lambda each: each.since))


_Runs = tuple[TransientRuns, NDArray[np.int_]]


def _spans(runs: Sequence[_Runs]) -> list[tuple[int, int, int, int | None]]:
    """Return of each incident the first bad day, the opening, the last bad and the closing one."""
    days, places = np.unique(np.concatenate([each for _, each in runs]), return_inverse=True)
    ran = np.bincount(places, minlength=len(days))
    low = np.bincount(places, np.concatenate([each.low for each, _ in runs]), len(days))
    judged = ran >= _SEVERAL
    days, bad = days[judged], (2 * low > ran)[judged]
    found = []
    begun: int | None = None
    raised = last = 0
    for place in range(_WINDOW - 1, len(bad)):
        window = slice(place - _WINDOW + 1, place + 1)
        over = days[place] - days[last] >= _WEEK or not bad[window].any()
        if begun is not None and over:
            found.append((days[begun], days[raised], days[last], days[place]))
            begun = None
        recent = bad[window] & (days[window] > days[place] - _WEEK)
        if begun is None and recent.sum() >= _BAD:
            begun, raised = window.start + int(np.argmax(recent)), place
        last = place if bad[place] else last
    if begun is not None:
        found.append((days[begun], days[raised], days[last], None))
    return found


def _incident(
    place: tuple[str, str, str],
    runs: Mapping[SeriesKey, _Runs],
    first: int,
    raised: int,
    last: int,
    closing: int | None,
    now: datetime,
) -> Incident:
    ratios: dict[SeriesKey, float] = {}
    times: dict[int | None, list[np.datetime64]] = {first: [], raised: [], last: [], closing: []}
    for key, (each, days) in runs.items():
        within = (days >= first) & (days <= last) & each.low
        if within.any():
            ratios[key] = float(np.median(each.ratios[within]))
        for day, found in times.items():
            found += list(each.times[days == day])
    until = moment(max(times[last]))
    ends = [moment(max(times[closing]))] if times[closing] else []
    ends += [until + timedelta(days=_WEEK)] if now - until >= timedelta(days=_WEEK) else []
    return Incident(
        *place,
        since=moment(min(times[first])),
        raised=moment(max(times[raised])),
        until=until,
        ratios=dict(sorted(ratios.items(), key=lambda item: item[1])),
        closed=min(ends, default=None),
    )
