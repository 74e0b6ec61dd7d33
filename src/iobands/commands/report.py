"""The commands for readers: the dashboard, figures, settings and rates.

`iobands report` and `demo` write the dashboard, or a figure of each series; `advise`, `compare` and
`table` say which settings and rates the runs support.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from enum import Enum
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from iobands.commands.judging import judgement_of, samples_from, site_of, sites_in_store, source_of
from iobands.commands.options import (
    PastSiteOptions,
    SampleOptions,
    SiteOptions,
    StoredSiteOptions,
    failure,
    site_files,
)
from iobands.judge.account import accounts_of
from iobands.judge.advise import advise as advise_on
from iobands.judge.advise import compare as compared
from iobands.judge.advise import published_of
from iobands.judge.site import JudgedSite
from iobands.model import (
    ACCEPTANCE,
    MADE_UP,
    OK,
    PATH_PART,
    UNKNOWN,
    WARNING,
    mounts,
    naming,
    replace_file,
    slug,
)
from iobands.snapshot import COMPARABLE, HOLDS, BeforeAfter, Snapshot
from iobands.snapshot import public as public_part
from iobands.views import Block, DocumentFormat, fitted, plural, written
from iobands.views.dashboard.overview import Cluster, about_cluster
from iobands.views.dashboard.write import write_clusters, write_dashboard
from iobands.views.published import (
    advice_lines,
    advice_section,
    comment,
    comparison_lines,
    drift,
    rates_section,
    users_section,
)


class ReportFormat(str, Enum):
    """What `iobands report` writes."""

    HTML = "html"
    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The directory for the dashboard.")
    ],
    public: Annotated[
        bool,
        typer.Option(
            "--public",
            help="For users: settings and rates, without people, nodes, jobs and reasons.",
        ),
    ] = False,
    output: Annotated[
        ReportFormat,
        typer.Option("--format", help="The dashboard, or a figure of each series for print."),
    ] = ReportFormat.HTML,
    *,
    options: PastSiteOptions,
) -> None:
    """Write the dashboard to DIR: static files that need no server.

    Open DIR/index.html from the disk, or copy DIR to any web server. Files that have not changed
    are not written again. The exit status is 0 if the dashboard was written, whatever it shows, and
    3 if not.
    """
    past = options.as_of is not None
    is_page = output is ReportFormat.HTML
    if is_page and _clusters_to(directory, options, public=public, past=past):
        return
    judged = judgement_of(options, with_power=True)
    site = judged.snapshot
    if is_page:
        report_to(directory, judged, options.config_of("systems"), public=public, past=past)
    else:
        _figures_to(directory, site, output.value)


def _clusters_to(directory: Path, options: PastSiteOptions, *, public: bool, past: bool) -> bool:
    """Write a dashboard for each site of a store and the page of all; whether there are several."""
    clusters, now = [], datetime.now(timezone.utc)
    for name, judged in sites_in_store(options):
        if isinstance(judged, str):
            reason = "cannot be read" if public else judged  # it may name hosts and paths
            clusters.append(Cluster(name, "", UNKNOWN, reason, "unknown", (), {}))
            continue
        site = judged.snapshot
        # who may push may choose any name
        safe = re.fullmatch(PATH_PART, name)
        below = name if safe else hashlib.sha256(name.encode()).hexdigest()[:12]
        held = report_to(
            directory / below, judged, options.config_of("systems"), public=public, past=past
        )
        seen = public_part(site) if public else site
        clusters.append(about_cluster(name, f"{quote(below)}/", seen, held))
        now = site.now
    if clusters:
        page = write_clusters(directory, clusters, now)
        typer.echo(f"All sites: {page.resolve()}")
    return bool(clusters)


def report_to(
    directory: Path, judged: JudgedSite, systems: Path, *, public: bool = False, past: bool = False
) -> Sequence[BeforeAfter]:
    """Write the dashboard to `directory`, print where it is; return the maintenances it shows.

    The site files are in `systems`.
    """
    site = judged.snapshot
    paths = {
        (system, name): path
        for system in {each.key.system for each in site.series}
        for name, path in site_files(systems)(system).paths.items()
    }
    users: list[Block] = []
    if public:
        site = public_part(site)
        found, advised = published_of(site, systems)
        points = [point for point, _ in mounts()]
        known = {
            (system, name): path if system == MADE_UP else _mount_of(path, points)
            for (system, name), path in paths.items()
        }
        paths = {name: path for name, path in known.items() if path}
        users = users_section(
            site, [one for each in found.values() for one in each], advised, paths
        )
    held = () if public else accounts_of(judged)
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("Writing the dashboard"),
        BarColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,  # no progress bar in a log
    )
    with naming(directory), bar:
        task = bar.add_task("")
        replaced = write_dashboard(
            site,
            directory,
            paths=paths,
            past=past,
            users=users,
            maintenances=held,
            progress=lambda done, of: bar.update(task, completed=done, total=of),
        )
    page = (directory / "index.html").resolve()
    typer.echo(f"Dashboard: {page} ({plural(replaced, 'file')} written)")
    return held


def _mount_of(path: str, points: Sequence[str]) -> str:
    """Return where the file system of a path is mounted, empty if it is not mounted here.

    The rest of the path may name a project or a person.
    """
    below = (each for each in points if each != "/" and f"{path}/".startswith(f"{each}/"))
    return max(below, key=len, default="")


def _figures_to(directory: Path, site: Snapshot, form: str) -> None:
    """Write a figure of each series that has a sample."""
    from iobands.views.figures import time_series  # noqa: PLC0415 (matplotlib is slow to load)

    drawn = [series for series in site.series if series.status.runs]
    with naming(directory):
        directory.mkdir(parents=True, exist_ok=True)
        for series in drawn:
            path = directory / f"{slug(series.key)}.{form}"
            replace_file(path, time_series(series, site.now, form))
    typer.echo(f"Figures: {len(drawn)} in {directory.resolve()}")


def demo(
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="A new directory, or one of a demo, which is replaced."),
    ] = Path("demo"),
) -> None:
    """Write a made-up site and its dashboard to DIR. Nothing in it was measured.

    The site has two file systems and a year of runs up to today: an upgrade, an incident,
    maintenance, gaps, a drop that was repaired, one that lasts, a full storage target and new empty
    ones.
    """
    from iobands.source.demo import write_demo  # noqa: PLC0415

    mine = directory / "perflogs" / MADE_UP
    if directory.is_dir() and any(directory.iterdir()) and not mine.is_dir():
        raise failure(f"{directory}: is not empty; name a new directory")
    with naming(directory):
        write_demo(directory, datetime.now(timezone.utc))
    options = SiteOptions(root=directory)
    judged = judgement_of(options)
    typer.echo(f"A made-up site of {len(judged.snapshot.series)} series is in {directory}.")
    report_to(directory / "dashboard", judged, options.config_of("systems"))
    typer.echo(f"Try other commands in {directory}, such as `iobands status`.")


def advise(
    form: Annotated[
        DocumentFormat | None,
        typer.Option("--format", help="Print a section for a page. [default: plain text]"),
    ] = None,
    *,
    options: SampleOptions,
) -> None:
    """Recommend a file system, stripe count, transport and hints for each pattern.

    Runs of one day are compared in pairs; the printed ratio is the median over the pairs. If the
    newer half of the pairs no longer supports an advice, it is withdrawn. If the runs do not decide
    a setting, the output says so, and about how many more runs are needed.
    """
    histories = samples_from(options).without(ACCEPTANCE).histories()
    advised, cases = advise_on(histories)
    if not advised and not cases:
        raise failure(f"{source_of(options)}: no two series differ in only one setting")
    if form is None:
        typer.echo(fitted(advice_lines(advised, cases)), nl=False)
        return
    name = ", ".join(sorted({key.system for key in histories}))
    typer.echo(written(advice_section(name, advised, cases), form), nl=False)


def compare(
    field: Annotated[
        str,
        typer.Argument(metavar="FIELD", help="A series field: transport, file_system, tasks, ..."),
    ],
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="VALUE", help="The divisor. [default: the first value]"),
    ] = None,
    *,
    options: SampleOptions,
) -> None:
    """Compare series that differ in one field: print their ratio and its 95 % interval.

    Samples measured within a day of each other form pairs. The ratio is the median over the pairs,
    so changes from day to day cancel out. The interval comes from the sign test and needs six
    pairs. Some cases (measurements taken from a published text) compare two settings in one run;
    their ratio is in `iobands status`.
    """
    if field not in COMPARABLE:
        raise failure(f"{field}: cannot be compared; give one of {', '.join(COMPARABLE)}")
    every = samples_from(options).without(ACCEPTANCE).histories()
    histories = {key: each.routine for key, each in every.items()}
    found = compared(histories, field, against=against)
    lines = comparison_lines(list(found), field)
    if not lines:
        what = f"no two series differ in only {field}"
        raise failure(f"{source_of(options)}: {what}" + (f" from {against}" if against else ""))
    typer.echo(fitted(lines), nl=False)


def table(
    form: Annotated[
        DocumentFormat, typer.Option("--format", help="The format; csv has only the tables.")
    ] = DocumentFormat.MARKDOWN,
    check: Annotated[
        Path | None,
        typer.Option("--check", metavar="FILE", help="Report where a published page differs."),
    ] = None,
    holds: Annotated[
        float,
        typer.Option(
            "--holds",
            metavar="DAYS",
            min=1,
            max=1e6,
            help="Days that a rate holds after its newest run.",
        ),
    ] = HOLDS / timedelta(days=1),
    *,
    options: StoredSiteOptions,
) -> None:
    """Print a section for a documentation page: settings, their commands, and expected rates.

    The settings are the ones that the site file recommends, else the best measured. With --check
    the exit status is 0 if FILE agrees with the runs, 1 if it differs, and 3 after an error.
    """
    site = site_of(options)
    by_system, _ = published_of(site, options.config_of("systems"), timedelta(days=holds))
    if not by_system:
        raise failure("no run has a rate to publish")
    if check is None:
        blocks: list[Block] = []
        for name, found in by_system.items():
            blocks += [*rates_section(name, found, site.now), comment(found)]
        typer.echo(written(blocks, form), nl=False)
        return
    try:
        text = check.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise failure(f"{check}: {getattr(error, 'strerror', None) or error}") from None
    problems = drift(text, [each for found in by_system.values() for each in found], site.now)
    for problem in problems:
        typer.echo(f"{check}: {problem}")
    if not problems:
        typer.echo(f"{check}: agrees with the runs up to {site.now:%Y-%m-%d}")
    raise typer.Exit(WARNING if problems else OK)
