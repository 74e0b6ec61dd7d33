"""The chart of a simulated series, for simulations and for tests of the detector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from iobands.judge.detect import (
    LARGEST_BASELINE,
    LEAST,
    Baseline,
    Chart,
    Detector,
    Month,
    Prior,
    Quartiles,
    Settled,
    Spacing,
)
from iobands.judge.detect.prior import DEGRADED
from iobands.judge.detect.spacing import DAY


def follow(  # noqa: PLR0913 (each is a fact of its own)
    values: ArrayLike,
    band: Quartiles | None = None,
    *,
    history: ArrayLike = (),
    threshold: float = DEGRADED,
    least: float = LEAST,
    prior: Prior = Prior(),  # noqa: B008 (frozen)
    months: Sequence[Month] = (),
    spacing: Spacing | None = None,
    settled: Settled | None = None,
) -> Chart:
    """Return the chart of a series by its positive finite `values`, one a job, in order of time.

    `band` has published quartiles in the unit of the series, and a maximum if there is one. Of the
    `history`, earlier healthy values, the newest `LARGEST_BASELINE` are a baseline from the first
    run on. A change is found at the evidence `threshold`, in nats; `prior` is what all series of
    the file system say about one. From its first run on, each of `months` replaces both. `spacing`
    says when the runs were made, by default one a day. The rest is as for `Detector`.
    """
    logarithms, earlier = (np.log(np.asarray(each, dtype=float)) for each in (values, history))
    baseline = Baseline(earlier[-LARGEST_BASELINE:], band, prior.correlation)
    known = (Month(0, threshold, prior), *months)
    runs = len(logarithms)
    spacing = spacing or Spacing(DAY * np.arange(runs, dtype=float), np.zeros(runs, bool))
    return Detector(logarithms, spacing, baseline, known, least, settled).chart()
