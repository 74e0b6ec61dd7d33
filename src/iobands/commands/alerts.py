"""The commands by which a person answers an alert; each is logged with its reason."""

from __future__ import annotations

import getpass
import os
from dataclasses import replace
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import Annotated, Final

import typer

from iobands.alerts.action import ACKNOWLEDGE, REBASELINE, RESOLVE, UNDO
from iobands.alerts.log import append, as_line, path_of
from iobands.alerts.request import (
    Request,
    RequestError,
    action_of,
    selected,
    subjects_of,
)
from iobands.commands.options import (
    DryRunOption,
    SeriesArgument,
    SinceOption,
    failure,
    time_of,
)
from iobands.commands.site import SiteOptions, site_of


class Verdict(str, Enum):
    """What a person says of an alert that was resolved."""

    REAL = "real"
    FALSE = "false"


ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why: the cause, a ticket, who is on it.")
]
ByOption = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who. [default: your login name]")
]
AllOption = Annotated[bool, typer.Option("--all", help="Everything that SERIES may mean.")]
VerdictOption = Annotated[
    Verdict | None, typer.Option("--verdict", help="Whether the alert was real or false.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Also where the newest run is low.")]

_DONE: Final = {
    ACKNOWLEDGE: "acknowledged, until it recovers or becomes worse",
    RESOLVE: "resolved: runs from the change until now no longer count, later runs do",
    REBASELINE: "rebaselined: earlier runs and bands no longer count",
    UNDO: "undone",
}


def acknowledge(
    series: SeriesArgument,
    reason: ReasonOption,
    by: ByOption = None,
    every: AllOption = False,
    dry_run: DryRunOption = False,
    *,
    options: SiteOptions,
) -> None:
    """Say that you know of an alert: it is a warning from now on, and no longer critical.

    It is critical again after a recovery, or when it has become worse on as much evidence as an
    alert needs. The exit status is 0 once it is logged, and 3 where there is no such alert.
    """
    _log(_request(ACKNOWLEDGE, reason, by), series, every, options, dry_run)


def resolve(
    series: SeriesArgument,
    reason: ReasonOption,
    since: SinceOption = None,
    by: ByOption = None,
    every: AllOption = False,
    force: ForceOption = False,
    verdict: VerdictOption = None,
    dry_run: DryRunOption = False,
    *,
    options: SiteOptions,
) -> None:
    """Say that the cause of an alert was repaired, now or at TIME.

    The alert ends. Runs from the change until then no longer count, neither for detection nor for
    bands; later runs are judged by the same baseline, so the alert returns if it was no repair.
    """
    request = _request(RESOLVE, reason, by, since, force)
    request = replace(request, verdict=verdict.value if verdict else None)
    _log(request, series, every, options, dry_run)


def rebaseline(
    series: SeriesArgument,
    reason: ReasonOption,
    since: SinceOption = None,
    by: ByOption = None,
    every: AllOption = False,
    dry_run: DryRunOption = False,
    *,
    options: SiteOptions,
) -> None:
    """Say that the level since a change, or since TIME, is the baseline from now on.

    Earlier runs and bands no longer count for these series. For a change of a whole system use
    `iobands epoch`; `iobands calibrate` writes a new band once there are 20 runs.
    """
    request = _request(REBASELINE, reason, by, since)
    _log(request, series, every, options, dry_run)


def undo(
    series: SeriesArgument,
    reason: ReasonOption,
    by: ByOption = None,
    every: AllOption = False,
    dry_run: DryRunOption = False,
    *,
    options: SiteOptions,
) -> None:
    """Undo the last action about an alert or a series. Both stay in the log."""
    _log(_request(UNDO, reason, by), series, every, options, dry_run)


def _request(
    kind: str, reason: str, by: str | None, since: str | None = None, force: bool = False
) -> Request:
    given = {"--reason": " ".join(reason.split()), "--by": " ".join((by or _login()).split())}
    for option, text in given.items():
        if not text:
            raise failure(f"{option} is empty; the log needs it")
    moment = time_of(since) if since else None
    return Request(kind, given["--by"], given["--reason"], moment, force)


def _login() -> str:
    """Return who is logged in, also behind sudo."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):  # which of them depends on the version of Python
        raise failure("your login name is unknown here; give --by") from None


def _log(
    request: Request,
    words: list[str],
    every: bool,
    options: SiteOptions,
    dry_run: bool,
) -> None:
    """Log the actions, and print what each of them changed."""
    site = site_of(options)
    subjects = subjects_of(site.series, site.alerts, site.actions, site.now)
    try:
        chosen = selected(subjects, " ".join(words), request, every=every, log=site.actions)
        # to the microsecond, as an undo names the time of what it takes back
        now = datetime.now(timezone.utc)
        actions = [
            (each, action_of(each, request, site.series, site.actions, now)) for each in chosen
        ]
    except RequestError as error:
        raise failure(str(error)) from error
    written: set[Path] = set()
    for subject, action in actions:
        if action is None:
            typer.echo(f"{subject.name}: acknowledged already, for the same reason")
        elif dry_run:
            typer.echo(f"{path_of(options.alerts_directory, subject.system)}: {as_line(action)}")
        else:
            try:
                written.add(append(options.alerts_directory, subject.system, [action]))
            except OSError as error:
                raise failure(f"{error.filename}: {error.strerror}") from error
            typer.echo(f"{subject.name}: {_DONE[request.kind]}")
    for path in sorted(written):
        back = "" if request.kind == UNDO else " `iobands undo` takes it back."
        typer.echo(f"Logged in {path}; commit it.{back}")
    if dry_run:
        typer.echo("Nothing was written: this is a dry run.")
