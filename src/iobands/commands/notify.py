"""The command `iobands notify`: send news to people and monitors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from functools import partial
from typing import Annotated

import typer

from iobands.commands.options import DryRunOption, SiteOptions, site_of
from iobands.model import OK, UNKNOWN, FileError
from iobands.notify import deliver
from iobands.notify.outbox import Outbox, OutboxState
from iobands.notify.settings import Settings, read_settings
from iobands.snapshot import Snapshot
from iobands.views import printable, summary
from iobands.views.digest import performance


def notify(
    test: Annotated[
        bool, typer.Option("--test", help="Send a test message to every channel.")
    ] = False,
    dry_run: DryRunOption = False,
    *,
    options: SiteOptions,
) -> None:
    """Send messages about alerts that began, became worse, recovered or are still open.

    A message that could not be sent is kept and tried again at the next call. The exit status is 0,
    or 3 if a message or a report to a monitor could not be sent.
    """
    settings = settings_of(options)
    if dry_run:
        _show(deliver.news(site_of(options), settings, _outbox(options).state()))
        return
    if test:
        raise typer.Exit(_status(_test(settings)))
    raise typer.Exit(tell_of(site_of(options), settings, options))


def settings_of(options: SiteOptions) -> Settings:
    """Return the settings in config/notify.yaml."""
    return read_settings(options.config_of("notify.yaml"))


def tell_of(site: Snapshot, settings: Settings, options: SiteOptions) -> int:
    """Send the current state to people and monitors, and return the exit status."""
    not_sent = [*_tell(site, settings, _outbox(options)), *_report(site, settings)]
    return _status(not_sent)


def send_ping(settings: Settings, step: str, text: str = "") -> int:
    """Ping that a session is at `step` if the settings ask for it; return the exit status."""
    where = settings.ping
    error = deliver.attempt(lambda: deliver.ping(where, step, text)) if where else ""
    return _status([f"no ping: {error}"] if error else [])


def _outbox(options: SiteOptions) -> Outbox:
    return Outbox(options.perflogs_directory.parent / "outbox")


def _status(problems: Iterable[str]) -> int:
    """Print the problems, and return the exit status."""
    status = OK
    for problem in problems:
        typer.echo(f"IOBANDS UNKNOWN: {problem}", err=True)
        status = UNKNOWN
    return status


def _tell(site: Snapshot, settings: Settings, outbox: Outbox) -> list[str]:
    """Queue what is new, send all that waits, and return what could not be sent."""
    try:
        with outbox.locked():
            outbox.note(deliver.news(site, settings, outbox.state()))
            entries, problems = outbox.entries()
            for entry in deliver.deliver(outbox, entries, settings):
                if entry.sent:
                    typer.echo(f"Sent to {entry.channel}: {printable(entry.message.title)}")
                else:
                    problems.append(f"{entry.channel}: {entry.error}; kept as {entry.path}")
            if not site.clock:
                outbox.prune(entries, datetime.now(timezone.utc))
    except FileError as error:
        return [str(error)]
    return [f"not sent: {problem}" for problem in problems]


def _report(site: Snapshot, settings: Settings) -> Iterator[str]:
    """Send the state of the site to the monitors, and yield what failed."""
    for each in settings.monitors:
        said = partial(deliver.report, each, site.exit_status, summary(site), performance(site))
        if error := deliver.attempt(said):
            yield f"not sent: {each.name}: {error}"


def _test(settings: Settings) -> Iterator[str]:
    """Send a test message to each channel, and yield what could not be sent."""
    for name, error in deliver.test(settings, datetime.now(timezone.utc)):
        if error:
            yield f"not sent: {name}: {error}"
        else:
            typer.echo(f"Sent to {name}: a test")


def _show(state: OutboxState) -> None:
    """Print what would be sent."""
    for message, channels in state.pending:
        typer.echo(f"To {', '.join(channels)}: {message.title}\n\n{message.text}")
    typer.echo(f"{'No news. ' if not state.pending else ''}Dry run: nothing was sent.")
