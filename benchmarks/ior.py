"""Measuring IOR."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from benchmarks.errors import BenchmarkError
from benchmarks.launch import run_ranks
from benchmarks.workload import MIB, Place, Workload, settled

FILE_PER_PROCESS: Final = ("-a", "POSIX", "-F")
SHARED_COLLECTIVE: Final = ("-a", "MPIIO", "-c")
# IOR prints times with too few digits for a closer comparison.
_SMALLEST_STEP_S: Final = 1e-4


def transfer_sizes(workload: Workload, sizes: tuple[int, ...]) -> list[int]:
    """Return the sizes that divide a rank's share, and the share itself."""
    smaller = [size for size in sizes if size < workload.share and workload.share % size == 0]
    return [*smaller, workload.share]


def measure(
    options: tuple[str, ...], transfer: int, operation: str, workload: Workload, place: Place,
    path: Path, result: Path,
) -> float:  # fmt: skip
    """Write or read `path`, which stays, and return the rate in bytes/s."""
    what = ["-w"] if operation == "write" else ["-r"]
    fsync = ["-e"] if operation == "write" and place.is_disk else []
    sizes = ["-b", workload.share, "-t", transfer, "-i", place.repeats(operation), "-k", "-o", path]
    summary = ["-O", "summaryFormat=JSON", "-O", f"summaryFile={result}"]
    run_ranks(workload.ranks, ["ior", *options, *what, *fsync, *sizes, *summary])
    return rate_of(result.read_text(), operation, workload.volume, bool(fsync))


def rate_of(summary: str, operation: str, volume: int, fsync: bool) -> float:
    """Return the rate in IOR's summary, in bytes/s: the median of its repeats.

    IOR's own rate is over `totalTime`, from the first opening to the last close.

    Raises:
        BenchmarkError: the summary is of another measurement than requested.
    """
    test: dict[str, Any] = json.loads(summary)["tests"][0]
    parameters = test["Parameters"]
    moved = parameters["blockSize"] * parameters["segmentCount"] * test["Options"]["tasks"]
    for found in test["Results"]:
        if (found["access"], moved, parameters["fsync"]) != (operation, volume, int(fsync)):
            raise BenchmarkError(f"IOR did not {operation} {volume} bytes as asked")
        if abs(volume / MIB / found["bwMiB"] - found["totalTime"]) > _SMALLEST_STEP_S:
            raise BenchmarkError("IOR's rate does not follow from its total time")
    return settled([found["bwMiB"] * MIB for found in test["Results"]])
