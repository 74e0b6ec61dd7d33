"""Simulations of targets that are measured again: when a slow one is named, and false names.

Each day has a session at two o'clock and then, while targets are under suspicion, pinned runs of
them, each beside a healthy one. A target that is busy by chance stays busy for some time.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.alarms.figures import NEVER, Delays
from benchmarks.alarms.slow import Targets, session
from benchmarks.alarms.worlds import Array, Random
from iobands.judge.peer_scan import compare_peers, over_others
from iobands.judge.places import thresholds
from iobands.model import TARGET
from iobands.snapshot import Place, Speeds, moment

_EVERY: Final = 4
_A_DAY: Final = 5
_BUSY: Final = (0.4, 0.8)
_NOISE: Final = 0.05
_FIRST: Final = np.datetime64("2026-01-01T02:00", "ns")
_HOUR: Final = np.timedelta64(1, "h")
_LONGEST: Final = 240
_HISTORY: Final = 20
_DAY: Final = 24


class Asked:
    """Targets whose suspects are measured again; one is busy for `lasting` hours on average."""

    def __init__(self, place: Targets, busy: float, lasting: float, random: Random) -> None:
        """Begin without a session."""
        self._place, self._busy, self._lasting, self._random = place, busy, lasting, random
        self._healthy = np.exp(random.normal(0, place.spread, place.peers))
        self._until, self._left = np.zeros(place.peers), np.ones(place.peers)
        self._rows: list[Array] = []
        self._hours: list[float] = []
        self._pinned: list[bool] = []
        self.runs = 0

    def day(self, day: int, slow: int | None = None, factor: float = 1.0) -> Place:
        """Measure a day; return what is known after it."""
        random, peers = self._random, self._place.peers
        hour = float(day * _DAY)
        begins = (self._until <= hour) & (random.random(peers) < self._busy)
        self._until = np.where(begins, hour + random.exponential(self._lasting, peers), self._until)
        self._left = np.where(begins, random.uniform(*_BUSY, peers), self._left)
        used = self._place.used(random)
        row = session(random, "write", self._place, used, self._speeds(hour, slow, factor))
        known = self._add(row, hour, pinned=False)
        for _ in range(_A_DAY):
            hour += _EVERY
            asked = list(known.suspects())[:2]
            if not asked or not known.healthy():
                break
            both = [int(name) for name in (*asked, known.healthy()[0])]
            row = np.full(peers, np.nan)
            rates = np.log(self._speeds(hour, slow, factor)[both])
            row[both] = rates + random.normal(0, _NOISE, len(both))
            known = self._add(over_others(row[None])[0], hour, pinned=True)
            self.runs += len(both)
        return known

    def _speeds(self, hour: float, slow: int | None, factor: float) -> Array:
        found: Array = self._healthy * np.where(self._until > hour, self._left, 1.0)
        if slow is not None:
            found[slow] *= factor
        return found

    def _add(self, row: Array, hour: float, *, pinned: bool) -> Place:
        self._rows.append(row)
        self._hours.append(hour)
        self._pinned.append(pinned)
        values = np.array(self._rows)
        used: NDArray[np.bool_] = np.isfinite(values)
        times = _FIRST + np.array(self._hours).astype(int) * _HOUR
        names = tuple(map(str, range(self._place.peers)))
        speeds = Speeds(names, times, values, used, np.array(self._pinned))
        found = {"write_bw": compare_peers(speeds, thresholds(speeds, [speeds], 1.0))}
        return Place(TARGET, "", "work", "lustre", found, {"write_bw": speeds}, 0.0)


def hours_until_named(
    place: Targets, factor: float, busy: float, lasting: float, number: int, seed: int
) -> Delays:
    """Return the hours from the first session that uses a slow target to its alert."""
    random, found = np.random.default_rng(seed), []
    for _ in range(number):
        site, slow = Asked(place, busy, lasting, random), int(random.integers(place.peers))
        for day in range(_HISTORY):
            site.day(day)
        begin, raised = moment(_FIRST + _HISTORY * _DAY * _HOUR), []
        for day in range(_HISTORY, _HISTORY + _LONGEST // _DAY):
            peer = site.day(day, slow, factor).peers()[str(slow)]["write_bw"]
            raised = [on for on, _ in peer.alarms if on >= begin]
            if raised:
                break
        found.append((raised[0] - begin).total_seconds() / 3600 if raised else NEVER)
    return Delays(tuple(found), _LONGEST)


def false_names(place: Targets, busy: float, lasting: float, seed: int) -> tuple[int, int]:
    """Return how often a healthy target is named in the first year, and the pinned runs."""
    site = Asked(place, busy, lasting, np.random.default_rng(seed))
    for day in range(365):
        known = site.day(day)
    return sum(len(each.alarms) for each in known.found["write_bw"]), site.runs
