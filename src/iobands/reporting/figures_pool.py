"""Figures of pools: what their series did together, and the evidence for it.

May know: surveys and matplotlib. Uses no display and no global state of pyplot.
"""

from __future__ import annotations

import io
from datetime import datetime
from typing import Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure

from iobands.reporting.explain_pool import PoolExplanation
from iobands.reporting.figures import INK, STYLE, draw_changes
from iobands.status.states import state_of

_SIZE: Final = (9.0, 6.0)  # inches
_NEWEST: Final = np.timedelta64(365, "D")
_HIGHEST: Final = 4  # times the limit: how far evidence is drawn
_MOVED, _STILL = "#b3123e", "#8a8f96"
_VARIABLE_COLOURS: Final = ("#b3123e", "#0072b2", "#00775a", "#c46a00", "#57238a")


def pool_evidence(told: PoolExplanation, now: datetime, form: str = "svg") -> bytes:
    """Return a figure, as `svg` or `png`, of the newest year of a pool.

    Above, each run over the usual level of its series, in colour those of series that moved, and
    the middle of each session; below, the evidence for a drop of each variable's pooled chart.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=_SIZE, layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        first = np.datetime64(now.replace(tzinfo=None), "ns") - _NEWEST
        _draw_runs(above, told, first)
        _draw_evidence(below, told, first)
        for axes in (above, below):
            axes.spines[["top", "right"]].set_visible(False)
        changes = told.common.changes if told.common else {}
        draw_changes((above, below), tuple(changes.values()), now, tuple(changes))
        below.legend(loc="upper left", ncols=3, frameon=False, fontsize=8)
        state = state_of(told.common.change).value if told.common else "nothing in common"
        above.set_title(f"{told.pool.name}: {state}", loc="left", fontsize=11)
        locator = AutoDateLocator(minticks=3, maxticks=9)
        below.xaxis.set_major_locator(locator)
        below.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        below.set_xlabel("time (UTC)")
        buffer = io.BytesIO()
        metadata = {"Date": None, "Creator": None} if form == "svg" else None
        figure.savefig(buffer, format=form, metadata=metadata, dpi=120)
    return buffer.getvalue()


def _draw_runs(axes: Axes, told: PoolExplanation, first: np.datetime64) -> None:
    moved = set(told.common.keys) if told.common else set()
    highest = 1.5
    middle: dict[np.datetime64, list[float]] = {}
    for pooled in told.pooled:
        for key, part, times in zip(pooled.keys, pooled.parts, pooled.moments, strict=True):
            recent = (times >= first) & ~np.isnan(part.residuals)
            ratios = np.exp(part.residuals[recent])
            if not ratios.size:
                continue
            mine = key in moved
            axes.plot(
                date2num(times[recent]),
                ratios,
                marker="o" if mine else ".",
                markersize=3,
                linestyle="none",
                color=_MOVED if mine else _STILL,
                alpha=0.55 if mine else 0.35,
                markeredgewidth=0,
                zorder=3 if mine else 2,
            )
            highest = max(highest, float(np.quantile(ratios, 0.995)))
            if mine or not moved:
                for time, ratio in zip(times[recent].astype("datetime64[D]"), ratios, strict=True):
                    middle.setdefault(time, []).append(float(ratio))
    days = sorted(middle)
    if days:
        axes.plot(
            date2num(np.array(days)) + 0.5,
            [float(np.median(middle[day])) for day in days],
            color=_MOVED if moved else INK,
            linewidth=1.3,
            label=f"the middle of the day{', of the series that moved' if moved else ''}",
            zorder=4,
        )
    if moved:
        axes.plot([], [], "o", markersize=4, color=_MOVED, alpha=0.6, label="series that moved")
        if len(moved) < sum(len(pooled.keys) for pooled in told.pooled):
            axes.plot([], [], "o", markersize=4, color=_STILL, alpha=0.6, label="that did not")
    axes.axhline(1, color=INK, linewidth=0.8, linestyle=":", zorder=1)
    axes.set_ylim(0, 1.1 * highest)
    axes.set_ylabel("run over the usual level")
    if days:
        axes.legend(loc="lower left", ncols=3, frameon=False, fontsize=8)


def _draw_evidence(axes: Axes, told: PoolExplanation, first: np.datetime64) -> None:
    top, limit = 0.0, 0.0
    following = told.series[0].status.following if told.series else None
    if following:
        limit = following.budget.limit
        axes.axhline(limit, color=INK, linewidth=0.9, linestyle="-.", label="alarm")
    for pooled, colour in zip(told.pooled, _VARIABLE_COLOURS * len(told.pooled), strict=False):
        recent = pooled.times >= first
        for values, style, name in (
            (pooled.chart.down, "-", f"{pooled.variable}, for a drop"),
            (pooled.chart.up, "--", f"{pooled.variable}, for a rise"),
        ):
            shown = values[recent]
            if shown.size:
                times = date2num(pooled.times[recent])
                axes.plot(times, shown, color=colour, linestyle=style, linewidth=1.2, label=name)
                top = max(top, float(shown.max()))
    axes.set_ylim(0, max(1.3 * limit, min(1.05 * top, _HIGHEST * limit), 1.0))
    axes.set_ylabel("evidence in nats")
