"""The maintenances of a series, in which no run is expected and none is judged."""

from __future__ import annotations

from dataclasses import replace

from iobands.bands import Span
from iobands.site.site import Site
from iobands.status.series import Series


def maintenances(site: Site, series: Series) -> list[Span]:
    """Return those between the first run of the series and now, in order, each with its reason."""
    spans = (
        replace(span, why=window.reason)
        for window in site.maintenance.get(series.key.system, ())
        if window.is_of(series.key.file_system)
        for span in window.spans(site.now)
        if len(series.history) and span.end >= series.history.first
    )
    return sorted(spans, key=lambda each: each.begin)
