"""The command `iobands notify`: tell people what has changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Annotated

import typer

from iobands.alerts.alert import OK, UNKNOWN
from iobands.commands.options import DryRunOption
from iobands.commands.site import SiteOptions, site_of
from iobands.model.schema import FileError
from iobands.notify import deliver, monitor
from iobands.notify.outbox import Outbox, State
from iobands.notify.settings import SendError, Settings, read_settings
from iobands.reporting.format import summary
from iobands.site.site import Site


def notify(
    test: Annotated[
        bool, typer.Option("--test", help="Send a message that says nothing, to every channel.")
    ] = False,
    dry_run: DryRunOption = False,
    *,
    options: SiteOptions,
) -> None:
    """Tell people what has changed: alerts that began, became worse, recovered or are open still.

    Each message is kept until it was sent; what could not be sent is tried again the next time.
    The exit status is 0, and 3 when a message or a report could not be sent.
    """
    settings = settings_of(options)
    if dry_run:
        _show(deliver.news(site_of(options), settings, _outbox(options).state()))
        return
    status = _test(settings) if test else tell_of(site_of(options), settings, options)
    raise typer.Exit(status)


def settings_of(options: SiteOptions) -> Settings:
    """Return what config/notify.yaml says."""
    return read_settings(options.config_of("notify.yaml"))


def tell_of(site: Site, settings: Settings, options: SiteOptions) -> int:
    """Tell people and monitors of the site as it is now, and return the exit status."""
    try:
        place = _outbox(options)
        status = tell(place, settings, lambda state: deliver.news(site, settings, state))
    except FileError as error:
        typer.echo(f"IOBANDS UNKNOWN: {error}", err=True)
        status = UNKNOWN
    return max(status, report_to_monitors(settings, site))


def _test(settings: Settings) -> int:
    status = OK
    for name, error in deliver.test(settings, datetime.now(timezone.utc)):
        if error:
            typer.echo(f"IOBANDS UNKNOWN: not sent: {name}: {error}", err=True)
            status = UNKNOWN
        else:
            typer.echo(f"Sent to {name}: a test")
    return status


def _outbox(options: SiteOptions) -> Outbox:
    return Outbox(options.perflogs_directory.parent / "outbox")


def tell(place: Outbox, settings: Settings, change: Callable[[State], State]) -> int:
    """Note what `change` makes of the last state, send what waits, and return the exit status.

    Raises:
        FileError: the outbox cannot be used.
    """
    status = OK
    with place.locked():
        place.note(change(place.state()))
        entries, problems = place.entries()
        for entry in deliver.deliver(place, entries, settings):
            if entry.sent:
                typer.echo(f"Sent to {entry.channel}: {entry.message.title}")
            else:
                problems.append(f"{entry.channel}: {entry.error}; {entry.path} waits")
        place.prune(entries, datetime.now(timezone.utc))
    for problem in problems:
        typer.echo(f"IOBANDS UNKNOWN: not sent: {problem}", err=True)
        status = UNKNOWN
    return status


def report_to_monitors(settings: Settings, site: Site) -> int:
    """Give the monitors the state of the site, and return the exit status."""
    status = OK
    for each in settings.monitors:
        try:
            monitor.report(each, site.exit_status, summary(site))
        except SendError as error:
            typer.echo(f"IOBANDS UNKNOWN: not sent: {each.name}: {error}", err=True)
            status = UNKNOWN
    return status


def ping(settings: Settings, step: str, text: str = "") -> int:
    """Ping that a session is at `step`, where the settings say so; return the exit status."""
    try:
        if settings.ping:
            monitor.ping(settings.ping, step, text)
    except SendError as error:
        typer.echo(f"IOBANDS UNKNOWN: no ping: {error}", err=True)
        return UNKNOWN
    return OK


def _show(state: State) -> None:
    """Print what would be sent."""
    for message, channels in state.pending:
        typer.echo(f"To {', '.join(channels)}: {message.title}\n\n{message.text}")
    typer.echo(f"{'Nothing to tell. ' if not state.pending else ''}This is a dry run.")
