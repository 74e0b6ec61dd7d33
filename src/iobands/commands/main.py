"""The program `iobands`: the list of its commands, and how it starts and exits."""

from __future__ import annotations

import gc
import io
import os
import sys
import traceback
from importlib import import_module
from inspect import cleandoc
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperGroup

from iobands.commands import cli
from iobands.model import PLAIN, UNKNOWN, __version__, mask_others

#: By heading of the help: the module, function and summary of each command.
COMMANDS: Final = {
    "Commands": {
        "run": ("run", "run", "measure, then print the digest"),
        "cost": ("cost", "cost", "print the data and node hours that a selection takes at most"),
        "status": ("status", "status", "print the digest: alerts and the state of every series"),
        "report": ("report", "report", "write the dashboard: static files for a browser"),
        "explain": ("status", "explain", "explain the state of a series, or an alert"),
        "targets": ("status", "targets", "find slow storage targets or nodes"),
        "notify": ("session", "notify", "send messages by mail, chat or issue tracker"),
        "schedule": ("cost", "schedule", "print lines for cron, or files for other schedulers"),
        "accept": ("accept", "accept", "measure until the promises of a contract are decided"),
        "compare": ("report", "compare", "print the ratio of series that differ in one field"),
        "clean": ("cost", "clean", "remove what killed runs left on the file systems"),
        "canary": ("canary", "canary", "check this node's file systems, as in a prolog"),
        "alerts": ("status", "alerts", "list open and past alerts, and how each ended"),
    },
    "For the users of the file systems": {
        "table": ("report", "table", "print expected rates and settings, or check a page"),
        "advise": ("report", "advise", "recommend settings that the runs support"),
    },
    "Answers to an alert, logged with a reason": {
        "acknowledge": ("alerts", "acknowledge", "say that the cause of an alert is known"),
        "resolve": ("alerts", "resolve", "say that the cause was repaired"),
        "rebaseline": ("alerts", "rebaseline", "say that the new level is normal"),
        "retire": ("alerts", "retire", "say that a series is no longer measured"),
        "discard": ("alerts", "discard", "leave a sample out of the judgement"),
        "undo": ("alerts", "undo", "withdraw the last of these actions"),
    },
    "The bands": {
        "calibrate": ("alerts", "calibrate", "propose bands from the site's own history"),
        "epoch": ("alerts", "epoch", "begin an epoch, as after an upgrade"),
    },
    "Before and after": {
        "maintenance": ("maintenance", "maintenance", "begin, end or report a maintenance"),
    },
    "Other tools": {
        "import": ("export", "import_", "convert results of other tools into perflogs"),
        "push": ("export", "push", "send new results to a store that many clusters share"),
        "pull": ("export", "pull", "copy a store into a directory"),
        "forget": ("export", "forget", "delete old samples from a store"),
        "export": ("export", "export", "write samples or the state of the site for other tools"),
    },
    "A site's directory": {
        "init": ("doctor", "init", "make the directory of a site, new or from a clone"),
        "reframe": ("doctor", "reframe", "run ReFrame with the site's checks"),
        "doctor": ("doctor", "doctor", "check the installation and the site, and say what to do"),
    },
    "Try it without measuring": {
        "demo": ("session", "demo", "write a made-up site and its dashboard"),
    },
}
_EVERY: Final = {name: row for rows in COMMANDS.values() for name, row in rows.items()}


class _Commands(TyperGroup):
    """The commands; the module of each is imported only when it is called, as imports are slow."""

    def __init__(self, **given: Any) -> None:  # noqa: ANN401
        super().__init__(**given)
        self.commands = dict.fromkeys(_EVERY)  # type: ignore[assignment] # typer suggests their names

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        if cmd_name not in _EVERY:
            return None
        module, function, _ = _EVERY[cmd_name]
        found = getattr(import_module(f"iobands.commands.{module}"), function)
        if not isinstance(found, typer.Typer):
            command, found = found, typer.Typer(rich_markup_mode=None, add_completion=False)
            found.command(cmd_name)(cli.with_options(command))
        return typer.main.get_command(found)

    def format_commands(self, _ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        for heading, rows in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, said) for name, (_, _, said) in rows.items()])

    def invoke(self, ctx: Any) -> object:  # noqa: ANN401
        """Run a command; turn errors that are meant for users into a message and status 3."""
        try:
            return super().invoke(ctx)
        except (ImportError, SyntaxError) as error:  # SyntaxError: a package for another Python
            first = "unset PYTHONPATH, or " if os.environ.get("PYTHONPATH") else ""
            said = f"{error}: half upgraded or damaged; {first}see iobands doctor"
            raise cli.failure(said) from error
        except Exception as error:
            if not cli.is_for_people(error):
                raise
            raise cli.failure(cli.reason_of(error)) from error


app = typer.Typer(
    name="iobands",
    cls=_Commands,
    help=cleandoc(
        """Watch the I/O performance of an HPC site.

    ReFrame checks measure the file systems and append the rates to perflogs. iobands judges each
    series by its quartile band and its own history, and reports what needs attention.

    The exit status follows monitoring plug-ins: 0 all is well, 1 an acknowledged drop, a flaky
    check or a directory left behind, 2 a drop or an incident, 3 no data (a sample is missing, a
    check failed, or nothing could be read). Worst first: 2, 3, 1, 0. Unless its help says
    otherwise, a command ends with 0, or with 3 after an error.
    """
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        cli.show(f"iobands {__version__}")
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
    """A standard stream that ignores a closed pipe, so that the exit status is still the command's.

    `failed` is the reason if a write failed otherwise, as on a full disk.
    """

    failed: str | None = None

    def write(self, text: Any) -> int:  # noqa: ANN401
        try:
            return super().write(text) or 0
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                self.failed = error.strerror
            return len(text)


def _survive_readers() -> None:
    """Make output work after `iobands ... | head`, with closed streams, and in any locale."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.TextIOWrapper(io.FileIO(os.devnull, "w")))
        elif stream is getattr(sys, f"__{name}__"):
            stream.flush()
            raw = io.BufferedWriter(_Output(stream.fileno(), "w", closefd=False))
            stream = io.TextIOWrapper(raw, stream.encoding, line_buffering=True)
            setattr(sys, name, stream)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAIN)


def _hint(error: Any) -> None:  # noqa: ANN401
    """After an unknown option of a command that calls ReFrame, print how to pass it to ReFrame."""
    is_unknown = type(error).__name__ == "NoSuchOption" and not error.possibilities
    if is_unknown and any(each.name == "extra" for each in error.ctx.command.params):
        example = f"iobands {error.ctx.info_name} -- {error.option_name}"
        cli.note(f"options of ReFrame go after --, as in: {example}")


def entry() -> NoReturn:
    """Run the command and exit.

    A wrong option or an internal error gives 3, "unknown": a monitor would take the usual 2 or 1
    for degraded I/O.
    """
    _survive_readers()
    mask_others()
    gc.disable()  # objects of a judgement live until its end: collecting costs 5 %, frees nothing
    try:
        status = app(prog_name="iobands", standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        status = cli.problems(["interrupted"])
    except OSError as error:  # from an option before the command, such as --install-completion
        status = cli.problems([cli.reason_of(error)])
    except Exception as error:
        if show := getattr(error, "show", None):  # a usage error, which click explains
            show()
            _hint(error)
        else:
            traceback.print_exc()
        status = UNKNOWN
    sys.stdout.flush()
    if why := getattr(getattr(sys.stdout.buffer, "raw", None), "failed", None):
        status = cli.problems([f"standard output: {why}"])
    sys.exit(status)
