"""The command `iobands report`: the page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import (
    AlertsOption,
    AsOfOption,
    BandsOption,
    FalseAlarmsOption,
    OverdueOption,
    PerflogsOption,
    SystemOption,
    failure,
    moment_of,
)
from iobands.commands.site import Places, site_of
from iobands.site.site import Site


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(report)


def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the page is written.")],
    perflogs: PerflogsOption = None,
    bands: BandsOption = None,
    alerts: AlertsOption = None,
    system: SystemOption = None,
    overdue: OverdueOption = 3,
    false_alarms: FalseAlarmsOption = 1,
    as_of: AsOfOption = None,
) -> None:
    """Write DIR/index.html, a page that needs no server, and print where it is.

    The exit status is 0 once the page is written, whatever it says; 3 when it could not be.
    """
    places = Places(perflogs, bands, alerts, system)
    site = site_of(places, overdue=overdue, false_alarms=false_alarms, as_of=moment_of(as_of))
    report_to(directory, site)


def report_to(directory: Path, site: Site) -> None:
    """Write the page below `directory` and print where it is, or end with a message."""
    from iobands.reporting.page import write_page  # noqa: PLC0415 (matplotlib is slow to load)

    try:
        typer.echo(f"Page: {write_page(site, directory).resolve()}")
    except OSError as error:
        raise failure(f"{error.filename or directory}: {error.strerror}") from error
