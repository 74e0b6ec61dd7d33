"""Whether a node's rate is one of its peers'; docs/decisions/0026-canary.md has the error rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

#: The fewest samples of peers that make a band, and the fewest nodes that they are of.
FEWEST_SAMPLES: Final = 400
FEWEST_NODES: Final = 3
#: A node is never unfit above this share of its peers' median.
_LOSS: Final = 0.65


@dataclass(frozen=True)
class AgainstPeers:
    """The rates of a node's runs, one or two, and the samples of its peers by node."""

    variable: str
    rates: Sequence[float]
    peers: Mapping[str, Sequence[float]]

    @property
    def samples(self) -> list[float]:
        """The samples of all peers."""
        return [rate for each in self.peers.values() for rate in each]

    @property
    def floor(self) -> float | None:
        """The rate below which a run is low, None while the samples are too few.

        It is as far below the lowest sample of the peers as this is below their median, by the
        logarithm. If the lower tail of n samples is exponential, a healthy run is below it with the
        probability 2 / ((n + 1) (n + 2)): 1 in 80,000 for 400, whatever a second run adds.
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
