"""Measuring rows: from contenders to the cells of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.errors import BenchmarkError
from benchmarks.pairs import Contender, Pairs, Quartiles, highest_rates, quartiles, take_pairs
from benchmarks.rows import Row
from benchmarks.workload import GIB


@dataclass(frozen=True)
class Effort:
    """How often things are run: pairs for a ratio, and tries to find the best of `ways` at most."""

    pairs: int
    tries: int = 2
    ways: int = 99


@dataclass(frozen=True)
class Finding:
    """A row of the table, measured or left out for a reason.

    `ours` and `theirs` are medians in GiB/s.
    """

    title: str
    operation: str
    place: str
    aim: float
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
        if self.ratio.median >= self.aim:
            return "reached"
        return "short, within the spread" if self.ratio.upper >= self.aim else "short"


def measure(rows: Sequence[Row], effort: Effort) -> list[Finding]:
    """Measure rows that share our contender, all in turn.

    First it is looked which of the others' ways is the best.
    """
    blank = [Finding(row.title, row.operation, row.place.name, row.aim) for row in rows]
    usable = [row.theirs[: effort.ways] for row in rows if not row.missing]
    tried = {way.name: way for ways in usable for way in ways}
    rates = highest_rates(list(tried.values()), effort.tries)
    best = [_best(row, effort, rates) for row in rows]
    chosen = {way.name: way for way in best if isinstance(way, Contender)}
    reason = None
    taken: dict[str, Pairs] = {}
    try:
        if chosen:
            pairs = take_pairs(rows[0].ours, list(chosen.values()), effort.pairs)
            taken = dict(zip(chosen, pairs, strict=True))
    except BenchmarkError as error:
        # The other rows are worth having all the same.
        reason = str(error)
    return [
        _fill(found, way, taken.get(way.name) if isinstance(way, Contender) else None, reason)
        for found, way in zip(blank, best, strict=True)
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


def _fill(found: Finding, way: Contender | str, pairs: Pairs | None, reason: str | None) -> Finding:
    """Return the finding with what was measured, or with why nothing was."""
    if isinstance(way, str):
        return replace(found, missing=way)
    if pairs is None:
        return replace(found, missing=reason or "")
    return replace(
        found,
        against=way.name,
        ours=quartiles(pairs.ours).median / GIB,
        theirs=quartiles(pairs.theirs).median / GIB,
        ratio=pairs.ratio,
    )
