"""Simulations of storage targets and nodes: false names, and when a slow one is named.

The times of ranks are real: rank_times.csv has 60 runs of benchio's layer `proc` with 16 ranks of
8 MiB on a disk. A simulated session takes its ranks' times from one of them.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.alarms.figures import NEVER, Delays
from benchmarks.alarms.worlds import Array, Random
from checks.base.speeds import RankTime, node_speeds, target_bandwidths
from checks.filesystems import BACKENDS
from iobands.judge.detect.prior import Budget
from iobands.judge.peer_scan import compare_peers
from iobands.judge.places import thresholds
from iobands.snapshot import Speeds, moment

YEAR: Final = 365
VARIABLES: Final = ("write", "read")
_FILES: Final = 2048
# Targets count as equally loaded in a run if their numbers of files differ by less than a tenth.
_MANY: Final = 1.1
_HISTORY: Final = 20
_LONGEST: Final = 30
# Later sessions do not change a finding, so it is enough to look after these slow sessions.
_LOOKS: Final = (4, 8, 16, _LONGEST)
# Days within which write and read rates that name a peer count as one event.
_ONE_EVENT: Final = 5
# The share of its speed that a peer keeps in a session in which others happen to use it.
_BUSY: Final = (0.4, 0.8)
# qos_threshold_rr and qos_prio_free by Lustre's manual.
_THRESHOLD: Final = 0.17
_PRIORITY: Final = 0.91
_FIRST: Final = np.datetime64("2026-01-01", "ns")
_DAY: Final = np.timedelta64(1, "D")

_LAYOUT: Final = """{path}
lmm_stripe_count:  {count}
lmm_stripe_size:   1048576
lmm_pattern:       raid0
lmm_layout_gen:    0
lmm_stripe_offset: {first}
\tobdidx\t\t objid\t\t objid\t\t group
{objects}
"""

#: The peers that each rank waits for, of shape (ranks, peers of a rank).
Used = NDArray[np.int_]


@dataclass(frozen=True)
class Targets:
    """The targets of a file system, used in rotation as by Lustre; each rank has one file.

    The logarithms of their healthy speeds have the standard deviation `spread`.
    """

    peers: int
    stripes: int = 1
    spread: float = field(default=0.0, kw_only=True)

    @property
    def compared(self) -> int:
        """The number of targets that a session compares."""
        return self.peers

    def __str__(self) -> str:
        """Return what the page calls it."""
        differ = f" that differ by {self.spread:.0%}" * (self.spread > 0)
        return f"{self.peers} targets{differ}" + f", {self.stripes} stripes" * (self.stripes > 1)

    def used(self, random: Random) -> Used:
        """Return the targets of each file, with files and targets in random order."""
        files = random.permutation(_placed(self.peers, self.stripes))
        return random.permutation(self.peers)[files]

    def busy(self, used: Used, speeds: Array) -> Array:
        """Return how much slower each rank is than alone on healthy targets."""
        return 1.0 / speeds[used].min(1)

    def speeds(self, seconds: Array, used: Used) -> dict[int, float]:
        """Return what the check records of such a run."""
        files = np.bincount(used.ravel(), minlength=self.peers)
        if self.stripes == 1 and 0 < files.max() <= min(files.min() + 1, _MANY * files.min()):
            return dict(enumerate(in_rotation(seconds, used[:, 0], files).tolist()))
        times = [RankTime(float(each), str(rank)) for rank, each in enumerate(seconds)]
        return target_bandwidths(times, {str(rank): own for rank, own in enumerate(used.tolist())})


@dataclass(frozen=True)
class Weighted(Targets):
    """Targets as Lustre allocates them: in rotation if their free space is similar, or by weight.

    `free` is the free space on each. A rank's file takes as long as its busiest target: one that
    holds up to `shared` files serves each at full speed, and one with more divides its bandwidth
    among them.
    """

    free: tuple[float, ...] = ()
    ranks: int = 64
    shared: float = 1.0

    def __str__(self) -> str:
        """Return what the page calls it."""
        free = "; ".join(f"{each:g} free on {n}" for each, n in Counter(self.free).items())
        limit = f"shared from {self.shared:g} files on" if self.shared < self.ranks else "by nodes"
        return f"{super().__str__()}, {self.ranks} files ({free}; {limit})"

    @property
    def rotated(self) -> Weighted:
        """The same with equal free space."""
        return replace(self, free=(1.0,) * self.peers)

    def used(self, random: Random) -> Used:
        """Return the targets of each file."""
        if (1 - _THRESHOLD) * max(self.free) < min(self.free):
            first = random.integers(_FILES - self.ranks)
            placed = _placed(self.peers, self.stripes)[first : first + self.ranks]
            return random.permutation(placed)
        return weighted(random, np.array(self.free), self.ranks, self.stripes)

    def busy(self, used: Used, speeds: Array) -> Array:
        """Return how much slower each rank is than alone on healthy targets."""
        files = np.bincount(used.ravel(), minlength=self.peers) / self.stripes
        return (np.maximum(files / self.shared, 1.0) / speeds)[used].max(1)


@dataclass(frozen=True)
class Nodes:
    """The nodes of a partition; each session gets a random choice of them."""

    compared: int
    ranks: int
    peers: int = 200
    spread: float = 0.0

    def __str__(self) -> str:
        """Return what the page calls it."""
        return f"{self.compared} of {self.peers} nodes, {self.ranks} ranks each"

    def used(self, random: Random) -> Used:
        """Return the node of each rank."""
        nodes = random.choice(self.peers, self.compared, replace=False)
        return np.repeat(nodes, self.ranks)[:, None]

    def busy(self, used: Used, speeds: Array) -> Array:
        """Return how much slower each rank is than on healthy nodes."""
        return 1.0 / speeds[used].min(1)

    @staticmethod
    def speeds(seconds: Array, used: Used) -> dict[int, float]:
        """Return what the check records of such a run."""
        times = [
            RankTime(float(each), "", str(node))
            for each, (node,) in zip(seconds, used, strict=True)
        ]
        return {int(node): speed for node, speed in node_speeds(times, {}).items()}


Place = Targets | Nodes


def in_rotation(seconds: Array, used: NDArray[np.int_], files: NDArray[np.int_]) -> Array:
    """Return `target_bandwidths` of files on one target each, if all have about as many files.

    The result is the same, thirty times as fast.
    """
    ranks = np.lexsort((-np.log(seconds), used))
    values, ends = -np.log(seconds)[ranks], files.cumsum()
    first = ends - files
    less = np.log(files)[None, :] - np.log(files)[:, None]
    others = ~np.eye(len(files), dtype=bool)

    def beyond(rates: Array) -> Array:
        bounds = [rates + side(less, 0.0) for side in (np.minimum, np.maximum)]
        return rates - np.mean(
            [np.median(each[others].reshape(len(files), -1), axis=1) for each in bounds], axis=0
        )

    middle = (values[first + (files - 1) // 2] + values[first + files // 2]) / 2
    found, last = beyond(middle), beyond(values[first])
    return np.exp(np.where(found < 0, np.maximum(found, np.minimum(last, 0.0)), found))


@cache
def _placed(targets: int, stripes: int) -> Used:
    """Return the targets of files in order of creation, parsed from what `lfs` would print."""
    texts = []
    for file in range(_FILES):
        # one target further after each round, so that targets do not always appear together
        at = file * stripes + file * stripes // targets
        own = [(at + k) % targets for k in range(stripes)]
        objects = "\n".join(f"\t{i:6}\t{2:14}\t{'0x2':>14}\t{'0x300000400':>14}" for i in own)
        path = f"/run/proc{file:06}.dat"
        texts.append(_LAYOUT.format(path=path, count=stripes, first=own[0], objects=objects))
    return np.array([*BACKENDS["lustre"].targets_of_files("\n".join(texts)).values()])


def weighted(random: Random, free: Array, files: int, stripes: int = 1) -> Used:
    """Return the targets of files, drawn as Lustre 2.17 does for one server.

    The probability is proportional to a weight, the free space less a penalty. A target just used
    gets `each` times the number of targets as a penalty, which falls by `each` with every stripe.
    """
    each = (1 - _PRIORITY) * free / max(len(free) - 1, 1)
    penalty, placed = np.zeros(len(free)), []
    for _ in range(files):
        own: list[int] = []
        for _ in range(stripes):
            weight = np.maximum(free - penalty, 0.0)
            weight[own] = 0.0
            target = int(random.choice(len(free), p=weight / weight.sum()))
            own.append(target)
            penalty[target] = penalty[target] / 2 + each[target] * len(free)
            penalty = np.maximum(penalty - each, 0.0)
        placed.append(own)
    return np.array(placed)


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


def session(random: Random, variable: str, place: Place, used: Used, speeds: Array) -> Array:
    """Return the logarithms of the peers' speeds as a run shows them, given their true `speeds`."""
    runs = rank_times()[variable]
    times = random.choice(runs[random.integers(len(runs))], len(used))
    shown = place.speeds(np.exp(times) * place.busy(used, speeds), used)
    return np.log([shown.get(peer, np.nan) for peer in range(place.peers)])


class Daily:
    """A place that is measured daily; each peer is busy by chance in a share of the sessions."""

    def __init__(self, place: Place, busy: float, random: Random) -> None:
        """Begin without a session."""
        self._place, self._busy, self._random = place, busy, random
        self._healthy = np.exp(random.normal(0, place.spread, place.peers))
        self._values: dict[str, list[Array]] = {variable: [] for variable in VARIABLES}
        self._used: list[NDArray[np.bool_]] = []

    def measure(self, slow: int | None = None, factor: float = 1.0) -> bool:
        """Add a session, in which one peer may be slow; return whether that peer was used."""
        random, peers = self._random, self._place.peers
        used = self._place.used(random)
        busy = random.random(peers) < self._busy
        speeds = self._healthy * np.where(busy, random.uniform(*_BUSY, peers), 1.0)
        if slow is not None:
            speeds[slow] *= factor
        self._used.append(np.isin(np.arange(peers), used))
        for variable, values in self._values.items():
            values.append(session(random, variable, self._place, used, speeds))
        return slow in used

    def named(self, since: int) -> list[tuple[int, str]]:
        """Return the days, from `since` on, on which a peer was found to be slow, in order."""
        every = [self._speeds(values) for values in self._values.values()]
        found = {
            ((raised - moment(_FIRST)).days, -peer.score, peer.name)
            for each in every
            for peer in compare_peers(each, thresholds(each, every, 1.0))
            for raised, _ in peer.alarms
        }
        return [(day, name) for day, _, name in sorted(found) if day >= since]

    def _speeds(self, values: list[Array]) -> Speeds:
        times = _FIRST + np.arange(len(values)) * _DAY
        names = tuple(map(str, range(self._place.peers)))
        pinned = np.zeros(len(values), dtype=bool)
        return Speeds(names, times, np.array(values), np.array(self._used), pinned)


def threshold(place: Place) -> float:
    """Return the evidence for an alert, in nats."""
    return Budget(1.0, float(place.compared * len(VARIABLES) * YEAR)).threshold


def false_names(place: Place, busy: float, seed: int) -> int:
    """Return how often a healthy peer is named in the first year."""
    daily = Daily(place, busy, np.random.default_rng(seed))
    for _ in range(YEAR):
        daily.measure()
    return len({(day // _ONE_EVENT, name) for day, name in daily.named(0)})


def in_any_allocation(
    place: Weighted, factor: float, busy: float, number: int, seed: int
) -> tuple[Delays, Delays]:
    """Return the delays in rotation, and those where files are placed by weight."""
    drawn = [delays(each, factor, busy, number, seed)[0] for each in (place.rotated, place)]
    return drawn[0], drawn[1]


def delays(
    place: Place, factor: float, busy: float, number: int, seed: int
) -> tuple[Delays, float]:
    """Return the sessions with a slow peer until it is named, and how often it is named first."""
    random = np.random.default_rng(seed)
    runs, first = [], 0
    for _ in range(number):
        daily, slow = Daily(place, busy, random), int(random.integers(place.peers))
        for _ in range(_HISTORY):
            daily.measure()
        uses, names = list[int](), list[tuple[int, str]]()
        day = _HISTORY
        while str(slow) not in {name for _, name in names} and len(uses) < _LONGEST:
            if daily.measure(slow, factor):
                uses.append(day)
                if len(uses) in _LOOKS:
                    names = daily.named(_HISTORY)
            day += 1
        raised = [on for on, name in names if name == str(slow)]
        runs.append(1.0 + uses.index(raised[0]) if raised else NEVER)
        first += [name for _, name in names[:1]] == [str(slow)]
    return Delays(tuple(runs), _LONGEST), first / number
