"""A site at one time: its series, its alerts, its missing runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from iobands.alerts.action import Action, bands_after, in_force
from iobands.alerts.alert import OK, UNKNOWN, WARNING, Alert, ordered, worst
from iobands.alerts.causes import alerts_of, of_failures, of_preflight, of_session
from iobands.alerts.groups import GroupDrop, group_drops, groups_of
from iobands.alerts.incident import Incident, incidents_of
from iobands.alerts.ledger import Ledger, ledger_of
from iobands.alerts.log import read_log
from iobands.alerts.slow import actions_on_peers, with_slow_peers
from iobands.bands import Window, load_bands
from iobands.detection.prior import Prior, prior_of
from iobands.detection.series import Budget, runs_a_year
from iobands.detection.sessions import sessions_of
from iobands.directories.note import Leftover, read_leftovers
from iobands.model.history import NOTHING, History
from iobands.model.rejected import Rejected
from iobands.model.series import MADE_UP, SeriesKey, labels
from iobands.model.times import overdue
from iobands.results.missing_runs import (
    FINE,
    Finding,
    findings,
    missing_in_perflogs,
    missing_in_reports,
    runs_of_series,
    sightings,
    superseded,
)
from iobands.results.perflog import read_perflogs
from iobands.results.run_reports import RunReports, read_run_reports
from iobands.results.samples import Samples
from iobands.results.speeds import no_speeds
from iobands.session.record import LastSession, read_last_session
from iobands.site.set_aside import (
    AHEAD,
    FutureSample,
    Maintenance,
    future_samples,
    is_retired,
    maintenance_of,
    only_in_future,
    outside_maintenance,
    spans_of_peers,
    without_future,
)
from iobands.status.expected import missed_schedule, overdue_after
from iobands.status.outliers import Outliers, transient_runs
from iobands.status.peers import PeerName, Place, places_of
from iobands.status.preflight import Obstacle, obstacles
from iobands.status.series import Series
from iobands.status.state import State, assess

if TYPE_CHECKING:
    import polars as pl

#: Failures of checks without an interval are dropped when they were not run for so long.
OVERDUE: Final = overdue(timedelta(days=1))


@dataclass(frozen=True)
class Site:
    """What is known of a site, or of one of its systems, at `now`.

    `alerts` are the worst first. `skipped` are checks without a series that were skipped for a
    reason, such as a program that is not installed. `superseded` names series that are no longer
    expected, because their check now runs at another scale. `retired` are the series that a
    person retired and `future` the samples dated in the future: nothing is judged of either.
    `maintenance` are the windows of each system. `drops` are those of groups, past ones included.
    `outliers` is by system and file system. `actions` has all that was done about each series,
    undone actions included. `sizes_gib` are those of the file systems that preflight saw, by the
    same names as `outliers`. `leftovers` are run directories that could not be removed. `places`
    have the targets and nodes that are compared with each other, `peer_actions` all that was done
    about these; `speeds` are theirs in each run.
    """

    now: datetime
    series: tuple[Series, ...]
    alerts: tuple[Alert, ...] = ()
    skipped: tuple[Finding, ...] = ()
    superseded: tuple[str, ...] = ()
    retired: tuple[Series, ...] = ()
    future: tuple[FutureSample, ...] = ()
    maintenance: Mapping[str, tuple[Window, ...]] = field(default_factory=dict)
    rejected: tuple[Rejected, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    drops: tuple[GroupDrop, ...] = ()
    incidents: tuple[Incident, ...] = ()
    outliers: Mapping[tuple[str, str], Outliers] = field(default_factory=dict)
    actions: Mapping[SeriesKey, tuple[Action, ...]] = field(default_factory=dict)
    sizes_gib: Mapping[tuple[str, str], float] = field(default_factory=dict)
    budget: Budget = Budget()  # noqa: RUF009 (frozen)
    last_session: LastSession | None = None
    leftovers: tuple[Leftover, ...] = ()
    speeds: pl.DataFrame = field(default_factory=no_speeds, repr=False, compare=False)
    places: tuple[Place, ...] = ()
    peer_actions: Mapping[PeerName, tuple[Action, ...]] = field(default_factory=dict)

    @property
    def exit_status(self) -> int:
        """The exit status of a monitoring plug-in: 0 OK, 1 warning, 2 critical, 3 unknown."""
        statuses = [alert.exit_status for alert in self.alerts]
        left = WARNING if self.leftovers else OK
        return worst([*statuses, left, OK if self.series else UNKNOWN])

    @property
    def is_made_up(self) -> bool:
        """Whether nothing of it was measured: it is that of `iobands demo`."""
        return any(each.key.system == MADE_UP for each in self.series)

    def counts(self) -> dict[State, int]:
        """Return how many series are in each state that occurs, the worst first."""
        found = Counter(series.status.state for series in self.series)
        return {state: found[state] for state in State if found[state]}

    @property
    def all_actions(self) -> dict[SeriesKey | PeerName, tuple[Action, ...]]:
        """All that was done about each series, target or node, undone actions included."""
        found: dict[SeriesKey | PeerName, tuple[Action, ...]] = {}
        found.update((key, each) for key, each in self.actions.items())
        found.update((name, each) for name, each in self.peer_actions.items())
        return found

    def ledger(self) -> Ledger:
        """Return open and past alerts, and how each ended."""
        standing = {key: in_force(each, self.now) for key, each in self.all_actions.items()}
        return ledger_of(
            self.alerts, self.series, self.drops, self.incidents, standing, self.places
        )

    def alerts_on(self, key: SeriesKey) -> tuple[Alert, ...]:
        """Return the alerts that have the series as a member."""
        return self._alerts_by_series.get(key, ())

    @cached_property
    def _alerts_by_series(self) -> Mapping[SeriesKey, tuple[Alert, ...]]:
        found: defaultdict[SeriesKey, tuple[Alert, ...]] = defaultdict(tuple)
        for alert in self.alerts:
            for key in alert.keys:
                found[key] += (alert,)
        return found


def read_site(
    perflogs: Path,
    bands: Path,
    alerts: Path,
    *,
    now: datetime,
    system: str | None = None,
    false_alarms: float = 1.0,
    as_of: bool = False,
) -> Site:
    """Read everything and return the site; `bands` and `alerts` are directories.

    `false_alarms` is the budget of false alarms a year, all series together. With `as_of` the
    site is as it was known at `now`, a time in the past: later runs and actions do not count.

    Raises:
        FileNotFoundError: there are no perflogs.
        FileError: a bands file cannot be used.
        OSError: a log of actions cannot be read.
    """
    samples, later, histories, reports = _read(perflogs, system, now, as_of)
    without = missing_in_perflogs(samples.missed)
    seen = sightings(samples)
    past = superseded(seen)
    systems = {key.system for key in {*histories, *without, *(key for key, _ in later)}}
    systems |= {run.system for run in reports.runs}
    bands_of = {name: load_bands(bands, name) for name in systems}
    windows = {name: maintenance_of(each, now) for name, each in bands_of.items()}
    reports = replace(reports, runs=outside_maintenance(reports.runs, windows))
    log_of = {name: read_log(alerts, name, now, as_of=as_of) for name in systems}
    every = labels({*histories, *without, *(key for key, _ in later)})
    future = future_samples(later, every, log_of, now)
    without = {**only_in_future(future, histories), **without}
    keys = sorted({*histories, *without} - past, key=SeriesKey.sort_key)
    actions = {key: log_of[key.system].of(key) for key in keys}
    standing = {key: in_force(each, now) for key, each in actions.items()}
    names = labels(keys)
    runs = runs_of_series(keys, seen, reports.runs)
    gone = {key for key in keys if is_retired(standing[key], histories.get(key, NOTHING))}
    measured = {key: histories[key] for key in keys if key in histories and key not in gone}
    sessions = sessions_of({key: each.times for key, each in measured.items()})
    groups = groups_of({key: each.newest.get("medium") for key, each in measured.items()})
    budget = Budget(
        false_alarms,
        sum(runs_a_year(each.times) for each in measured.values())
        + sum(sessions.a_year(group.keys) for group in groups),
    )
    priors = _priors(measured, keys)
    series: list[Series] = []
    retired: list[Series] = []
    for key in keys:
        spans = windows[key.system].of(key.file_system)
        # of two at the same time max() takes the first, and reports know more
        missing = [*missing_in_reports(key, runs.get(key, ())), *without.get(key, ())]
        missing = [each for each in missing if not any(each.when in span for span in spans)]
        of_key = bands_after(bands_of[key.system], standing[key]).leaving_out(*spans)
        history = histories.get(key, NOTHING)
        status = assess(
            key,
            history,
            missing,
            of_key,
            now=now,
            spans=spans,
            budget=budget,
            prior=priors[key.system, key.file_system],
        )
        table = partial(samples.of, key)
        transient = transient_runs(key, history, of_key, status.detection)
        lacking = {each.when: each for each in reversed(missing)}
        (retired if key in gone else series).append(
            Series(
                key,
                names[key],
                history,
                table,
                of_key,
                status,
                transient,
                tuple(lacking[when] for when in sorted(lacking)),
            )
        )
    detections = {each.key: each.status.detection for each in series if each.status.detection}
    drops = group_drops(groups, detections, budget)
    incidents = incidents_of({each.key: each.transient for each in series}, now)
    stopped = obstacles(runs, reports.newest, OVERDUE)
    failed = findings(runs[None], reports, OVERDUE, lambda result: result not in FINE)
    of_logs = [line for name in sorted(log_of) for line in log_of[name].rejected]
    partitions = {(each.key.system, each.key.partition) for each in series} | {
        (each.system, each.partition) for each in stopped
    }
    places = places_of(
        samples.speeds, partial(spans_of_peers, bands_of, windows, log_of, now), now, false_alarms
    )
    peer_actions = actions_on_peers(places, log_of)
    unfit = frozenset(key for each in stopped for key in each.keys)
    alerts_found = with_slow_peers(
        alerts_of(series, drops, incidents, standing, budget, unfit), places, peer_actions, now
    )
    last = None if as_of else read_last_session(perflogs)
    of_all = [*of_preflight(stopped, len(partitions) > 1), *of_failures(failed)]
    return Site(
        now=now,
        series=tuple(series),
        alerts=ordered([*alerts_found, *_of_session(last, measured, windows, now), *of_all]),
        skipped=tuple(findings(runs[None], reports, OVERDUE, lambda result: result == "skip")),
        superseded=tuple(every[key] for key in sorted(past, key=SeriesKey.sort_key)),
        retired=tuple(retired),
        future=future,
        maintenance={name: each.maintenance for name, each in bands_of.items()},
        rejected=(*samples.rejected, *reports.rejected, *of_logs),
        obstacles=stopped,
        drops=drops,
        incidents=incidents,
        outliers=_by_file_system(series),
        actions=actions,
        sizes_gib={
            (run.system, run.examines): run.size_gib
            for run in reports.runs  # in the order of time
            if run.examines and run.size_gib
        },
        budget=budget,
        last_session=last,
        leftovers=() if as_of else read_leftovers(perflogs, system),
        speeds=samples.speeds,
        places=places,
        peer_actions=peer_actions,
    )


def _read(
    perflogs: Path, system: str | None, now: datetime, as_of: bool
) -> tuple[Samples, list[tuple[SeriesKey, datetime]], dict[SeriesKey, History], RunReports]:
    """Return the samples up to now, later ones, the histories, and the run reports they need."""
    samples = read_perflogs(perflogs, system)
    if as_of:
        samples = samples.until(now)
    samples, future = without_future(samples, now)
    histories = samples.histories()
    longest = max(filter(None, map(overdue_after, histories.values())), default=OVERDUE)
    within = timedelta.max if as_of else max(longest, OVERDUE)
    reports = read_run_reports(perflogs, system, within, now if as_of else now + AHEAD)
    return samples, future, histories, reports


def _of_session(
    last: LastSession | None,
    histories: Mapping[SeriesKey, History],
    windows: Mapping[str, Maintenance],
    now: datetime,
) -> list[Alert]:
    """Return the alert of the last session, or of those that were due since."""
    if last is None:
        return []
    spans = [span for each in windows.values() for span in each.of(None)]
    return of_session(last, missed_schedule(last.began, histories.values(), spans, now))


def _priors(
    histories: Mapping[SeriesKey, History], keys: Sequence[SeriesKey]
) -> dict[tuple[str, str | None], Prior]:
    """Return the prior of each system and file system."""
    found: defaultdict[tuple[str, str | None], list[NDArray[np.float64]]] = defaultdict(list)
    for key in keys:
        values = histories[key].values if key in histories else NOTHING.values
        found[key.system, key.file_system].append(np.log(values[values > 0]))
    return {place: prior_of(each) for place, each in found.items()}


def _by_file_system(series: list[Series]) -> dict[tuple[str, str], Outliers]:
    found: defaultdict[tuple[str, str], Outliers] = defaultdict(Outliers)
    for each in series:
        found[each.key.system, each.key.file_system or "none"] += each.outliers
    return dict(sorted(found.items()))
