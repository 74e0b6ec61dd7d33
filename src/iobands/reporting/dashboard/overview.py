"""What the front page shows, and what is known of every series at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from iobands import __version__
from iobands.alerts.alert import Alert
from iobands.alerts.ledger import Entry
from iobands.model.fields import SERIES_FIELDS
from iobands.reporting import format as texts
from iobands.reporting.dashboard.heat_map import heat_map
from iobands.reporting.dashboard.names import job_id, seconds, series_id
from iobands.reporting.dashboard.peers import peer_maps
from iobands.reporting.digest import (
    details,
    finding,
    leftover_text,
    leftovers_heading,
    maintenance_lines,
    not_measured,
    number,
    sections,
    subject,
)
from iobands.reporting.explain import moved_with
from iobands.reporting.table import RECENT, sparkline
from iobands.reporting.verdicts import Judged
from iobands.site.compare import FIELDS, value_of
from iobands.site.site import Site
from iobands.status.peers import NODE
from iobands.status.series import Series
from iobands.status.state import State
from iobands.status.verdicts import ENOUGH_RUNS

#: The version of the form of the data.
SCHEMA: Final = 1

_LATELY: Final = 30
_MOST_REJECTED: Final = 100
_COVARIATES: Final = ("fullness_percent", "targets_active", "targets_inactive")


def overview(
    site: Site,
    verdicts: Mapping[str, Judged],
    paths: Mapping[tuple[str, str], str],
    *,
    public: bool,
    past: bool,
) -> dict[str, object]:
    """Return it as plain data; times are in seconds since 1970.

    `paths` are those of the file systems of each system. `past` says that the site is shown as it
    was, so that its age does not count. With `public` nothing is said of paths, people, nodes, jobs
    and reasons.
    """
    if public:
        site = _without_nodes(site)
    newest = max((each.status.when for each in site.series if each.status.when), default=None)
    last = site.last_session
    found = {
        "schema": SCHEMA,
        "version": __version__,
        "made": seconds(site.now),
        "past": past,
        "made_up": site.is_made_up,
        "public": public,
        "word": texts.WORDS[site.exit_status],
        "counts": texts.counts(site),
        "newest": newest and seconds(newest),
        "session": last and {"began": seconds(last.began), "how": last.how},
        "alerts": [
            {"heading": heading, **_alert(alert, site, public)}
            for heading, alerts in sections(site).items()
            for alert in alerts
        ],
        "lately": [_entry(each, public) for each in site.ledger().entries[:_LATELY]],
        **heat_map(site, verdicts),
        "enough": ENOUGH_RUNS,
        "places": peer_maps(site),
        "file_systems": _file_systems(site, {} if public else paths),
        "comparable": {name: list(follows) for name, follows in FIELDS.items()},
        "series": [_series(each, site) for each in site.series],
        "superseded": site.superseded,
    }
    if not public:
        found["maintenance"] = [": ".join(line) for line in maintenance_lines(site)]
        found["not_measured"] = [": ".join(line) for line in not_measured(site)]
        found["leftovers"] = [leftover_text(each) for each in site.leftovers]
        found["left_behind"] = leftovers_heading(site.leftovers)
        found["rejected"] = [str(each) for each in site.rejected[:_MOST_REJECTED]]
        found["rejected_lines"] = site.rejected_lines
    return found


def _without_nodes(site: Site) -> Site:
    """Return the site without what names a node."""
    return replace(
        site,
        alerts=tuple(a for a in site.alerts if not (a.peer and a.peer.name.kind == NODE)),
        places=tuple(each for each in site.places if each.kind != NODE),
        peer_actions={n: each for n, each in site.peer_actions.items() if n.kind != NODE},
    )


def _alert(alert: Alert, site: Site, public: bool) -> dict[str, object]:
    says = details(alert, site)
    if public:
        says = [] if alert.reason else [*finding(alert, site)]
        says += ["acknowledged"] if alert.is_quiet else []
    if len(alert.members) > 1 and len(says) > 1 and alert.peer is None:
        says = [f"the worst at {says[0]}", *says[1:]]
    return {
        "severity": alert.severity.value,
        "quiet": alert.is_quiet,
        "subject": subject(alert),
        "number": number(alert, site),
        "says": [text for text in says if text],
        "moved": [] if public else moved_with(alert),
        "certainty": alert.certainty and alert.certainty.value,
        "since": alert.since and seconds(alert.since),
        "series": [series_id(member.series.key) for member in alert.members],
    }


def _entry(entry: Entry, public: bool) -> dict[str, object]:
    return {
        "subject": entry.subject,
        "since": seconds(entry.since),
        "ended": entry.ended and seconds(entry.ended),
        "change": texts.percent(entry.ratio) if entry.ratio else "",
        # who resolved it and why come after the first word
        "end": (entry.end.split(" by ")[0] if public else entry.end) or "open",
    }


def _file_systems(site: Site, paths: Mapping[tuple[str, str], str]) -> list[dict[str, object]]:
    """Return what the newest sample of each file system says of it."""
    newest: dict[tuple[str, str], Series] = {}
    for each in site.series:
        place = (each.key.system, each.key.file_system or "none")
        when, known = each.status.when, newest.get(place)
        if when and (known is None or known.status.when is None or known.status.when < when):
            newest[place] = each
    found = []
    for (system, name), each in newest.items():
        sample, outliers = each.history.newest, site.outliers.get((system, name))
        found.append(
            {
                "name": name,
                "system": system,
                "path": paths.get((system, name)),
                "size_gib": site.sizes_gib.get((system, name)),
                "type": sample.get("file_system_type"),
                "medium": sample.get("medium"),
                **{field: sample.get(field) for field in _COVARIATES},
                "when": each.status.when and seconds(each.status.when),
                "outliers": outliers
                and outliers.runs
                and f"{outliers.outliers} of {outliers.runs}",
            }
        )
    return found


def _series(series: Series, site: Site) -> dict[str, object]:
    status, key = series.status, series.key
    quiet = any(alert.is_quiet for alert in site.alerts_on(key))
    band = status.band
    return {
        "id": series_id(key),
        "job": job_id(key),
        "label": series.label,
        "fields": {
            name: value_of(key, name) for name in SERIES_FIELDS if getattr(key, name) is not None
        },
        "variable": key.variable,
        "unit": key.unit,
        "effect": series.in_effect.brief(),
        "state": status.state.value,
        "says": texts.state_text(status, quiet),
        "quiet": quiet,
        "verdict": status.verdict,
        "value": None if status.value is None else texts.figure(status.value),
        "band": texts.band_text(band, status.provisional) if band else "",
        "left": texts.runs_left(series) if status.state is State.CALIBRATING else 0,
        "runs": status.runs,
        "when": status.when and seconds(status.when),
        "trend": sparkline(series.history.values[-RECENT:].tolist()),
    }
