"""Reading many lines of a perflog at once, where they cannot be in doubt.

A block of lines goes through Arrow's CSV reader, and each cell is checked column by column. A line
of which this cannot prove that `iobands.readers.lines` would take it as it stands, is left to
that: this only ever says yes. May know: the fields and the exact reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from iobands.readers.fields import (
    EXACT_BELOW,
    FIELDS,
    FLOATS,
    INTEGERS,
    NEVER_NULL,
    RATES,
    TEXTS,
    TIME,
)
from iobands.readers.table import (
    FILE,
    LINE,
    SCHEMA,
    TEXT,
    TIMESTAMP,
    arrow,
    flags,
    places,
    plain,
    there,
)
from iobands.vocabulary import NULLS, VARIABLE_UNITS

_NEWLINE, _BAR = ord("\n"), ord("|")
_HARMLESS: Final = (ord("}"), ord("~"))  # the printable characters after the bar
_NULLS: Final = sorted(NULLS)
_NUMBERS: Final = {*INTEGERS, *FLOATS}
_NO_TEXT: Final = pa.nulls(1, pa.string())[0]

# A part of the times that the exact reader takes: whole seconds, and days that every such month
# of every year has, so that converting them cannot fail.
_TIME: Final = (
    r"^(197[1-9]|19[89]\d|20\d\d|21[0-8]\d)"
    r"-((0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
    r"T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(Z|[+-](0\d|1[0-3]):[0-5]\d)$"
)
_NUMBER: Final = r"^-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"


@dataclass(frozen=True)
class Block:
    """What a block of lines held; lines count from 0.

    `table` has the lines that were proved, if any was, and `doubtful` the others.
    """

    lines: int
    table: pa.Table | None
    doubtful: list[tuple[int, bytes]]


def read_block(block: bytes, columns: Sequence[str]) -> Block:
    """Read whole lines, none of which is a header, under the header `columns`."""
    ends, doubtful = _survey(block, len(columns))
    if doubtful.any() and b"\r\n" in block:
        block = block.replace(b"\r\n", b"\n")  # it would be stripped from the last cell
        ends, doubtful = _survey(block, len(columns))
    if len(set(columns)) != len(columns):
        doubtful[:] = True
    lines = len(ends)
    usable = np.flatnonzero(~doubtful)
    table = None
    if len(usable):
        text = block if len(usable) == lines else _without(block, ends, doubtful)
        table, proved = _typed(text, columns, usable)
        doubtful[usable[~proved]] = True
    left = np.flatnonzero(doubtful)
    return Block(lines, table, [(int(number), _line(block, ends, number)) for number in left])


def _survey(block: bytes, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where each line ends, and which lines have odd characters or too many cells."""
    characters = np.frombuffer(block, np.uint8)
    # a bar, what comes after it and, as the subtraction wraps around, control characters
    places = np.flatnonzero((characters - np.uint8(32)) >= _BAR - 32)
    special = characters[places]
    ends = places[special == _NEWLINE]
    if len(special) == len(ends) * columns:
        grid = special.reshape(len(ends), columns)
        if (grid[:, -1] == _NEWLINE).all() and (grid[:, :-1] == _BAR).all():
            return ends, np.zeros(len(ends), bool)
    line_of = np.searchsorted(ends, places)
    bars = np.bincount(line_of[special == _BAR], minlength=len(ends))
    odd = ~np.isin(special, (_NEWLINE, _BAR, *_HARMLESS))
    doubtful = bars != columns - 1
    doubtful[line_of[odd]] = True
    return ends, doubtful


def _line(block: bytes, ends: np.ndarray, number: int) -> bytes:
    return block[ends[number - 1] + 1 if number else 0 : ends[number]]


def _without(block: bytes, ends: np.ndarray, left_out: np.ndarray) -> bytes:
    starts = np.concatenate(([0], ends[:-1] + 1))
    kept = memoryview(block)
    pieces, begin = [], 0
    for number in np.flatnonzero(left_out):
        pieces.append(kept[begin : starts[number]])
        begin = ends[number] + 1
    return b"".join([*pieces, kept[begin:]])


def _typed(text: bytes, columns: Sequence[str], lines: np.ndarray) -> tuple[pa.Table, np.ndarray]:
    """Return the rows that are right, and of which of `lines` that is."""
    wanted = [name for name in FIELDS if name in columns]
    try:
        cells = _cells(text, columns, wanted, pa.float64())
    except pa.ArrowInvalid:  # some number is none: which one, only their texts can tell
        cells = _cells(text, columns, wanted, TEXT)
    proved = np.ones(len(lines), bool)
    fields: dict[str, pa.Array] = {}
    for name in FIELDS:
        cell = cells.get(name)
        if cell is None:
            fields[name] = pa.nulls(len(lines), SCHEMA.field(name).type)
        elif name in TEXTS:
            fields[name] = _trimmed(cell)
        elif name == TIME:
            fields[name] = _times(cell, proved)
        else:
            fields[name] = _as_numbers(cell, proved)
    _check_numbers(fields, [name for name in wanted if name in _NUMBERS], proved)
    _check(fields, proved)
    table = pa.Table.from_arrays(
        [
            *(fields[name] for name in FIELDS),
            arrow(np.zeros(len(lines), np.int32)),
            arrow(lines.astype(np.int64)),
        ],
        names=[*FIELDS, FILE, LINE],
    )
    return (table if proved.all() else table.filter(arrow(proved))), proved


def _cells(
    text: bytes, columns: Sequence[str], wanted: Sequence[str], numbers: pa.DataType
) -> dict[str, pa.Array]:
    types = {name: numbers if name in _NUMBERS else TEXT for name in wanted}
    read = csv.read_csv(
        pa.BufferReader(text),
        # one block, so that a column has one dictionary
        csv.ReadOptions(column_names=columns, block_size=len(text) + 1, use_threads=False),
        csv.ParseOptions(delimiter="|", quote_char=False, ignore_empty_lines=False),
        csv.ConvertOptions(
            include_columns=wanted,
            column_types=types,
            null_values=_NULLS,
            strings_can_be_null=True,
            check_utf8=False,  # all that comes here is ASCII
        ),
    )
    return {name: read.column(name).chunk(0) for name in wanted}


def _trimmed(cell: pa.DictionaryArray) -> pa.DictionaryArray:
    values = cell.dictionary
    texts = values.buffers()[-1]
    if texts is None or b" " not in texts.to_pybytes():  # which is had sooner than what follows
        return cell
    padded = pc.or_(pc.starts_with(values, " "), pc.ends_with(values, " "))
    if not pc.any(padded).as_py():
        return cell
    trimmed = pc.utf8_trim(cell.cast(pa.string()), " ")
    missing = pc.is_in(trimmed, value_set=pa.array(_NULLS))
    return pc.if_else(missing, None, trimmed).dictionary_encode()


def _times(cell: pa.DictionaryArray, proved: np.ndarray) -> pa.Array:
    values = cell.dictionary
    right = pc.match_substring_regex(values, _TIME)
    moments = pc.if_else(right, values, _NO_TEXT).cast(TIMESTAMP)
    found = moments.take(cell.indices)
    proved &= there(found)
    return found


def _as_numbers(cell: pa.Array, proved: np.ndarray) -> pa.Array:
    """Return what texts say, if they are texts, and clear the marks of those that are none."""
    if not pa.types.is_dictionary(cell.type):
        return cell
    cell = _trimmed(cell)
    values = cell.dictionary
    right = pc.match_substring_regex(values, _NUMBER)
    as_numbers = pc.if_else(right, values, _NO_TEXT).cast(pa.float64())
    known = there(cell)
    proved[known] &= flags(right)[plain(cell.indices)[known]]
    return as_numbers.take(cell.indices)


def _check_numbers(fields: dict[str, pa.Array], names: Sequence[str], proved: np.ndarray) -> None:
    """Clear the marks of numbers that are not right, and make integers of those that are to be.

    All columns at once: of so few lines a call costs more than its work.
    """
    if not names:
        return
    cells = [fields[name] for name in names]
    values = np.array([np.where(there(cell), plain(cell), 1.0) for cell in cells])
    proved &= np.isfinite(values).all(axis=0)
    if "perf_value" in names:
        rates = values[names.index("perf_value")]
        proved &= (rates >= RATES[0]) & (rates <= RATES[1])
    integers = [place for place, name in enumerate(names) if name in INTEGERS]
    whole = values[integers]
    with np.errstate(invalid="ignore"):
        proved &= ((np.trunc(whole) == whole) & (np.abs(whole) < EXACT_BELOW)).all(axis=0)
        whole = np.where(proved, whole, 0).astype(np.int64)
    for place, column in zip(integers, whole, strict=True):
        missing = ~there(cells[place]) if cells[place].null_count else None
        fields[names[place]] = arrow(column, missing)


def _check(fields: dict[str, pa.Array], proved: np.ndarray) -> None:
    """Clear the marks of lines that contradict themselves, or miss what every line has."""
    for name in NEVER_NULL:
        proved &= there(fields[name])
    variable, unit = fields["perf_var"], fields["perf_unit"]
    units = unit.dictionary.to_pylist()
    codes, unit_codes = places(variable), places(unit)
    fits = ~there(fields["perf_value"]) & (codes == -1)
    for code, text in enumerate(variable.dictionary.to_pylist()):
        wanted = VARIABLE_UNITS.get(text)
        if wanted in units:
            fits |= (codes == code) & (unit_codes == units.index(wanted))
    proved &= fits
