"""Obstacles: file systems, environments and partitions that preflight found unfit.

An obstacle is reported once for all the checks that it stopped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from iobands.measure.run_reports import CheckRun
from iobands.model import SeriesKey
from iobands.snapshot import Obstacle

_Identity = tuple[str, str, str, str]  # of a case
_Place = tuple[str, str, str]  # system, partition and subject


def obstacles(
    runs: Mapping[SeriesKey | None, Sequence[CheckRun]], newest: datetime | None, default: timedelta
) -> tuple[Obstacle, ...]:
    """Return the current obstacles, by the newest run of each check.

    `runs` has the runs of each series, in the order of time, and `newest` is when the last session
    ended. An obstacle that was not examined again is dropped once it is overdue, by the interval of
    its check or the time `default`.
    """
    latest: dict[_Identity, CheckRun] = {}
    keys: defaultdict[_Identity, set[SeriesKey]] = defaultdict(set)
    for key, group in runs.items():
        for run in group:
            known = latest.setdefault(run.identity, run)
            latest[run.identity] = max(known, run, key=lambda each: each.when)
            keys[run.identity] |= {key} if key else set()
    fit = _last_fit(latest.values())
    found: defaultdict[_Place, list[CheckRun]] = defaultdict(list)
    for run in latest.values():
        if run.lacks is None or (newest and newest - run.when > (run.overdue or default)):
            continue
        place = (run.system, run.partition, run.lacks)
        # A check counts as stopped until it runs again, although the cause may be gone by now.
        if run.examines or place not in fit or run.when >= fit[place]:
            found[place].append(run)
    return tuple(_obstacle(place, found[place], keys) for place in sorted(found))


def _last_fit(runs: Iterable[CheckRun]) -> dict[_Place, datetime]:
    """Return when each file system, environment and partition was last seen to be fit."""
    fit: dict[_Place, datetime] = {}
    for run in runs:
        if run.result != "pass":
            continue
        file_system = run.fields.get("file_system")
        subjects = [run.examines] if run.examines else [file_system, run.environ, run.partition]
        for subject in subjects:
            place = (run.system, run.partition, str(subject))
            fit[place] = max(run.when, fit.get(place, run.when))
    return fit


def _obstacle(
    place: _Place, runs: Sequence[CheckRun], keys: Mapping[_Identity, set[SeriesKey]]
) -> Obstacle:
    system, partition, subject = place
    newest = max(runs, key=lambda run: run.when)
    # The checks that examine it name all problems, if they ran in the same session.
    said = [run for run in runs if run.examines and run.report == newest.report]
    why = "; ".join(dict.fromkeys(run.reason or run.result for run in said or [newest]))
    stopped = [run for run in runs if not run.examines and not run.fixture]
    return Obstacle(
        subject=subject,
        system=system,
        partition=partition,
        why=why,
        when=newest.when,
        checks=tuple(sorted(run.name for run in stopped)),
        keys=frozenset(key for run in stopped for key in keys[run.identity]),
    )
