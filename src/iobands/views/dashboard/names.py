"""What the parts of the dashboard share: names of series and jobs, times, maintenances."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timezone
from functools import cache

from iobands.bands import Span
from iobands.model.series import SeriesKey, slug
from iobands.snapshot import Series, Snapshot

_DIGITS = 10


@cache
def series_id(key: SeriesKey) -> str:
    """Return a short name for the series, for addresses; it does not depend on other series."""
    return hashlib.sha256(slug(key).encode()).hexdigest()[:_DIGITS]


def job_id(key: SeriesKey) -> str:
    """Return a short name for all series that the same jobs measure, such as write and read."""
    return series_id(replace(key, variable=""))


def by_job(series: Iterable[Series]) -> dict[str, list[Series]]:
    """Return the series that the same jobs measure, by their common name."""
    found: defaultdict[str, list[Series]] = defaultdict(list)
    for each in series:
        found[job_id(each.key)].append(each)
    return dict(found)


def seconds(when: datetime) -> int:
    """Return `when` in whole seconds since 1970."""
    return int(when.astimezone(timezone.utc).timestamp())


def maintenances(site: Snapshot, series: Series) -> list[Span]:
    """Return those between the first run of the series and now, in order, each with its reason."""
    spans = (
        replace(span, why=window.reason)
        for window in site.maintenance.get(series.key.system, ())
        if window.is_of(series.key.file_system)
        for span in window.spans(site.now)
        if len(series.history) and span.end >= series.history.first
    )
    return sorted(spans, key=lambda each: each.begin)
