"""Figures of series: values against time with their bands, and the evidence after each run.

They need no display, and not the global state of pyplot.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from textwrap import shorten
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from iobands import snapshot
from iobands.bands.contract import AcceptedLine
from iobands.snapshot import Alert, Change, History, Series, Snapshot, Verdicts

# Marker and colour of each verdict; the shapes are for readers who cannot tell the colours apart
# (Okabe and Ito, "Color universal design", 2008).
_MARKS: Final = {
    snapshot.ABOVE: ("^", "#0072b2"),
    snapshot.WITHIN: ("o", "#00775a"),
    snapshot.BELOW: ("v", "#c46a00"),
    snapshot.COLLAPSED: ("X", "#b3123e"),
    snapshot.NO_BAND: ("o", "#777777"),
}
# The most members of an alert that are drawn.
_MOST_PANELS: Final = 8
_SIZE: Final = (9.0, 3.0)  # inches
_TALL: Final = (9.0, 5.5)
_HIGHEST: Final = 4  # times the threshold, up to which evidence is drawn
_LEAST_SPAN: Final = timedelta(minutes=20)  # of the time axis, for a series with only a few runs
_LEAST_SILENCE: Final = timedelta(days=7)
_SILENT: Final = 0.3  # share of the history, up to which a silence until now is drawn
_LONGEST: Final = 80  # characters of a label above a figure
_LINE: Final = 12  # points from one line of text to the next
_RIGHT: Final = 0.9  # share of the time axis, from which a label is left of its line
_DENSE: Final = 120  # points; more than this are drawn smaller
_CHANGED: Final = "#e69f00"
_BAND_COLOUR: Final = "#56b4e9"
_INK: Final = "#333333"
_STYLE: Final = Path(__file__).with_suffix(".mplstyle")


def evidence(site: Snapshot, found: Alert | Series, form: str = "svg") -> bytes | None:
    """Return a figure of an alert or a series, as `svg` or `png`; None without a sample.

    For a series, it shows the values and, below, the evidence after each run; for an alert, the
    values of its first members.
    """
    if isinstance(found, Alert):
        drawn = [each.series for each in found.members if each.series.status.runs]
        number = "" if found.number is None else f"{found.number} "
        title = f"Alert {number}{found.subject}: {found.severity.value}"
        return time_series(drawn[:_MOST_PANELS], site.now, form, title) if drawn else None
    if not found.status.runs:
        return None
    with mpl.rc_context(fname=_STYLE):
        figure, above, below = _two_panels()
        _draw_values(above, found, site.now)
        _draw_evidence(below, found)
        _legend(above, below)
        return _rendered(figure, form)


def time_series(drawn: Sequence[Series], now: datetime, form: str, title: str = "") -> bytes:
    """Return a figure as `svg`, `png` or `pdf`, with a panel of the values of each series.

    Each series needs a sample. A panel goes up to `now`, unless the series has long been silent.
    """
    width, height = _SIZE
    with mpl.rc_context(fname=_STYLE):
        figure = Figure(figsize=(width, height * len(drawn)), layout="constrained")
        if title:
            figure.suptitle(title)
        panels = figure.subplots(len(drawn), 1, sharex=True, squeeze=False)[:, 0]
        for axes, series in zip(panels, drawn, strict=True):
            _draw_values(axes, series, now)
            _legend(axes)
        panels[-1].set_xlabel("time (UTC)")
        return _rendered(figure, form)


def acceptance_figure(accepted: AcceptedLine) -> bytes:
    """Return an SVG of a line of a contract: the rates of the runs that count, and the evidence."""
    promise, decision = accepted.line.promise, accepted.decision
    at = range(1, decision.runs + 1)
    with mpl.rc_context(fname=_STYLE):
        figure, above, below = _two_panels()
        rates = [run[snapshot.VALUE] for run in accepted.counted]
        above.plot(at, rates, "o", color=_MARKS[snapshot.WITHIN][1], label="runs")
        least = promise.rate * (1 - promise.tolerance)
        above.axhline(promise.rate, color=_INK, linewidth=1.2, label="promised")
        above.axhline(least, color=_INK, linewidth=1, linestyle="--", label="less the tolerance")
        what = f"{accepted.line.variable} in {promise.unit}"
        above.set(ylim=(0, 1.12 * max([promise.rate, *rates])), ylabel=what)
        below.plot(at, decision.evidence, "o-", color=_INK, linewidth=1, markersize=4)
        for height, name, verdict in (
            (decision.to_meet, "met", snapshot.ABOVE),
            (decision.to_miss, "missed", snapshot.COLLAPSED),
        ):
            below.axhline(height, color=_MARKS[verdict][1], linestyle="-.", label=name)
        below.set(ylabel="evidence in nats", xlabel="run")
        below.xaxis.set_major_locator(MaxNLocator(integer=True))
        _legend(above, below)
        _title(above, accepted.line.name, decision.outcome.value)
        return _rendered(figure, "svg")


def _two_panels() -> tuple[Figure, Axes, Axes]:
    figure = Figure(figsize=_TALL, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    return figure, above, below


def _rendered(figure: Figure, form: str) -> bytes:
    buffer = io.BytesIO()
    # no dates, so that the same figure always gives the same file
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with warnings.catch_warnings():
        # The reader's browser has the glyphs that matplotlib's font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure.savefig(buffer, format=form, metadata=metadata, dpi=120)
    return buffer.getvalue()


def _draw_values(axes: Axes, series: Series, now: datetime) -> None:
    history, known, evidence = series.history, series.verdicts, series.status.evidence
    first, last = history.first, history.last
    # up to now, but not to the end of a long silence
    end = max(last, min(now, last + max(_LEAST_SILENCE, _SILENT * (last - first))))
    _draw_bands(axes, known, end)
    _draw_points(axes, history, known)
    first = min(first, end - _LEAST_SPAN)
    margin = (end - first) * 0.02
    tops = [band.upper_quartile for band in known.bands]
    axes.set(
        xlim=(date2num(first - margin), date2num(end + margin)),
        ylim=(0, 1.12 * max(*tops, float(np.nanmax(history.values)), 0.0)),
        ylabel=f"{series.key.variable} in {series.key.symbol}",
    )
    _draw_changes(axes, evidence.changes if evidence else (), last)
    locator = AutoDateLocator("UTC", minticks=3, maxticks=9)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, "UTC"))
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.7, zorder=0)
    _title(axes, series.label, series.status.state.value)


def _draw_evidence(axes: Axes, series: Series) -> None:
    chart = series.status.evidence
    if chart is None or not len(chart.rows):
        return
    times = date2num(series.judged[0])
    for values, name, colour, style in (
        (chart.down, "for a drop", _MARKS[snapshot.COLLAPSED][1], "-"),
        (chart.up, "for a rise", _MARKS[snapshot.ABOVE][1], "--"),
    ):
        axes.plot(times, values, color=colour, linewidth=1.2, linestyle=style, label=name)
    for height, name, style in ((chart.watch, "watch", ":"), (chart.threshold, "alert", "-.")):
        axes.axhline(height, color=_INK, linewidth=0.9, linestyle=style, label=name)
    top = max(float(chart.down.max()), float(chart.up.max()))
    # The evidence for an open change grows without limit and would flatten all that came before.
    highest = max(1.3 * chart.threshold, min(1.05 * top, _HIGHEST * chart.threshold))
    axes.set(ylim=(0, highest), ylabel="evidence in nats", xlabel="time (UTC)")


def _draw_changes(axes: Axes, changes: Sequence[Change[datetime]], newest: datetime) -> None:
    for number, change in enumerate(changes):
        began, name = ("", "") if number else ("began", "raised")  # once in the legend
        low, high, raised = map(date2num, (change.since_low, change.since_high, change.raised))
        begin, end = date2num(change.began), date2num(change.ended or newest)
        if change.kind is snapshot.State.SLIDING:
            low = high = begin
        style: dict[str, Any] = {"facecolor": _CHANGED, "linewidth": 0, "zorder": 0}
        axes.axvspan(begin, end, alpha=0.10, **style)
        axes.axvspan(low, high, alpha=0.40, label=began, **style)
        axes.axvline(raised, color="#a86f00", linewidth=1.2, zorder=2, label=name)
        left, right = axes.get_xlim()
        is_last = raised > left + _RIGHT * (right - left)
        axes.annotate(
            f"{change.size.value:.2g} ×" if change.is_of_level else change.kind.value,
            (raised, 1.0),
            xycoords=("data", "axes fraction"),
            # on three heights, as neighbours would overlap
            xytext=(-3 if is_last else 3, -2 - _LINE * (number % 3)),
            textcoords="offset points",
            horizontalalignment="right" if is_last else "left",
            verticalalignment="top",
            color="#7a5000",
            fontsize=9,
        )


def _title(axes: Axes, label: str, state: str) -> None:
    title = f"{shorten(label, _LONGEST, placeholder=' …')}: {state}"
    axes.set_title(title, pad=2 * _LINE)  # above the legend


def _legend(*panels: Axes) -> None:
    """Put a legend over the right end of each panel, where nothing is drawn."""
    for axes in panels:
        axes.legend(bbox_to_anchor=(1.0, 1.0), ncols=10, columnspacing=1.2)


def _draw_bands(axes: Axes, known: Verdicts, end: datetime) -> None:
    """Draw each band over the time in which it holds, hatched if it is learned."""
    begins = date2num(np.array([begin for begin, _ in known.segments], "datetime64[s]"))
    ends = [*begins[1:], date2num(end)]
    says = ["quartiles", "median", "floor"]  # once in the legend
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
            label=says[0],
        )
        line: dict[str, Any] = {"linewidths": 1.2, "zorder": 2}
        axes.hlines(band.median, begin, stop, "#0072b2", label=says[1], **line)
        axes.hlines(band.floor, begin, stop, "#b3123e", "--", label=says[2], **line)
        says = ["", "", ""]


def _draw_points(axes: Axes, history: History, known: Verdicts) -> None:
    times = date2num(history.times)
    dense = len(history) > _DENSE
    # no line across a long silence, about which nothing is known
    steps = np.diff(times)
    least = max(_LEAST_SILENCE.days, 5 * float(np.median(steps)) if len(steps) else 0)
    silent = np.flatnonzero(steps > least) + 1
    line = np.insert(times, silent, np.nan), np.insert(history.values, silent, np.nan)
    axes.plot(*line, color="#aaaaaa", linewidth=0.5 if dense else 0.8, zorder=3)
    for verdict, (marker, colour) in _MARKS.items():
        of_verdict = known.codes == snapshot.VERDICTS.index(verdict)
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
