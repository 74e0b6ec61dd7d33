"""What else changed when a series did: figures and facts that a run records beside its rate.

May know: the columns of samples and how figures are written; nothing of a particular view.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Final

import numpy as np
import pandas as pd

from iobands.reporting.format import figure
from iobands.reporting.related import BEFORE, NEXT
from iobands.status.following import in_utc, utc

#: Figures that a run records beside its rate, and what they are called.
_FIGURES: Final = {
    "fullness_percent": "fullness in %",
    "targets_active": "active targets",
    "targets_inactive": "inactive targets",
    "load_per_node": "load a node",
    "other_jobs": "other jobs",
    "client_written_gib": "GiB that clients wrote",
    "client_read_gib": "GiB that clients read",
}
#: What a run says of how and where it ran.
_FACTS: Final = {
    "job_nodelist": "node list",
    "tool_version": "version of the tool",
    "suite_version": "version of the suite",
    "version": "version of ReFrame",
    "medium": "medium",
    "file_system_type": "type of the file system",
    "stripe_count": "stripe count",
    "stripe_size": "stripe size",
    "transport_in_effect": "transport in effect",
    "hints_in_effect": "hints in effect",
    "fsync": "fsync",
    "cache": "cache",
}
_LEAST_BEFORE: Final = 5
_USUAL: Final = (5, 95)  # percentiles
_FEW_VALUES: Final = 0.5  # more different values than this share of runs: it changes by itself


def covariates(samples: pd.DataFrame, since: datetime) -> tuple[list[str], list[str], list[str]]:
    """Return what is to be said of facts that changed, of figures that moved, and of the rest."""
    start = int(np.searchsorted(utc(samples), in_utc(since)))
    before = samples.iloc[max(0, start - BEFORE) : start]
    after = samples.iloc[start : start + NEXT]
    changed: list[str] = []
    moved: list[str] = []
    still: list[str] = []
    for column, name in _FIGURES.items():
        if column in samples:
            _tell(_figure_moved(before[column], after[column]), name, moved, still)
    for column, name in _FACTS.items():
        if column in samples:
            _tell(_fact_moved(before[column], after[column]), name, changed, still)
    return changed, moved, still


def _tell(found: tuple[bool, str] | None, name: str, moved: list[str], still: list[str]) -> None:
    if found:
        (moved if found[0] else still).append(f"{name}: {found[1]}")


def _figure_moved(before: pd.Series, after: pd.Series) -> tuple[bool, str] | None:
    """Tell whether the median since lies well outside the middle 90 % of before.

    By half of their width: what creeps, as a file system that fills up, is always somewhat beyond.
    """
    earlier = before.dropna().to_numpy(dtype=float)
    later = after.dropna().to_numpy(dtype=float)
    if len(earlier) < _LEAST_BEFORE or not len(later):
        return None
    low, high = (float(each) for each in np.percentile(earlier, _USUAL))
    margin = (high - low) / 2
    now = float(np.median(later))
    was = float(np.median(earlier))
    if low <= now <= high:
        return False, f"{figure(now)}, as before ({figure(low)} to {figure(high)})"
    if low - margin <= now <= high + margin:
        return False, f"{figure(now)}, about as before ({figure(low)} to {figure(high)})"
    return True, f"{figure(was)} before ({figure(low)} to {figure(high)}), {figure(now)} since"


def _fact_moved(before: pd.Series, after: pd.Series) -> tuple[bool, str] | None:
    """Tell whether half of the runs since have what no run before had."""
    earlier = Counter(map(str, before.dropna()))
    later = Counter(map(str, after.dropna()))
    if earlier.total() < _LEAST_BEFORE or not later:
        return None
    usual, newest = earlier.most_common(1)[0][0], later.most_common(1)[0][0]
    if len(earlier) > max(1, earlier.total() * _FEW_VALUES):
        return False, f"differs from run to run, now mostly {newest}"
    new = sum(count for value, count in later.items() if value not in earlier)
    if 2 * new >= later.total():
        return True, f"{usual} before, {newest} since"
    return False, newest
