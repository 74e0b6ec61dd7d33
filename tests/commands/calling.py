"""The commands that act, called in this process."""

from __future__ import annotations

import typer
from typer.testing import CliRunner

from iobands.commands import alerts, bands

_APP = typer.Typer()
alerts.register(_APP)
bands.register(_APP)


def call(*arguments: str) -> tuple[int, str]:
    """Call a command; return its exit status and all that it says."""
    done = CliRunner().invoke(_APP, list(arguments))
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output
