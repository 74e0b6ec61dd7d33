"""The command `iobands targets`: the speed of each storage target, or node, beside the others."""

from __future__ import annotations

from typing import Annotated

import typer

from iobands.commands.options import PastSiteOptions, site_of
from iobands.model import NODE, TARGET
from iobands.views.peers import peers_text


def targets(
    nodes: Annotated[bool, typer.Option("--nodes", help="Compare nodes instead.")] = False,
    every: Annotated[bool, typer.Option("--all", help="List all of them.")] = False,
    *,
    options: PastSiteOptions,
) -> None:
    """Compare the storage targets of each file system, by the times of the ranks that use them.

    The times come from checks with a file per process. A slow target raises an alert; run the
    commands below its table to confirm it. The exit status is 0.
    """
    typer.echo(peers_text(site_of(options), NODE if nodes else TARGET, every=every), nl=False)
