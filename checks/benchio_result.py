"""benchio's result file (contract 1): reading it, and what a run must have proved by it.

Pure functions over files; knows nothing of ReFrame or of a site.
"""

import json
from dataclasses import dataclass
from pathlib import Path

SCHEMA = "benchio/2"
OPERATIONS = ("write", "read")


class ResultError(ValueError):
    """The result file does not say what a run must prove; the message says what is wrong."""


@dataclass(frozen=True)
class Expectation:
    """What a run was asked for. Bytes are those of one phase."""

    layer: str
    pattern: str
    interface: str
    repeats: int
    nodes: int
    processes: int
    bytes: int
    files: int
    fsync: bool
    #: How much larger than the data the files may be: the formats of libraries have headers.
    overhead_bytes: int = 0
    operations: tuple[str, ...] = OPERATIONS


def read_result(path: Path) -> list[dict]:
    """The records of a result file, one a phase.

    Raises:
        ResultError: there is no file, or a line is not a record of this schema.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ResultError(f"no result file: {error.strerror}") from error
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            schema = record["schema"]
        except (ValueError, TypeError, KeyError) as error:
            raise ResultError(f"{path.name}, line {number}: not a record") from error
        if schema != SCHEMA:
            raise ResultError(f"{path.name}, line {number}: schema {schema!r}, not {SCHEMA!r}")
        records.append(record)
    return records


def unproven(records: list[dict], expected: Expectation) -> list[str]:
    """What these records fail to prove, in words; empty when all is proven."""
    wanted = [
        (op, repeat) for repeat in range(1, expected.repeats + 1) for op in expected.operations
    ]
    measured = [(record.get("operation"), record.get("repeat")) for record in records]
    problems = [
        f"{operation}, repeat {repeat}: not measured"
        for operation, repeat in wanted
        if (operation, repeat) not in measured
    ]
    if sorted(measured, key=str) != sorted(wanted, key=str) and not problems:
        problems.append(f"measured {measured}, asked for {wanted}")
    for record in records:
        where = f"{record.get('operation')}, repeat {record.get('repeat')}"
        problems += [f"{where}: {problem}" for problem in _record_problems(record, expected)]
    return problems


def _record_problems(record: dict, expected: Expectation) -> list[str]:
    asked = {
        "layer": expected.layer,
        "pattern": expected.pattern,
        "interface": expected.interface,
        "nodes": expected.nodes,
        "processes": expected.processes,
        "bytes": expected.bytes,
        "files": expected.files,
    }
    if record.get("operation") == "read":
        asked["verified_bytes"] = expected.bytes
    else:
        asked["fsync"] = expected.fsync
    problems = [
        f"{name} asked: {value}, in effect: {record.get(name)}"
        for name, value in asked.items()
        if record.get(name) != value
    ]
    bandwidth = record.get("bandwidth_gib_s")
    if not isinstance(bandwidth, (int, float)) or not 0 < bandwidth < float("inf"):
        problems.append(f"bandwidth_gib_s is {bandwidth}")
    return problems


def misplaced_files(listing: str, expected: Expectation) -> list[str]:
    """What is wrong with the files found on disk; `listing` has a line `SIZE NAME` for each."""
    sizes = [int(line.split(maxsplit=1)[0]) for line in listing.splitlines()]
    problems = []
    if len(sizes) != expected.files:
        problems.append(f"files asked: {expected.files}, on disk: {len(sizes)}")
    if not expected.bytes <= sum(sizes) <= expected.bytes + expected.overhead_bytes:
        problems.append(f"bytes asked: {expected.bytes}, on disk: {sum(sizes)}")
    return problems


def bandwidths(records: list[dict], operation: str) -> list[float]:
    """The bandwidth of each repeat, in GiB/s; their median is the job's one sample."""
    return [record["bandwidth_gib_s"] for record in records if record["operation"] == operation]


def cache_of_reads(records: list[dict]) -> str:
    """What kept all reads from the page cache: `dropped`, `direct` or `shifted`, else `none`."""
    seen = {record.get("cache") for record in records if record["operation"] == "read"}
    return (len(seen) == 1 and seen.pop()) or "none"
