"""Simulations of storage targets: false alarms of healthy ones, and when a slow one is named.

The times of ranks are real: rank_times.csv has 60 runs of benchio's layer `proc` with 16 ranks of
8 MiB on a disk. A simulated run takes its ranks' times from one of them. The layouts have the form
of what `lfs getstripe` printed on Lustre 2.17, with targets in rotation, as it places files.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.alarms.figures import NEVER, Delays
from benchmarks.alarms.worlds import Array, Random
from checks.base.speeds import RankTime, target_speeds
from checks.filesystems import BACKENDS
from iobands.detection.peers import Speeds, compare
from iobands.detection.series import Budget

YEAR: Final = 365
FILES: Final = 2048
VARIABLES: Final = ("write", "read")
_HISTORY: Final = 20
_LONGEST: Final = 30
_UNUSED: Final = 3
# What a target has left of its speed while others use it, by chance, for one session.
_BUSY: Final = (0.4, 0.8)

_LAYOUT: Final = """{path}
lmm_stripe_count:  {count}
lmm_stripe_size:   1048576
lmm_pattern:       raid0
lmm_layout_gen:    0
lmm_stripe_offset: {first}
\tobdidx\t\t objid\t\t objid\t\t group
{objects}
"""


@cache
def rank_times() -> dict[str, list[Array]]:
    """Return the logarithms of the ranks' times over the run's median, by variable and run."""
    found: dict[str, defaultdict[str, list[float]]] = {v: defaultdict(list) for v in VARIABLES}
    with Path(__file__).with_name("rank_times.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            for variable, runs in found.items():
                runs[row["run"]].append(float(row[f"{variable}_seconds"]))
    return {
        variable: [np.log(np.array(run) / np.median(run)) for run in runs.values()]
        for variable, runs in found.items()
    }


def layouts(random: Random, files: int, targets: int, stripes: int) -> Mapping[str, tuple]:
    """Return the targets of each file, read from what `lfs getstripe` prints of them."""
    order, begin = random.permutation(targets), random.integers(targets)
    texts = []
    for place, file in enumerate(random.permutation(files)):  # in the order of creation
        # after each round one further, so that targets do not always appear together
        at = begin + place * stripes + place * stripes // targets
        own = [int(order[(at + k) % targets]) for k in range(stripes)]
        objects = "\n".join(f"\t{i:6}\t{2:14}\t{'0x2':>14}\t{'0x300000400':>14}" for i in own)
        path = f"/run/proc{file:06}.dat"
        texts.append(_LAYOUT.format(path=path, count=stripes, first=own[0], objects=objects))
    return BACKENDS["lustre"].targets_of_files("\n".join(texts))


def session(random: Random, variable: str, lies_on: Mapping[str, tuple], speeds: Array) -> Array:
    """Return the logarithms of the targets' speeds that a run shows whose targets have `speeds`."""
    runs = rank_times()[variable]
    times = random.choice(runs[random.integers(len(runs))], len(lies_on))
    ranks = [
        RankTime(float(np.exp(time) / speeds[list(own)].min()), file)
        for time, (file, own) in zip(times, lies_on.items(), strict=True)
    ]
    found = target_speeds(ranks, lies_on)
    return np.log([found.get(target, np.nan) for target in range(len(speeds))])


def _speeds(random: Random, targets: int, busy: float) -> Array:
    """Return the speeds of healthy targets in a session, of which a share `busy` is slowed."""
    return np.where(random.random(targets) < busy, random.uniform(*_BUSY, targets), 1.0)


def _drawn(random: Random, sessions: int, targets: int, stripes: int, busy: float) -> list[Speeds]:
    """Return healthy sessions of each variable."""
    lies_on = [layouts(random, FILES, targets, stripes) for _ in range(min(sessions, 8))]
    names, days = tuple(map(str, range(targets))), np.arange(sessions)
    found = []
    for variable in VARIABLES:
        values = []
        for day in days:
            speeds = _speeds(random, targets, busy)
            values.append(session(random, variable, lies_on[day % len(lies_on)], speeds))
        times = (np.datetime64("2026-01-01") + days).astype("datetime64[ns]")
        found.append(Speeds(names, times, np.array(values)))
    return found


def budget(targets: int) -> Budget:
    """Return the budget of a file system that is measured daily."""
    return Budget(1.0, float(targets * len(VARIABLES) * YEAR))


def false_alarms(targets: int, busy: float, seed: int) -> int:
    """Return how often a healthy target is named in a year."""
    random = np.random.default_rng(seed)
    drawn = _drawn(random, YEAR, targets, 1, busy)
    every = [peer for each in drawn for peer in compare(each, budget(targets), _UNUSED)]
    return sum(len(peer.alarms) for peer in every)


def named(
    targets: int, stripes: int, factor: float, busy: float, number: int, seed: int
) -> tuple[Delays, float]:
    """Return the sessions until a slow target is named, and how often it was the first named."""
    random = np.random.default_rng(seed)
    runs, first = [], 0
    for _ in range(number):
        slow = int(random.integers(targets))
        healthy = _drawn(random, _HISTORY, targets, stripes, busy)
        lies_on = layouts(random, FILES, targets, stripes)
        values = [list(each.values) for each in healthy]
        for after in range(1, _LONGEST + 1):
            speeds = _speeds(random, targets, busy)
            speeds[slow] *= factor
            for variable, each in zip(VARIABLES, values, strict=True):
                each.append(session(random, variable, lies_on, speeds))
            times = np.datetime64("2026-01-01") + np.arange(len(values[0]))
            found = [
                peer
                for each in values
                for peer in compare(
                    Speeds(healthy[0].peers, times.astype("datetime64[ns]"), np.array(each)),
                    budget(targets),
                    _UNUSED,
                )
                if peer.since
            ]
            if found:
                runs.append(float(after))
                first += max(found, key=lambda peer: peer.score).name == str(slow)
                break
        else:
            runs.append(NEVER)
    return Delays(tuple(runs), _LONGEST), first / number
