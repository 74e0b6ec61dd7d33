"""Measuring benchio."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from benchmarks.errors import BenchmarkError
from benchmarks.launch import run, run_ranks
from benchmarks.workload import Place, Workload, settled

#: Cuts the array so that the part of a rank is contiguous in a shared file.
SLAB: Final = "--decomposition=slab"


def has_layer(program: Path, layer: str) -> bool:
    """Tell whether this build of benchio offers a layer."""
    lines = run([program, "--help"]).splitlines()
    return any(line.startswith("  ") and layer in line.split() for line in lines)


def command(program: Path, workload: Workload, layer: str, *options: str) -> list[object]:
    """Return the command line that all runs of a layer have in common."""
    return [program, *workload.block, "local", layer, *options]


def measure_write(
    base: list[object], workload: Workload, place: Place, directory: Path, result: Path
) -> float:
    """Write new files, which stay, and return the rate in bytes/s."""
    fsync = ["fsync"] if place.is_disk else []
    times = f"--repeats={place.repeats('write')}"
    options = ["--keep", times, f"--directory={directory}", f"--result={result}"]
    run_ranks(workload.ranks, [*base, *fsync, *options])
    return rate_of(result.read_text(), "write", workload.volume, place, "--direct" in base)


def measure_read(
    base: list[object], workload: Workload, place: Place, directory: Path, result: Path
) -> float:
    """Read the files of an earlier write and return the rate in bytes/s."""
    options = ["--no-write", "--read", f"--repeats={place.repeats('read')}"]
    if "--direct" not in base:
        options.append(f"--cache={'drop' if place.is_disk else 'none'}")
    where = [f"--directory={directory}", f"--result={result}"]
    run_ranks(workload.ranks, [*base, *options, *where])
    return rate_of(result.read_text(), "read", workload.volume, place, "--direct" in base)


def rate_of(result: str, operation: str, volume: int, place: Place, direct: bool = False) -> float:
    """Return the rate in a result file, in bytes/s: the median of its repeats.

    Raises:
        BenchmarkError: a record is of another measurement than requested.
    """
    asked = {"operation": operation, "bytes": volume, "direct": direct}
    if operation == "write":
        asked["fsync"] = place.is_disk
    else:
        asked["cache"] = "direct" if direct else "dropped" if place.is_disk else "none"
    records: list[dict[str, Any]] = [json.loads(line) for line in result.splitlines()]
    for record in records:
        for key, value in asked.items():
            if record[key] != value:
                raise BenchmarkError(f"benchio says {key} {record[key]!r} and not {value!r}")
    return settled([record["bytes"] / record["seconds"] for record in records])
