"""The chart of one series: what it knows after its runs, its alarms, and its beginning.

A chart is a value: `begin` makes one, and `drawing` returns it with further runs. May know:
numpy, and its neighbours for scores, correlation and the size of changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iobands.detection.alarm import DOWN, Alarm, Found, told
from iobands.detection.change import Ratio, level_ratio, onset_interval
from iobands.detection.correlation import inflation, scale_for, serial_correlation
from iobands.detection.scores import (
    DESIGNS,
    Array,
    Quartiles,
    Scores,
    band_cells,
    band_sample,
    blended,
    history_cells,
    logarithms,
)
from iobands.detection.settling import Levels, is_surely_small
from iobands.detection.sums import SIDES

#: From how many own runs they are a reference, and from how many on they are the only one.
FIRST_REFERENCE: Final = 20
FULL_REFERENCE: Final = 60
#: A reference grows to so many runs and is frozen then: a slow decline must not become normal.
LARGEST_REFERENCE: Final = 200
#: How many later runs must have been quiet before a run joins the reference.
LAG: Final = 30

#: The limits, in nats, unless told otherwise; see `limits`.
WATCH: Final = 5.7
DEGRADED: Final = 9.0
#: The evidence for recovery at which an alarm is closed.
RECOVERY: Final = 8.0
#: A level matters that is off by this share of the one before, unless told otherwise.
LEAST: Final = 0.05


@dataclass(frozen=True)
class Learnt:
    """What a chart judges by: a reference, a band, and what follows from them when it is needed."""

    reference: Array
    band: Quartiles | None

    @property
    def can_judge(self) -> bool:
        """Whether there is a band or enough history for scores."""
        return self.band is not None or len(self.reference) >= FIRST_REFERENCE

    @cached_property
    def correlation(self) -> float:
        """The serial correlation of the reference; 0 while it is too short."""
        enough = len(self.reference) >= FIRST_REFERENCE
        return serial_correlation(self.reference) if enough else 0.0

    @cached_property
    def scores(self) -> Scores | None:
        """What gives a run its scores, or None where there is neither a band nor a history."""
        size = len(self.reference)
        published = band_cells(self.band) if self.band is not None else None
        if size < FIRST_REFERENCE:
            return published
        # the mean of n such runs varies like that of so many independent ones
        own = history_cells(self.reference, size / inflation(self.correlation) ** 2)
        if published is None or size >= FULL_REFERENCE:
            return own
        share = (size - FIRST_REFERENCE) / (FULL_REFERENCE - FIRST_REFERENCE)
        return blended(own, published, share)


@dataclass(frozen=True)
class Chart:
    """The state of a chart after `runs` runs. Make one by `begin`, `extend` or `follow`.

    Of shape (runs,): `down` and `up`, the evidence after each run for a drop and for a rise, in
    nats (0 while nothing can be said, and while an alarm is open that of the alarm's direction
    goes on growing). Of shape (runs, designs): `increments`, what each run added for each of
    `scores.DESIGNS`; pooled charts are made of them. `learnt` is what further runs are judged by.

    A change by less than `least` is no alarm. It is kept in `settled`, and `levels` has for the
    runs from one on what their logarithms are less by before they are held against the reference.
    """

    learnt: Learnt
    limit: float
    watch: float
    least: float
    logarithms: Array
    increments: NDArray[np.float32]
    down: Array
    up: Array
    sums: Array
    starts: NDArray[np.int_]
    usable: NDArray[np.bool_]
    joined: int
    open: Found | None
    recovery: Array
    recovery_start: int
    ended: tuple[Alarm, ...] = ()
    settled: tuple[Alarm, ...] = ()
    levels: Levels = ()

    @property
    def band(self) -> Quartiles | None:
        """The published quartiles, as long as they hold."""
        return self.learnt.band

    @property
    def reference(self) -> Array:
        """The logarithms of the reference, in the order of time."""
        return self.learnt.reference

    @property
    def correlation(self) -> float:
        """The serial correlation of the reference."""
        return self.learnt.correlation

    @property
    def scores(self) -> Scores | None:
        """What gives a run its scores, or None where there is neither a band nor a history."""
        return self.learnt.scores

    @property
    def scale(self) -> float:
        """What every score is divided by for the serial correlation of the series."""
        return scale_for(self.correlation, self.limit, WATCH)

    @property
    def runs(self) -> int:
        """How many runs the chart has seen."""
        return len(self.logarithms)

    @property
    def evidence(self) -> float:
        """The larger evidence after the last run, in nats; 0 before the first."""
        return max(float(self.down[-1]), float(self.up[-1])) if self.runs else 0.0

    @property
    def can_judge(self) -> bool:
        """Whether there is a band or enough history for evidence."""
        return self.learnt.can_judge

    def level(self) -> Array:
        """Return logarithms that are spread like healthy values, of shape (n,); maybe empty."""
        if len(self.reference) < FIRST_REFERENCE and self.band is not None:
            return band_sample(self.band)
        return self.reference

    @property
    def shift(self) -> float:
        """What the logarithm of the next run is less by before it is held against the reference."""
        return self.levels[-1][1] if self.levels else 0.0

    @cached_property
    def suspicion(self) -> tuple[int, Ratio] | None:
        """Since which run a drop is suspected, and how large it is; None where none is.

        It is where the evidence for a drop is over the watch limit, no alarm is open yet, and the
        level of the runs that speak for it matters.
        """
        if self.open is not None or self.runs == 0 or float(self.down[-1]) < self.watch:
            return None
        design = int(np.argmax(self.sums[SIDES[DOWN]]))
        start = min(int(self.starts[design]), self.runs - 1)
        speaking = self.increments[start:, design].astype(float)
        onset = start + onset_interval(speaking, self.runs - 1 - start)[0]
        ratio = level_ratio(self.level(), self.logarithms[onset:])
        return None if is_surely_small(ratio, self.least) else (onset, ratio)

    @property
    def is_watched(self) -> bool:
        """Whether a drop is suspected, and no alarm is open yet."""
        return self.suspicion is not None

    @cached_property
    def open_alarm(self) -> Alarm | None:
        """The alarm that is open, or None."""
        if self.open is None:
            return None
        return told(self.open, self.earlier, self.logarithms, self.increments)

    @property
    def earlier(self) -> tuple[Alarm, ...]:
        """All changes that are over, those among them that were too small for an alarm."""
        return (*self.ended, *self.settled)

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """All alarms in the order in which they were raised; the last may be open."""
        return (*self.ended, self.open_alarm) if self.open_alarm else self.ended


def begin(
    band: Quartiles | None = None,
    *,
    history: ArrayLike = (),
    limit: float = DEGRADED,
    watch: float = WATCH,
    least: float = LEAST,
) -> Chart:
    """Return a chart that has seen no run.

    Args:
        band: published quartiles, in the unit of the series.
        history: earlier values that are known to be healthy, in the order of time; a reference
            from the first run on. The newest `LARGEST_REFERENCE` are used.
        limit: the evidence, in nats, at which an alarm is raised (`limits.limit_for`).
        watch: the evidence at which the reference stops growing.
        least: by which share the level must be off the reference for an alarm.

    Raises:
        ValueError: a value of `history` or a quartile is not a positive finite number, the
            quartiles are out of order, a limit is not positive, or `least` not from 0 to below 1.
    """
    if not (limit > 0 and watch > 0):
        raise ValueError(f"limits are positive: limit {limit}, watch {watch}")
    if not 0 <= least < 1:
        raise ValueError(f"the least change is a share from 0 to below 1, not {least}")
    empty = np.empty(0)
    learnt = Learnt(logarithms_of(history)[-LARGEST_REFERENCE:], band)
    if band is not None:
        band_cells(band)  # which says now what is wrong with it
    return Chart(
        learnt=learnt,
        limit=float(limit),
        watch=float(watch),
        least=float(least),
        logarithms=empty,
        increments=np.empty((0, len(DESIGNS)), dtype=np.float32),
        down=empty,
        up=empty,
        sums=np.zeros(len(DESIGNS)),
        starts=np.zeros(len(DESIGNS), dtype=int),
        usable=np.empty(0, dtype=bool),
        joined=0,
        open=None,
        recovery=np.zeros(1),
        recovery_start=0,
    )


def logarithms_of(values: ArrayLike) -> Array:
    """Return the logarithms of `values`, of shape (n,).

    Raises:
        ValueError: one of them is not a positive finite number.
    """
    numbers = np.atleast_1d(np.asarray(values, dtype=float))
    if numbers.ndim != 1:
        raise ValueError(f"the values of one series have one dimension, not {numbers.ndim}")
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers > 0)))
    if wrong.size:
        raise ValueError(f"value {wrong[0]} is {numbers[wrong[0]]}: not a positive finite number")
    return logarithms(numbers)
