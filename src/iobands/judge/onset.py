"""Dates the onset of an alert, and finds the series that moved then and those that did not.

Time is counted in sessions, since all series of a session see the site in the same state.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.judge.fold import Happening
from iobands.snapshot import DOWN, Array, Series, in_utc, median_of, moment

_FEWEST: Final = 10
_LEVEL: Final = 50  # newest runs before the onset, which give the level
_EARLIER: Final = 5  # sessions by which the onset may precede the judge's earliest date
_NATS: Final = 3.0  # sessions that are less likely than the best one by more are left out
_CLIP: Final = 4.0  # nats that one run adds at most
_SHARED: Final = 0.3  # the share of the noise that all series of a session have in common
_LEAST_NOISE: Final = 0.01
_MAD_TO_SIGMA: Final = 1.4826


@dataclass(frozen=True)
class Runs:
    """The first `number` runs of a series: those known at some time.

    Levels are taken from session `begin` on: for a further fall, the session of the fall before.
    """

    series: Series
    number: int
    begin: int = 0

    @cached_property
    def sessions(self) -> NDArray[np.int_]:
        """The session of each run."""
        return self.series.history.sessions[: self.number]

    @cached_property
    def judged(self) -> tuple[NDArray[np.int_], Array]:
        """The sessions and the logarithms of the judged runs."""
        rows, sessions, logarithms = self.series.logarithms
        known = np.searchsorted(rows, self.number)
        return sessions[:known], logarithms[:known]

    def level(self, until: int) -> tuple[float, float] | None:
        """Return median and spread of the judged logarithms before a session; None if too few."""
        sessions, values = self.judged
        first, last = np.searchsorted(sessions, (self.begin, until))
        before = values[first:last][-_LEVEL:]
        if len(before) < _FEWEST:
            return None
        middle = median_of(before)
        spread = _MAD_TO_SIGMA * median_of(np.abs(before - middle))
        return middle, max(spread, _LEAST_NOISE)

    def time_of(self, session: int) -> datetime | None:
        """Return the time of the first run in `session` or later, or None."""
        place = int(np.searchsorted(self.sessions, session))
        return moment(self.series.history.times[place]) if place < self.number else None

    def session_at(self, when: datetime) -> int | None:
        """Return the session of the first run at `when` or later, or None."""
        place = int(np.searchsorted(self.series.history.times[: self.number], in_utc(when)))
        return int(self.sessions[place]) if place < self.number else None


@dataclass(frozen=True)
class Onset:
    """When an alert began, as known at `when`; `others` are other series of the same variables.

    It began in a session from `first` to `last`, most likely with the run at `since`. `drop` is the
    median change of its members' levels, as logarithms.
    """

    members: tuple[Runs, ...]
    others: tuple[Runs, ...]
    first: int
    last: int
    since: datetime
    when: datetime
    direction: str
    drop: float

    @cached_property
    def unmoved(self) -> tuple[Runs, ...]:
        """The others that did not move; cached, as only an alert with a possible cause needs it."""
        return tuple(filter(self.has_stayed, self.others))

    def has_stayed(self, runs: Runs) -> bool:
        """Return whether a series surely did not move at the onset."""
        return _stayed(runs, self.first, self.last, self.drop)

    @property
    def width(self) -> int:
        """The number of sessions in which a change coincides with the onset: up to one after it."""
        return self.last - self.first + 2


def onset_of(
    series: Sequence[Series],
    others: Sequence[Series],
    lead: Happening,
    when: datetime,
    after: datetime | None,
) -> Onset | None:
    """Return how an alert of `series` began, or None if unknown; `lead` is its first happening.

    For a further fall, `lead` is that fall, and levels are taken since the fall before, at `after`.
    The onset is the likeliest session by the runs of all members together. A series that joined
    the alert but did not move then is not a member of the onset, as a few join by chance.
    """
    members = [each for each in _until(series, when, after) if each.number]
    begin = min((s for r in members if (s := r.session_at(lead.low)) is not None), default=None)
    if begin is None:
        return None
    gains: defaultdict[int, float] = defaultdict(float)
    drops = []
    for each in members:
        level, (sessions, values) = each.level(begin), each.judged
        since = values[np.searchsorted(sessions, each.session_at(lead.since) or begin) :]
        drop = median_of(since) - level[0] if level and len(since) else 0.0
        if level is None or drop == 0 or (drop < 0) != (lead.direction == DOWN):
            continue
        drops.append(drop)
        near = slice(np.searchsorted(sessions, begin - _EARLIER), None)
        gain = drop * (values[near] - level[0] - drop / 2) / level[1] ** 2
        for session, one in zip(sessions[near].tolist(), gain.tolist(), strict=True):
            gains[session] += min(max(one, -_CLIP), _CLIP)
    if not gains:
        return None
    known = sorted(gains)
    total = np.cumsum([gains[each] for each in reversed(known)])[::-1]
    likely = np.flatnonzero(total >= total.max() - _NATS * max(1.0, _SHARED * len(drops)))
    first, last, best = (known[place] for place in (likely[0], likely[-1], int(total.argmax())))
    drop = median_of(drops)
    moved = [each for each in members if not _stayed(each, first, last, drop)]
    variables = {each.series.key.variable for each in moved}
    alike = _until([each for each in others if each.key.variable in variables], when, after)
    times = [time for each in moved if (time := each.time_of(best))]
    if not times:
        return None
    return Onset(
        tuple(moved),
        tuple(alike),
        first=first,
        last=last,
        since=min(times),
        when=when,
        direction=lead.direction,
        drop=drop,
    )


def _until(series: Sequence[Series], when: datetime, after: datetime | None) -> list[Runs]:
    end = in_utc(when)
    found = [Runs(s, int(np.searchsorted(s.history.times, end, side="right"))) for s in series]
    return [replace(r, begin=r.session_at(after) or r.begin) for r in found] if after else found


def _stayed(runs: Runs, first: int, last: int, drop: float) -> bool:
    """Return whether the level after `last` is surely nearer to the old one than to `drop`."""
    level, (sessions, values) = runs.level(first), runs.judged
    since = values[np.searchsorted(sessions, last, "right") :]
    if level is None or not len(since):
        return False
    middle, error = median_of(since) - level[0], level[1] / math.sqrt(len(since))
    return drop * (middle - drop / 2) < -(error**2)
