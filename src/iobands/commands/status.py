"""The command `iobands status`: the digest, or everything as JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import Enum
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from iobands.commands.options import PastSiteOptions, failure, site_of, sites_in_store
from iobands.model import WORST_STATUS_FIRST, worst
from iobands.snapshot import Snapshot
from iobands.snapshot.stored import to_json
from iobands.views.digest import digest_text
from iobands.views.format import printable, summary
from iobands.views.layout import MAIL_WIDTH
from iobands.views.plugin import plugin_line


class StatusFormat(str, Enum):
    """How `iobands status` prints."""

    TEXT = "text"
    JSON = "json"
    PLUGIN = "plugin"


def status(
    output: Annotated[
        StatusFormat, typer.Option("--format", help="The output format.")
    ] = StatusFormat.TEXT,
    every: Annotated[
        bool, typer.Option("--all", help="Show every alert with its series, and every series.")
    ] = False,
    rejected: Annotated[bool, typer.Option("--rejected", help="List all rejected lines.")] = False,
    *,
    options: PastSiteOptions,
) -> None:
    """Print the digest: the state of the site in one line, what needs attention, the rates.

    `--format plugin` prints one line with performance data, as plug-ins of Nagios and Icinga do.
    The exit status is 0 if all is well, 1 for an acknowledged drop or a directory left behind, 2
    for degraded and 3 for no data.
    """
    if clusters := [(name, judged.snapshot) for name, judged in sites_in_store(options)]:
        _print_clusters(clusters, output)
    site = site_of(options, with_power=output is StatusFormat.JSON)
    if output is StatusFormat.JSON:
        typer.echo(to_json(site, summary=summary(site)))
    elif output is StatusFormat.PLUGIN:
        typer.echo(plugin_line(site))
    else:
        print_digest(site, every=every, rejected=rejected)
    raise typer.Exit(site.exit_status)


def _print_clusters(clusters: Sequence[tuple[str, Snapshot]], output: StatusFormat) -> NoReturn:
    """Print a line for each site of a store, the ones with trouble first, and exit."""
    if output is StatusFormat.JSON:
        raise failure("a store of several sites: choose one with --system")
    for name, site in sorted(
        clusters, key=lambda each: WORST_STATUS_FIRST.index(each[1].exit_status)
    ):
        typer.echo(f"{printable(name)}: {printable(summary(site))}")
    raise typer.Exit(worst(site.exit_status for _, site in clusters))


def print_digest(site: Snapshot, *, every: bool = False, rejected: bool = False) -> None:
    """Print the digest as wide as the terminal, or as a mail."""
    terminal = sys.stdout.isatty()
    console = Console(force_terminal=terminal, width=None if terminal else MAIL_WIDTH)
    text = digest_text(site, console, every=every, rejected=rejected)
    # As bytes: the digest is made for this encoding, which must not make a mail fail.
    sys.stdout.buffer.write(text.encode(console.encoding, "replace"))
    sys.stdout.flush()
