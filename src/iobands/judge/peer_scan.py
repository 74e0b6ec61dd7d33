"""Finds peers, targets of a file system or nodes of a system, that are slower than the others.

A run gives the speed of each of its peers over the median one, so what moves all of them cancels
out. Each session adds a Huberised log-likelihood ratio to the evidence of a peer: normal noise
around a design level below the others, against noise around their level, clipped at both ends
(Huber, "A robust version of the probability ratio test", Ann. Math. Statist. 36, 1965).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.judge.budget import WATCH, Budget
from iobands.judge.scores import Array
from iobands.snapshot import DAILY, Peer, PeerState, Ratio, Speeds, moment, runs_a_year

# Speeds relative to the others; the likeliest counts.
_DESIGNS: Final = np.log([0.75, 0.5])[:, None]
# The median of two hides which one is slow.
_FEWEST_PEERS: Final = 3
# Of fewer, a slow one would itself make the spread of its sessions, and hide in it.
_FEWEST_OF_A_SPREAD: Final = 5
# Of a slow peer so many sessions may look healthy, and of a healthy one so many slow, for no
# lasting reason; the second is learned from the others, and worth so many cells before.
_HEALTHY_BY_CHANCE: Final = 0.10
_SLOW_BY_CHANCE: Final = 0.02
_PRIOR_CELLS: Final = 50
# The share of a slow peer's sessions that show nothing, as the bytes on each explain everything.
_TELLS_NOTHING: Final = 0.5
# Speeds have three digits, and smaller differences do not matter.
_LEAST_NOISE: Final = 0.03
_MAD_TO_SIGMA: Final = 1.4826
_NORMAL_95: Final = 1.96
# The standard error of a median relative to a mean, for normal noise.
_MEDIAN: Final = 1.2533
# A slow peer has recovered after this many healthy sessions in a row.
_RECOVERED: Final = 3
# A peer is gone if the newest sessions miss it: at least this many, and so many that a random
# choice of as many peers would miss it with only this probability.
_FEWEST_MISSED: Final = 3
_MISSED_BY_CHANCE: Final = 0.01
# The speed of a healthy peer comes from this many of its newest sessions, without the ones in which
# it was slow.
_NEWEST: Final = 20


def compare_peers(speeds: Speeds, budget: Budget) -> tuple[Peer, ...]:
    """Return the peers in their order."""
    seen, shows = speeds.used, np.isfinite(speeds.values)
    compared = np.flatnonzero((seen.sum(1) >= _FEWEST_PEERS) & shows.any(1))
    not_used = len(seen) - _gone_after(seen.mean())
    not_compared = len(seen) - _gone_after(shows[compared].sum() / seen.size)
    values, times = speeds.values[compared], speeds.times[compared]
    noise = _noise(values)
    *evidence, alarms, ends = _follow(
        _scores(values, noise, seen[compared]), shows[compared], budget.threshold
    )
    found = []
    for place, name in enumerate(speeds.peers):
        used = np.flatnonzero(seen[:, place])
        if not len(used):
            continue
        onset, is_slow, score = (each[place] for each in evidence)
        shown = np.flatnonzero(np.isfinite(values[:, place]))
        over = np.flatnonzero(ends[:, place])
        recovered = np.searchsorted(shown, over[-1]) + 1 - _RECOVERED if len(over) else 0
        recent = shown[shown >= onset] if is_slow else shown[recovered:][-_NEWEST:]
        state = PeerState.SLOW if is_slow else PeerState.HEALTHY
        if not is_slow and score >= WATCH:
            state = PeerState.WATCH
        if not len(shown) or compared[shown[-1]] < not_compared:
            state = PeerState.UNKNOWN
        if used[-1] < not_used:
            state = PeerState.UNUSED
        since = since_low = None
        if state is PeerState.SLOW:
            since = moment(times[onset])
            since_low = moment(times[shown[max(np.searchsorted(shown, onset) - 1, 0)]])
        found.append(
            Peer(
                name,
                state,
                len(used),
                moment(speeds.times[used[-1]]),
                _ratio(values[recent, place], noise[recent]),
                float(score),
                since,
                since_low,
                tuple(
                    (moment(raised), None if ended is None else moment(ended))
                    for raised, ended in zip_longest(times[alarms[:, place]], times[ends[:, place]])
                ),
            )
        )
    return tuple(found)


def comparisons_a_year(speeds: Sequence[Speeds]) -> float:
    """Return how often a year a peer is compared with the others, all of them together."""
    found = 0.0
    for each in speeds:
        used = np.isfinite(each.values).sum()
        if used:
            a_year = runs_a_year(each.times) if len(each.times) > 1 else DAILY
            found += used / len(each.times) * a_year
    return found


def _gone_after(share: float) -> int:
    """Return how many sessions without a peer are no chance, if each uses this share of all."""
    if not 0 < share < 1:
        return _FEWEST_MISSED
    return max(_FEWEST_MISSED, math.ceil(math.log(_MISSED_BY_CHANCE) / math.log1p(-share)))


def _noise(values: Array) -> Array:
    """Return the spread of healthy peers in each session, at least the spread of all sessions."""
    sizes = np.abs(values)
    every = np.nanmedian(sizes) if len(sizes) else 0.0
    enough = np.isfinite(sizes).sum(1) >= _FEWEST_OF_A_SPREAD
    spread = np.where(enough, np.nanmedian(sizes, axis=1), every)
    return np.maximum(_MAD_TO_SIGMA * np.maximum(spread, every), _LEAST_NOISE)


def _scores(values: Array, noise: Array, used: NDArray[np.bool_]) -> Array:
    """Return the evidence of each session for each design, of shape (designs, sessions, peers).

    Speeds beyond the level of a design do not contradict it: much slower is slow, too. A session
    without a speed for a peer that it used is weak evidence: if most sessions are like that, the
    others are chance.
    """
    levels = _DESIGNS[:, :, None]
    near = np.maximum(values, levels)
    ratios = levels * (near - levels / 2) / noise[None, :, None] ** 2
    low = (ratios > 0).sum(1)
    cells = used.sum(0)
    others = cells.sum() - cells
    chance = (low.sum(1, keepdims=True) - low + _SLOW_BY_CHANCE * _PRIOR_CELLS) / (
        others + _PRIOR_CELLS
    )
    most = np.log((1 - _HEALTHY_BY_CHANCE) / np.clip(chance, _SLOW_BY_CHANCE, 0.5))
    least = math.log(_HEALTHY_BY_CHANCE / (1 - _SLOW_BY_CHANCE))
    found = np.clip(ratios, least, most[:, None, :])
    return np.where(used & np.isnan(values), math.log(_TELLS_NOTHING), found)


def _follow(
    scores: Array, shown: NDArray[np.bool_], threshold: float
) -> tuple[NDArray[np.int_], NDArray[np.bool_], Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return for each peer the onset, −1 for none, whether it is slow, and the evidence.

    Also return the sessions at which it was found to be slow and to be healthy again, each of shape
    (sessions, peers). Sessions that are not `shown` neither end nor keep an alert.
    """
    designs, sessions, peers = scores.shape
    evidence = np.zeros((designs, peers))
    onsets = np.full((designs, peers), -1)
    alarms, ends = np.zeros((2, sessions, peers), dtype=bool)
    is_slow = np.zeros(peers, dtype=bool)
    healthy = np.zeros(peers, dtype=int)
    for session in range(sessions):
        seen = shown[session]
        step = np.where(np.isnan(scores[:, session]) | (is_slow & ~seen), 0.0, scores[:, session])
        onsets = np.where((evidence == 0) & (step > 0), session, onsets)
        evidence = np.maximum(evidence + step, 0.0)
        alarms[session] = ~is_slow & (evidence.max(0) >= threshold)
        is_slow |= alarms[session]
        healthy = np.where(seen, np.where((step < 0).all(0), healthy + 1, 0), healthy)
        ends[session] = is_slow & (healthy >= _RECOVERED)
        is_slow &= ~ends[session]
        evidence[:, ends[session]] = 0.0
    chosen = (evidence.argmax(0), np.arange(peers))
    return onsets[chosen], is_slow, evidence[chosen], alarms, ends


def _ratio(values: Array, noise: Array) -> Ratio:
    """Return the median speed relative to the others, with a normal 95 % interval."""
    if not len(values):
        return Ratio(math.nan, 0.0, math.inf)
    middle = float(np.median(values))
    error = _NORMAL_95 * _MEDIAN * float(np.median(noise)) / math.sqrt(len(values))
    return Ratio(math.exp(middle), math.exp(middle - error), math.exp(middle + error))
