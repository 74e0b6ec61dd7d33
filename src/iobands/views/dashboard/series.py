"""What the dashboard shows of series: heat maps, the data of their pages, and short names."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np

from iobands.snapshot import (
    RATIO_UNIT,
    SCHEDULED,
    Change,
    PeerState,
    Place,
    Series,
    SeriesKey,
    Snapshot,
    Span,
    moment,
    slug,
)
from iobands.views import WORST_FIRST, action_text, ratio_text, with_worst
from iobands.views.explain_series import facts, moved

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
    columns = _columns(_begins(shown))
    times = [time for time, _ in columns]
    place = {number: column for column, (_, number) in enumerate(columns) if number is not None}
    named, by_hand = _known_of(site, shown, place)
    kinds: defaultdict[tuple[str, ...], list[Series]] = defaultdict(list)
    for each in shown:
        key = each.key
        parts = (key.file_system, key.pattern, key.variable, key.transport, key.system)
        kinds[tuple(part or "none" for part in parts)].append(each)
    rows = []
    for kind, group in kinds.items():
        cells, which = [GAP] * len(times), [0] * len(times)
        for number, each in enumerate(group):
            _fill(cells, which, number, place, each)
        for number, each in enumerate(group):
            _mark_missing(cells, which, number, each, times, named)
        spans = [span for each in group for span in maintenances(site, each)]
        ends = [(seconds(span.begin), seconds(span.end)) for span in spans]
        for column, time in enumerate(times):
            if cells[column] == GAP and any(begin <= time <= end for begin, end in ends):
                cells[column] = MAINTENANCE
        # the time before the first run of a row is no gap
        text = "".join(cells).lstrip(GAP).rjust(len(cells))
        days = min((each.history.newest.get("interval_days") or 1 for each in group), default=1)
        text = _without_unasked(text, times, by_hand, days * _DAY)
        names = [series_id(each.key) for each in group]
        row = {"kind": kind, "series": names, "cells": text}
        rows.append({**row, "which": which} if len(group) > 1 else row)
    scheduled = [times[column] for column in place.values() if column not in by_hand]
    apart = np.diff(sorted(scheduled or [times[column] for column in place.values()]))
    interval = int(np.median(apart)) if len(apart) else _DAY
    return {"sessions": times, "rows": rows, "interval": interval}


# The runs of a series that are looked at.
_RECENT: Final = slice(-2 * MOST_SESSIONS, None)


def _begins(shown: Iterable[Series]) -> dict[int, int]:
    """Return when each session began."""
    begins: dict[int, int] = {}
    for each in shown:
        numbers, times = each.history.sessions[_RECENT], each.verdicts.times[_RECENT]
        for number, time in zip(numbers.tolist(), times.tolist(), strict=True):
            begins[number] = min(begins.get(number, time), time)
    return begins


def _columns(begins: Mapping[int, int]) -> list[tuple[int, int | None]]:
    """Return when the last sessions began, with their numbers; missing ones have none."""
    every = sorted(begins.values())
    days = np.rint(np.diff(every) / _DAY)
    step = _DAY * round(float(np.median(days[days > 0]))) if days.any() else _DAY
    without = [time for a, b in pairwise(every) for time in range(a + step, b - step // 2, step)]
    found = [*((time, number) for number, time in begins.items()), *((t, None) for t in without)]
    return sorted(found, key=lambda each: each[0])[-MOST_SESSIONS:]


def _known_of(
    site: Snapshot, shown: Iterable[Series], place: Mapping[int, int]
) -> tuple[dict[str, int], set[int]]:
    """Return the columns of sessions by name, and the columns of sessions run by hand."""
    named: dict[str, int] = {}
    scheduled: set[int] = set()
    known = site.samples.select("session", "purpose")
    for each in shown:
        runs = known[each.rows[_RECENT]]
        numbers = each.history.sessions[_RECENT].tolist()
        for (name, purpose), number in zip(runs.iter_rows(), numbers, strict=True):
            if number in place and name is not None:
                named[name] = place[number]
            if number in place and purpose == SCHEDULED:
                scheduled.add(place[number])
    return named, {*place.values()} - scheduled


def _fill(
    cells: list[str], which: list[int], series: int, place: Mapping[int, int], of: Series
) -> None:
    """Write the verdicts of a series where they are worse than the others in its row."""
    numbers, codes = of.history.sessions[_RECENT], of.verdicts.codes[_RECENT]
    for number, verdict in zip(numbers.tolist(), codes.tolist(), strict=True):
        column = place.get(number)
        if column is not None and (cells[column] == GAP or CELLS.index(cells[column]) < verdict):
            cells[column], which[column] = CELLS[verdict], series


def _mark_missing(
    cells: list[str],
    which: list[int],
    number: int,
    series: Series,
    times: Sequence[int],
    named: Mapping[str, int],
) -> None:
    """Mark the sessions with a failed run and no sample from another run."""
    for miss in series.missing:
        column = int(np.searchsorted(times, seconds(miss.when) + _DAY // 2)) - 1
        near = column >= 0 and abs(times[column] - seconds(miss.when)) < _DAY
        if miss.session and miss.session in named:
            column, near = named[miss.session], True
        if near and cells[column] == GAP:
            cells[column], which[column] = MISSED, number


def _without_unasked(text: str, times: Sequence[int], by_hand: set[int], interval: float) -> str:
    """Remove the marks of a row from sessions in which no run was due or selected."""
    found, last = [], -math.inf
    for column, (cell, time) in enumerate(zip(text, times, strict=True)):
        is_unasked = column in by_hand or time - last < interval / 2
        found.append(" " if cell == GAP and is_unasked else cell)
        last = time if cell not in (GAP, " ") else last
    return "".join(found)


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


# Without people's names and texts.
_PUBLIC_FACTS: Final = (
    "Drop", "Rise", "Spread", "Suspicion", "Newest", "Next repeat", "Runs", "Baseline", "Evidence",
    "Power", "Earlier", "Incident", "Outliers",
)  # fmt: skip


def details_of(site: Snapshot, series: Series) -> dict[str, object]:
    """Return plain data; times are in seconds since 1970, values in the unit of the series.

    A public dashboard has no reasons.
    """
    evidence = series.status.evidence
    first = series.history.first if len(series.history) else None
    return {
        "id": series_id(series.key),
        "bands": [
            {
                "floor": b.floor,
                "lower": b.lower_quartile,
                "median": b.median,
                "upper": b.upper_quartile,
            }
            for b in series.verdicts.bands
        ],
        "segments": series.verdicts.segments,
        "baseline": _baseline(series),
        "epochs": [
            {"name": each.name, "since": seconds(each.since)}
            | ({} if site.is_public else {"reason": each.reason or each.source})
            for each in series.epochs
            if first and each.since > first
        ],
        "changes": [_change(each) for each in (evidence.changes if evidence else ())],
        "incidents": [
            {
                "name": each.name,
                "since": seconds(each.since),
                "until": seconds(each.until),
                "open": each.is_open,
                "ratio": each.ratios[series.key],
            }
            for each in site.incidents
            if series.key in each.ratios
        ],
        "maintenance": [
            {"begin": seconds(each.begin), "end": seconds(each.end)}
            | ({} if site.is_public else {"reason": each.why})
            for each in maintenances(site, series)
        ],
        "missing": [
            {"when": seconds(each.when)} | ({} if site.is_public else {"what": each.what})
            for each in series.missing
        ],
        "actions": [
            {"when": seconds(each.when), "says": action_text(each)} for each in series.actions
        ],
        # what an earlier run asked for has a smaller mark
        "asked": (
            series.history.times[series.history.asked].astype("datetime64[s]").astype(int)
        ).tolist(),
        "facts": _facts(site, series),
        "moved": [] if site.is_public else list(moved(site, series)),
    }


def _facts(site: Snapshot, series: Series) -> Sequence[tuple[str, str]]:
    found = []
    last = ""
    for heading, text in facts(site, series):
        last = heading or last
        if not site.is_public or last in _PUBLIC_FACTS:
            found.append((heading, text))
    return found


def _baseline(series: Series) -> dict[str, float] | None:
    evidence = series.status.evidence
    if evidence is None or evidence.level is None or not len(evidence.rows):
        return None
    return {"level": evidence.level, "since": int(series.verdicts.times[evidence.rows[0]])}


def _change(change: Change) -> dict[str, object]:
    return {
        "since": seconds(change.since),
        "low": seconds(change.since_low),
        "high": seconds(change.since_high),
        "raised": seconds(change.raised),
        "ended": change.ended and seconds(change.ended),
        "end": change.end,
        "ratio": change.ratio.value,
        "says": ratio_text(change.ratio),
        "baseline": change.baseline,
        "level": change.level,
    }
