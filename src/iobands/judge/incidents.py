"""Incidents, as docs/glossary.md defines them: most series of a file system far down at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.judge.normal import TransientRuns
from iobands.model import SeriesKey
from iobands.snapshot import Incident, days_of, moment

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
