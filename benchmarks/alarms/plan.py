"""What is measured: the cases, spread over the processors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from benchmarks.alarms import collapses, measure, together_page
from benchmarks.alarms.measure import Delay, FalseAlarms
from benchmarks.alarms.worlds import BANDS, TAILS, world
from iobands.detection import WATCH

#: From how many runs of its own a chart starts; 0 means from the published band.
LEARNT: Final = (0, 60, 100, 200)
CORRELATIONS: Final = (0.3, 0.6)
OUTLIERS: Final = 0.02
DROPS: Final = (0.9, 0.8, 0.7, 0.5)
RISES: Final = (1 / 0.9, 1 / 0.7)
#: A drop of 30 % that takes so many runs.
DRIFTS: Final = (60, 180)
#: A limit as a site of some hundred series has it.
FLEET_LIMIT: Final = 12.0
RUN_LENGTH: Final = 1000.0
MAIN: Final = "plain"
_LONGEST: Final = 150
_STRETCHED: Final = ("plain", "heavy", "collapse")


@dataclass(frozen=True)
class Effort:
    """How much is drawn: series and runs for false alarms, series for delays."""

    series: int = 300
    runs: int = 2000
    changed: int = 400

    @property
    def is_full(self) -> bool:
        """Whether the figures are meant for the documentation."""
        return self.series >= Effort.series


Key = tuple[Any, ...]


@dataclass(frozen=True)
class Results:
    """What was found; the keys say which case it was of."""

    quiet: Mapping[Key, FalseAlarms]
    changed: Mapping[Key, Delay]
    pooled: Mapping[Key, Any]
    collapses: collapses.Results


def run(effort: Effort, processes: int, tell: Callable[[str], None]) -> Results:
    """Measure all cases."""
    with ProcessPoolExecutor(processes) as pool:
        quiet_cases = _quiet_cases()
        tell(f"{len(quiet_cases)} cases without a change")
        quiet = dict(pool.map(_quiet, quiet_cases, [effort] * len(quiet_cases), chunksize=2))
        changed_cases = _changed_cases()
        tell(f"{len(changed_cases)} cases with a change")
        changed = dict(pool.map(_changed, changed_cases, [effort] * len(changed_cases)))
        pooled_cases = together_page.cases()
        tell(f"{len(pooled_cases)} cases of pooled series")
        pooled = dict(pool.map(_pooled, pooled_cases, [effort] * len(pooled_cases)))
        tell("collapses")
        collapsed = collapses.run(effort.series * 2 // 3, collapses.ROUNDS, pool)
    return Results(quiet, changed, pooled, collapsed)


def _quiet_cases() -> list[Key]:
    """Return (band, tail, learnt, correlation, outliers, limit, direction)."""
    cases: list[Key] = []
    for band in BANDS:
        for tail in TAILS:
            cases += [(band, tail, learnt, 0.0, 0.0, WATCH, "down") for learnt in LEARNT]
            cases += [(band, tail, learnt, 0.0, OUTLIERS, WATCH, "down") for learnt in (60, 200)]
            for correlation in CORRELATIONS:
                cases += [
                    (band, tail, learnt, correlation, 0.0, WATCH, "down") for learnt in (60, 200)
                ]
        for tail in _STRETCHED:
            cases += [
                (band, tail, 60, correlation, 0.0, FLEET_LIMIT, "down")
                for correlation in (0.0, *CORRELATIONS)
            ]
        cases.append((band, MAIN, 60, 0.0, 0.0, WATCH, "up"))
    return cases


def _quiet(case: Key, effort: Effort) -> tuple[Key, FalseAlarms]:
    band, tail, learnt, correlation, outliers, limit, direction = case
    # high limits are seldom passed, and need more runs
    longer = 4 if limit > WATCH else 1
    found = measure.false_alarms(
        world(band, tail, correlation, outliers),
        learnt,
        effort.series * longer,
        effort.runs,
        _seed(case),
        up=direction == "up",
        limit=measure.HIGHEST if correlation == 0 and longer > 1 else limit,
    )
    return case, found


def _changed_cases() -> list[Key]:
    """Return (kind, band, tail, learnt, factor or length, limit)."""
    cases: list[Key] = []
    for band in BANDS:
        cases += [("known", band, MAIN, 0, 0.7, 0.0)]
        for tail in TAILS:
            cases += [("oracle", band, tail, 0, 0.7, 0.0)]
            cases += [("step", band, tail, learnt, 0.7, WATCH) for learnt in LEARNT]
        for factor in DROPS:
            if factor != 0.7:  # noqa: PLR2004  it is above
                cases += [("oracle", band, MAIN, 0, factor, 0.0)]
                cases += [("step", band, MAIN, learnt, factor, WATCH) for learnt in LEARNT]
            cases += [("step", band, MAIN, learnt, factor, FLEET_LIMIT) for learnt in (60, 200)]
        cases += [("step", band, MAIN, learnt, f, WATCH) for f in RISES for learnt in (60, 200)]
        cases += [("drift", band, MAIN, learnt, n, WATCH) for n in DRIFTS for learnt in (60, 200)]
        for tenth in range(40, 91, 10):
            cases += [("frontier", band, MAIN, 200, 0.7, tenth / 10)]
    return cases


def _changed(case: Key, effort: Effort) -> tuple[Key, Delay]:
    kind, band, tail, learnt, size, limit = case
    made, seed = world(band, tail), _seed(case)
    if kind == "oracle":
        return case, measure.oracle(made, size, RUN_LENGTH, effort.series, seed)
    if kind == "known":
        return case, measure.well_known(made, size, RUN_LENGTH, effort.series, seed)
    if kind == "drift":
        change = np.log(0.7) * np.minimum(np.arange(1, 2 * _LONGEST + 1) / size, 1.0)
    else:
        change = np.full(_LONGEST, np.log(size))
    return case, measure.delay(made, learnt, change, limit, effort.changed, seed)


def _pooled(case: Key, effort: Effort) -> tuple[Key, Any]:
    return case, together_page.measured(case, effort.series, effort.runs, _seed(case))


def _seed(case: Key) -> int:
    """Return a seed that is the same in every run, and another one for every case."""
    return int.from_bytes(repr(case).encode(), "little") % (2**31 - 1)
