"""The command `iobands clean`: remove the run directories of sessions that are over."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import typer

from iobands.commands.options import DryRunOption, RootOption, SystemOption, root_of
from iobands.measure.notes import all_notes, read_leftovers
from iobands.measure.sweep import Outcome, Roots, sweep
from iobands.model.exit_status import OK, WARNING
from iobands.source.site_file import read_site_file
from iobands.views.format import printable, size_text


def clean(
    root: RootOption = None,
    system: SystemOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Remove the run directories of sessions that are over, by the notes of them.

    Removes what has a note, lies directly under the path of a configured file system, and is of no
    live job. The exit status is 1 if something stays, else 0.
    """
    found = root_of(root)
    outcomes = clean_up(found, system, dry_run=dry_run)
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


def clean_up(root: Path, system: str | None, *, dry_run: bool = False) -> list[Outcome]:
    """Sweep the notes of `system`, or of all systems that have some."""
    return [
        outcome
        for notes in all_notes(root / "perflogs", system)
        for outcome in sweep(notes, _roots(root, notes.parent.name), dry_run=dry_run)
    ]


def _roots(root: Path, system: str) -> Roots:
    """Return the places of run directories by the site file; none if there is no such file."""
    partitions = read_site_file(root / "config" / "systems", system).partitions
    if not partitions:
        return {}
    if str(root) not in sys.path:
        sys.path.append(str(root))
    types = importlib.import_module("checks.filesystems")
    return {
        Path(entry["path"]): types.mount_names(entry, types.BACKENDS[entry["type"]])
        for extras in partitions.values()
        for entry in extras.get("filesystems", {}).values()
    }


def _line(outcome: Outcome, dry_run: bool) -> str:
    path, size = printable(str(outcome.note.path)), outcome.bytes
    known = f" ({size_text(size)})" if size is not None else ""
    if outcome.state == "gone":
        return f"gone     {path}"
    if dry_run and outcome.state == "stays" and not outcome.why:
        return f"would go {path}{known}"
    return f"stays    {path}{known}: {printable(outcome.why)}"
