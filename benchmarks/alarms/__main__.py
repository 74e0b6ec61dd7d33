"""The command behind `make bench-alarms`: draws series, follows them, and writes the page."""

from __future__ import annotations

import os
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Final

import typer

from benchmarks.alarms import plan
from benchmarks.alarms.collapses_report import section
from benchmarks.alarms.real import ADAPTER, RealPage, unjudged
from benchmarks.alarms.replay import replay
from benchmarks.alarms.report import Page

_ROOT: Final = Path(__file__).resolve().parents[2]
#: Where the real data are, unless told otherwise: beside the repository, if at all.
_DATA: Final = _ROOT.parent / "shared" / "data" / "edison-2017.csv"

app = typer.Typer(add_completion=False)


@app.command()
def bench(
    report: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
    data: Annotated[
        Path,
        typer.Option(
            envvar="IOBANDS_REAL_DATA", help="A year of a real site, used if it is there."
        ),
    ] = _DATA,
    simulate: Annotated[bool, typer.Option(help="Draw series at random as well.")] = True,
    series: Annotated[int, typer.Option(help="Series a case.", min=10)] = plan.Effort.series,
    processes: Annotated[int, typer.Option(help="Processes.", min=1)] = os.cpu_count() or 1,
) -> None:
    """Measure the error rates of the alarms: on a real site, and by Monte Carlo."""
    started = time.monotonic()
    today = datetime.now(timezone.utc).date().isoformat()
    _follow_real(data, report, processes, today)
    if simulate:
        results = plan.run(effort := plan.Effort(series, changed=series * 4 // 3), processes, print)
        page = Page(results, effort, section(results.collapses))
        text = page.text(today)
        print(text)
        if report is not None:
            report.write_text(text)
            page.draw_frontier(report.parent / "pictures" / "error-rates.svg")
            print(f"Written: {report}")
    print(f"It took {time.monotonic() - started:.0f} s")


def _follow_real(data: Path, report: Path | None, processes: int, date: str) -> None:
    """Follow the real site in `data`, and write its page beside `report`."""
    if not data.is_file():
        print(f"No real data: {data} is not there")
        return
    print(f"Following {data} day by day")
    told = replay(data, ADAPTER, processes)
    page = RealPage(told, data)
    text = page.text(date)
    print(text)
    for mark in unjudged(told):
        print(f"Look at the picture and judge: {mark}")
    if report is not None:
        written = report.with_name("real-data.md")
        written.write_text(text)
        page.draw(report.parent / "pictures")
        print(f"Written: {written}")


if __name__ == "__main__":
    app()
