"""The command behind `make bench-alarms`: simulates, replays a real year, and writes the pages."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Final

import typer

from benchmarks.alarms import real_page, tables
from benchmarks.alarms.figures import Rate
from benchmarks.alarms.marked import MARKS, read_marks
from benchmarks.alarms.real import Replay, replay
from benchmarks.alarms.together import shuffled_incidents
from benchmarks.pages import TEMPLATES

_ROOT: Final = Path(__file__).resolve().parents[2]
_SHUFFLED_YEARS: Final = 100
_INCIDENTS: Final = "Incidents"  # the section that has a row of the real year

app = typer.Typer(add_completion=False)


@app.command()
def bench(
    directory: Annotated[
        Path | None, typer.Option("--report", help="Write the pages below this directory.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(envvar="IOBANDS_REAL_DATA", help="The table of a real year; see tokio.py."),
    ] = None,
    effort: Annotated[str, typer.Option(help="brief, small or full.")] = "small",
    simulate: Annotated[bool, typer.Option(help="Simulate as well.")] = True,
    section: Annotated[
        str | None, typer.Option(help="Simulate this section of error-rates.md alone.")
    ] = None,
    processes: Annotated[int, typer.Option(help="Processes.", min=1)] = 2,
) -> None:
    """Measure the error rates of the alerts, by simulation and on a real year."""
    started = time.monotonic()
    today = datetime.now(timezone.utc).date().isoformat()
    # forked processes would hang in the threads of polars
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        shuffled, peers = None, ""
        if data and section in (None, _INCIDENTS):
            found = replay(data)
            print(f"{len(found.events)} events after {time.monotonic() - started:.0f} s")
            for name in real_page.unjudged(found):
                print(f"Look at the picture and judge: {name}")
            if section is None:
                _write(directory, "real-data.md", real_page.page(found, data, today))
                if directory is not None:
                    real_page.draw(found, directory / "pictures")
            if simulate:
                shuffled = _shuffled(found)
                peers = _peers(found, pool) if section is None else ""
        elif not (data or section):
            print("Without a real year: IOBANDS_REAL_DATA does not name its table")
        if simulate:
            text = tables.page(tables.EFFORTS[effort], pool, today, shuffled, peers, section)
            if section:
                text = with_section(directory, section, text, today)
            _write(directory, "error-rates.md", text)
    print(f"It took {time.monotonic() - started:.0f} s")


def with_section(directory: Path | None, heading: str, text: str, today: str) -> str:
    """Return the dated section of `text`, put into the existing page if pages are written."""
    new = tables.section_of(text, heading)
    new = new.replace("\n\n", f"\n\nMeasured on {today}. ", 1)
    if directory is None:
        return new
    page = (directory / "error-rates.md").read_text(encoding="utf-8")
    if f"## {heading}\n" not in page:  # a new one, before the section that follows it
        template = (TEMPLATES / "error-rates.md").read_text(encoding="utf-8")
        after = template.partition(f"## {heading}\n")[2].partition("\n## ")[2].splitlines()[0]
        return page.replace(f"## {after}\n", f"{new}\n## {after}\n", 1)
    return page.replace(tables.section_of(page, heading), new)


def _shuffled(found: Replay) -> Rate:
    reported = [
        (each.file_system, each.variable, each.since.date(), each.until.date())
        for each in found.incidents
    ]
    falls = [each for each in read_marks(MARKS, found) if each.is_short_fall]
    marked = [
        (each.file_system, variable, each.first, each.last)
        for each in falls
        for variable in ("write_bw", "read_bw")
        if any(name.endswith(variable.removesuffix("_bw")) for name in each.series)
    ]
    return shuffled_incidents(found.transient, [*reported, *marked], _SHUFFLED_YEARS, seed=1)


def _peers(found: Replay, pool: Executor) -> str:
    alarms = list(pool.map(real_page.peers_of_values, [s.history.values for s in found.series]))
    return real_page.peer_table(found, alarms)


def _write(directory: Path | None, name: str, text: str) -> None:
    if directory is None:
        print(text)
    else:
        (directory / name).write_text(text, encoding="utf-8")
        print(f"Written: {directory / name}")


if __name__ == "__main__":
    app()
