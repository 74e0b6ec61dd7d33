"""What is measured, spread over the processors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from benchmarks.alarms import peers, simulate, together
from benchmarks.alarms.figures import Delays, Rate
from benchmarks.alarms.worlds import BANDS, WORLDS, Array, normals
from iobands.detection.prior import Prior, prior_of

CORRELATIONS: Final = (0.0, 0.3, 0.6)
FACTORS: Final = (0.9, 0.8, 0.7, 0.5)
OUTLIERS: Final = (0.005, 0.02, 0.05)
#: The sizes of site: that of a small one, and that of the aims.
SMALL: Final = 12
LARGE: Final = 300
#: What a group shares from day to day: share of the variance, and how lasting.
SHARED: Final = {"nothing": (0.0, 0.0), "the day": (0.3, 0.0), "lasting days": (0.3, 0.6)}
FALLEN: Final = ((10, 0.7), (4, 0.7), (4, 0.5))
RISES: Final = (1.3, 2.0, 4.0)
#: The correlation of the series that peers are run on.
PEER_CORRELATION: Final = 0.3
_PEER_RUNS: Final = 100
_PEER_PAST: Final = 200
OURS: Final = "iobands, a site of 300"


@dataclass(frozen=True)
class Effort:
    """How much is drawn: healthy sites a case, series a change, groups a change, peers' series."""

    name: str
    sites: int
    changed: int
    groups: int
    peer_series: int


EFFORTS: Final = {
    each.name: each
    for each in (Effort("test", 1, 4, 2, 1), Effort("small", 2, 100, 20, 2),
                 Effort("full", 10, 400, 100, 15))
}  # fmt: skip

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Peer:
    """How a detector did on healthy series, in a year and series, and on series that lose 30 %."""

    false: Rate
    delays: Delays


@dataclass(frozen=True)
class Results:
    """The figures of the page; keys are the parameters of a case."""

    years: Mapping[Key, tuple[Rate, Rate, Rate, Rate]]
    outliers: Mapping[Key, Rate]
    steady: Mapping[Key, Delays]
    delays: Mapping[Key, tuple[Delays, Delays]]
    oracle: Mapping[Key, tuple[float, float]]
    groups_false: Mapping[Key, Rate]
    groups: Mapping[Key, tuple[Delays, Delays]]
    incidents: Mapping[float, Rate]
    improvement: Mapping[Key, Delays]
    peers: Mapping[str, Peer]


def run(effort: Effort, pool: Executor) -> Results:
    """Measure everything."""
    threshold = simulate.threshold_of(LARGE)
    jobs: dict[Key, Any] = {}

    def put(*key: Any, work: Any) -> None:
        jobs[key] = pool.submit(work, seed=_seed(key))

    for number in range(effort.sites):
        for world in WORLDS:
            for phi in CORRELATIONS:
                put("years", world, phi, number, work=partial(simulate.years, world, phi, LARGE))
        for rate in OUTLIERS:
            for pairs in (False, True):
                work = partial(simulate.outliers, rate, pairs)
                put("outliers", rate, pairs, LARGE, number, work=partial(work, LARGE))
                for small in range(12):
                    put("outliers", rate, pairs, SMALL, 12 * number + small,
                        work=partial(work, SMALL))  # fmt: skip
        for name, (share, lasting) in SHARED.items():
            for rate in (0.0, 0.02):
                put("false", name, rate, number,
                    work=partial(together.false_drops, share, lasting, rate, threshold))  # fmt: skip
    for band in BANDS:
        for factor in FACTORS:
            put("delays", band, factor, work=partial(simulate.delays, band, factor, effort.changed))
    for factor in (0.58, 0.71):
        for size, number in ((SMALL, effort.changed), (LARGE, max(effort.changed // 5, 2))):
            put("steady", factor, size, work=partial(simulate.steady_disk, factor, size, number))
    for name, (share, lasting) in SHARED.items():
        for fallen, factor in FALLEN:
            work = partial(
                together.delays, fallen, factor, share, lasting, threshold, effort.groups
            )
            put("groups", name, fallen, factor, work=work)
    for rate in (0.02, 0.05):
        put("incidents", rate, work=partial(together.false_incidents, rate, 10 * effort.sites))
    for rise in RISES:
        for phi in (0.0, 0.3):
            for size in (SMALL, LARGE):
                work = partial(simulate.lost_improvement, rise, phi, size, effort.changed)
                put("improvement", rise, phi, size, work=work)
    for world in WORLDS:
        put("peers", world, work=partial(_peers, world, effort.peer_series))
    oracles = {
        (band, factor): simulate.oracle(band, factor, 1000.0)
        for band in BANDS
        for factor in FACTORS
    }
    done = {key: job.result() for key, job in jobs.items()}
    return _results(done, oracles, effort)


def _results(done: Mapping[Key, Any], oracles: Mapping[Key, Any], effort: Effort) -> Results:
    def of(name: str) -> dict[Key, Any]:
        return {key[1:]: found for key, found in done.items() if key[0] == name}

    def summed(name: str) -> dict[Key, list[Any]]:
        found: defaultdict[Key, list[Any]] = defaultdict(list)
        for key, each in of(name).items():
            found[key[:-1]].append(each)
        return found

    years = {
        key: tuple(Rate(int(n), effort.sites) for n in np.sum(each, axis=0).ravel())
        for key, each in summed("years").items()
    }
    return Results(
        years=years,  # type: ignore[arg-type]
        outliers={key: Rate(sum(each), len(each)) for key, each in summed("outliers").items()},
        steady=of("steady"),
        delays=of("delays"),
        oracle=oracles,
        groups_false={key: Rate(sum(each), len(each)) for key, each in summed("false").items()},
        groups=of("groups"),
        incidents={key[0]: Rate(each, 10 * effort.sites) for key, each in of("incidents").items()},
        improvement=of("improvement"),
        peers=_of_peers(list(of("peers").values()), effort.peer_series),
    )


def _peers(world: str, series: int, seed: int) -> dict[str, tuple[int, list[float]]]:
    """Return false alarms in the first year of so many series, and delays of a loss of 30 %."""
    random = np.random.default_rng(seed)
    change, size = _PEER_PAST, _PEER_PAST + _PEER_RUNS
    quiet = WORLDS[world](normals(random, 20 * series, simulate.YEAR, PEER_CORRELATION))
    fallen = WORLDS[world](normals(random, 20 * series, size, PEER_CORRELATION))
    prior = prior_of(quiet)
    fallen[:, change:] += np.log(0.7)
    found = {OURS: _ours(np.exp(quiet), np.exp(fallen), prior)}
    for name, peer in peers.PEERS.items():
        false = sum(len(list(peer(each, peers.FIRST))) for each in np.exp(quiet[:series]))
        alarms = [peer(each, change + 1) for each in np.exp(fallen[: 3 * series])]
        found[name] = (false, [peers.delay(each, change, _PEER_RUNS) for each in alarms])
    return found


def _ours(quiet: Array, fallen: Array, prior: Prior) -> tuple[int, list[float]]:
    false = sum(len(peers.ours(each, LARGE, prior)) for each in quiet)
    alarms = [peers.ours(each, LARGE, prior) for each in fallen]
    return false, [peers.delay(each, _PEER_PAST, _PEER_RUNS) for each in alarms]


def _of_peers(worlds: list[dict[str, tuple[int, list[float]]]], series: int) -> dict[str, Peer]:
    found = {}
    for name in (OURS, *peers.PEERS):
        time = len(worlds) * series * (20 if name == OURS else 1)
        runs = tuple(run for world in worlds for run in world[name][1])
        false = Rate(sum(world[name][0] for world in worlds), time)
        found[name] = Peer(false, Delays(runs, _PEER_RUNS))
    return found


def _seed(case: Key) -> int:
    """Return a seed that is the same in every run, and another one for every case."""
    return int.from_bytes(repr(case).encode(), "little") % (2**31 - 1)
