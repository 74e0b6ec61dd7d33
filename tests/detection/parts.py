"""Parts of a pool from a table of values."""

from __future__ import annotations

import numpy as np

from iobands.detection import Chart, Part, follow


def charts(values: np.ndarray, limit: float = 8.0) -> list[Chart]:
    """Return the chart of each column of `values`, of shape (sessions, series), NaN for no run."""
    return [follow(column[~np.isnan(column)], limit=limit) for column in values.T]


def parts(values: np.ndarray, limit: float = 8.0) -> list[Part]:
    """Return what each column brings into a pool."""
    return [
        Part.of(chart, np.flatnonzero(~np.isnan(column)))
        for chart, column in zip(charts(values, limit), values.T, strict=True)
    ]
