"""The front page of several sites: how each does, what is open, and what each delivers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np

from iobands.model import WORST_STATUS_FIRST
from iobands.snapshot import Series, Snapshot, in_utc
from iobands.version import __version__
from iobands.views.address import page_of
from iobands.views.alert_lines import ATTENTION, details, sections, subject
from iobands.views.document import rendered
from iobands.views.format import counts, time_text

_RECENT: Final = np.timedelta64(30, "D")
_FEWEST: Final = 6  # runs, from which on their extremes hold the median in 95 of 100 cases
_MOST_ALERTS: Final = 8
_TIB: Final = 1024  # GiB


@dataclass(frozen=True)
class Rate:
    """The median of a series over 30 days, in its unit, and its interval of 95 %."""

    site: str
    href: str
    file_system: str
    nodes: int
    median: float
    low: float
    high: float
    per_tib: float | None

    @property
    def per_node(self) -> float:
        """The median on each node."""
        return self.median / max(self.nodes, 1)


@dataclass(frozen=True)
class Cluster:
    """What the front page says of a site; `href` is its dashboard."""

    name: str
    href: str
    exit_status: int
    counts: str
    newest: str
    alerts: Sequence[tuple[str, str, str]]
    rates: Mapping[tuple[str, str], Sequence[Rate]]


def about_cluster(name: str, href: str, site: Snapshot) -> Cluster:
    """Return what the front page says of a site, whose dashboard is at `href`."""
    urgent = sections(site)[ATTENTION]
    alerts = [
        (
            subject(each),
            " · ".join(filter(None, details(each, site, short=True))),
            f"{href}{page_of(each)}",
        )
        for each in urgent[:_MOST_ALERTS]
    ]
    if len(urgent) > len(alerts):
        alerts.append((f"and {len(urgent) - len(alerts)} more", "", href))
    rates: defaultdict[tuple[str, str], list[Rate]] = defaultdict(list)
    for series in site.series:
        if rate := _rate(name, href, series, site):
            key = series.key
            rates[f"{key.tool} {key.pattern} {key.interface} {key.variable}", key.unit].append(rate)
    times = [each.status.when for each in site.series if each.status.when]
    newest = time_text(max(times)) if times else "never"
    return Cluster(name, href, site.exit_status, counts(site), newest, alerts, rates)


def clusters_page(clusters: Sequence[Cluster], now: datetime) -> str:
    """Return the page; the sites with trouble come first."""
    ordered = sorted(clusters, key=lambda each: WORST_STATUS_FIRST.index(each.exit_status))
    jobs: defaultdict[tuple[str, str], list[Rate]] = defaultdict(list)
    for each in clusters:
        for job, rates in each.rates.items():
            jobs[job] += rates
    compared = {
        job: sorted(rates, key=lambda rate: -rate.per_node)
        for job, rates in sorted(jobs.items())
        if len({rate.site for rate in rates}) > 1
    }
    words = ("ok", "known", "degraded", "missing")
    return rendered(
        "clusters.html",
        clusters=ordered,
        words=words,
        compared=compared,
        now=time_text(now),
        version=__version__,
    )


def _rate(name: str, href: str, series: Series, site: Snapshot) -> Rate | None:
    """Return what a series delivered lately, None with too few runs."""
    history = series.history.routine
    values = np.sort(history.values[history.times > in_utc(site.now) - _RECENT])
    if len(values) < _FEWEST:
        return None
    # the order statistics that hold the median: by the normal approximation of the binomial
    reach = 1.96 * math.sqrt(len(values)) / 2
    low = values[max(math.floor(len(values) / 2 - reach), 0)]
    high = values[min(math.ceil(len(values) / 2 + reach), len(values) - 1)]
    median, size = (
        float(np.median(values)),
        site.file_system(series.key.system, series.key.file_system).size_gib,
    )
    per_tib = median / (size / _TIB) if size else None
    return Rate(
        name,
        href,
        str(series.key.file_system),
        int(series.key.nodes or 0),
        median,
        float(low),
        float(high),
        per_tib,
    )
