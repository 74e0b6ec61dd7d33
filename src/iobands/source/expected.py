"""When a series or a session is overdue: by the interval of its schedule, or by its history."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from iobands.bands.band import Span, covered
from iobands.model import interval_of, overdue
from iobands.snapshot import History, Times

# Runs nearer than this are one visit, such as a run that was repeated by hand.
_VISIT: Final = np.timedelta64(12, "h")
# The fewest gaps that make a habit: three runs of a check are not a schedule.
_ENOUGH_GAPS: Final = 3
_NEWEST_GAPS: Final = 10
# A quantile of the newest gaps: longer than most, to learn a change to a longer interval soon.
_QUANTILE: Final = 0.75


def overdue_after(history: History) -> timedelta | None:
    """Return the age of its newest sample at which a series is overdue; None for never.

    The newest sample has the interval that the site file declared for its check; without one the
    interval is the upper quartile of the newest gaps between days with samples.
    """
    if not len(history):
        return None
    interval = _declared(history) or _learned(history.times)
    return overdue(interval) if interval else None


def missed_schedule(
    began: datetime, histories: Collection[History], spans: Iterable[Span], now: datetime
) -> timedelta | None:
    """Return the shortest declared interval if no session ran for two of them, else None.

    The newest session `began` at that time or, if it was started by `reframe -r`, with the newest
    sample. The time in `spans` does not count.
    """
    interval = min(filter(None, map(_declared, histories)), default=None)
    if interval is None:
        return None
    since = max(began, *(each.last for each in histories))
    return interval if now - since - covered(spans, since, now) > 2 * interval else None


def _declared(history: History) -> timedelta | None:
    """Return the interval that the site file declared, if any."""
    return interval_of(history.newest.get("interval_days"))


def _learned(times: Times) -> timedelta | None:
    """Return the interval between visits, None if there are too few."""
    visits: list[np.datetime64] = []
    for time in times[::-1]:
        if not visits or visits[-1] - time >= _VISIT:
            visits.append(time)
        if len(visits) > _NEWEST_GAPS:
            break
    if len(visits) <= _ENOUGH_GAPS:
        return None
    gaps = -np.diff(np.array(visits)) / np.timedelta64(1, "s")
    seconds = np.quantile(gaps, _QUANTILE, method="nearest")
    return timedelta(seconds=round(float(seconds)))
