"""The cases of checks and the series that they give: what was expected, and what was not had.

Every expected sample is accounted for: a run that gave none is a miss of its series, or a finding
where no series can say it. May know: the rows of perflogs, run reports and series; nothing of
bands, charts or states.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from iobands.history import moment_of, times_of
from iobands.readers.kinds import Rows
from iobands.readers.run_report import RunCase, RunReports
from iobands.series import Grouping, SeriesKey
from iobands.vocabulary import LATER_FIELDS, SERIES_FIELDS, canonical

#: The results of a case that did what was asked of it, which may be to stop.
FINE: Final = frozenset({"pass", "skip", "xfail", "abort"})
#: The series fields that say how large a run is: a site changes them for all runs of a check.
_SCALE: Final = ("nodes", "tasks", "gib")

_Identity = tuple[str, str, str, str]


@dataclass(frozen=True)
class Sighting:
    """A case of a check that gave a series, and when it last did."""

    key: SeriesKey
    case: _Identity
    last: datetime


@dataclass(frozen=True)
class Miss:
    """A run that should have given a sample of a series and gave none."""

    when: datetime
    what: str


@dataclass(frozen=True)
class Finding:
    """A check whose newest run failed and that never gave a series to say it by."""

    name: str
    system: str
    partition: str
    phase: str | None
    reason: str
    when: datetime


def sightings(rows: Rows, series: Grouping) -> Iterator[Sighting]:
    """Yield for each series the cases that gave it, and when each did so last.

    `series` is the grouping of the kinds of `rows`, which are in the order of time.
    """
    last = np.full(len(rows.kinds), -1)
    # of several rows in one place the last one stays
    last[rows.of_kind] = np.arange(len(rows))
    times = times_of(rows)
    names = rows.kinds.column("display_name").to_pylist()
    found: dict[tuple[int, str], int] = {}
    for code, name, place in zip(series.codes, names, last, strict=True):
        if place >= 0:
            pair = int(code), name or ""
            found[pair] = max(found.get(pair, 0), int(place))
    for (code, name), place in found.items():
        key = series.keys[code]
        case = (key.system, key.partition, key.environ or "", name)
        yield Sighting(key, case, moment_of(times[place]))


def superseded(sightings: Sequence[Sighting]) -> set[SeriesKey]:
    """Return the series whose cases have all gone over to a series of another scale."""
    newest: dict[tuple[_Identity, SeriesKey], Sighting] = {}
    for sighting in sorted(sightings, key=lambda sighting: sighting.last):
        whatever_scale = replace(sighting.key, **dict.fromkeys(_SCALE))
        newest[sighting.case, whatever_scale] = sighting
    return {sighting.key for sighting in sightings} - {each.key for each in newest.values()}


def tie(
    keys: Sequence[SeriesKey], sightings: Sequence[Sighting], cases: Sequence[RunCase]
) -> Mapping[SeriesKey | None, list[RunCase]]:
    """Return the cases of each series, and under None those that belong to none.

    A case belongs to the series that the perflogs know under its name. Failing that, as after a
    new parameter changed the name, to the series with which it agrees in every series field.
    """
    known: defaultdict[_Identity, set[SeriesKey]] = defaultdict(set)
    for sighting in sightings:
        known[sighting.case].add(sighting.key)
    alike: defaultdict[tuple[object, ...], set[SeriesKey]] = defaultdict(set)
    for key in keys:
        alike[_series_fields(key.fields())].add(key)
    tied: defaultdict[SeriesKey | None, list[RunCase]] = defaultdict(list, {None: []})
    for case in cases:
        series = known.get(case.identity)
        if (
            not series
            and not (case.fixture or case.examines)
            and case.fields.keys() | LATER_FIELDS >= set(SERIES_FIELDS)
        ):
            series = alike.get(_series_fields(case.fields))
        for key in series or (None,):
            tied[key].append(case)
    return tied


def _series_fields(fields: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(canonical(fields.get(name)) for name in SERIES_FIELDS)


def misses_of_rows(rows: Rows, series: Grouping) -> Mapping[SeriesKey, list[Miss]]:
    """Return the misses that lines of perflogs tell of, in the order of time."""
    found: defaultdict[SeriesKey, list[Miss]] = defaultdict(list)
    said = rows.kinds.select(["result", "fail_phase"]).to_pylist() if len(rows) else []
    for kind, time in zip(rows.of_kind, times_of(rows), strict=True):
        when = moment_of(time)
        what = _what(said[kind]["result"], said[kind]["fail_phase"], None, when)
        found[series.keys[series.codes[kind]]].append(Miss(when, what))
    return found


def misses_of_cases(key: SeriesKey, cases: Sequence[RunCase]) -> list[Miss]:
    """Return the misses of a series that run reports tell of."""
    return [Miss(case.when, _what_of(case)) for case in cases if key.variable not in case.recorded]


def _what_of(case: RunCase) -> str:
    if case.lacks:
        return f"the check of {case.when:%Y-%m-%d %H:%M} was not run: {case.lacks}: {case.reason}"
    return _what(case.result, case.phase, case.reason, case.when)


def _what(result: str, phase: str | None, reason: str | None, when: datetime) -> str:
    outcome = {
        "pass": "recorded no value",
        "fail": f"failed in {phase}" if phase else "failed",
        "skip": "was skipped",
        "abort": "was aborted",
    }.get(result, f"ended as {result}")
    return f"the run of {when:%Y-%m-%d %H:%M} {outcome}{f': {reason}' if reason else ''}"


def findings(
    cases: Sequence[RunCase],
    reports: RunReports,
    overdue: timedelta,
    wanted: Callable[[str], bool],
) -> Iterator[Finding]:
    """Yield the cases without a series whose newest run had a result that is wanted.

    One that later reports no longer hold has left the suite, and is dropped once it is overdue.
    """
    newest = {case.identity: case for case in cases}  # they come in the order of time
    for case in newest.values():
        if (
            wanted(case.result)
            and case.lacks is None
            and (reports.newest is None or reports.newest - case.when <= overdue)
        ):
            yield Finding(
                case.name,
                case.system,
                case.partition,
                case.phase,
                case.reason or case.result,
                case.when,
            )
