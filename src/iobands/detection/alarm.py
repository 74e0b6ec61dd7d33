"""An alarm of a chart: what it keeps while it is open, and what is told of it.

May know: numpy, and its neighbours for scores and the size of changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.detection.change import Ratio, level_ratio, onset_interval
from iobands.detection.scores import DESIGNS, DROPS, Array

DOWN: Final = "down"
UP: Final = "up"
#: Why an alarm ended.
RECOVERED: Final = "recovered"
NEW_NORMAL: Final = "new normal"
SETTLED: Final = "settled"

# How far back from the last zero an onset is looked for, and how far on from the alarm.
_BEFORE_ONSET: Final = 60
_AFTER_ALARM: Final = 30


@dataclass(frozen=True)
class Alarm:
    """A lasting change, as far as it is known; runs are counted from 0, as `follow` got them.

    `raised` is the run at which the evidence `score` passed `limit`, both in nats. The change
    began with run `onset`, most likely between `onset_low` and `onset_high`. `ratio` is the level
    since over the level before. `ended` is the first run that was no longer part of it, or None
    while the alarm is open, `closed` the run at which that was known, and `end` tells why it
    ended: `RECOVERED` or `NEW_NORMAL`; a change that was too small to matter `SETTLED`, and is no
    alarm. `design` is the factor that fitted best.
    """

    direction: str
    raised: int
    onset: int
    onset_low: int
    onset_high: int
    ratio: Ratio
    score: float
    limit: float
    design: float
    ended: int | None
    closed: int | None
    end: str | None

    @property
    def is_open(self) -> bool:
        """Whether the change lasts."""
        return self.ended is None


@dataclass(frozen=True)
class Found:
    """An alarm that is open, as the chart keeps it; `told` adds its onset and its size.

    `crept` is the first run of those by which it was raised, where a level crept away in steps
    that were each too small to matter; else None.
    """

    design: int
    raised: int
    start: int
    score: float
    limit: float
    before: Array
    inflation: float
    crept: int | None = None


def told(
    found: Found,
    earlier: Sequence[Alarm],
    logarithms: Array,
    increments: NDArray[np.float32],
    ended: int | None = None,
    closed: int | None = None,
    end: str | None = None,
) -> Alarm:
    """Return an alarm with its onset and its size, from all runs so far and `earlier` alarms.

    Of an alarm that has `ended` nothing of this will change with further runs.
    """
    stop = min(len(logarithms), found.raised + 1 + _AFTER_ALARM)
    if ended is not None:
        stop = max(found.raised + 1, min(stop, ended))
    first = max(0, found.start - _BEFORE_ONSET)
    first = max([first, *(other.ended for other in earlier if other.ended is not None)])
    # runs that the reference was learnt from were never judged, and have no increments
    unjudged = np.flatnonzero(~increments[first : found.start].any(axis=1))
    first += int(unjudged[-1]) + 1 if unjudged.size else 0
    speaking = increments[first:stop, found.design].astype(float)
    onset, low, high = (first + i for i in onset_interval(speaking, found.raised - first))
    if found.crept is not None:
        onset, low, high = found.crept, found.start, found.raised
    return Alarm(
        direction=DOWN if found.design < len(DROPS) else UP,
        raised=found.raised,
        onset=onset,
        onset_low=low,
        onset_high=high,
        ratio=level_ratio(found.before, logarithms[onset:ended], found.inflation),
        score=found.score,
        limit=found.limit,
        design=DESIGNS[found.design],
        ended=ended,
        closed=closed,
        end=end,
    )
