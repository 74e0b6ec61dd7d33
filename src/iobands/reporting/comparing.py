"""Comparing series that differ in one field, such as the transport, by their histories.

What cannot be measured in one job (each transport is an environment of its own) is compared by
samples that were measured near each other. May know: samples, series and ratios.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import numpy as np
import pandas as pd

from iobands.reporting.ratios import Ratio, paired_ratio
from iobands.series import ALL_TARGETS, SeriesKey, labels, split
from iobands.status.following import utc
from iobands.vocabulary import RATIO_UNIT

#: The fields that can be compared, and those that follow from each.
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "transport": ("environ",),
    "environ": ("transport",),
    "file_system": (),
    "stripe_count_asked": (),
    "hints": (),
    "pattern": ("interface",),
    "interface": (),
    "tasks": ("nodes", "gib"),
    "tool": (),
}

#: What a line says of a field that is compared, where it must say something.
_ANY: Final = "*"


@dataclass(frozen=True)
class Comparison:
    """The ratio of the values of `key` to those of `against`, which differs from it in one field.

    `ratio` is None where no samples of the two were measured near each other.
    """

    key: SeriesKey
    against: SeriesKey
    ratio: Ratio | None


def compare(
    samples: pd.DataFrame, field: str, *, against: str | None = None, within: timedelta
) -> Iterator[Comparison]:
    """Yield each series held against one that differs from it in `field` and what follows from it.

    The one is that with the value `against`, or with the first value in order. Samples make a
    pair when they are at most `within` apart, each in one pair.
    """
    alike: defaultdict[SeriesKey, list[tuple[SeriesKey, pd.DataFrame]]] = defaultdict(list)
    for key, rows in split(samples):
        if key.unit == RATIO_UNIT:
            continue
        free = dict.fromkeys((field, *FIELDS[field]))
        alike[replace(key, **free)].append((key, rows))
    for common in sorted(alike, key=SeriesKey.sort_key):
        group = sorted(alike[common], key=lambda item: _order(item[0], field))
        chosen = [item for item in group if against in {None, _value(item[0], field)}]
        if not chosen:
            continue
        base, base_rows = chosen[0]
        for key, rows in group:
            if getattr(key, field) != getattr(base, field):
                pairs = _pairs(rows, base_rows, within)
                yield Comparison(key, base, paired_ratio(pairs) if pairs else None)


def _pairs(
    rows: pd.DataFrame, others: pd.DataFrame, within: timedelta
) -> list[tuple[float, float]]:
    """Return the values of samples that are nearest each other in time, each in one pair."""
    times, other_times = utc(rows), utc(others)
    if not len(times) or not len(other_times):
        return []
    # the nearest of the others, one of the two around each place in their order
    after = np.searchsorted(other_times, times).clip(1, max(1, len(other_times) - 1))
    candidates = np.stack([after - 1, np.minimum(after, len(other_times) - 1)])
    distances = np.abs(other_times[candidates] - times)
    nearest = candidates[distances.argmin(axis=0), np.arange(len(times))]
    distance = distances.min(axis=0)
    values, other_values = rows["perf_value"].to_numpy(), others["perf_value"].to_numpy()
    taken: set[int] = set()
    pairs: list[tuple[float, float]] = []
    for at in np.argsort(distance, kind="stable"):
        if distance[at] > np.timedelta64(within) or int(nearest[at]) in taken:
            continue
        taken.add(int(nearest[at]))
        pairs.append((float(values[at]), float(other_values[nearest[at]])))
    return pairs


def _value(key: SeriesKey, field: str) -> str:
    value = getattr(key, field)
    if field == "stripe_count_asked" and value == ALL_TARGETS:
        return "all"
    if value is None:
        return "null"
    return f"{value:g}" if isinstance(value, float | int) else str(value)


def _order(key: SeriesKey, field: str) -> tuple[int, float, str]:
    value, text = getattr(key, field), _value(key, field)
    number = isinstance(value, float | int) and text != "all"
    return (0, float(value), "") if number else (1, 0.0, text)


def told(comparisons: Sequence[Comparison], field: str) -> list[str]:
    """Return the comparisons as lines of text, with what tells one from another."""
    free = dict.fromkeys(FIELDS[field])
    # What is compared is any; system and partition are always told, and first.
    alike = {
        each.key: replace(each.key, system="", partition="", **free, **{field: _ANY})
        for each in comparisons
    }
    names = labels(alike.values())
    lines = []
    for each in comparisons:
        case, name = each.key.case, names[alike[each.key]]
        if case and case not in name:
            name = f"{name} of {case}"
        one, other = (_shown(key, field) for key in (each.key, each.against))
        where = f"{each.key.system} {each.key.partition} {name}"
        lines.append(f"{where}: {one} / {other}: {_ratio(each.ratio)}")
    return lines


def _shown(key: SeriesKey, field: str) -> str:
    text = _value(key, field)
    # several environments may have one transport
    return f"{text} ({key.environ})" if field == "transport" else text


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return "never measured near each other"
    pairs = f"{ratio.pairs} pair" + ("s" if ratio.pairs != 1 else "")
    if ratio.lower is None or ratio.upper is None:
        return f"{ratio.median:.3g} from {pairs}, too few for an interval"
    note = "" if ratio.differs else ", no difference shown"
    interval = f"{ratio.lower:.3g} to {ratio.upper:.3g} ({ratio.confidence:.1%})"
    return f"{ratio.median:.3g}, {interval}, from {pairs}{note}"
