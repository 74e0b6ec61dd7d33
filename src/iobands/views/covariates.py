"""Covariates that changed when a series did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import numpy as np

from iobands.model.fields import CONTEXT, FIELD
from iobands.model.history import in_utc
from iobands.snapshot import Series, Snapshot
from iobands.views.format import figure
from iobands.views.related import BEFORE, NEXT

_LEAST_BEFORE: Final = 5
_USUAL: Final = (5, 95)  # percentiles
_FAR: Final = 2.0  # times as many files on the busiest target as in rotation
#: From such a difference in free space on, Lustre no longer places files in rotation.
WEIGHTED_PERCENT: Final = 17
_FEW_VALUES: Final = 0.5  # more different texts than this share of runs: it always changes


@dataclass(frozen=True)
class Covariates:
    """Sentences by column: texts that changed, numbers that moved, and the rest."""

    changed: dict[str, str] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    still: dict[str, str] = field(default_factory=dict)


def covariates(site: Snapshot, series: Series, since: datetime) -> Covariates:
    """Return how the next runs since a change differ from those before, beside their rate."""
    start = int(np.searchsorted(series.history.times, in_utc(since)))
    samples = site.samples_of(series)
    before, after = samples[max(0, start - BEFORE) : start], samples[start : start + NEXT]
    found = Covariates()
    for name in CONTEXT:
        earlier, later = (part[name].drop_nulls().to_list() for part in (before, after))
        if len(earlier) < _LEAST_BEFORE or not later:
            continue
        if FIELD[name].type == "text":
            is_other, text = _text_changed(earlier, later)
            (found.changed if is_other else found.still)[name] = text
        else:
            is_other, text = _number_moved(earlier, later)
            (found.moved if is_other else found.still)[name] = text
    if "busiest_target" in found.moved and (why := uneven(after.row(-1, named=True))):
        found.moved["busiest_target"] += f": {why}"
    return found


def uneven(sample: Mapping[str, Any]) -> str | None:
    """Return how far from rotation the files of a run lie, and why where free space says it."""
    busiest = sample.get("busiest_target")
    if busiest is None or busiest < _FAR:
        return None
    text = f"the busiest target has {figure(busiest)} × its files in rotation"
    spread, fullest = sample.get("free_spread_percent"), sample.get("fullest_target")
    if spread is None or spread < WEIGHTED_PERCENT or not fullest:
        return text
    full = f"{fullest} is {sample['fullest_target_percent']:.0f} % full"
    return f"{text}: {full}, and targets with more free space get more files"


def _number_moved(before: Sequence[float], after: Sequence[float]) -> tuple[bool, str]:
    """Tell whether the median since lies well outside the middle 90 % of before.

    Well is half of its width: a slow trend, such as a file system that fills up, is always somewhat
    outside.
    """
    low, high = (float(each) for each in np.percentile(before, _USUAL))
    margin = (high - low) / 2
    now, was = float(np.median(after)), float(np.median(before))
    span = f"({_text(low)} to {_text(high)})" if low < high else ""
    if low - margin <= now <= high + margin:
        return False, f"{_text(now)} {span}".rstrip()
    return True, f"{_text(was)} {span}".rstrip() + f" before, {_text(now)} since"


def _text(value: float) -> str:
    """Return a number; of a whole one, such as a stripe size, all digits."""
    return f"{value:.0f}" if value.is_integer() else figure(value)


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
