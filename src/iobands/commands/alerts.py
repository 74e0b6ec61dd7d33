"""The commands by which a person deals with an alarm, each with a reason that is kept.

They write `config/alarms/<system>.yaml`. May know acting and its errors; no analysis here.
"""

from __future__ import annotations

import getpass
import os
from typing import Annotated, Final

import typer

from iobands.alerts.acting import act_of
from iobands.alerts.acts import ACKNOWLEDGE, CLOSE, NEW_NORMAL, REOPEN
from iobands.alerts.targets import CannotAct, Request, chosen
from iobands.commands.options import (
    AdapterOption,
    AlarmsOption,
    BandsOption,
    DryRunOption,
    FalseAlarmsOption,
    PerflogsOption,
    SeriesArgument,
    SinceOption,
    SystemOption,
    failure,
    time_of,
)
from iobands.commands.survey import Site, survey_of
from iobands.reporting.format import summary
from iobands.yaml_file import FileError

ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why: the cause, a ticket, who is on it.")
]
ByOption = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who. [default: your login name]")
]
AllOption = Annotated[bool, typer.Option("--all", help="All that SERIES may mean.")]

#: What is said once an act is written.
_DONE: Final = {
    ACKNOWLEDGE: "acknowledged, until it recovers or becomes worse",
    CLOSE: "closed: what was measured under it no longer counts, the runs after it do",
    NEW_NORMAL: "a new normal: earlier runs and bands no longer count; checks keep the band of the "
    "bands file until `iobands calibrate` has written another",
    REOPEN: "taken back",
}


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command(ACKNOWLEDGE)(acknowledge)
    app.command(CLOSE)(close)
    app.command(NEW_NORMAL)(new_normal)
    app.command(REOPEN)(reopen)


def acknowledge(
    series: SeriesArgument,
    reason: ReasonOption,
    by: ByOption = None,
    every: AllOption = False,
    perflogs: PerflogsOption = None,
    bands: BandsOption = None,
    alarms: AlarmsOption = None,
    system: SystemOption = None,
    adapter: AdapterOption = None,
    false_alarms: FalseAlarmsOption = 1,
    dry_run: DryRunOption = False,
) -> None:
    """Say that you know of an alarm: it stays shown, as a warning and no longer as critical.

    SERIES may also be the name of a drop that several series share. It holds for this alarm: after
    a recovery, or when it has become worse on as much evidence as an alarm needs, it is critical
    again. A file system that collapses more often is named such as 'disk collapses', and is no
    warning any more until it does so more often still.

    The exit status is 0 once it is kept, and 3 where there is no alarm or it cannot be written.
    """
    site = Site(perflogs, bands, alarms, system, adapter)
    request = _request(ACKNOWLEDGE, reason, by)
    _act(request, series, every, site, false_alarms, dry_run)


def close(
    series: SeriesArgument,
    reason: ReasonOption,
    since: SinceOption = None,
    by: ByOption = None,
    every: AllOption = False,
    perflogs: PerflogsOption = None,
    bands: BandsOption = None,
    alarms: AlarmsOption = None,
    system: SystemOption = None,
    adapter: AdapterOption = None,
    false_alarms: FalseAlarmsOption = 1,
    dry_run: DryRunOption = False,
) -> None:
    """Say that the cause of an alarm was found and repaired, now or at TIME.

    The alarm ends, and what was measured under it is left out for good: of the charts, of what is
    learnt, and of `iobands calibrate`. The runs since then are held against the same reference, so
    that an alarm comes again if it was no repair. Of nodes, only what touched them is left out.

    The exit status is 0 once it is kept, and 3 where there is no alarm or it cannot be written.
    """
    site = Site(perflogs, bands, alarms, system, adapter)
    request = _request(CLOSE, reason, by, since)
    _act(request, series, every, site, false_alarms, dry_run)


def new_normal(
    series: SeriesArgument,
    reason: ReasonOption,
    since: SinceOption = None,
    by: ByOption = None,
    every: AllOption = False,
    perflogs: PerflogsOption = None,
    bands: BandsOption = None,
    alarms: AlarmsOption = None,
    system: SystemOption = None,
    adapter: AdapterOption = None,
    false_alarms: FalseAlarmsOption = 1,
    dry_run: DryRunOption = False,
) -> None:
    """Say that the level since a change is how it shall be judged from now on.

    It begins where the alarm says that the change began, or at TIME, for which no alarm is needed.
    Earlier runs and bands no longer count for these series; what changes all series of a system is
    an `iobands epoch`. The bands file stays as it is: `iobands calibrate` learns a band for it from
    20 runs on. Single nodes have no normal of their own.

    The exit status is 0 once it is kept, and 3 where there is no alarm or it cannot be written.
    """
    site = Site(perflogs, bands, alarms, system, adapter)
    request = _request(NEW_NORMAL, reason, by, since)
    _act(request, series, every, site, false_alarms, dry_run)


def reopen(
    series: SeriesArgument,
    reason: ReasonOption,
    by: ByOption = None,
    every: AllOption = False,
    perflogs: PerflogsOption = None,
    bands: BandsOption = None,
    alarms: AlarmsOption = None,
    system: SystemOption = None,
    adapter: AdapterOption = None,
    false_alarms: FalseAlarmsOption = 1,
    dry_run: DryRunOption = False,
) -> None:
    """Take back what was done last about an alarm: acknowledge, close or new-normal.

    Both stay in the file. Of an act about several series, one series may be taken back alone.

    The exit status is 0 once it is kept, and 3 where there is nothing or it cannot be written.
    """
    site = Site(perflogs, bands, alarms, system, adapter)
    request = _request(REOPEN, reason, by)
    _act(request, series, every, site, false_alarms, dry_run)


def _request(kind: str, reason: str, by: str | None, since: str | None = None) -> Request:
    """Return what is asked for, or end with a message where it says nothing."""
    said = {"--reason": " ".join(reason.split()), "--by": " ".join((by or _login()).split())}
    for option, text in said.items():
        if not text:
            raise failure(f"{option} is empty; whoever reads it later has to know")
    return Request(kind, said["--by"], said["--reason"], time_of(since) if since else None)


def _login() -> str:
    """Return who is at work, also behind sudo."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):  # which of them depends on Python
        raise failure("nobody knows who you are here; say so with --by") from None


def _act(
    request: Request, words: list[str], every: bool, site: Site, false_alarms: float, dry_run: bool
) -> None:
    """Write the acts, and show what became of the site by surveying it again."""
    from iobands.alerts.alarms_writer import add, added  # noqa: PLC0415 (ruamel.yaml takes its time)

    survey = survey_of(site, false_alarms=false_alarms)
    written = set()
    try:
        targets = chosen(survey, " ".join(words), request, every=every)
        for target, act in [(each, act_of(each, request, survey)) for each in targets]:
            path = site.alarms_directory / f"{target.system}.yaml"
            if act is None:
                typer.echo(f"{target.name}: done already, for the same reason")
            elif dry_run:
                typer.echo(added(path, target.system, act).diff(), nl=False)
            else:
                add(path, target.system, act)
                written.add(path)
                typer.echo(f"{target.name}: {_DONE[request.kind]}")
    except (CannotAct, FileError) as error:
        raise failure(str(error)) from error
    back = "" if request.kind == REOPEN else ". `iobands reopen` takes it back"
    for path in sorted(written):
        typer.echo(f"Written: {path}; commit it{back}.")
    if written:
        typer.echo(summary(survey_of(site, false_alarms=false_alarms)))
    if dry_run:
        typer.echo("\nNothing was written, as this is a dry run.")
