"""The table of the digest: a line for each series, as wide as the terminal is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from rich.console import Console
from rich.text import Text

from iobands.bands import NO_BAND
from iobands.model import RATIO_UNIT, SeriesKey
from iobands.snapshot import Series, Snapshot, State
from iobands.views.format import THIS_YEAR, band_text, figure, limit_text, printable, state_text

#: How many values a sparkline shows if there is room, and the least number.
RECENT: Final = 20
LEAST_RECENT: Final = 8

#: The characters of a sparkline, from low to high.
BLOCKS: Final = "▁▂▃▄▅▆▇█"
# The character for values that are all equal.
_MIDDLE: Final = 3

#: How verdicts, states and severities are coloured.
STYLES: Final = {
    "healthy": "green",
    "improved": "green",
    "watch": "yellow",
    "degraded": "bold red",
    "incident": "bold red",
    "no data": "bold magenta",
    "unfit": "bold magenta",
    "failed": "bold magenta",
    "collapsed": "yellow",
    "below": "yellow",
}

# The least room for labels.
_LEAST_LABEL: Final = 8
_HEADINGS: Final = (
    "SERIES", "IN EFFECT", "NEWEST", "VERDICT", "BAND", "RUNS", "TREND", "STATE", "WHEN",
)  # fmt: skip
_NUMBERS: Final = ("NEWEST", "RUNS")
# The columns that a narrow terminal leaves out, in this order.
_SPARE: Final = ("WHEN", "BAND", "IN EFFECT", "RUNS")


def series_table(site: Snapshot, every: Sequence[Series], width: int) -> Text:
    """Return a line for each of some series of a site, for a terminal of `width` columns."""
    intervals = _intervals(every)
    ends = {end.key for interval in intervals.values() for end in interval}
    quiet = {key for alert in site.alerts if alert.is_quiet for key in alert.keys}
    shown = [series for series in every if series.key not in ends]
    rows = [
        _row(series, intervals.get(series.key, ()), site.now, series.key in quiet)
        for series in shown
    ]
    widths = {heading: _width(heading, (row[heading] for row in rows)) for heading in _HEADINGS}
    if not any(series.in_effect.brief() for series in every):
        del widths["IN EFFECT"]
    if all(series.status.verdict == NO_BAND for series in every):
        del widths["VERDICT"]
    for spare in _SPARE:
        if spare in widths and sum(widths.values()) - widths["TREND"] + LEAST_RECENT > width:
            del widths[spare]
    values = width - sum(widths.values()) + widths["TREND"]
    values = max(LEAST_RECENT, min(RECENT, values))
    for row, series in zip(rows, shown, strict=True):
        row["TREND"] = Text(sparkline(series.history.values[-values:].tolist()))
    widths["TREND"] = _width("TREND", (row["TREND"] for row in rows))
    room = width - sum(widths.values()) + widths["SERIES"]
    return _lines(widths, rows, max(room, _LEAST_LABEL))


def _lines(widths: dict[str, int], rows: Sequence[dict[str, Text]], longest: int) -> Text:
    """Return rows as lines; a label longer than `longest` continues in the next line.

    For hundreds of series this is much faster than a table of rich.
    """
    console = Console(width=longest)
    widths["SERIES"] = min(widths["SERIES"], longest + 1)
    lines = []
    for row in [{heading: Text(heading, style="bold") for heading in widths}, *rows]:
        label, *more = [row["SERIES"]]
        if label.cell_len > longest:
            label, *more = label.wrap(console, longest, overflow="fold")
        line = Text()
        for heading, cell_width in widths.items():
            cell = label if heading == "SERIES" else row[heading]
            gap = " " * (cell_width - 1 - cell.cell_len)
            if heading in _NUMBERS:
                line.append(gap).append_text(cell).append(" ")
            else:
                line.append_text(cell).append(f"{gap} ")
        lines += [line, *more]
    return Text("\n").join(lines)


def _intervals(every: Sequence[Series]) -> dict[SeriesKey, list[Series]]:
    """Return for each ratio both ends of its interval, which its row shows.

    Ends from another run or in another state keep their own rows.
    """
    known = {series.key: series for series in every}
    intervals = {}
    for ratio in every:
        run = (ratio.status.when, ratio.status.state)
        names = [f"{ratio.key.variable}_{end}" for end in ("lower", "upper")]
        ends = [known[key] for name in names if (key := replace(ratio.key, variable=name)) in known]
        if [(end.status.when, end.status.state) for end in ends] == [run, run]:
            intervals[ratio.key] = ends
    return intervals


def _width(heading: str, cells: Iterable[Text]) -> int:
    """Return how wide a column is, with the space after it."""
    return max(len(heading), *(cell.cell_len for cell in cells)) + 1


def _row(
    series: Series, interval: Sequence[Series], now: datetime, is_quiet: bool
) -> dict[str, Text]:
    """Return the cells of a row by their headings; the trend is still empty."""
    status = series.status
    state = Text(
        state_text(status, is_quiet), "" if is_quiet else STYLES.get(status.state.value, "")
    )
    return {
        "SERIES": Text(printable(series.label)),
        "IN EFFECT": Text(printable(series.in_effect.brief())),
        "NEWEST": Text(_value(series, interval)),
        "VERDICT": Text(status.verdict, style=STYLES.get(status.verdict, "")),
        "BAND": Text(band_cell(series)),
        "RUNS": Text(str(status.runs)),
        "TREND": Text(""),
        "STATE": state,
        "WHEN": Text(_when(status.when, now)),
    }


def _value(series: Series, interval: Sequence[Series]) -> str:
    if series.status.value is None:
        return "-"
    value = figure(series.status.value)
    if interval:
        ends = (figure(end.status.value) for end in interval if end.status.value is not None)
        return f"{value} [{', '.join(ends)}]"
    return value if series.key.unit == RATIO_UNIT else f"{value} {series.key.unit}"


def band_cell(series: Series) -> str:
    """Return the band, with ~ before one that is provisional, or the single published figure."""
    status = series.status
    if status.band:
        return band_text(status.band, status.provisional)
    if status.limit:
        return limit_text(status.limit)
    return status.why if status.state is State.CALIBRATING else "-"


def _when(when: datetime | None, now: datetime) -> str:
    """Return the time of a sample of the last day, otherwise its day or its month, as ls does."""
    if when is None:
        return "never"
    age = abs(now - when)
    if age < timedelta(days=1):
        return f"{when:%H:%M}"
    return f"{when:%m-%d}" if age < THIS_YEAR else f"{when:%Y-%m}"


def sparkline(values: list[float]) -> str:
    """Return a character for each value, from the lowest to the highest block."""
    least, most = (min(values), max(values)) if values else (0.0, 0.0)
    if least == most:
        return BLOCKS[_MIDDLE] * len(values)
    steps = (1 + (len(BLOCKS) - 1) * (each - least) / (most - least) for each in values)
    return "".join(BLOCKS[round(step) - 1] for step in steps)
