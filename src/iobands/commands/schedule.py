"""The command `iobands schedule`: what runs a session every night, by cron and others."""

from __future__ import annotations

import re
from enum import Enum
from functools import partial
from typing import Annotated

import typer

from iobands.commands.options import AsSystemOption, RootOption, TagOption, failure, root_of
from iobands.measure.schedule import Every, new_job


class Form(str, Enum):
    """What is printed."""

    CRON = "cron"
    SYSTEMD = "systemd"
    SCRON = "scron"
    SCRIPT = "script"


def schedule(
    form: Annotated[
        Form,
        typer.Argument(
            help="Lines for `crontab -e` or Slurm's `scrontab -e`, units of systemd, or a script.",
            show_default=False,
        ),
    ],
    tag: TagOption = "daily",
    every: Annotated[
        Every | None,
        typer.Option("--every", help="How often. [default: week for weekly, else day]"),
    ] = None,
    at: Annotated[str, typer.Option("--at", metavar="HH:MM", help="Local time.")] = "05:00",
    jitter: Annotated[
        int,
        typer.Option(
            "--jitter", metavar="MINUTES", min=0, max=720, help="Start at most this much later."
        ),
    ] = 30,
    system: AsSystemOption = None,
    dashboard: Annotated[
        str, typer.Option("--report", metavar="DIR", help="Also write the dashboard to DIR.")
    ] = "dashboard",
    notify: Annotated[
        bool, typer.Option("--notify", help="Also send messages, as config/notify.yaml says.")
    ] = False,
    suspects: Annotated[
        bool,
        typer.Option("--suspects", help="With script: every hour, only what is in doubt."),
    ] = False,
    account: Annotated[
        str | None,
        typer.Option("--account", help="What jobs are charged to. [default: IOBANDS_ACCOUNT]"),
    ] = None,
    root: RootOption = None,
) -> None:
    """Print what runs `iobands run` regularly: for cron, systemd, Slurm's scrontab, or a script.

    For the daily checks, a second entry measures every hour what is in doubt. Without it, nothing
    is measured between sessions.

    The jitter is a fixed delay derived from host, directory and tag, so that sites and tags do not
    start at the same minute. The command sets the account and a PATH with the programs that a
    session calls. If this shell has the command `module`, a bash login shell runs the session, as
    jobs get `module` from there.
    """
    place = root_of(root)
    clock = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", at)
    if clock is None:
        raise failure(f"--at {at}: not a time of day; write 05:00")
    told = ["--notify"] if notify else []
    of_system = ["--system", system] if system else []
    new = partial(
        new_job, place, clock=(int(clock[1]), int(clock[2])), jitter=jitter, account=account
    )
    often = every or (Every.WEEK if tag == "weekly" else Every.DAY)
    try:
        usual = new(tag, ["--report", dashboard, *of_system, *told], every=often)
        hourly = new(None, ["--report", dashboard, *told], every=Every.HOUR)
    except ValueError as error:
        raise failure(str(error)) from error
    if form is Form.SCRIPT:
        typer.echo(f"#!/bin/sh\n{(hourly if suspects else usual).shell()}")
        return
    for job in (hourly, usual) if tag == "daily" else (usual,):
        what = "every hour, what is in doubt" if job is hourly else f"the {tag} checks"
        if form is Form.SYSTEMD:
            typer.echo(job.units())
            continue
        lines = job.cron_line() if form is Form.CRON else job.scron_lines()
        typer.echo(f"# {job.name}: {what}\n{lines}")
