"""The chart of one series: evidence run by run, and the lasting changes found in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from iobands.detection.baseline import Baseline
from iobands.detection.change_point import ChangePoint, level_ratio, onset_interval
from iobands.detection.cusum import SIDES
from iobands.detection.scores import Array
from iobands.snapshot.change import DOWN, Ratio


@dataclass(frozen=True)
class Chart:
    """What the detector found in all runs of a series; made by `detector.follow`.

    Of shape (runs,): `logarithms` of the values, `down` and `up`, the evidence after each run for
    a drop and for a rise, in nats. Of shape (runs, designs): `increments`, what each run added
    to the evidence of each design. `sums` and `starts`, of shape (designs,), are the evidence
    after the last run and the run at which it began. `baseline` judges the next run, `changes`
    are in the order of time and the last of them may be open. A change smaller than `least`, a
    share of the level, does not count.
    """

    baseline: Baseline
    threshold: float
    watch: float
    least: float
    logarithms: Array
    increments: NDArray[np.float32]
    down: Array
    up: Array
    sums: Array
    starts: NDArray[np.int_]
    changes: tuple[ChangePoint, ...]
    scale: float

    @property
    def runs(self) -> int:
        """The number of runs."""
        return len(self.logarithms)

    @property
    def evidence(self) -> float:
        """The larger evidence after the last run, in nats; 0 before the first."""
        return max(float(self.down[-1]), float(self.up[-1])) if self.runs else 0.0

    @property
    def can_judge(self) -> bool:
        """Whether there is a band or enough history for evidence."""
        return self.baseline.can_judge

    @property
    def open_change(self) -> ChangePoint | None:
        """The change that lasts, or None."""
        return self.changes[-1] if self.changes and self.changes[-1].is_open else None

    @cached_property
    def suspicion(self) -> tuple[int, Ratio] | None:
        """The first run and the size of a suspected drop, or None.

        A drop is suspected while its evidence is over `watch`, no change is open, and the level
        of the runs that speak for it is off by `least`.
        """
        if self.open_change is not None or self.runs == 0 or float(self.down[-1]) < self.watch:
            return None
        design = int(np.argmax(self.sums[SIDES[DOWN]]))
        start = min(int(self.starts[design]), self.runs - 1)
        speaking = self.increments[start:, design].astype(float)
        onset = start + onset_interval(speaking, self.runs - 1 - start)[0]
        ratio = level_ratio(self.baseline.level(), self.logarithms[onset:])
        return None if ratio.is_small(self.least) else (onset, ratio)
