"""Reading one perflog from some place in it to its end, in blocks, so that memory stays small.

May know: the exact reader and the fast one; nothing of what is done with the rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa

from iobands.readers.bulk import read_block
from iobands.readers.fields import TIME
from iobands.readers.lines import Contract, Format, Found, read_lines
from iobands.readers.table import LINE, arrow, from_rows, joined, numbers

_BLOCK: Final = 2**20  # bytes: more does not fit into the caches of a processor
#: Fewer lines than this are read one by one, which is faster then.
FEW_LINES: Final = 40
_MANY: Final = 2**16  # bytes, of lines that are not counted before they are read
_HEADER_WORD: Final = TIME.encode()
_WORKERS: Final = 2
_AHEAD: Final = 6  # blocks that wait to be read, at the most


@dataclass(frozen=True)
class Place:
    """How far a file was read: bytes and whole lines, and the columns in force there."""

    offset: int = 0
    lines: int = 0
    columns: tuple[str, ...] = ()


@dataclass
class Part:
    """What a file held from a place on.

    `tables` have the rows in the order of the lines, builds and dry runs among them. `reasons`
    are of the rejected lines; those of `ending` are of the file's end as it is now, and not of
    what stays when it grows.
    """

    place: Place
    tables: list[pa.Table] = field(default_factory=list)
    reasons: list[tuple[int, str]] = field(default_factory=list)
    ending: list[tuple[int, str]] = field(default_factory=list)


def read_file(path: Path, format_: Format, place: Place = Place()) -> Part:
    """Return what the perflog at `path` holds from `place` on; nothing that it holds raises."""
    part = Part(place)
    try:
        with path.open("rb") as stream, ThreadPoolExecutor(_WORKERS) as workers:
            stream.seek(place.offset)
            unfinished = _read(stream, path, format_, part, workers)
    except OSError as error:
        part.ending.append((0, f"cannot be read: {error.strerror or error}"))
        return part
    now = part.place
    if unfinished:
        # it may look whole and yet lack the last digits of a number
        part.ending.append((now.lines + 1, "cut off: the line has no end"))
    elif not now.offset:
        part.ending.append((0, "empty file"))
    elif now.lines == 1 and now.columns and not format_.missing(now.columns):
        part.ending.append((1, "a header line only"))
    return part


@dataclass
class _Piece:
    """What a run of lines held; the numbers count from its first line, which is 0."""

    lines: int
    table: pa.Table | None
    found: Found


def _read(stream, path, format_, part, workers) -> bytes:  # noqa: ANN001
    """Read `stream` to its end into `part`; return what follows the last end of a line."""
    waiting: deque[Future[_Piece] | _Piece] = deque()
    columns, unfinished = part.place.columns, b""
    offset = part.place.offset
    lines = part.place.lines

    def take() -> None:
        nonlocal lines
        piece = waiting.popleft()
        piece = piece.result() if isinstance(piece, Future) else piece
        _add(part, piece, lines)
        lines += piece.lines

    while chunk := stream.read(_BLOCK):
        last = chunk.rfind(b"\n") + 1
        if not last:
            unfinished += chunk
            continue
        block, unfinished = unfinished + chunk[:last], chunk[last:]
        offset += len(block)
        for text, may_be_header in _runs(block):
            if may_be_header:
                found = Found()
                columns = read_lines([(0, text[:-1])], columns, format_, path, found)
                waiting.append(_Piece(1, None, found))
            else:
                waiting.append(workers.submit(_piece, text, columns, format_, path))
        while len(waiting) > _AHEAD:
            take()
    while waiting:
        take()
    part.place = Place(offset, lines, columns)
    return unfinished


def _runs(block: bytes) -> Iterator[tuple[bytes, bool]]:
    """Cut `block` at the lines that may be headers, which change what the next ones mean."""
    begin = 0
    while (hit := block.find(_HEADER_WORD, begin)) >= 0:
        start = max(begin, block.rfind(b"\n", begin, hit) + 1)
        end = block.index(b"\n", hit) + 1
        if start > begin:
            yield block[begin:start], False
        yield block[start:end], True
        begin = end
    if begin < len(block):
        yield block[begin:], False


def _piece(text: bytes, columns: tuple[str, ...], format_: Format, path: Path) -> _Piece:
    found = Found()
    bulk = isinstance(format_, Contract) and columns and not format_.missing(columns)
    if bulk and (len(text) > _MANY or text.count(b"\n") >= FEW_LINES):
        block = read_block(text, columns)
        read_lines(block.doubtful, columns, format_, path, found)
        return _Piece(block.lines, block.table, found)
    lines = text.split(b"\n")[:-1]
    read_lines(enumerate(lines), columns, format_, path, found)
    return _Piece(len(lines), None, found)


def _add(part: Part, piece: _Piece, before: int) -> None:
    """Add a piece to `part`, its lines counted from 1 and from the start of the file."""
    first = before + 1
    part.reasons.extend((first + number, reason) for number, reason in piece.found.reasons)
    table = piece.table
    if piece.found.rows:
        exact = from_rows(piece.found.rows, piece.found.numbers)
        table = exact if table is None else joined([exact, table], LINE)
    if table is not None and len(table):
        lines = numbers(table, LINE) + first
        at = table.schema.get_field_index(LINE)
        part.tables.append(table.set_column(at, LINE, arrow(lines)))
