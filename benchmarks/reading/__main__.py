"""The command behind `make bench-reading`: measures, prints and writes `docs/reading-costs.md`."""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer
from jinja2 import Environment, FileSystemLoader, StrictUndefined

_ROOT: Final = Path(__file__).resolve().parents[2]
_TEMPLATES: Final = _ROOT / "benchmarks" / "templates"
_SIZES: Final = "10000,100000,1000000,1825000"
#: Ten years of daily runs of 500 series: what the aims are for.
_TEN_YEARS: Final = 1_825_000
_MIB: Final = 2**20


@dataclass(frozen=True)
class Cost:
    """What perflogs of one size cost: seconds are medians, memory in MiB the largest.

    `status` is the command with all caches, `daily` the same after a day's runs were appended;
    `status_cpu` and `daily_cpu` are the processor's seconds, user's and system's, of both.
    """

    rows: int
    mib: float
    pandas: float
    pandas_mib: float
    cold: float
    cold_mib: float
    ratio: float
    warm: float
    status: float
    status_cpu: float
    daily: float
    daily_cpu: float
    cache_mib: float

    @property
    def rate(self) -> float:
        """Rows a second of a cold read."""
        return self.rows / self.cold


def main(
    rows: Annotated[str, typer.Option(help="How many rows, in thousands or more.")] = _SIZES,
    tries: Annotated[int, typer.Option(help="How often each is measured.", min=1)] = 5,
    directory: Annotated[Path, typer.Option(help="Where the perflogs are made.")] = _ROOT / "build",
    report: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
) -> None:
    """Hold reading perflogs against pandas.read_csv on the same bytes, in turn."""
    directory.mkdir(parents=True, exist_ok=True)
    before = os.getloadavg()[0]
    costs = []
    for size in (int(text) for text in rows.split(",")):
        with TemporaryDirectory(prefix="bench-reading-", dir=directory) as scratch:
            cost = _measure(Path(scratch), size, tries)
        costs.append(cost)
        print(
            f"{cost.rows} rows: {cost.cold:.2f} s cold, {cost.ratio:.2f} of pandas' speed, "
            f"{cost.cold_mib:.0f} MiB; warm {cost.warm:.2f} s, status {cost.status:.2f} s "
            f"({cost.status_cpu:.2f} s of processor), {cost.daily:.2f} s ({cost.daily_cpu:.2f} s) "
            "after a day's runs"
        )
    facts = {
        "Processor": f"{_processor()}, {os.cpu_count()} cores",
        "Kernel": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        **{name: version(name) for name in ("pandas", "pyarrow", "numpy")},
        "Load before the start": f"{before:.1f}",
        "Load at the end, this benchmark's included": f"{os.getloadavg()[0]:.1f}",
    }
    if report is not None:
        environment = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        date = datetime.now(timezone.utc).date().isoformat()
        page = environment.get_template("reading-costs.md").render(
            costs=costs,
            aim=next((cost for cost in costs if cost.rows == _TEN_YEARS), None),
            facts=facts,
            tries=tries,
            date=date,
        )
        report.write_text(page, encoding="utf-8")
        print(f"Written: {report}")


def _measure(scratch: Path, rows: int, tries: int) -> Cost:
    perflogs, caches = scratch / "perflogs", scratch / "caches"
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(caches),
        "PYTHONPATH": f"{_ROOT / 'src'}:{_ROOT}",
    }

    def task(what: str, *more: str) -> dict[str, float]:
        command = [sys.executable, "-m", "benchmarks.reading.task", what, str(perflogs), *more]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    def status() -> tuple[float, float]:
        command = [sys.executable, "-m", "iobands", "status", "--perflogs", str(perflogs)]
        start, used = time.perf_counter(), _processor_seconds()
        subprocess.run(command, env=environment, check=False, capture_output=True)
        return time.perf_counter() - start, _processor_seconds() - used

    written = task("write", str(rows))["rows"]
    size = sum(log.stat().st_size for log in perflogs.glob("*/*/*.log"))
    theirs, cold, warm, digest, daily = [], [], [], [], []
    cache = 0
    for number in range(tries):
        for kept in caches.glob("*/*"):
            kept.unlink()
        theirs.append(task("pandas"))
        cold.append(task("cold"))
        warm.append(task("warm"))
        status()  # which keeps the charts
        cache = sum(kept.stat().st_size for kept in caches.glob("*/*"))
        digest.append(status())
        task("append", str(number + 1))
        daily.append(status())
    return Cost(
        rows=int(written),
        mib=size / _MIB,
        pandas=median(each["seconds"] for each in theirs),
        pandas_mib=max(each["peak"] for each in theirs) / _MIB,
        cold=median(each["seconds"] for each in cold),
        cold_mib=max(each["peak"] for each in cold) / _MIB,
        ratio=median(
            other["seconds"] / ours["seconds"] for other, ours in zip(theirs, cold, strict=True)
        ),
        warm=median(each["seconds"] for each in warm),
        status=median(wall for wall, _ in digest),
        status_cpu=median(used for _, used in digest),
        daily=median(wall for wall, _ in daily),
        daily_cpu=median(used for _, used in daily),
        cache_mib=cache / _MIB,
    )


def _processor_seconds() -> float:
    """Return what the processes that were waited for have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _processor() -> str:
    names = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return names[1].strip() if names else platform.machine()


if __name__ == "__main__":
    typer.run(main)
