"""The lines of perflogs under one header: from bytes to typed rows.

A block of whole lines is parsed at once. Its lines are examined one by one only if it has a fault,
to find the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Final

import polars as pl

from iobands.model import (
    FIELD,
    NULLS,
    PATH_PART,
    READ,
    REQUIRED,
    SPEEDS,
    TIME,
    UNIT,
    VALUE,
    VARIABLE,
    VARIABLE_UNITS,
    Rejections,
    Type,
    number,
)

#: The longest line, in bytes: a run on 30,000 nodes needs a quarter of it.
LONGEST: Final = 2**22
#: The origin of a row: the number of its file, and of the line in it.
FILE: Final = "_file"
LINE: Final = "_line"
_ORIGIN: Final = {FILE: pl.UInt32(), LINE: pl.UInt32()}
_TYPES: Final[Mapping[Type, pl.DataType]] = {
    "time": pl.Datetime("us", "UTC"),
    "text": pl.Categorical(),
    "integer": pl.Int64(),
    "number": pl.Float64(),
}
#: The columns of rows: the fields of samples, and their origin.
ROWS: Final = {**{name: _TYPES[FIELD[name].type] for name in READ}, **_ORIGIN}
#: The columns about targets and nodes.
SAID: Final = {**dict.fromkeys(SPEEDS, pl.String()), **_ORIGIN}

#: The possible rates of a file system, in GiB/s: from a byte a second to 2**60 bytes a second.
_RATES: Final = (2.0**-30, 2.0**30)
_NEVER_NULL: Final = frozenset({TIME, "system", "partition", "result"})
_PLACE: Final = frozenset({"system", "partition"})  # they name files
#: The sizes of a run, and a limit beyond any machine.
_SIZES: Final = frozenset({"nodes", "tasks", "gib"})
_MOST: Final = 2**40
_EXACT_BELOW: Final = 2**53  # the integers that a double holds exactly
# `%+` of polars accepts more, such as an hour of one digit.
_RFC_3339: Final = (
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?"
    "([Zz]|[+-][0-9]{2}:[0-9]{2})$"
)
# The range of nanosecond timestamps.
_TIMES: Final = tuple(datetime(year, 1, 1, tzinfo=timezone.utc) for year in (1970, 2200))
_EXPECTED: Final[Mapping[Type, str]] = {
    "time": "a time with a UTC offset",
    "text": "a name",
    "integer": "a whole number",
    "number": "a finite number",
}

_BLOCK: Final = 2**24  # bytes that are parsed at once
# All bytes but bars and control characters; without them, the structure of the lines remains.
_NO_MARKS: Final = bytes(range(ord(" "), 2**8)).replace(b"|", b"")
_MARKS: Final = r"[\x00-\x1f|]"


@dataclass
class Layout:
    """The lines of all files under the header `columns`, () for none; bad ones go to `rejected`."""

    columns: tuple[str, ...]
    rejected: Rejections
    _waiting: list[tuple[bytes, pl.DataFrame]] = field(default_factory=list)
    _rows: list[pl.DataFrame] = field(default_factory=list)
    _speeds: list[pl.DataFrame] = field(default_factory=list)

    @property
    def problem(self) -> str | None:
        """Why the lines under this header cannot be read, None if they can."""
        if missing := [name for name in REQUIRED if name not in self.columns]:
            return f"columns are missing: {', '.join(missing)}"
        twice = [name for name in (*READ, *SPEEDS) if self.columns.count(name) > 1]
        return f"columns appear twice: {', '.join(twice)}" if twice else None

    def add(self, text: bytes, file: int, first: int) -> int:
        """Add whole lines of a file from its line `first` on, and return their number."""
        count = text.count(b"\n")
        if self.problem:
            why = (
                "under a header that cannot be used" if self.columns else "no header line before it"
            )
            for number in range(first, first + count):
                self.rejected.add(file, number, why)
            return count
        numbers = pl.int_range(first, first + count, dtype=pl.UInt32, eager=True)
        marks = (b"|" * (len(self.columns) - 1) + b"\n") * count
        if text.translate(None, _NO_MARKS) != marks or not _is_utf8(text):
            good = []
            for number, line in enumerate(text.split(b"\n")[:-1], first):
                if reason := _damage(line, len(self.columns)):
                    self.rejected.add(file, number, reason)
                else:
                    good.append((number, line))
            text = b"".join(line + b"\n" for _, line in good)
            numbers = pl.Series([number for number, _ in good], dtype=pl.UInt32)
        if text:
            origin = pl.select(pl.lit(file, pl.UInt32).alias(FILE), numbers.alias(LINE))
            self._waiting.append((text, origin))
        if sum(len(waiting) for waiting, _ in self._waiting) >= _BLOCK:
            self._parse()
        return count

    def parsed(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the rows that can be used, and the cells about targets and nodes."""
        self._parse()
        rows = pl.concat([pl.DataFrame(schema=ROWS), *self._rows], how="diagonal")
        return rows, pl.concat([pl.DataFrame(schema=SAID), *self._speeds], how="diagonal")

    def _parse(self) -> None:
        """Parse the lines that were added, and reject lines with an impossible cell."""
        if not self._waiting:
            return
        names = [name for name in self.columns if name in READ or name in SPEEDS]
        cells = pl.read_csv(
            b"".join(text for text, _ in self._waiting),
            has_header=False,
            separator="|",
            quote_char=None,
            columns=[self.columns.index(name) for name in names],
            infer_schema=False,
            null_values=list(NULLS),
        ).rechunk()
        cells.columns = names
        origin = pl.concat([origin for _, origin in self._waiting])
        self._waiting = []
        said = [name for name in SPEEDS if name in names]
        if said:  # long texts in few lines, which get their own frame
            some = pl.any_horizontal(pl.col(said).is_not_null())
            self._speeds.append(cells.select(said).hstack(origin).filter(some))
            cells = cells.drop(said)
        # in two steps, as an expression that is used twice is computed twice
        rows = cells.select(_parsed(name) for name in cells.columns)
        rows = rows.select(_possible(name) for name in cells.columns).hstack(origin)
        good = _good(cells, rows)
        if not good.all():
            for place in (~good).arg_true():
                row = rows.row(place, named=True)
                # reasons are kept only for the first thousand rejected lines
                reason = "" if self.rejected.is_full else _reason(cells.row(place, named=True), row)
                self.rejected.add(row[FILE], row[LINE], reason)
            rows = rows.filter(good)
        self._rows.append(rows)


def _damage(line: bytes, columns: int) -> str | None:
    if not line.strip():
        return "empty line"
    if len(line) > LONGEST:
        return f"longer than {LONGEST // 2**20} MiB"
    marks = line.translate(None, _NO_MARKS)
    if marks.strip(b"|"):
        return "control characters"
    if not _is_utf8(line):
        return "bytes that are not UTF-8"
    cells = len(marks) + 1
    return None if cells == columns else f"{cells} columns instead of {columns}"


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _parsed(name: str) -> pl.Expr:
    cell, type_ = pl.col(name), FIELD[name].type
    if type_ == "text":
        return cell.cast(pl.Categorical)
    if type_ == "time":
        time = cell.str.to_datetime("%+", time_unit="us", time_zone="UTC", strict=False)
        return pl.when(cell.str.contains(_RFC_3339)).then(time)
    return cell.cast(pl.Float64, strict=False)


def _possible(name: str) -> pl.Expr:
    """Return the value of a parsed cell, null if no perflog can have it."""
    value, type_ = pl.col(name), FIELD[name].type
    if name in _PLACE:
        return pl.when(value.cast(pl.String).str.contains(PATH_PART)).then(value)
    if type_ == "text":
        return value
    if type_ == "time":
        return pl.when((value >= _TIMES[0]) & (value < _TIMES[1])).then(value)
    if name in _SIZES:
        value = pl.when(value.is_between(0, _MOST)).then(value)
    if type_ == "number":
        return pl.when(value.is_finite()).then(value)
    whole = (value == value.floor()) & (value.abs() < _EXACT_BELOW)
    return pl.when(whole).then(value).cast(pl.Int64)


def possible(rows: pl.DataFrame) -> pl.Series:
    """Return a mask of the typed rows, with the columns of `READ` and `SPEEDS`, that are valid."""
    cells = rows.with_columns(pl.col(VARIABLE, UNIT).cast(pl.String)).select(*READ, *SPEEDS)
    good = _good(cells.select(READ), cells.select(_possible(name) for name in READ))
    for column in rows.select(pl.col(pl.Categorical, pl.String)).iter_columns():
        texts = column.unique().drop_nulls()
        text = texts.cast(pl.String)
        if (odd := texts.filter(text.str.contains(_MARKS) | text.is_in([*NULLS]))).len():
            good &= ~column.is_in(odd.implode()).fill_null(value=False)
    return good


def _good(cells: pl.DataFrame, rows: pl.DataFrame) -> pl.Series:
    """Return a mask of the rows that can be used; `_reason` says why another cannot."""
    good = rows[VALUE].is_between(*_RATES).fill_null(value=True)
    for name in cells.columns:
        if name in _NEVER_NULL:
            good &= rows[name].is_not_null()
        elif rows[name].null_count() > cells[name].null_count():
            good &= rows[name].is_not_null() | cells[name].is_null()
    unit = cells[VARIABLE].replace_strict(VARIABLE_UNITS, default="")
    measures_nothing = cells[VARIABLE].is_null() & rows[VALUE].is_null()
    return good & ((unit == cells[UNIT]).fill_null(value=False) | measures_nothing)


def _reason(cells: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    for name, cell in cells.items():
        if cell is None and name in _NEVER_NULL:
            return f"{name}: missing"
        if cell is not None and row[name] is None:
            found = number(cell) if name in _SIZES else None
            is_size = found is None or 0 <= found <= _MOST
            expected = _EXPECTED[FIELD[name].type] if is_size else "a possible size"
            return f"{name}: {cell!r} is not {expected}"
    rate, variable, unit = row[VALUE], cells[VARIABLE], cells[UNIT]
    if rate is not None and not _RATES[0] <= rate <= _RATES[1]:
        why = "not above 0" if rate <= 0 else "not a possible rate of a file system"
        return f"{VALUE}: {cells[VALUE]!r} is {why}"
    if variable is None:
        return f"{VARIABLE}: missing"
    if variable not in VARIABLE_UNITS:
        return f"{VARIABLE}: unknown variable {variable!r}"
    return f"{UNIT}: {unit or 'null'!r}; the variable's unit is {VARIABLE_UNITS[variable]}"
