"""What the modules of the command line share: options, where things lie, and how it fails.

May know: where the root is, and the exit statuses; nothing of what a command does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iobands.run import find_root
from iobands.states import UNKNOWN

PerflogsOption = Annotated[
    Path | None,
    typer.Option(
        "--perflogs",
        metavar="DIR",
        help="Where ReFrame left the perflogs. [default: perflogs, here or in the repository]",
    ),
]
BandsOption = Annotated[
    Path | None,
    typer.Option(
        "--bands",
        metavar="DIR",
        help="Where the bands files are. [default: config/bands, here or in the repository]",
    ),
]
SystemOption = Annotated[
    str | None, typer.Option("--system", metavar="NAME", help="Only this system. [default: all]")
]


def default_path(path: Path) -> Path:
    """Return `path` as it is here or, failing that, in the repository around."""
    root = find_root(Path.cwd())
    return path if root is None or path.is_dir() else root / path


def failure(message: str) -> typer.Exit:
    """Print `message` and return the exit for unknown, to be raised."""
    typer.echo(f"IOBANDS UNKNOWN: {message}", err=True)
    return typer.Exit(UNKNOWN)
