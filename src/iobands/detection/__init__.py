"""Detection: whether the level of a series has changed, how sure that is, and since when.

Numbers and times only: no files, no words. `follow` judges plain values, `detect` the samples of
a series, `threshold_for` and `power` say what a threshold costs and what it sees.
"""

from __future__ import annotations

from iobands.detection.baseline import FIRST_BASELINE, FULL_BASELINE, LARGEST_BASELINE, Baseline
from iobands.detection.change_point import ChangePoint
from iobands.detection.chart import Chart
from iobands.detection.detector import DEGRADED, LEAST, WATCH, follow
from iobands.detection.threshold import power, runs_between_false_alarms, threshold_for
from iobands.snapshot.change import ADOPTED, DOWN, RECOVERED, UP, Ratio

__all__ = [
    "ADOPTED",
    "DEGRADED",
    "DOWN",
    "FIRST_BASELINE",
    "FULL_BASELINE",
    "LARGEST_BASELINE",
    "LEAST",
    "RECOVERED",
    "UP",
    "WATCH",
    "Baseline",
    "ChangePoint",
    "Chart",
    "Ratio",
    "follow",
    "power",
    "runs_between_false_alarms",
    "threshold_for",
]
