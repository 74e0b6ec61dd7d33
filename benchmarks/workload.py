"""What is moved and where: the same volume, ranks and directory for every program."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.errors import BenchmarkError

MIB: Final = 2**20
GIB: Final = 2**30
_ELEMENT_BYTES: Final = 8
_REPEATS: Final = 4
_UNITS: Final = {"K": 2**10, "M": 2**20, "G": 2**30}


def parse_size(text: str) -> int:
    """Return the bytes of a size such as 512M.

    Raises:
        BenchmarkError: it is not a size.
    """
    digits, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if not digits.isdigit() or (unit and unit not in _UNITS):
        raise BenchmarkError(f"{text!r} is no size: say 512M or 1G")
    return int(digits) * _UNITS.get(unit, 1)


@dataclass(frozen=True)
class Workload:
    """An array spread over ranks: `row` elements along its first axis.

    `share` is the volume that each rank moves, in bytes, a whole number of MiB.
    """

    ranks: int
    share: int
    row: int = 1024

    def __post_init__(self) -> None:
        """Check that all programs can move exactly this volume."""
        if self.ranks < 1 or self.share < MIB or self.share % MIB:
            raise BenchmarkError("each rank needs a share of a whole number of MiB")
        if self.share % (self.row * _ELEMENT_BYTES):
            raise BenchmarkError(f"a share of {self.share} bytes has no whole number of rows")

    @property
    def volume(self) -> int:
        """The bytes of all ranks."""
        return self.ranks * self.share

    @property
    def block(self) -> tuple[int, int, int]:
        """The block of a rank in elements, with its rows arranged as nearly square as possible."""
        rows = self.share // (self.row * _ELEMENT_BYTES)
        second = next(n for n in range(math.isqrt(rows), 0, -1) if rows % n == 0)
        return self.row, second, rows // second


@dataclass(frozen=True)
class Place:
    """A directory to measure in.

    With `is_disk`, writes include fsync and reads find nothing in the page cache. In memory
    neither is possible.
    """

    name: str
    directory: Path
    is_disk: bool

    def repeats(self, operation: str) -> int:
        """How often a program repeats an operation in one run; see `settled`.

        Once where the first would leave its data in the page cache for the next.
        """
        return 1 if self.is_disk and operation == "read" else _REPEATS


def settled(rates: Sequence[float]) -> float:
    """Return the median of the repeats of a run, without the first.

    On a virtual machine the first may wait for memory that the host has to find, depending on what
    ran before.
    """
    return statistics.median(rates[1:] or rates)
