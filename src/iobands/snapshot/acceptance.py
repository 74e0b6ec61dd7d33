"""What an acceptance found, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from iobands.bands.contract import Contract, ContractLine


class Outcome(str, Enum):
    """What is decided of a line of a contract."""

    MET = "met"
    MISSED = "missed"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Decision:
    """What the first `runs` runs of a line decide, which count as `effective` independent ones.

    `evidence`, in nats, is for the promise after each run; above `to_meet` the line is met, below
    `to_miss` it is missed. `rate` is the promised quantile of the runs, with a 90 % interval, and
    `spread` the standard deviation of the logarithms of the rates.
    """

    outcome: Outcome
    runs: int
    effective: float
    evidence: tuple[float, ...]
    to_meet: float
    to_miss: float
    rate: float | None = None
    lower: float | None = None
    upper: float | None = None
    spread: float | None = None


@dataclass(frozen=True)
class AcceptedLine:
    """A line with its runs: the columns of the perflog by name, in the order of time.

    `failures` are the reasons of runs that gave no rate. The check is the one that measures it.
    """

    line: ContractLine
    check: str
    partition: str
    environ: str
    decision: Decision
    runs: tuple[Mapping[str, Any], ...]
    failures: tuple[str, ...] = ()

    @property
    def counted(self) -> tuple[Mapping[str, Any], ...]:
        """The runs up to the one that decided."""
        return self.runs[: self.decision.runs]

    @property
    def runs_left(self) -> int:
        """How many more runs the contract allows."""
        if self.decision.outcome is not Outcome.UNDECIDED:
            return 0
        return max(self.line.promise.runs - self.decision.runs, 0)


@dataclass(frozen=True)
class Acceptance:
    """A contract with what is known of its lines; `began` is text, as written at the beginning."""

    contract: Contract
    began: str
    version: str
    lines: tuple[AcceptedLine, ...]
