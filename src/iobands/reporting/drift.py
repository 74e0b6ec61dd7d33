"""Where a published page has drifted from the runs: rates, dates, commands and quotation marks.

Reads the table that `iobands table` writes, in any of its formats, and pages written by hand as
ARCHER2's is: headings with a pattern, lines that name a medium and end with a colon, and below
them `Median: 150 GiB/s`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from html import unescape
from html.parser import HTMLParser
from typing import Final

from iobands.model.fields import number
from iobands.reporting.format import figure, percent
from iobands.reporting.published import HEADINGS, PATTERNS, direction, interval_text
from iobands.site.published import FIGURES, Rates, Recommended

_NAMES: Final = {name.replace("_", " "): name for name in FIGURES}
#: A maximum may be passed by so much; without an interval a quartile may be off by so much.
_TOLERANCE: Final = 0.1
#: Quotation marks, double, single and low, and dashes.
_TYPOGRAPHIC: Final = re.compile("[\u201c\u201d\u201e\u2018\u2019\u201a\u00ab\u00bb\u2013\u2014]")
_CODE: Final = re.compile(r"^(?: {3,}|\t)|^\s*(?:export|module|lfs|setfattr|beegfs|printf)\s")
_INLINE: Final = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_COMMAND: Final = re.compile(r"^(?:\$ |\S+@\S+> )?(export \w+=|lfs setstripe |setfattr |beegfs )")
_FIGURE: Final = re.compile(
    r"^\s*[-*]\s*(?P<name>maximum|upper quartile|median|lower quartile)\W+(?P<value>[\d.,]+)", re.I
)
_HEADING: Final = re.compile(r"^(?:#+\s*(?P<hashes>.+)|<h\d>(?P<html>.+)</h\d>)\s*$")
_MEDIUM: Final = re.compile(r"^\s*[-*]?\s*(?P<name>.+):\s*$")
_MARKS: Final = re.compile(r"\\(?=[^\w\s])")


@dataclass(frozen=True)
class _Row:
    """What a page says of a pattern, medium and direction, from line `line` on, as text."""

    line: int
    pattern: str
    medium: str
    direction: str
    cells: Mapping[str, str]

    def is_of(self, rates: Rates) -> bool:
        """Return whether it is about these rates."""
        return (
            self.pattern == rates.pattern
            and self.direction == direction(rates.variable)
            and (self.medium.lower() == rates.medium.lower())
        )


def drift(text: str, recommended: Sequence[Recommended], now: datetime) -> list[str]:
    """Return what is wrong with a page now, a line of text each; nothing if it agrees."""
    lines = text.splitlines()
    rates = [rate for each in recommended for rate in each.rates]
    rows = _rows(lines, {rate.medium for rate in rates})
    found = [*_quotation_marks(lines)]
    if not rows:
        return [*found, "no table of rates and no line such as `Median: 150 GiB/s`"]
    for row in rows:
        mine = next((rate for rate in rates if row.is_of(rate)), None)
        where = f"line {row.line}: {row.pattern} {row.direction} on {row.medium}"
        if mine is None:
            found.append(f"{where}: nothing is measured of it")
        else:
            found += [f"{where}: {what}" for what in _differences(row, mine, now.date())]
    for rate in rates:
        if not any(row.is_of(rate) for row in rows):
            name = f"{rate.pattern} {direction(rate.variable)} on {rate.medium}"
            found.append(f"{name}: measured, and not on the page")
    if rows and rows[0].line == 2 and lines[0].startswith(HEADINGS[0]):  # noqa: PLR2004
        return found  # CSV has no commands
    return [*found, *_commands(lines, recommended)]


def _differences(row: _Row, rates: Rates, today: date) -> Iterator[str]:
    for heading, name in _NAMES.items():
        said = number(row.cells.get(heading, "").replace(",", ""))
        if said is None:
            yield f"no {heading}"
            continue
        now = rates.figures[name]
        known = rates.intervals.get(name)
        low, high = known or (now * (1 - _TOLERANCE), now * (1 + _TOLERANCE))
        if not float(figure(low)) <= said <= float(figure(high)):
            sure = f" (95 %: {interval_text(known)})" if known else ""
            yield f"{heading} {said:g}, is {figure(now)}{sure} in {rates.runs} runs"
    epoch = row.cells.get("epoch")
    if epoch is not None and epoch.strip() not in {rates.epoch, "–"[: not rates.epoch]}:
        yield f"epoch {epoch}, is {rates.epoch or 'none'}"
    for each in rates.changed:
        yield f"{each.file_system} has changed by {percent(each.ratio)} since {each.since:%Y-%m-%d}"
    if not rates.changed and "holds until" in row.cells:
        yield from _expired(row.cells["holds until"], today)


def _expired(text: str, today: date) -> Iterator[str]:
    try:
        until = date.fromisoformat(text.strip())
    except ValueError:
        yield f"holds until {text!r}, which is no date"
        return
    if until < today:
        yield f"held until {until}"


def _quotation_marks(lines: Sequence[str]) -> Iterator[str]:
    """Yield the places where a reader would copy a typographic mark into a shell."""
    for at, line in enumerate(lines, 1):
        codes = [line] if _CODE.match(line) else _INLINE.findall(line)
        for code in codes:
            marks = _TYPOGRAPHIC.findall(code)
            if marks and ("=" in code or _COMMAND.match(code.strip())):
                yield f"line {at}: typographic {' '.join(dict.fromkeys(marks))} in a command"


def _commands(lines: Sequence[str], recommended: Sequence[Recommended]) -> Iterator[str]:
    """Yield each command that is missing, beside what the page has in its place."""
    on_page = {_plain(line) for line in lines} | {
        _plain(code) for line in lines for code in _INLINE.findall(line)
    }
    wanted = [line for each in recommended for lines in each.commands.values() for line in lines]
    for command in dict.fromkeys(wanted):
        if _plain(command) not in on_page and not command.startswith("mkdir "):
            yield f"lacks the command: {command}"


def _plain(line: str) -> str:
    """Return a command as it is typed, whatever prompt or mark-up is around it."""
    text = line.strip().removeprefix("$ ").removeprefix("<pre><code>").removesuffix("</code></pre>")
    return unescape(text)


def _rows(lines: Sequence[str], media: set[str]) -> list[_Row]:
    found = [*_table_rows(lines), *_html_rows("\n".join(lines))]
    return found or [*_rows_by_hand(lines, media)]


def _table_rows(lines: Sequence[str]) -> Iterator[_Row]:
    """Yield the rows of tables in Markdown, reStructuredText and CSV."""
    headings: list[str] = []
    for at, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith("|"):
            cells = re.split(r"(?<!\\)\|", text.strip("|"))
        else:
            cells = next(csv.reader([text]), [])
        cells = [_MARKS.sub("", cell.strip()) for cell in cells]
        if cells == list(HEADINGS):
            headings = [cell.lower() for cell in cells]
        elif headings and len(cells) == len(headings) and not set(text) <= set("|-: "):
            yield _row(at, dict(zip(headings, cells, strict=True)))
        elif headings and not text:
            headings = []


def _row(at: int, cells: Mapping[str, str]) -> _Row:
    return _Row(at, cells["pattern"], cells["medium"], cells["direction"], cells)


class _Tables(HTMLParser):
    """The rows of the tables of a page, each with its line."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[int, list[str]]] = []
        self._in_cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append((self.getpos()[0], []))
        elif tag in {"td", "th"} and self.rows:
            self.rows[-1][1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th"}:
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][1][-1] += data


def _html_rows(text: str) -> Iterator[_Row]:
    parser = _Tables()
    parser.feed(text)
    headings: list[str] = []
    for at, cells in parser.rows:
        if cells == list(HEADINGS):
            headings = [cell.lower() for cell in cells]
        elif headings and len(cells) == len(headings):
            yield _row(at, dict(zip(headings, cells, strict=True)))


def _rows_by_hand(lines: Sequence[str], media: set[str]) -> Iterator[_Row]:
    """Yield the figures that stand below a pattern and a medium; of writes, unless it says read."""
    pattern, medium, way = "", "", "write"
    at, cells = 0, dict[str, str]()
    for place, line in enumerate([*lines, "# end"], 1):
        heading, named, said = _HEADING.match(line), _MEDIUM.match(line), _FIGURE.match(line)
        if said:
            at = at or place
            cells[said["name"].lower()] = said["value"]
            continue
        if heading or named:
            if cells and pattern and medium:
                yield _Row(at, pattern, medium, way, cells)
            at, cells = 0, {}
        if heading:
            text = heading["hashes"] or heading["html"] or ""
            pattern, medium, way = _pattern(text), "", "write"
        elif named:
            words = re.findall(r"\w+", named["name"].lower())
            medium = next((each for each in media if each.lower() in words), medium)
            way = next((each for each in ("read", "write") if each in words), way)


def _pattern(heading: str) -> str:
    """Return the pattern of which a heading has the name or the abbreviation."""
    words = set(re.findall(r"[\w-]+", heading.lower()))
    return next((name for name in PATTERNS if name in words), "")
