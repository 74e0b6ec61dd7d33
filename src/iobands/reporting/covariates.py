"""What else changed when a series did: what a run records beside its rate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import numpy as np

from iobands.detection.series import in_utc
from iobands.model.fields import CONTEXT
from iobands.reporting.format import figure
from iobands.reporting.related import BEFORE, NEXT
from iobands.status.series import Series

_LEAST_BEFORE: Final = 5
_USUAL: Final = (5, 95)  # percentiles
_FEW_VALUES: Final = 0.5  # more different texts than this share of runs: it always changes


@dataclass(frozen=True)
class Covariates:
    """By column: what is to be said of texts that changed, numbers that moved, and the rest."""

    changed: dict[str, str] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    still: dict[str, str] = field(default_factory=dict)


def covariates(series: Series, since: datetime) -> Covariates:
    """Return how the columns of the next runs since a change differ from those before."""
    start = int(np.searchsorted(series.history.times, in_utc(since)))
    first = max(0, start - BEFORE)
    found = Covariates()
    runs = series.samples.select(CONTEXT)[first : start + NEXT]
    for name, column in runs.to_dict(as_series=False).items():
        before = [cell for cell in column[: start - first] if cell is not None]
        after = [cell for cell in column[start - first :] if cell is not None]
        if len(before) < _LEAST_BEFORE or not after:
            continue
        if all(_is_number(cell) for cell in before + after):
            moved, text = _number_moved(before, after)
            (found.moved if moved else found.still)[name] = text
        else:
            moved, text = _text_changed(before, after)
            (found.changed if moved else found.still)[name] = text
    return found


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _number_moved(before: Sequence[object], after: Sequence[object]) -> tuple[bool, str]:
    """Tell whether the median since lies well outside the middle 90 % of before.

    By half of their width: what creeps, as a file system that fills up, is always somewhat beyond.
    """
    earlier = np.array(before, dtype=float)
    low, high = (float(each) for each in np.percentile(earlier, _USUAL))
    margin = (high - low) / 2
    now, was = float(np.median(np.array(after, dtype=float))), float(np.median(earlier))
    span = f"({figure(low)} to {figure(high)})" if low < high else ""
    if low - margin <= now <= high + margin:
        return False, f"{figure(now)} {span}".rstrip()
    return True, f"{figure(was)} {span}".rstrip() + f" before, {figure(now)} since"


def _text_changed(before: Sequence[object], after: Sequence[object]) -> tuple[bool, str]:
    """Tell whether half of the runs since have what no run before had."""
    earlier, later = Counter(map(str, before)), Counter(map(str, after))
    usual, newest = earlier.most_common(1)[0][0], later.most_common(1)[0][0]
    if len(earlier) > max(1, earlier.total() * _FEW_VALUES):
        return False, "differs from run to run"
    new = sum(count for value, count in later.items() if value not in earlier)
    if 2 * new >= later.total():
        return True, f"{usual} before, {newest} since"
    return False, newest
