"""The page of the real data: every alarm of a real site, drawn, so that a person can judge it.

May know: what the replay told, and matplotlib.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import pandas as pd
import yaml
from iobands.status.following import ratio_text, span_text
from iobands.status.survey import Series
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmarks.alarms.replay import Alarm, Replay
from benchmarks.alarms.report import table
from iobands.detection import DOWN, UP
from iobands.model.series import SeriesKey

TEMPLATES: Final = Path(__file__).resolve().parents[1] / "templates"
#: How the table is read, as a site would say it.
ADAPTER: Final = TEMPLATES / "real-data-adapter.yaml"
#: What a person said of each alarm after looking at it.
JUDGED: Final = TEMPLATES / "real-data-judged.yaml"
_COLUMNS: Final = 2
_MONTH: Final = timedelta(days=30)
_COLOURS: Final = {DOWN: "#b3123e", UP: "#0072b2"}
_WORDS: Final = {DOWN: "degraded", UP: "improved"}
_LATE: Final = 70  # days before the end from which on there is no room for a text
_DRAWN: Final = (-0.35, 0.2)  # how far beyond its runs a panel reaches, in decades


class RealPage:
    """Everything that the page says, as texts and pictures."""

    def __init__(self, told: Replay, source: Path) -> None:
        """`source` is where the data came from, to be named on the page."""
        self.told = told
        self.source = source
        self.series: dict[SeriesKey, Series] = {each.key: each for each in told.survey.series}
        self.numbers = {alarm: number for number, alarm in enumerate(told.alarms, 1)}

    def text(self, date: str) -> str:
        """Return the page."""
        environment = Environment(
            loader=FileSystemLoader(TEMPLATES),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        years = self.told.all_years
        days = [day for each in self.told.days.values() for day in each]
        return environment.get_template("real-data.md").render(
            date=date,
            source=self.source.name,
            series=len(self.series),
            years=years,
            runs=sum(len(each.samples) for each in self.series.values()),
            limits=sorted(self.told.limits),
            degraded=self._a_year(DOWN),
            improved=self._a_year(UP),
            number=Counter(alarm.first.direction for alarm in self.told.alarms),
            watches=sum(len(self.told.watches(key)) for key in self.series) / years,
            transients=sum(len(self.told.transients(key)) for key in self.series) / years,
            under_quartile=sum(day.under_quartile for day in days) / years,
            under_reference=sum(day.under_reference for day in days) / years,
            missed=judged().missed,
            watched=judged().watched,
            rates=self.rates(),
            alarms=self.alarms(),
            common=self.common(),
            rises=self.rises(),
            pictures=[(name, picture_name(name)) for name in self.file_systems],
        )

    @property
    def file_systems(self) -> list[str]:
        """The names of the file systems, in order."""
        return list(dict.fromkeys(key.file_system or "none" for key in self.series))

    def _a_year(self, direction: str) -> float:
        alarms = sum(alarm.first.direction == direction for alarm in self.told.alarms)
        return alarms / self.told.all_years

    def rates(self) -> str:
        """What each way of judging says, a series."""
        rows = []
        for key, series in self.series.items():
            years, days = self.told.years(key), self.told.days[key]
            alarms = [a for a in self.told.alarms if a.key == key]
            watched = self.told.watches(key)
            found = [sum(a.first.direction == name for a in alarms) for name in (DOWN, UP)]
            counts = [
                len(watched),
                len(self.told.transients(key)),
                sum(day.under_reference for day in days),
                sum(day.under_quartile for day in days),
            ]
            rows.append(
                [
                    series.label,
                    str(len(days)),
                    *(str(number) for number in found),
                    *(f"{number / years:.1f}" for number in counts),
                ]
            )
        head = ["series", "days with runs", "degraded", "improved", "watch a year"]
        head += [
            "collapses a year",
            "under median − 30 % a year",
            "under the lower quartile a year",
        ]
        return table(head, rows)

    def alarms(self) -> str:
        """Every alarm, and what a person saw."""
        said = judged().alarms
        rows = []
        for alarm, number in self.numbers.items():
            first, last = alarm.first, alarm.last
            label = self.series[alarm.key].label
            rows.append(
                [
                    f"{number}",
                    f"{label} {_WORDS[first.direction]}",
                    span_text(first.since, first.since_low, first.since_high),
                    f"{first.raised:%Y-%m-%d}",
                    ratio_text(first.ratio),
                    ratio_text(last.ratio),
                    f"{last.ended:%Y-%m-%d}" if last.ended else "open",
                    said.get(mark(label, alarm), "not looked at yet"),
                ]
            )
        head = ["", "what", "since, as told first", "raised", "ratio then", "ratio in the end"]
        return table([*head, "until", "what a person sees"], rows)

    def rises(self) -> list[str]:
        """Return when each file system was told to collapse more often than before."""
        return [
            f"{name}: {_spans(days)}" if days else f"{name}: never"
            for name in self.file_systems
            for days in [self.told.rises.get(name, [])]
        ]

    def common(self) -> str:
        """The alarms of several series together."""
        rows = [
            [
                f"{common.name} {_WORDS[common.first.direction]}",
                span_text(common.first.since, common.first.since_low, common.first.since_high),
                f"{common.first.raised:%Y-%m-%d}",
                ratio_text(common.first.ratio),
                str(len(common.keys)),
            ]
            for common in self.told.common
        ]
        return table(["what", "since", "raised", "ratio", "series that speak for it"], rows)

    def draw(self, directory: Path) -> None:
        """Draw a picture of each file system into `directory`."""
        import matplotlib as mpl  # noqa: PLC0415  loaded only for a picture
        from matplotlib.figure import Figure  # noqa: PLC0415

        for name in self.file_systems:
            chosen = [key for key in self.series if (key.file_system or "none") == name]
            rows = -(-len(chosen) // _COLUMNS)
            with mpl.rc_context({"font.size": 9, "axes.edgecolor": "#999999"}):
                figure = Figure(figsize=(15, 2.9 * rows))
                axes = figure.subplots(rows, _COLUMNS, squeeze=False)
                for axis in axes.flat[len(chosen) :]:
                    axis.set_axis_off()
                for axis, key in zip(axes.flat, chosen, strict=False):
                    self._draw_series(axis, key)
                # constrained_layout gives way before log axes of so many panels
                figure.subplots_adjust(0.045, 0.03, 0.995, 0.97, wspace=0.08, hspace=0.32)
                path = directory / picture_name(name)
                figure.savefig(path, dpi=75, metadata={"Software": None})

    def _draw_series(self, axis: object, key: SeriesKey) -> None:
        from matplotlib.axes import Axes  # noqa: PLC0415
        from matplotlib.dates import ConciseDateFormatter, MonthLocator, date2num  # noqa: PLC0415
        from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter  # noqa: PLC0415

        assert isinstance(axis, Axes)
        series = self.series[key]
        values = series.samples["perf_value"].to_numpy(dtype=float)
        times = date2num(series.samples["job_completion_time"].dt.tz_localize(None).to_numpy())
        axis.semilogy(times, values, ".", color="0.35", markersize=3.5)
        collapsed = [date2num(day.when.replace(tzinfo=None)) for day in self.told.transients(key)]
        height = pd.Series(values, index=times)
        axis.plot(collapsed, height.asof(collapsed), "x", color="#c46a00", markersize=5)
        low, high = values.min() * 10 ** _DRAWN[0], values.max() * 10 ** _DRAWN[1]
        axis.set_ylim(low, high)
        stretches = self.told.watches(key)
        watched = [date2num(day.when.replace(tzinfo=None)) for days in stretches for day in days]
        axis.plot(watched, [low] * len(watched), "|", color="#e69f00", markersize=12, clip_on=False)
        for alarm, number in self.numbers.items():
            if alarm.key == key:
                self._draw_alarm(axis, alarm, number, times[-1])
        axis.set_title(series.label, loc="left", fontsize=10)
        axis.set_ylabel(key.unit)
        axis.xaxis.set_major_locator(MonthLocator())
        axis.xaxis.set_major_formatter(ConciseDateFormatter(axis.xaxis.get_major_locator()))
        axis.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.spines[["top", "right"]].set_visible(False)

    def _draw_alarm(self, axis: object, alarm: Alarm, number: int, last: float) -> None:
        from matplotlib.axes import Axes  # noqa: PLC0415
        from matplotlib.dates import date2num  # noqa: PLC0415

        assert isinstance(axis, Axes)
        first, colour = alarm.first, _COLOURS[alarm.first.direction]
        end = date2num(alarm.last.ended) if alarm.last.ended else last
        axis.axvspan(date2num(first.since), end, color=colour, alpha=0.10, linewidth=0)
        interval = (date2num(first.since_low), date2num(first.since_high))
        axis.axvspan(*interval, color=colour, alpha=0.25, linewidth=0)
        axis.axvline(date2num(first.since), color=colour, linewidth=0.8, linestyle=":")
        axis.axvline(date2num(first.raised), color=colour, linewidth=1.4)
        is_late = last - date2num(first.raised) < _LATE
        axis.annotate(
            f"{number}: {ratio_text(alarm.last.ratio)}",
            (date2num(first.raised), 0.04 + 0.1 * (number % 2)),  # two may be close together
            xycoords=("data", "axes fraction"),
            xytext=(-3 if is_late else 3, 0),
            textcoords="offset points",
            horizontalalignment="right" if is_late else "left",
            color=colour,
            fontsize=9,
        )


def _spans(days: Sequence[datetime]) -> str:
    """Return days as spans; those less than a month apart make one."""
    spans = [[days[0], days[0]]]
    for day in days[1:]:
        if day - spans[-1][1] > _MONTH:
            spans.append([day, day])
        spans[-1][1] = day
    return ", ".join(f"{begin:%Y-%m-%d} to {end:%Y-%m-%d}" for begin, end in spans)


@dataclass(frozen=True)
class Judged:
    """What a person said: of each alarm, by its mark, of what no alarm said, and of `watch`."""

    alarms: Mapping[str, str]
    missed: Sequence[str]
    watched: Sequence[str]


def judged() -> Judged:
    """Return what a person said after looking at the pictures."""
    said = yaml.safe_load(JUDGED.read_text(encoding="utf-8"))
    return Judged(said["alarms"], said["missed"], said["watched"])


def mark(label: str, alarm: Alarm) -> str:
    """Return what an alarm is known by: its series, direction and day of its raising."""
    return f"{label} {_WORDS[alarm.first.direction]} {alarm.first.raised:%Y-%m-%d}"


def picture_name(file_system: str) -> str:
    """Return the file name of the picture of a file system."""
    return f"real-{file_system}.png"


def unjudged(told: Replay) -> Sequence[str]:
    """Return the marks of the alarms that nobody has said anything of."""
    labels = {each.key: each.label for each in told.survey.series}
    said = judged().alarms
    return [name for a in told.alarms if (name := mark(labels[a.key], a)) not in said]
