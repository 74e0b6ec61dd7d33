"""Pairs of alternating runs and their ratios, independent of the programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.errors import BenchmarkError


@dataclass(frozen=True)
class Contender:
    """Something that can be measured again and again: `run` returns a rate in bytes/s."""

    name: str
    run: Callable[[], float]


@dataclass(frozen=True)
class Quartiles:
    """The median of some values, and the quartiles around it."""

    lower: float
    median: float
    upper: float


def quartiles(values: Sequence[float]) -> Quartiles:
    """Return the quartiles of values, interpolated linearly."""
    lower, median, upper = np.percentile(np.asarray(values, dtype=float), [25, 50, 75])
    return Quartiles(float(lower), float(median), float(upper))


@dataclass(frozen=True)
class Pairs:
    """The rates of two contenders in turn."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratio(self) -> Quartiles:
        """The quartiles of ours over theirs, pair by pair."""
        return quartiles([our / their for our, their in zip(self.ours, self.theirs, strict=True)])


def take_turns(contenders: Sequence[Contender], count: int) -> dict[str, tuple[float, ...]]:
    """Return by name the rates of contenders that run in turn."""
    rounds = [[contender.run() for contender in contenders] for _ in range(count)]
    return {
        contender.name: tuple(rates[at] for rates in rounds)
        for at, contender in enumerate(contenders)
    }


def highest_rates(candidates: Sequence[Contender], tries: int) -> dict[str, float | BenchmarkError]:
    """Return by name the highest rate of several tries, taken in turn, or why there is none.

    Not every way works everywhere: O_DIRECT or io_uring may be refused.
    """
    found: dict[str, float | BenchmarkError] = {}
    for _ in range(tries):
        for candidate in candidates:
            before = found.get(candidate.name, 0.0)
            if isinstance(before, BenchmarkError):
                continue
            try:
                found[candidate.name] = max(before, candidate.run())
            except BenchmarkError as error:
                found[candidate.name] = error
    return found
