"""Whether a node is as fast as its peers; docs/decisions/0026-canary.md has the error rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

#: A band needs at least this many samples of peers, from at least this many nodes.
FEWEST_SAMPLES: Final = 400
FEWEST_NODES: Final = 3
#: A node is never unfit above this share of its peers' median.
_LOSS: Final = 0.65


@dataclass(frozen=True)
class AgainstPeers:
    """The rates of a node's one or two runs, and the samples of its peers by node."""

    variable: str
    rates: Sequence[float]
    peers: Mapping[str, Sequence[float]]

    @property
    def samples(self) -> list[float]:
        """The samples of all peers."""
        return [rate for each in self.peers.values() for rate in each]

    @property
    def floor(self) -> float | None:
        """The rate below which a run is low, None while there are too few samples.

        In logarithms, it is as far below the peers' lowest sample as that is below their median. If
        the lower tail of n samples is exponential, a healthy run is below it with the probability
        2 / ((n + 1) (n + 2)): 1 in 80,000 for n = 400, even without a second run.
        """
        samples = self.samples
        if len(samples) < FEWEST_SAMPLES or len(self.peers) < FEWEST_NODES:
            return None
        middle = median(samples)
        return min(_LOSS * middle, min(samples) ** 2 / middle)

    @property
    def verdict(self) -> str:
        """The verdict of the newest run, in the words of contract 2."""
        if self.floor is None:
            return "no band"
        return "collapsed" if self.rates[-1] < self.floor else "within"

    @property
    def is_slow(self) -> bool:
        """Whether two runs are low; one may be chance."""
        return self.floor is not None and len(self.rates) > 1 and max(self.rates) < self.floor
