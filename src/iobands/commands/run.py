"""The command `iobands run`: measure, then print the digest."""

from __future__ import annotations

import re
import threading
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from iobands.commands.ledger import recorded
from iobands.commands.notify import send_ping, settings_of, tell_of
from iobands.commands.options import (
    AsSystemOption,
    FalseAlarmsOption,
    RootOption,
    SiteOptions,
    TagOption,
    failure,
    require_report,
    root_of,
)
from iobands.commands.report import report_to
from iobands.commands.status import print_digest
from iobands.measure import Listener, Selection, SessionError
from iobands.measure.session import SessionOutcome, measure
from iobands.model import OK, UNKNOWN, FileError, worst
from iobands.notify.settings import Settings
from iobands.source.site_file import read_site_file
from iobands.views.format import summary


def run(
    root: RootOption = None,
    tag: TagOption = "daily",
    system: AsSystemOption = None,
    false_alarms: FalseAlarmsOption = 1,
    limit: Annotated[
        str,
        typer.Option(
            "--limit", metavar="TIME", help="End the session after this time, such as 90m or 4h."
        ),
    ] = "12h",
    dashboard: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Also write the dashboard to DIR."),
    ] = None,
    notify: Annotated[
        bool,
        typer.Option("--notify", help="Also send messages, as config/notify.yaml says."),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show ReFrame's output.")
    ] = False,
    extra: Annotated[
        list[str] | None, typer.Argument(metavar="[-- REFRAME_ARGUMENT...]", show_default=False)
    ] = None,
) -> None:
    """Measure: run the checks under a lock, then print the digest.

    Arguments after -- are passed to ReFrame. The exit status is the same as for `iobands status`,
    and 3 if the checks could not be run or fewer ran than were selected.
    """
    if dashboard:  # said before the checks run, not after
        require_report("iobands run --report")
    found = root_of(root)
    options = SiteOptions(root=found, false_alarms=false_alarms)
    selection = Selection(tag, system, tuple(extra or ()))
    unread: list[str] = []
    try:
        people = settings_of(options) if notify else Settings()
    except FileError as error:  # costs the messages of this session, but not its samples
        people, notify, unread = Settings(), False, [str(error)]
    statuses = [send_ping(people, "start")]
    try:
        outcome = _measure(found, selection, _seconds(limit), verbose)
    except typer.Exit as end:
        send_ping(people, "fail", str(end.__cause__ or ""))
        raise
    site = recorded(options, with_power=dashboard is not None)
    print_digest(site)
    if dashboard:
        report_to(dashboard, site, options.config_of("systems"))
    for note in outcome.notes:
        typer.echo(f"iobands: {note}", err=True)
    problems = [*outcome.problems, *unread]
    for problem in problems:
        typer.echo(f"IOBANDS UNKNOWN: {problem}", err=True)
    if notify:
        statuses.append(tell_of(site, people, options))
    statuses.append(send_ping(people, "fail" if problems else "", summary(site)))
    raise typer.Exit(worst([*statuses, site.exit_status, UNKNOWN if problems else OK]))


def _seconds(text: str) -> float:
    """Return the seconds of a duration as ReFrame writes them: 1d2h3m4s."""
    found = re.fullmatch(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", text)
    seconds = sum(
        int(number or 0) * unit
        for number, unit in zip(
            found.groups() if found else (), (86_400, 3600, 60, 1), strict=False
        )
    )
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise failure(f"--limit {text}: not a duration; write for example 90m, 4h or 1d")
    return seconds


def _measure(root: Path, selection: Selection, limit: float, verbose: bool) -> SessionOutcome:
    """Run ReFrame with a progress line on a terminal, or with its whole output."""
    read = partial(read_site_file, root / "config" / "systems")
    console = Console(stderr=True, highlight=False, markup=False)
    try:
        if verbose:
            listener = Listener(line=typer.echo, step=lambda _: None)
            return measure(root, selection, read, limit, listener)
        with console.status("iobands run") as status:  # prints nothing unless on a terminal
            listener = Listener(
                line=lambda _: None,
                step=lambda text: status.update(Text(f"iobands run: {text}")),
            )
            return measure(root, selection, read, limit, listener)
    except SessionError as error:
        raise failure(str(error)) from error
