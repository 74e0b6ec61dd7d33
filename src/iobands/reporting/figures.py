"""Figures of series: values against time, with the bands that they are held against.

May know: surveys and matplotlib. Uses no display and no global state of pyplot.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure

from iobands.bands import ABOVE, BELOW, COLLAPSED, NO_BAND, WITHIN, Band
from iobands.status.following import Change
from iobands.status.states import comparable, published_band, verdicts
from iobands.status.survey import Series

#: Marker and colour of each verdict; the shapes differ for those who cannot tell the colours
#: (Okabe and Ito, "Color universal design", 2008).
MARKS: Final = {
    ABOVE: ("^", "#0072b2"),
    WITHIN: ("o", "#00775a"),
    BELOW: ("v", "#c46a00"),
    COLLAPSED: ("X", "#b3123e"),
    NO_BAND: ("o", "#777777"),
}
_SIZE: Final = (9.0, 3.0)  # inches
_TALL: Final = (9.0, 5.5)
_HIGHEST: Final = 4  # times the limit: how far evidence is drawn
_LEAST_SPAN: Final = timedelta(minutes=20)  # of the time axis: a first try is a few runs
_LEAST_SILENCE: Final = timedelta(days=7)
_SILENT: Final = 0.3  # share of the history: how much of a silence up to now is drawn
_LINE: Final = 12  # points from one line of text to the next
_DENSE: Final = 120  # points from which on they are drawn smaller
_CHANGED: Final = "#e69f00"
_BAND_COLOUR: Final = "#56b4e9"
#: What text and axes are drawn in, and how every figure is set.
INK: Final = "#333333"
STYLE: Final = {
    "svg.fonttype": "none",  # text stays text: small, sharp and searchable
    "svg.hashsalt": "iobands",  # the same survey gives the same file
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.edgecolor": "#999999",
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


@dataclass(frozen=True)
class _Span:
    """A time in which one band holds."""

    begin: datetime
    end: datetime
    band: Band
    provisional: bool


def time_series(series: Series, now: datetime) -> str:
    """Return an SVG of the series' values against time up to `now`, in the series' unit.

    The series has at least one sample.

    Each band is shaded from its lower to its upper quartile for as long as it was in force, with
    a line at the median and a dashed one at the floor.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.add_subplot()
        spans = _spans(series, now)
        for span in spans:
            _draw_band(axes, span)
        _draw_points(axes, series)
        _dress(axes, series, spans, now)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def evidence(series: Series, now: datetime, form: str = "svg") -> bytes:
    """Return a figure, as `svg` or `png`, of what the state of the series comes from.

    Above, the values as in `time_series`. Each lasting change is shaded from its beginning to its
    end, darker the days between which it began, with a line where it was raised. Below, the
    evidence after each run for a drop and for a rise, in nats, and the limits for watch and alarm.
    The series has at least one sample.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=_TALL, layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        spans = _spans(series, now)
        for span in spans:
            _draw_band(above, span)
        _draw_points(above, series)
        _dress(above, series, spans, now)
        above.set_xlabel("")
        _legend(above)
        above.set_title(f"{series.label}: {series.status.state.value}", loc="left", fontsize=11)
        _draw_evidence(below, series)
        following = series.status.following
        newest = series.samples["job_completion_time"].iloc[-1].to_pydatetime()
        draw_changes((above, below), following.changes if following else (), newest)
        _legend(below)
        buffer = io.BytesIO()
        metadata = {"Date": None, "Creator": None} if form == "svg" else None
        figure.savefig(buffer, format=form, metadata=metadata, dpi=120)
    return buffer.getvalue()


def _draw_evidence(axes: Axes, series: Series) -> None:
    following = series.status.following
    if following is None or not following.chart.runs:
        return
    chart = following.chart
    times = date2num(following.times)
    for values, name, colour, style in (
        (chart.down, "for a drop", MARKS[COLLAPSED][1], "-"),
        (chart.up, "for a rise", MARKS[ABOVE][1], "--"),
    ):
        axes.plot(times, values, color=colour, linewidth=1.2, linestyle=style, label=name)
    for height, name, style in ((chart.watch, "watch", ":"), (chart.limit, "alarm", "-.")):
        axes.axhline(height, color=INK, linewidth=0.9, linestyle=style, label=name)
    top = max(float(chart.down.max()), float(chart.up.max()))
    # an open alarm's evidence grows without end, and would flatten all that came before
    axes.set_ylim(0, max(1.3 * chart.limit, min(1.05 * top, _HIGHEST * chart.limit)))
    axes.set_ylabel("evidence in nats")
    axes.set_xlabel("time (UTC)")
    axes.spines[["top", "right"]].set_visible(False)


def draw_changes(
    panels: Sequence[Axes],
    changes: Sequence[Change],
    newest: datetime,
    names: Sequence[str] = (),
) -> None:
    """Draw each lasting change: when it may have begun, most likely did, was raised and ended.

    `names` are of what changed, where that is not the same.
    """
    for number, change in enumerate(changes):
        begin, end = date2num(change.since), date2num(change.ended or newest)
        interval = date2num(change.since_low), date2num(change.since_high)
        for axes in panels:
            named = axes is panels[-1] and not number
            axes.axvspan(begin, end, facecolor=_CHANGED, alpha=0.10, linewidth=0, zorder=0)
            axes.axvspan(
                *interval,
                facecolor=_CHANGED,
                alpha=0.40,
                linewidth=0,
                zorder=0,
                label="began" if named else None,
            )
            axes.axvline(
                date2num(change.raised),
                color="#a86f00",
                linewidth=1.2,
                zorder=2,
                label="raised" if named else None,
            )
        name = f"{names[number]} " if names else ""
        panels[0].annotate(
            f"{name}{change.ratio.value:.2f} ×",
            (date2num(change.raised), 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, -2 - _LINE * (number % 3)),  # neighbours would be written over each other
            textcoords="offset points",
            verticalalignment="top",
            color="#7a5000",
            fontsize=9,
        )


def _legend(axes: Axes) -> None:
    """Put the legend over the right end of a panel, where nothing is drawn."""
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=6,
        frameon=False,
        fontsize=8,
        borderaxespad=0.2,
        handlelength=1.4,
        columnspacing=1.2,
    )


def _spans(series: Series, now: datetime) -> list[_Span]:
    """Return the bands that held from the first sample to now."""
    samples, status = series.samples, series.status
    first = samples["job_completion_time"].iloc[0].to_pydatetime()
    end = _end(series, now)
    if status.band and status.provisional:
        learnt_from = samples["job_completion_time"][comparable(series.history, series.bands)]
        return [_Span(learnt_from.iloc[0].to_pydatetime(), end, status.band, True)]
    spans = []
    epochs = series.bands.epochs if series.bands else ()
    newest = samples.iloc[-1].copy()
    ends_of = [*(epoch.since for epoch in epochs[1:]), end]
    for epoch, ends in zip(epochs, ends_of, strict=False):  # no epoch has no end either
        begin = max(epoch.since, first)
        newest["job_completion_time"] = pd.Timestamp(epoch.since)
        band = published_band(series.key, newest, series.bands)
        if band and begin < min(ends, end):
            spans.append(_Span(begin, min(ends, end), band, False))
    return spans


def _end(series: Series, now: datetime) -> datetime:
    """Return where the time axis ends: now, unless the series has long been silent."""
    times = series.samples["job_completion_time"]
    first, last = times.iloc[0].to_pydatetime(), times.iloc[-1].to_pydatetime()
    return max(last, min(now, last + max(_LEAST_SILENCE, _SILENT * (last - first))))


def _draw_band(axes: Axes, span: _Span) -> None:
    times = [date2num(span.begin), date2num(span.end)]
    band = span.band
    axes.fill_between(
        times,
        band.lower_quartile,
        band.upper_quartile,
        facecolor=_BAND_COLOUR,
        edgecolor="white" if span.provisional else "none",
        hatch="///" if span.provisional else None,
        linewidth=0,
        alpha=0.28,
        zorder=1,
    )
    axes.hlines(band.median, *times, colors="#0072b2", linewidths=1.2, zorder=2)
    axes.hlines(band.floor, *times, colors="#b3123e", linewidths=1.1, linestyles="--", zorder=2)


def _draw_points(axes: Axes, series: Series) -> None:
    samples = series.samples
    times = date2num(samples["job_completion_time"].dt.tz_localize(None).to_numpy())
    values = samples["perf_value"].to_numpy(dtype=float)
    dense = len(samples) > _DENSE
    axes.plot(times, values, color="#aaaaaa", linewidth=0.5 if dense else 0.8, zorder=3)
    found = verdicts(series.key, samples, series.bands, series.status)
    for verdict, (marker, colour) in MARKS.items():
        chosen = [index for index, each in enumerate(found) if each == verdict]
        if chosen:
            axes.scatter(
                times[chosen],
                values[chosen],
                s=12 if dense else 30,
                marker=marker,
                color=colour,
                linewidths=0,
                label=verdict,
                zorder=4,
            )


def _dress(axes: Axes, series: Series, spans: Sequence[_Span], now: datetime) -> None:
    samples = series.samples
    times = samples["job_completion_time"]
    last = _end(series, now)
    first = min(times.iloc[0].to_pydatetime(), last - _LEAST_SPAN)
    margin = (last - first) * 0.02
    axes.set_xlim(date2num(first - margin), date2num(last + margin))
    tops = [span.band.upper_quartile for span in spans]
    axes.set_ylim(0, 1.12 * max(*tops, float(samples["perf_value"].max()), 0.0))
    locator = AutoDateLocator(minticks=3, maxticks=9)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    axes.set_ylabel(f"{series.key.variable} in {series.key.unit}")
    axes.set_xlabel("time (UTC)")
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
