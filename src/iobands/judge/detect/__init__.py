"""The change detector: from the numbers of a series to scores, evidence and change points.

It works on arrays alone, and knows no sites, bands files or checks.
"""

from __future__ import annotations

from iobands.judge.detect.baseline import (
    FIRST_BASELINE,
    FULL_BASELINE,
    LARGEST_BASELINE,
    MOST_CORRELATION,
    WATCH,
    Baseline,
    correlation_of,
    interval,
    scale_for,
    serial_correlation,
)
from iobands.judge.detect.chart import SIDES, USED, Chart, Settled, deep_scores, doubtful
from iobands.judge.detect.detector import LEAST, Detector
from iobands.judge.detect.prior import (
    FAR_DOWN,
    LOW,
    Budget,
    Measured,
    Month,
    Months,
    Prior,
    months_of,
    priors_of,
)
from iobands.judge.detect.scores import Array, Quartiles
from iobands.judge.detect.spacing import DAY, FADES, NEW, Spacing
