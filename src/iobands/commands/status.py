"""The commands that show a site: `iobands status`, `explain`, `alerts` and `targets`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer
from rich.console import Console

from iobands.commands.judging import judgement_of, known_of, site_of, sites_in_store
from iobands.commands.options import (
    PastSiteOptions,
    SeriesArgument,
    SiteOptions,
    failure,
    require_report,
)
from iobands.judge.site import JudgedSite, judge
from iobands.model import NODE, TARGET, UNKNOWN, WORST_STATUS_FIRST, naming, worst
from iobands.snapshot import (
    DISCARD,
    REBASELINE,
    RESOLVE,
    RETIRE,
    UNDO,
    AlertEvent,
    Ledger,
    LedgerEntry,
    Snapshot,
)
from iobands.snapshot.stored import to_json
from iobands.source.action_log import alert_log, append_events
from iobands.source.known import Known
from iobands.views import (
    MAIL_WIDTH,
    blocks,
    day_text,
    fitted,
    nearest,
    output_width,
    peers_text,
    percent,
    plural,
    printable,
    summary,
)
from iobands.views.digest import chosen, digest_text, explanation, name_of, plugin_line


class StatusFormat(str, Enum):
    """How `iobands status` prints."""

    TEXT = "text"
    JSON = "json"
    PLUGIN = "plugin"


def status(
    output: Annotated[
        StatusFormat, typer.Option("--format", help="The output format.")
    ] = StatusFormat.TEXT,
    every: Annotated[
        bool, typer.Option("--all", help="Show every alert with its series, and every series.")
    ] = False,
    rejected: Annotated[bool, typer.Option("--rejected", help="List all rejected lines.")] = False,
    *,
    options: PastSiteOptions,
) -> None:
    """Print the digest: the state of the site in one line, what needs attention, the rates.

    `--format plugin` prints one line with performance data, as plug-ins of Nagios and Icinga do.
    The exit status is 0 if all is well, 1 for an acknowledged drop or a directory left behind, 2
    for degraded and 3 for no data.
    """
    if clusters := [(name, *_in_short(each)) for name, each in sites_in_store(options)]:
        _print_clusters(clusters, output)
    site = site_of(options, with_power=output is StatusFormat.JSON)
    if output is StatusFormat.JSON:
        typer.echo(to_json(site, summary=summary(site)))
    elif output is StatusFormat.PLUGIN:
        typer.echo(plugin_line(site))
    else:
        print_digest(site, every=every, rejected=rejected)
    raise typer.Exit(site.exit_status)


def _in_short(judged: JudgedSite | str) -> tuple[int, str]:
    """Return the exit status and the first line of a site's digest; all that is kept of many."""
    if isinstance(judged, str):
        return UNKNOWN, f"IOBANDS UNKNOWN: {judged}"
    return judged.snapshot.exit_status, summary(judged.snapshot)


def _print_clusters(clusters: Sequence[tuple[str, int, str]], output: StatusFormat) -> NoReturn:
    """Print a line for each site of a store, the ones with trouble first, and exit."""
    if output is StatusFormat.JSON:
        raise failure("a store of several sites: choose one with --system")
    for name, _, text in sorted(clusters, key=lambda each: WORST_STATUS_FIRST.index(each[1])):
        typer.echo(f"{printable(name)}: {printable(text)}")
    raise typer.Exit(worst(status for _, status, _ in clusters))


def print_digest(site: Snapshot, *, every: bool = False, rejected: bool = False) -> None:
    """Print the digest as wide as the terminal, or as a mail."""
    terminal = sys.stdout.isatty()
    console = Console(force_terminal=terminal, width=None if terminal else MAIL_WIDTH)
    text = digest_text(site, console, every=every, rejected=rejected)
    # As bytes: the digest is made for this encoding, which must not make a mail fail.
    sys.stdout.buffer.write(text.encode(console.encoding, "replace"))
    sys.stdout.flush()


def explain(
    words: SeriesArgument,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", metavar="FILE", help="Also draw a figure, .svg or .png."),
    ] = None,
    *,
    options: PastSiteOptions,
) -> None:
    """Explain the state of a series or an alert: since when, how certain, what else moved.

    For an alert shared by several series, the output lists which of them moved and which did not.
    The exit status is 0, or 3 if SERIES matches nothing or several.

    Evidence is a logarithm: n nats for a drop mean that the runs are e^n times as likely after a
    drop as without one. Power is how soon a drop would be reported. The floor is the rate below
    which a healthy run hardly ever lies. An epoch is a span of time in which the samples of a
    series can be compared.
    """
    form = figure.suffix[1:].lower() if figure else ""
    if figure and form not in {"svg", "png"}:
        raise failure(f"{figure}: give --figure a file that ends in .svg or .png")
    if figure:
        require_report("iobands explain --figure")
    site = site_of(options, with_power=True)
    wanted = " ".join(words)
    found = chosen(site, wanted)
    if len(found) > 1:
        names = nearest([name_of(each) for each in found], wanted)
        raise failure(f"{wanted} matches {len(found)} names; give more words:{names}")
    if not found and not site.series:
        raise failure(f"there are no samples before {site.now:%Y-%m-%d %H:%M} UTC")
    if not found and wanted.isdecimal():
        raise failure(f"no alert has the number {wanted}; list all with: iobands alerts --all")
    if not found:
        for place in site.places:
            if wanted in map(place.name_of, place.peers()):
                nodes = " --nodes" if place.kind == NODE else ""
                raise failure(f"{wanted} has no alert; list all with: iobands targets{nodes}")
        names = nearest([series.label for series in site.series], wanted)
        raise failure(f"no series or alert is named {wanted}; the series are:{names}")
    typer.echo(explanation(site, found[0], output_width()), nl=False)
    if figure:
        from iobands.views.figures import evidence  # noqa: PLC0415 (matplotlib is slow to load)

        drawn = evidence(site, found[0], form)
        if drawn is None:
            raise failure(f"{wanted} has no sample to draw")
        with naming(figure):
            figure.write_bytes(drawn)
        typer.echo(f"Figure: {figure.resolve()}")


_OLD: Final = ".old"
_SHOWN: Final = 30
_BELOW: Final = " " * 7
_HEADINGS: Final = ("ALERT", "SINCE", "RAISED", "ENDED", "CHANGE", "SUBJECT", "HOW IT ENDED")


def alerts(
    every: Annotated[bool, typer.Option("--all", help="List all, not only the newest 30.")] = False,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Rewrite the log of alerts; numbers may change."),
    ] = False,
    *,
    options: PastSiteOptions,
) -> None:
    """List open and past alerts, how each ended, and the precision and delay at this site.

    The precision is the share of alerts that `iobands resolve --verdict` called real. The log
    perflogs/SYSTEM/alerts.jsonl keeps their numbers; --rebuild makes it from the perflogs and
    the log of actions, and keeps the old one beside it.
    """
    if rebuild and options.store:
        raise failure("--rebuild writes the log of the site itself; run it there, without --store")
    if rebuild:
        _rebuild(options)
    site = site_of(options)
    found = site.ledger
    shown = found.entries if every else found.entries[:_SHOWN]
    heading, *rows = blocks(
        [_HEADINGS, *(_row(each, site) for each in shown)],
        output_width(),
        wrapped=(5,),
        right=(0, 4),
        indent="",
    )
    lines = [*heading]
    for entry, row in zip(shown, rows, strict=True):
        what = entry.cause.what if entry.cause and entry.subject not in entry.cause.what else ""
        cause = f"{_BELOW}cause: {printable(what)}" if what else ""
        by = f"{_BELOW}{entry.ending}" if entry.who else ""  # who ended it, and why
        lines += [*row, *filter(None, (cause, by))]
    lines = lines if shown else ["No alert so far."]
    if len(found.entries) > len(shown):
        lines.append(f"and {len(found.entries) - len(shown)} earlier ones; list them with --all")
    typer.echo(fitted([*lines, "", _figures(found)]), nl=False)


def _row(entry: LedgerEntry, site: Snapshot) -> tuple[str, ...]:
    times = (entry.since, entry.raised, entry.ended)
    days = (day_text(each, site.now) if each else "-" for each in times)
    quiet = {(each.number, each.subject) for each in site.alerts if each.is_quiet}
    still = "acknowledged" if (entry.number, entry.subject) in quiet else "open"
    change = percent(entry.ratio) if entry.ratio else "-"
    return (
        str(entry.number or "-"),
        *days,
        change,
        printable(entry.subject),
        "" if entry.who else entry.end or still,
    )


def recorded(options: SiteOptions) -> JudgedSite:
    """Append to the log of alerts what happened since, and return the judged site.

    All systems are judged, as the numbers do not depend on what somebody looks at.
    """
    judged = judgement_of(replace(options, system=None))
    log_news(options, judged)
    return judged if options.system is None else judgement_of(options, memory=judged.memory)


def log_news(options: SiteOptions, judged: JudgedSite) -> None:
    """Append what happened to alerts to their log; if that fails, say so and go on."""
    for system, events in judged.news.items():
        if events:
            try:
                append_events(options.perflogs_directory, system, events)
            except OSError as error:
                typer.echo(f"iobands: alerts are not logged: {error}", err=True)


def _rebuild(options: PastSiteOptions) -> None:
    perflogs = options.perflogs_directory
    every = replace(options, system=None)
    found = chronicle(
        known_of(every),
        lambda when: known_of(replace(every, as_of=when.isoformat())),
        options.false_alarms,
    )
    for system, events in found.items():
        path = alert_log(perflogs, system)
        with naming(path):
            if path.exists():
                path.replace(path.with_suffix(_OLD))
            append_events(perflogs, system, events)
        typer.echo(f"Wrote {path}: {plural(len(events), 'event')}")


def _figures(found: Ledger) -> str:
    judged = found.real + found.false
    precision = (
        f"precision {100 * found.real / judged:.0f} % of {plural(judged, 'verdict')}"
        if judged
        else "no verdict yet; give one with `iobands resolve --verdict real|false`"
    )
    delay = "" if found.delay is None else f"; median detection delay {found.delay:g} runs"
    return f"{precision}{delay}"


def targets(
    nodes: Annotated[bool, typer.Option("--nodes", help="Compare nodes instead.")] = False,
    every: Annotated[bool, typer.Option("--all", help="List all of them.")] = False,
    *,
    options: PastSiteOptions,
) -> None:
    """Compare the storage targets of each file system, by the times of the ranks that use them.

    The times come from checks with a file per process. A slow target raises an alert; run the
    commands below its table to confirm it. The exit status is 0.
    """
    typer.echo(peers_text(site_of(options), NODE if nodes else TARGET, every=every), nl=False)


# After these, what was found before is found no more.
_FORGETTING: Final = (DISCARD, REBASELINE, RESOLVE, RETIRE, UNDO)
_BEFORE: Final = timedelta(microseconds=1)


def chronicle(
    known: Known, read: Callable[[datetime], Known], false_alarms: float
) -> dict[str, tuple[AlertEvent, ...]]:
    """Return the events by system, from what is `known` now and what `read` knew at a time.

    The site is judged as it was before each action that takes runs out of the judgement, and now.
    """
    actions = [each for log in known.logs.values() for each in log.actions]
    times = sorted({each.when - _BEFORE for each in actions if each.kind in _FORGETTING})
    logged: dict[str, tuple[AlertEvent, ...]] = {}
    for when in (*times, None):
        then = known if when is None else read(when)
        judged = judge(replace(then, alert_log=logged), false_alarms=false_alarms, with_power=False)
        for system, events in judged.news.items():
            logged[system] = (*logged.get(system, ()), *events)
    return logged
