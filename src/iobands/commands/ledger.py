"""The command `iobands alerts`: open and past alerts, and how each ended."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Annotated, Final

import typer

from iobands.commands.options import (
    PastSiteOptions,
    SiteOptions,
    failure,
    judgement_of,
    known_of,
    site_of,
)
from iobands.judge.chronicle import chronicle
from iobands.judge.site import JudgedSite
from iobands.model import naming
from iobands.snapshot import Ledger, LedgerEntry
from iobands.source.alert_log import alert_log, append_events
from iobands.source.known import read_known
from iobands.views.format import day_text, percent, plural, printable
from iobands.views.layout import blocks, fitted, output_width

_OLD: Final = ".old"
_SHOWN: Final = 30
_BELOW: Final = " " * 7
_HEADINGS: Final = ("ALERT", "SINCE", "RAISED", "ENDED", "CHANGE", "SUBJECT", "HOW IT ENDED")


def alerts(
    every: Annotated[bool, typer.Option("--all", help="List all, not only the newest 30.")] = False,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Write the log of alerts anew; numbers may change."),
    ] = False,
    *,
    options: PastSiteOptions,
) -> None:
    """List open and past alerts, how each ended, and the precision and delay at this site.

    The precision is the share of alerts that `iobands resolve --verdict` called real. The log
    perflogs/<system>/alerts.jsonl keeps their numbers; --rebuild makes it from the perflogs and
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
        [_HEADINGS, *(_row(each, site.now) for each in shown)],
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


def _row(entry: LedgerEntry, now: datetime) -> tuple[str, ...]:
    times = (entry.since, entry.raised, entry.ended)
    days = (day_text(each, now) if each else "-" for each in times)
    change = percent(entry.ratio) if entry.ratio else "-"
    return (
        str(entry.number or "-"),
        *days,
        change,
        printable(entry.subject),
        "" if entry.who else entry.end or "open",
    )


def recorded(options: SiteOptions) -> JudgedSite:
    """Append to the log of alerts what happened since, and return the judged site.

    All systems are judged, as the numbers do not depend on what somebody looks at.
    """
    judged = judgement_of(replace(options, system=None))
    log_news(options, judged)
    return judged if options.system is None else judgement_of(options, before=judged)


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
    read = partial(
        read_known, perflogs, options.config_of("bands"), options.config_of("alerts"), as_of=True
    )
    known = known_of(replace(options, system=None))
    found = chronicle(known, lambda when: read(now=when), options.false_alarms)
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
