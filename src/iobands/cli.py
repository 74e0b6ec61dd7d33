"""The command `iobands`: arguments in, text and exit statuses out.

May know every other module; has no logic of its own.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta, timezone
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from iobands import __version__
from iobands.bands import BandsError
from iobands.digest import MAIL_WIDTH, as_json, digest_text
from iobands.page import write_page
from iobands.states import UNKNOWN
from iobands.survey import Survey, take_survey

app = typer.Typer(
    name="iobands",
    help="""Watch the I/O performance of an HPC site.

    ReFrame checks measure the file systems and leave perflogs. iobands holds the newest value of
    each series against its quartile band, and says what needs attention.

    \b
      iobands run      measure now, then print the digest
      iobands status   print the digest of what was measured so far
      iobands report   write it as a static web page

    The exit status is that of a monitoring plugin: 0 all is well, 1 watch, 2 degraded, 3 no data
    (a sample is missing, or nothing could be read). 2 goes before 3, and 3 before 1.
    """,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

DEFAULT_PERFLOGS = Path("perflogs")
DEFAULT_BANDS = Path("config/bands")


class Format(str, Enum):
    """How `iobands status` prints."""

    TEXT = "text"
    JSON = "json"


PerflogsOption = Annotated[
    Path, typer.Option("--perflogs", metavar="DIR", help="Where ReFrame left the perflogs.")
]
BandsOption = Annotated[
    Path, typer.Option("--bands", metavar="DIR", help="Where the bands files are.")
]
SystemOption = Annotated[
    str | None, typer.Option("--system", metavar="NAME", help="Only this system. [default: all]")
]
OverdueOption = Annotated[
    float,
    typer.Option(
        "--overdue", metavar="DAYS", min=0, help="A newest sample older than this is missed."
    ),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"iobands {__version__}")
        raise typer.Exit


@app.callback()
def main(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Take the options that stand before the command."""


@app.command()
def status(
    perflogs: PerflogsOption = DEFAULT_PERFLOGS,
    bands: BandsOption = DEFAULT_BANDS,
    system: SystemOption = None,
    overdue: OverdueOption = 3,
    output: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TEXT,
    rejected: Annotated[bool, typer.Option("--rejected", help="List all rejected lines.")] = False,
) -> None:
    """Print the digest: one line that says it all, what needs attention, every series.

    The exit status is 0 when all is well, 1 for watch, 2 for degraded and 3 for no data.
    """
    survey = _survey(perflogs, bands, system, overdue)
    if output is Format.JSON:
        typer.echo(json.dumps(as_json(survey), indent=2))
    else:
        _print(survey, rejected)
    raise typer.Exit(survey.exit_status)


def _survey(perflogs: Path, bands: Path, system: str | None, overdue: float) -> Survey:
    """Return the survey, or end with a message and the status for unknown."""
    if bands != DEFAULT_BANDS and not bands.is_dir():
        raise _failure(f"{bands}: no such directory; give --bands the directory of the bands files")
    try:
        survey = take_survey(
            perflogs,
            bands,
            now=datetime.now(timezone.utc).replace(microsecond=0),
            system=system,
            overdue=timedelta(days=overdue),
        )
    except FileNotFoundError:
        raise _failure(
            f"{perflogs}: no perflogs there; measure first with `make run` or `iobands run`, "
            "or give --perflogs the directory that has them"
        ) from None
    except OSError as error:
        raise _failure(f"{error.filename}: {error.strerror}") from error
    except BandsError as error:
        raise _failure(str(error)) from error
    if system and not survey.series and not survey.findings:
        known = ", ".join(sorted(p.name for p in perflogs.iterdir() if p.is_dir())) or "none"
        raise _failure(f"{perflogs}: nothing of the system {system}; systems there: {known}")
    return survey


def _print(survey: Survey, all_rejected: bool = False) -> None:
    terminal = sys.stdout.isatty()
    console = Console(force_terminal=terminal, width=None if terminal else MAIL_WIDTH)
    # as bytes, because the digest was made for the encoding and a mail must not break on one
    text = digest_text(survey, console, all_rejected=all_rejected)
    sys.stdout.buffer.write(text.encode(console.encoding, "replace"))
    sys.stdout.flush()


def _failure(message: str) -> typer.Exit:
    typer.echo(f"IOBANDS UNKNOWN: {message}", err=True)
    return typer.Exit(UNKNOWN)


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the page is written.")],
    perflogs: PerflogsOption = DEFAULT_PERFLOGS,
    bands: BandsOption = DEFAULT_BANDS,
    system: SystemOption = None,
    overdue: OverdueOption = 3,
) -> None:
    """Write DIR/index.html, a page that needs no server, and print where it is.

    The exit status is 0 once the page is written, whatever it says; 3 when it could not be.
    """
    survey = _survey(perflogs, bands, system, overdue)
    _write_page(survey, directory)


def _write_page(survey: Survey, directory: Path) -> None:
    try:
        typer.echo(f"Page: {write_page(survey, directory)}")
    except OSError as error:
        raise _failure(f"{error.filename or directory}: {error.strerror}") from error
