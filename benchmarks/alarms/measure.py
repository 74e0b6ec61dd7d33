"""Run lengths of the charts, and of the oracle that knows both distributions.

A chart's evidence up to its first alarm does not depend on the limit. One pass without a limit
therefore gives the run lengths at all limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.alarms.worlds import BANDS, Array, World
from iobands.detection import UP, WATCH, Chart, follow
from iobands.detection.scores import DROPS, history_cells

#: The limits at which run lengths are noted, in nats.
LIMITS: Final = np.round(np.arange(3.0, 16.01, 0.1), 1)
HIGHEST: Final = float(LIMITS[-1])
#: Healthy runs before a change, so that the evidence is where it usually is.
WARM_UP: Final = 30


@dataclass(frozen=True)
class FalseAlarms:
    """Runs and first alarms in all series together, at each of `LIMITS`."""

    runs: Array
    alarms: Array

    @property
    def run_length(self) -> Array:
        """ARL0: runs a false alarm, one alarm assumed where there was none."""
        return self.runs / np.maximum(self.alarms, 1)

    @property
    def relative_error(self) -> Array:
        """The relative standard error of `run_length`."""
        return 1 / np.sqrt(np.maximum(self.alarms, 1))

    def limit_for(self, run_length: float) -> float:
        """Return the least limit whose ARL0 is `run_length`, interpolated on its logarithm."""
        curve = np.maximum.accumulate(np.log(self.run_length))
        at = int(np.argmax(curve >= np.log(run_length)))
        if at == 0:
            return float(LIMITS[0])
        share = (np.log(run_length) - curve[at - 1]) / (curve[at] - curve[at - 1])
        return float(LIMITS[at - 1] + share * (LIMITS[at] - LIMITS[at - 1]))


@dataclass(frozen=True)
class Delay:
    """Runs from the first changed one to the alarm, both counted, in `number` series."""

    mean: float
    ninth_decile: float
    error: float
    number: int
    missed: int


def first_over(evidence: Array) -> Array:
    """Return for each of `LIMITS` the first run over it, counted from 1; one too many if none."""
    return np.searchsorted(np.maximum.accumulate(evidence), LIMITS) + 1


def _followed(values: Array, world: World, learnt: int, limit: float) -> Chart:
    history, later = np.exp(values[:learnt]), np.exp(values[learnt:])
    band = None if learnt else BANDS[world.band]
    return follow(later, band, history=history, limit=limit, watch=WATCH)


def _raised(chart: Chart, up: bool) -> int | None:
    """Return the run at which the first alarm of a direction was raised, None without one."""
    return next((a.raised for a in chart.alarms if (a.direction == UP) == up), None)


def _evidence(values: Array, world: World, learnt: int, limit: float, up: bool) -> Array:
    """Return the evidence up to the first alarm, and no more after it.

    What was too small for an alarm is in it too, and counts as a false one.
    """
    chart = _followed(values, world, learnt, limit)
    evidence = chart.up if up else chart.down
    raised = _raised(chart, up)
    return evidence if raised is None else evidence[: raised + 1]


def false_alarms(
    world: World,
    learnt: int,
    series: int,
    runs: int,
    seed: int,
    *,
    up: bool = False,
    limit: float = HIGHEST,
) -> FalseAlarms:
    """Return the false alarms of charts that start with `learnt` runs of history, and grow.

    With `learnt` 0 they start from the published band. A chart reckons the more with correlation
    the higher its `limit` is; lower limits are read off the same evidence.
    """
    random = np.random.default_rng(seed)
    firsts = np.array(
        [
            first_over(_evidence(values, world, learnt, limit, up))
            for values in world.draw(random, series, learnt + runs)
        ],
        dtype=float,
    )
    return FalseAlarms(np.minimum(firsts, runs).sum(axis=0), (firsts <= runs).sum(axis=0))


def delay(world: World, learnt: int, change: Array, limit: float, series: int, seed: int) -> Delay:
    """Return the delay after a change: `change` is added to the logarithms after `WARM_UP` runs.

    Series with a false alarm before the change do not count. Where no alarm comes within
    `len(change)` runs, that length is taken and counted as missed.
    """
    random = np.random.default_rng(seed)
    start = learnt + WARM_UP
    found, missed = [], 0
    for values in world.draw(random, series, start + len(change)):
        values[start:] += change
        raised = _raised(_followed(values, world, learnt, limit), bool(change[-1] > 0))
        if raised is not None and raised < WARM_UP:
            continue
        missed += raised is None
        found.append(len(change) if raised is None else raised - WARM_UP + 1)
    return summary(found, missed)


def summary(found: list[int], missed: int = 0) -> Delay:
    """Return what is to be said of the delays `found`."""
    if not found:
        return Delay(float("nan"), float("nan"), float("nan"), 0, 0)
    numbers = np.array(found, dtype=float)
    error = float(numbers.std() / np.sqrt(len(numbers)))
    decile = float(np.quantile(numbers, 0.9))
    return Delay(float(numbers.mean()), decile, error, len(numbers), missed)


def oracle(world: World, factor: float, run_length: float, series: int, seed: int) -> Delay:
    """Return the delay of the likelihood-ratio CUSUM that knows both distributions.

    Its limit is tuned to `run_length` healthy runs a false alarm. This is the optimum (Moustakides,
    "Optimal stopping times for detecting changes in distributions", Annals of Statistics 14, 1986).
    """
    random = np.random.default_rng(seed)
    step = np.log(factor)
    runs = int(4 * run_length)

    def path(values: Array) -> Array:
        ratio = world.log_density(values - step) - world.log_density(values)
        total = np.cumsum(np.clip(ratio, -50, 50))
        return total - np.minimum(np.minimum.accumulate(total), 0)

    firsts = np.array(
        [first_over(path(values)) for values in world.draw(random, series, runs)], dtype=float
    )
    tuned = FalseAlarms(np.minimum(firsts, runs).sum(axis=0), (firsts <= runs).sum(axis=0))
    limit = tuned.limit_for(run_length)
    found = []
    for values in world.draw(random, 8 * series, WARM_UP + 300):
        values[WARM_UP:] += step
        evidence = path(values)
        if evidence[:WARM_UP].max() >= limit:
            continue
        over = np.flatnonzero(evidence >= limit)
        found.append(over[0] - WARM_UP + 1 if over.size else 300)
    return summary(found)


def well_known(world: World, factor: float, run_length: float, series: int, seed: int) -> Delay:
    """Return the delay of the same scores with a reference of 5000 runs, tuned to `run_length`.

    What it is slower than the oracle by is the price of not knowing how large the drop will be
    and of mistrusting single runs; what a chart is slower by than this, the price of learning.
    """
    random = np.random.default_rng(seed)
    runs = int(3 * run_length)
    columns = slice(0, len(DROPS))

    def path(values: Array) -> Array:
        total = np.cumsum(cells.scores(values)[:, columns], axis=0)
        return (total - np.minimum(np.minimum.accumulate(total, axis=0), 0)).max(axis=1)

    cells = history_cells(world.draw(random, 1, 5000)[0])
    firsts = np.array([first_over(path(v)) for v in world.draw(random, series, runs)], float)
    tuned = FalseAlarms(np.minimum(firsts, runs).sum(axis=0), (firsts <= runs).sum(axis=0))
    limit = tuned.limit_for(run_length)
    found = []
    for values in world.draw(random, 4 * series, WARM_UP + 200):
        values[WARM_UP:] += np.log(factor)
        over = np.flatnonzero(path(values) >= limit)
        if over.size and over[0] < WARM_UP:
            continue
        found.append(over[0] - WARM_UP + 1 if over.size else 200)
    return summary(found)
