"""The table of the digest: a row for each check at a scale, with its writes and reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from iobands.model import RATIO_UNIT, SeriesKey
from iobands.snapshot import Series, Snapshot, State
from iobands.views.format import figure, percent, printable, state_text
from iobands.views.layout import blocks

_HEADINGS: Final = ("CHECK", "WRITE", "", "READ", "", "STATE")
_STATES: Final = [*State]
_NO_NEWS: Final = (State.HEALTHY, State.CALIBRATING)
_OF_READS: Final = {"read", "stat", "list", "scan"}
_SIDES: Final = ("write", "read")
_ENDS: Final = ("lower", "upper")


@dataclass(frozen=True)
class Row:
    """What one check measures at one scale, its writes before its reads; `label` names it."""

    label: str
    sides: tuple[Series | None, Series | None]

    @property
    def worst(self) -> Series:
        """The one in the worst state; of two, the one that is further below its band."""
        return min(filter(None, self.sides), key=_badness)

    @property
    def has_news(self) -> bool:
        """Whether one of its series is neither healthy nor calibrating."""
        return self.worst.status.state not in _NO_NEWS


def _badness(series: Series) -> tuple[int, float]:
    return _STATES.index(series.status.state), _of_usual(series) or 1.0


def rows_of(site: Snapshot) -> list[Row]:
    """Return all series of a site as rows, the worst first."""
    known = {series.key: series for series in site.series}
    ends = {end.key for series in site.series for end in _interval(series, known)}
    found: defaultdict[tuple[SeriesKey, str], list[Series | None]] = defaultdict(
        lambda: [None, None]
    )
    for series in site.series:
        if series.key not in ends:
            words = series.key.variable.split("_")
            side = next((each for each in _SIDES if each in words), "")
            rest = "_".join(word for word in words if word != side)
            # a rate of its own, such as of files created, is not one of a pair
            name = series.key.variable if rest == "rate" or not side else rest.removeprefix("bw")
            check = replace(series.key, variable="")
            found[check, name.strip("_")][bool(_OF_READS & {*words})] = series
    rows = []
    for (_, name), sides in found.items():
        lead = next(filter(None, sides))
        label = lead.label.removesuffix(lead.key.variable) + name
        rows.append(Row(printable(label.strip()), (sides[0], sides[1])))
    return sorted(rows, key=lambda row: _badness(row.worst))


def lines_of(site: Snapshot, rows: Iterable[Row], width: int) -> list[list[str]]:
    """Return the lines of the headings, then those of each row."""
    quiet = {key for alert in site.alerts if alert.is_quiet for key in alert.keys}
    known = {series.key: series for series in site.series}
    cells = [
        (
            row.label,
            *(text for each in row.sides for text in _cells(each, known)),
            state_text(row.worst.status, row.worst.key in quiet),
        )
        for row in rows
    ]
    return [*blocks([_HEADINGS, *cells], width, right=(1, 2, 3, 4), indent="")]


def _cells(series: Series | None, known: dict[SeriesKey, Series]) -> tuple[str, str]:
    """Return the newest value, and how far it is from the median of its band."""
    if series is None or series.status.value is None:
        return "-", ""
    if series.status.state is State.NO_DATA:
        return "no data", ""
    usual, value = _of_usual(series), figure(series.status.value)
    if ends := _interval(series, known):
        value += f" [{', '.join(figure(end.status.value or 0) for end in ends)}]"
    unit = "" if series.key.unit == RATIO_UNIT else f" {series.key.unit}"
    return f"{value}{unit}", "" if usual is None else percent(usual)


def _of_usual(series: Series) -> float | None:
    band, value = series.status.band, series.status.value
    return value / band.median if band and value is not None else None


def _interval(series: Series, known: dict[SeriesKey, Series]) -> Sequence[Series]:
    """Return both ends of the interval of a ratio, if they are of the same run and state."""
    keys = [replace(series.key, variable=f"{series.key.variable}_{end}") for end in _ENDS]
    ends = [known[key] for key in keys if key in known]
    run = (series.status.when, series.status.state)
    return ends if [(end.status.when, end.status.state) for end in ends] == [run, run] else ()
