"""The command `iobands run`: measure, then print the digest.

With nothing to measure again, `iobands run --suspects` ends at once: what it does not need is
imported later.
"""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import (
    AsSystemOption,
    FalseAlarmsOption,
    NotifyOption,
    ReframeArguments,
    RootOption,
    SiteOptions,
    TagOption,
    VerboseOption,
    failure,
    require_report,
    root_of,
    seconds_option,
)
from iobands.measure import read_plan


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
    notify: NotifyOption = False,
    suspects: Annotated[
        bool,
        typer.Option(
            "--suspects", help="Measure again only what is in doubt and due. Start it every hour."
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="With --suspects: show what it measures in the next 24 hours, and why.",
        ),
    ] = False,
    verbose: VerboseOption = False,
    extra: ReframeArguments = None,
) -> None:
    """Measure: run the checks under a lock, then print the digest.

    Arguments after -- are passed to ReFrame. The exit status is the same as for `iobands status`,
    and 3 if the checks could not be run or fewer ran than were selected. With --suspects, it is 0
    if nothing is due or another session is measuring.
    """
    if dry_run and not suspects:
        raise failure("--dry-run: only with --suspects; `iobands cost` shows what a session costs")
    if dashboard:  # said before the checks run, not after
        require_report("iobands run --report")
    options = SiteOptions(root=root_of(root), false_alarms=false_alarms)
    if suspects and not dry_run:
        plan, config = read_plan(options.perflogs_directory), options.config_of("bands").parent
        if not plan.calls(config, datetime.now(timezone.utc)):
            return
    from iobands.commands import session  # noqa: PLC0415 (slow to load)

    if dry_run:
        session.show_plan(options)
        return
    how = session.How(seconds_option(limit), dashboard, notify, verbose)
    if suspects:
        session.run_suspects(options, how)
    else:
        session.run_session(options, tag, system, tuple(extra or ()), how)
