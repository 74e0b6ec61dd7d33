"""The command behind `make bench-reading`: measures, prints and writes `docs/reading-costs.md`."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from compileall import compile_dir
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer

from benchmarks.machine import processor
from benchmarks.pages import rendered
from benchmarks.reading.perflogs import write_perflogs

_ROOT: Final = Path(__file__).resolve().parents[2]
_SIZES: Final = "300x365,5000x30,500x3650"
#: The aims for `iobands status`: from the perflogs alone, and a day after a session.
_AIMS: Final = {
    (300, 365): ("1.2 s", "1 s"),
    (5000, 30): ("4 s", ""),
    (500, 3650): ("8 s, 1 GB", "1 s"),
}
_MIB: Final = 2**20
_READ: Final = (
    "import sys, pathlib, iobands.source.perflog as perflog\n"
    "perflog.read_perflogs(pathlib.Path(sys.argv[1])).histories"
)


@dataclass(frozen=True)
class Cost:
    """What a process cost: seconds on the clock and of the processor, and the most memory."""

    wall: float
    processor: float
    mib: float


@dataclass(frozen=True)
class Costs:
    """What the perflogs of one size cost: medians, of memory the largest."""

    series: int
    days: int
    rows: int
    mib: float
    read: Cost
    status: Cost
    later: Cost

    @property
    def aims(self) -> tuple[str, str]:
        """The aims for `iobands status`: from the perflogs alone, and a day after a session."""
        return _AIMS.get((self.series, self.days), ("", ""))


def main(
    sizes: Annotated[
        str, typer.Option(help="Series x days, each as of that many series.")
    ] = _SIZES,
    tries: Annotated[int, typer.Option(help="How often each is measured.", min=1)] = 5,
    directory: Annotated[Path, typer.Option(help="Where the perflogs are made.")] = _ROOT / "build",
    report: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
) -> None:
    """Measure reading perflogs, and `iobands status` on them."""
    directory.mkdir(parents=True, exist_ok=True)
    before = os.getloadavg()[0]
    costs = []
    for size in sizes.split(","):
        series, days = (int(number) for number in size.split("x"))
        with TemporaryDirectory(prefix="bench-reading-", dir=directory) as scratch:
            costs.append(_measure(Path(scratch), series, days, tries))
        print(costs[-1])
    if report is not None:
        values = {"costs": costs, "facts": facts(before), "cores": os.cpu_count(), "tries": tries}
        write_page(report, "reading-costs.md", **values)


def facts(before: float) -> dict[str, str]:
    """Return facts about the machine; `before` is its load before the start."""
    return {
        "Processor": f"{processor()}, {os.cpu_count()} cores",
        "Kernel": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        **{name: version(name) for name in ("polars", "numpy")},
        "Load before the start": f"{before:.1f}",
        "Load at the end, this benchmark's included": f"{os.getloadavg()[0]:.1f}",
    }


def write_page(path: Path, template: str, **values: object) -> None:
    """Write a page from its template, with the date of today."""
    date = f"{datetime.now(timezone.utc):%Y-%m-%d}"
    path.write_text(rendered(template, date=date, **values), "utf-8")
    print(f"Written: {path}")


def _measure(perflogs: Path, series: int, days: int, tries: int) -> Costs:
    rows = write_perflogs(perflogs, series, days)
    size = sum(log.stat().st_size for log in perflogs.glob("*/*/*.log"))
    read = [sys.executable, "-c", _READ, str(perflogs)]
    status = [sys.executable, "-m", "iobands", "status", "--perflogs", str(perflogs)]
    found = cost(read, tries), cost(status, tries)
    session = [sys.executable, "-m", "benchmarks.reading.day_before", str(perflogs)]
    subprocess.run(session, cwd=_ROOT, check=True)
    return Costs(series, days, rows, size / _MIB, *found, cost(status, tries))


def cost(command: Sequence[str], tries: int) -> Cost:
    """Return what a command costs: the medians of several tries, and the largest memory.

    Compiles the modules of iobands first, as pip does when it installs them.
    """
    compile_dir(_ROOT / "src", quiet=1)
    walls, processors, peaks = [], [], []
    for _ in range(tries):
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": str(_ROOT / "src")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        walls.append(time.perf_counter() - start)
        processors.append(used.ru_utime + used.ru_stime)
        peaks.append(used.ru_maxrss / 1024)
    return Cost(median(walls), median(processors), max(peaks))


if __name__ == "__main__":
    typer.run(main)
