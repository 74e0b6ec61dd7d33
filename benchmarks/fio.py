"""Measuring fio: one job per rank, each with its own file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.errors import BenchmarkError
from benchmarks.launch import run
from benchmarks.workload import MIB, Place, Workload, settled


@dataclass(frozen=True)
class Way:
    """One way in which fio can move data."""

    engine: str
    block: int
    depth: int
    direct: bool

    @property
    def name(self) -> str:
        """What the table calls it."""
        size = f"{self.block // MIB} MiB" if self.block >= MIB else f"{self.block // 1024} KiB"
        depth = f", depth {self.depth}" if self.depth > 1 else ""
        return f"{self.engine}, {size}{depth}{', O_DIRECT' if self.direct else ''}"


WAYS: Final = (
    Way("psync", 128 * 1024, 1, False),
    Way("psync", MIB, 1, False),
    Way("psync", 4 * MIB, 1, False),
    Way("io_uring", MIB, 8, False),
    Way("psync", MIB, 1, True),
    Way("psync", 4 * MIB, 1, True),
    Way("libaio", MIB, 16, True),
    Way("io_uring", 4 * MIB, 4, True),
)


def file_name(rank: int) -> str:
    """Return the name of a job's file."""
    return f"fio.{rank}"


def measure(
    way: Way, operation: str, workload: Workload, place: Place, directory: Path, result: Path
) -> float:
    """Write or read the jobs' files, which stay, and return the median rate in bytes/s.

    The files are not preallocated before the clock starts, and the data are not changed between
    the writes.
    """
    fsync = operation == "write" and place.is_disk
    command = [
        "fio",
        "--name=bench",
        f"--directory={directory}",
        "--filename_format=fio.$jobnum",
        f"--numjobs={workload.ranks}",
        f"--size={workload.share}",
        f"--rw={operation}",
        f"--ioengine={way.engine}",
        f"--bs={way.block}",
        f"--iodepth={way.depth}",
        f"--direct={int(way.direct)}",
        f"--end_fsync={int(fsync)}",
        "--fallocate=none",
        "--invalidate=0",
        "--scramble_buffers=0",
        "--gtod_reduce=1",
        "--output-format=json",
        f"--output={result}",
    ]
    rates = []
    for _ in range(place.repeats(operation)):
        if operation == "write":
            for rank in range(workload.ranks):
                (directory / file_name(rank)).unlink(missing_ok=True)
        run(command)
        rates.append(rate_of(result.read_text(), operation, workload.volume))
    return settled(rates)


def rate_of(output: str, operation: str, volume: int) -> float:
    """Return the rate of all jobs over the time of the slowest, in bytes/s.

    That time includes opening and the fsync at the end. It is in milliseconds.

    Raises:
        BenchmarkError: the jobs did not move the volume, or took less time than fio can resolve.
    """
    # A warning may stand before the JSON.
    jobs: list[dict[str, Any]] = json.loads(output[output.index("{") :])["jobs"]
    moved = sum(job[operation]["io_bytes"] for job in jobs)
    failed = [job["error"] for job in jobs if job["error"]]
    if moved != volume or failed:
        raise BenchmarkError(f"fio moved {moved} of {volume} bytes")
    milliseconds = max(job[operation]["runtime"] for job in jobs)
    if milliseconds <= 0:
        raise BenchmarkError("fio took less than a millisecond")
    return moved / milliseconds * 1000
