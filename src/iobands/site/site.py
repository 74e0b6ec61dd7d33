"""A site at one time: its series, its alerts, its missing runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from iobands.alerts.action import Action, bands_after, in_force
from iobands.alerts.alert import OK, UNKNOWN, WARNING, Alert, Severity, ordered, worst
from iobands.alerts.causes import alerts_of, of_failures, of_preflight, of_session
from iobands.alerts.groups import GroupDrop, group_drops, groups_of
from iobands.alerts.incident import Incident, incidents_of
from iobands.alerts.ledger import Ledger, ledger_of
from iobands.alerts.log import Log, path_of, read_log
from iobands.alerts.slow import actions_on_peers, with_slow_peers
from iobands.bands import Bands, Window, load_bands
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
    MissingRun,
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
from iobands.site.judging import Judging, of_unread, why
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
from iobands.status.outliers import NONE as NO_TRANSIENT_RUNS
from iobands.status.outliers import Outliers, transient_runs
from iobands.status.peers import PeerName, Place, places_of
from iobands.status.preflight import Obstacle, obstacles
from iobands.status.series import Series
from iobands.status.state import State, Status, assess, unjudged

if TYPE_CHECKING:
    import polars as pl

#: Failures of checks without an interval are dropped when they were not run for so long.
OVERDUE: Final = overdue(timedelta(days=1))

#: By how much what is dated may be ahead of the clock of who reads it.
CLOCK_OFF: Final = timedelta(minutes=15)
#: What an alert of a clock is about.
CLOCK: Final = "clock"

_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NO_PRIORS: Final = defaultdict[tuple[str, str | None], Prior](Prior)


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
    about these; `speeds` are theirs in each run. `warnings` are about the bands files. `clock` says
    how far the clock that gave `now` is off, so that nothing is over or due by it.
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
    warnings: tuple[str, ...] = ()
    clock: str | None = None

    @property
    def exit_status(self) -> int:
        """The exit status of a monitoring plug-in: 0 OK, 1 warning, 2 critical, 3 unknown."""
        statuses = [alert.exit_status for alert in self.alerts]
        left = OK if all(each.is_closed for each in self.leftovers) else WARNING
        return worst([*statuses, left, OK if self.series else UNKNOWN])

    @property
    def rejected_lines(self) -> int:
        """How many lines were rejected; `rejected` has the first of them one by one."""
        return sum(each.lines for each in self.rejected)

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
    clock: str | None = None,
) -> Site:
    """Read everything and return the site; `bands` and `alerts` are directories.

    `false_alarms` is the budget of false alarms a year, all series together. With `as_of` the
    site is as it was known at `now`, a time in the past: later runs and actions do not count.
    `clock` says what is wrong with the clock that gave `now`.

    What cannot be read or judged is an alert, and costs nothing else; a system whose bands cannot
    be used is judged without any.

    Raises:
        FileNotFoundError: there are no perflogs.
    """
    judging = Judging()
    samples, later, histories, reports = _read(perflogs, system, now, as_of)
    without = missing_in_perflogs(samples.missed)
    seen = sightings(samples)
    past = superseded(seen)
    systems = {key.system for key in {*histories, *without, *(key for key, _ in later)}}
    systems |= {run.system for run in reports.runs}
    bands_of, windows, log_of = _written(judging, bands, alerts, systems, now, as_of)
    reports = replace(reports, runs=outside_maintenance(reports.runs, windows))
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
    priors = judging.of("priors", partial(_priors, measured, keys), _NO_PRIORS)
    judged: dict[SeriesKey, Series] = {}
    for key in keys:
        spans = windows[key.system].of(key.file_system)
        # of two at the same time max() takes the first, and reports know more
        missing = [*missing_in_reports(key, runs.get(key, ())), *without.get(key, ())]
        missing = [each for each in missing if not any(each.when in span for span in spans)]
        of_key = bands_after(bands_of[key.system], standing[key]).leaving_out(*spans)
        prior = priors[key.system, key.file_system]
        judge = partial(assess, key, now=now, spans=spans, budget=budget, prior=prior)
        history, table = histories.get(key, NOTHING), partial(samples.of, key)
        judged[key] = _series(key, names[key], history, missing, of_key, table, judge)
    series = [each for key, each in judged.items() if key not in gone]
    detections = {each.key: each.status.detection for each in series if each.status.detection}
    drops = judging.of("groups", partial(group_drops, groups, detections, budget), ())
    incidents = judging.of(
        "incidents", partial(incidents_of, {each.key: each.transient for each in series}, now), ()
    )
    stopped = obstacles(runs, reports.newest, OVERDUE)
    failed = findings(runs[None], reports, OVERDUE, lambda result: result not in FINE)
    of_logs = [line for name in sorted(log_of) for line in log_of[name].rejected]
    partitions = {(each.key.system, each.key.partition) for each in series} | {
        (each.system, each.partition) for each in stopped
    }
    spans_of = partial(spans_of_peers, bands_of, windows, log_of, now)
    places = judging.of(
        "targets and nodes", partial(places_of, samples.speeds, spans_of, now, false_alarms), ()
    )
    peer_actions = actions_on_peers(places, log_of)
    unfit = frozenset(key for each in stopped for key in each.keys)
    found = _alerts(judging, series, drops, incidents, standing, budget, unfit)
    found = judging.of(
        "targets and nodes", partial(with_slow_peers, found, places, peer_actions, now), found
    )
    rejected = [*samples.rejected, *reports.rejected, *of_logs]
    last = None if as_of else read_last_session(perflogs, rejected)
    of_all = [
        *of_preflight(stopped, len(partitions) > 1),
        *of_failures(failed),
        *_of_session(last, measured, windows, now),
        *([] if as_of else _of_clock(clock, future, last, measured, now)),
        *of_unread(rejected),
        *judging.alerts,
    ]
    return Site(
        now=now,
        series=tuple(series),
        alerts=ordered([*found, *of_all]),
        skipped=tuple(findings(runs[None], reports, OVERDUE, lambda result: result == "skip")),
        superseded=tuple(every[key] for key in sorted(past, key=SeriesKey.sort_key)),
        retired=tuple(judged[key] for key in keys if key in gone),
        future=future,
        maintenance={name: each.maintenance for name, each in bands_of.items()},
        rejected=tuple(rejected),
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
        warnings=tuple(text for each in bands_of.values() for text in each.warnings),
        clock=clock,
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


def _bands(directory: Path, system: str, now: datetime) -> tuple[Bands, Maintenance]:
    """Return the bands of a system and its maintenances.

    Raises:
        FileError: a file cannot be used.
    """
    found = load_bands(directory, system)
    return found, maintenance_of(found, now)


def _written(
    judging: Judging, bands: Path, alerts: Path, systems: set[str], now: datetime, as_of: bool
) -> tuple[dict[str, Bands], dict[str, Maintenance], dict[str, Log]]:
    """Return what people wrote about each system: bands, maintenances, and the log of actions."""
    found = {
        name: judging.of(
            f"bands of {name}",
            partial(_bands, bands, name, now),
            (Bands(name, ()), Maintenance()),
        )
        for name in sorted(systems)
    }
    logs = {
        name: judging.of(
            path_of(alerts, name), partial(read_log, alerts, name, now, as_of=as_of), Log()
        )
        for name in sorted(systems)
    }
    return (
        {name: each for name, (each, _) in found.items()},
        {name: each for name, (_, each) in found.items()},
        logs,
    )


def _series(
    key: SeriesKey,
    label: str,
    history: History,
    missing: Sequence[MissingRun],
    bands: Bands,
    table: Callable[[], pl.DataFrame],
    judge: Callable[..., Status],
) -> Series:
    """Return a series with its status, which says so where it could not be judged."""
    try:
        status = judge(history, missing, bands)
        transient = transient_runs(key, history, bands, status.detection)
    except Exception as error:
        status, transient = unjudged(history, why(error)), NO_TRANSIENT_RUNS
    lacking = {each.when: each for each in reversed(missing)}
    in_order = tuple(lacking[when] for when in sorted(lacking))
    return Series(key, label, history, table, bands, status, transient, in_order)


def _alerts(
    judging: Judging,
    series: Sequence[Series],
    drops: Sequence[GroupDrop],
    incidents: Sequence[Incident],
    standing: Mapping[SeriesKey, Sequence[Action]],
    budget: Budget,
    unfit: frozenset[SeriesKey],
) -> tuple[Alert, ...]:
    """Return the alerts of all series, or where that fails those of each alone."""
    work = partial(alerts_of, series, drops, incidents, standing, budget, unfit)
    found = judging.of("alerts of several series", work, None)
    if found is not None:
        return found
    alone = (
        judging.of(each.label, partial(alerts_of, [each], (), (), standing, budget, unfit), ())
        for each in series
    )
    return tuple(alert for of_one in alone for alert in of_one)


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
    # a wrong clock dated it: only the samples say when one ran
    began = last.began if last.began <= now + AHEAD else _LONG_AGO
    return of_session(last, missed_schedule(began, histories.values(), spans, now))


def _of_clock(
    clock: str | None,
    future: Sequence[FutureSample],
    last: LastSession | None,
    histories: Mapping[SeriesKey, History],
    now: datetime,
) -> list[Alert]:
    """Return an alert of the clock where it is off, or something is dated well after `now`."""
    if clock:
        return [Alert(Severity.FAILED, CLOCK, reason=clock)]
    dated = {"a sample": max((each.when for each in future), default=now)}
    dated["the newest sample"] = max((each.last for each in histories.values()), default=now)
    dated["the last session"] = last.began if last else now
    what, when = max(dated.items(), key=lambda each: each[1])
    if when - now < CLOCK_OFF:
        return []
    reason = (
        f"{what} is dated {when:%Y-%m-%d %H:%M}, which is to come: the clock that dated it is "
        "wrong, or this one"
    )
    return [Alert(Severity.FAILED, CLOCK, reason=reason)]


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
