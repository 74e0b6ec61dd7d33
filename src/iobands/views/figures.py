"""Figures of series: values against time with their bands, and the evidence of an alert.

Drawn without a display and without pyplot's global state.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from datetime import datetime, timedelta
from textwrap import shorten
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from iobands.bands.contract import AcceptedLine
from iobands.snapshot import (
    ABOVE,
    BELOW,
    COLLAPSED,
    NO_BAND,
    VALUE,
    VERDICTS,
    WITHIN,
    Alert,
    Change,
    Series,
    Snapshot,
    Verdicts,
)

#: Marker and colour of each verdict; the shapes differ for those who cannot tell the colours
#: (Okabe and Ito, "Color universal design", 2008).
MARKS: Final = {
    ABOVE: ("^", "#0072b2"),
    WITHIN: ("o", "#00775a"),
    BELOW: ("v", "#c46a00"),
    COLLAPSED: ("X", "#b3123e"),
    NO_BAND: ("o", "#777777"),
}
#: The most series of a shared alert that are drawn.
MOST_PANELS: Final = 8
_SIZE: Final = (9.0, 3.0)  # inches
_TALL: Final = (9.0, 5.5)
_HIGHEST: Final = 4  # times the threshold: how far evidence is drawn
_LEAST_SPAN: Final = timedelta(minutes=20)  # of the time axis: a first try has only a few runs
_LEAST_SILENCE: Final = timedelta(days=7)
_SILENT: Final = 0.3  # share of the history: how much of a silence up to now is drawn
_LONGEST: Final = 60  # characters of a label over a figure
_LINE: Final = 12  # points from one line of text to the next
_DENSE: Final = 120  # points from which on they are drawn smaller
_CHANGED: Final = "#e69f00"
_BAND_COLOUR: Final = "#56b4e9"
_INK: Final = "#333333"
_STYLE: Final[Any] = {  # matplotlib types each of its settings
    "svg.fonttype": "none",  # text stays text: small, sharp and searchable
    "svg.hashsalt": "iobands",  # the same site gives the same file
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.edgecolor": "#999999",
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}


def time_series(series: Series, now: datetime, form: str = "svg") -> bytes:
    """Return the values of a series, which has a sample, against time up to `now`.

    `form` is `svg`, `png` or `pdf`.

    Each band is shaded from its lower to its upper quartile for as long as it was in force, with
    a line at the median and a dashed one at the floor; lasting changes are shaded too.
    """
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.add_subplot()
        _draw_values(axes, series, now)
        _title(axes, series)
        return _rendered(figure, form)


def evidence(site: Snapshot, found: Alert | Series, form: str = "svg") -> bytes | None:
    """Return a figure, as `svg` or `png`, of a series or of the series of an alert.

    For a series, the upper panel has the values and each change, from when it may have begun to its
    end, and when the alert was raised. The lower panel has the evidence for a drop and for a rise
    after each run, in nats. For an alert, the values of its first members. None without a sample.
    """
    with mpl.rc_context(_STYLE):
        if isinstance(found, Series):
            if not found.status.runs:
                return None
            figure = Figure(figsize=_TALL, layout="constrained")
            above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
            _draw_values(above, found, site.now)
            above.set_xlabel("")
            _draw_evidence(below, found)
            _legend(above)
            _legend(below)
            _title(above, found, pad=2 * _LINE)  # above the legend
            return _rendered(figure, form)
        every = [each.series for each in found.members if each.series.status.runs][:MOST_PANELS]
        if not every:
            return None
        width, height = _SIZE
        figure = Figure(figsize=(width, height * len(every)), layout="constrained")
        panels = figure.subplots(len(every), 1, sharex=True, squeeze=False)[:, 0]
        for axes, series in zip(panels, every, strict=True):
            _draw_values(axes, series, site.now)
            axes.set_xlabel("time (UTC)" if axes is panels[-1] else "")
            _title(axes, series)
        return _rendered(figure, form)


def acceptance_figure(accepted: AcceptedLine) -> bytes:
    """Return a figure of a line of a contract, as SVG: the runs that count, and their evidence.

    The upper panel has the rates with the promise and the promise less its tolerance. The lower one
    has the evidence after each run, and what it takes to call the line met or missed.
    """
    promise, decision = accepted.line.promise, accepted.decision
    at = range(1, decision.runs + 1)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=_TALL, layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        rates = [run[VALUE] for run in accepted.counted]
        above.plot(at, rates, "o", color=MARKS[WITHIN][1], label="runs")
        least = promise.rate * (1 - promise.tolerance)
        above.axhline(promise.rate, color=_INK, linewidth=1.2, label="promised")
        above.axhline(least, color=_INK, linewidth=1, linestyle="--", label="less the tolerance")
        above.set_ylim(0, 1.12 * max([promise.rate, *rates]))
        above.set_ylabel(f"{accepted.line.variable} in {promise.unit}")
        below.plot(at, decision.evidence, "o-", color=_INK, linewidth=1, markersize=4)
        for height, name, verdict in (
            (decision.to_meet, "met", ABOVE),
            (decision.to_miss, "missed", COLLAPSED),
        ):
            below.axhline(height, color=MARKS[verdict][1], linestyle="-.", label=name)
        below.set_ylabel("evidence in nats")
        below.set_xlabel("run")
        below.xaxis.set_major_locator(MaxNLocator(integer=True))
        for axes in (above, below):
            axes.spines[["top", "right"]].set_visible(False)
            _legend(axes)
        name = shorten(accepted.line.name, _LONGEST, placeholder=" …").replace("$", r"\$")
        above.set_title(f"{name}: {decision.outcome.value}", loc="left", fontsize=11, pad=2 * _LINE)
        return _rendered(figure, "svg")


def _rendered(figure: Figure, form: str) -> bytes:
    buffer = io.BytesIO()
    # without what makes two files of the same figure differ
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with warnings.catch_warnings():
        # The reader's browser has the glyphs that our font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure.savefig(buffer, format=form, metadata=metadata, dpi=120)
    return buffer.getvalue()


def _draw_values(axes: Axes, series: Series, now: datetime) -> None:
    known, evidence = series.verdicts, series.status.evidence
    _draw_bands(axes, known, _end(series, now))
    _draw_points(axes, series, known)
    _draw_changes(axes, evidence.changes if evidence else (), series.history.last)
    _dress(axes, series, known, now)


def _draw_evidence(axes: Axes, series: Series) -> None:
    chart = series.status.evidence
    if chart is None or not len(chart.rows):
        return
    times = date2num(series.judged[0])
    for values, name, colour, style in (
        (chart.down, "for a drop", MARKS[COLLAPSED][1], "-"),
        (chart.up, "for a rise", MARKS[ABOVE][1], "--"),
    ):
        axes.plot(times, values, color=colour, linewidth=1.2, linestyle=style, label=name)
    for height, name, style in ((chart.watch, "watch", ":"), (chart.threshold, "alert", "-.")):
        axes.axhline(height, color=_INK, linewidth=0.9, linestyle=style, label=name)
    top = max(float(chart.down.max()), float(chart.up.max()))
    # The evidence for an open change grows without limit, and would flatten everything before.
    axes.set_ylim(0, max(1.3 * chart.threshold, min(1.05 * top, _HIGHEST * chart.threshold)))
    axes.set_ylabel("evidence in nats")
    axes.set_xlabel("time (UTC)")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_changes(axes: Axes, changes: Sequence[Change], newest: datetime) -> None:
    """Draw each change: when it may have begun, was raised and ended."""
    for number, change in enumerate(changes):
        begin, end = date2num(change.since), date2num(change.ended or newest)
        low, high = date2num(change.since_low), date2num(change.since_high)
        style: dict[str, Any] = {"facecolor": _CHANGED, "linewidth": 0, "zorder": 0}
        axes.axvspan(begin, end, alpha=0.10, **style)
        axes.axvspan(low, high, alpha=0.40, label="" if number else "began", **style)
        raised = date2num(change.raised)
        name = "" if number else "raised"
        axes.axvline(raised, color="#a86f00", linewidth=1.2, zorder=2, label=name)
        axes.annotate(
            f"{change.ratio.value:.2f} ×",
            (raised, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, -2 - _LINE * (number % 3)),  # neighbours would be written over each other
            textcoords="offset points",
            verticalalignment="top",
            color="#7a5000",
            fontsize=9,
        )


def _title(axes: Axes, series: Series, pad: float | None = None) -> None:
    label = shorten(series.label, _LONGEST, placeholder=" …")
    axes.set_title(f"{label}: {series.status.state.value}", loc="left", fontsize=11, pad=pad)


def _legend(axes: Axes) -> None:
    """Put the legend over the right end of a panel, where nothing is drawn."""
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=7,
        frameon=False,
        fontsize=8,
        borderaxespad=0.2,
        handlelength=1.4,
        columnspacing=1.2,
    )


def _end(series: Series, now: datetime) -> datetime:
    """Return where the time axis ends: now, unless the series has long been silent."""
    first, last = series.history.first, series.history.last
    return max(last, min(now, last + max(_LEAST_SILENCE, _SILENT * (last - first))))


def _draw_bands(axes: Axes, known: Verdicts, end: datetime) -> None:
    """Draw each band for as long as it holds; a provisional one is hatched."""
    begins = date2num(np.array([begin for begin, _ in known.segments], "datetime64[s]"))
    ends = [*begins[1:], date2num(end)]
    for (_, place), begin, stop in zip(known.segments, begins, ends, strict=True):
        if place < 0:
            continue
        band = known.bands[place]
        axes.fill_between(
            [begin, stop],
            band.lower_quartile,
            band.upper_quartile,
            facecolor=_BAND_COLOUR,
            edgecolor="white" if band.is_own else "none",
            hatch="///" if band.is_own else None,
            linewidth=0,
            alpha=0.28,
            zorder=1,
        )
        axes.hlines(band.median, begin, stop, colors="#0072b2", linewidths=1.2, zorder=2)
        axes.hlines(
            band.floor, begin, stop, colors="#b3123e", linewidths=1.1, linestyles="--", zorder=2
        )


def _draw_points(axes: Axes, series: Series, known: Verdicts) -> None:
    history = series.history
    times = date2num(history.times)
    dense = len(history) > _DENSE
    axes.plot(times, history.values, color="#aaaaaa", linewidth=0.5 if dense else 0.8, zorder=3)
    for verdict, (marker, colour) in MARKS.items():
        of_verdict = known.codes == VERDICTS.index(verdict)
        if of_verdict.any():
            axes.scatter(
                times[of_verdict],
                history.values[of_verdict],
                s=np.where(history.asked, 0.35, 1)[of_verdict] * (12 if dense else 30),
                marker=marker,
                color=colour,
                linewidths=0,
                label=verdict,
                zorder=4,
            )


def _dress(axes: Axes, series: Series, known: Verdicts, now: datetime) -> None:
    last = _end(series, now)
    first = min(series.history.first, last - _LEAST_SPAN)
    margin = (last - first) * 0.02
    axes.set_xlim(date2num(first - margin), date2num(last + margin))
    tops = [band.upper_quartile for band in known.bands]
    axes.set_ylim(0, 1.12 * max(*tops, float(np.nanmax(series.history.values)), 0.0))
    locator = AutoDateLocator(minticks=3, maxticks=9)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    axes.set_ylabel(f"{series.key.variable} in {series.key.unit}")
    axes.set_xlabel("time (UTC)")
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
