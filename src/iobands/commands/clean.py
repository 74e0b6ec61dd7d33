"""The command `iobands clean`: remove the run directories of sessions that are over."""

from __future__ import annotations

from functools import partial

import typer

from iobands.commands.options import DryRunOption, RootOption, SystemOption, root_of
from iobands.measure.notes import read_leftovers
from iobands.measure.sweep import SweepOutcome, clean_up
from iobands.model import OK, WARNING
from iobands.source.site_file import read_site_file
from iobands.views.format import printable, size_text


def clean(
    root: RootOption = None,
    system: SystemOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Remove the run directories of sessions that are over.

    A directory is removed if iobands has a note of it, it lies directly under the path of a
    configured file system, and its job has ended. The exit status is 1 if a directory stays, else
    0.
    """
    found = root_of(root)
    read = partial(read_site_file, found / "config" / "systems")
    outcomes = clean_up(found, system, read, dry_run=dry_run)
    for outcome in outcomes:
        typer.echo(_line(outcome, dry_run))
    left = [] if dry_run else read_leftovers(found / "perflogs", system)
    for each in left:
        if each.since is None:  # not among the outcomes
            typer.echo(f"stays    {printable(str(each.path))}: {each.why}")
    if not (outcomes or left):
        typer.echo("Nothing is left behind.")
    stays = left or any(outcome.state != "gone" for outcome in outcomes)
    raise typer.Exit(WARNING if stays else OK)


def _line(outcome: SweepOutcome, dry_run: bool) -> str:
    path, size = printable(str(outcome.note.path)), outcome.bytes
    known = f" ({size_text(size)})" if size is not None else ""
    if outcome.state == "gone":
        return f"gone     {path}"
    if dry_run and outcome.state == "stays" and not outcome.why:
        return f"would go {path}{known}"
    return f"stays    {path}{known}: {printable(outcome.why)}"
