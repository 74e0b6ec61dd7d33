"""What the page of a series shows beside its runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from iobands.detection.series import Change
from iobands.reporting import format as texts
from iobands.reporting.dashboard.names import maintenances, seconds, series_id
from iobands.reporting.explain_series import facts, moved
from iobands.reporting.verdicts import Judged
from iobands.site.site import Site
from iobands.status.series import Series

# Without what people wrote, and what names them.
_PUBLIC_FACTS: Final = (
    "Drop", "Rise", "Suspicion", "Newest", "Runs", "Baseline", "Evidence", "Power", "Earlier",
    "Incident", "Outliers",
)  # fmt: skip


def details(site: Site, series: Series, judged: Judged, *, public: bool) -> dict[str, object]:
    """Return it as plain data; times are in seconds since 1970, values in the unit of the series.

    With `public` nothing is said of people, nodes, jobs and reasons.
    """
    detection = series.status.detection
    epochs = series.bands.epochs if series.bands and len(series.history) else ()
    first = series.history.first if len(series.history) else None
    return {
        "id": series_id(series.key),
        "bands": [
            {
                "floor": b.floor,
                "lower": b.lower_quartile,
                "median": b.median,
                "upper": b.upper_quartile,
            }
            for b in judged.bands
        ],
        "segments": judged.segments,
        "baseline": _baseline(series),
        "epochs": [
            {"name": each.name, "since": seconds(each.since)}
            | ({} if public else {"reason": each.reason or each.source})
            for each in epochs
            if first and each.since > first
        ],
        "changes": [_change(each) for each in (detection.changes if detection else ())],
        "incidents": [
            {
                "name": each.name,
                "since": seconds(each.since),
                "until": seconds(each.until),
                "open": each.is_open,
                "ratio": each.ratios[series.key],
            }
            for each in site.incidents
            if series.key in each.ratios
        ],
        "maintenance": [
            {"begin": seconds(each.begin), "end": seconds(each.end)}
            | ({} if public else {"reason": each.why})
            for each in maintenances(site, series)
        ],
        "missing": [
            {"when": seconds(each.when)} | ({} if public else {"what": each.what})
            for each in series.missing
        ],
        "actions": []
        if public
        else [
            {"when": seconds(each.when), "says": texts.action_text(each)}
            for each in site.actions.get(series.key, ())
        ],
        "facts": _facts(site, series, public),
        "moved": [] if public else list(moved(site, series)),
    }


def _facts(site: Site, series: Series, public: bool) -> Sequence[tuple[str, str]]:
    found = []
    last = ""
    for heading, text in facts(site, series):
        last = heading or last
        if not public or last in _PUBLIC_FACTS:
            found.append((heading, text))
    return found


def _baseline(series: Series) -> dict[str, float] | None:
    detection = series.status.detection
    if detection is None or not detection.chart.can_judge or not len(detection.times):
        return None
    begin = (detection.times[0] - np.datetime64(0, "ns")) // np.timedelta64(1, "s")
    level = float(np.exp(np.median(detection.chart.baseline.level())))
    return {"level": level, "since": int(begin)}


def _change(change: Change) -> dict[str, object]:
    return {
        "since": seconds(change.since),
        "low": seconds(change.since_low),
        "high": seconds(change.since_high),
        "raised": seconds(change.raised),
        "ended": change.ended and seconds(change.ended),
        "end": change.end,
        "ratio": change.ratio.value,
        "says": texts.ratio_text(change.ratio),
        "baseline": change.baseline,
        "level": change.level,
    }
