"""Series that differ in one field, such as the transport, compared by their histories.

One job cannot measure both sides (each transport is an environment of its own), so samples that
are close in time make pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iobands.model.fields import RATIO_UNIT
from iobands.model.history import History
from iobands.model.ratios import paired_ratio
from iobands.model.series import SeriesKey
from iobands.snapshot import COMPARABLE, Comparison, value_of

_WITHIN: Final = np.timedelta64(1, "D")


def compare(
    samples: Mapping[SeriesKey, History], field: str, *, against: str | None = None
) -> Iterator[Comparison]:
    """Yield each series beside one that differs from it in `field` and what follows from it.

    That is the one with the value `against`, or with the first value in order.
    """
    alike: defaultdict[SeriesKey, list[SeriesKey]] = defaultdict(list)
    free: dict[str, Any] = dict.fromkeys((field, *COMPARABLE[field]))
    for key in samples:
        if key.unit != RATIO_UNIT:
            alike[replace(key, **free)].append(key)
    for common in sorted(alike, key=SeriesKey.sort_key):
        group = sorted(alike[common], key=lambda key: _order(key, field))
        base = next((key for key in group if against in {None, value_of(key, field)}), None)
        if base is None:
            continue
        for key in group:
            if getattr(key, field) != getattr(base, field):
                mine, theirs = paired(samples[key], samples[base])
                values = samples[key].values[mine], samples[base].values[theirs]
                pairs = list(zip(*(each.tolist() for each in values), strict=True))
                yield Comparison(key, base, paired_ratio(pairs) if pairs else None)


def paired(one: History, other: History) -> NDArray[np.int_]:
    """Return the places of samples that are nearest each other in time, each in one pair.

    Those of a pair are at most a day apart.

    The shape is (2, pairs): places in `one` and in `other`, in the order of time of `one`.
    """
    if not len(one) or not len(other):
        return np.empty((2, 0), dtype=int)
    # the nearest of the others, one of the two around each place in their order
    after = np.searchsorted(other.times, one.times).clip(1, max(1, len(other) - 1))
    candidates = np.stack([after - 1, np.minimum(after, len(other) - 1)])
    distances = np.abs(other.times[candidates] - one.times)
    nearest = candidates[distances.argmin(axis=0), np.arange(len(one))]
    distance = distances.min(axis=0)
    of_other: dict[int, int] = {}
    for at in np.argsort(distance, kind="stable"):
        if distance[at] <= _WITHIN:
            of_other.setdefault(int(nearest[at]), int(at))
    found = sorted((at, place) for place, at in of_other.items())
    return np.array(found, dtype=int).reshape(-1, 2).T


def _order(key: SeriesKey, field: str) -> tuple[int, float, str]:
    value, text = getattr(key, field), value_of(key, field)
    number = isinstance(value, float | int) and text != "all"
    return (0, float(value), "") if number else (1, 0.0, text)
