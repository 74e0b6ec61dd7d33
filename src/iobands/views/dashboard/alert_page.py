"""The page of an alert: a file without script, which a message may link to for good."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.snapshot import (
    MADE_UP,
    Alert,
    History,
    Member,
    Place,
    Series,
    Snapshot,
    Times,
    in_utc,
    moment,
)
from iobands.views import (
    day_text,
    figure,
    level_text,
    page_of,
    ratio_text,
    rendered,
    time_text,
    with_pages,
)
from iobands.views.dashboard.series import series_id
from iobands.views.explain_alert import account_given_of

_MOST_PICTURES: Final = 24
_MOST_UNMOVED: Final = 6


@dataclass(frozen=True)
class _Picture:
    """A picture with its caption; `series` is its place in the dashboard."""

    label: str
    says: str
    svg: str
    series: str = ""


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
    )


def _of_member(member: Member, frame: Frame) -> _Picture:
    ratio = member.ratio.value if member.ratio and np.isfinite(member.ratio.value) else None
    since = member.baseline * ratio if member.baseline and ratio else None
    says = level_text(member)
    says += f", {ratio_text(member.ratio)}" if member.ratio else ""
    return _of_series(member.series, frame, says, (member.baseline, since))


def _of_other(series: Series, frame: Frame) -> _Picture:
    times, values = around(frame, series.history)
    change = series.status.change  # an alert of its own may have begun earlier
    began = in_utc(change.since) if change else frame.since
    first = began if began < frame.since else frame.low
    before = values[(first <= times) & (times < frame.since)]
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


_WIDTH: Final = 300
_HEIGHT: Final = 92
_TOP: Final = 1.15  # of the picture's axis over the highest value
_BEFORE: Final = 45  # runs before the onset
_AFTER: Final = 15  # runs after the end
_MOST: Final = 240  # runs; of more, each n-th is drawn
_LEAST: Final = 120  # runs since the onset that are drawn of an alert that is over


@dataclass(frozen=True)
class Frame:
    """The times that all pictures of an alert show, and what is marked in them."""

    low: np.datetime64
    high: np.datetime64
    since: np.datetime64
    earliest: np.datetime64
    latest: np.datetime64
    ended: np.datetime64 | None

    def x(self, time: np.datetime64) -> float:
        """Return the place of a time, within the picture."""
        return float(self.places(np.array([time]))[0])

    def places(self, times: Times) -> NDArray[np.float64]:
        """Return the place of each time, within the picture."""
        shares = (times - self.low) / max(self.high - self.low, np.timedelta64(1, "s"))
        return _WIDTH * np.clip(shares, 0.0, 1.0)

    @property
    def first(self) -> datetime:
        """Its first day."""
        return moment(self.low)

    @property
    def last(self) -> datetime:
        """Its last day."""
        return moment(self.high)


def frame_of(alert: Alert, times: Times) -> Frame:
    """Return the frame around the onset and the end of an alert, by the times of its runs."""
    since = in_utc(alert.since or alert.events[0].when)
    start = int(np.searchsorted(times, since))
    ended = in_utc(alert.ended) if alert.ended else None
    end = len(times) if ended is None else int(np.searchsorted(times, ended)) + _AFTER
    if ended is not None:
        end = min(end, start + _LEAST)
    low = times[max(0, start - _BEFORE)] if len(times) else since
    high = times[max(0, min(end, len(times)) - 1)] if len(times) else since
    return Frame(
        min(low, since),
        max(high, since + np.timedelta64(1, "D")),
        since,
        in_utc(alert.since_low) if alert.since_low else since,
        in_utc(alert.since_high) if alert.since_high else since,
        ended,
    )


def picture(
    frame: Frame,
    times: Times,
    values: NDArray[np.float64],
    levels: tuple[float | None, float | None] = (None, None),
) -> str:
    """Return runs against time, with the onset and the levels before and since."""
    shown = (times >= frame.low) & (times <= frame.high) & np.isfinite(values)
    each = max(1, int(shown.sum()) // _MOST + 1)
    known = [level for level in levels if level is not None]
    top = _TOP * max([*values[shown].tolist(), *known], default=1.0) or 1.0
    parts = [*_marks(frame), *_levels(frame, levels, top)]
    drawn = frame.places(times[shown])[::-each].tolist(), values[shown][::-each].tolist()
    points = "".join(f"M{x:.0f} {_y(value, top):.0f}h0" for x, value in zip(*drawn, strict=True))
    parts.append(f'<path class="runs" d="{points}"/>')
    return (
        f'<svg viewBox="-4 -4 {_WIDTH + 8} {_HEIGHT + 8}" aria-hidden="true">{"".join(parts)}</svg>'
    )


def around(frame: Frame, history: History) -> tuple[Times, NDArray[np.float64]]:
    """Return the times and the values of the runs of a series in the frame."""
    low, high = np.searchsorted(history.times, (frame.low, frame.high))
    return history.times[low : high + 1], history.values[low : high + 1]


def _y(value: float, top: float) -> float:
    return _HEIGHT * (1 - value / top)


def _marks(frame: Frame) -> Iterator[str]:
    left, right = frame.x(frame.earliest), frame.x(frame.latest)
    end = _WIDTH if frame.ended is None else frame.x(frame.ended)
    begin = frame.x(frame.since)
    for name, one, other in (("lasts", begin, end), ("began", left, right)):
        yield (
            f'<rect class="{name}" x="{one:.0f}" y="0" '
            f'width="{max(other - one, 0):.0f}" height="{_HEIGHT}"/>'
        )
    yield f'<path class="axis" d="M0 {_HEIGHT}H{_WIDTH}"/>'
    yield f'<path class="onset" d="M{begin:.0f} 0V{_HEIGHT}"/>'


def _levels(frame: Frame, levels: tuple[float | None, float | None], top: float) -> Iterator[str]:
    """Yield the level before the onset and the level since; without one, the first goes on."""
    before, since = levels
    onset = frame.x(frame.since)
    end = _WIDTH if frame.ended is None else frame.x(frame.ended)
    if before is not None:
        until = _WIDTH if since is None else onset
        yield f'<path class="before" d="M0 {_y(before, top):.0f}H{until:.0f}"/>'
    if since is not None:
        yield f'<path class="since" d="M{onset:.0f} {_y(since, top):.0f}H{end:.0f}"/>'
