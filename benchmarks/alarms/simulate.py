"""Simulations of single series: false alarms of whole sites, and detection delays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.alarms.charts import follow
from benchmarks.alarms.figures import NEVER, Delays
from benchmarks.alarms.worlds import (
    WORLDS,
    Array,
    Banded,
    mode_lost,
    normals,
    rounded,
    sliding,
    spread_doubled,
    with_outliers,
)
from iobands.judge.detect.baseline import WATCH
from iobands.judge.detect.prior import Budget, Measured, Month, Prior, priors_of
from iobands.snapshot import DOWN, UP


@dataclass(frozen=True)
class Found:
    """The runs until the first alert, the share with the right kind, and the dated beginnings."""

    delays: Delays
    right: float
    dated: tuple[int, ...]


YEAR: Final = 365
#: A site of the size that the aims are for.
LARGE: Final = 300
# Priors are learned from all series at the beginning of each month, here of 30 runs.
_MONTH: Final = 30
_DAY: Final = np.timedelta64(1, "D")
_LONGEST: Final = 150
_QUIET: Final = 30


CHANGES: Final[Mapping[str, Callable[[Array, int, float], Array]]] = {
    "mode lost": mode_lost,
    "unstable": spread_doubled,
    "sliding": sliding,
}


def threshold_of(series: int) -> float:
    """Return the threshold of a site of this many daily series at one false alarm a year."""
    return Budget(1.0, float(series * YEAR)).threshold


def years(world: str, correlation: float, seed: int, series: int = LARGE) -> list[int]:
    """Return false alarms in the first year down and up, and in the second, of a healthy site."""
    random = np.random.default_rng(seed)
    values = WORLDS[world](normals(random, series, 2 * YEAR, correlation))
    found = _raised(values, threshold_of(series))
    return [
        sum(way == each and run // YEAR == year for run, way in found)
        for year in (0, 1)
        for each in (DOWN, UP)
    ]


def rounded_year(world: str, correlation: float, seed: int) -> int:
    """Return the first year's false alarms of a healthy site with values rounded to ten steps."""
    random = np.random.default_rng(seed)
    values = rounded(WORLDS[world](normals(random, LARGE, YEAR, correlation)))
    return len(_raised(values, threshold_of(LARGE)))


def kinds(kind: str, size: float, correlation: float, number: int, seed: int) -> Found:
    """Return what was found in mature series of a large site with a change other than a step."""
    random = np.random.default_rng(seed)
    past, after = 200, 200
    normal = normals(random, number, past + after, correlation)
    values = CHANGES[kind](normal, past, size)
    prior = prior_of(values[:, :past])
    runs, right, dated = [], 0, []
    for each in values:
        chart = follow(np.exp(each), threshold=threshold_of(LARGE), prior=prior)
        found = [point for point in chart.changes if point.raised >= past]
        runs.append(float(found[0].raised - past + 1) if found else NEVER)
        turns = [turn for point in found for turn in point.turns]
        right += kind in {turn.kind.value for turn in turns}
        dated += [turn.since - past for turn in turns if turn.since is not None][:1]
    return Found(Delays(tuple(runs), after), right / number, tuple(dated))


def outliers(rate: float, pairs: bool, series: int, seed: int) -> int:
    """Return the false alarms in the first year of a site with outliers."""
    random = np.random.default_rng(seed)
    healthy = 0.15 * random.standard_normal((series, YEAR))
    values = with_outliers(random, healthy, rate, pairs=pairs)
    return len(_raised(values, threshold_of(series)))


def prior_of(values: Array) -> Prior:
    """Return the prior that is learned from daily series, of shape (series, runs)."""
    return _priors(values, np.array([values.shape[1]]))[0]


def _priors(values: Array, runs: NDArray[np.int_]) -> list[Prior]:
    """Return the prior that is learned from the first n daily runs, for each n in `runs`."""
    days = np.datetime64("2025-01-01", "ns") + np.arange(values.shape[1] + 1) * _DAY
    nobody = np.zeros(values.shape[1], dtype=bool)
    return priors_of([Measured(days[:-1], each, nobody) for each in values], days[runs])


def _raised(values: Array, threshold: float) -> list[tuple[int, str]]:
    """Return the run and the direction of each alarm of a site with a run a day."""
    firsts = np.arange(0, values.shape[1], _MONTH)
    priors = _priors(values, firsts)
    months = [
        Month(int(first), threshold, prior) for first, prior in zip(firsts, priors, strict=True)
    ]
    return [
        (point.raised, point.direction)
        for each in values
        for point in follow(np.exp(each), months=months).changes
    ]


def delays(band: str, factor: float, number: int, seed: int) -> tuple[Delays, Delays]:
    """Return the delays of mature series at the watch threshold and at 12 nats."""
    random = np.random.default_rng(seed)
    past, size = 200, 200 + _QUIET + _LONGEST
    values = Banded(band).draw(random, number, size)
    values[:, past + _QUIET :] += np.log(factor)
    prior = prior_of(values[:, :past])
    found = []
    for threshold in (WATCH, 12.0):
        runs = [
            _found(each[past:], each[:past], _QUIET, threshold, prior, _LONGEST) for each in values
        ]
        found.append(Delays(tuple(run for run in runs if run is not None), _LONGEST))
    return found[0], found[1]


def steady_disk(factor: float, series: int, number: int, seed: int) -> Delays:
    """Return the runs until a disk with a spread of 0.8 %, 24 runs old, is found throttled."""
    random = np.random.default_rng(seed)
    runs = []
    for _ in range(number):
        values = 0.008 * random.standard_normal((series, 24))
        after = 0.008 * random.standard_normal(30) + np.log(factor)
        prior, every = prior_of(values), np.concatenate((values[0], after))
        found = _found(every, np.empty(0), 24, threshold_of(series), prior, 30)
        runs += [] if found is None else [found]
    return Delays(tuple(runs), 30)


def lost_improvement(
    rise: float, correlation: float, series: int, number: int, seed: int
) -> Delays:
    """Return the runs until a fall of half is found, 100 runs after a lasting rise."""
    random = np.random.default_rng(seed)
    values = WORLDS["log-normal"](normals(random, number, 260, correlation))
    prior = prior_of(values)
    values[:, 100:] += np.log(rise)
    values[:, 200:] += np.log(0.5)
    threshold = threshold_of(series)
    found = [_found(each, np.empty(0), 200, threshold, prior, 60) for each in values]
    return Delays(tuple(run for run in found if run is not None), 60)


def _found(
    values: Array, past: Array, change: int, threshold: float, prior: Prior, longest: int
) -> float | None:
    """Return the delay of the first drop that was raised; None if a drop is open at the change."""
    chart = follow(np.exp(values), history=np.exp(past), threshold=threshold, prior=prior)
    drops = [point for point in chart.changes if point.direction == DOWN]
    if any(point.raised < change and (point.ended or len(values)) > change for point in drops):
        return None
    raised = [point.raised - change + 1 for point in drops if point.raised >= change]
    return float(raised[0]) if raised and raised[0] <= longest else NEVER


def oracle(band: str, factor: float, between: float) -> tuple[float, float]:
    """Return mean and 90 % point of the delay of the CUSUM that knows both distributions.

    Its threshold gives one false alarm in `between` healthy runs on average. Run lengths are those
    of a Markov chain (Brook and Evans, Biometrika 59, 1972), from the state after 30 healthy runs.
    """
    from scipy.stats import norm  # noqa: PLC0415

    world = Banded(band)
    healthy = world.at(norm.ppf((np.arange(2000) + 0.5) / 2000))
    shift = np.log(factor)
    before = world.log_density(healthy - shift) - world.log_density(healthy)
    after = world.log_density(healthy) - world.log_density(healthy + shift)
    low, high = 0.05, 30.0
    for _ in range(30):
        middle = (low + high) / 2
        chain = _chain(before, middle)
        length = float(np.linalg.solve(np.eye(len(chain)) - chain, np.ones(len(chain)))[0])
        low, high = (middle, high) if 0 < length < between else (low, middle)
    state = np.linalg.matrix_power(_chain(before, high), _QUIET)[0]
    state /= state.sum()
    chain, survival = _chain(after, high), [1.0]
    while survival[-1] > 1e-6 and len(survival) < 5000:  # noqa: PLR2004
        state = state @ chain
        survival.append(float(state.sum()))
    ninth = next(run for run, left in enumerate(survival) if left <= 0.1)  # noqa: PLR2004
    return float(np.sum(survival)), float(ninth)


def _chain(scores: Array, threshold: float, states: int = 120) -> Array:
    """Return the probabilities of moves between the states below the threshold."""
    step = threshold / states
    to = np.clip(np.rint(np.arange(states)[:, None] + scores / step), 0, states).astype(int)
    found = np.zeros((states, states + 1))
    np.add.at(found, (np.arange(states)[:, None], to), 1 / len(scores))
    return found[:, :states]
