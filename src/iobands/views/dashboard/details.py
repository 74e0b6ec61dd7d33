"""The data of the page of a series, other than its runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iobands.snapshot import Change, Series, Snapshot
from iobands.views import format as texts
from iobands.views.dashboard.heat_map import maintenances, seconds, series_id
from iobands.views.explain_series import facts, moved

# Without people's names and texts.
_PUBLIC_FACTS: Final = (
    "Drop", "Rise", "Spread", "Suspicion", "Newest", "Next repeat", "Runs", "Baseline", "Evidence",
    "Power", "Earlier", "Incident", "Outliers",
)  # fmt: skip


def details_of(site: Snapshot, series: Series) -> dict[str, object]:
    """Return plain data; times are in seconds since 1970, values in the unit of the series.

    A public dashboard has no reasons.
    """
    evidence = series.status.evidence
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
            for b in series.verdicts.bands
        ],
        "segments": series.verdicts.segments,
        "baseline": _baseline(series),
        "epochs": [
            {"name": each.name, "since": seconds(each.since)}
            | ({} if site.is_public else {"reason": each.reason or each.source})
            for each in series.epochs
            if first and each.since > first
        ],
        "changes": [_change(each) for each in (evidence.changes if evidence else ())],
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
            | ({} if site.is_public else {"reason": each.why})
            for each in maintenances(site, series)
        ],
        "missing": [
            {"when": seconds(each.when)} | ({} if site.is_public else {"what": each.what})
            for each in series.missing
        ],
        "actions": [
            {"when": seconds(each.when), "says": texts.action_text(each)} for each in series.actions
        ],
        # what an earlier run asked for has a smaller mark
        "asked": (
            series.history.times[series.history.asked].astype("datetime64[s]").astype(int)
        ).tolist(),
        "facts": _facts(site, series),
        "moved": [] if site.is_public else list(moved(site, series)),
    }


def _facts(site: Snapshot, series: Series) -> Sequence[tuple[str, str]]:
    found = []
    last = ""
    for heading, text in facts(site, series):
        last = heading or last
        if not site.is_public or last in _PUBLIC_FACTS:
            found.append((heading, text))
    return found


def _baseline(series: Series) -> dict[str, float] | None:
    evidence = series.status.evidence
    if evidence is None or evidence.level is None or not len(evidence.rows):
        return None
    return {"level": evidence.level, "since": int(series.verdicts.times[evidence.rows[0]])}


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
