"""The lines of perflogs under one header: from bytes to typed rows.

Most of a line is the same in thousands of lines. So neighbouring columns that do not vary from
run to run are parsed as one cell, and split once for each distinct text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from iobands.model.fields import FIELD, NULLS, READ, REQUIRED, SPEEDS, VALUE
from iobands.model.rejected import Rejections
from iobands.results.cells import contradictions, type_of, typed

#: No line is longer, in bytes: that of 30,000 nodes has a quarter of it.
LONGEST: Final = 2**22
#: Where a row comes from: the number of its file, and of the line in it.
FILE: Final = "_file"
LINE: Final = "_line"
#: The columns of rows: the fields of samples, and where they come from.
ROWS: Final = {**{name: type_of(name) for name in READ}, FILE: pl.UInt32(), LINE: pl.UInt32()}

#: What lines say of targets and nodes.
SAID: Final = {**dict.fromkeys(SPEEDS, pl.String()), FILE: pl.UInt32(), LINE: pl.UInt32()}

_BLOCK: Final = 2**23  # bytes that are parsed at once
_NEWLINE, _BAR, _JOINT, _BLANK = (np.uint8(ord(character)) for character in "\n|\x1f ")

_AFTER_BAR: Final = np.frombuffer(b"}~", np.uint8)

_Bytes = NDArray[np.uint8]


@dataclass
class Layout:
    """The lines under the header `columns`; bad ones go to `rejected`."""

    columns: tuple[str, ...]
    rejected: Rejections
    _waiting: list[tuple[_Bytes, pl.DataFrame]] = field(default_factory=list)
    _parsed: list[pl.DataFrame] = field(default_factory=list)
    _speeds: list[pl.DataFrame] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Find the columns that are parsed as one cell."""
        cells: list[tuple[str, ...]] = []
        self._inner: list[int] = []  # the bars within such a cell
        for place, name in enumerate(self.columns):
            if cells and _is_steady(name) and _is_steady(cells[-1][0]):
                cells[-1] += (name,)
                self._inner.append(place - 1)
            else:
                cells.append((name,))
        wanted = {*READ, *SPEEDS}
        self._places = [place for place, names in enumerate(cells) if names[0] in wanted]
        self._cells = ["\x1f".join(cells[place]) for place in self._places]
        self._texts: dict[str, dict[str, int]]
        self._texts = {cell: {} for cell in self._cells if _is_steady(cell.split("\x1f")[0])}

    @property
    def problem(self) -> str | None:
        """Why no line under this header can be read, if none can."""
        missing = [name for name in REQUIRED if name not in self.columns]
        if missing:
            return f"columns are missing: {', '.join(missing)}"
        twice = [name for name in READ if self.columns.count(name) > 1]
        return f"columns are there twice: {', '.join(twice)}" if twice else None

    def add(self, text: bytes, file: int, first: int) -> int:
        """Take whole lines of a file from its line `first` on, and return how many they are."""
        lines = text.count(b"\n")
        numbers = np.arange(first, first + lines, dtype=np.uint32)
        characters = np.frombuffer(bytearray(text), np.uint8)
        grid = _grid(characters, lines, len(self.columns))
        if grid is None:
            reasons = [_reason(line, len(self.columns)) for line in text.split(b"\n")[:-1]]
            for number, why in enumerate(reasons):
                if why:
                    self.rejected.add(file, first + number, why)
            good = np.array([why is None for why in reasons])
            numbers = numbers[good]
            lengths = np.diff(np.flatnonzero(characters == _NEWLINE), prepend=-1)
            characters = characters[np.repeat(good, lengths)]
            marks = np.flatnonzero((characters == _BAR) | (characters == _NEWLINE))
            grid = marks.reshape(len(numbers), len(self.columns))
        characters[grid[:, self._inner]] = _JOINT
        origin = pl.select(pl.lit(file, pl.UInt32).alias(FILE), pl.Series(LINE, numbers))
        if len(origin):
            self._waiting.append((characters, origin))
        if sum(len(waiting) for waiting, _ in self._waiting) >= _BLOCK:
            self._parse()
        return lines

    def rows(self) -> pl.DataFrame:
        """Return all rows that can be used."""
        self._parse()
        if not self._parsed:
            return pl.DataFrame(schema=ROWS)
        rows = pl.concat(self._parsed, rechunk=True)
        self._parsed = []
        wrong: dict[int, str] = {}
        for cell, texts in self._texts.items():
            codes = rows.drop_in_place(cell)
            values, unusable = typed(_split(cell, texts))
            rows.hstack(values[codes], in_place=True)
            for code, reason in unusable.items():
                wrong |= dict.fromkeys((codes == code).arg_true(), reason)
        absent = (pl.lit(None, kind).alias(name) for name, kind in ROWS.items() if name not in rows)
        rows = rows.with_columns(absent).select(list(ROWS))
        return self._without(rows, {**contradictions(rows), **wrong})

    def _parse(self) -> None:
        """Parse the lines that were added, with codes for the text of steady columns."""
        if not self._waiting:
            return
        text = np.concatenate([characters for characters, _ in self._waiting])
        origin = pl.concat([origin for _, origin in self._waiting])
        self._waiting = []
        cells = pl.read_csv(
            text.tobytes(),
            has_header=False,
            separator="|",
            quote_char=None,
            columns=self._places,
            new_columns=self._cells,
            infer_schema=False,
            null_values=list(NULLS),
        )
        varying = [name for name in self._cells if name not in self._texts and name in READ]
        self._take_speeds(cells, origin)
        values, wrong = typed(cells.select(varying))
        codes = (self._codes(cells[name]) for name in self._texts)
        rows = values.hstack([*codes, *origin])
        self._parsed.append(self._without(rows, wrong))

    def _take_speeds(self, cells: pl.DataFrame, origin: pl.DataFrame) -> None:
        """Keep what lines say of targets and nodes: a few long texts, in a frame of their own."""
        said = [name for name in SPEEDS if name in self._cells]
        if said:
            some = pl.any_horizontal(pl.col(said).is_not_null())
            self._speeds.append(cells.select(said).hstack(origin).filter(some))

    def speeds(self) -> pl.DataFrame:
        """Return what the lines say of targets and nodes, and where; after `rows`."""
        return pl.concat([pl.DataFrame(schema=SAID), *self._speeds], how="diagonal")

    def _codes(self, cells: pl.Series) -> pl.Series:
        """Return for each cell the place of its text among all that these columns had."""
        known = self._texts[cells.name]
        distinct = cells.fill_null("").unique()
        places = [known.setdefault(text, len(known)) for text in distinct.to_list()]
        codes = cells.fill_null("").cast(pl.Enum(distinct)).to_physical()
        return pl.Series(cells.name, np.array(places, np.uint32)[codes.to_numpy()])

    def _without(self, rows: pl.DataFrame, wrong: dict[int, str]) -> pl.DataFrame:
        """Return `rows` but those that are `wrong`, which are rejected."""
        if not wrong:
            return rows
        origins = rows[list(wrong)].select(FILE, LINE).iter_rows()
        for (file, line), why in zip(origins, wrong.values(), strict=True):
            self.rejected.add(file, line, why)
        good = np.ones(len(rows), bool)
        good[list(wrong)] = False
        return rows.filter(good)


def _is_steady(name: str) -> bool:
    return name in READ and FIELD[name].role not in {"run", "covariate"} and name != VALUE


def _split(cell: str, texts: Iterable[str]) -> pl.DataFrame:
    """Return the columns that were parsed as one cell."""
    rows = (text.split("\x1f") for text in texts)
    return pl.DataFrame(
        [[None if word in NULLS else word for word in words] for words in rows],
        dict.fromkeys(cell.split("\x1f"), pl.String),
        orient="row",
    )


def _grid(characters: _Bytes, lines: int, columns: int) -> NDArray[np.int_] | None:
    """Return where cells end, of shape (lines, columns); None where some line has no such cells."""
    # bars, what comes after them in ASCII, and, as the subtraction wraps around, controls
    places = np.flatnonzero((characters - _BLANK) >= _BAR - _BLANK)
    marks = characters[places]
    if len(marks) != lines * columns:
        chosen = (marks == _BAR) | (marks == _NEWLINE)
        if not np.isin(marks[~chosen], _AFTER_BAR).all():
            return None
        places, marks = places[chosen], marks[chosen]
        if len(marks) != lines * columns:
            return None
    marks = marks.reshape(lines, columns)
    is_regular = (marks[:, -1] == _NEWLINE).all() and (marks[:, :-1] == _BAR).all()
    return places.reshape(lines, columns) if is_regular else None


def _reason(line: bytes, columns: int) -> str | None:
    """Return why a line cannot be parsed, if it cannot."""
    if not line.strip():
        return "empty line"
    if len(line) > LONGEST:
        return f"longer than {LONGEST // 2**20} MiB"
    if any(character < ord(" ") for character in line):
        return "control characters"
    try:
        line.decode()
    except UnicodeDecodeError:
        return "bytes that are not UTF-8"
    cells = line.count(b"|") + 1
    return None if cells == columns else f"{cells} columns instead of {columns}"
