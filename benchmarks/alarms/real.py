"""A year of a real site, with every alarm drawn, so that a person can judge each of them.

The file is a table with the columns time, file_system, application, pattern, operation and
bandwidth_gib_s, one row a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from iobands.charts import DOWN, Alarm, Chart, follow

_KEYS: Final = ["file_system", "application", "pattern", "operation"]
_FEWEST: Final = 60
_DAYS: Final = 365.25
_COLUMNS: Final = 2


@dataclass(frozen=True)
class Followed:
    """A series and its chart."""

    name: str
    times: pd.Series
    values: np.ndarray
    chart: Chart

    @property
    def years(self) -> float:
        """How long the series is."""
        return (self.times.iloc[-1] - self.times.iloc[0]) / pd.Timedelta(days=_DAYS)

    def describe(self, alarm: Alarm) -> str:
        """Return a line that tells of `alarm`."""
        when = self.times.iloc
        until = "open" if alarm.ended is None else f"to {when[alarm.ended]:%Y-%m-%d}"
        ratio = alarm.ratio
        return (
            f"{self.name}: {alarm.direction}, since {when[alarm.onset]:%Y-%m-%d}"
            f" ({when[alarm.onset_low]:%m-%d} to {when[alarm.onset_high]:%m-%d}), raised"
            f" {alarm.raised - alarm.onset + 1} runs later, {until}, level x {ratio.value:.2f}"
            f" ({ratio.low:.2f} to {ratio.high:.2f})"
        )


def follow_file(path: Path, limit: float) -> list[Followed]:
    """Return every series of the table at `path` that has 60 runs or more."""
    table = pd.read_csv(path, parse_dates=["time"])
    table = table[table["bandwidth_gib_s"] > 0].sort_values("time", kind="stable")
    found = []
    for key, rows in table.groupby(_KEYS, sort=True):
        if len(rows) < _FEWEST:
            continue
        values = rows["bandwidth_gib_s"].to_numpy(dtype=float)
        chart = follow(values, limit=limit)
        found.append(Followed(" ".join(map(str, key)), rows["time"], values, chart))
    return found


def alarms_a_year(followed: Sequence[Followed], direction: str) -> float:
    """Return how many alarms a year a series there were in `direction`."""
    years = sum(series.years for series in followed)
    alarms = [alarm for series in followed for alarm in series.chart.alarms]
    return sum(alarm.direction == direction for alarm in alarms) / years


def draw(followed: Sequence[Followed], path: Path) -> None:
    """Draw every series with its alarms into one picture at `path`."""
    import matplotlib as mpl  # noqa: PLC0415  loaded only for a picture

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    rows = -(-len(followed) // _COLUMNS)
    figure, axes = plt.subplots(rows, _COLUMNS, figsize=(17, 2.6 * rows), squeeze=False)
    for axis, series in zip(axes.flat, followed, strict=False):
        runs = np.arange(len(series.values))
        axis.semilogy(runs, series.values, ".", color="0.35", markersize=4)
        for alarm in series.chart.alarms:
            color = "tab:red" if alarm.direction == DOWN else "tab:green"
            end = len(runs) if alarm.ended is None else alarm.ended
            axis.axvspan(alarm.onset, end, color=color, alpha=0.15)
            axis.axvspan(alarm.onset_low, alarm.onset_high + 1, color=color, alpha=0.3)
            axis.axvline(alarm.raised, color=color, linewidth=1)
            top = series.values.max()
            axis.text(alarm.raised + 1, top, f"× {alarm.ratio.value:.2f}", color=color, va="top")
        axis.set_title(series.name, fontsize=9, loc="left")
    for axis in axes.flat[len(followed) :]:
        axis.set_axis_off()
    figure.tight_layout()
    figure.savefig(path, dpi=70)
    plt.close(figure)
