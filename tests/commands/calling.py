"""Calls of commands in this process."""

from __future__ import annotations

from collections.abc import Callable

from typer.testing import CliRunner

from iobands.commands.main import app


def call(*arguments: str) -> tuple[int, str]:
    """Call a command; return its exit status and its output."""
    done = CliRunner().invoke(app, list(arguments))
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def alike(one: Callable[[], str], other: Callable[[], str]) -> bool:
    """Return whether both texts agree; tries twice, as the time in a digest may change."""
    before = other()
    return one() in (before, other())
