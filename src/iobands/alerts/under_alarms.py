"""Which samples of a series are under an alarm that it has in common with others.

A drop of 10 % may show in ten series together and in none of them alone; nothing shall be learnt
from it either. May know: series followed by their charts, and pools; nothing of files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from iobands.alerts.shared import Common, Pooled
from iobands.detection.parts import within
from iobands.series import SeriesKey
from iobands.status.following import Following, in_utc


@dataclass(frozen=True)
class UnderCommon:
    """The common alarms of a series: `lasting` is an open one that is of all its runs, or None.

    `rows` are the places, among its samples, of those that such an alarm is of, open or over.
    """

    lasting: Common | None = None
    rows: NDArray[np.int_] = field(default_factory=lambda: np.empty(0, dtype=int))


def under_common(
    key: SeriesKey, following: Following, pooled: Sequence[Pooled], common: Sequence[Common]
) -> UnderCommon:
    """Return which samples of `key` are under alarms of pools that it took part in."""
    lasting, rows = None, [np.empty(0, dtype=int)]
    for each in common:
        if key in each.keys:
            since = int(np.searchsorted(following.times, in_utc(each.changes[key.variable].since)))
            touched = following.rows[since:]
            rows.append(touched[each.pool.of(key, touched)])
            if each.pool.rows is None:
                lasting = lasting or each
    for each in pooled:
        if key in each.keys:
            rows.append(following.rows[np.isin(following.times, _over(key, each))])
    return UnderCommon(lasting, np.unique(np.concatenate(rows)))


def _over(key: SeriesKey, pooled: Pooled) -> NDArray[np.datetime64]:
    """Return the times of the runs under alarms of a pool that are over."""
    column = pooled.keys.index(key)
    sessions, moments = pooled.parts[column].sessions, pooled.moments[column]
    found = [moments[:0]]
    for each in pooled.chart.alarms:
        alarm = each.alarm
        if alarm.ended is not None and column in each.series:
            first, last = pooled.chart.sessions[[alarm.onset, alarm.ended]]
            found.append(moments[within(sessions, first, last)])
    return np.concatenate(found)
