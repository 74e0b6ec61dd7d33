"""Measuring rows: from contenders to the cells of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.errors import BenchmarkError
from benchmarks.pairs import Contender, Pairs, Quartiles, highest_rates, quartiles, take_turns
from benchmarks.rows import Row
from benchmarks.workload import GIB


@dataclass(frozen=True)
class Effort:
    """How much to run: pairs for each ratio, and tries to find the best of at most `ways` ways."""

    pairs: int
    tries: int = 1
    ways: int = 99


@dataclass(frozen=True)
class Finding:
    """A row of the table, measured or left out for a reason.

    `ours` and `theirs` are medians in GiB/s.
    """

    title: str
    operation: str
    place: str
    aim: float | None
    against: str = ""
    ours: float = 0.0
    theirs: float = 0.0
    ratio: Quartiles | None = None
    missing: str = ""

    @property
    def verdict(self) -> str:
        """Whether the aim was reached: by the median, with a word on the spread."""
        if self.ratio is None:
            return f"left out: {self.missing}"
        if self.aim is None:
            return ""
        if self.ratio.median >= self.aim:
            return "reached"
        return "short, within the spread" if self.ratio.upper >= self.aim else "short"


def measure(rows: Sequence[Row], effort: Effort) -> list[Finding]:
    """Measure the rows of one operation and place: all their contenders in turn.

    Before that, find the best of each other program's ways.
    """
    blank = [Finding(row.title, row.operation, row.place.name, row.aim) for row in rows]
    usable = [row.theirs[: effort.ways] for row in rows if not row.missing]
    tried = {way.name: way for ways in usable for way in ways}
    rates = highest_rates(list(tried.values()), effort.tries)
    best = [_best(row, effort, rates) for row in rows]
    chosen = {
        contender.name: contender
        for row, way in zip(rows, best, strict=True)
        if isinstance(way, Contender)
        for contender in (row.ours, way)
    }
    reason = ""
    taken: dict[str, tuple[float, ...]] = {}
    try:
        taken = take_turns(list(chosen.values()), effort.pairs)
    except BenchmarkError as error:
        # Do not raise: the other groups can still be measured.
        reason = str(error)
    return [
        _fill(row, found, way, taken, reason)
        for row, found, way in zip(rows, blank, best, strict=True)
    ]


def _best(row: Row, effort: Effort, rates: dict[str, float | BenchmarkError]) -> Contender | str:
    """Return the fastest of a row's ways, or why there is none."""
    if row.missing:
        return row.missing
    able = {way.name: way for way in row.theirs[: effort.ways]}
    found = {name: rates[name] for name in able}
    numbers = {name: rate for name, rate in found.items() if isinstance(rate, float | int)}
    if numbers:
        return able[max(numbers, key=numbers.__getitem__)]
    return str(next(iter(found.values()), "there is nothing to hold against it"))


def _fill(
    row: Row, found: Finding, way: Contender | str, taken: dict[str, tuple[float, ...]], reason: str
) -> Finding:
    """Return the finding with what was measured, or with the reason why nothing was."""
    if isinstance(way, str):
        return replace(found, missing=way)
    if not taken:
        return replace(found, missing=reason)
    pairs = Pairs(taken[row.ours.name], taken[way.name])
    return replace(
        found,
        against=way.name,
        ours=quartiles(pairs.ours).median / GIB,
        theirs=quartiles(pairs.theirs).median / GIB,
        ratio=pairs.ratio,
    )
