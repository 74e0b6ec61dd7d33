"""The maintenances of a series, in which no run is expected and none is judged."""

from __future__ import annotations

from typing import NamedTuple

from iobands.reporting.dashboard.names import seconds
from iobands.site.site import Site
from iobands.status.series import Series


class Maintenance(NamedTuple):
    """A maintenance; times are in seconds since 1970."""

    begin: int
    end: int
    reason: str


def maintenances(site: Site, series: Series) -> list[Maintenance]:
    """Return those that began between the first run of the series and now, in the order of time."""
    if not len(series.history):
        return []
    first = series.history.first
    return sorted(
        Maintenance(seconds(span.begin), seconds(span.end), window.reason)
        for window in site.maintenance.get(series.key.system, ())
        if window.is_of(series.key.file_system)
        for span in window.spans(site.now)
        if span.end >= first
    )
