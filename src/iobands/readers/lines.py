"""Reading a perflog line by line: what every line becomes, exactly.

Every line becomes one or more rows, or is rejected with a reason; a header says what the lines
after it mean. `iobands.readers.bulk` does the same faster for lines that cannot be in doubt, and
must agree with what is said here. May know: the fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

from iobands.readers.fields import REQUIRED, TIME, typed
from iobands.readers.rejected import Unusable


class Format(Protocol):
    """How the lines of a perflog are laid out: what an adapter has to say of them."""

    #: What the user calls it by.
    name: ClassVar[str]
    #: Whether lines before the first header mean something.
    headless: ClassVar[bool]

    def cells(self, text: str) -> list[str]:
        """Return what stands in the columns of a line."""

    def is_header(self, cells: Sequence[str]) -> bool:
        """Tell whether a line names the columns of those after it."""

    def missing(self, columns: Sequence[str]) -> list[str]:
        """Return what a header lacks without which no line under it can be used."""

    def records(
        self, cells: Sequence[str], columns: Sequence[str], path: Path
    ) -> Iterable[Mapping[str, str]]:
        """Return what a line says, each sample by the columns of contract 2, as text.

        Raises:
            Unusable: the line is damaged.
        """


@dataclass(frozen=True)
class Contract:
    """Contract 2: what ReFrame writes with the configuration of this repository."""

    name: ClassVar[str] = "iobands"
    headless: ClassVar[bool] = False

    def cells(self, text: str) -> list[str]:
        """Return the cells, which `|` separates."""
        return [cell.strip() for cell in text.split("|")]

    def is_header(self, cells: Sequence[str]) -> bool:
        """Tell a header by two of its names."""
        return TIME in cells and "perf_value" in cells

    def missing(self, columns: Sequence[str]) -> list[str]:
        """Return the required columns that are not there."""
        return [name for name in REQUIRED if name not in columns]

    def records(
        self, cells: Sequence[str], columns: Sequence[str], path: Path
    ) -> Iterator[Mapping[str, str]]:
        """Yield the one sample of a line."""
        del path
        same_number(cells, columns)
        yield dict(zip(columns, cells, strict=True))


def same_number(cells: Sequence[str], columns: Sequence[str]) -> None:
    """Raise Unusable where a line has not as many cells as its header."""
    if len(cells) != len(columns):
        raise Unusable(f"{len(cells)} columns instead of {len(columns)}")


@dataclass
class Found:
    """What lines held: rows and reasons, each with the number of its line."""

    numbers: list[int] = field(default_factory=list)
    rows: list[dict[str, object]] = field(default_factory=list)
    reasons: list[tuple[int, str]] = field(default_factory=list)


def read_lines(
    lines: Iterable[tuple[int, bytes]],
    columns: tuple[str, ...],
    format_: Format,
    path: Path,
    found: Found,
) -> tuple[str, ...]:
    """Add to `found` what the numbered `lines` hold; return the columns in force after them."""
    missing = format_.missing(columns) if columns else []
    for number, line in lines:
        try:
            cells = format_.cells(_text(line))
            if format_.is_header(cells):
                repeated, columns = bool(columns), tuple(cells)
                missing = format_.missing(columns)
                if repeated:
                    raise Unusable("another header line amid the file")
                if missing:
                    raise Unusable(f"columns are missing: {', '.join(missing)}")
                continue
            if not columns and not format_.headless:
                raise Unusable("no header line before it")
            if missing:
                raise Unusable("under a header that lacks columns")
            rows = [typed(record) for record in format_.records(cells, columns, path)]
        except Unusable as reason:
            found.reasons.append((number, str(reason)))
        else:
            found.rows.extend(rows)
            found.numbers.extend([number] * len(rows))
    return columns


def _text(line: bytes) -> str:
    if not line.strip():
        raise Unusable("empty line")
    if b"\0" in line:
        raise Unusable("NUL bytes")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        raise Unusable("bytes that are not UTF-8") from None
