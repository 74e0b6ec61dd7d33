"""The commands that present results: dashboard, figures, settings and rates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote

import typer

from iobands import model, snapshot
from iobands.commands import cli, judging
from iobands.judge.account import accounts_of
from iobands.judge.advise import advise as advise_on
from iobands.judge.advise import compare as compared
from iobands.judge.advise import published_of
from iobands.snapshot import COMPARABLE, HOLDS, BeforeAfter, Snapshot
from iobands.views import published
from iobands.views.dashboard.overview import Cluster, about_cluster
from iobands.views.dashboard.write import directory_of, write_clusters, write_dashboard
from iobands.views.writing import Block, DocumentFormat, no_samples, plural, some, written


def report(
    options: cli.PastSiteOptions,
    directory: Annotated[Path, cli.argument("DIR", "The directory for the dashboard.")],
    public: Annotated[
        bool, "Write it for users: settings and rates, without people, nodes, jobs and reasons."
    ] = False,
    format_: Annotated[
        Literal["html", "svg", "png", "pdf"], "The dashboard, or a figure of each series for print."
    ] = "html",
) -> None:
    """Write the dashboard to DIR: static files that need no server.

    Open DIR/index.html from the disk, or copy DIR to any web server. Files that have not changed
    are not written again. The exit status is 0 if the dashboard was written, whatever it shows, and
    3 if not.
    """
    cli.require_report("iobands report")
    is_page, systems = format_ == "html", options.config_of("systems")
    clusters, named, unwritten, now = [], list[str](), [], datetime.now(timezone.utc)
    cli.refuse_mixing(directory, options.perflogs_directory)
    if not is_page:
        cli.refuse(f"with --format {format_}", "public")
    for name, each in judging.sites_in_store(options, with_power=True) if is_page else ():
        below, why = directory_of(name), ""
        try:
            if isinstance(each, str):
                why = each
            else:
                held = report_to(directory / below, each, systems, public=public, several=True)
                site = snapshot.public(each.snapshot) if public else each.snapshot
                clusters.append(about_cluster(name, f"{quote(below)}/", site, held))
                named += site.systems if public else ()
                now = each.snapshot.now
                continue
        except Exception as error:  # go on with the other sites
            why = cli.reason_of(error)
            unwritten.append(f"{name}: {why}")
        reason = "cannot be read" if public else why  # which may name hosts and paths
        unread = Cluster(name, "", model.UNKNOWN, reason, "unknown", (), (), public=public)
        clusters.append(unread)
    if clusters:
        past = options.as_of is not None
        page = write_clusters(directory, clusters, now, past=past, public=public)
        cli.say(f"All sites: {page.resolve()}")
        _note_commands(named, systems)
        raise typer.Exit(cli.problems(unwritten))
    with cli.working("iobands report: judging"):
        judged = judging.judgement_of(options, with_power=True)
    if is_page:
        report_to(directory, judged, systems, public=public)
    else:
        _draw(directory, judged.snapshot, format_)


def _draw(directory: Path, site: Snapshot, form: str) -> None:
    """Write a figure of each series to `directory`, in the format `form`."""
    from iobands.views.figures import time_series  # noqa: PLC0415 (matplotlib is slow to load)

    drawn = [series for series in site.series if series.status.runs]
    with model.naming(directory), cli.working("iobands report: drawing"):
        directory.mkdir(parents=True, exist_ok=True)
        for series in drawn:
            path = directory / f"{series.name}.{form}"
            model.replace_file(path, time_series([series], site.now, form))
        # remove figures of series that were renamed or retired, which would look current
        keys = [each.key for each in (*site.series, *site.retired)]
        begins = tuple(model.slug(key)[: len(f"{key.system}-{key.partition}-")] for key in keys)
        names = {f"{series.name}.{form}" for series in drawn}
        for path in directory.glob(f"*-{8 * '[0-9a-f]'}.{form}"):
            if path.name.startswith(begins) and path.name not in names and not path.is_dir():
                path.unlink(missing_ok=True)
    cli.say(f"Figures: {len(drawn)} in {directory.resolve()}")


def report_to(
    directory: Path,
    judged: judging.JudgedSite,
    systems: Path,
    *,
    public: bool = False,
    several: bool = False,
) -> Sequence[BeforeAfter]:
    """Write the dashboard to `directory`, print its path, and return the maintenances it shows.

    The site files are in `systems`. With `several` sites, it links to the page of all of them.
    """
    site = judged.snapshot
    paths: dict[tuple[str, str], str] = {}
    for system in site.systems:
        try:
            own = cli.site_files(systems)(system).paths
            paths |= {(system, name): path for name, path in own.items()}
        except model.FileError as error:
            if public:  # it has nothing to publish
                raise
            cli.note(str(error))  # the page shows no paths of this system
    users: list[Block] = []
    if public:
        site = snapshot.public(site)
        found, advised = published_of(site, systems)
        if not several:
            _note_commands(found, systems)
        points = [point for point, _ in model.mounts()]
        for (system, name), path in paths.items():
            paths[system, name] = path if system == model.MADE_UP else _mount_of(path, points)
        paths = {name: path for name, path in paths.items() if path}
        users = published.users_section(site, [*chain(*found.values())], advised, paths)
    held = () if public else accounts_of(judged)
    with model.naming(directory), cli.working("iobands report: writing"):
        replaced = write_dashboard(
            site,
            directory,
            paths=paths,
            several=several,
            # private pages do not stay where a public dashboard is written
            keeps_alerts=bool(judged.known.unlogged) and not public,
            users=users,
            maintenances=held,
        )
    page = (directory / "index.html").resolve()
    cli.say(f"Dashboard: {page} ({plural(replaced, 'file')} written)")
    return held


def _note_commands(names: Iterable[str], systems: Path) -> None:
    """Name the systems without a site file, whose published settings lack commands."""
    if lacking := [name for name in names if not cli.site_files(systems)(name).partitions]:
        lacks = "commands that load environments and set hints are missing"
        cli.note(f"{some(lacking)}: no site file in {systems}: {lacks}; give --config DIR")


def _mount_of(path: str, points: Sequence[str]) -> str:
    """Return the mount point of a path, "" if it is not mounted here.

    The rest of the path is private: it may name a project or a person.
    """
    below = (each for each in points if each != "/" and f"{path}/".startswith(f"{each}/"))
    return max(below, key=len, default="")


def advise(
    options: cli.SampleOptions,
    format_: Annotated[
        DocumentFormat | None, "Print a section for a page. [default: plain text]"
    ] = None,
) -> None:
    """Recommend a file system, stripe count, transport and hints for each pattern.

    Runs at most a day apart are compared in pairs; the printed ratio is the median over the pairs.
    If the newer half of the pairs no longer supports advice, it is withdrawn. If the runs do not
    decide a setting, the output says so, and about how many more runs are needed.
    """
    cli.require_report("iobands advise")
    histories = judging.samples_from(options).without(model.ACCEPTANCE).histories
    advised, cases = advise_on(histories)
    if not advised and not cases:
        raise cli.failure(f"{judging.source_of(options)}: no two series differ in only one setting")
    if format_ is None:
        cli.say(*published.advice_lines(advised, cases))
        return
    name = ", ".join(sorted({key.system for key in histories}))
    cli.show(written(published.advice_section(name, advised, cases), format_))


def compare(
    options: cli.SampleOptions,
    field: Annotated[
        str, cli.argument("FIELD", f"The field that may differ: {', '.join(COMPARABLE)}.")
    ],
    against: Annotated[
        str | None, "VALUE", "Divide by the series with VALUE. [default: the first value]"
    ] = None,
) -> None:
    """Compare series that differ in one field: print their ratio and its 95 % interval.

    Samples measured within a day of each other form pairs. The ratio is the median over the pairs,
    so changes from day to day cancel out. The interval comes from the sign test and needs six
    pairs. Some cases (measurements taken from a published text) compare two settings in one run;
    their ratio is in `iobands status`.
    """
    if field not in COMPARABLE:
        raise cli.failure(f"{field}: cannot be compared; give one of {', '.join(COMPARABLE)}")
    every = judging.samples_from(options).without(model.ACCEPTANCE).histories
    histories = {key: each.routine for key, each in every.items()}
    found = [*compared(histories, field, against=against)]
    if not (lines := published.comparison_lines(found, field)):
        known = dict.fromkeys(snapshot.value_of(key, field) for key in histories)
        values = ", ".join(known) or "none"
        what = f"no two series differ in only {field}" + (f" from {against}" if against else "")
        raise cli.failure(f"{judging.source_of(options)}: {what}; values there: {values}")
    cli.say(*lines)


def table(
    options: cli.StoredSiteOptions,
    format_: Annotated[DocumentFormat, "The output format; csv has only the tables."] = "markdown",
    check: Annotated[Path | None, "FILE", "Report where a published page has drifted."] = None,
    holds: Annotated[
        float,
        cli.span("--holds", "How long a rate holds after its newest run: days, or 60d.", "days", 1),
    ] = HOLDS.days,
) -> None:
    """Print a section for a documentation page: settings, their commands, and expected rates.

    The settings are the ones that the site file recommends, else the best measured. With --check
    the exit status is 0 if FILE agrees with the runs, 1 if it differs, and 3 after an error.
    """
    cli.require_report("iobands table")
    if check:
        cli.refuse("with --check", "format_")
    site = judging.site_of(options)
    systems = options.config_of("systems")
    by_system, _ = published_of(site, systems, timedelta(days=holds))
    if not check:
        _note_commands(by_system, systems)
    if not by_system:
        raise cli.failure(no_samples(site))
    if check is None:
        blocks: list[Block] = []
        for name, found in by_system.items():
            blocks += [*published.rates_section(name, found, site.now), published.comment(found)]
        cli.show(written(blocks, format_))
        return
    text = check.read_text(encoding="utf-8", errors="replace")
    try:
        problems = published.drift(text, [*chain(*by_system.values())], site.now, options.system)
    except ValueError as error:
        raise cli.failure(f"{check}: {error}") from error
    for problem in problems:
        cli.say(f"{check}: {problem}")
    if not problems:
        cli.say(f"{check}: agrees with the runs up to {site.now:%Y-%m-%d}")
    raise typer.Exit(model.WARNING if problems else model.OK)
