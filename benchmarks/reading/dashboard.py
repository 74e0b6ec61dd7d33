"""The command behind `make bench-report`: what the dashboard costs to write and to open."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import which
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer
from playwright.sync_api import CDPSession, sync_playwright

from benchmarks.reading.__main__ import Cost, cost, facts, write_page
from benchmarks.reading.perflogs import write_perflogs

_ROOT: Final = Path(__file__).resolve().parents[2]
_SIZES: Final = "300x3650,5000x30"
_MB: Final = 1e6
_BROWSED: Final = 5
#: Shows a series until the next frame, and returns how many milliseconds that took.
_SHOW: Final = """async (id) => {
  const begin = performance.now();
  location.hash = `#/series/${id}`;
  const name = iobands.byId.get(id).label;
  const isThere = () => document.querySelector(".plot canvas")
    && document.querySelector("h1").textContent.startsWith(name);
  while (!isThere()) await new Promise(requestAnimationFrame);
  return performance.now() - begin;
}"""
#: Waits for the largest part of the front page.
PAINT: Final = """() => new Promise((resolve) => {
  const largest = (list) => resolve(list.getEntries().at(-1).startTime);
  new PerformanceObserver(largest).observe({ type: "largest-contentful-paint", buffered: true });
})"""


def main(
    sizes: Annotated[str, typer.Option(help="Series x days.")] = _SIZES,
    tries: Annotated[int, typer.Option(help="How often each is measured.", min=1)] = 3,
    directory: Annotated[Path, typer.Option(help="Where the perflogs are made.")] = _ROOT / "build",
    report: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
) -> None:
    """Measure writing the dashboard, writing it again a day later, and opening it."""
    directory.mkdir(parents=True, exist_ok=True)
    before = os.getloadavg()[0]
    measured = []
    for size in sizes.split(","):
        series, days = (int(number) for number in size.split("x"))
        with TemporaryDirectory(prefix="bench-report-", dir=directory) as scratch:
            measured.append(_measured(Path(scratch), series, days, tries))
        print(measured[-1])
    if report is not None:
        values = {"measured": measured, "tries": tries, "browsed": _BROWSED}
        write_page(report, "dashboard-costs.md", facts=facts(before), **values)


def _measured(scratch: Path, series: int, days: int, tries: int) -> dict[str, object]:
    perflogs, page = scratch / "perflogs", scratch / "page"
    rows = write_perflogs(perflogs, series, days + 1)
    newest = {log: _cut_last_day(log) for log in perflogs.glob("*/*/*.log")}
    first = _iobands("report", str(page), perflogs=perflogs, tries=tries)
    before = {path: path.read_bytes() for path in page.rglob("*.*")}
    session = [sys.executable, "-m", "benchmarks.reading.day_before", str(perflogs)]
    subprocess.run(session, cwd=_ROOT, check=True)
    for log, lines in newest.items():
        with log.open("a", encoding="ascii") as stream:
            stream.writelines(lines)
    again = _iobands("report", str(page), perflogs=perflogs, tries=tries)
    changed = sum(before.get(path) != path.read_bytes() for path in page.rglob("*.*"))
    data = sum(path.stat().st_size for path in (page / "data").rglob("*.js"))
    return {
        "series": series,
        "days": days,
        "rows": rows,
        "status": _iobands("status", perflogs=perflogs, tries=tries),
        "first": first,
        "again": again,
        "files": len(before),
        "changed": changed,
        "mb": data / _MB,
        **_opened(page),
    }


def _cut_last_day(log: Path) -> list[str]:
    """Take the lines of the last day out of a perflog, and return them."""
    lines = log.read_text(encoding="ascii").splitlines(keepends=True)
    day = lines[-1].partition("T")[0]
    log.write_text("".join(line for line in lines if not line.startswith(day)), encoding="ascii")
    return [line for line in lines if line.startswith(day)]


def _iobands(*words: str, perflogs: Path, tries: int) -> Cost:
    command = [sys.executable, "-m", "iobands", *words, "--perflogs", str(perflogs)]
    return cost(command, tries)


def _opened(page: Path) -> dict[str, float]:
    """Return the milliseconds to paint the front page, and to show a series with its charts.

    Each comes with the processor time of the page's main thread, which other load affects less.
    """
    paints, charts = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=which("chromium"), args=["--no-sandbox"]
        )
        for _ in range(_BROWSED):
            window = browser.new_page()
            window.set_default_timeout(120_000)
            session = window.context.new_cdp_session(window)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            window.goto(f"{page.resolve().as_uri()}/index.html")
            window.wait_for_selector(".heat")
            paints.append((window.evaluate(PAINT), processor_time(session)))
        one, other = window.evaluate("[...iobands.byId.keys()].slice(0, 2)")
        window.evaluate(_SHOW, one)  # which loads its runs
        for _ in range(_BROWSED):
            window.evaluate(_SHOW, other)
            before = processor_time(session)
            charts.append((window.evaluate(_SHOW, one), processor_time(session) - before))
        browser.close()
    names = ("paint", "paint_processor", "chart", "chart_processor")
    columns = (*zip(*paints, strict=True), *zip(*charts, strict=True))
    return {name: median(column) for name, column in zip(names, columns, strict=True)}


def processor_time(session: CDPSession) -> float:
    """Return the milliseconds that the tasks of a page have taken so far."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1000 * next(each["value"] for each in metrics if each["name"] == "TaskDuration")


if __name__ == "__main__":
    typer.run(main)
