"""Options of the commands and what they stand for, or a message and the exit for unknown."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from iobands.model.exit_status import UNKNOWN
from iobands.model.times import parse_time

PerflogsOption = Annotated[
    Path | None,
    typer.Option(
        "--perflogs",
        metavar="DIR",
        help="Where ReFrame left the perflogs. [default: perflogs, here or in the repository]",
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="DIR",
        help="Where the directories bands, alerts and systems and the file notify.yaml are. "
        "[default: config, here or in the repository]",
    ),
]
SystemOption = Annotated[
    str | None, typer.Option("--system", metavar="NAME", help="Only this system. [default: all]")
]
AsSystemOption = Annotated[
    str | None,
    typer.Option("--system", metavar="NAME", help="As this system. [default: as ReFrame finds]"),
]
TagOption = Annotated[str, typer.Option("--tag", help="The checks with this tag.")]
SeriesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SERIES",
        help="A series or an alert as `iobands status` names it, or some words of it.",
        show_default=False,
    ),
]
RootOption = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="The repository. [default: the nearest one from here upwards]",
    ),
]
FalseAlarmsOption = Annotated[
    float,
    typer.Option(
        "--false-alarms",
        metavar="NUMBER",
        min=0.001,
        help="How many false alarms a year are allowed, all series together.",
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show, and write nothing.")]
SinceOption = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="A date (UTC), or a time with its offset."),
]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="TIME",
        help="As it was known then: without later runs and actions. [default: now]",
    ),
]


def find_root(start: Path) -> Path | None:
    """Return the nearest directory from `start` upwards that holds `config/site.py`."""
    here = start.resolve()
    return next((p for p in (here, *here.parents) if (p / "config" / "site.py").is_file()), None)


def root_of(given: Path | None) -> Path:
    """Return the repository that `--root` says, or the nearest one; end where there is none."""
    found = given or find_root(Path.cwd())
    if found is None or not (found / "config" / "site.py").is_file():
        where = f"{given}: no config/site.py there" if given else "no config/site.py here or above"
        raise failure(f"{where}; run it in the repository, or name the repository with --root")
    return found.resolve()


def default_path(path: Path) -> Path:
    """Return `path` as it is here or, failing that, in the repository around."""
    root = find_root(Path.cwd())
    return path if root is None or path.exists() else root / path


def failure(message: str) -> typer.Exit:
    """Print `message` and return the exit for unknown, to be raised."""
    typer.echo(f"IOBANDS UNKNOWN: {message}", err=True)
    return typer.Exit(UNKNOWN)


def time_of(text: str, option: str = "--since") -> datetime:
    """Return the moment that `text` says; a date alone begins at 00:00 UTC, as in contract 3."""
    try:
        return parse_time(text)
    except ValueError as error:
        raise failure(f"{option} {error}") from None
