"""The page of an alert: HTML without scripts, at a permanent address that messages link to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from iobands import snapshot
from iobands.snapshot import Alert, Array, Member, Series, Snapshot, Times, figure
from iobands.views.alert_lines import page_of, place_of, with_pages
from iobands.views.dashboard.series import series_id
from iobands.views.explain_alert import account_given_of
from iobands.views.writing import day_text, level_text, ratio_text, rendered, time_text

_MOST_PICTURES: Final = 24
_MOST_UNMOVED: Final = 6
_WIDTH: Final = 300
_HEIGHT: Final = 92
_TOP: Final = 1.15  # of the highest value: where the axis of a picture ends
_BEFORE: Final = 45  # runs before the onset
_AFTER: Final = 15  # runs after the end
_MOST: Final = 240  # runs in a picture; of more, every n-th is drawn
_LEAST: Final = 120  # runs since the onset, at most, that are drawn of a past alert

#: The level before an onset and the level since, where known.
_Levels = tuple[float | None, float | None]


class _Picture(NamedTuple):
    """A picture with its caption; `series` is the address of the series' page."""

    label: str
    says: str
    svg: str
    series: str = ""


class Frame(NamedTuple):
    """The time axis of all pictures of an alert, from `low` to `high`, and the times marked on it.

    The alert began at `since`, between `earliest` and `latest`, and lasts until `end`.
    """

    low: np.datetime64
    high: np.datetime64
    since: np.datetime64
    earliest: np.datetime64
    latest: np.datetime64
    end: np.datetime64

    def x(self, times: Times) -> Array:
        """Return the x coordinate of each time, clipped to the picture."""
        shares = (times - self.low) / max(self.high - self.low, np.timedelta64(1, "s"))
        return _WIDTH * np.clip(shares, 0.0, 1.0)


def alert_pages(site: Snapshot, *, several: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the path of each page below the dashboard, and its HTML.

    With `several` sites, it links to the page of all of them.
    """
    shown = with_pages(site)
    pages = {(each.system, each.number): page_of(each) for each in shown}
    for alert in shown:
        into = next((each.into for each in alert.events if each.kind == snapshot.MERGED), None)
        yield page_of(alert), _page(site, alert, pages.get((alert.system, into)), several)


def _page(site: Snapshot, alert: Alert, into: str | None, several: bool) -> str:
    """Return the page of an alert; `into` is the page of the alert that it was merged into."""
    story = account_given_of(site, alert, every=True)
    every, place = [each.series.history.times for each in alert.members], place_of(alert, site)
    if place and not every:  # a slow target may have slowed down no series
        every = [each.times for each in place.speeds.values()]
    frame = frame_of(alert, every)
    return rendered(
        "alert.html",
        story=story,
        alert=alert,
        into=into,
        peers=[*_peer_pictures(site, alert, frame)],
        members=[_of_member(each, frame, alert) for each in alert.members[:_MOST_PICTURES]],
        others=[each.series.label for each in alert.members[_MOST_PICTURES:]],
        unmoved=[_of_other(each, frame) for each in story.unmoved[:_MOST_UNMOVED]],
        first=day_text(snapshot.moment(frame.low), site.now),
        last=day_text(snapshot.moment(frame.high), site.now),
        since=alert.since and day_text(alert.since, site.now),
        known="" if alert.ended else time_text(site.now),
        system=alert.system,
        several=several,
        made_up=alert.system == snapshot.MADE_UP,
        public=site.is_public,
    )


def _of_member(member: Member, frame: Frame, alert: Alert) -> _Picture:
    ratio = member.ratio.value if member.ratio and np.isfinite(member.ratio.value) else None
    since = member.baseline * ratio if member.baseline and ratio else None
    level = level_text(member, is_over=alert.ended is not None)
    says = level + (f", {ratio_text(member.ratio)}" if member.ratio else "")
    return _of_series(member.series, frame, says, (member.baseline, since))


def _of_other(series: Series, frame: Frame) -> _Picture:
    times, values = series.history.times, series.history.values
    before = values[(times >= frame.low) & (times < frame.since)]
    level = float(np.median(before)) if len(before) else None
    says = "no run before" if level is None else f"{figure(level)} {series.key.symbol} before"
    return _of_series(series, frame, says, (level, None))


def _of_series(series: Series, frame: Frame, says: str, levels: _Levels) -> _Picture:
    ends = (frame.low, frame.high + np.timedelta64(1, "m"))  # so that the last run is in
    low, high = (f"{snapshot.moment(each):%Y-%m-%dT%H:%M}" for each in ends)
    address = f"../index.html#/series/{series_id(series.key)}?from={low}&to={high}"
    svg = picture(frame, series.history.times, series.history.values, levels)
    return _Picture(series.label, says, svg, address)


def _peer_pictures(site: Snapshot, alert: Alert, frame: Frame) -> Iterator[_Picture]:
    """Yield for each variable a picture of a slow peer's speed relative to the others."""
    place, peer = place_of(alert, site), alert.peer
    if place is None or peer is None:
        return
    name = peer.name.name
    for variable, speeds in place.speeds.items():
        if name in speeds.peers:
            times, values = speeds.times, np.exp(speeds.values[:, speeds.peers.index(name)])
            ratio = peer.ratios.get(variable)
            says = f"{ratio_text(ratio)} the others" if ratio else "relative to the others"
            before = values[(times < frame.since) & np.isfinite(values)]
            level = float(np.median(before)) if len(before) else None
            levels = (peer.own.get(variable, level), ratio.value if ratio else None)
            svg = picture(frame, times, values, levels)
            yield _Picture(f"{place.name_of(name)}, {variable}", says, svg)


def frame_of(alert: Alert, every: Sequence[Times]) -> Frame:
    """Return the frame around the onset and the end of an alert; `every` has its series' times."""
    times = max(every, key=len, default=np.empty(0, "datetime64[ns]"))
    since = snapshot.in_utc(alert.since or alert.events[0].when)
    start, end = int(np.searchsorted(times, since)), len(times)
    if alert.ended:
        after = int(np.searchsorted(times, snapshot.in_utc(alert.ended))) + _AFTER
        end = min(end, after, start + _LEAST)
    low = times[max(0, start - _BEFORE)] if len(times) else since
    # in the newest session, other series may have run a little later
    newest = [each[-1] for each in every if len(each)] if end == len(times) else [times[end - 1]]
    high = max([*newest, since + np.timedelta64(1, "D")])
    return Frame(
        min(low, since),
        high,
        since,
        snapshot.in_utc(alert.since_low) if alert.since_low else since,
        snapshot.in_utc(alert.since_high) if alert.since_high else since,
        snapshot.in_utc(alert.ended) if alert.ended else high,
    )


def picture(frame: Frame, times: Times, values: Array, levels: _Levels = (None, None)) -> str:
    """Return an SVG of runs against time, with the onset and the levels before and since.

    Without a level since, the line of the level before goes on.
    """
    shown = (times >= frame.low) & (times <= frame.high) & np.isfinite(values)
    each = int(shown.sum()) // _MOST + 1
    drawn = times[shown][::-each], values[shown][::-each]
    known = [level for level in levels if level is not None]
    top = _TOP * max([*values[shown].tolist(), *known], default=1.0) or 1.0
    marks = np.array([frame.since, frame.end, frame.earliest, frame.latest])
    begin, end, earliest, latest = frame.x(marks).tolist()
    before, since = (None if level is None else _HEIGHT * (1 - level / top) for level in levels)
    parts = [
        f'<rect class="{name}" x="{x:.0f}" y="0" width="{max(to - x, 0):.0f}" height="{_HEIGHT}"/>'
        for name, x, to in (("lasts", begin, end), ("began", earliest, latest))
    ]
    paths = {"axis": f"M0 {_HEIGHT}H{_WIDTH}", "onset": f"M{begin:.0f} 0V{_HEIGHT}"}
    if before is not None:
        paths["before"] = f"M0 {before:.0f}H{_WIDTH if since is None else begin:.0f}"
    if since is not None:
        paths["since"] = f"M{begin:.0f} {since:.0f}H{end:.0f}"
    places = zip(frame.x(drawn[0]), _HEIGHT * (1 - drawn[1] / top), strict=True)
    paths["runs"] = "".join(f"M{x:.0f} {y:.0f}h0" for x, y in places)
    parts += [f'<path class="{name}" d="{line}"/>' for name, line in paths.items()]
    box = f"-4 -4 {_WIDTH + 8} {_HEIGHT + 8}"
    return f'<svg viewBox="{box}" aria-hidden="true">{"".join(parts)}</svg>'
