"""The command `iobands targets`: how fast each storage target, or node, is over the others."""

from __future__ import annotations

from typing import Annotated

import typer

from iobands.commands.options import PastSiteOptions, site_of
from iobands.model import NODE, TARGET
from iobands.views.peers import peers_text


def targets(
    nodes: Annotated[bool, typer.Option("--nodes", help="The nodes instead.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Also those far down in the list.")] = False,
    *,
    options: PastSiteOptions,
) -> None:
    """Say which storage target is slower than the others, by the times of the ranks on it.

    The checks with a file per process record them. A slow one is an alert; the commands below its
    table confirm it. The exit status is 0.
    """
    typer.echo(peers_text(site_of(options), NODE if nodes else TARGET, every=every), nl=False)
