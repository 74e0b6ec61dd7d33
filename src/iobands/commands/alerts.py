"""The commands that log a person's answer to an alert or a missing sample, with its reason."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from enum import Enum
from pathlib import Path
from typing import Annotated, Final

import typer

from iobands.bands import Span
from iobands.commands.options import (
    ByOption,
    DryRunOption,
    SeriesArgument,
    SinceOption,
    SiteOptions,
    failure,
    login_name,
    site_of,
    time_of,
)
from iobands.commands.status import recorded
from iobands.judge.requests import (
    Request,
    RequestError,
    action_of,
    selected,
    subjects_of,
)
from iobands.model import SeriesKey
from iobands.snapshot import ACKNOWLEDGE, DISCARD, REBASELINE, RESOLVE, RETIRE, UNDO
from iobands.source.action_log import append, as_line, log_path


class Verdict(str, Enum):
    """Whether a resolved alert was real, by a person's judgement."""

    REAL = "real"
    FALSE = "false"


@dataclass(frozen=True, kw_only=True)
class ActionOptions(SiteOptions):
    """The options of every action; see `SiteOptions`."""

    reason: Annotated[
        str,
        typer.Option("--reason", metavar="TEXT", help="Why: the cause, a ticket, who works on it."),
    ]
    by: ByOption = None
    every: Annotated[bool, typer.Option("--all", help="Everything that SERIES matches.")] = False
    dry_run: DryRunOption = False


_DONE: Final = {
    ACKNOWLEDGE: "acknowledged until it recovers or becomes worse",
    RESOLVE: "resolved; runs from the change until now no longer count, later ones do",
    REBASELINE: "rebaselined; earlier runs and bands no longer count",
    UNDO: "undone",
    RETIRE: "retired; no sample is expected until it is run again",
    DISCARD: "discarded; the sample stays in the perflog and is not judged",
}


def acknowledge(
    series: SeriesArgument,
    ticket: Annotated[
        str | None, typer.Option("--ticket", metavar="URL", help="The ticket about it.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="NAME", help="Who takes care of it.")
    ] = None,
    *,
    options: ActionOptions,
) -> None:
    """Acknowledge an alert: from now on it is a warning, and no longer critical.

    If the series recovers and falls again, the alert is critical again. It also becomes critical if
    the level falls further, on as much evidence as a new alert needs. The exit status is 0 if the
    action was logged, and 3 if there is no such alert.
    """
    _log(replace(_request(ACKNOWLEDGE, options), ticket=ticket, owner=owner), series, options)


def resolve(
    series: SeriesArgument,
    since: SinceOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Resolve it although the newest run is low.")
    ] = False,
    verdict: Annotated[
        Verdict | None, typer.Option("--verdict", help="Whether the alert was real or false.")
    ] = None,
    *,
    options: ActionOptions,
) -> None:
    """Resolve an alert: its cause was repaired, now or at TIME.

    The alert ends. Runs from the change until the repair no longer count for detection or bands.
    Later runs are judged by the same baseline, so the alert returns if the repair did not help.
    """
    request = _request(RESOLVE, options, since)
    said = verdict.value if verdict else None
    _log(replace(request, force=force, verdict=said), series, options)


def rebaseline(
    series: SeriesArgument, since: SinceOption = None, *, options: ActionOptions
) -> None:
    """Take the level since a change, or since TIME, as the new baseline.

    Earlier runs and bands no longer count for these series. If a whole system has changed, use
    `iobands epoch`. Once there are 20 runs, `iobands calibrate` writes a new band.
    """
    _log(_request(REBASELINE, options, since), series, options)


def undo(series: SeriesArgument, *, options: ActionOptions) -> None:
    """Undo the last action on an alert or a series. Both stay in the log."""
    _log(_request(UNDO, options), series, options)


def retire(series: SeriesArgument, *, options: ActionOptions) -> None:
    """Retire a series that is no longer measured, so that no sample of it is missing.

    The series leaves the digest until its next sample.
    """
    _log(_request(RETIRE, options), series, options)


def discard(
    series: SeriesArgument,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="TIME", help="Day, minute or second. [default: the newest sample]"
        ),
    ] = None,
    *,
    options: ActionOptions,
) -> None:
    """Discard samples of a series, such as those with a wrong time or from a manual test.

    They stay in the perflog and are not judged.
    """
    request = replace(_request(DISCARD, options), at=_span_of(at) if at else None)
    _log(request, series, options)


def _span_of(text: str) -> Span:
    """Return the day, minute or second that `text` names."""
    begin = time_of(text, "--at")
    date, clock = len("2023-10-09"), len("T06:00:00")
    colons = text.strip()[date : date + clock].count(":")  # a blank may stand for the T
    length = timedelta(seconds=1) if colons > 1 else timedelta(minutes=1)
    if len(text.strip()) == date:
        length = timedelta(days=1)
    return Span(begin, begin + length - timedelta(microseconds=1))


def _request(kind: str, options: ActionOptions, since: str | None = None) -> Request:
    reason, who = (" ".join(text.split()) for text in (options.reason, options.by or login_name()))
    for option, text in (("--reason", reason), ("--by", who)):
        if not text:
            raise failure(f"{option} is empty; the log needs it")
    return Request(kind, who, reason, time_of(since) if since else None)


def _log(request: Request, words: list[str], options: ActionOptions) -> None:
    """Log the actions, and print what each of them changed."""
    site = site_of(options) if options.dry_run else recorded(options).snapshot
    known = (*site.series, *site.retired)
    done = site.actions
    subjects = subjects_of(known, site.alerts, site.past)
    future: dict[SeriesKey, list[datetime]] = {}
    for sample in site.future:
        future.setdefault(sample.key, []).append(sample.when)
    try:
        chosen = selected(subjects, " ".join(words), request, every=options.every, log=done)
        # to the microsecond, as an undo names its action by time
        now = datetime.now(timezone.utc)
        actions = [(each, action_of(each, request, known, done, now, future)) for each in chosen]
    except RequestError as error:
        raise failure(str(error)) from error
    directory = options.config_of("alerts")
    written: set[Path] = set()
    for subject, action in actions:
        if action is None:
            known_already = {ACKNOWLEDGE: "already acknowledged, for the same reason"}
            typer.echo(f"{subject.title}: {known_already.get(request.kind, 'already retired')}")
        elif options.dry_run:
            typer.echo(f"{log_path(directory, subject.system)}: {as_line(action)}")
        else:
            written.add(append(directory, subject.system, [action]))
            typer.echo(f"{subject.title}: {_DONE[request.kind]}")
    for path in sorted(written):
        back = "" if request.kind == UNDO else " To withdraw it: iobands undo."
        typer.echo(f"Logged in {path}; commit this file.{back}")
    if options.dry_run:
        typer.echo("Dry run: nothing was written.")
