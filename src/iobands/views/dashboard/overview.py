"""The data of a site's front page, and the page of several sites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np

from iobands import snapshot
from iobands.snapshot import Alert, BeforeAfter, Series, Snapshot, State, figure
from iobands.views import alert_lines, notes, writing
from iobands.views.alert_lines import ATTENTION, finding, page_of, sections, title, with_pages
from iobands.views.dashboard.series import heat_map, is_old, job_id, peer_map, picked, series_id
from iobands.views.maintenance import in_short, page_about, title_of_maintenance
from iobands.views.writing import counts, percent, sparkline, state_text, time_text

#: The words for a state in a public dashboard, whose readers cannot act on it.
_FOR_USERS: Final = {
    "OK": "as usual",
    "WARNING": "known trouble",
    "CRITICAL": "slower than usual",
    "UNKNOWN": "not known",
    "CALIBRATING": "too new to tell",
}
_LATELY: Final = 30
_RECENT: Final = 20
_MOST_REJECTED: Final = 100
_NAMED: Final = 2  # alerts that the headline names
_OF_SAMPLE: Final = (
    "file_system_type", "medium", "fullness_percent", "targets_active", "targets_inactive"
)  # fmt: skip


def overview(
    site: Snapshot,
    paths: Mapping[tuple[str, str], str],
    *,
    users: Sequence[writing.Block] = (),
    maintenances: Sequence[BeforeAfter] = (),
) -> dict[str, object]:
    """Return the data of the front page; `write_dashboard` describes the arguments."""
    newest = max((each.status.when for each in site.series if each.status.when), default=None)
    found = {
        "version": snapshot.__version__,
        "made": site.now,
        "past": site.is_past,
        "made_up": site.is_made_up,
        "public": site.is_public,
        "word": writing.WORDS[site.exit_status],
        "names": _FOR_USERS if site.is_public else {},
        "counts": counts(site),
        "headline": headline(site),
        "newest": newest,
        "session": site.last_session and picked(site.last_session, "began", "how"),
        **_alerts(site),
        "users": [[type(each).__name__, each._asdict()] for each in users],
        **heat_map(site),
        "enough": snapshot.ENOUGH_RUNS,
        "places": [
            {**peer_map(each), "name": writing.at_system(each.name, each.system, site)}
            for each in site.places
        ],
        "file_systems": _file_systems(site, paths),
        "comparable": {name: list(follows) for name, follows in snapshot.COMPARABLE.items()},
        "series": [_series(each, site) for each in site.series],
        "superseded": site.superseded,
        "reports": [
            [in_short(each), title_of_maintenance(each), page_about(each)] for each in maintenances
        ],
    }
    if not site.is_public:
        found |= {
            "maintenance": notes.maintenance_lines(site),
            "not_measured": notes.not_measured(site),
            "uneven": notes.unevenly_placed(site),
            "leftovers": [notes.leftover_text(each) for each in site.leftovers],
            "left_behind": notes.leftovers_heading(site.leftovers),
            "rejected": [str(each) for each in site.rejected[:_MOST_REJECTED]],
            "rejected_lines": site.rejected_lines,
        }
    return found


def _alerts(site: Snapshot) -> dict[str, object]:
    """Return the open alerts, the past ones that have a page, and the newest of the ledger."""
    paged = with_pages(site)
    pages = {each.identity: page_of(each) for each in paged}
    return {
        "alerts": [
            {
                "heading": heading,
                **picked(alert, "severity", "certainty"),
                "quiet": alert.is_quiet,
                "counted": alert_lines.counted_members(alert, site),
                "says": _says(alert, site),
                **_alert_summary(alert, site),
            }
            for heading, alerts in sections(site).items()
            for alert in alerts
        ],
        "over": [_alert_summary(each, site) for each in paged if each.ended],
        "lately": [
            {
                **picked(each, "number", "since", "ended"),
                "subject": title(each, site),
                "page": pages.get(each.identity),
                "change": percent(each.ratio) if each.ratio else "",
                "end": each.ending,
            }
            for each in site.ledger.entries[:_LATELY]
        ],
    }


def _says(alert: Alert, site: Snapshot, *, short: bool = False) -> list[str]:
    if site.is_public:
        says = [*finding(alert, site, short=short)] if alert.has_level else []
        says += ["acknowledged"] if alert.is_quiet else []
    else:
        says = alert_lines.details(alert, site, short=short)
    return [text for text in says if text]


def _alert_summary(alert: Alert, site: Snapshot) -> dict[str, object]:
    """Return the title of an alert, its page, its times, and the ids of its series."""
    return {
        "subject": title(alert, site),
        "page": page_of(alert),
        **picked(alert, "since", "ended"),
        "series": [series_id(member.series.key) for member in alert.members],
    }


def headline(site: Snapshot) -> str:
    """Return what needs attention in a few words: `scratch writes: −36 %, since 12 Nov`."""
    loud = sections(site)[ATTENTION]
    named = "; ".join(_trouble(each, site) for each in loud[:_NAMED])
    more = len(loud) - _NAMED
    return f"{named}; {writing.plural(more, 'more alert')}" if more > 0 else named


def _trouble(alert: Alert, site: Snapshot) -> str:
    level, since, _ = finding(alert, site, short=True) if alert.has_level else ("", "", "")
    says = ", ".join(filter(None, (level or alert.severity.value, since)))
    return f"{writing.at_system(alert.subject, alert.system, site)}: {says}"


def _file_systems(site: Snapshot, paths: Mapping[tuple[str, str], str]) -> list[dict[str, object]]:
    """Return a row of facts for each file system, from its newest sample."""
    measured = (each for each in site.series if each.status.when)
    places = snapshot.grouped_by(
        measured, lambda each: (each.key.system, each.key.file_system or "none")
    )
    found = []
    for (system, name), alike in places.items():
        each = max(alike, key=lambda one: one.history.last)
        sample, known_of = each.history.newest, site.file_system(system, name)
        outliers = known_of.outliers
        found.append(
            {
                **picked(known_of, "name", "system", "size_gib"),
                **{field: sample.get(field) for field in _OF_SAMPLE},
                "path": paths.get((system, name)),
                "when": each.status.when,
                "outliers": outliers.runs and f"{outliers.outliers} of {outliers.runs}",
            }
        )
    return found


def _series(series: Series, site: Snapshot) -> dict[str, object]:
    status, key, band = series.status, series.key, series.status.band
    quiet = any(alert.is_quiet for alert in site.alerts_on(key))
    fields = [name for name in snapshot.SERIES_FIELDS if getattr(key, name) is not None]
    return {
        "id": series_id(key),
        "job": job_id(key),
        "label": series.label,
        "fields": {name: snapshot.value_of(key, name) for name in fields},
        **picked(key, "variable"),
        "unit": key.symbol,
        **picked(status, "state", "verdict", "when"),
        "effect": series.in_effect.text(),
        "says": state_text(status, quiet),
        "quiet": quiet,
        "value": None if status.value is None else figure(status.value),
        "band": writing.band_text(band) if band else "",
        "left": writing.runs_left(series) if status.state is State.CALIBRATING else 0,
        "trend": sparkline(series.history.values[-_RECENT:].tolist()),
    }


_MONTH: Final = np.timedelta64(30, "D")
_MOST_ALERTS: Final = 8
_FEW_SITES: Final = 10  # up to this number, each file system of each system is compared
_TIB: Final = 1024  # GiB


class Rate(NamedTuple):
    """The rate of a series, its median over 30 days; `per_node` is this median over the nodes.

    `job` is what the series measures and its unit, and `href` its page. `place` is its system
    and file system. `texts` are the median with its 95 % interval as it is, per node, and per TiB.
    """

    job: tuple[str, str]
    site: str
    href: str
    place: tuple[str, ...]
    label: str
    nodes: int
    per_node: float
    texts: Sequence[str]


@dataclass(frozen=True)
class Cluster:
    """A site on the page of several sites; `href` is the directory of its dashboard."""

    name: str
    href: str
    exit_status: int
    counts: str
    newest: str
    alerts: Sequence[tuple[str, str, str]]
    rates: Sequence[Rate]
    maintenances: Sequence[tuple[str, str, str]] = ()
    public: bool = False
    young: bool = False

    @property
    def word(self) -> str:
        """What the dashboard of the site calls its state."""
        word = self.style.upper()
        return _FOR_USERS[word] if self.public else word

    @property
    def style(self) -> str:
        """The CSS class of its state."""
        if self.young:  # nothing can be judged, so it is not OK
            return "calibrating"
        return writing.WORDS[self.exit_status].lower()

    @property
    def needs_attention(self) -> bool:
        """Whether a person has to act; nobody has to for acknowledged alerts."""
        return bool(self.alerts) or self.exit_status in (snapshot.CRITICAL, snapshot.UNKNOWN)


def about_cluster(
    name: str, href: str, site: Snapshot, held: Sequence[BeforeAfter] = ()
) -> Cluster:
    """Return a site for the page of several sites; its dashboard is at `href`."""
    urgent = sections(site)[ATTENTION]
    alerts = [
        (
            title(each, site),
            " · ".join(_says(each, site, short=True)) or each.severity.value,
            page_of(each),
        )
        for each in urgent[:_MOST_ALERTS]
    ]
    if len(urgent) > len(alerts):
        alerts.append((f"and {len(urgent) - len(alerts)} more", "", ""))
    rates = (_rate(name, href, each, site) for each in site.series)
    newest = max((each.status.when for each in site.series if each.status.when), default=None)
    status = snapshot.UNKNOWN if newest and is_old(site, newest) else site.exit_status
    # users count no alerts, as on the public page of the site
    said = str(len(site.series)) if site.is_public else counts(site)
    return Cluster(
        name,
        href,
        status,
        f"{'made up, nothing was measured; ' * site.is_made_up}{said}",
        time_text(newest) if newest else "never",
        [(title, says, href + (page or "index.html")) for title, says, page in alerts],
        [rate for rate in rates if rate],
        [
            (title_of_maintenance(each), in_short(each), f"{href}{page_about(each)}")
            for each in held
        ],
        site.is_public,
        not status and site.counts().get(State.CALIBRATING) == len(site.series),
    )


def clusters_page(clusters: Sequence[Cluster], now: datetime, *, past: bool = False) -> str:
    """Return the page of several sites, those with trouble first; one of the `past` has no age."""
    every = (rate for each in clusters for rate in each.rates)
    jobs = snapshot.grouped_by(every, lambda rate: rate.job)
    compared = {}
    for job, rates in sorted(jobs.items()):
        best: dict[tuple[str, tuple[str, ...]], Rate] = {}
        for rate in sorted(rates, key=lambda rate: -rate.per_node):
            # of many sites only the best rate of each
            place = rate.place if len(clusters) <= _FEW_SITES else ()
            best.setdefault((rate.site, place), rate)
        if len({site for site, _ in best}) > 1:
            compared[job] = [*best.values()]
    return writing.rendered(
        "clusters.html",
        clusters=sorted(
            clusters, key=lambda one: snapshot.WORST_STATUS_FIRST.index(one.exit_status)
        ),
        compared=compared,
        now=time_text(now),
        made=int(now.timestamp()),
        past=past,
    )


def _rate(name: str, href: str, series: Series, site: Snapshot) -> Rate | None:
    """Return the rate of a series over the last 30 days, None with too few runs."""
    key, history = series.key, series.history.routine
    values = history.values[history.times > snapshot.in_utc(site.now) - _MONTH].tolist()
    if len(values) < snapshot.FEWEST_PAIRS:
        return None
    found = snapshot.paired_ratio([(value, 1) for value in values])  # the interval of the sign test
    nodes, size = int(key.nodes or 1), site.file_system(key.system, key.file_system).size_gib
    known = [each or 0 for each in (found.median, found.lower, found.upper)]
    texts = [
        "{} ({}–{})".format(*(figure(each / share) for each in known)) if share else "–"
        for share in (1, nodes, size / _TIB if size else 0)
    ]
    job = f"{key.tool} {key.pattern} {key.interface} {key.variable}", key.symbol
    page = f"{href}index.html#/series/{series_id(key)}"
    place, per_node = (key.system, str(key.file_system)), found.median / nodes
    return Rate(job, name, page, place, series.label, nodes, per_node, texts)
