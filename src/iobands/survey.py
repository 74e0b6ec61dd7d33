"""The survey of a site: perflogs, run reports and bands brought together into statuses.

What all views show. May know the readers, bands and states; nothing of how it is shown.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from iobands.acknowledged import Acknowledged, acknowledged, common_acknowledged
from iobands.acts import Act, Acts, bands_for, standing
from iobands.alarms_file import future_text, load_acts
from iobands.bands import Bands, Epoch
from iobands.bands_file import load_bands
from iobands.file_systems import SiteCollapses, Watched, site_collapses
from iobands.following import Budget, is_drop, runs_a_year, utc
from iobands.in_effect import InEffect, in_effect
from iobands.kept_charts import KeptCharts
from iobands.obstacles import Obstacle, obstacles
from iobands.pools import Pool, charts_a_year, pools_of
from iobands.readers.adapters import format_of
from iobands.readers.fields import FIELDS
from iobands.readers.newest_cases import read_newest_cases
from iobands.readers.perflog import read_perflogs
from iobands.readers.rejected import Rejected
from iobands.readers.run_report import RunCase, RunReports
from iobands.series import Grouping, SeriesKey, combined, grouping, labels
from iobands.sessions import sessions_of
from iobands.shared import Common, Pooled, common_changes, follow_pools
from iobands.states import CRITICAL, OK, UNKNOWN, WARNING, Miss, State, Status, assess, worst
from iobands.vocabulary import LATER_FIELDS, SERIES_FIELDS, canonical

#: The results of a case that did what was asked of it, which may be to stop.
_FINE: Final = frozenset({"pass", "skip", "xfail", "abort"})
#: The series fields that say how large a run is: a site changes them for all runs of a check.
_SCALE: Final = ("nodes", "tasks", "gib")

#: The columns of samples without which there is no survey. What all samples of a series have in
#: common is not among them: the key of the series says it.
STATUS_COLUMNS: Final = (
    "job_completion_time",
    "result",
    "tool_version",
    "medium",
    "file_system_type",
    "perf_value",
    "fail_phase",
    "stripe_count",
    "stripe_size",
    "transport_in_effect",
    "hints_in_effect",
    "cache",
    "fsync",
    "suite_version",
    "job_nodelist",
)

_Identity = tuple[str, str, str, str]


@dataclass(frozen=True)
class _Sighting:
    """A case of a check that gave a series, and when it last did."""

    key: SeriesKey
    case: _Identity
    last: datetime


@dataclass(frozen=True)
class Series:
    """A series with its samples, in the order of time, and its status.

    `bands` are those of its system, as what people did about its alarms left them for it; `acts`
    is all that they did, what was taken back among it.
    """

    key: SeriesKey
    label: str
    samples: pd.DataFrame
    bands: Bands | None
    status: Status
    acts: tuple[Act, ...] = ()

    @cached_property
    def in_effect(self) -> InEffect:
        """What was in effect in the newest sample."""
        return in_effect(self.samples)

    @property
    def epoch(self) -> Epoch | None:
        """The epoch of the newest sample."""
        when = self.status.when
        return self.bands.epoch_at(when) if self.bands and when else None


@dataclass(frozen=True)
class Finding:
    """A check whose newest run failed and that never gave a series to say it by."""

    name: str
    system: str
    partition: str
    phase: str | None
    reason: str
    when: datetime


@dataclass(frozen=True)
class Survey:
    """What is known of a site, or of one system, at the time `now`.

    `skipped` are the checks without a series that were skipped for a reason, such as a program
    that is not installed; that is no fault.

    `superseded` are the names of series that are not expected any more: their check now gives
    samples of another scale, as after its number of nodes was changed. `acknowledged` has, by
    the name of a common change, who knows of it.
    """

    now: datetime
    series: tuple[Series, ...]
    superseded: tuple[str, ...]
    findings: tuple[Finding, ...]
    rejected: tuple[Rejected, ...]
    skipped: tuple[Finding, ...] = ()
    budget: Budget = field(default_factory=Budget)
    pools: tuple[Pool, ...] = ()
    pooled: tuple[Pooled, ...] = ()
    common: tuple[Common, ...] = ()
    acknowledged: Mapping[str, Acknowledged] = field(default_factory=dict)
    obstacles: tuple[Obstacle, ...] = ()
    collapses: SiteCollapses = field(default_factory=SiteCollapses)

    def is_quiet(self, common: Common) -> bool:
        """Tell whether a common change was acknowledged, and is no worse since."""
        return common.name in self.acknowledged and self.acknowledged[common.name].holds

    @property
    def exit_status(self) -> int:
        """0 OK, 1 warning, 2 critical, 3 unknown; no series at all is unknown."""
        statuses = [series.status.exit_status for series in self.series]
        statuses += [
            WARNING if self.is_quiet(each) else CRITICAL
            for each in self.common
            if is_drop(each.change)
        ]
        statuses += [WARNING] if self.collapses.has_risen else []
        unknown = self.findings or self.obstacles or not self.series
        return worst([*statuses, UNKNOWN if unknown else OK])

    def counts(self) -> dict[State, int]:
        """Return how many series are in each state that occurs, the worst first."""
        found = Counter(series.status.state for series in self.series)
        order = (
            State.DEGRADED,
            State.NO_DATA,
            State.WATCH,
            State.IMPROVED,
            State.HEALTHY,
            State.CALIBRATING,
        )
        return {state: found[state] for state in order if found[state]}


def take_survey(  # noqa: PLR0913 (each is an option of the command)
    perflogs: Path,
    bands: Path,
    *,
    now: datetime,
    system: str | None = None,
    overdue: timedelta = timedelta(days=3),
    adapter: str | None = None,
    columns: Collection[str] = FIELDS,
    false_alarms: float = 1.0,
    alarms: Path | None = None,
) -> Survey:
    """Read everything and return the survey; `bands` is the directory of the bands files.

    `alarms` is the directory of what people did about alarms, without which they did nothing.

    `adapter` names how the perflogs are laid out, if `adapter.yaml` beside them does not.
    `columns` are those that the samples shall have beside `STATUS_COLUMNS`: those of ten years
    take their time, and a digest does without most. `false_alarms` is how many false alarms a
    year are allowed, all series together.

    Raises:
        AdapterError: there is no such adapter, or `adapter.yaml` cannot be used.
        FileNotFoundError: there are no perflogs.
        FileError: a file of bands or of alarms cannot be used.
    """
    wanted = {*columns, *STATUS_COLUMNS}
    logs = read_perflogs(perflogs, system, format_of(perflogs, adapter), wanted)
    reports = read_newest_cases(perflogs, system)
    of_samples, of_misses = grouping(logs.samples), grouping(logs.misses)
    table = logs.samples[[name for name in logs.samples if name in wanted]]
    samples = dict(of_samples.split(table))
    without = dict(of_misses.split(logs.misses))
    sightings = [*_sightings(logs.samples, of_samples), *_sightings(logs.misses, of_misses)]
    past = _superseded(sightings)
    keys = sorted({*samples, *without} - past, key=SeriesKey.sort_key)
    systems = {key.system for key in keys}
    bands_of = {name: _bands(bands, name) for name in systems}
    acts_of = {name: load_acts(alarms, name) if alarms else Acts(name) for name in systems}
    every_act = {key: acts_of[key.system].of(key) for key in keys}
    done = {key: standing(acts, now) for key, acts in every_act.items()}
    names = labels(keys)
    tied = _tie(keys, sightings, reports.cases)
    of_keys = {key: samples[key] for key in keys if key in samples}
    sessions = sessions_of({key: utc(each) for key, each in of_keys.items()})
    pools = pools_of(of_keys)
    budget = Budget(
        false_alarms,
        sum(runs_a_year(utc(each)) for each in of_keys.values())
        + sum(charts_a_year(pool, sessions) for pool in pools),
    )
    charts = KeptCharts.of(perflogs, system, adapter, false_alarms)
    series = []
    for key in keys:
        rows = samples.get(key, table.iloc[:0])
        misses = [
            # of two with the same time max() takes the first, and reports know more
            *_misses_of_cases(key, tied.get(key, ())),
            *_misses_of_rows(without.get(key)),
        ]
        of_key = bands_for(bands_of[key.system], done[key], key.system)
        status = assess(
            key,
            rows,
            misses,
            of_key,
            now=now,
            # a case is run on demand, and never expected
            overdue=timedelta.max if key.case else overdue,
            budget=budget,
            draw=charts.draw(repr(key)),
        )
        known = acknowledged(status.following, done[key], budget)
        status = replace(status, acknowledged=known)
        series.append(Series(key, names[key], rows, of_key, status, every_act[key]))
    charts.save()
    every = labels({*samples, *without})
    followings = {each.key: each.status.following for each in series if each.status.following}
    pooled = follow_pools(pools, followings, budget)
    common = common_changes(pooled, followings, budget)
    answers = {each.name: common_acknowledged(each, followings, done, budget) for each in common}
    watched = (Watched(each.key, each.samples, each.bands, each.status) for each in series)
    return Survey(
        now=now,
        series=tuple(series),
        superseded=tuple(every[key] for key in sorted(past, key=SeriesKey.sort_key)),
        findings=tuple(_findings(tied[None], reports, overdue, lambda r: r not in _FINE)),
        skipped=tuple(_findings(tied[None], reports, overdue, lambda r: r == "skip")),
        rejected=(*logs.rejected, *reports.rejected, *_not_yet(acts_of.values(), alarms, now)),
        budget=budget,
        pools=pools,
        pooled=pooled,
        common=common,
        acknowledged={name: answer for name, answer in answers.items() if answer},
        obstacles=obstacles(tied, reports.newest, overdue),
        collapses=site_collapses(watched, common, budget),
    )


def _not_yet(every: Iterable[Acts], alarms: Path | None, now: datetime) -> Iterator[Rejected]:
    for acts in every:
        for act in acts.future(now):
            assert alarms is not None
            yield Rejected(alarms / f"{acts.system}.yaml", 0, future_text(act, now))


def _bands(directory: Path, system: str) -> Bands | None:
    path = directory / f"{system}.yaml"
    return load_bands(path) if path.exists() else None


def _sightings(table: pd.DataFrame, series: Grouping) -> Iterator[_Sighting]:
    """Yield for each series the cases that gave it, and when each did so last."""
    pairs = combined([pd.Series(series.codes, table.index), table["display_name"]])
    # the rows are in the order of time, and of several in one place the last one stays
    last = np.zeros(int(pairs.max()) + 1 if len(pairs) else 0, np.int64)
    last[pairs] = np.arange(len(pairs))
    names, times = table["display_name"].take(last), table["job_completion_time"].take(last)
    for code, name, when in zip(series.codes[last], names, times, strict=True):
        key = series.keys[code]
        shown = "" if pd.isna(name) else str(name)
        case = (key.system, key.partition, key.environ or "", shown)
        yield _Sighting(key, case, when.to_pydatetime())


def _superseded(sightings: Sequence[_Sighting]) -> set[SeriesKey]:
    """Return the series whose cases have all gone over to a series of another scale."""
    newest: dict[tuple[_Identity, SeriesKey], _Sighting] = {}
    for sighting in sorted(sightings, key=lambda sighting: sighting.last):
        whatever_scale = replace(sighting.key, **dict.fromkeys(_SCALE))
        newest[sighting.case, whatever_scale] = sighting
    return {sighting.key for sighting in sightings} - {each.key for each in newest.values()}


def _tie(
    keys: Sequence[SeriesKey], sightings: Sequence[_Sighting], cases: Sequence[RunCase]
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


def _misses_of_rows(rows: pd.DataFrame | None) -> list[Miss]:
    if rows is None:
        return []
    found = []
    cells = (rows[name] for name in ("job_completion_time", "result", "fail_phase"))
    for time, result, fail_phase in zip(*cells, strict=True):
        when = time.to_pydatetime()
        phase = None if pd.isna(fail_phase) else fail_phase
        found.append(Miss(when, _what(str(result), phase, None, when)))
    return found


def _misses_of_cases(key: SeriesKey, cases: Sequence[RunCase]) -> list[Miss]:
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


def _findings(
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
