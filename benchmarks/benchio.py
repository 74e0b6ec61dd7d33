"""Measuring benchio."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.launch import run, run_ranks
from benchmarks.workload import Place, Workload


def has_layer(program: Path, layer: str) -> bool:
    """Tell whether this build of benchio offers a layer."""
    lines = run([program, "--help"]).splitlines()
    return any(line.startswith("  ") and layer in line.split() for line in lines)


def command(program: Path, workload: Workload, layer: str, slab: bool) -> list[object]:
    """Return the command line that all runs of a layer have in common."""
    shape = ["--decomposition=slab"] if slab else []
    return [program, *workload.block, "local", layer, *shape]


def measure_write(
    base: list[object], workload: Workload, place: Place, directory: Path, result: Path
) -> float:
    """Write new files, which stay, and return the rate in bytes/s."""
    fsync = ["fsync"] if place.is_disk else []
    options = ["--keep", f"--directory={directory}", f"--result={result}"]
    run_ranks(workload.ranks, [*base, *fsync, *options])
    return rate_of(result.read_text(), "write", workload.volume, place)


def measure_read(
    base: list[object], workload: Workload, place: Place, directory: Path, result: Path
) -> float:
    """Read the files of an earlier write and return the rate in bytes/s."""
    cache = "drop" if place.is_disk else "none"
    options = ["--no-write", "--read", f"--cache={cache}"]
    where = [f"--directory={directory}", f"--result={result}"]
    run_ranks(workload.ranks, [*base, *options, *where])
    return rate_of(result.read_text(), "read", workload.volume, place)


def rate_of(result: str, operation: str, volume: int, place: Place) -> float:
    """Return the rate that a result file says, in bytes/s.

    Raises:
        BenchmarkError: the record is not of what was to be measured.
    """
    record: dict[str, Any] = json.loads(result)
    asked = {"operation": operation, "bytes": volume}
    if operation == "write":
        asked["fsync"] = place.is_disk
    else:
        asked["cache"] = "dropped" if place.is_disk else "none"
    for key, value in asked.items():
        if record[key] != value:
            raise BenchmarkError(f"benchio says {key} {record[key]!r} and not {value!r}")
    return float(record["bytes"] / record["seconds"])
