"""The command `iobands`: arguments in, text and exit statuses out.

May know every other module; has no logic of its own.
"""

from __future__ import annotations

import json
import sys
import traceback
from enum import Enum
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from iobands import __version__
from iobands.commands import alerts as cli_alarms
from iobands.commands import bands as cli_bands
from iobands.commands import compare as cli_compare
from iobands.commands.options import (
    AdapterOption,
    AlarmsOption,
    BandsOption,
    FalseAlarmsOption,
    OverdueOption,
    PerflogsOption,
    SeriesArgument,
    SystemOption,
    failure,
)
from iobands.commands.run import Outcome, RunError, Selection, find_root, measure
from iobands.commands.survey import Site, survey_of
from iobands.readers.fields import FIELDS
from iobands.reporting.digest import MAIL_WIDTH, digest_text
from iobands.reporting.digest_json import as_json
from iobands.status.states import OK, UNKNOWN, worst
from iobands.status.survey import Survey

app = typer.Typer(
    name="iobands",
    help=cleandoc(
        """Watch the I/O performance of an HPC site.

    ReFrame checks measure the file systems and leave perflogs. iobands holds the newest value of
    each series against its quartile band, and says what needs attention.

    \b
      iobands run        measure now, then print the digest
      iobands status     print the digest of what was measured so far
      iobands report     write it as a static web page
      iobands explain    tell why a series is in its state
      iobands compare    give the ratio of series that differ in one field

    \b
    When an alarm comes, with a reason that is kept:
      iobands acknowledge  you know: it is no longer critical
      iobands close        the cause was found and repaired
      iobands new-normal   what it is now is how it shall be judged
      iobands reopen       take one of these back

    \b
    The bands:
      iobands calibrate  propose bands from the site's own history
      iobands epoch      begin an epoch: what is measured has changed

    The exit status is that of a monitoring plugin: 0 all is well, 1 watch, 2 degraded, 3 no data
    (a sample is missing, or nothing could be read). 2 goes before 3, and 3 before 1.
    """
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Format(str, Enum):
    """How `iobands status` prints."""

    TEXT = "text"
    JSON = "json"


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
    perflogs: PerflogsOption = None,
    bands: BandsOption = None,
    alarms: AlarmsOption = None,
    system: SystemOption = None,
    overdue: OverdueOption = 3,
    adapter: AdapterOption = None,
    false_alarms: FalseAlarmsOption = 1,
    output: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TEXT,
    rejected: Annotated[bool, typer.Option("--rejected", help="List all rejected lines.")] = False,
) -> None:
    """Print the digest: one line that says it all, what needs attention, every series.

    The exit status is 0 when all is well, 1 for watch, for a drop that was acknowledged or for a
    file system that collapses more often than it did, 2 for degraded and 3 for no data.
    """
    site = Site(perflogs, bands, alarms, system, adapter)
    survey = survey_of(site, overdue=overdue, false_alarms=false_alarms)
    if output is Format.JSON:
        typer.echo(json.dumps(as_json(survey), indent=2))
    else:
        _print(survey, rejected)
    raise typer.Exit(survey.exit_status)


def _print(survey: Survey, all_rejected: bool = False) -> None:
    terminal = sys.stdout.isatty()
    console = Console(force_terminal=terminal, width=None if terminal else MAIL_WIDTH)
    # as bytes, because the digest was made for the encoding and a mail must not break on one
    text = digest_text(survey, console, all_rejected=all_rejected)
    sys.stdout.buffer.write(text.encode(console.encoding, "replace"))
    sys.stdout.flush()


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the page is written.")],
    perflogs: PerflogsOption = None,
    bands: BandsOption = None,
    alarms: AlarmsOption = None,
    system: SystemOption = None,
    overdue: OverdueOption = 3,
    adapter: AdapterOption = None,
    false_alarms: FalseAlarmsOption = 1,
) -> None:
    """Write DIR/index.html, a page that needs no server, and print where it is.

    The exit status is 0 once the page is written, whatever it says; 3 when it could not be.
    """
    site = Site(perflogs, bands, alarms, system, adapter)
    survey = survey_of(site, overdue=overdue, false_alarms=false_alarms)
    _write_page(survey, directory)


@app.command()
def run(
    root: Annotated[
        Path | None,
        typer.Option(
            "--root",
            metavar="DIR",
            help="The repository. [default: the nearest one from here upwards]",
        ),
    ] = None,
    tag: Annotated[str, typer.Option("--tag", help="Run the checks with this tag.")] = "daily",
    system: Annotated[
        str | None,
        typer.Option(
            "--system", metavar="NAME", help="Run as this system. [default: as ReFrame finds]"
        ),
    ] = None,
    overdue: OverdueOption = 3,
    false_alarms: FalseAlarmsOption = 1,
    page: Annotated[
        Path | None, typer.Option("--report", metavar="DIR", help="Also write the page to DIR.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show ReFrame's output.")
    ] = False,
    extra: Annotated[
        list[str] | None, typer.Argument(metavar="[-- REFRAME_ARGUMENT...]", show_default=False)
    ] = None,
) -> None:
    """Measure: run the checks under a lock, then print the digest.

    What follows -- goes to ReFrame as it is. The exit status is that of `iobands status`, and 3
    when the checks could not be run or fewer ran than were selected.
    """
    found = root or find_root(Path.cwd())
    if found is None or not (found / "config" / "site.py").is_file():
        where = f"{root}: no config/site.py there" if root else "no config/site.py here or above"
        raise failure(f"{where}; run it in the repository, or name the repository with --root")
    found = found.resolve()
    outcome = _measure(found, Selection(tag, system, tuple(extra or ())), verbose)
    survey = survey_of(Site(root=found), overdue=overdue, false_alarms=false_alarms)
    _print(survey)
    if page:
        _write_page(survey, page)
    for problem in outcome.problems:
        typer.echo(f"IOBANDS UNKNOWN: {problem}", err=True)
    raise typer.Exit(worst([survey.exit_status, UNKNOWN if outcome.problems else OK]))


@app.command()
def explain(
    words: SeriesArgument,
    perflogs: PerflogsOption = None,
    bands: BandsOption = None,
    alarms: AlarmsOption = None,
    system: SystemOption = None,
    overdue: OverdueOption = 3,
    adapter: AdapterOption = None,
    false_alarms: FalseAlarmsOption = 1,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", metavar="FILE", help="Also draw it, as .svg or .png."),
    ] = None,
) -> None:
    """Tell why a series is in its state: since when, how sure, what else moved and what did not.

    Of a pool, which series moved together and which did not. The exit status is 0 once it is told;
    3 when SERIES is none or several.
    """
    from iobands.commands.explain import tell  # noqa: PLC0415 (a digest does without)

    if figure and figure.suffix.lower() not in {".svg", ".png"}:
        raise failure(f"{figure}: give --figure a file that ends in .svg or .png")
    site = Site(perflogs, bands, alarms, system, adapter)
    survey = survey_of(site, overdue=overdue, false_alarms=false_alarms, columns=FIELDS)
    tell(survey, " ".join(words), figure)


def _measure(root: Path, selection: Selection, verbose: bool) -> Outcome:
    """Run ReFrame with a line of progress where somebody looks on, or with all that it says."""
    console = Console(stderr=True, highlight=False, markup=False)
    try:
        if verbose:
            return measure(root, selection, show=typer.echo, progress=lambda _: None)
        with console.status("iobands run") as line:  # prints nothing unless on a terminal
            return measure(
                root,
                selection,
                show=lambda _: None,
                progress=lambda text: line.update(Text(f"iobands run: {text}")),
            )
    except RunError as error:
        raise failure(str(error)) from error


def _write_page(survey: Survey, directory: Path) -> None:
    from iobands.reporting.page import write_page  # noqa: PLC0415 (matplotlib takes longer than a digest)

    try:
        typer.echo(f"Page: {write_page(survey, directory).resolve()}")
    except OSError as error:
        raise failure(f"{error.filename or directory}: {error.strerror}") from error


cli_alarms.register(app)
cli_bands.register(app)
cli_compare.register(app)


def entry() -> NoReturn:
    """Run the command and exit.

    A wrong option or an error of our own is "unknown", 3: the usual 2 and 1 would tell a monitor
    that the I/O is degraded.
    """
    try:
        status = app(prog_name="iobands", standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("IOBANDS UNKNOWN: interrupted", err=True)
        status = UNKNOWN
    except Exception as error:
        show = getattr(error, "show", None)  # of a usage error, which click says best itself
        if show:
            show()
        else:
            traceback.print_exc()
        status = UNKNOWN
    sys.exit(status)
