"""The heat maps of the dashboard, of series and of targets and nodes, and the names they use."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np

from iobands.bands import Span
from iobands.model import RATIO_UNIT, SeriesKey, slug
from iobands.snapshot import (
    PeerState,
    Place,
    Series,
    Sessions,
    Snapshot,
    Verdicts,
    moment,
    sessions_of,
)
from iobands.views.format import ratio_text
from iobands.views.peers import WORST_FIRST, with_worst

#: How many sessions are shown: six weeks of daily ones.
MOST_SESSIONS: Final = 42
_DAY: Final = 86_400

#: A character for each cell: the verdicts by their codes, and why a verdict is missing.
CELLS: Final = "nwabc"
GAP, MISSED, MAINTENANCE = ".", "m", "p"


def heat_map(site: Snapshot) -> dict[str, object]:
    """Return the rows, the times of the sessions, and how far apart these are in seconds.

    Times are in seconds since 1970. The rows have only series that run regularly, not on demand.
    """
    shown = [each for each in site.series if not each.is_on_demand and each.key.unit != RATIO_UNIT]
    measured = {series_id(each.key): each for each in shown if len(each.history)}
    sessions = sessions_of({name: each.history.times for name, each in measured.items()})
    begins = _begins(sessions, {name: each.verdicts for name, each in measured.items()})
    columns = _columns(begins, sessions.a_day)
    place = {number: column for column, number in enumerate(columns)}
    times = list(columns.values())
    kinds: defaultdict[tuple[str, ...], list[Series]] = defaultdict(list)
    for each in shown:
        key = each.key
        parts = (key.file_system, key.pattern, key.variable, key.transport, key.system)
        kinds[tuple(part or "none" for part in parts)].append(each)
    rows = []
    for kind, group in kinds.items():
        cells, which = [GAP] * len(times), [0] * len(times)
        for number, each in enumerate(group):
            name = series_id(each.key)
            if name in measured:
                _fill(cells, which, number, place, sessions.numbers[name].tolist(), each.verdicts)
        for number, each in enumerate(group):
            _mark_missing(cells, which, number, each, times)
        spans = [span for each in group for span in maintenances(site, each)]
        ends = [(seconds(span.begin), seconds(span.end)) for span in spans]
        for column, time in enumerate(times):
            if cells[column] == GAP and any(begin <= time <= end for begin, end in ends):
                cells[column] = MAINTENANCE
        names = [series_id(each.key) for each in group]
        # the time before the first run of a row is no gap
        text = "".join(cells).lstrip(GAP).rjust(len(cells))
        row = {"kind": kind, "series": names, "cells": text}
        rows.append({**row, "which": which} if len(group) > 1 else row)
    apart = np.diff(sorted(begins.values()))
    interval = int(np.median(apart)) if len(apart) else _DAY
    return {"sessions": times, "rows": rows, "interval": interval}


def _begins(sessions: Sessions[str], verdicts: Mapping[str, Verdicts]) -> dict[int, int]:
    """Return when each session began."""
    begins: dict[int, int] = {}
    for name, numbers in sessions.numbers.items():
        recent = slice(-2 * MOST_SESSIONS, None)
        pairs = zip(numbers[recent].tolist(), verdicts[name].times[recent].tolist(), strict=True)
        for number, time in pairs:
            begins[number] = min(begins.get(number, time), time)
    return begins


def _columns(begins: Mapping[int, int], a_day: int) -> dict[int, int]:
    """Return when the last sessions began, and when missing ones were due."""
    days = sorted({number // a_day for number in begins})
    step = round(float(np.median(np.diff(days)))) if len(days) > 1 else 1
    pairs = pairwise(days)
    usual = int(np.median([time % _DAY for time in begins.values()])) if begins else 0
    without = {day for a, b in pairs for day in range(a + step, b - step // 2, step)}
    every = {**begins, **{day * a_day: day * _DAY + usual for day in without}}
    return dict(sorted(every.items())[-MOST_SESSIONS:])


def _fill(
    cells: list[str],
    which: list[int],
    series: int,
    place: Mapping[int, int],
    numbers: Sequence[int],
    judged: Verdicts,
) -> None:
    """Write the verdicts of a series where they are worse than the others in its row."""
    recent = slice(-2 * MOST_SESSIONS, None)
    for number, verdict in zip(numbers[recent], judged.codes[recent], strict=True):
        column = place.get(int(number))
        if column is not None and (
            cells[column] == GAP or CELLS.index(cells[column]) < int(verdict)
        ):
            cells[column], which[column] = CELLS[verdict], series


def _mark_missing(
    cells: list[str], which: list[int], number: int, series: Series, times: Sequence[int]
) -> None:
    """Mark the sessions with a failed run and no sample from another run."""
    for miss in series.missing:
        column = int(np.searchsorted(times, seconds(miss.when) + _DAY // 2)) - 1
        near = column >= 0 and abs(times[column] - seconds(miss.when)) < _DAY
        if near and cells[column] == GAP:
            cells[column], which[column] = MISSED, number


#: The most rows of a map; the slow ones come first.
MOST_ROWS: Final = 400


def peer_maps(site: Snapshot) -> list[dict[str, object]]:
    """Return a map for the targets of each file system and for the nodes of each partition."""
    return [_map(each) for each in site.places]


def _map(place: Place) -> dict[str, object]:
    none = np.empty(0, "datetime64[ns]")
    every = np.sort(np.concatenate([none, *(each.times for each in place.speeds.values())]))
    days, firsts = np.unique(every.astype("datetime64[D]"), return_index=True)
    days, firsts = days[-MOST_SESSIONS:], firsts[-MOST_SESSIONS:]
    # the slowest over the day and all variables, in percent of the others' speed
    least: defaultdict[str, list[int | None]] = defaultdict(lambda: [None] * len(days))
    for speeds in place.speeds.values():
        recent = speeds.times >= days[0]
        columns = np.searchsorted(days, speeds.times[recent].astype("datetime64[D]"))
        for column, row in zip(columns, speeds.values[recent], strict=True):
            for at in np.flatnonzero(np.isfinite(row)):
                cells, percent = least[speeds.peers[at]], round(100 * float(np.exp(row[at])))
                cells[column] = min(percent, percent if cells[column] is None else cells[column])
    rows = sorted(with_worst(place), key=lambda each: WORST_FIRST.index(each[2].state))
    return {
        "title": place.name,
        "noun": place.noun,
        "sessions": [seconds(moment(time)) for time in every[firsts]],
        "rows": [
            {
                "name": name,
                "state": worst.state.value,
                "since": worst.since and seconds(worst.since),
                "runs": max(each.runs for each in found.values()),
                "speeds": {
                    variable: ratio_text(each.ratio)
                    for variable, each in found.items()
                    if worst.state is not PeerState.UNKNOWN
                },
                "percent": least[name],
            }
            for name, found, worst in rows[:MOST_ROWS]
        ],
    }


_DIGITS = 10


@cache
def series_id(key: SeriesKey) -> str:
    """Return a short name of the series for addresses, independent of other series."""
    return hashlib.sha256(slug(key).encode()).hexdigest()[:_DIGITS]


def job_id(key: SeriesKey) -> str:
    """Return a short name of all series that the same jobs measure, such as write and read."""
    return series_id(replace(key, variable=""))


def by_job(series: Iterable[Series]) -> dict[str, list[Series]]:
    """Return the series that the same jobs measure, by their common name."""
    found: defaultdict[str, list[Series]] = defaultdict(list)
    for each in series:
        found[job_id(each.key)].append(each)
    return dict(found)


def seconds(when: datetime) -> int:
    """Return `when` in whole seconds since 1970."""
    return int(when.astimezone(timezone.utc).timestamp())


def maintenances(site: Snapshot, series: Series) -> list[Span]:
    """Return the windows between the first run of the series and now, in order, with reasons."""
    spans = (
        replace(span, why=window.reason)
        for window in site.maintenance.get(series.key.system, ())
        if window.is_of(series.key.file_system)
        for span in window.spans(site.now)
        if len(series.history) and span.end >= series.history.first
    )
    return sorted(spans, key=lambda each: each.begin)
