"""The page of an alert: a file without script, which a message may link to for good."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from iobands.model import MADE_UP
from iobands.snapshot import Alert, Member, Place, Series, Snapshot
from iobands.version import __version__
from iobands.views.address import page_of
from iobands.views.dashboard.heat_map import series_id
from iobands.views.dashboard.multiples import Frame, around, frame_of, picture
from iobands.views.document import rendered
from iobands.views.explain_alert import account_given_of
from iobands.views.format import day_text, figure, level_text, ratio_text, time_text

#: How many alerts of the past have a page: the newest.
MOST_PAST: Final = 40
_MOST_PICTURES: Final = 24
_MOST_UNMOVED: Final = 6


@dataclass(frozen=True)
class _Picture:
    """A picture with its caption; `series` is its place in the dashboard."""

    label: str
    says: str
    svg: str
    series: str = ""


def with_pages(site: Snapshot) -> list[Alert]:
    """Return the alerts that have a page: the open ones and the newest of the past."""
    past = sorted(site.past, key=lambda each: each.ended or site.now, reverse=True)
    return [each for each in (*site.alerts, *past[:MOST_PAST]) if each.number is not None]


def alert_pages(site: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield the file of each page and its content."""
    for alert in with_pages(site):
        yield page_of(alert), _page(site, alert)


def _page(site: Snapshot, alert: Alert) -> str:
    story = account_given_of(site, alert)
    lead = max((each.series for each in alert.members), key=lambda s: len(s.history), default=None)
    places = [each for each in site.places if alert.peer and _is_of(each, alert)]
    times = lead.history.times if lead else np.empty(0, "datetime64[ns]")
    frame = frame_of(alert, times)
    shown = alert.members[:_MOST_PICTURES]
    return rendered(
        "alert.html",
        story=story,
        alert=alert,
        peers=[each for place in places for each in _speeds(place, alert, frame)],
        members=[_of_member(each, frame) for each in shown],
        others=[each.series.label for each in alert.members[_MOST_PICTURES:]],
        unmoved=[_of_other(each, frame) for each in story.unmoved[:_MOST_UNMOVED]],
        first=day_text(frame.first, site.now),
        last=day_text(frame.last, site.now),
        since=alert.since and day_text(alert.since, site.now),
        known="" if alert.ended else time_text(site.now),
        system=alert.system,
        made_up=alert.system == MADE_UP,
        public=site.is_public,
        version=__version__,
    )


def _of_member(member: Member, frame: Frame) -> _Picture:
    ratio = member.ratio.value if member.ratio and np.isfinite(member.ratio.value) else None
    since = member.baseline * ratio if member.baseline and ratio else None
    says = level_text(member)
    says += f", {ratio_text(member.ratio)}" if member.ratio else ""
    return _of_series(member.series, frame, says, (member.baseline, since))


def _of_other(series: Series, frame: Frame) -> _Picture:
    times, values = around(frame, series.history)
    before = values[times < frame.since]
    level = float(np.median(before)) if len(before) else None
    says = "no run before" if level is None else f"stayed at {figure(level)} {series.key.unit}"
    return _of_series(series, frame, says, (level, None))


def _of_series(
    series: Series, frame: Frame, says: str, levels: tuple[float | None, float | None]
) -> _Picture:
    svg = picture(frame, *around(frame, series.history), levels)
    view = f"?from={frame.first:%Y-%m-%dT%H:%M}&to={frame.last:%Y-%m-%dT%H:%M}"
    return _Picture(series.label, says, svg, f"../index.html#/series/{series_id(series.key)}{view}")


def _is_of(place: Place, alert: Alert) -> bool:
    assert alert.peer is not None
    name = alert.peer.name
    return (place.kind, place.system, place.where) == (name.kind, name.system, name.where)


def _speeds(place: Place, alert: Alert, frame: Frame) -> Iterator[_Picture]:
    """Yield the speed of a slow target or node over the others', by variable."""
    assert alert.peer is not None
    name = alert.peer.name.name
    for variable, speeds in place.speeds.items():
        if name not in speeds.peers:
            continue
        values = np.exp(speeds.values[:, speeds.peers.index(name)])
        ratio = alert.peer.ratios.get(variable)
        says = f"{ratio_text(ratio)} the others" if ratio else "relative to the others"
        before = alert.peer.own.get(variable, 1.0)
        svg = picture(frame, speeds.times, values, (before, ratio.value if ratio else None))
        yield _Picture(f"{place.name_of(name)}, {variable}", says, svg)
