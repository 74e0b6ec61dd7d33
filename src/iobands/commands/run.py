"""The command `iobands run`: measure, then print the digest.

Imports of the judge and ReFrame come late, so that `iobands run --suspects` ends at once if
nothing is due.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

from iobands.commands import cli
from iobands.measure import read_plan


def run(
    root: cli.RootOption = None,
    tag: cli.TagOption = "daily",
    system: cli.AsSystemOption = None,
    false_alarms: cli.FalseAlarmsOption = 1,
    limit: Annotated[str, "TIME", "End the session after this time, such as 90m or 4h."] = "12h",
    report: Annotated[Path | None, "DIR", "Also write the dashboard to DIR."] = None,
    notify: cli.NotifyOption = False,
    suspects: Annotated[
        bool, "Measure again only what is in doubt and due. Start this every hour."
    ] = False,
    dry_run: Annotated[
        bool, "With --suspects: show what is to be measured in the next 24 hours, and why."
    ] = False,
    verbose: cli.VerboseOption = False,
    extra: cli.ReframeArguments = None,
) -> None:
    """Measure: run the checks under a lock, then print the digest.

    Arguments after -- are passed to ReFrame. The exit status is 3 if the checks could not be run or
    fewer ran than were selected, else the same as for `iobands status`. With --suspects, it is 0 if
    nothing is due or another session is measuring.
    """
    if dry_run and not suspects:
        raise cli.failure("--dry-run needs --suspects; for the cost of a session: `iobands cost`")
    if suspects:
        cli.refuse("with --suspects", "tag", "system", "extra")
    if report:  # refuse before the checks run, not after
        cli.require_report("iobands run --report")
        with suppress(TimeoutError):  # a hung disk costs the dashboard, not the samples
            cli.refuse_mixing(report, cli.root_of(root) / "perflogs")
    options = cli.SiteOptions(root=cli.root_of(root), false_alarms=false_alarms)
    if suspects and not dry_run:
        plan, config = read_plan(options.perflogs_directory), options.config_of("bands").parent
        if not plan.calls(config, datetime.now(timezone.utc)):
            return
    from iobands.commands.session import Session, show_plan  # noqa: PLC0415 (slow to load)

    if dry_run:
        show_plan(options)
        return
    session = Session(options, cli.seconds_option(limit), report, notify, verbose)
    if suspects:
        session.run_suspects()
    else:
        session.run(tag, system, extra or ())
