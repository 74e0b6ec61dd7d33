"""Finds slow peers: targets of a file system, or nodes of a partition.

A run gives the speed of each of its peers over the median one, so what slows all of them cancels
out; the rest is compared with the peer's own level. Each session adds a Huberised log-likelihood
ratio to the evidence that a peer is slow: normal noise around a design level below its own, against
noise around its own, clipped at both ends (Huber, "A robust version of the probability ratio
test", Ann. Math. Statist. 36, 1965).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.judge.detect import DAY, WATCH
from iobands.snapshot import Array, Peer, PeerState, Ratio, Speeds, Times, moment, runs_a_year_at

# Levels are learned after these numbers of sessions, and then every week.
_FIRST_LOOKS: Final = (0, 3, 5, 10, 20)
# A peer's level comes from its first sessions: this many at most, and a few at least.
_FIRST: Final = 20
_FEWEST: Final = 3
# How many sessions are searched for them at a time.
_AT_A_TIME: Final = 200
# A healthy peer may be slower than the others by this many spreads of their levels.
_BY_NATURE: Final = 3.0
# This many standard errors of a peer's level count in its favour.
_DOUBT: Final = 1.0
# With fewer peers, a slow one would cause most of its session's spread, and hide in it.
_FEWEST_OF_A_SPREAD: Final = 5
_SESSIONS_FOR_NOISE: Final = 200
# Speeds have three digits, and smaller differences do not matter. Rates of pinned runs vary more.
_LEAST_NOISE: Final = 0.03
_NOISE_OF_PINNED: Final = 0.1
_MAD_TO_SIGMA: Final = 1.4826
#: The standard error of a median relative to the mean's, for normal noise.
MEDIAN: Final = 1.2533


@dataclass(frozen=True)
class Levels:
    """The `own` level of each peer (a logarithm), the error in its `favour`, and the noise of all.

    A `known` level is provisional until it is `settled`, and then fixed. It is `shown` by sessions
    of the peer, or else bounded by the others' levels, unless a person has `accepted` it.
    """

    own: Array
    favour: Array
    known: NDArray[np.bool_]
    settled: NDArray[np.bool_]
    shown: NDArray[np.bool_]
    accepted: NDArray[np.bool_]
    noise: float = _LEAST_NOISE

    def learned(self, fixed: Array, off: Array, counts: NDArray[np.bool_]) -> Levels:
        """Return the levels learned from sessions; arguments are of shape (sessions, peers).

        `fixed` are speeds relative to the peers with known levels, `off` their distances from the
        levels known then, and `counts` marks what a level may be learned from.
        """
        newest = np.abs(off[-_SESSIONS_FOR_NOISE:][counts[-_SESSIONS_FOR_NOISE:]])
        noise = max(_MAD_TO_SIGMA * float(np.median(newest)) if newest.size else 0.0, _LEAST_NOISE)
        same = replace(self, noise=noise)
        if self.settled.all():
            return same
        first = _first(fixed, counts)
        number = np.isfinite(first).sum(0)
        known = number >= _FEWEST
        if known.sum() < _FEWEST:
            return same
        group = known & ~self.settled  # peers that were added together
        group = group if group.sum() >= _FEWEST_OF_A_SPREAD else known
        found = _median(first, 0)[0]
        middle = np.median(found[group])
        by_chance = (MEDIAN * noise) ** 2 / np.maximum(number, 1)
        spread = _MAD_TO_SIGMA * np.median(np.abs(found[group] - middle))
        between = max(spread**2 - float(np.median(by_chance[group])), 0.0)
        by_nature = np.where(self.accepted, math.inf, _BY_NATURE * math.sqrt(between))
        # a level that a person accepted is not drawn towards the others'
        share = np.where(self.accepted, 1.0, between / (between + by_chance)) * known
        apart = np.where(known, share * (found - middle), 0.0)
        doubt = np.where(known, _DOUBT * np.sqrt(share * by_chance), by_nature)
        own = middle + np.maximum(apart, -by_nature)
        is_shown = known & (apart >= -by_nature)
        new = ((self.own, own), (self.favour, doubt), (self.shown, is_shown))
        own, favour, shown = (np.where(self.settled, *each) for each in new)
        settled = self.settled | (number >= _FIRST)
        return Levels(own, favour, known | self.settled, settled, shown, self.accepted, noise)

    def off(self, values: Array, pinned: NDArray[np.bool_]) -> tuple[Array, Array, Array, Array]:
        """Return distances from `own`, favour, noise and `fixed`, of shape (sessions, peers).

        Peers without a known level are compared with each other if there are enough.
        """
        over = values - self.own
        of_known, of_new = (_middle(np.where(e, over, np.nan)) for e in (self.known, ~self.known))
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


def _first(values: Array, counts: NDArray[np.bool_]) -> Array:
    """Return the first values of each peer that count, of shape (_FIRST, peers), NaN for no value.

    Later sessions are searched only for peers that have fewer values.
    """
    found = np.full((_FIRST, values.shape[1]), np.nan)
    number = np.zeros(values.shape[1], dtype=int)
    for begin in range(0, len(values), _AT_A_TIME):
        few = np.flatnonzero(number < _FIRST)
        here = counts[begin : begin + _AT_A_TIME, few]
        nth = number[few] + here.cumsum(0) - 1
        session, peer = np.nonzero(here & (nth < _FIRST))
        found[nth[session, peer], few[peer]] = values[begin + session, few[peer]]
        number[few] += here.sum(0)
    return found


def over_others(values: Array) -> Array:
    """Return logarithms relative to the median of their session; of two, each to the other."""
    factors = np.array([np.nan, np.nan, 2.0, 1.0])  # a single peer is compared with nothing
    number = np.isfinite(values).sum(1, keepdims=True)
    return factors[np.minimum(number, 3)] * (values - _median(values, 1))


def looks(times: Times) -> list[tuple[int, int]]:
    """Return the spans of sessions that are judged by the same levels."""
    weeks = np.flatnonzero(np.diff(times.astype("datetime64[W]").astype(int))) + 1
    edges = {*_FIRST_LOOKS, *weeks.tolist(), len(times)}
    return [*pairwise(sorted(each for each in edges if each <= len(times)))]


def _middle(values: Array) -> Array:
    """Return the median of each session, NaN where too few peers are in it."""
    enough = np.isfinite(values).sum(1, keepdims=True) >= _FEWEST_OF_A_SPREAD
    return np.where(enough, _median(values, 1), np.nan)


def _median(values: Array, axis: int) -> Array:
    """Return the median along an axis, which is kept, ignoring NaN; NaN without any number."""
    number = np.isfinite(values).sum(axis, keepdims=True)
    ends = np.maximum((number - 1) // 2, 0), np.minimum(number // 2, values.shape[axis] - 1)
    low, high = (np.take_along_axis(np.sort(values, axis=axis), end, axis) for end in ends)
    return (low + high) / 2


# The design changes: speeds relative to a peer's own level. The likeliest counts.
_DESIGNS: Final = np.log([0.75, 0.5])[:, None]
# The median of two peers does not show which one is slow.
_FEWEST_PEERS: Final = 3
# The share of a slow peer's sessions that look healthy by chance, and of a healthy peer's that look
# slow. The second is learned from the other peers; the guess is worth `_PRIOR_CELLS` cells.
_HEALTHY_BY_CHANCE: Final = 0.10
_SLOW_BY_CHANCE: Final = 0.02
_PRIOR_CELLS: Final = 50
# The mean hours that other jobs keep a peer busy: a guess that is worth `_PRIOR_TIMES` such times.
_BUSY_HOURS: Final = 2.0
_PRIOR_TIMES: Final = 5
# The share of a slow peer's sessions without a speed, where the bytes on each explain everything.
_TELLS_NOTHING: Final = 0.5
_NORMAL_95: Final = 1.96
# A slow peer has recovered after this many healthy sessions in a row.
_RECOVERED: Final = 3
# A peer is gone if at least this many of the newest sessions miss it, and a random choice of peers
# would miss it as often with at most this probability.
_FEWEST_MISSED: Final = 3
_MISSED_BY_CHANCE: Final = 0.01
# The speed of a healthy peer comes from this many of its newest sessions, without the ones in which
# it was slow.
_NEWEST: Final = 20


def compare_peers(
    speeds: Speeds, thresholds: Array, accepted: Collection[str | None] = ()
) -> tuple[Peer, ...]:
    """Return the peers that were used, in the order of `speeds.peers`.

    `thresholds`, of shape (sessions,), are the evidence for an alert, in nats. `accepted` are the
    names of peers whose levels a person accepted.
    """
    seen, shows, daily = speeds.used, np.isfinite(speeds.values), ~speeds.pinned
    compared = np.flatnonzero(((seen.sum(1) >= _FEWEST_PEERS) & shows.any(1)) | speeds.pinned)
    not_used = _gone_before(daily, seen[daily].mean() if daily.any() else 0.0)
    share = shows[compared][daily[compared]].sum() / max(seen[daily].size, 1)
    not_compared = _gone_before(daily, share)
    values, times = speeds.values[compared], speeds.times[compared]
    sessions = Speeds(speeds.peers, times, values, seen[compared], speeds.pinned[compared])
    scan = _Scan(sessions, np.array([name in accepted for name in speeds.peers]))
    for begin, end in looks(times):
        scan.judge(begin, end, float(thresholds[compared[begin]]))
    found = []
    for place, name in enumerate(speeds.peers):
        used = np.flatnonzero(seen[:, place] & daily)
        if not len(used):
            continue
        is_slow = bool(scan.is_slow[place])
        onset, score = scan.found(place)
        shown = np.flatnonzero(np.isfinite(values[:, place]))
        onsets = scan.onsets[place] + [onset] * is_slow
        before = shown[np.maximum(np.searchsorted(shown, onsets) - 1, 0)]
        began = tuple(zip(*(map(moment, times[each]) for each in (before, onsets)), strict=True))
        over = np.flatnonzero(scan.ends[:, place])
        recovered = np.searchsorted(shown, over[-1]) + 1 - _RECOVERED if len(over) else 0
        recent = shown[shown >= onset] if is_slow else shown[recovered:][-_NEWEST:]
        if used[-1] < not_used:
            state = PeerState.UNUSED
        elif not len(shown) or compared[shown[-1]] < not_compared:
            state = PeerState.UNKNOWN
        elif is_slow:
            state = PeerState.SLOW
        else:
            state = PeerState.WATCH if score >= WATCH else PeerState.HEALTHY
        since_low, since = began[-1] if state is PeerState.SLOW else (None, None)
        alarms, ends = (map(moment, times[each[:, place]]) for each in (scan.alarms, scan.ends))
        ratio = _ratio(values[recent, place], scan.noise[recent, place])
        own = math.exp(scan.levels.own[place]) if scan.levels.shown[place] else None
        peer = Peer(
            name,
            state,
            runs=len(used),
            last=moment(speeds.times[used[-1]]),
            ratio=ratio,
            score=score,
            since=since,
            since_low=since_low,
            alarms=tuple(zip_longest(alarms, ends)),
            own=own,
            began=began,
        )
        found.append(peer)
    return tuple(found)


def comparisons_a_year(speeds: Sequence[Speeds], at: Times) -> Array:
    """Return the comparisons a year of all peers together, as known at each time of `at`."""
    found = np.zeros(len(at))
    for each in speeds:
        known = np.searchsorted(each.times, at, side="right")
        compared = np.concatenate(([0], np.isfinite(each.values).sum(1).cumsum()))[known]
        a_year = runs_a_year_at(each.times, at + np.timedelta64(1, "ns"))
        found += compared / np.maximum(known, 1) * a_year
    return found


def _gone_before(daily: NDArray[np.bool_], share: float) -> int:
    """Return the first session that counts: a peer that was last used before it is gone.

    A `daily` session, one that is not pinned, uses this `share` of all peers on average.
    """
    missed = _FEWEST_MISSED
    if 0 < share < 1:
        missed = max(missed, math.ceil(math.log(_MISSED_BY_CHANCE) / math.log1p(-share)))
    places = np.flatnonzero(daily)
    return int(places[-missed]) if len(places) >= missed else 0


class _Scan:
    """The evidence of each peer, session after session; arrays are of shape (sessions, peers)."""

    def __init__(self, speeds: Speeds, accepted: NDArray[np.bool_]) -> None:
        """Begin before the first session."""
        self._speeds = speeds
        self._hours = speeds.times.astype("datetime64[s]").astype(float) / 3600
        shape = speeds.values.shape
        self._shown = np.isfinite(speeds.values)
        self._counts = self._shown.copy()
        self._off, self._fixed = np.zeros((2, *shape))
        self._low = np.zeros((len(_DESIGNS), *shape), dtype=bool)
        self._evidence = np.zeros((len(_DESIGNS), shape[1]))
        self._onsets = np.full(self._evidence.shape, -1)
        self._newest = np.full(shape[1], -1)
        self._times_low, self._cells = np.zeros(self._evidence.shape, int), np.zeros(shape[1], int)
        self._healthy = np.zeros(shape[1], dtype=int)
        self._busy_hours, self._times_busy = _BUSY_HOURS * _PRIOR_TIMES, float(_PRIOR_TIMES)
        self.is_slow = np.zeros(shape[1], dtype=bool)
        self.noise = np.zeros(shape)
        nothing, none = np.zeros(shape[1]), np.zeros(shape[1], dtype=bool)
        self.levels = Levels(nothing, nothing, none, none, none, accepted)
        self.alarms, self.ends = np.zeros((2, *shape), dtype=bool)
        self.onsets: list[list[int]] = [[] for _ in speeds.peers]  # of the alarms that ended

    def judge(self, begin: int, end: int, threshold: float) -> None:
        """Judge the sessions from `begin` to before `end` by what is known at `begin`."""
        known, own = slice(begin), slice(begin, end)
        daily = self._counts[known] & ~self._speeds.pinned[known, None]
        self.levels = self.levels.learned(self._fixed[known], self._off[known], daily)
        values, pinned = self._speeds.values[own], self._speeds.pinned[own]
        off, favour, noise, fixed = self.levels.off(values, pinned)
        levels = _DESIGNS[:, :, None]
        near = np.maximum(off + favour, levels)  # much slower than a design is slow, too
        ratios = levels * (near - levels / 2) / noise**2
        chance = self._chance()
        self._off[own], self.noise[own], self._fixed[own] = off, noise, fixed
        self._low[:, own] = ratios > 0
        self._times_low += self._low[:, own].sum(1)
        self._cells += self._speeds.used[own].sum(0)
        gaps, was_low = self._before(begin, end)
        steps = self._steps(own, ratios, chance, np.where(was_low, gaps, math.inf))
        for session in range(begin, end):
            self._follow(session, steps[:, session - begin], threshold)
        lasts = self._counts[own] & was_low[0] & (gaps < DAY)
        is_low = self._low[0, own]
        self._busy_hours += float((gaps * np.where(is_low, 1.0, 0.5))[lasts].sum())
        self._times_busy += float((lasts & ~is_low).sum())

    def _chance(self) -> Array:
        """Return how often each peer looks slow by chance, as learned from the others."""
        low, cells = self._times_low, self._cells
        others = cells.sum() - cells
        prior = _SLOW_BY_CHANCE * _PRIOR_CELLS
        found = (low.sum(1, keepdims=True) - low + prior) / (others + _PRIOR_CELLS)
        return np.clip(found, _SLOW_BY_CHANCE, 0.5)[:, None, :]

    def _before(self, begin: int, end: int) -> tuple[Array, NDArray[np.bool_]]:
        """Return the hours since the previous speed of each peer, and whether that was low."""
        rows = np.where(self._shown[begin:end], np.arange(begin, end)[:, None], -1)
        before = np.maximum.accumulate(np.vstack((self._newest, rows)))
        before, self._newest = before[:-1], before[-1]
        gaps = np.where(before < 0, math.inf, self._hours[begin:end, None] - self._hours[before])
        was_low = np.take_along_axis(self._low, np.maximum(before, 0)[None], 1) & (before >= 0)
        return gaps, was_low

    def _steps(self, own: slice, ratios: Array, chance: Array, since_low: Array) -> Array:
        """Return the evidence of each session for each design.

        What keeps a healthy peer busy lasts for a while: soon after a session that looked slow,
        another one says little. A session without a speed for a peer that it used is weak evidence
        that the peer is healthy: if most sessions are like that, the slow ones are chance.
        """
        again = np.exp(-since_low * self._times_busy / self._busy_hours)
        most = np.minimum(chance + (1 - chance) * again, 1 - _HEALTHY_BY_CHANCE)
        least = np.log(_HEALTHY_BY_CHANCE / (1 - most))
        found = np.clip(ratios, least, np.log((1 - _HEALTHY_BY_CHANCE) / most))
        nothing = np.where(self._speeds.used[own], math.log(_TELLS_NOTHING), 0.0)
        return np.where(self._shown[own], found, nothing)

    def _follow(self, session: int, step: Array, threshold: float) -> None:
        """Raise and end alarms. A session without a speed neither ends nor prolongs one."""
        seen = self._shown[session]
        step = np.where(seen | ~self.is_slow, step, 0.0)
        begins = (self._evidence == 0) & (step > 0) & ~self.is_slow
        self._onsets = np.where(begins, session, self._onsets)
        self._evidence = np.maximum(self._evidence + step, 0.0)
        alarms = ~self.is_slow & (self._evidence.max(0) >= threshold)
        self.is_slow |= alarms
        self._counts[session] &= ~self.is_slow
        for peer in np.flatnonzero(alarms):
            self._counts[self.found(int(peer))[0] : session, peer] = False
        healthy = np.where((step < 0).all(0), self._healthy + 1, 0)
        self._healthy = np.where(seen, healthy, self._healthy)
        self.alarms[session] = alarms
        self.ends[session] = ends = self.is_slow & (self._healthy >= _RECOVERED)
        self.is_slow &= ~ends
        for peer in np.flatnonzero(ends):
            self.onsets[peer].append(self.found(int(peer))[0])
        self._evidence[:, ends] = 0.0

    def found(self, peer: int) -> tuple[int, float]:
        """Return the onset of the likeliest design, −1 for none, and the evidence for it."""
        design = int(self._evidence[:, peer].argmax())
        return int(self._onsets[design, peer]), float(self._evidence[design, peer])


def _ratio(values: Array, noise: Array) -> Ratio:
    """Return the median speed relative to the others, with a normal 95 % interval."""
    if not len(values):
        return Ratio(math.nan, 0.0, math.inf)
    middle = float(np.median(values))
    error = _NORMAL_95 * MEDIAN * float(np.median(noise)) / math.sqrt(len(values))
    return Ratio(math.exp(middle), math.exp(middle - error), math.exp(middle + error))
