"""The command behind `make bench-alarms`: draws series, follows them, and writes the page."""

from __future__ import annotations

import os
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.alarms import plan, real
from benchmarks.alarms.collapses_report import section
from benchmarks.alarms.report import Page
from iobands.charts import DEGRADED, DOWN, UP

app = typer.Typer(add_completion=False)


@app.command()
def bench(
    report: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
    data: Annotated[Path | None, typer.Option(help="A table of real runs to follow.")] = None,
    picture: Annotated[Path, typer.Option(help="Draw the real series into this file.")] = Path(
        "build/real-alarms.png"
    ),
    limit: Annotated[float, typer.Option(help="The limit for the real series.")] = DEGRADED,
    series: Annotated[int, typer.Option(help="Series a case.", min=10)] = plan.Effort.series,
    processes: Annotated[int, typer.Option(help="Processes.", min=1)] = os.cpu_count() or 1,
) -> None:
    """Measure the error rates of the charts by Monte Carlo."""
    started = time.monotonic()
    told = ""
    if data is not None:
        told = _real(data, limit, picture)
        print(told)
    effort = plan.Effort(series, changed=series * 4 // 3)
    results = plan.run(effort, processes, print)
    page = Page(results, effort, section(results.collapses), told)
    text = page.text(datetime.now(timezone.utc).date().isoformat())
    print(text)
    if report is not None:
        report.write_text(text)
        page.draw_frontier(report.parent / "pictures" / "error-rates.svg")
        print(f"Written: {report}")
    print(f"It took {time.monotonic() - started:.0f} s")


def _real(data: Path, limit: float, picture: Path) -> str:
    followed = real.follow_file(data, limit)
    picture.parent.mkdir(parents=True, exist_ok=True)
    real.draw(followed, picture)
    lines = [f"- {one.describe(alarm)}" for one in followed for alarm in one.chart.alarms]
    return "\n".join(
        [
            f"{len(followed)} series, {sum(one.years for one in followed):.1f} years together,"
            f" limit {limit:g}: {real.alarms_a_year(followed, DOWN):.2f} alarms a year a series"
            f" downwards and {real.alarms_a_year(followed, UP):.2f} upwards."
            f" The command draws each of them into {picture.name}.",
            "",
            *lines,
        ]
    )


if __name__ == "__main__":
    app()
