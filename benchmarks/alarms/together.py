"""Error rates of pooled charts: series of one pool, with a daily factor that they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from iobands.alerts.pools import FILE_SYSTEM, NODES, PARTITION, TRANSPORT, pools_of
from iobands.alerts.shared import common_changes, follow_pools
from iobands.status.following import Budget, Following

from benchmarks.alarms.measure import (
    HIGHEST,
    WARM_UP,
    Delay,
    FalseAlarms,
    first_over,
    summary,
)
from benchmarks.alarms.worlds import Array, World
from iobands.detection import (
    DOWN,
    Chart,
    Part,
    follow,
    follow_together,
    runs_between_false_alarms,
)
from iobands.model.history import History
from iobands.model.series import SeriesKey

#: The site that causes are told apart on: file systems, transports, and series of each of both.
_FILE_SYSTEMS, _TRANSPORTS, _PATTERNS = "ab", ("ofi", "ucx"), ("fpp", "fpn", "ssf", "serial")
_NODES: Final = 16  # of which each run gets two
_BAD_NODE: Final = 3
_EXPECTED: Final = {
    FILE_SYSTEM: "all a",
    TRANSPORT: "all transport ucx",
    PARTITION: "all partition cpu",
    NODES: f"all node n{_BAD_NODE}",
}
_LEARNT: Final = 200
_SESSIONS_AFTER: Final = 20
_LONGER_ON_A_NODE: Final = 2


@dataclass(frozen=True)
class Days:
    """What series share: `shared` of the variance is the day's, and days depend on the last."""

    shared: float = 0.0
    serial: float = 0.0

    def draw(self, random: np.random.Generator, world: World, series: int, sessions: int) -> Array:
        """Return logarithms of healthy values of one pool, of shape (series, sessions)."""
        day = random.standard_normal(sessions)
        for at in range(1, sessions if self.serial else 0):
            day[at] = self.serial * day[at - 1] + np.sqrt(1 - self.serial**2) * day[at]
        own = random.standard_normal((series, sessions))
        return world.at(np.sqrt(self.shared) * day + np.sqrt(1 - self.shared) * own)


def _chart(values: Array, limit: float) -> Chart:
    return follow(np.exp(values), limit=limit)


def _pooled_evidence(charts: list[Chart], limit: float) -> Array:
    """Return the evidence for a drop up to the first such alarm, and no more after it."""
    parts = [Part.of(chart, np.arange(chart.runs)) for chart in charts]
    chart = follow_together(parts, limit=limit)
    found = (each.alarm for each in chart.alarms)
    first = next((alarm.raised for alarm in found if alarm.direction == DOWN), len(chart.down))
    return chart.down[: first + 1]


def pooled_false_alarms(
    world: World, days: Days, series: int, pools: int, sessions: int, seed: int
) -> FalseAlarms:
    """Return the false alarms of pools whose series begin without any history, as in use."""
    random = np.random.default_rng(seed)
    firsts = []
    for _ in range(pools):
        values = days.draw(random, world, series, sessions)
        charts = [_chart(each, HIGHEST) for each in values]
        firsts.append(first_over(_pooled_evidence(charts, HIGHEST)))
    found = np.array(firsts, dtype=float)
    return FalseAlarms(np.minimum(found, sessions).sum(axis=0), (found <= sessions).sum(axis=0))


@dataclass(frozen=True)
class Delays:
    """Of a drop that all series of a pool share: told in common, and by one of its series."""

    pooled: Delay
    single: Delay


def pooled_delay(
    world: World,
    days: Days,
    series: int,
    factor: float,
    limit: float,
    pools: int,
    longest: int,
    seed: int,
) -> Delays:
    """Return the delays after a drop to `factor` of all series, which begins after 230 runs."""
    random = np.random.default_rng(seed)
    start = _LEARNT + WARM_UP
    found: tuple[list[int], list[int]] = ([], [])
    missed = [0, 0]
    for _ in range(pools):
        values = days.draw(random, world, series, start + longest)
        values[:, start:] += np.log(factor)
        charts = [_chart(each, limit) for each in values]
        own = next((a.raised for a in charts[0].alarms if a.direction == DOWN), len(values[0]))
        evidence = (_pooled_evidence(charts, limit), charts[0].down[: own + 1])
        for place, each in enumerate(evidence):
            over = np.flatnonzero(each >= limit)
            if over.size and over[0] < start:
                continue
            missed[place] += not over.size
            found[place].append(int(over[0]) - start + 1 if over.size else longest)
    return Delays(*(summary(list(f), m) for f, m in zip(found, missed, strict=True)))


@dataclass(frozen=True)
class Told:
    """How a drop of `sites` sites was told: under the right pool, another, or none, or twice."""

    right: int
    wrong: int
    none: int
    more: int


def told(
    world: World, days: Days, kind: str, factor: float, limit: float, sites: int, seed: int
) -> Told:
    """Return under which pools a drop was told that everything of one `kind` of pool shares."""
    random = np.random.default_rng(seed)
    right = wrong = none = more = 0
    for _ in range(sites):
        names = _site(random, world, days, kind, factor, limit)
        expected = _EXPECTED[kind] in names
        right += expected
        wrong += bool(names) and not expected
        none += not names
        more += expected and len(names) > 1
    return Told(right, wrong, none, more)


def _site(
    random: np.random.Generator, world: World, days: Days, kind: str, factor: float, limit: float
) -> list[str]:
    """Return the names of the common changes of a site of 16 series, on two nodes a run of 16."""
    keys = [
        SeriesKey("s", "cpu", transport, "benchio", pattern, "mpiio", file_system, None, transport,
                  "default", 2, 8, 1.0, "write_bw")
        for file_system in _FILE_SYSTEMS
        for transport in _TRANSPORTS
        for pattern in _PATTERNS
    ]  # fmt: skip
    start = _LEARNT + WARM_UP
    # of the runs only an eighth touch a given node
    sessions = start + _SESSIONS_AFTER * (_LONGER_ON_A_NODE if kind == NODES else 1)
    values = days.draw(random, world, len(keys), sessions)
    nodes = np.argsort(random.random((len(keys), sessions, _NODES)), axis=2)[:, :, :2]
    times = np.datetime64("2026-01-01T06:00", "ns") + np.arange(sessions) * np.timedelta64(1, "D")
    budget = Budget(1.0, runs_between_false_alarms(limit - 0.01))
    samples, followings = {}, {}
    for place, key in enumerate(keys):
        hit = {
            FILE_SYSTEM: np.full(sessions, key.file_system == "a"),
            TRANSPORT: np.full(sessions, key.transport == "ucx"),
            PARTITION: np.ones(sessions, dtype=bool),
            NODES: (nodes[place] == _BAD_NODE).any(axis=1),
        }[kind]
        values[place, hit & (np.arange(sessions) >= start)] += np.log(factor)
        chart = _chart(values[place], budget.limit)
        rows = np.arange(sessions)
        followings[key] = Following(rows, times, np.exp(values[place]), chart, budget)
        lists = [f"n{one},n{other}" for one, other in nodes[place]]
        said = {"job_completion_time": pd.to_datetime(times, utc=True), "job_nodelist": lists}
        samples[key] = History.of(pd.DataFrame(said))
    pooled = follow_pools(pools_of(samples), followings, budget)
    return [each.name for each in common_changes(pooled, followings, budget)]
