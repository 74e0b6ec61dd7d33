"""The commands that show a site: `iobands status`, `explain`, `alerts` and `targets`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, Literal

import typer
from rich.console import Console

from iobands import snapshot
from iobands.commands import cli
from iobands.commands.judging import judgement_of, known_of, site_of, sites_in_store
from iobands.judge.site import JudgedSite, judge
from iobands.model import NODE, TARGET, UNKNOWN, WORST_STATUS_FIRST, printable, worst
from iobands.snapshot import Alert, AlertEvent, LedgerEntry, Snapshot
from iobands.snapshot.stored import to_json
from iobands.source.action_log import ALERT_LOG, OutdatedError, alert_log
from iobands.views import alert_lines, peers, writing
from iobands.views.digest import chosen, digest_text, explanation, name_of, plugin_line


def status(
    options: cli.PastSiteOptions,
    format_: Annotated[Literal["text", "json", "plugin"], "The output format."] = "text",
    all_: Annotated[bool, "Show every alert with its series, and every series."] = False,
    rejected: Annotated[bool, "List all rejected lines."] = False,
) -> None:
    """Print the digest: the state of the site in one line, what needs attention, and the rates.

    `--format plugin` prints one line with performance data, as plug-ins of Nagios and Icinga do.
    The exit status is 0 if all is well, 1 for an acknowledged drop, a flaky check or a directory
    left behind, 2 for a drop or an incident, and 3 if data are missing or a check failed.
    """
    if format_ != "text":
        cli.refuse(f"with --format {format_}", "all_", "rejected")
    if format_ == "plugin":
        sys.stderr = sys.stdout  # monitors read only the standard output
    is_of_one = all_ or rejected or format_ == "json"
    if clusters := [] if is_of_one else [*_in_short(options)]:
        # the worst first
        for _, text in sorted(clusters, key=lambda each: WORST_STATUS_FIRST.index(each[0])):
            cli.show(text)
        raise typer.Exit(worst(status for status, _ in clusters))
    site = site_of(options, with_power=format_ == "json")
    if format_ == "json":
        cli.show(to_json(site, summary=writing.summary(site)))
    elif format_ == "plugin":
        cli.show(plugin_line(site))
    else:
        print_digest(site, every=all_, rejected=rejected)
    raise typer.Exit(site.exit_status)


def _in_short(options: cli.PastSiteOptions) -> Iterator[tuple[int, str]]:
    """Yield exit status and summary of each site of a store; one site is in memory at a time."""
    for name, judged in sites_in_store(options):
        if isinstance(judged, str):
            status, text = UNKNOWN, f"IOBANDS UNKNOWN: {judged}"
        else:
            status, text = judged.snapshot.exit_status, writing.summary(judged.snapshot)
        del judged  # free its memory before the next site is read
        yield status, f"{printable(name)}: {printable(text)}"


def print_digest(site: Snapshot, *, every: bool = False, rejected: bool = False) -> None:
    """Print the digest as wide as the terminal, or as a mail."""
    # without a height, rich assumes 80 columns for every terminal with TERM=dumb
    is_terminal, width = sys.stdout.isatty(), writing.output_width()
    console = Console(force_terminal=is_terminal, width=width, height=24)
    cli.show(digest_text(site, console, every=every, rejected=rejected))


def explain(
    options: cli.PastSiteOptions,
    words: cli.SeriesArgument,
    figure: Annotated[Path | None, "FILE", "Also draw a figure, .svg or .png."] = None,
    all_: Annotated[bool, "Name every series, whether it moved or not."] = False,
    runs: Annotated[
        int, cli.option("--runs NUMBER", "Also list the newest runs of the series.", 0, 1_000_000)
    ] = 0,
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
        raise cli.failure(f"{figure}: give --figure a file that ends in .svg or .png")
    if figure:
        cli.require_report("iobands explain --figure")
    judged = judgement_of(options, with_power=True)
    site, wanted = judged.snapshot, " ".join(words)
    found = chosen(site, wanted)
    if wanted.isdecimal():
        _note_unlogged(judged)
    if len(found) != 1:
        raise cli.failure(_not_one(site, wanted, [name_of(each, site) for each in found]))
    if isinstance(found[0], Alert):
        cli.refuse("for an alert; name one of its series", "runs")
    cli.show(explanation(site, found[0], writing.output_width(), every=all_, runs=runs))
    if figure:
        from iobands.views.figures import evidence  # noqa: PLC0415 (matplotlib is slow to load)

        if (drawn := evidence(site, found[0], form)) is None:
            raise cli.failure(f"{wanted} has no sample to draw")
        cli.write_file(figure, drawn)
        cli.say(f"Figure: {figure.resolve()}")


def _not_one(site: Snapshot, wanted: str, found: Sequence[str]) -> str:
    """Return the message if `wanted` names no series or alert, or several, with what to give."""
    if found:
        names = writing.nearest(found, wanted)
        more = "--system NAME" if wanted.isdecimal() else "more words"
        return f"{wanted} matches {len(found)} names; give {more}:{names}"
    if not site.series:
        return writing.no_samples(site)
    if wanted.isdecimal():
        return f"no alert has the number {wanted}; list all with: iobands alerts --all"
    for place in site.places:
        every = map(place.name_of, place.peers())
        named = [each for each in every if {*wanted.split()} <= {*each.split()}]
        if len(named) == 1:
            nodes = " --nodes" if place.kind == NODE else ""
            return f"{named[0]} has no alert; list all with: iobands targets{nodes}"
    for each in site.retired:
        if wanted in (each.label, each.name):
            undo = writing.command_text("undo", wanted, writing.view_options(site), "--reason TEXT")
            return f"{wanted} is retired until its next sample; to withdraw that: {undo}"
    alerts = "".join(f"\n  {name_of(each, site)}" for each in site.alerts if each.number)
    names = writing.nearest([series.label for series in site.series], wanted, _FEW)
    known = "open alerts, and the series with the closest names" if alerts else "the closest are"
    return f"no series or alert is named {wanted}; {known}:{alerts}{names}"


_FEW: Final = 6
_SHOWN: Final = 30
_BELOW: Final = " " * 7
_HEADINGS: Final = ("ALERT", "SINCE", "RAISED", "ENDED", "CHANGE", "SUBJECT", "HOW IT ENDED")


def alerts(
    options: cli.PastSiteOptions,
    all_: Annotated[bool, "List all alerts, not only the newest 30."] = False,
    rebuild: Annotated[bool, "Rewrite the log of alerts; numbers may change."] = False,
) -> None:
    """List open and past alerts, how each ended, and the precision and delay at this site.

    The precision is the share of real alerts among those with a verdict of `iobands resolve`. The
    log perflogs/SYSTEM/alerts.jsonl keeps the numbers of alerts; --rebuild makes it from the
    perflogs and the log of actions, and keeps the old one beside it.
    """
    if rebuild and options.store:
        raise cli.failure("--rebuild writes the site's own log; run it there, without --store")
    if rebuild:
        cli.refuse("with --rebuild", "as_of")  # the log would lose what has happened since
        cli.say(*rebuild_log(options))
    judged = judgement_of(options)
    _note_unlogged(judged)
    site, found = judged.snapshot, judged.snapshot.ledger
    shown = found.entries if all_ else found.entries[:_SHOWN]
    quiet = {each.identity: each.acknowledgement for each in site.alerts if each.is_quiet}
    table = [_HEADINGS, *(_row(each, site, each.identity in quiet) for each in shown)]
    width = writing.output_width()
    head, *rows = writing.blocks(table, width, wrapped=(5,), right=(0, 4), indent="")
    lines = head if shown else ["No alert so far."]
    for entry, row in zip(shown, rows, strict=True):
        lines += row
        if entry.cause and entry.subject not in entry.cause.what:
            lines.append(f"{_BELOW}cause: {entry.cause.what}")
        if entry.who:  # who ended it, and why
            lines.append(f"{_BELOW}{entry.ending}")
        elif known := quiet.get(entry.identity):
            action = known.action
            when = writing.day_text(action.when, site.now)
            lines.append(f"{_BELOW}{action.owner or action.who}, {when}: {action.reason}")
    if len(found.entries) > len(shown):
        lines.append(f"and {len(found.entries) - len(shown)} earlier ones; list them with --all")
    figures = ""
    if verdicts := found.real + found.false:
        number = writing.plural(verdicts, "verdict")
        figures = f"precision {writing.share_text(found.real / verdicts)} ({number})"
    elif shown:
        figures = "no verdict yet; give one with `iobands resolve --verdict real|false`"
    if found.delay is not None:
        runs = "run" if found.delay == 1 else "runs"
        figures += f"; median detection delay {found.delay:g} {runs}"
    cli.say(*lines, *(["", figures] if figures else []))


def _note_unlogged(judged: JudgedSite) -> None:
    for name, why in judged.known.unlogged.items():
        cli.note(f"alerts of {name} have no numbers and are not listed: {why}")


def _row(entry: LedgerEntry, site: Snapshot, is_quiet: bool) -> tuple[str, ...]:
    times = (entry.since, entry.raised, entry.ended)
    days = (writing.day_text(each, site.now) if each else "-" for each in times)
    ended = "" if entry.who else "acknowledged" if is_quiet else entry.ending
    change = writing.percent(entry.ratio) if entry.ratio else "-"
    return (str(entry.number or "-"), *days, change, alert_lines.title(entry, site), ended)


# Actions that take no runs out of the judgement; after any other, earlier changes may vanish.
_KEEPING: Final = (snapshot.ACKNOWLEDGE, snapshot.BEGIN, snapshot.END)
_BEFORE: Final = timedelta(microseconds=1)
_ATTEMPTS: Final = 5


def rebuild_log(options: cli.SiteOptions) -> list[str]:
    """Write the logs of alerts anew, and keep the old ones; return what was written.

    The site is judged just before and just after each action that takes runs out of the judgement,
    and now, and the events of each judgement are added.
    """
    perflogs, all_systems = options.perflogs_directory, replace(options, system=None)
    known = known_of(all_systems)
    if unread := [str(each) for each in known.rejected if each.is_unread]:
        why = "a new log would lose its alerts; make it readable, or remove it"
        raise cli.failure(f"{writing.some(unread, 1)}; {why}")
    actions = [each for log in known.logs.values() for each in log.actions]
    # an action that was dated by a clock ahead of ours counts in the judgement of now
    whens = {min(each.when, known.now) for each in actions if each.kind not in _KEEPING}
    times = sorted({*whens, *(each - _BEFORE for each in whens)})
    logged: dict[str, tuple[AlertEvent, ...]] = {}
    for when in (*times, None):
        then = known_of(replace(all_systems, as_of=when.isoformat())) if when else known
        then = replace(then, alert_log=logged)
        judged = judge(then, false_alarms=options.false_alarms, with_power=False)
        for system, events in judged.news.items():
            logged[system] = (*logged.get(system, ()), *events)
    written = []
    for system, events in logged.items():
        path = ALERT_LOG.rewrite(alert_log(perflogs, system), events)
        written.append(f"Wrote {path}: {writing.plural(len(events), 'event')}")
    return written


def log_news(
    options: cli.SiteOptions, judged: JudgedSite, again: Callable[[], JudgedSite]
) -> JudgedSite:
    """Append new events of alerts to their logs, and return the judgement that was logged.

    If another process has written to a log since it was read, the site is judged `again`, as both
    may have given one number to two alerts. Nothing is logged under a wrong clock: events dated in
    the future would block later ones. Nor for a system whose perflogs, bands or logs cannot be
    read: its alerts would have other numbers from then on. If writing fails, print why and go on.
    """
    if judged.snapshot.clock:
        return judged
    for _ in range(_ATTEMPTS):
        try:
            for system, events in judged.news.items():
                if events and system not in judged.known.incomplete:
                    path = alert_log(options.perflogs_directory, system)
                    ALERT_LOG.append(path, events, judged.known.alert_log.get(system, ()))
        except OutdatedError:
            judged = again()
        except OSError as error:
            cli.note(f"alerts are not logged: {cli.reason_of(error)}")
            return judged
        else:
            return judged
    cli.note("alerts were not logged: other processes changed the log; the next session logs them")
    return judged


def targets(
    options: cli.PastSiteOptions,
    nodes: Annotated[bool, "Compare the nodes of each partition instead."] = False,
    all_: Annotated[bool, "List all targets or nodes."] = False,
) -> None:
    """Compare the storage targets of each file system, by the times of the ranks that use them.

    The times come from checks with a file per process. A slow target raises an alert; run the
    commands below its table to confirm it. The exit status is 0, or 3 after an error.
    """
    cli.show(peers.peers_text(site_of(options), NODE if nodes else TARGET, every=all_))
