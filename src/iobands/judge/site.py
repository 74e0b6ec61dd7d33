"""Judges a site: turns its data into a snapshot, series by series, then several together."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from iobands.judge import conditions
from iobands.judge.alerts import System, alerts_of, with_states
from iobands.judge.causes import Records
from iobands.judge.detect import Budget, Measured, Months, Prior, months_of, priors_of
from iobands.judge.fold import Happening
from iobands.judge.groups import Group, GroupDrop, group_drops, groups_of
from iobands.judge.happenings import flaky_of, happenings_of, incidents_of
from iobands.judge.memory import Remembered
from iobands.judge.places import actions_on_peers, places_of
from iobands.judge.state import Judged, Stage, judged_series, spans_of_peers
from iobands.snapshot import (
    CLOCK,
    CLOCK_OFF,
    DAILY,
    Alert,
    AlertEvent,
    FileSystem,
    History,
    Incident,
    Outliers,
    Rejected,
    Series,
    SeriesKey,
    Severity,
    Snapshot,
    Span,
    Times,
    grouped_by,
    in_force,
    may_share,
    ordered,
    runs_a_year_at,
    slug,
)
from iobands.source.known import Attempts, Known, read_known

_NEVER: Final = np.datetime64(0, "ns")
# A series counts in the budget if its newest run is at most this much older than its system's.
_GOES_ON: Final = np.timedelta64(90, "D")
# A series that shares an alert with others may have run this long before they raised it.
_RARELY: Final = timedelta(days=7)
# After a session, one series in this many is checked against a full recalculation.
_SAMPLED: Final = 50


@dataclass(frozen=True)
class JudgedSite:
    """The snapshot of a site, the judgement of each series, and the data that were judged.

    `news` lists the alert events that are not logged yet, by system and in the order of time.
    """

    snapshot: Snapshot
    judged: Mapping[SeriesKey, Judged]
    news: Mapping[str, Sequence[AlertEvent]]
    known: Known

    @property
    def memory(self) -> dict[SeriesKey, Remembered]:
        """The part of each series' chart from which the next judgement continues."""
        kept = self.judged.items()
        return {key: each.detection.remembered for key, each in kept if each.detection}

    def differing(self) -> list[SeriesKey]:
        """Return the series whose chart differs from a recalculation from all their runs.

        Checks one series in fifty, a different set each day.
        """
        day = self.snapshot.now.toordinal()
        return [
            key
            for key, each in self.judged.items()
            if (zlib.crc32(slug(key).encode()) + day) % _SAMPLED == 0
            and each.detection
            and not each.detection.is_as_anew
        ]


def read_site(perflogs: Path, bands: Path, alerts: Path, *, now: datetime) -> Snapshot:
    """Read everything below three directories and return the snapshot; see `judge`.

    Raises:
        FileNotFoundError: there are no perflogs.
    """
    return judge(read_known(perflogs, bands, alerts, now=now)).snapshot


def judge(
    known: Known,
    *,
    false_alarms: float = 1.0,
    clock: str | None = None,
    with_power: bool = True,
    memory: Mapping[SeriesKey, Remembered] = MappingProxyType({}),
) -> JudgedSite:
    """Judge a site.

    `false_alarms` is the budget of false alarms a year of each system, all its series together.
    `clock` says what is wrong with this host's clock, None if nothing is. `with_power` computes the
    power of each series as well, which is slow. The `memory` of an earlier judgement saves time. A
    part that cannot be judged becomes an alert, and the rest is judged.
    """
    attempts, stage, samples = Attempts([*known.problems]), Stage(known), known.samples
    months, of_places = _months(known.histories, attempts, false_alarms)
    budgets = {name: each.budgets[-1] for name, each in months.items()}
    judged = judged_series(stage, of_places, memory, with_power=with_power)
    kept = {key: each for key, each in judged.items() if key not in stage.gone}
    drops, incidents, flaky = _of_several(stage, kept, months, attempts)
    several: list[GroupDrop | Incident] = [*drops, *incidents]
    compared = (samples.speeds, samples.values, partial(spans_of_peers, known), known.now)
    places = attempts.of("targets and nodes", (), places_of, *compared, false_alarms)
    records = Records(samples.values, samples.speeds, places)
    series, numbered = [each.series for each in kept.values()], list[Alert]()
    for name in sorted({each.key.system for each in series} | set(known.alert_log)):
        system = _system(name, stage, series, records, budgets.get(name, Budget(false_alarms)))
        inputs = (known, system, several, flaky)
        numbered += attempts.of(f"alerts of {name}", [], _alerts_of, *inputs)
    series, numbered = with_states(series, numbered)
    peer_actions = actions_on_peers(places, known.logs)
    acted = [(key.system, each) for key, each in stage.standing.items()]
    acted += [(peer.system, in_force(each)) for peer, each in peer_actions.items()]
    snapshot = Snapshot(
        now=known.now,
        series=tuple(series),
        ledger=conditions.ledger_of(numbered, series, acted),
        false_alarms_a_year=false_alarms,
        threshold=max(each.threshold for each in (*budgets.values(), Budget(false_alarms))),
        samples=samples.values,
        speeds=samples.speeds,
        alerts=ordered(_open_alerts(stage, series, numbered, budgets, clock, attempts)),
        past=tuple(each for each in numbered if each.ended is not None),
        retired=tuple(each.series for key, each in judged.items() if key in stage.gone),
        incidents=incidents,
        skipped=stage.skipped,
        superseded=stage.superseded,
        future=stage.future,
        maintenance={name: each.maintenance for name, each in known.bands.items()},
        rejected=known.rejected,
        obstacles=stage.obstacles,
        last_session=known.last_session,
        leftovers=known.leftovers,
        warnings=tuple(text for each in known.bands.values() for text in each.warnings),
        file_systems=_file_systems(series, stage),
        places=places,
        peer_actions=tuple(peer_actions.items()),
        clock=clock,
        only=known.system,
        is_past=known.as_of,
    )
    # the plan is as old as the last session or hourly command, and people may have acted since
    doubted = {slug(key) for key in snapshot.doubts}
    planned = tuple(e for e in known.planned if not e.series or doubted.intersection(e.series))
    snapshot = replace(snapshot, planned=planned)
    return JudgedSite(snapshot, judged, _news(numbered, known.alert_log), known)


def _of_several(
    stage: Stage,
    judged: Mapping[SeriesKey, Judged],
    months: Mapping[str, Months],
    attempts: Attempts,
) -> tuple[Sequence[GroupDrop], tuple[Incident, ...], Sequence[Happening]]:
    """Return the drops of groups, the incidents, and when checks were flaky."""
    known, groups = stage.known, _groups(stage.measured)
    charts = {key: each.detection for key, each in judged.items() if each.detection}
    drops = attempts.of("groups", (), group_drops, groups, charts, known.histories, months)
    checked = [(each.series, each.bands) for each in judged.values()]
    flaky = attempts.of("flaky checks", (), flaky_of, checked, months)
    transient = {key: each.transient for key, each in judged.items() if each.series.shares_causes}
    return drops, attempts.of("incidents", (), incidents_of, transient, known.now), flaky


def _groups(histories: Mapping[SeriesKey, History]) -> tuple[Group, ...]:
    together = {key: each for key, each in histories.items() if may_share(key, each)}
    return groups_of({key: each.newest.get("medium") for key, each in together.items()})


def _open_alerts(
    stage: Stage,
    series: Sequence[Series],
    numbered: Iterable[Alert],
    budgets: Mapping[str, Budget],
    clock: str | None,
    attempts: Attempts,
) -> Iterator[Alert]:
    """Yield the open ones of the `numbered` alerts, and the alerts of the day."""
    known, last = stage.known, stage.known.last_session
    changed = [each for each in numbered if each.ended is None]
    leveled = [each for each in changed if each.severity is not Severity.FLAKY]
    covered = frozenset(key for each in leveled for key in each.keys)
    unfit = frozenset(key for each in stage.obstacles for key in each.keys)
    partitions = {(each.key.system, each.key.partition) for each in series}
    partitions |= {(each.system, each.partition) for each in stage.obstacles}
    yield from changed
    # an alert about several series is raised by the last one that ran
    spans = {slug(k): Span(e.first, e.last + _RARELY) for k, e in known.histories.items()}
    yield from conditions.of_lost(numbered, spans, known.now)
    yield from conditions.of_equal_names(series)
    yield from conditions.of_suspicions(series, budgets)
    yield from conditions.of_missing(series, unfit)
    yield from conditions.of_low_runs(series, covered)
    yield from conditions.of_preflight(stage.obstacles, len(partitions) > 1)
    yield from conditions.of_failures(stage.failed)
    for name, log in known.logs.items():
        yield from conditions.of_forgotten(log.actions, name, known.now)
    yield from conditions.of_session(last, stage.missed_schedule) if last else ()
    yield from () if known.as_of else _of_clock(stage, clock)
    yield from of_unread(known.rejected)
    yield from (Alert(Severity.FAILED, about, reason=why) for about, why in attempts.problems)


def of_unread(rejected: Iterable[Rejected]) -> list[Alert]:
    """Return an alert for each directory with unreadable files, and each reason."""
    unread = (each for each in rejected if each.is_unread)
    alike = grouped_by(unread, lambda each: (each.path.parent, each.reason))
    return [
        Alert(
            Severity.FAILED,
            str(files[0].path) if len(files) == 1 else f"{len(files)} files in {directory}",
            reason=f"{reason}; its content is not judged",
        )
        for (directory, reason), files in alike.items()
    ]


def _system(
    name: str, stage: Stage, series: Iterable[Series], records: Records, budget: Budget
) -> System:
    """Return what the alerts of a system are made from."""
    known = stage.known
    found = in_force(known.logs[name].actions) if name in known.logs else ()
    is_unlogged = name in known.unlogged  # then the numbers of alerts in actions say nothing
    return System(
        name,
        series={slug(each.key): each for each in series if each.key.system == name},
        retired={slug(key): key for key in stage.gone if key.system == name},
        places=[each for each in records.places if each.system == name],
        actions=[replace(each, alert=None) if is_unlogged else each for each in found],
        budget=budget,
        records=records,
        is_incomplete=name in known.incomplete,
    )


def _alerts_of(
    known: Known,
    system: System,
    several: Iterable[GroupDrop | Incident],
    flaky: Iterable[Happening],
) -> list[Alert]:
    mine = [each for each in several if each.system == system.name]
    happened = happenings_of([*system.series.values()], mine, system.places)
    happened += [each for each in flaky if each.names[0] in system.series]
    return alerts_of(system, happened, known.alert_log.get(system.name, ()), known.now)


def _of_clock(stage: Stage, clock: str | None) -> list[Alert]:
    """Return an alert if the clock is wrong, or something is dated well after now."""
    if clock:
        return [Alert(Severity.FAILED, CLOCK, reason=clock)]
    now, last = stage.known.now, stage.known.last_session
    dated = {"a sample": max((each.when for each in stage.future), default=now)}
    newest = max((each.last for each in stage.measured.values()), default=now)
    dated |= {"the newest sample": newest, "the last session": last.began if last else now}
    what, when = max(dated.items(), key=lambda each: each[1])
    if when - now < CLOCK_OFF:
        return []
    reason = f"{what} is dated {when:%Y-%m-%d %H:%M}, in the future: its clock or this one is wrong"
    return [Alert(Severity.FAILED, CLOCK, reason=reason)]


def _months(
    histories: Mapping[SeriesKey, History], attempts: Attempts, false_alarms: float
) -> tuple[dict[str, Months], dict[tuple[str, str | None], Months]]:
    """Return the monthly budgets of each system, and of each file system with its priors.

    Each system has its own, so that it is judged in the same way alone and among others.
    """
    series: defaultdict[str, dict[SeriesKey, History]] = defaultdict(dict)
    for key, each in histories.items():
        series[key.system][key] = each
    systems, places = {}, {}
    for system, mine in series.items():
        routine = {key: each.routine for key, each in mine.items()}
        # the first runs of a system may all have been made for a maintenance
        counted = routine if any(map(len, routine.values())) else mine
        since = months_of(each.times for each in counted.values())
        budgets, none = _budgets(routine, since, false_alarms), [Prior()] * len(since)
        systems[system] = Months(since, budgets, none)
        runs: defaultdict[str | None, list[Measured]] = defaultdict(list)
        for key, each in mine.items():
            runs[key.file_system].append(Measured(each.times, np.log(each.values), each.asked))
        for file_system, every in runs.items():
            priors = attempts.of("priors", none, priors_of, every, since)
            places[system, file_system] = Months(since, budgets, priors)
    return systems, places


def _budgets(
    histories: Mapping[SeriesKey, History], since: Times, false_alarms: float
) -> list[Budget]:
    """Return the false-alarm budget of a system's series and groups at each of `since`.

    A series counts if it ran in the 90 days before the newest run known then. A group of such
    series runs as often as its most frequent one. A series that is added later changes no budget.
    """
    known = {key: np.searchsorted(each.times, since) for key, each in histories.items()}
    last = {
        key: np.where(runs > 0, histories[key].times[runs - 1], _NEVER)
        for key, runs in known.items()
        if len(histories[key])
    }
    newest = np.max([*last.values()], axis=0) if last else since
    rates = {
        key: runs_a_year_at(histories[key].times, since)
        * ((known[key] > 0) & (newest - each <= _GOES_ON))
        for key, each in last.items()
    }
    budgets, keys, groups = list[Budget](), list[SeriesKey](), tuple[Group, ...]()
    for place in range(len(since)):
        active = {key: each[place] for key, each in rates.items() if each[place]}
        if [*active] != keys:
            keys, groups = [*active], _groups({key: histories[key] for key in active})
        total = sum(active.values()) + sum(max(active[key] for key in group) for group in groups)
        budgets.append(Budget(false_alarms, max(float(total), DAILY)))
    return budgets


def _file_systems(series: Sequence[Series], stage: Stage) -> tuple[FileSystem, ...]:
    found: defaultdict[tuple[str, str], Outliers] = defaultdict(Outliers)
    for each in series:
        found[each.key.system, each.key.file_system or "none"] += each.outliers
    sizes = {
        (run.system, run.examines): run.size_gib
        for run in stage.reports.runs  # in the order of time
        if run.examines and run.size_gib
    }
    return tuple(
        FileSystem(*place, outliers, sizes.get(place)) for place, outliers in sorted(found.items())
    )


def _news(
    alerts: Iterable[Alert], logged: Mapping[str, Sequence[AlertEvent] | None]
) -> dict[str, list[AlertEvent]]:
    found: defaultdict[str, list[AlertEvent]] = defaultdict(list)
    before = {name: frozenset(events or ()) for name, events in logged.items()}
    for alert in alerts:
        known = before.get(alert.system, ())
        found[alert.system] += [each for each in alert.events if each not in known]
    return {name: sorted(each, key=lambda event: event.when) for name, each in found.items()}
