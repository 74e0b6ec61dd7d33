"""The dashboard's data on series and peers: heat maps, the pages of series, and short names."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from iobands import snapshot
from iobands.snapshot import Change, PeerState, Place, Series, SeriesKey, Snapshot, Span, State
from iobands.views.explain_series import Fact, facts, missed_text, moved, raised_of, size_of
from iobands.views.peers import WORST_FIRST, meanings, since_of, with_worst
from iobands.views.writing import action_text, change_text, ratio_text

# The number of sessions in a heat map: six weeks of daily ones.
_MOST_SESSIONS: Final = 42
# The runs of a series that may belong to these sessions.
_RECENT: Final = slice(-2 * _MOST_SESSIONS, None)
# The most rows in a map of peers; slow peers come first.
_MOST_ROWS: Final = 400
# The newest occurrences of a window that are shown: older ones of a daily window are too narrow.
_MOST_SPANS: Final = 200
_DIGITS: Final = 10
_DAY: Final = 86_400
# The intervals after which a run is due in a session of its kind, and overdue in any other session.
_DUE: Final = 0.5
_OVERDUE: Final = 1.5
# The character of a cell: a verdict by its code, or why there is no verdict.
_CELLS: Final = "nwabc"
_GAP, _MISSED, _MAINTENANCE, _UNASKED = ".", "m", "p", " "
# The headings of facts that a page folds.
_TECHNICAL: Final = {"Evidence", "Power", "Baseline"}
# The headings of facts that contain neither names nor texts of people.
_PUBLIC_FACTS: Final = (
    "Drop", "Rise", "Spread", "Suspicion", "Newest", "Next repeat", "Runs", "Baseline", "Evidence",
    "Power", "Earlier", "Incident", "Outliers",
)  # fmt: skip


class _Sessions(NamedTuple):
    """The sessions of a heat map, each a column.

    `times` are when they began. `columns` and `named` map the numbers and the names of sessions
    with runs to their columns; `by_hand` are the columns of those that were not scheduled. `kinds`
    gives the systems and intervals of the series that ran in a column.
    """

    times: list[int]
    columns: dict[int, int]
    named: dict[str, int]
    by_hand: set[int]
    kinds: dict[int, set[tuple[str, float]]]


def heat_map(site: Snapshot) -> dict[str, object]:
    """Return the rows, the times of the sessions, and the usual interval between sessions.

    Times are in seconds since 1970, the interval is in seconds. A row is a group of series alike in
    file system, pattern, variable and transport. Series that run on demand and ratios are left out.
    """
    shown = _shown(site)
    of = _sessions(site, shown)
    kinds: defaultdict[tuple[str, ...], list[Series]] = defaultdict(list)
    for each in shown:
        key = each.key
        parts = (key.file_system, key.pattern, key.variable, key.transport, key.system)
        kinds[tuple(part or "none" for part in parts)].append(each)
    rows: list[dict[str, object]] = []
    for kind, group in kinds.items():
        cells, which = _cells(site, group, of)
        rows.append({"kind": kind, "series": [series_id(each.key) for each in group]})
        rows[-1] |= {"cells": cells} | ({"which": which} if len(group) > 1 else {})
    return {"sessions": of.times, "rows": rows, "interval": _usual_interval(of, shown)}


def is_old(site: Snapshot, newest: datetime) -> bool:
    """Return whether no run has come for two intervals between sessions, as state.js says."""
    shown = _shown(site)
    return (site.now - newest).total_seconds() > 2 * _usual_interval(_sessions(site, shown), shown)


def _shown(site: Snapshot) -> list[Series]:
    return [
        each
        for each in site.series
        if not each.is_on_demand and each.key.unit != snapshot.RATIO_UNIT
    ]


def _usual_interval(of: _Sessions, shown: Sequence[Series]) -> int:
    columns = of.columns.values()
    scheduled = [column for column in columns if column not in of.by_hand] or columns
    apart = np.diff(sorted(of.times[column] for column in scheduled))
    # sessions in quick succession, as when somebody tries iobands, are no schedule
    least = round(_DAY * min(map(_interval_days, shown), default=1))
    return max(int(np.median(apart)), least) if len(apart) else least


def _sessions(site: Snapshot, shown: Iterable[Series]) -> _Sessions:
    """Return the last sessions, including those without runs where the usual step leaves a gap."""
    runs: defaultdict[int, list[tuple[int, str | None, str, tuple[str, float]]]] = defaultdict(list)
    samples = site.samples.select("session", "purpose")
    for each in shown:
        kind = each.key.system, _interval_days(each)
        numbers, times = each.history.sessions[_RECENT], each.verdicts.times[_RECENT]
        rows = zip(times.tolist(), samples[each.rows[_RECENT]].iter_rows(), strict=True)
        for number, (time, (name, purpose)) in zip(numbers.tolist(), rows, strict=True):
            runs[number].append((time, name, purpose, kind))
    begins = {number: min(time for time, *_ in mine) for number, mine in runs.items()}
    every = sorted(begins.values())
    days = np.rint(np.diff(every) / _DAY)
    step = _DAY * round(float(np.median(days[days > 0]))) if days.any() else _DAY
    without = [time for a, b in pairwise(every) for time in range(a + step, b - step // 2, step)]
    found = [*((time, number) for number, time in begins.items()), *((t, None) for t in without)]
    last = sorted(found, key=lambda each: each[0])[-_MOST_SESSIONS:]
    columns = {number: column for column, (_, number) in enumerate(last) if number is not None}
    return _Sessions(
        [time for time, _ in last],
        columns,
        {name: columns[number] for number in columns for _, name, *_ in runs[number] if name},
        {
            column
            for number, column in columns.items()
            if snapshot.SCHEDULED not in (purpose for _, _, purpose, _ in runs[number])
        },
        {column: {kind for *_, kind in runs[number]} for number, column in columns.items()},
    )


def _interval_days(series: Series) -> float:
    return float(series.history.newest.get("interval_days") or 1)


def _cells(site: Snapshot, group: Sequence[Series], of: _Sessions) -> tuple[str, list[int]]:
    """Return the worst cell of a row in each session, and its series as an index in `group`."""
    cells, which = [_GAP] * len(of.times), [0] * len(of.times)
    for place, each in enumerate(group):
        numbers, codes = each.history.sessions[_RECENT], each.verdicts.codes[_RECENT]
        for number, verdict in zip(numbers.tolist(), codes.tolist(), strict=True):
            column = of.columns.get(number)
            if column is not None and _CELLS.find(cells[column]) < verdict:
                cells[column], which[column] = _CELLS[verdict], place
    for place, each in enumerate(group):
        for miss in each.missing:
            when = seconds(miss.when)
            column = int(np.searchsorted(of.times, when + _DAY // 2)) - 1
            is_near = column >= 0 and abs(of.times[column] - when) < _DAY
            column = of.named.get(miss.session or "", column if is_near else -1)
            if column >= 0 and cells[column] == _GAP:
                cells[column], which[column] = _MISSED, place
    spans = [span for each in group for span in _maintenances(site, each)]
    ends = [(seconds(span.begin), seconds(span.end)) for span in spans]
    for column, time in enumerate(of.times):
        if cells[column] == _GAP and any(begin <= time <= end for begin, end in ends):
            cells[column] = _MAINTENANCE
    # there is no gap before the first run of a row, nor in a session in which no run was due or
    # selected; in a session of another system, or of checks with other intervals, there is a gap
    # only if a run of this row is overdue
    text = "".join(cells).lstrip(_GAP).rjust(len(cells))
    days, system = min(map(_interval_days, group)), group[0].key.system
    found, last = "", -math.inf
    for column, (cell, time) in enumerate(zip(text, of.times, strict=True)):
        is_other = column in of.kinds and (system, days) not in of.kinds[column]
        share = _OVERDUE if is_other else _DUE
        is_unasked = column in of.by_hand or time - last < share * days * _DAY
        found += _UNASKED if cell == _GAP and is_unasked else cell
        last = time if cell not in (_GAP, _UNASKED) else last
    return found, which


def peer_map(place: Place) -> dict[str, object]:
    """Return a map of the targets of a file system, or of the nodes of a partition."""
    none = np.empty(0, "datetime64[ns]")
    every = np.sort(np.concatenate([none, *(each.times for each in place.speeds.values())]))
    days, firsts = np.unique(every.astype("datetime64[D]"), return_index=True)
    days, firsts = days[-_MOST_SESSIONS:], firsts[-_MOST_SESSIONS:]
    # the lowest speed over all sessions of a day and all variables, in percent of the others'
    least: defaultdict[str, list[int | None]] = defaultdict(lambda: [None] * len(days))
    for speeds in place.speeds.values():
        recent = speeds.times >= days[0]
        columns = np.searchsorted(days, speeds.times[recent].astype("datetime64[D]"))
        for column, row in zip(columns, speeds.values[recent], strict=True):
            for at in np.flatnonzero(np.isfinite(row)):
                cells, share = least[speeds.peers[at]], round(100 * float(np.exp(row[at])))
                cells[column] = min(share, share if cells[column] is None else cells[column])
    rows = sorted(with_worst(place), key=lambda each: WORST_FIRST.index(each[2].state))
    return {
        "noun": place.noun,
        "count": len(rows),
        "sessions": [snapshot.moment(time) for time in every[firsts]],
        "rows": [
            {
                **picked(worst, "name", "state"),
                "since": since_of(worst),
                "runs": max(each.runs for each in found.values()),
                "speeds": {
                    variable: ratio_text(each.ratio)
                    for variable, each in found.items()
                    if worst.state is not PeerState.UNKNOWN
                },
                "percent": least[name],
            }
            for name, found, worst in rows[:_MOST_ROWS]
        ],
        "meanings": meanings(place, "Since"),
    }


@cache
def series_id(key: SeriesKey) -> str:
    """Return a short name of the series for addresses, independent of other series."""
    return hashlib.sha256(snapshot.slug(key).encode()).hexdigest()[:_DIGITS]


def job_id(key: SeriesKey) -> str:
    """Return a short name of the series that the same jobs measure, such as write and read."""
    return series_id(replace(key, variable=""))


def picked(of: object, *names: str) -> dict[str, object]:
    """Return the named attributes of an object."""
    return {name: getattr(of, name) for name in names}


def seconds(when: datetime) -> int:
    """Return `when` in whole seconds since 1970."""
    return int(when.timestamp())


def _maintenances(site: Snapshot, series: Series) -> list[Span]:
    """Return the newest maintenances since the first run of the series, in order, with reasons."""
    spans = (
        replace(span, why=window.reason)
        for window in site.maintenance.get(series.key.system, ())
        if window.is_of(series.key.file_system)
        for span in window.spans(site.now)[-_MOST_SPANS:]
        if len(series.history) and span.end >= series.history.first
    )
    return sorted(spans, key=lambda each: each.begin)


def details_of(site: Snapshot, series: Series) -> dict[str, object]:
    """Return the data of a series' page without its runs; values are in the unit of the series."""
    evidence, history, known = series.status.evidence, series.history, series.verdicts
    first, spans = history.first if len(history) else None, _maintenances(site, series)
    baseline = None
    if evidence and evidence.level is not None and len(evidence.rows):
        baseline = {"level": evidence.level, "since": int(known.times[evidence.rows[0]])}
    return {
        "id": series_id(series.key),
        "bands": [
            picked(each, "floor", "lower_quartile", "median", "upper_quartile")
            for each in known.bands
        ],
        "segments": known.segments,
        # not computed in the page, whose values are rounded and might get another verdict
        "verdicts": "".join(map(_CELLS.__getitem__, known.codes.tolist())),
        "baseline": baseline,
        "epochs": [
            picked(replace(each, reason=each.reason or each.source), "name", "since", "reason")
            for each in series.epochs
            if first and each.since > first
        ],
        "changes": [_change(site, series, each) for each in (evidence.changes if evidence else ())],
        "incidents": [
            picked(each, "name", "since", "until", "is_open") | {"ratio": each.ratios[series.key]}
            for each in site.incidents
            if series.key in each.ratios
        ],
        "maintenance": [picked(each, "begin", "end", "why") for each in spans],
        "missing": [{"when": each.when, "what": missed_text(each)} for each in series.missing],
        "actions": [{"when": each.when, "says": action_text(each)} for each in series.actions],
        # these runs have smaller marks
        "asked": history.times[history.asked].astype("datetime64[s]").astype(int).tolist(),
        **_facts(site, series),
        "moved": [] if site.is_public else list(moved(site, series)),
    }


def _change(site: Snapshot, series: Series, change: Change[datetime]) -> dict[str, object]:
    """Return a change as the chart needs it, with its label and a sentence."""
    is_slide = change.kind is State.SLIDING
    return {
        **picked(change, "raised", "ended", "end"),
        "since": change.began,
        "since_low": change.began if is_slide else change.since_low,
        "since_high": change.began if is_slide else change.since_high,
        "label": change_text(change, change.size),
        "says": f"{size_of(site, change, series.key.symbol)}; {raised_of(site, change)}",
    }


def _facts(site: Snapshot, series: Series) -> dict[str, list[Fact]]:
    found: dict[str, list[Fact]] = {"facts": [], "technical": []}
    last = ""
    for heading, text in facts(site, series):
        last = heading or last
        if not site.is_public or last in _PUBLIC_FACTS:
            found["technical" if last in _TECHNICAL else "facts"].append((heading, text))
    return found
