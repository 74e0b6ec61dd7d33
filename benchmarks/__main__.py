"""The command behind `make bench`: measures, prints the table and writes the page."""

from __future__ import annotations

import shutil
import signal
import sys
from contextlib import ExitStack
from datetime import datetime, timezone
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer
from rich.console import Console

from benchmarks import benchio
from benchmarks.errors import BenchmarkError
from benchmarks.machine import describe, load
from benchmarks.measure import Effort, Finding, measure
from benchmarks.memory import peak_ratio
from benchmarks.report import MemoryFinding, page, terminal_table
from benchmarks.rows import Bench, Row
from benchmarks.workload import Place, Workload, parse_size

_ROOT: Final = Path(__file__).resolve().parents[1]
_QUICK_VOLUME: Final = "32M"
_QUICK: Final = Effort(pairs=2, tries=1, ways=1)
_TABLE_WIDTH: Final = 150
# A layer, and whether the array is cut into slabs.
_MEMORY_LAYERS: Final = (("proc", False), ("mpiio", True), ("mpiio", False), ("hdf5", True))

app = typer.Typer(add_completion=False)


@app.command()
def bench(  # noqa: PLR0913, PLR0917  one an option
    program: Annotated[Path, typer.Option(help="The benchio to measure.")] = _ROOT
    / "build/benchio/benchio",
    directory: Annotated[Path, typer.Option(help="Where to measure on disk.")] = _ROOT / "build",
    memory_directory: Annotated[Path, typer.Option(help="Where to measure in memory.")] = Path(
        "/dev/shm"
    ),
    volume: Annotated[str, typer.Option(help="What all ranks move together.")] = "512M",
    ranks: Annotated[int, typer.Option(help="MPI ranks.", min=1)] = 2,
    pairs: Annotated[int, typer.Option(help="Pairs of runs for each ratio.", min=1)] = 4,
    only: Annotated[str, typer.Option(help="Only rows with these words in their title.")] = "",
    report: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
    quick: Annotated[bool, typer.Option(help="Small and few: to see that it works.")] = False,
) -> None:
    """Hold benchio against IOR, fio and itself, in pairs of runs."""
    console = Console() if sys.stdout.isatty() else Console(width=_TABLE_WIDTH)
    effort = _QUICK if quick else Effort(pairs)
    volume = _QUICK_VOLUME if quick else volume
    try:
        if shutil.which(program) is None:
            raise BenchmarkError(f"there is no program {program}: build it, or name one")
        workload = Workload(ranks, parse_size(volume) // ranks)
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(TemporaryDirectory()))
            places = [
                Place(name, Path(stack.enter_context(_scratch_below(above))), name == "disk")
                for name, above in (("memory", memory_directory), ("disk", directory))
            ]
            facts = describe(program, places)
            started = datetime.now(timezone.utc)
            bench = Bench(program.resolve(), workload, scratch)
            rows = [row for row in bench.rows(places) if only in row.name]
            findings = [
                found
                for _, sharing in groupby(rows, key=lambda row: row.group)
                for found in _measure_rows(console, list(sharing), effort)
            ]
            facts["Load at the end, this benchmark's included"] = load()
            memory = [] if only else _measure_memory(bench, places[0].directory)
    except BenchmarkError as error:
        print(f"bench: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    console.print(terminal_table(findings, memory))
    if report is not None:
        date = started.date().isoformat()
        report.write_text(page(findings, memory, facts, workload, effort.pairs, date))
        console.print(f"Written: {report}")


def _scratch_below(directory: Path) -> TemporaryDirectory[str]:
    directory.mkdir(parents=True, exist_ok=True)
    return TemporaryDirectory(prefix="bench-", dir=directory)


def _measure_rows(console: Console, rows: list[Row], effort: Effort) -> list[Finding]:
    findings = measure(rows, effort)
    for row, found in zip(rows, findings, strict=True):
        ratio = f"{found.ratio.median:.2f} " if found.ratio else ""
        console.print(f"{row.name}: {ratio}{found.verdict}")
    return findings


def _measure_memory(bench: Bench, directory: Path) -> list[MemoryFinding]:
    findings = []
    for layer, slab in _MEMORY_LAYERS:
        name = f"{layer} --decomposition=slab" if slab else layer
        try:
            if not benchio.has_layer(bench.program, layer):
                raise BenchmarkError(f"benchio has no layer {layer}")
            ratio = peak_ratio(bench.program, bench.workload, layer, slab, directory)
            findings.append(MemoryFinding(name, ratio))
        except BenchmarkError as error:
            findings.append(MemoryFinding(name, None, str(error)))
    return findings


if __name__ == "__main__":
    # So that what lies in the directories is removed then too.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    app()
