"""Targets and nodes that are compared with each other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from iobands.model import NODE, TARGET, TIME
from iobands.snapshot.history import SUSPECTED_FROM, Ratio, Times, in_utc, median_of

# The name of a target by type of file system.
_NAMES: Final = {"lustre": "OST"}


class PeerState(str, Enum):
    """The state of a peer.

    `UNUSED`: no run of the newest sessions used it. `UNKNOWN`: none of them compared it with two
    others, or the bytes on each explained all differences.
    """

    SLOW = "slow"
    WATCH = "watch"
    HEALTHY = "healthy"
    UNUSED = "not used"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Speeds:
    """Logarithms of the speeds of peers over the others', of one variable.

    `values` is of shape (sessions, peers), NaN if a session has no speed; `used` is whether it used
    the peer. `times` (UTC) are the times of the sessions, in order. `pinned` sessions measured
    single targets, one a run: the speeds are rates over the other targets' of the session.
    """

    peers: tuple[str, ...]
    times: Times = field(repr=False, compare=False)
    values: NDArray[np.float64] = field(repr=False, compare=False)
    used: NDArray[np.bool_] = field(repr=False, compare=False)
    pinned: NDArray[np.bool_] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Peer:
    """One peer: its `ratio` is its speed over the others', since `since` if it is slow.

    `runs` is the number of sessions that used it, `last` the newest of them. The change began after
    `since_low`. `score` is the evidence that it is slow, in nats. `alarms` are the times at which
    it was found to be slow, including the current one, each with its end, None while it lasts.
    `own` is its own level: its speed over the others' in its first sessions, None if not known.
    `began` are the sessions between which each of the `alarms` began, the likelier one last.
    """

    name: str
    state: PeerState
    runs: int
    last: datetime
    ratio: Ratio
    score: float = 0.0
    since: datetime | None = None
    since_low: datetime | None = None
    alarms: tuple[tuple[datetime, datetime | None], ...] = ()
    own: float | None = None
    began: tuple[tuple[datetime, datetime], ...] = ()


@dataclass(frozen=True)
class Place:
    """Peers, which are compared: the targets of a file system, or the nodes of a partition.

    `where` is the file system or partition. `found` and `speeds` are by variable; a peer is named
    by its index or host. `comparisons_a_year` is how often they are compared.
    """

    kind: str
    system: str
    where: str
    file_system_type: str | None
    found: Mapping[str, tuple[Peer, ...]]
    speeds: Mapping[str, Speeds]
    comparisons_a_year: float

    @property
    def noun(self) -> str:
        """The name of one peer, such as `OST`."""
        return _NAMES.get(self.file_system_type or "", TARGET) if self.kind == TARGET else NODE

    @property
    def name(self) -> str:
        """The name of its peers, such as `OSTs of work`."""
        return f"{self.noun}s of {self.where}"

    def name_of(self, peer: str) -> str:
        """Return the name of a peer, such as `OST 7 of work`."""
        return f"{self.noun} {peer} of {self.where}"

    def peers(self) -> dict[str, dict[str, Peer]]:
        """Return each peer by its variables."""
        found: dict[str, dict[str, Peer]] = {}
        for variable, peers in self.found.items():
            for each in peers:
                found.setdefault(each.name, {})[variable] = each
        return found

    def then(self, name: str, since: datetime, until: datetime) -> dict[str, Ratio]:
        """Return how fast a peer was from `since` until before `until`, by variable."""
        found = {}
        for variable in self.peers().get(name, {}):
            speeds = self.speeds[variable]
            first, last = np.searchsorted(speeds.times, [in_utc(since), in_utc(until)])
            values = speeds.values[first:last, speeds.peers.index(name)]
            level = math.exp(median_of(values[~np.isnan(values)]))
            if math.isfinite(level):
                found[variable] = Ratio(level, level, level)
        return found

    def slow(self) -> dict[str, dict[str, Peer]]:
        """Return the slow peers, each with the variables in which it is slow."""
        return {
            name: slow
            for name, found in self.peers().items()
            if (slow := {v: each for v, each in found.items() if each.state is PeerState.SLOW})
        }

    def suspects(self) -> dict[str, float]:
        """Return the evidence that each peer under suspicion is slow, in nats, the most first.

        None of them is named yet.
        """
        scores = {
            name: max(each.score for each in found.values())
            for name, found in self.peers().items()
            if not {PeerState.SLOW, PeerState.UNUSED} & {each.state for each in found.values()}
        }
        every = sorted(scores.items(), key=lambda each: -each[1])
        return {name: score for name, score in every if score >= SUSPECTED_FROM}

    def healthy(self) -> list[str]:
        """Return the peers beside which another one can be measured, the most usual first."""
        doubted = {*self.slow(), *self.suspects()}
        usual = {
            name: max(abs(math.log(each.ratio.value)) for each in found.values())
            for name, found in self.peers().items()
            if name not in doubted
            and {each.state for each in found.values()} == {PeerState.HEALTHY}
        }
        return sorted(usual, key=lambda name: usual[name])


#: The kinds of peers, and the column with their speeds.
SPEED_COLUMNS: Final = {TARGET: "target_bandwidths", NODE: "node_speeds"}
#: The columns that distinguish runs at the same time.
WHERE: Final = ("system", "partition", "environ", "file_system")
#: The columns that `slowest` adds.
SLOWEST: Final = {kind: f"slowest_{kind}" for kind in SPEED_COLUMNS}


def slowest(speeds: pl.DataFrame) -> dict[tuple[object, ...], pl.DataFrame]:
    """Return the slowest target and node of each run as texts such as `nid01 (0.62)`.

    By `WHERE`, a frame with the times of runs and the columns `SLOWEST`; a single node has none.
    """
    of_run = (TIME, *WHERE)
    said = (
        speeds.lazy()
        .filter(pl.col("speed").is_not_nan())
        .filter(pl.col("peer").n_unique().over(*of_run, "kind") > 1)
        .sort("speed", maintain_order=True)
        .with_columns(pl.format("{} ({})", "peer", pl.col("speed").round(2)).alias("said"))
    )
    kinds = [
        pl.col("said").filter(pl.col("kind") == kind).first().alias(name)
        for kind, name in SLOWEST.items()
    ]
    found = said.group_by(of_run).agg(kinds).collect()
    return found.partition_by(WHERE, as_dict=True, include_key=False)
