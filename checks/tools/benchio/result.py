"""benchio's result file (contract 1). Pure functions over files."""

import csv
import json
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...base.proof import Phase, ResultError
from ...base.speeds import RankTime

SCHEMA = "benchio/4"
OPERATIONS = ("write", "read")
PERCENTILES = ("p50", "p95", "p99")


def read_result(path: Path) -> list[dict]:
    """The records of a result file, one for each phase.

    Raises:
        ResultError: there is no file, or a line is not a record of this schema.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ResultError(f"no result file: {error.strerror}") from error
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            schema = record["schema"]
            if not isinstance(record.get("operation", ""), str):
                raise TypeError
            if not isinstance(record.get("cache"), str | None):
                raise TypeError
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ResultError(f"{path.name}, line {number}: not a record") from error
        if schema != SCHEMA:
            raise ResultError(f"{path.name}, line {number}: schema {schema!r}, not {SCHEMA!r}")
        records.append(record)
    return records


def phases(records: Sequence[Mapping]) -> list[Phase]:
    """The phases of these records."""
    return [
        Phase(record.get("operation"), record.get("repeat"), record, rate_of(record))
        for record in records
    ]


def rate_of(record: Mapping) -> float | None:
    """The rate of a phase: in GiB/s, or in 1/s if it moves no data."""
    return record.get("bandwidth_gib_s", record.get("rate"))


def asked(
    fields: Mapping[str, object], fsync: bool, operations: Sequence[str] = OPERATIONS
) -> dict[str, dict]:
    """The fields that the record of each operation must have: `fields`, fsync and verification."""
    own = {"write": {"fsync": fsync}, "read": {"verified_bytes": fields["bytes"]}}
    return {operation: {**fields, **own.get(operation, {})} for operation in operations}


def call_seconds(records: Sequence[Mapping]) -> str | None:
    """The times of calls, for the column `call_seconds`; None if no record has them.

    Over the repeats of an operation, percentiles are medians, and the longest is the maximum.
    """
    by_variable = []
    for operation in OPERATIONS:
        found = [
            each["latency"]
            for each in records
            if each.get("operation") == operation and each.get("latency")
        ]
        if found:
            times = {
                name: statistics.median(each[f"seconds_{name}"] for each in found)
                for name in PERCENTILES
            }
            times["max"] = max(each["seconds_max"] for each in found)
            spelled = ",".join(f"{name}:{seconds:.3g}" for name, seconds in times.items())
            by_variable.append(f"{operation}_bw={spelled}")
    return ";".join(by_variable) or None


def seconds_measured(records: Sequence[Mapping]) -> float:
    """The time of all phases together."""
    found = [record.get("seconds") for record in records]
    return float(sum(each for each in found if isinstance(each, int | float)))


def cache_of_reads(records: Sequence[Mapping]) -> str:
    """How all reads avoided the page cache: `dropped`, `direct` or `shifted`, else `none`."""
    seen = {record.get("cache") for record in records if record["operation"] == "read"}
    return (len(seen) == 1 and seen.pop()) or "none"


def rank_times(path: Path, file_names: str) -> dict[str, list[RankTime]]:
    """The times of the ranks by variable, for the last repeat, whose files still exist.

    `path` is the file of --ranks, `file_names` a pattern such as `proc%06d.dat`.

    Raises:
        OSError: the file cannot be read.
        ValueError, KeyError: it is not such a file.
    """
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, restval=""))
    last = max((int(row["repeat"]) for row in rows), default=0)
    found = defaultdict(list)
    for row in rows:
        if int(row["repeat"]) == last:
            time = RankTime(float(row["seconds"]), file_names % int(row["rank"]), row["host"])
            found[f"{row['operation']}_bw"].append(time)
    return dict(found)
