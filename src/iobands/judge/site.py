"""From what is known of a site to its snapshot: series first, then several series together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.bands import Bands
from iobands.judge.actions import bands_after
from iobands.judge.alerts import System, alerts_of
from iobands.judge.budget import Budget
from iobands.judge.conditions import of_failures, of_preflight, of_session, of_the_day
from iobands.judge.detection import Detection
from iobands.judge.groups import Group, GroupDrop, group_drops, groups_of
from iobands.judge.happenings import happenings_of
from iobands.judge.incidents import incidents_of
from iobands.judge.ledger import ledger_of
from iobands.judge.places import actions_on_peers, places_of
from iobands.judge.prior import Months, Prior, months_of, priors_of
from iobands.judge.set_aside import (
    future_samples,
    is_retired,
    only_in_future,
    outside_maintenance,
    spans_of_peers,
)
from iobands.judge.state import Terms, assess, unjudged
from iobands.judge.verdicts import NONE as NO_TRANSIENT_RUNS
from iobands.judge.verdicts import TransientRuns, transient_runs, verdicts_of
from iobands.measure.run_reports import CheckRun, RunReports
from iobands.model import LastSession, Rejected, SeriesKey, labels, slug
from iobands.snapshot import (
    CLOCK,
    CLOCK_OFF,
    DAILY,
    NOTHING,
    Action,
    Alert,
    AlertEvent,
    FileSystem,
    FutureSample,
    History,
    Incident,
    MissingRun,
    Obstacle,
    Outliers,
    Place,
    Series,
    Severity,
    Snapshot,
    Times,
    in_force,
    may_share,
    ordered,
    runs_a_year_at,
)
from iobands.source.known import AHEAD, OVERDUE, Attempts, Known, Maintenance, read_known, why
from iobands.source.missing_runs import (
    FINE,
    findings,
    missed_schedule,
    missing_in_perflogs,
    missing_in_reports,
    obstacles,
    runs_of_series,
    sightings,
    superseded,
)

_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NEVER: Final = np.datetime64(0, "ns")
# A series counts while the site's newest run is not so much later than its own.
_GOES_ON: Final = np.timedelta64(90, "D")
_NO_ROWS: Final = np.empty(0, np.uint32)
# A system and a file system; None is what is known of a file system without runs.
_Place = tuple[str, str | None] | None


@dataclass(frozen=True)
class JudgedSite:
    """The snapshot, and what it was judged by: of each series the detection and the bands.

    `news` is by system what happened to alerts and is not in the log yet, in the order of time.
    """

    snapshot: Snapshot
    detections: Mapping[SeriesKey, Detection]
    bands: Mapping[SeriesKey, Bands]
    news: Mapping[str, Sequence[AlertEvent]]


def read_site(
    perflogs: Path,
    bands: Path,
    alerts: Path,
    *,
    now: datetime,
    as_of: bool = False,
    false_alarms: float = 1.0,
) -> Snapshot:
    """Read everything below three directories and return the snapshot; see `judge`.

    Raises:
        FileNotFoundError: there are no perflogs.
    """
    known = read_known(perflogs, bands, alerts, now=now, as_of=as_of)
    return judge(known, false_alarms=false_alarms).snapshot


def judge(
    known: Known,
    *,
    false_alarms: float = 1.0,
    clock: str | None = None,
    with_power: bool = True,
) -> JudgedSite:
    """Judge a site.

    `false_alarms` is the budget of false alarms a year, all series together. `clock` says what is
    wrong with the clock that gave the time. With `with_power` the power of each series is computed,
    which is slow. A part that cannot be judged becomes an alert, and the rest is judged.
    """
    now, attempts, stage = known.now, Attempts([*known.problems]), _Stage.of(known)
    gone = stage.gone
    groups = _groups(stage.measured)
    months = _months(known.histories, attempts, false_alarms)
    budget = months[None].budgets[-1] if len(months[None].since) else Budget(false_alarms)
    judged = _judged(stage, attempts, months, with_power=with_power)
    kept = {key: each for key, each in judged.items() if key not in gone}
    series = [each.series for each in kept.values()]
    detections = {key: each.detection for key, each in kept.items() if each.detection}
    work = partial(group_drops, groups, detections, known.histories, budget)
    drops = attempts.of("groups", work, ())
    transient = {key: each.transient for key, each in kept.items() if each.series.shares_causes}
    incidents = attempts.of("incidents", partial(incidents_of, transient, now), ())
    stopped = obstacles(stage.runs, stage.reports.newest, OVERDUE)
    peers = "targets and nodes"
    spans_of = partial(spans_of_peers, known.bands, known.maintenance, known.logs, now)
    places = attempts.of(
        peers, partial(places_of, known.samples.speeds, spans_of, now, false_alarms), ()
    )
    peer_actions = actions_on_peers(places, known.logs)
    unfit = frozenset(key for each in stopped for key in each.keys)
    told = [
        alert
        for system in _systems(stage, series, detections, budget, places, false_alarms)
        for alert in attempts.of(
            f"alerts of {system.name}",
            partial(_told, known, system, drops, incidents),
            (),
        )
    ]
    changed = [each for each in told if each.ended is None]
    covered = frozenset(key for each in changed for key in each.keys)
    alerts = ordered(
        [
            *changed,
            *of_the_day(series, covered, unfit, budget),
            *_of_site(known, stage, series, stopped, clock),
            *of_unread(known.rejected),
            *(Alert(Severity.FAILED, about, reason=why) for about, why in attempts.problems),
        ]
    )
    in_their_time = partial(in_force, now=now)
    acted = [*map(in_their_time, (*stage.actions.values(), *peer_actions.values()))]
    skipped = findings(stage.runs[None], stage.reports, OVERDUE, lambda result: result == "skip")
    snapshot = Snapshot(
        now=now,
        series=tuple(series),
        ledger=ledger_of(told, series, acted),
        false_alarms_a_year=budget.false_alarms_a_year,
        threshold=budget.threshold,
        samples=known.samples.measured,
        speeds=known.samples.speeds,
        alerts=alerts,
        past=tuple(each for each in told if each.ended is not None),
        skipped=tuple(skipped),
        superseded=tuple(stage.names[key] for key in sorted(stage.past, key=SeriesKey.sort_key)),
        retired=tuple(each.series for key, each in judged.items() if key in gone),
        future=stage.future,
        maintenance={name: each.maintenance for name, each in known.bands.items()},
        rejected=known.rejected,
        obstacles=stopped,
        incidents=incidents,
        file_systems=_file_systems(series, stage.reports),
        last_session=known.last_session,
        leftovers=known.leftovers,
        places=places,
        peer_actions=tuple(peer_actions.items()),
        warnings=tuple(text for each in known.bands.values() for text in each.warnings),
        clock=clock,
    )
    return JudgedSite(
        snapshot,
        detections,
        {key: each.bands for key, each in judged.items()},
        _news(told, known.alert_log),
    )


@dataclass(frozen=True)
class _Stage:
    """The judged part of a site: its series and their runs, without what was set aside.

    `names` are the labels of all series, `past` those that are superseded, `gone` the retired.
    `actions` has all actions about each series, `standing` the ones in force. `runs` are by series,
    and under None the ones without a series; `missing` are runs without a sample, by the perflogs.
    """

    known: Known
    keys: tuple[SeriesKey, ...]
    names: Mapping[SeriesKey, str]
    past: frozenset[SeriesKey]
    future: tuple[FutureSample, ...]
    missing: Mapping[SeriesKey, Sequence[MissingRun]]
    actions: Mapping[SeriesKey, tuple[Action, ...]]
    standing: Mapping[SeriesKey, tuple[Action, ...]]
    reports: RunReports
    runs: Mapping[SeriesKey | None, Sequence[CheckRun]]
    gone: frozenset[SeriesKey]

    @classmethod
    def of(cls, known: Known) -> _Stage:
        """Return the judged part of a site."""
        now, histories, logs = known.now, known.histories, known.logs
        missing = missing_in_perflogs(known.samples.missed)
        seen = sightings(known.samples)
        past = superseded(seen)
        runs = outside_maintenance(known.reports.runs, known.maintenance)
        reports = replace(known.reports, runs=runs)
        names = labels({*histories, *missing, *(key for key, _ in known.future)})
        future = future_samples(known.future, names, logs, now)
        missing = {**only_in_future(future, histories), **missing}
        keys = sorted({*histories, *missing} - past, key=SeriesKey.sort_key)
        actions = {key: logs[key.system].of(key) for key in keys}
        standing = {key: in_force(each, now) for key, each in actions.items()}
        gone = {key for key in keys if is_retired(standing[key], histories.get(key, NOTHING))}
        return cls(
            known,
            tuple(keys),
            names,
            frozenset(past),
            future,
            missing,
            actions,
            standing,
            reports,
            runs_of_series(keys, seen, reports.runs),
            frozenset(gone),
        )

    @property
    def measured(self) -> dict[SeriesKey, History]:
        """The histories of the series that are judged."""
        known = self.known.histories
        return {key: known[key] for key in self.keys if key in known and key not in self.gone}


def _groups(histories: Mapping[SeriesKey, History]) -> tuple[Group, ...]:
    """Return the groups of series that may share a cause."""
    together = {key: each for key, each in histories.items() if may_share(key, each)}
    return groups_of({key: each.newest.get("medium") for key, each in together.items()})


@dataclass(frozen=True)
class _Judged:
    """A series, and the basis of its judgement."""

    series: Series
    bands: Bands
    detection: Detection | None
    transient: TransientRuns


def _judged(
    stage: _Stage, attempts: Attempts, months: Mapping[_Place, Months], *, with_power: bool
) -> dict[SeriesKey, _Judged]:
    """Return every series with its status, which says if it could not be judged."""
    known, labelled = stage.known, labels(stage.keys)
    found = {}
    for key in stage.keys:
        history = known.histories.get(key, NOTHING)
        spans = known.maintenance[key.system].of(key.file_system)
        bands = bands_after(known.bands[key.system], stage.standing[key]).leaving_out(*spans)
        # of two runs at the same time max() takes the first, and reports have more details
        missing = [*missing_in_reports(key, stage.runs.get(key, ())), *stage.missing.get(key, ())]
        missing = [each for each in missing if not any(each.when in span for span in spans)]
        place = key.system, key.file_system
        terms = Terms(known.now, spans, months.get(place, months[None]), with_power)
        try:
            status, detection = assess(key, history, missing, bands, terms)
            transient = transient_runs(key, history, bands, detection)
        except Exception as error:
            status, detection = unjudged(history, why(error)), None
            transient = NO_TRANSIENT_RUNS
        lacking = {each.when: each for each in reversed(missing)}
        epoch = bands.epoch_at(status.when) if status.when else None
        series = Series(
            key=key,
            label=labelled[key],
            history=history,
            rows=known.samples.rows.get(key, _NO_ROWS),
            status=status,
            outliers=transient.outliers,
            verdicts=verdicts_of(key, history, bands, status.band if status.provisional else None),
            epoch=epoch and replace(epoch, bands=(), limits=()),
            epochs=tuple(replace(each, bands=(), limits=()) for each in bands.epochs),
            missing=tuple(lacking[when] for when in sorted(lacking)),
            actions=stage.actions[key],
        )
        found[key] = _Judged(series, bands, detection, transient)
    return found


def _of_site(
    known: Known,
    stage: _Stage,
    series: Sequence[Series],
    stopped: Sequence[Obstacle],
    clock: str | None,
) -> list[Alert]:
    """Return the alerts that are about no series."""
    partitions = {(each.key.system, each.key.partition) for each in series}
    partitions |= {(each.system, each.partition) for each in stopped}
    failed = findings(stage.runs[None], stage.reports, OVERDUE, lambda result: result not in FINE)
    last, measured = known.last_session, stage.measured
    return [
        *of_preflight(stopped, len(partitions) > 1),
        *of_failures(failed),
        *_of_session(last, measured, known.maintenance, known.now),
        *([] if known.as_of else _of_clock(clock, stage.future, last, measured, known.now)),
    ]


def of_unread(rejected: Iterable[Rejected]) -> list[Alert]:
    """Return an alert for each directory with something that could not be read."""
    found: defaultdict[tuple[Path, str], list[Path]] = defaultdict(list)
    for each in rejected:
        if each.is_unread:
            found[each.path.parent, each.reason].append(each.path)
    return [
        Alert(
            Severity.FAILED,
            str(paths[0]) if len(paths) == 1 else f"{len(paths)} files in {directory}",
            reason=f"{reason}; its samples are not judged",
        )
        for (directory, reason), paths in found.items()
    ]


def _systems(
    stage: _Stage,
    series: Sequence[Series],
    detections: Mapping[SeriesKey, Detection],
    budget: Budget,
    places: Sequence[Place],
    false_alarms: float,
) -> Iterator[System]:
    """Yield what the alerts of each system are judged by."""
    known = stage.known
    for name in sorted({each.key.system for each in series} | set(known.alert_log)):
        yield System(
            name,
            {slug(each.key): each for each in series if each.key.system == name},
            [each for each in places if each.system == name],
            in_force(known.logs[name].actions, known.now) if name in known.logs else (),
            detections,
            budget,
            false_alarms,
        )


def _told(
    known: Known, system: System, drops: Sequence[GroupDrop], incidents: Sequence[Incident]
) -> list[Alert]:
    """Return the alerts of a system, those of the past included."""
    happened = happenings_of(
        [*system.series.values()],
        [each for each in drops if each.group.system == system.name],
        [each for each in incidents if each.system == system.name],
        system.places,
    )
    return alerts_of(system, happened, known.alert_log.get(system.name, ()), known.now)


def _of_session(
    last: LastSession | None,
    histories: Mapping[SeriesKey, History],
    windows: Mapping[str, Maintenance],
    now: datetime,
) -> list[Alert]:
    """Return the alert of the last session, or of sessions that were due since."""
    if last is None:
        return []
    spans = [span for each in windows.values() for span in each.of(None)]
    # dated by a wrong clock: only the samples tell when a session ran
    began = last.began if last.began <= now + AHEAD else _LONG_AGO
    return of_session(last, missed_schedule(began, histories.values(), spans, now))


def _of_clock(
    clock: str | None,
    future: Sequence[FutureSample],
    last: LastSession | None,
    histories: Mapping[SeriesKey, History],
    now: datetime,
) -> list[Alert]:
    """Return an alert if the clock is wrong, or something is dated well after `now`."""
    if clock:
        return [Alert(Severity.FAILED, CLOCK, reason=clock)]
    dated = {"a sample": max((each.when for each in future), default=now)}
    dated["the newest sample"] = max((each.last for each in histories.values()), default=now)
    dated["the last session"] = last.began if last else now
    what, when = max(dated.items(), key=lambda each: each[1])
    if when - now < CLOCK_OFF:
        return []
    reason = f"{what} is dated {when:%Y-%m-%d %H:%M}, in the future: its clock or this one is wrong"
    return [Alert(Severity.FAILED, CLOCK, reason=reason)]


def _months(
    histories: Mapping[SeriesKey, History], attempts: Attempts, false_alarms: float
) -> dict[_Place, Months]:
    """Return what was known of each file system at the beginning of each month."""
    since = months_of(each.times for each in histories.values())
    none = [Prior()] * len(since)
    budgets = _budgets(histories, since, false_alarms)
    found: dict[_Place, Months] = {None: Months(since, budgets, none)}
    series: defaultdict[_Place, list[tuple[Times, NDArray[np.float64]]]] = defaultdict(list)
    for key, each in histories.items():
        usable = each.values > 0
        runs = each.times[usable], np.log(each.values[usable])
        series[key.system, key.file_system].append(runs)
    for place, every in series.items():
        priors = attempts.of("priors", partial(priors_of, every, since), none)
        found[place] = Months(since, budgets, priors)
    return found


def _budgets(
    histories: Mapping[SeriesKey, History], since: Times, false_alarms: float
) -> list[Budget]:
    """Return the budget of false alarms at each of `since`, of all series and groups.

    Of the series that ran in the 90 days before the site's newest run then. A group runs as often
    as the one of its series that runs most.
    """
    known = {key: np.searchsorted(each.times, since) for key, each in histories.items()}
    last = {
        key: np.where(runs > 0, histories[key].times[runs - 1], _NEVER)
        for key, runs in known.items()
        if len(histories[key])
    }
    newest = np.max([*last.values()], axis=0) if last else since
    rates = {
        key: np.where(newest - each <= _GOES_ON, runs_a_year_at(histories[key].times, since), 0.0)
        for key, each in last.items()
    }
    groups = _groups({key: histories[key] for key in rates})
    most = (np.max([rates[key] for key in group.keys], axis=0) for group in groups)
    totals = sum([*rates.values(), *most], np.zeros(len(since)))
    return [Budget(false_alarms, max(float(total), DAILY)) for total in totals]


def _file_systems(series: Sequence[Series], reports: RunReports) -> tuple[FileSystem, ...]:
    """Return what is known of the file systems that have series."""
    found: defaultdict[tuple[str, str], Outliers] = defaultdict(Outliers)
    for each in series:
        found[each.key.system, each.key.file_system or "none"] += each.outliers
    sizes = {
        (run.system, run.examines): run.size_gib
        for run in reports.runs  # in the order of time
        if run.examines and run.size_gib
    }
    return tuple(
        FileSystem(*place, outliers, sizes.get(place)) for place, outliers in sorted(found.items())
    )


def _news(
    alerts: Iterable[Alert], logged: Mapping[str, Sequence[AlertEvent]]
) -> dict[str, list[AlertEvent]]:
    found: defaultdict[str, list[AlertEvent]] = defaultdict(list)
    for alert in alerts:
        told = logged.get(alert.system, ())
        found[alert.system] += [each for each in alert.events if each not in told]
    return {name: sorted(each, key=lambda event: event.when) for name, each in found.items()}
