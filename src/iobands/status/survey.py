"""The survey of a site: perflogs, run reports and bands brought together into statuses.

What all views show. May know the readers, bands and states; nothing of how it is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iobands.alerts.acknowledged import Acknowledged, acknowledged, common_acknowledged
from iobands.alerts.acts import Act, Acts, bands_for, standing
from iobands.alerts.alarms_file import future_text, load_acts
from iobands.alerts.file_systems import SiteCollapses, Watched, site_collapses
from iobands.alerts.pools import Pool, charts_a_year, pools_of
from iobands.alerts.sessions import sessions_of
from iobands.alerts.shared import Common, Pooled, common_changes, follow_pools
from iobands.bands import Bands, Epoch
from iobands.bands_file import load_bands
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
from iobands.history import NOTHING, History, histories, rows_of
from iobands.readers.adapters import format_of
from iobands.readers.fields import FIELDS
from iobands.readers.kinds import Rows
from iobands.readers.newest_cases import read_newest_cases
from iobands.readers.perflog import read_perflogs
from iobands.readers.rejected import Rejected
from iobands.series import Grouping, SeriesKey, grouping_of, labels
from iobands.status.following import Budget, is_drop, runs_a_year
from iobands.status.in_effect import InEffect, in_effect
from iobands.status.kept_charts import KeptCharts
from iobands.status.preflight import Obstacle, obstacles
from iobands.status.states import CRITICAL, OK, UNKNOWN, WARNING, State, Status, assess, worst

if TYPE_CHECKING:
    import pandas as pd

#: The columns of samples without which there is no survey, beside those of their kinds.
STATUS_COLUMNS: Final = ("job_completion_time", "perf_value", "job_nodelist")


class Tables:
    """The samples of all series as tables in pandas, made when the first of them is asked for."""

    def __init__(self, rows: Rows, series: Grouping) -> None:
        """Take the rows, and the grouping of their kinds."""
        self._rows = rows
        self._series = series

    def of(self, key: SeriesKey) -> pd.DataFrame:
        """Return the samples of a series, in the order of time."""
        return self._split[key] if key in self._split else self._frame.iloc[:0]

    @cached_property
    def _frame(self) -> pd.DataFrame:
        return self._rows.frame()

    @cached_property
    def _split(self) -> Mapping[SeriesKey, pd.DataFrame]:
        order, ends = rows_of(self._rows, self._series)
        ordered = self._frame.take(order)
        spans = zip(self._series.keys, ends, ends[1:], strict=False)
        return {key: ordered.iloc[begin:end] for key, begin, end in spans}


@dataclass(frozen=True)
class Series:
    """A series with its samples, in the order of time, and its status.

    `history` is what states come from of the samples, and `tables` has them whole. `bands` are
    those of its system, as what people did about its alarms left them for it; `acts` is all that
    they did, what was taken back among it.
    """

    key: SeriesKey
    label: str
    history: History
    tables: Tables = field(repr=False, compare=False)
    bands: Bands | None
    status: Status
    acts: tuple[Act, ...] = ()

    @property
    def samples(self) -> pd.DataFrame:
        """The samples as a table, which takes its time where there are many series."""
        return self.tables.of(self.key)

    @cached_property
    def in_effect(self) -> InEffect:
        """What was in effect in the newest sample."""
        return in_effect(self.history.newest)

    @property
    def epoch(self) -> Epoch | None:
        """The epoch of the newest sample."""
        when = self.status.when
        return self.bands.epoch_at(when) if self.bands and when else None


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
    charts = KeptCharts.of(perflogs, system, adapter, false_alarms)
    wanted = {*columns, *STATUS_COLUMNS}
    logs = read_perflogs(perflogs, system, format_of(perflogs, adapter), wanted)
    reports = read_newest_cases(perflogs, system)
    of_kinds = grouping_of(logs.measured.kinds)
    samples = dict(histories(logs.measured, of_kinds))
    without = misses_of_rows(logs.missed, of_kinds)
    seen = [*sightings(logs.measured, of_kinds), *sightings(logs.missed, of_kinds)]
    past = superseded(seen)
    keys = sorted({*samples, *without} - past, key=SeriesKey.sort_key)
    systems = {key.system for key in keys}
    bands_of = {name: _bands(bands, name) for name in systems}
    acts_of = {name: load_acts(alarms, name) if alarms else Acts(name) for name in systems}
    every_act = {key: acts_of[key.system].of(key) for key in keys}
    done = {key: standing(acts, now) for key, acts in every_act.items()}
    names = labels(keys)
    tied = tie(keys, seen, reports.cases)
    of_keys = {key: samples[key] for key in keys if key in samples}
    sessions = sessions_of({key: each.times for key, each in of_keys.items()})
    pools = pools_of(of_keys)
    budget = Budget(
        false_alarms,
        sum(runs_a_year(each.times) for each in of_keys.values())
        + sum(charts_a_year(pool, sessions) for pool in pools),
    )
    tables = Tables(logs.measured, of_kinds)
    series = []
    for key in keys:
        history = samples.get(key, NOTHING)
        misses = [
            # of two with the same time max() takes the first, and reports know more
            *misses_of_cases(key, tied.get(key, ())),
            *without.get(key, ()),
        ]
        of_key = bands_for(bands_of[key.system], done[key], key.system)
        status = assess(
            key,
            history,
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
        series.append(Series(key, names[key], history, tables, of_key, status, every_act[key]))
    charts.save()
    every = labels({*samples, *without})
    followings = {each.key: each.status.following for each in series if each.status.following}
    pooled = follow_pools(pools, followings, budget)
    common = common_changes(pooled, followings, budget)
    answers = {each.name: common_acknowledged(each, followings, done, budget) for each in common}
    watched = (Watched(each.key, each.history.newest, each.bands, each.status) for each in series)
    return Survey(
        now=now,
        series=tuple(series),
        superseded=tuple(every[key] for key in sorted(past, key=SeriesKey.sort_key)),
        findings=tuple(findings(tied[None], reports, overdue, lambda r: r not in FINE)),
        skipped=tuple(findings(tied[None], reports, overdue, lambda r: r == "skip")),
        rejected=(*logs.rejected, *reports.rejected, *_not_yet(acts_of.values(), alarms, now)),
        budget=budget,
        pools=pools,
        pooled=pooled,
        common=common,
        acknowledged={name: answer for name, answer in answers.items() if answer},
        obstacles=obstacles(tied, reports.newest, overdue),
        collapses=site_collapses(watched, common, budget, done),
    )


def _not_yet(every: Iterable[Acts], alarms: Path | None, now: datetime) -> Iterator[Rejected]:
    for acts in every:
        for act in acts.future(now):
            assert alarms is not None
            yield Rejected(alarms / f"{acts.system}.yaml", 0, future_text(act, now))


def _bands(directory: Path, system: str) -> Bands | None:
    path = directory / f"{system}.yaml"
    return load_bands(path) if path.exists() else None
