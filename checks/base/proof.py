"""What a run must prove before its rates count, with any program. Pure functions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


class ResultError(ValueError):
    """A result is missing or cannot be read; the message names the file."""


@dataclass(frozen=True)
class Phase:
    """One phase of one repeat: what the program reported, by its own names, and the rate."""

    name: str
    repeat: int
    fields: Mapping
    rate: float | None


def unproven(
    phases: Iterable[Phase], asked: Mapping[str, Mapping[str, object]], repeats: int
) -> list[str]:
    """Differences from what was `asked` of each phase, a line each; empty if all is proven.

    Raises:
        ResultError: each process ran as a program of its own, so that every figure differs.
    """
    phases = list(phases)
    if phases and all(
        phase.fields.get("tasks") == 1 < asked.get(phase.name, {}).get("tasks", 1)
        for phase in phases
    ):
        raise ResultError(
            "each process ran alone: does the program belong to the MPI library of the environment?"
        )
    wanted = [(name, repeat) for repeat in range(1, repeats + 1) for name in asked]
    measured = [(phase.name, phase.repeat) for phase in phases]
    problems = [
        f"{name}, repeat {repeat}: not measured"
        for name, repeat in wanted
        if (name, repeat) not in measured
    ]
    if sorted(measured, key=str) != sorted(wanted, key=str) and not problems:
        problems.append(f"measured {measured}, requested {wanted}")
    for phase in phases:
        found = differences(asked.get(phase.name, {}), phase.fields)
        if not isinstance(phase.rate, (int, float)) or not 0 < phase.rate < float("inf"):
            found.append(f"rate is {phase.rate}")
        problems += [f"{phase.name}, repeat {phase.repeat}: {problem}" for problem in found]
    return problems


def differences(asked: Mapping[str, object], found: Mapping[str, object]) -> list[str]:
    """The fields that differ from the request, a line each."""
    return [
        f"{name} requested: {value}, in effect: {found.get(name)}"
        for name, value in asked.items()
        if found.get(name) != value
    ]


def misplaced_files(
    listing: str, files: int, written: float, spare: float = 0, grain: float = 0
) -> list[str]:
    """What is wrong with the files on disk; `listing` has a line `SIZE NAME` for each.

    They may be `spare` bytes larger than the data; `grain` is its rounding error in bytes.
    """
    sizes = [int(line.split(maxsplit=1)[0]) for line in listing.splitlines()]
    problems = []
    if len(sizes) != files:
        problems.append(f"files requested: {files}, on disk: {len(sizes)}")
    if not written - grain <= sum(sizes) <= written + spare + grain:
        problems.append(f"bytes written: {written}, on disk: {sum(sizes)}")
    return problems


def rates(phases: Iterable[Phase], name: str) -> list[float]:
    """The rate of each repeat of a phase; their median is the job's sample."""
    return [phase.rate for phase in phases if phase.name == name]
