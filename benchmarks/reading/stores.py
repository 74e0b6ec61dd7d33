"""The command behind `make bench-stores`: what a store of many clusters and years costs."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timedelta, timezone
from multiprocessing import get_context
from pathlib import Path
from shutil import which
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import polars as pl
import typer
from playwright.sync_api import sync_playwright

from benchmarks.reading.__main__ import Cost, cost, facts, write_page
from benchmarks.reading.dashboard import PAINT, processor_time
from benchmarks.reading.perflogs import END, write_perflogs
from iobands.judge.site import judge
from iobands.source.action_log import ALERT_LOG, alert_log
from iobands.source.push import Pushed, gather
from iobands.source.store import StoredDocument, open_store, read_stored
from iobands.views.dashboard.overview import about_cluster
from iobands.views.dashboard.write import write_clusters

_ROOT: Final = Path(__file__).resolve().parents[2]
_TRIES: Final = 3
_PAGE: Final = 100  # clusters of the front page


def main(
    clusters: Annotated[int, typer.Option(help="Clusters in the store.", min=1)] = 10,
    series: Annotated[int, typer.Option(help="Series of each, a multiple of 100.", min=100)] = 500,
    days: Annotated[int, typer.Option(help="Days of each.", min=60)] = 3650,
    directory: Annotated[Path, typer.Option(help="Where the store is made.")] = _ROOT / "build",
    report: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
) -> None:
    """Measure a push, the digest of one cluster and of all, and the front page of a hundred."""
    directory.mkdir(parents=True, exist_ok=True)
    before = os.getloadavg()[0]
    with TemporaryDirectory(prefix="bench-stores-", dir=directory) as scratch:
        root = Path(scratch)
        perflogs = root / "site" / "perflogs"
        (root / "site" / "config" / "systems").mkdir(parents=True)  # which make it a site
        rows = write_perflogs(perflogs, series, days)
        session = [sys.executable, "-m", "benchmarks.reading.day_before", str(perflogs)]
        subprocess.run(session, cwd=_ROOT, check=True)  # the log of alerts, which has their causes
        found: dict[str, object] = {"first": _iobands(root, "push", tries=1)}
        found["push"] = _pushes(root)
        print(found)
        # in a separate process, since later children would count this one's memory as their own
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            size = pool.submit(_fill, root, clusters).result()
        found |= {"clusters": clusters, "series": series, "days": days, "rows": clusters * rows}
        found["mb"] = size / 1e6
        found["one"] = _iobands(root, "status", "--system", "bench", tries=1)
        found["one_again"] = _iobands(root, "status", "--system", "bench", tries=_TRIES)
        found["all"] = _iobands(root, "status", tries=1)
        found["all_again"] = _iobands(root, "status", tries=1)
        print(found)
        found |= _front_page(root)
        print(found)
    if report is not None:
        write_page(report, "store-costs.md", facts=facts(before), page=_PAGE, **found)


def _iobands(root: Path, *words: str, tries: int) -> Cost:
    site = ["--site", str(root / "site")] if words[0] == "push" else []
    command = [sys.executable, "-m", "iobands", *words, *site, "--store", str(root / "store")]
    return cost(["env", f"XDG_CACHE_HOME={root / 'cache'}", *command], tries)


def _pushes(root: Path) -> Cost:
    """Return the median costs to push another day, a copy of the newest day of each perflog."""
    costs = []
    for _ in range(_TRIES):
        for log in (root / "site" / "perflogs").glob("*/*/*.log"):
            with log.open("rb+") as stream:
                stream.seek(max(log.stat().st_size - 2**20, 0))
                lines = stream.read().decode("ascii").splitlines(keepends=True)[1:]
                last = lines[-1].partition("T")[0]
                day = f"{datetime.fromisoformat(last) + timedelta(days=1):%F}"
                new = (each for each in lines if each.startswith(last))
                stream.writelines(each.replace(last, day).encode("ascii") for each in new)
        costs.append(_iobands(root, "push", tries=1))
    return Cost(
        median(each.wall for each in costs),
        median(each.processor for each in costs),
        max(each.mib for each in costs),
    )


def _fill(root: Path, clusters: int) -> int:
    """Give the store further clusters, with the rows of the first; return its size."""
    with open_store(str(root / "store")) as store:
        rows = store.samples("bench")[0].frame
        for number in range(1, clusters):
            name = f"bench-{number}"
            renamed = rows.with_columns(system=pl.lit(name, pl.Categorical()))
            site = StoredDocument("perflogs/site.id", datetime.now(timezone.utc), name.encode())
            store.add(name, renamed, [site])
            day_before = END - timedelta(days=1)
            judged = judge(read_stored(store, [name], now=day_before, as_of=True), with_power=False)
            ALERT_LOG.append(alert_log(root / "perflogs", name), judged.news[name])
            path = f"perflogs/{name}/alerts.jsonl"
            log = StoredDocument(path, END, (root / path).read_bytes())
            store.add(name, renamed.clear(), [log])
    return sum(path.stat().st_size for path in (root / "store").rglob("*") if path.is_file())


def _front_page(root: Path) -> dict[str, float]:
    """Return the bytes of a front page of many clusters, and the milliseconds to paint it."""
    write_perflogs(root / "small" / "perflogs", 100, 60)
    found = gather(root / "small" / "perflogs", root / "small" / "config", Pushed())
    with open_store(str(root / "small" / "store"), new=True) as store:
        store.add("bench", found.samples, found.documents["bench"])
        now = found.pushed.newest or datetime.now(timezone.utc)
        site = judge(read_stored(store, ["bench"], now=now)).snapshot
    known = [about_cluster(f"cluster-{n}", f"cluster-{n}/", site) for n in range(_PAGE)]
    page = write_clusters(root / "page", known, site.now)
    paints = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=which("chromium"), args=["--no-sandbox"]
        )
        for _ in range(_TRIES):
            window = browser.new_page()
            session = window.context.new_cdp_session(window)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            window.goto(page.resolve().as_uri())
            paints.append((window.evaluate(PAINT), processor_time(session)))
        browser.close()
    paint, processor = (median(column) for column in zip(*paints, strict=True))
    return {"page_mb": page.stat().st_size / 1e6, "paint": paint, "paint_processor": processor}


if __name__ == "__main__":
    typer.run(main)
