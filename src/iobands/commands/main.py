"""The command `iobands`: its subcommands and exit statuses."""

from __future__ import annotations

import io
import os
import sys
import traceback
from importlib import import_module
from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer
from typer.core import TyperGroup

from iobands import __version__
from iobands.alerts.alert import UNKNOWN
from iobands.commands.site import with_site_options

#: The module below and function of each command, in the order of the help.
COMMANDS: Final = {
    "run": ("session", "run"),
    "cost": ("cost", "cost"),
    "status": ("status", "status"),
    "report": ("report", "report"),
    "explain": ("explain", "explain"),
    "targets": ("targets", "targets"),
    "notify": ("notify", "notify"),
    "schedule": ("schedule", "schedule"),
    "compare": ("compare", "compare"),
    "alerts": ("ledger", "alerts"),
    "acknowledge": ("alerts", "acknowledge"),
    "resolve": ("alerts", "resolve"),
    "rebaseline": ("alerts", "rebaseline"),
    "retire": ("alerts", "retire"),
    "discard": ("alerts", "discard"),
    "undo": ("alerts", "undo"),
    "calibrate": ("bands", "calibrate"),
    "epoch": ("bands", "epoch"),
    "table": ("table", "table"),
    "advise": ("advise", "advise"),
    "export": ("export", "export"),
    "import": ("importing", "import_"),
    "clean": ("clean", "clean"),
    "demo": ("demo", "demo"),
}


class _Commands(TyperGroup):
    """The commands, whose modules are imported when they are called: that takes its time."""

    def __init__(self, **attributes: object) -> None:
        super().__init__(**attributes)
        self.commands = dict.fromkeys(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> object:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, function = COMMANDS[cmd_name]
        command = getattr(import_module(f"iobands.commands.{module}"), function)
        alone = typer.Typer(rich_markup_mode=None, add_completion=False)
        alone.command(cmd_name)(with_site_options(command))
        return typer.main.get_command(alone)


if TYPE_CHECKING:
    from collections.abc import Buffer as ReadableBuffer

app = typer.Typer(
    name="iobands",
    cls=_Commands,
    help=cleandoc(
        """Watch the I/O performance of an HPC site.

    ReFrame checks measure the file systems and leave perflogs. iobands judges each series by its
    quartile band and its own history, and says what needs attention.

    \b
      iobands run        measure now, then print the digest
      iobands cost       say what a run writes and how many node hours it may take
      iobands status     print the digest of what was measured so far
      iobands report     write the dashboard, static files for a browser
      iobands explain    say why a series is in its state
      iobands targets    say which storage target or node is slower than the others
      iobands notify     tell people what has changed, by mail, chat or issues
      iobands schedule   print entries for cron, systemd or scrontab
      iobands compare    give the ratio of series that differ in one field
      iobands clean      remove what killed runs left on the file systems
      iobands alerts     list open and past alerts, and how each ended

    \b
    For the users of the file systems:
      iobands table      print the rates to expect and the settings, or check a page that has them
      iobands advise     say which settings are best, as far as runs support it

    \b
    When an alert comes, each with a reason that is logged:
      iobands acknowledge  you know the cause: it is no longer critical
      iobands resolve      the cause was repaired
      iobands rebaseline   the new level is normal
      iobands retire       a series is not measured any more
      iobands discard      a sample does not count
      iobands undo         take one of these back

    \b
    The bands:
      iobands calibrate  propose bands from the site's own history
      iobands epoch      begin an epoch: what is measured has changed

    \b
    Other tools:
      iobands import     convert their results into perflogs
      iobands export     give them the samples, or the state of the site as metrics

    \b
    A first look, without measuring:
      iobands demo       write a made-up site and its page

    The exit status is that of a monitoring plug-in: 0 all is well, 1 watch, 2 degraded, 3 no data
    (a sample is missing, or nothing could be read). 2 goes before 3, and 3 before 1.
    """
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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


class _Output(io.FileIO):
    """A standard stream whose reader may have gone: the exit status counts, not who reads.

    `failed` is why something could not be written for another reason.
    """

    failed: str | None = None

    def write(self, text: ReadableBuffer) -> int | None:
        try:
            return super().write(text)
        except BrokenPipeError:
            return len(text)
        except OSError as error:
            self.failed = error.strerror
            return len(text)


def _survive_readers() -> None:
    """Go on after `iobands ... | head`, and without the standard streams."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.TextIOWrapper(io.FileIO(os.devnull, "w")))
        elif stream is getattr(sys, f"__{name}__"):
            stream.flush()
            raw = io.BufferedWriter(_Output(stream.fileno(), "w", closefd=False))
            text = io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=True)
            setattr(sys, name, text)


def entry() -> NoReturn:
    """Run the command and exit.

    A wrong option or an error of our own is "unknown", 3: the usual 2 and 1 would tell a monitor
    that the I/O is degraded.
    """
    _survive_readers()
    try:
        status = app(prog_name="iobands", standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("IOBANDS UNKNOWN: interrupted", err=True)
        status = UNKNOWN
    except OSError as error:
        where = error.filename or "the working directory"
        typer.echo(f"IOBANDS UNKNOWN: {where}: {error.strerror}", err=True)
        status = UNKNOWN
    except Exception as error:
        show = getattr(error, "show", None)  # of a usage error, which click explains best itself
        if show:
            show()
        else:
            traceback.print_exc()
        status = UNKNOWN
    sys.stdout.flush()
    if why := getattr(getattr(sys.stdout.buffer, "raw", None), "failed", None):
        typer.echo(f"IOBANDS UNKNOWN: standard output: {why}", err=True)
        status = UNKNOWN
    sys.exit(status)
