"""The command `iobands report`: the page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import failure
from iobands.commands.site import PastSiteOptions, site_of
from iobands.site.site import Site


def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the page is written.")],
    *,
    options: PastSiteOptions,
) -> None:
    """Write DIR/index.html, a page that needs no server, and print where it is.

    The exit status is 0 once the page is written, whatever it says; 3 when it could not be.
    """
    site = site_of(options)
    report_to(directory, site)


def report_to(directory: Path, site: Site) -> None:
    """Write the page below `directory` and print where it is, or end with a message."""
    from iobands.reporting.page import write_page  # noqa: PLC0415 (matplotlib is slow to load)

    try:
        typer.echo(f"Page: {write_page(site, directory).resolve()}")
    except OSError as error:
        raise failure(f"{error.filename or directory}: {error.strerror}") from error
