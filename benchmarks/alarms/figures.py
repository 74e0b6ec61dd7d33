"""Figures of a simulation: a rate, or delays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

#: The delay of a change that was not found.
NEVER = math.inf


@dataclass(frozen=True)
class Rate:
    """A number of alarms over `time`; its standard error is for a Poisson count."""

    alarms: int
    time: float

    def __str__(self) -> str:
        """Return the rate and its standard error, or the 95 % bound where nothing was seen."""
        if self.alarms == 0:
            return f"0 (< {3 / self.time:.2g})"
        return f"{self.value:.2g} ± {math.sqrt(self.alarms) / self.time:.1g}"

    @property
    def value(self) -> float:
        """Alarms per unit of time."""
        return self.alarms / self.time


@dataclass(frozen=True)
class Delays:
    """Runs from the first changed one to the alarm, both counted; `NEVER` for a miss."""

    runs: tuple[float, ...]
    longest: int

    @property
    def missed(self) -> float:
        """The share that was missed."""
        return float(np.mean(np.isinf(self.runs)))

    @property
    def mean(self) -> float:
        """The mean; a miss counts as the longest."""
        return float(np.mean(np.minimum(self.runs, self.longest)))

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        spread = np.std(np.minimum(self.runs, self.longest), ddof=1)
        return float(spread / math.sqrt(len(self.runs)))

    def quantile(self, share: float) -> float:
        """Return a quantile; a miss counts as the longest."""
        return float(np.quantile(np.minimum(self.runs, self.longest), share, method="higher"))

    def __str__(self) -> str:
        """Return the mean, its standard error, the 90 % point and the share missed."""
        missed = f", {self.missed:.0%} missed" if self.missed else ""
        return f"{self.mean:.1f} ± {self.error:.1f} ({self.quantile(0.9):.0f}){missed}"


def verdict(met: bool) -> str:
    """Return the page's word for an aim that was met or missed."""
    return "met" if met else "**missed**"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(str(cell) for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)
