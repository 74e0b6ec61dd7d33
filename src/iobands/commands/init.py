"""The commands `iobands init`, which makes a site's directory, and `iobands reframe`."""

from __future__ import annotations

import os
import re
import sys
from difflib import unified_diff
from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import (
    DryRunOption,
    ReframeArguments,
    RootOption,
    failure,
    is_site,
    root_of,
)
from iobands.measure import SITE_ENV, SessionError, read_holder, reframe_command
from iobands.measure.site_directory import (
    EDIT,
    GENERIC,
    files_of_clone,
    machine,
    new_site,
    templates,
    write_site,
)
from iobands.model import PATH_PART


def init(
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="A new directory; with --check, one of a site."),
    ],
    template: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="TEMPLATE",
            help="A site file to begin with: generic is filled in from this machine, the others "
            "are those of sites, such as archer2.",
        ),
    ] = GENERIC,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="The system's name. [default: the host's]"),
    ] = None,
    clone: Annotated[
        Path | None,
        typer.Option(
            "--from-clone",
            metavar="CLONE",
            help="Copy a clone's site file, bands, actions and perflogs; it stays as it is.",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Show what this version would write differently.")
    ] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Make a directory for a site: site file, bands, actions and perflogs.

    Later versions of iobands do not change it. In it, or with --site DIR, all commands work.
    """
    if check:
        _check(root_of(directory))
        return
    if is_site(directory):
        raise failure(
            f"{directory}: is the directory of a site already; nothing was changed. "
            "See iobands init --check"
        )
    if clone:
        _refuse_busy(clone)
    found = machine()
    texts = {} if clone else new_site(name or _name(found.host), template, found)
    paths = [*texts, *(files_of_clone(clone) if clone else ())]
    if not dry_run:
        try:
            write_site(directory, texts, clone)
        except FileExistsError as error:
            raise failure(str(error)) from error
    for path in paths if len(paths) <= 20 or dry_run else ():  # noqa: PLR2004
        typer.echo(f"{'would write' if dry_run else 'wrote'} {directory / path}")
    if clone:
        typer.echo(
            f"{len(paths)} files of {clone}. That clone is unchanged: change the schedule to "
            f"{directory}, compare `iobands status` in both, then remove the clone's perflogs."
        )
    elif any(EDIT in text for text in texts.values()):
        typer.echo(f"Next: replace {EDIT} in config/systems, then iobands cost")
    else:
        typer.echo(f"Next: cd {directory} && iobands run")


def _name(host: str) -> str:
    found = re.sub(r"\d+$", "", host.lower().replace("_", "-")).strip("-.") or "site"
    name = typer.prompt("Name of the system", default=found) if sys.stdin.isatty() else found
    if not re.fullmatch(PATH_PART, name):
        raise failure(f"{name!r}: not a name; write letters, digits, - and _")
    return str(name)


def _refuse_busy(clone: Path) -> None:
    if not is_site(clone):
        raise failure(f"{clone}: no clone with a site; there is no config/systems")
    try:
        holder = read_holder(clone / "perflogs")
    except SessionError as error:
        raise failure(str(error)) from error
    if holder:
        raise failure(f"{clone}: a session runs there ({holder}); wait for its end")


def _check(root: Path) -> None:
    """Print the differences between a site's files and what this version would write."""
    known = templates()
    names = sorted(path.stem for path in (root / "config" / "systems").glob("[!_]*.py"))
    different, found = 0, machine()
    for name in names:
        for path, text in new_site(name, name if name in known else GENERIC, found).items():
            place = root / path
            before = place.read_text("utf-8").splitlines() if place.is_file() else []
            lines = [*unified_diff(before, text.splitlines(), str(place), "new", lineterm="", n=1)]
            different += bool(lines)
            typer.echo("\n".join(lines), nl=bool(lines))
    typer.echo(f"{different} files differ." if different else "This version would write the same.")


def reframe(
    root: RootOption = None,
    extra: ReframeArguments = None,
) -> None:
    """Call ReFrame with the configuration and the checks of a site, such as `-- -l` or `-- -r`."""
    site = root_of(root)
    try:
        command = reframe_command(site)
    except SessionError as error:
        raise failure(str(error)) from error
    os.environ[SITE_ENV] = str(site)
    os.execv(command[0], [*command, *(extra or ())])  # noqa: S606 (words, not a shell's line)
