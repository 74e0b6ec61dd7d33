"""Missing runs: when a sample is expected, and why it is missing.

Every expected sample is accounted for: a run without a sample is a missing run of its series, or a
finding if it belongs to no series. An obstacle is what the preflight found unfit: it is reported
once for all the checks that it stopped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from operator import attrgetter
from typing import Final

import polars as pl

from iobands.model import (
    LATER_FIELDS,
    SERIES_FIELDS,
    SHARED_SERIES,
    TIME,
    CheckRun,
    RunReports,
    SeriesKey,
    canonical,
    check_name,
    interval_of,
    overdue,
)
from iobands.snapshot import Finding, History, MissingRun, Obstacle, Spans, Times, is_constant
from iobands.source.samples import KEY, Samples

#: Failures of checks without an interval are dropped if the checks did not run for this long.
OVERDUE: Final = overdue(timedelta(days=1))
#: The results of a check that did its task, which may be to stop.
FINE: Final = frozenset({"pass", "skip", "xfail", "abort"})
# All series fields except the size of a run, which a site changes for all runs of a check.
_OF_ANY_SIZE: Final = attrgetter(
    *(name for name in SeriesKey.__dataclass_fields__ if name not in {"nodes", "tasks", "gib"})
)

_NEVER: Final = datetime(1, 1, 1, tzinfo=timezone.utc)

_Identity = tuple[str, str, str, str]  # system, partition, environment and name of a check
_Place = tuple[str, str, str]  # system, partition and subject

# Runs that are closer count as one visit, such as a run that was repeated by hand.
_VISIT: Final = 12 * 3600  # seconds
# The fewest gaps that make a habit: three runs of a check are not a schedule.
_ENOUGH_GAPS: Final = 3
_NEWEST_GAPS: Final = 10
# A quantile of the newest gaps: longer than most, to learn a change to a longer interval soon.
_QUANTILE: Final = 0.75


def overdue_after(history: History) -> timedelta | None:
    """Return the age of the newest sample from which a series is overdue, None for never.

    That sample has the interval that the site file declared for its check. Without one, the
    interval is the upper quartile of the newest gaps between runs at least 12 hours apart.
    """
    interval = _declared(history) or _learned(history.routine.times)
    return overdue(interval) if interval else None


def missed_schedule(
    began: datetime, histories: Collection[History], spans: Spans, now: datetime
) -> timedelta | None:
    """Return the shortest declared interval if no session ran for two of them, else None.

    `began` is when the newest session began. The time in `spans` does not count.
    """
    interval = min(filter(None, map(_declared, histories)), default=None)
    if interval is None:
        return None
    return interval if now - began - spans.covered(began, now) > 2 * interval else None


def _declared(history: History) -> timedelta | None:
    return interval_of(history.newest.get("interval_days"))


def _learned(times: Times) -> timedelta | None:
    visits: list[int] = []
    for time in map(int, times[::-1].astype("datetime64[s]").astype(int)):
        if not visits or visits[-1] - time >= _VISIT:
            visits.append(time)
        if len(visits) > _NEWEST_GAPS:
            break
    if len(visits) <= _ENOUGH_GAPS:
        return None
    gaps = sorted(later - before for later, before in pairwise(visits))
    return timedelta(seconds=gaps[round(_QUANTILE * (len(gaps) - 1))])


@dataclass(frozen=True)
class Sighting:
    """A check that gave a series: the times of its last run and of the run before, if any."""

    key: SeriesKey
    check: _Identity
    last: datetime
    before: datetime | None


def sightings(samples: Samples) -> list[Sighting]:
    """Return for each series the checks that gave it, including runs without a value."""
    found, columns, time = [], (*KEY, "display_name"), pl.col(TIME)
    before = time.filter(time < time.last()).last()
    newest = time.last().alias("last"), before.alias("before")
    for rows in (samples.values.select(*columns, TIME), samples.missed):
        differing = [name for name in columns if not is_constant(rows[name])] or columns[:1]
        groups = rows.group_by(differing, maintain_order=True).agg(
            pl.col(name for name in columns if name not in differing).first(), *newest
        )
        for *key, name, last, before in groups.select(*columns, "last", "before").iter_rows():
            series = SeriesKey(*key)
            check = (series.system, series.partition, series.environ or "", check_name(name or ""))
            found.append(Sighting(series, check, last, before))
    return found


def superseded(sightings: Sequence[Sighting]) -> set[SeriesKey]:
    """Return the series whose checks all run at another scale now.

    A check must have run twice at that scale after the newest run of the series: a single run or
    line does not end a series.
    """

    def of_any_size(each: Sighting) -> tuple[_Identity, object]:
        return each.check, _OF_ANY_SIZE(each.key)

    newest = {of_any_size(each): each for each in sorted(sightings, key=lambda each: each.last)}
    kept = {
        each.key
        for each in sightings
        for other in [newest[of_any_size(each)]]
        if other.key == each.key or other.before is None or other.before <= each.last
    }
    return {sighting.key for sighting in sightings} - kept


def runs_of_series(
    keys: Sequence[SeriesKey], sightings: Sequence[Sighting], runs: Sequence[CheckRun]
) -> Mapping[SeriesKey | None, list[CheckRun]]:
    """Return the runs of each series, and under None the runs without a series.

    A run belongs to the series that the perflogs have under its name and case. Otherwise, such as
    after a new parameter changed the name, it belongs to the series with the same fields. But if
    another check gave that series later, or in the same session, or the run was refused because
    another one feeds it, the run is of a check that has no series yet.
    """
    known: defaultdict[_Identity, set[SeriesKey]] = defaultdict(set)
    measured: dict[SeriesKey, datetime] = {}
    for sighting in sightings:
        known[sighting.check].add(sighting.key)
        measured[sighting.key] = max(sighting.last, measured.get(sighting.key, sighting.last))
    in_session = {(run.report, key) for run in runs for key in known.get(run.identity, ())}
    alike: defaultdict[tuple[object, ...], set[SeriesKey]] = defaultdict(set)
    for key in keys:
        alike[_series_fields(key.fields())].add(key)
    found: defaultdict[SeriesKey | None, list[CheckRun]] = defaultdict(list, {None: []})
    for run in runs:
        by_name = known.get(run.identity, ())
        series = {key for key in by_name if key.case == run.fields.get("case", key.case)}
        is_other = run.fixture or run.examines or SHARED_SERIES in (run.reason or "")
        is_complete = run.fields.keys() | LATER_FIELDS >= set(SERIES_FIELDS)
        if not series and is_complete and not is_other:
            series = {
                key
                for key in alike.get(_series_fields(run.fields), ())
                if (run.report, key) not in in_session and not run.when <= measured.get(key, _NEVER)
            }
        for of_run in series or (None,):
            found[of_run].append(run)
    return found


def _series_fields(fields: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(canonical(fields.get(name)) for name in SERIES_FIELDS)


def missing_in_perflogs(missed: pl.DataFrame) -> Mapping[SeriesKey, list[MissingRun]]:
    """Return the runs without a value in the perflogs, in the order of time."""
    found: defaultdict[SeriesKey, list[MissingRun]] = defaultdict(list)
    columns = (*KEY, "result", "fail_phase", TIME, "session")
    for *key, result, phase, when, session in missed.select(columns).iter_rows():
        what = _sentence(result, phase, None, when)
        found[SeriesKey(*key)].append(MissingRun(when, what, session, result == "fail"))
    return found


def missing_in_reports(key: SeriesKey, runs: Sequence[CheckRun]) -> list[MissingRun]:
    """Return the runs of a series that recorded no value of its variable."""
    return [
        MissingRun(run.when, _sentence_of(run), run.session, run.result == "fail" and not run.lacks)
        for run in runs
        if key.variable not in run.recorded
    ]


def _sentence_of(run: CheckRun) -> str:
    if run.lacks:
        when = f"{run.when.day} {run.when:%b %Y %H:%M}"
        return f"the check of {when} did not run: {run.lacks}: {run.reason}"
    return _sentence(run.result, run.phase, run.reason, run.when)


def _sentence(result: str, phase: str | None, reason: str | None, when: datetime) -> str:
    says_phase = phase is None or (reason or "").startswith(f"{phase} error")
    # the reason that ReFrame gives for a case that it aborts is the name of one of its classes
    reason = None if result == "abort" and (reason or "").startswith("aborted due to") else reason
    outcome = {
        "pass": "recorded no value",
        "fail": "failed" if says_phase else f"failed in {phase}",
        "skip": "was skipped",
        "abort": "was aborted",
    }.get(result, f"ended as {result}")
    return f"the run of {when.day} {when:%b %Y %H:%M} {outcome}{f': {reason}' if reason else ''}"


def findings(
    runs: Sequence[CheckRun], reports: RunReports, wanted: Callable[[str], bool]
) -> Iterator[Finding]:
    """Yield the checks without a series if their newest run had one of the wanted results.

    A check that is missing in later reports has left the suite. It is dropped after two of its
    declared intervals and a day, or after `OVERDUE`.
    """
    newest = {run.identity: run for run in runs}  # they come in the order of time
    for run in newest.values():
        age = reports.newest - run.when if reports.newest else timedelta()
        is_recent = age <= (run.overdue or OVERDUE)
        if wanted(run.result) and run.lacks is None and is_recent:
            yield Finding(
                run.name, run.system, run.partition, run.phase, run.reason or run.result, run.when
            )


def obstacles(
    runs: Mapping[SeriesKey | None, Sequence[CheckRun]], newest: datetime | None
) -> tuple[Obstacle, ...]:
    """Return the current obstacles, by the newest run of each check.

    `runs` has the runs of each series, in the order of time, and `newest` is when the last session
    ended. An obstacle that was not examined again is dropped once it is overdue, by the interval of
    its check or after `OVERDUE`.
    """
    pairs = [(run, key) for key, group in runs.items() for run in group]
    pairs.sort(key=lambda pair: pair[0].when)
    latest = {run.identity: run for run, _ in pairs}
    first: dict[_Identity, CheckRun] = {}  # the first of a check's newest runs that lack the same
    for run, _ in pairs:
        if run.lacks != first.setdefault(run.identity, run).lacks:
            first[run.identity] = run
    keys: defaultdict[_Identity, set[SeriesKey]] = defaultdict(set)
    for run, key in pairs:
        keys[run.identity] |= {key} if key else set()
    fit = _last_fit(latest.values())
    found: defaultdict[_Place, list[CheckRun]] = defaultdict(list)
    for run in latest.values():
        if run.lacks is None or (newest and newest - run.when > (run.overdue or OVERDUE)):
            continue
        place = (run.system, run.partition, run.lacks)
        # A check counts as stopped until it runs again, although the cause may be gone by now.
        if run.examines or place not in fit or run.when >= fit[place]:
            found[place].append(run)
    return tuple(_obstacle(place, found[place], first, keys) for place in sorted(found))


def _last_fit(runs: Iterable[CheckRun]) -> dict[_Place, datetime]:
    """Return when each file system, environment and partition was last seen to be fit."""
    fit: dict[_Place, datetime] = {}
    for run in runs:
        subjects = (run.fields.get("file_system"), run.environ, run.partition)
        for subject in (run.examines,) if run.examines else subjects:
            if run.result == "pass":
                place = (run.system, run.partition, str(subject))
                fit[place] = max(run.when, fit.get(place, run.when))
    return fit


def _obstacle(
    place: _Place,
    runs: Sequence[CheckRun],
    first: Mapping[_Identity, CheckRun],
    keys: Mapping[_Identity, set[SeriesKey]],
) -> Obstacle:
    system, partition, subject = place
    newest = max(runs, key=lambda run: run.when)
    # The checks that examine it name all problems, if they ran in the same session.
    examining = [run for run in runs if run.examines and run.report == newest.report]
    why = "; ".join(dict.fromkeys(run.reason or run.result for run in examining or [newest]))
    stopped = [run for run in runs if not run.examines and not run.fixture]
    names = tuple(sorted(run.name for run in stopped))
    of_series = frozenset(key for run in stopped for key in keys[run.identity])
    # a stopped check that runs seldom may have missed that the subject was fit in between
    seen = [run for run in runs if run.examines] or runs
    since = min(first[run.identity].when for run in seen)
    return Obstacle(subject, system, partition, why, since, names, of_series)
