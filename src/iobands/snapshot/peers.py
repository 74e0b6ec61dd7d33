"""Peers: targets or nodes that are compared with each other."""

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

# What a target is called, by the type of the file system.
_NAMES: Final = {"lustre": "OST"}


class PeerState(str, Enum):
    """The state of a peer, the worst first.

    `UNUSED`: no run in the newest sessions used it. `UNKNOWN`: no such run compared it with two
    others, or the bytes on each of them explain all differences.
    """

    SLOW = "slow"
    WATCH = "watch"
    HEALTHY = "healthy"
    UNUSED = "not used"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Speeds:
    """The speeds of peers relative to each other in one variable, as logarithms.

    `values` and `used` have the shape (sessions, peers): NaN if a session gave no speed of a peer,
    and whether it used the peer. `times` (UTC) are the ordered times of the sessions. A `pinned`
    session measured one target per run; its speeds are rates relative to its other targets.
    """

    peers: tuple[str, ...]
    times: Times = field(repr=False, compare=False)
    values: NDArray[np.float64] = field(repr=False, compare=False)
    used: NDArray[np.bool_] = field(repr=False, compare=False)
    pinned: NDArray[np.bool_] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Peer:
    """A peer; `ratio` is its speed relative to the others, and if it is slow, since `since`.

    `runs` counts the sessions that used it, and `last` is the newest of them. `score` is the
    evidence that it is slow, in nats; the change began after `since_low`. `own` is its own level,
    the relative speed in its first sessions, None if unknown. `alarms` lists when it was found to
    be slow and until when, None while that lasts; `began` gives, for each alarm, the two sessions
    between which it began, the likelier one last.
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
    """The peers of one place: the targets of a file system, or the nodes of a partition.

    `where` is the file system or partition. `found` and `speeds` are by variable. Peers are named
    by target index or host. All together are compared `comparisons_a_year` times a year.
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
        """What one peer is called, such as `OST`."""
        return _NAMES.get(self.file_system_type or "", TARGET) if self.kind == TARGET else NODE

    @property
    def name(self) -> str:
        """What all peers are called, such as `OSTs of work`."""
        return f"{self.noun}s of {self.where}"

    def name_of(self, peer: str) -> str:
        """Return the name of a peer, such as `OST 7 of work`."""
        return f"{self.noun} {peer} of {self.where}"

    def peers(self) -> dict[str, dict[str, Peer]]:
        """Return the findings by peer and variable."""
        found: dict[str, dict[str, Peer]] = {}
        for variable, peers in self.found.items():
            for each in peers:
                found.setdefault(each.name, {})[variable] = each
        return found

    def then(self, name: str, since: datetime, until: datetime) -> dict[str, Ratio]:
        """Return the median relative speed of a peer in [`since`, `until`), by variable."""
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
        """Return the slow peers, with their findings in the variables in which they are slow."""
        return {
            name: slow
            for name, found in self.peers().items()
            if (slow := {v: each for v, each in found.items() if each.state is PeerState.SLOW})
        }

    def suspects(self) -> dict[str, float]:
        """Return the peers that may be slow but are not `SLOW` yet, the most suspect first.

        Each has the evidence against it, in nats.
        """
        scores = {
            name: max(each.score for each in found.values())
            for name, found in self.peers().items()
            if not {PeerState.SLOW, PeerState.UNUSED} & {each.state for each in found.values()}
        }
        every = sorted(scores.items(), key=lambda each: -each[1])
        return {name: score for name, score in every if score >= SUSPECTED_FROM}

    def healthy(self) -> list[str]:
        """Return the healthy peers to measure a suspect beside, the most typical speed first."""
        doubted = {*self.slow(), *self.suspects()}
        usual = {
            name: max(abs(math.log(each.ratio.value)) for each in found.values())
            for name, found in self.peers().items()
            if name not in doubted
            and {each.state for each in found.values()} == {PeerState.HEALTHY}
        }
        return sorted(usual, key=lambda name: usual[name])


#: The kinds of peers, each with the column of their speeds.
SPEED_COLUMNS: Final = {TARGET: "target_bandwidths", NODE: "node_speeds"}
#: The columns that distinguish runs made at the same time.
WHERE: Final = ("system", "partition", "environ", "file_system")
#: The columns that `slowest` returns, by kind of peer.
SLOWEST: Final = {kind: f"slowest_{kind}" for kind in SPEED_COLUMNS}


def slowest(speeds: pl.DataFrame) -> dict[tuple[object, ...], pl.DataFrame]:
    """Return the slowest target and node of each run, as texts such as `nid01 (0.62)`.

    The result maps values of `WHERE` to a frame with the times of runs and the columns `SLOWEST`,
    which are null for a run on only one target or node.
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
