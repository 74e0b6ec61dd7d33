"""Which other series moved at the same time as one, and which did not.

May know: surveys, and the size of changes; nothing of how it is worded.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from iobands.alerts.acts import CLOSE, NEW_NORMAL, Act, standing
from iobands.detection import DOWN, UP, Ratio
from iobands.status.following import Change, Following
from iobands.status.survey import Series, Survey

#: Runs that the ones since are held against, as many as a reference has.
BEFORE: Final = 200
#: Runs since: later ones may have moved for another reason.
NEXT: Final = 30
_LEAST_BEFORE: Final = 20
_LEAST_SINCE: Final = 3
_LEANS: Final = 0.97  # or its inverse: a level that differs by less has not moved
_NEAR: Final = timedelta(days=3)


@dataclass(frozen=True)
class Kin:
    """Another series of the same system, and what it shares with the one that is explained.

    `change` is its own alarm of that time. Where there is none, `leaning` is the level of its next
    `runs` runs over the one before, if these clearly differ: an alarm that may yet come. `act` is
    what a person did about a change of that time, which then is an alarm no longer.
    """

    series: Series
    shared: tuple[str, ...]
    change: Change | None
    leaning: Ratio | None = None
    runs: int = 0
    act: Act | None = None

    @property
    def direction(self) -> str | None:
        """Where it moved, None if it did not."""
        if self.change:
            return self.change.direction
        if self.act:
            return self.act.direction
        return None if self.leaning is None else DOWN if self.leaning.value < 1 else UP


def kin_of(survey: Survey, series: Series) -> list[Kin]:
    """Return the other series of its system, those first that share the most with `series`."""
    since = since_of(series.status.following)
    window = _window(series.status.following, since)
    found = []
    for other in survey.series:
        if other is series or other.key.system != series.key.system:
            continue
        change = _near(other, window) if window else None
        act = _act(other, window, survey.now) if window and not change else None
        leaning = None
        if since and not change and not act and not other.status.change:
            leaning = _leaning(other.status.following, since)
        ratio, runs = leaning or (None, 0)
        found.append(Kin(other, _shared(series, other), change, ratio, runs, act))
    return sorted(found, key=lambda each: -len(each.shared))


def since_of(following: Following | None) -> datetime | None:
    """Return when what is going on began, None if nothing is."""
    if following is None:
        return None
    known = following.open_change or following.suspicion
    return known.since if known else None


def _window(
    following: Following | None, since: datetime | None
) -> tuple[datetime, datetime] | None:
    if following is None or since is None:
        return None
    change = following.open_change
    low, high = (change.since_low, change.since_high) if change else (since, since)
    return low - _NEAR, high + _NEAR


def _near(other: Series, window: tuple[datetime, datetime]) -> Change | None:
    """Return the newest change of `other` that may have begun within `window`."""
    following = other.status.following
    changes = following.changes if following else ()
    for change in reversed(changes):
        if change.since_low <= window[1] and change.since_high >= window[0]:
            return change
    return None


def _act(other: Series, window: tuple[datetime, datetime], now: datetime) -> Act | None:
    """Return what was done last about a change of `other` that may have begun within `window`."""
    done = [
        act
        for act in standing(other.acts, now)
        if act.kind in {CLOSE, NEW_NORMAL} and act.direction
        if act.since and window[0] <= act.since <= window[1]
    ]
    return done[-1] if done else None


def _leaning(following: Following | None, since: datetime) -> tuple[Ratio, int] | None:
    """Return the level of the next runs over the one before, if its interval leaves no doubt."""
    from iobands.detection.change import level_ratio  # noqa: PLC0415 (as in following)

    if following is None:
        return None
    start = int(np.searchsorted(following.times, np.datetime64(since.replace(tzinfo=None), "ns")))
    logarithms = np.log(following.values)
    before, after = logarithms[max(0, start - BEFORE) : start], logarithms[start : start + NEXT]
    if len(before) < _LEAST_BEFORE or len(after) < _LEAST_SINCE:
        return None
    ratio = level_ratio(before, after)
    return (ratio, len(after)) if ratio.high < _LEANS or ratio.low > 1 / _LEANS else None


def _shared(one: Series, other: Series) -> tuple[str, ...]:
    pairs = (
        ("file system", one.key.file_system, other.key.file_system),
        ("pattern", one.key.pattern, other.key.pattern),
        ("direction", one.key.variable, other.key.variable),
        ("transport", one.key.transport, other.key.transport),
        ("environment", one.key.environ, other.key.environ),
        ("partition", one.key.partition, other.key.partition),
    )
    return tuple(name for name, mine, its in pairs if mine == its and mine is not None)
