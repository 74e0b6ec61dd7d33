"""What is known of targets or nodes before a session: the level of each, their noise.

Levels are logarithms of speeds over the others'. Later sessions change nothing of what was known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.snapshot.history import Array, Times

# Something is learned after so many sessions, then every week.
_FIRST_LOOKS: Final = (0, 3, 5, 10, 20)
# A level comes from so many of the first sessions of a peer, and not from fewer than a few.
_FIRST: Final = 20
_FEWEST: Final = 3
# A peer may be slower than the others by nature as far as so many spreads of their levels.
_BY_NATURE: Final = 3.0
# So many standard errors of its level are in favour of a peer.
_DOUBT: Final = 1.0
# Of fewer, a slow one would itself make the spread of its sessions, and hide in it.
_FEWEST_OF_A_SPREAD: Final = 5
_NEWEST: Final = 200
# Speeds have three digits, and smaller differences do not matter. Rates of pinned runs differ more.
_LEAST_NOISE: Final = 0.03
_NOISE_OF_PINNED: Final = 0.1
_MAD_TO_SIGMA: Final = 1.4826
#: The standard error of a median relative to a mean, for normal noise.
MEDIAN: Final = 1.2533


@dataclass(frozen=True)
class Levels:
    """What is known: the level of each peer, what is in its favour, and the noise of all.

    A level is `known`, `settled` for good, `shown` by sessions, not bounded by the others', or
    `accepted` by a person at any height.
    """

    own: Array
    favour: Array
    known: NDArray[np.bool_]
    settled: NDArray[np.bool_]
    shown: NDArray[np.bool_]
    accepted: NDArray[np.bool_]
    noise: float = _LEAST_NOISE

    @classmethod
    def nothing(cls, accepted: NDArray[np.bool_]) -> Levels:
        """Return what is known before the first session."""
        nothing, none = np.zeros(len(accepted)), np.zeros_like(accepted)
        return cls(nothing, nothing, none, none, none, accepted)

    def learned(self, fixed: Array, off: Array, counts: NDArray[np.bool_]) -> Levels:
        """Return what is known after the sessions so far, each of shape (sessions, peers).

        `fixed` are speeds over those of known peers, `off` how far they were from what was known,
        and `counts` is which of them show a peer as it is. A level from enough sessions stays.
        """
        newest = np.abs(off[-_NEWEST:][counts[-_NEWEST:]])
        noise = max(_MAD_TO_SIGMA * float(np.median(newest)) if newest.size else 0.0, _LEAST_NOISE)
        if self.settled.all():
            return replace(self, noise=noise)
        first = counts & (counts.cumsum(0) <= _FIRST)
        number = first.sum(0)
        known = number >= _FEWEST
        if known.sum() < _FEWEST:
            return replace(self, noise=noise)
        group = known & ~self.settled  # peers that came together
        group = group if group.sum() >= _FEWEST_OF_A_SPREAD else known
        found = _median(np.where(first, fixed, np.nan), 0)[0]
        middle = np.median(found[group])
        by_chance = (MEDIAN * noise) ** 2 / np.maximum(number, 1)
        spread = _MAD_TO_SIGMA * np.median(np.abs(found[group] - middle))
        between = max(spread**2 - float(np.median(by_chance[group])), 0.0)
        by_nature = np.where(self.accepted, math.inf, _BY_NATURE * math.sqrt(between))
        share = np.where(known, between / (between + by_chance), 0.0)
        apart = np.where(known, share * (found - middle), 0.0)
        doubt = np.where(known, _DOUBT * np.sqrt(between * (1 - share)), by_nature)
        own = middle + np.maximum(apart, -by_nature)
        return Levels(
            np.where(self.settled, self.own, own),
            np.where(self.settled, self.favour, doubt),
            known | self.settled,
            self.settled | (number >= _FIRST),
            np.where(self.settled, self.shown, known & (apart >= -by_nature)),
            self.accepted,
            noise,
        )

    def off(self, values: Array, pinned: NDArray[np.bool_]) -> tuple[Array, Array, Array, Array]:
        """Return how far sessions are from `own`, what favours them, the noise, and `fixed`.

        Peers of which nothing is known are compared with each other if they are enough.
        """
        over = values - self.own
        of_known, of_new = (
            _middle(np.where(each, over, np.nan)) for each in (self.known, ~self.known)
        )
        middle = np.where(np.isfinite(of_known), of_known, 0.0)
        alone = ~self.known & np.isfinite(of_known) & np.isfinite(of_new)
        off = over - np.where(alone, of_new, middle)
        levels = np.where(np.isfinite(values[pinned]), self.own, np.nan)
        off[pinned] = values[pinned] - over_others(levels)
        spread = np.nan_to_num(_MAD_TO_SIGMA * _middle(np.abs(off)))
        unknown = np.where(self.accepted, math.inf, _BY_NATURE * spread)
        favour = self.favour if self.known.any() else unknown
        noise = np.maximum(spread, self.noise) + np.zeros_like(off)
        noise[pinned] = max(self.noise, _NOISE_OF_PINNED)
        return off, favour + np.zeros_like(off), noise, values - middle


def over_others(values: Array) -> Array:
    """Return logarithms over the median of their session; of two, each over the other."""
    factors = np.array([np.nan, np.nan, 2.0, 1.0])  # of one, nothing is known
    number = np.isfinite(values).sum(1, keepdims=True)
    return factors[np.minimum(number, 3)] * (values - _median(values, 1))


def looks(times: Times) -> list[tuple[int, int]]:
    """Return the spans of sessions that are judged by the same knowledge."""
    weeks = np.flatnonzero(np.diff(times.astype("datetime64[W]").astype(int))) + 1
    edges = {*_FIRST_LOOKS, *weeks.tolist(), len(times)}
    return [*pairwise(sorted(each for each in edges if each <= len(times)))]


def _middle(values: Array) -> Array:
    """Return the median of each session, NaN where too few peers are in it."""
    enough = np.isfinite(values).sum(1, keepdims=True) >= _FEWEST_OF_A_SPREAD
    return np.where(enough, _median(values, 1), np.nan)


def _median(values: Array, axis: int) -> Array:
    """Return the median of the numbers along an axis, which stays; NaN where there are none."""
    number = np.isfinite(values).sum(axis, keepdims=True)
    ends = np.maximum((number - 1) // 2, 0), np.minimum(number // 2, values.shape[axis] - 1)
    low, high = (np.take_along_axis(np.sort(values, axis=axis), end, axis) for end in ends)
    return (low + high) / 2
