"""Everything that is known of a site at one time: its series, its alerts, what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iobands.alerts.action import Action, bands_after, in_force
from iobands.alerts.alert import (
    OK,
    UNKNOWN,
    Alert,
    alerts_of,
    of_failures,
    of_preflight,
    ordered,
    worst,
)
from iobands.alerts.groups import group_drops, groups_of, sessions_a_year
from iobands.alerts.log import Log, read_log
from iobands.bands import load_bands
from iobands.cases import (
    FINE,
    Finding,
    findings,
    misses_of_cases,
    misses_of_rows,
    sightings,
    superseded,
    tie,
)
from iobands.detection.series import Budget, runs_a_year
from iobands.detection.sessions import sessions_of
from iobands.history import NOTHING, histories, rows_of
from iobands.readers.kinds import Rows
from iobands.readers.newest_cases import read_newest_cases
from iobands.readers.perflog import read_perflogs
from iobands.readers.rejected import Rejected
from iobands.series import Grouping, SeriesKey, grouping_of, labels
from iobands.status.outliers import Outliers, outliers_of, total
from iobands.status.preflight import Obstacle, obstacles
from iobands.status.series import Series
from iobands.status.state import State, assess

if TYPE_CHECKING:
    import pandas as pd

#: How old the newest sample of a series may be.
OVERDUE: Final = timedelta(days=3)


@dataclass(frozen=True)
class Site:
    """What is known of a site, or of one of its systems, at `now`.

    `alerts` are the worst first. `skipped` are checks without a series that were skipped for a
    reason, such as a program that is not installed. `superseded` names series that are no longer
    expected, because their check now runs at another scale. `outliers` is by system and file
    system. `actions` has all that was done about each series, undone actions included.
    """

    now: datetime
    series: tuple[Series, ...]
    alerts: tuple[Alert, ...] = ()
    skipped: tuple[Finding, ...] = ()
    superseded: tuple[str, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    outliers: Mapping[tuple[str, str], Outliers] = field(default_factory=dict)
    actions: Mapping[SeriesKey, tuple[Action, ...]] = field(default_factory=dict)
    budget: Budget = Budget()  # noqa: RUF009 (frozen)

    @property
    def exit_status(self) -> int:
        """The exit status of a monitoring plug-in: 0 OK, 1 warning, 2 critical, 3 unknown."""
        statuses = [alert.exit_status for alert in self.alerts]
        return worst([*statuses, OK if self.series else UNKNOWN])

    def counts(self) -> dict[State, int]:
        """Return how many series are in each state that occurs, the worst first."""
        found = Counter(series.status.state for series in self.series)
        return {state: found[state] for state in State if found[state]}

    def alerts_on(self, key: SeriesKey) -> tuple[Alert, ...]:
        """Return the alerts that have the series as a member."""
        return tuple(alert for alert in self.alerts if key in alert.keys)


class _Tables:
    """The samples of all series as tables, made when the first of them is asked for."""

    def __init__(self, rows: Rows, series: Grouping) -> None:
        self._rows = rows
        self._series = series

    def of(self, key: SeriesKey) -> pd.DataFrame:
        return self._split[key] if key in self._split else self._frame.iloc[:0]

    @cached_property
    def _frame(self) -> pd.DataFrame:
        return self._rows.frame()

    @cached_property
    def _split(self) -> Mapping[SeriesKey, pd.DataFrame]:
        order, ends = rows_of(self._rows, self._series)
        table = self._frame.take(order)
        spans = zip(self._series.keys, ends, ends[1:], strict=False)
        return {key: table.iloc[begin:end] for key, begin, end in spans}


def read_site(
    perflogs: Path,
    bands: Path,
    alerts: Path,
    *,
    now: datetime,
    system: str | None = None,
    overdue: timedelta = OVERDUE,
    false_alarms: float = 1.0,
) -> Site:
    """Read everything and return the site; `bands` and `alerts` are directories.

    `false_alarms` is the budget of false alarms a year, all series together.

    Raises:
        FileNotFoundError: there are no perflogs.
        FileError: a bands file cannot be used.
        OSError: a log of actions cannot be read.
    """
    logs = read_perflogs(perflogs, system)
    reports = read_newest_cases(perflogs, system)
    of_kinds = grouping_of(logs.measured.kinds)
    samples = dict(histories(logs.measured, of_kinds))
    without = misses_of_rows(logs.missed, of_kinds)
    seen = [*sightings(logs.measured, of_kinds), *sightings(logs.missed, of_kinds)]
    past = superseded(seen)
    keys = sorted({*samples, *without} - past, key=SeriesKey.sort_key)
    systems = {key.system for key in keys}
    bands_of = {name: load_bands(bands, name) for name in systems}
    log_of = {name: read_log(alerts, name, now) for name in systems}
    actions = {key: log_of[key.system].of(key) for key in keys}
    standing = {key: in_force(each, now) for key, each in actions.items()}
    names = labels(keys)
    tied = tie(keys, seen, reports.cases)
    measured = {key: samples[key] for key in keys if key in samples}
    sessions = sessions_of({key: each.times for key, each in measured.items()})
    groups = groups_of({key: _text(each.newest, "medium") for key, each in measured.items()})
    budget = Budget(
        false_alarms,
        sum(runs_a_year(each.times) for each in measured.values())
        + sessions_a_year(groups, sessions),
    )
    tables = _Tables(logs.measured, of_kinds)
    series = []
    for key in keys:
        # of two at the same time max() takes the first, and reports know more
        missing = [*misses_of_cases(key, tied.get(key, ())), *without.get(key, ())]
        of_key = bands_after(bands_of[key.system], standing[key], key.system)
        history = samples.get(key, NOTHING)
        status = assess(
            key,
            history,
            missing,
            of_key,
            now=now,
            overdue=timedelta.max if key.case else overdue,  # cases are run on demand
            budget=budget,
        )
        counted = outliers_of(key, history, of_key, status)
        table = partial(tables.of, key)
        series.append(Series(key, names[key], history, table, of_key, status, counted))
    detections = {each.key: each.status.detection for each in series if each.status.detection}
    drops = group_drops(groups, detections, budget)
    stopped = obstacles(tied, reports.newest, overdue)
    unfit = frozenset(key for each in stopped for key in each.keys)
    failed = findings(tied[None], reports, overdue, lambda result: result not in FINE)
    places = {(each.key.system, each.key.partition) for each in series}
    places |= {(each.system, each.partition) for each in stopped}
    found = alerts_of(series, drops, standing, budget, unfit)
    every = labels({*samples, *without})
    return Site(
        now=now,
        series=tuple(series),
        alerts=ordered([*found, *of_preflight(stopped, len(places) > 1), *of_failures(failed)]),
        skipped=tuple(findings(tied[None], reports, overdue, lambda result: result == "skip")),
        superseded=tuple(every[key] for key in sorted(past, key=SeriesKey.sort_key)),
        rejected=(*logs.rejected, *reports.rejected, *_rejected(log_of)),
        obstacles=stopped,
        outliers=_by_file_system(series),
        actions=actions,
        budget=budget,
    )


def _rejected(logs: Mapping[str, Log]) -> list[Rejected]:
    return [line for name in sorted(logs) for line in logs[name].rejected]


def _text(newest: Mapping[str, object], name: str) -> str | None:
    value = newest.get(name)
    return None if value is None else str(value)


def _by_file_system(series: list[Series]) -> dict[tuple[str, str], Outliers]:
    places = sorted({(each.key.system, each.key.file_system or "none") for each in series})
    return {
        place: total(
            each.outliers
            for each in series
            if (each.key.system, each.key.file_system or "none") == place
        )
        for place in places
    }
