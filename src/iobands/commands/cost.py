"""The commands around a session: `iobands cost`, `schedule` and `clean`."""

from __future__ import annotations

import re
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

import typer

from iobands import measure
from iobands.commands import cli
from iobands.measure.schedule import Every, new_job
from iobands.model import OK, WARNING, SessionError, figure, grouped_by
from iobands.views.writing import blocks, output_width, plural, size_text

_DAYS_A_YEAR = 365
#: The most repeats of a healthy site, as a share of the scheduled runs (docs/error-rates.md).
_REPEATED = 0.1
_HEADINGS = (
    "FILE SYSTEM", "CHECKS", "TiB/RUN", "TiB/DAY", "TiB/YEAR", "WRITES/YEAR", "h/RUN", "h/YEAR",
)  # fmt: skip
_BETWEEN = "Time between runs: days, or 36h. [default: 7 for weekly, else 1]"


def cost(
    root: cli.RootOption = None,
    tag: cli.TagOption = "daily",
    system: cli.AsSystemOption = None,
    every: Annotated[float | None, cli.span("--every", _BETWEEN, "days", 0.01)] = None,
) -> None:
    """Print what a selection of checks costs at most: TiB written and node hours.

    Nothing is measured. If the site file declares `capacity_tib` for a file system, the table also
    shows how many times a year its whole capacity is written.
    """
    found, selection = cli.root_of(root), measure.Selection(tag, system)
    described = measure.describe(found, selection.arguments())
    if not described:
        raise cli.failure(measure.why_none(found, selection))
    costs = measure.costs_of(described)
    if not costs:
        raise cli.failure(f"no measuring check with the tag {tag} runs on this system")
    read = cli.site_files(found / "config" / "systems")
    places = sorted({each.partition for each in costs})
    capacity_of = {
        file_system: entry["capacity_tib"]
        for system, name in (each.split(":") for each in places)
        for file_system, entry in read(system).partitions[name]["filesystems"].items()
        if "capacity_tib" in entry
    }
    by_file_system = grouped_by(costs, lambda each: each.file_system)
    rows: list[tuple[str, ...]] = [_HEADINGS]
    days = every or (7 if tag == "weekly" else 1)  # as `iobands schedule` runs it
    runs = _DAYS_A_YEAR / days  # a year
    for name, group in [*by_file_system.items(), ("all", costs)]:
        tib = sum(each.written_gib for each in group) / measure.GIB_PER_TIB
        hours = sum(each.node_hours for each in group)
        capacity = capacity_of.get(name)
        times = figure(tib * runs / capacity) if capacity else "-"
        written, worked = (tib, tib / days, tib * runs), (hours, hours * runs)
        figures = (*map(figure, written), times, *map(figure, worked))
        rows.append((name, str(len(group)), *figures))
    said = [*chain(*blocks(rows, output_width(), right=range(1, len(_HEADINGS)), indent=""))]
    said += ["", "Upper bounds: volume × repeats; nodes × time limit (h: node hours)."]
    limits = {place: measure.limits_of(read, place) for place in places}
    if allowing := sum(each.node_hours for each in costs if limits[each.partition].allow):
        more = f"{100 * _REPEATED:.0f} % more runs, {figure(_REPEATED * allowing * runs)}"
        said.append(
            f"What is in doubt is measured again: on a healthy site up to {more} node hours a year."
        )
    for place, own in limits.items():
        most = f"at most {own.node_hours_per_day:g} node hours a day" if own.allow else "off"
        said.append(f"Repeats on {place}: {most} (`suspects` in the site file).")
    if unknown := sum(not each.written_gib and not each.node_hours for each in costs):
        uncounted = f"Not counted: {plural(unknown, 'check')}, as the scheduler chooses the nodes;"
        said.append(f"{uncounted} no `daily_budget` stops {'it' if unknown == 1 else 'them'}.")
    cli.say(*said)


_REPORT = "Also write the dashboard to DIR. [default: dashboard, if iobands[report] is installed]"


def schedule(
    form: Annotated[
        Literal["cron", "systemd", "scron", "script"],
        cli.argument(
            "FORM",
            "Lines for `crontab -e` or Slurm's `scrontab -e`, units of systemd, or a script.",
        ),
    ],
    tag: cli.TagOption = "daily",
    every: Annotated[Every | None, "How often. [default: week for weekly, else day]"] = None,
    at: Annotated[str | None, "HH:MM", "Local time. [default: 05:00; weekly 17:00]"] = None,
    jitter: Annotated[
        float,
        cli.span("--jitter", "Start at most this much later: minutes, or 1h.", "minutes", max=720),
    ] = 30,
    system: cli.AsSystemOption = None,
    report: Annotated[str | None, "DIR", _REPORT] = None,
    notify: cli.NotifyOption = False,
    suspects: Annotated[bool, "With script: the hourly script for what is in doubt."] = False,
    account: Annotated[
        str | None, "NAME", "The account that jobs are charged to. [default: IOBANDS_ACCOUNT]"
    ] = None,
    root: cli.RootOption = None,
) -> None:
    """Print what starts `iobands run` regularly: for cron, systemd, Slurm's scrontab, or a script.

    For the daily checks, a second entry measures every hour what is in doubt. Without it, nothing
    is measured between sessions.

    The jitter is a fixed delay derived from host, directory, tag and system, so that sites and tags
    do not start at the same minute. The printed command sets the account, and a PATH with the
    programs that a session calls. If this shell has the command `module`, a bash login shell runs
    the session, because jobs inherit `module` from it.
    """
    if form == "script":
        cli.refuse("in a script", "every", "at", "jitter")
    else:
        cli.refuse("except in a script", "suspects")
    if suspects:
        cli.refuse("with --suspects", "tag", "system")
    place = cli.root_of(root)
    at = at or ("17:00" if tag == "weekly" else "05:00")  # when a daily session is over
    if (clock := re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", at)) is None:
        raise cli.failure(f"--at {at}: not a time of day; write 05:00")
    time = int(clock[1]), int(clock[2])
    new = partial(new_job, place, clock=time, jitter=int(jitter), account=account)
    writing, notifying = _outputs(place, report, notify)
    notifying += ["--limit", "11h30m"] if form == "scron" else []  # before Slurm's limit
    of_system = ["--system", system] if system else []
    often = every or ("week" if tag == "weekly" else "day")
    try:
        usual = new(tag, [*writing, *of_system, *notifying], every=often, system=system)
        hourly = new(None, [*writing, *notifying], every="hour")
    except ValueError as error:
        raise cli.failure(str(error)) from error
    if not suspects:
        _refuse_nothing(place, measure.Selection(tag, system))
    if form == "script":
        cli.show(f"#!/bin/sh\n{(hourly if suspects else usual).shell()}")
        return
    jobs = (hourly, usual) if tag == "daily" else (usual,)
    if form == "systemd":
        cli.show("\n".join(job.units() for job in jobs))
        return
    for job in jobs:
        what = "every hour, what is in doubt" if job is hourly else f"the {tag} checks"
        lines = job.cron_line() if form == "cron" else job.scron_lines()
        cli.show(f"# {job.name}: {what}\n{lines}")


def _outputs(place: Path, report: str | None, notify: bool) -> tuple[list[str], list[str]]:
    """Return the options for the dashboard and for messages; exit if a session would fail."""
    receivers = place / "config" / "notify.yaml"
    if notify and not receivers.is_file():
        missing = f"{receivers}: no such file; write one that names your channels"
        raise cli.failure(f"--notify: {missing}")
    if report:
        cli.require_report("iobands schedule --report")
        cli.refuse_mixing(place / report, place / "perflogs")
    elif not cli.missing_of_report():
        report = "dashboard"
    return ["--report", report] if report else [], ["--notify"] if notify else []


def _refuse_nothing(root: Path, selection: measure.Selection) -> None:
    """Exit with a message if ReFrame selects no check; of any other error, print a note.

    The session may meet a site that is complete, or an environment with ReFrame.
    """
    try:
        if not measure.describe(root, selection.arguments()):
            raise cli.failure(measure.why_none(root, selection))
    except measure.NothingSelectedError:
        raise
    except (OSError, SessionError) as error:
        cli.note(f"a session would fail now: {cli.reason_of(error)}")


def clean(
    root: cli.RootOption = None, system: cli.SystemOption = None, dry_run: cli.DryRunOption = False
) -> None:
    """Remove the run directories of sessions that are over.

    A directory is removed if iobands has a note of it, it lies directly under the path of a
    configured file system, and its job has ended. The exit status is 1 if a directory stays, else
    0.
    """
    found = cli.root_of(root)
    if system:  # a typing error must not look like a clean site
        cli.system_of(cli.SiteOptions(root=found, system=system.partition(":")[0]))
    read = cli.site_files(found / "config" / "systems")
    outcomes = measure.clean_up(found, system, read, dry_run=dry_run)
    for outcome in outcomes:
        cli.say(_line(outcome, dry_run))
    left = [] if dry_run else measure.read_leftovers(found / "perflogs", system)
    for each in left:
        if each.since is None:  # not among the outcomes
            cli.say(f"stays    {each.path}: {each.why}")
    if not (outcomes or left):
        cli.say("Nothing is left behind.")
    stays = left or any(outcome.state != "gone" for outcome in outcomes)
    raise typer.Exit(WARNING if stays else OK)


def _line(outcome: measure.SweepOutcome, dry_run: bool) -> str:
    path, size = outcome.note.path, outcome.bytes
    known = f" ({size_text(size)})" if size is not None else ""
    if outcome.state == "gone":
        return f"gone     {path}"
    if dry_run and outcome.state == "stays" and not outcome.why:
        return f"would go {path}{known}"
    return f"stays    {path}{known}: {outcome.why}"
