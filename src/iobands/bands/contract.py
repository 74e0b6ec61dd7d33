"""The contract of an acceptance (contract 11): promises, how they are decided, and results."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

from iobands import model
from iobands.bands.file import check_match
from iobands.model import Document, Steps, canonical

MEDIAN_QUANTILE: Final = 0.5
_SCHEMA_FILE: Final = Path(__file__).with_name("contract.schema.yaml")
#: The parts of the rule that a contract sets for all lines, and a line may set for itself.
_PERCENT: Final = ("tolerance", "site_risk", "vendor_risk")
_DURATIONS: Final = ("spacing", "lasting")


@dataclass(frozen=True)
class Promise:
    """A `rate` that is promised at a `quantile` of the runs, and the rule that decides about it.

    `tolerance` is a share of the rate. `site_risk` is the largest probability that a system at the
    promise less the tolerance is called met, `vendor_risk` that one as promised is called missed.
    At most `runs` runs decide, `spacing_hours` apart; their correlation decays over
    `lasting_hours`.
    """

    rate: float
    unit: str
    runs: int
    quantile: float = MEDIAN_QUANTILE
    tolerance: float = 0.10
    site_risk: float = 0.05
    vendor_risk: float = 0.05
    spacing_hours: float = 6.0
    lasting_hours: float = 36.0


@dataclass(frozen=True)
class ContractLine:
    """One promise: its name, and the fields and the variable of the series that it is about."""

    name: str
    match: Mapping[str, object]
    promise: Promise

    @property
    def variable(self) -> str:
        """What is measured."""
        return str(self.match["variable"])

    def is_of(self, fields: Mapping[str, Any]) -> bool:
        """Whether the line is about a check or a run with these fields."""
        return all(
            canonical(fields.get(name)) == canonical(wanted)
            for name, wanted in {"case": None, **self.match}.items()
            if name != "variable"
        )


@dataclass(frozen=True)
class Contract:
    """The promises for a system; `digest` is the SHA-256 of the file."""

    system: str
    title: str
    lines: tuple[ContractLine, ...]
    digest: str
    document: Document


def parse_contract(content: bytes, path: Path) -> Contract:
    """Return the contract in `content`, the text of the file at `path`, or raise FileError."""
    document = model.parse_yaml(content, path)
    document.check(model.load_schema(_SCHEMA_FILE))
    said = document.value
    lines = tuple(_line(document, number) for number in range(len(said["lines"])))
    names = [line.name for line in lines]
    for number, name in enumerate(names):
        if names.index(name) != number:
            problem = f"is also the name of line {names.index(name) + 1}; names must differ"
            raise document.error(["lines", number, "name"], problem)
    digest = hashlib.sha256(content).hexdigest()
    return Contract(said["system"], said["title"], lines, digest, document)


def _line(document: Document, number: int) -> ContractLine:
    steps: Steps = ["lines", number]
    said = document.at(steps)
    check_match(document, [*steps, "match"], said["match"])
    unit = model.VARIABLE_UNITS[said["match"]["variable"]]
    if said["unit"] != unit:
        raise document.error([*steps, "unit"], model.unknown(said["unit"], [unit]))
    rule = {**document.value, **said}
    given = {name: rule[f"{name}_percent"] / 100 for name in _PERCENT if f"{name}_percent" in rule}
    given |= {
        f"{name}_hours": model.seconds_of(rule[name]) / 3600 for name in _DURATIONS if name in rule
    }
    share = float(said.get("quantile", MEDIAN_QUANTILE))
    promise = Promise(float(said["rate"]), unit, said["runs"], share, **given)
    return ContractLine(said["name"], said["match"], promise)


@dataclass(frozen=True)
class MeasuredBy:
    """The check of a line: its name in ReFrame, and where it runs."""

    check: str
    partition: str
    environ: str

    def __str__(self) -> str:
        """Return the check, the partition and the environment for a message."""
        return f"{self.check} on {self.partition} with {self.environ}"


class Outcome(str, Enum):
    """The decision about a line of a contract."""

    MET = "met"
    MISSED = "missed"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Decision:
    """The decision by the first `runs` runs of a line, which count as `effective` independent ones.

    `evidence`, in nats, is the evidence for the promise after each run: above `to_meet` the line is
    met, below `to_miss` it is missed. `rate` is the promised quantile of the runs, `lower` and
    `upper` its 90 % interval, and `spread` the standard deviation of the logarithms of the rates.
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

    `failures` are the reasons of runs that gave no rate.
    """

    line: ContractLine
    by: MeasuredBy
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
    """A contract with the results of its lines; `began` is text, as written at the beginning."""

    contract: Contract
    began: str
    version: str
    lines: tuple[AcceptedLine, ...]
