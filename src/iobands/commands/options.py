"""The options of the commands, and what they mean."""

from __future__ import annotations

import getpass
import inspect
import os
import threading
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime
from functools import partial, wraps
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar, get_type_hints

import typer

from iobands.model import UNKNOWN, parse_time, seconds_of

if TYPE_CHECKING:
    from iobands.measure import Listener
    from iobands.source.site_file import SiteFile

_T = TypeVar("_T")

#: The modules that `iobands[report]` installs beyond the core.
REPORT_MODULES: Final = ("jinja2", "matplotlib", "pandas", "scipy", "uplot")


@dataclass(frozen=True)
class SiteOptions:
    """Where the files of a site are and how it is judged; the fields with options are options.

    The default paths are below `root`, or else here or in the site around. `as_of` is a time in the
    past, or None for now. `store` is the URL of a store that is read instead of perflogs.
    """

    perflogs: PerflogsOption = None
    config: ConfigOption = None
    system: SystemOption = None
    false_alarms: FalseAlarmsOption = 1
    as_of: str | None = None
    store: str | None = None
    root: RootOption = None

    @property
    def perflogs_directory(self) -> Path:
        """The directory of the perflogs."""
        return self.perflogs or self._default(Path("perflogs"))

    def config_of(self, name: str) -> Path:
        """Return the path of a part of the configuration, such as `bands`."""
        return self.config / name if self.config else self._default(Path("config") / name)

    def _default(self, path: Path) -> Path:
        return self.root / path if self.root else default_path(path)


@dataclass(frozen=True)
class StoredSiteOptions(SiteOptions):
    """The same for a site that can also be read from a store."""

    store: StoreOption = None


@dataclass(frozen=True)
class PastSiteOptions(StoredSiteOptions):
    """The same for a site that can also be shown as it was in the past."""

    as_of: AsOfOption = None


@dataclass(frozen=True)
class SampleOptions(StoredSiteOptions):
    """The options of those that count for samples alone."""

    config: Path | None = None
    false_alarms: float = 1
    root: Path | None = None


def with_site_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return `command` with a dataclass among its parameters replaced by that class's options."""
    signature = inspect.signature(command, eval_str=True)
    parameters = dict(signature.parameters)
    taken = next((each for each in parameters.values() if is_dataclass(each.annotation)), None)
    if taken is None:
        return command
    options = taken.annotation
    hints = get_type_hints(options, include_extras=True)
    defaults = {
        each.name: inspect.Parameter.empty if each.default is MISSING else each.default
        for each in fields(options)
        if hasattr(hints[each.name], "__metadata__")
    }
    # the command's own before those of every site
    names = sorted(defaults, key=lambda name: name not in options.__annotations__)

    @wraps(command)
    def call(**given: object) -> None:
        site = options(**{name: given.pop(name) for name in names})
        command(**given, **{taken.name: site})

    del parameters[taken.name]
    for name in names:
        parameters[name] = inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=defaults[name],
            annotation=hints[name],
        )
    shown = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters.values()]
    # where inspect, and so typer, looks for it
    call.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    call.__annotations__ = {name: each.annotation for name, each in parameters.items()}
    return call


def site_files(directory: Path) -> Callable[[str], SiteFile]:
    """Return what reads the site files in `directory` by the names of their systems."""
    from iobands.source.site_file import read_site_file  # noqa: PLC0415 (slow to load)

    return partial(read_site_file, directory)


PerflogsOption = Annotated[
    Path | None,
    typer.Option(
        "--perflogs",
        metavar="DIR",
        help="The perflogs. [default: perflogs, here or of the site]",
    ),
]

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="DIR",
        help="The directory with bands, alerts, systems and notify.yaml. "
        "[default: config, here or of the site]",
    ),
]

SystemOption = Annotated[
    str | None, typer.Option("--system", metavar="NAME", help="This system only. [default: all]")
]

AsSystemOption = Annotated[
    str | None,
    typer.Option("--system", metavar="NAME", help="The system. [default: ReFrame detects it]"),
]

TagOption = Annotated[str, typer.Option("--tag", help="Select the checks with this tag.")]


def _not_empty(words: list[str]) -> list[str]:
    if not "".join(words).strip():
        raise failure("SERIES is empty; `iobands status` has the names")
    return words


SeriesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SERIES",
        callback=_not_empty,
        help="The name of a series or an alert in `iobands status`, or some of its words.",
        show_default=False,
    ),
]

ReframeArguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- REFRAME_ARGUMENT...]",
        help="Further arguments for ReFrame, such as -n BenchioSSF.",
        show_default=False,
    ),
]

RootOption = Annotated[
    Path | None,
    typer.Option(
        "--site",
        metavar="DIR",
        help="The site's directory. [default: the one around the working directory]",
    ),
]

FalseAlarmsOption = Annotated[
    float,
    typer.Option(
        "--false-alarms",
        metavar="NUMBER",
        min=0.001,
        max=1e6,
        help="False alarms a year to accept, over all series together.",
    ),
]

StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help="Read this store instead of the site's own files."),
]

ByOption = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Your name. [default: your login name]")
]

VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Show ReFrame's output.")]

NotifyOption = Annotated[
    bool, typer.Option("--notify", help="Also send messages, as config/notify.yaml says.")
]

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")]

DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show the result, and write nothing.")
]

SinceOption = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="A date (UTC), or a time with its offset."),
]

AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="TIME",
        help="Show what was known then, without later runs and actions. [default: now]",
    ),
]


def find_root(start: Path) -> Path | None:
    """Return the nearest directory from `start` upwards that is a site's."""
    here = start.resolve()
    return next((each for each in (here, *here.parents) if is_site(each)), None)


def is_site(directory: Path) -> bool:
    """Whether a directory is a site's: it has a place for site files."""
    return (directory / "config" / "systems").is_dir()


def root_of(given: Path | None) -> Path:
    """Return the site's directory named by `--site`, or the nearest one; end if there is none."""
    found = given or find_root(Path.cwd())
    if found is None or not is_site(found):
        where = f"{given}: no config/systems there" if given else "no config/systems here or above"
        raise failure(
            f"{where}; run it in the directory of a site, give --site DIR, or make one: "
            "iobands init DIR"
        )
    return found.resolve()


def default_path(path: Path) -> Path:
    """Return `path` below the working directory or, if missing, of the site around."""
    root = find_root(Path.cwd())
    return path if root is None or path.exists() else root / path


def failure(message: str) -> typer.Exit:
    """Print `message` and return the exit for unknown, to be raised."""
    typer.echo(f"IOBANDS UNKNOWN: {message}", err=True)
    return typer.Exit(UNKNOWN)


def missing_of_report() -> str | None:
    """Return a module that `iobands[report]` installs and that is not there."""
    return next((name for name in REPORT_MODULES if find_spec(name) is None), None)


def require_report(what: str) -> None:
    """End with a message if what `iobands[report]` installs is not there; `what` needs it."""
    if name := missing_of_report():
        raise failure(f"{what} needs {name}, which is missing: pip install 'iobands[report]'")


def time_of(text: str, option: str = "--since") -> datetime:
    """Return the moment in `text`; a date alone means 00:00 UTC, as in contract 3."""
    try:
        return parse_time(text)
    except ValueError as error:
        raise failure(f"{option} {error}") from None


def system_of(wanted: str | None, perflogs: Path, bands: Path) -> str:
    """Return the chosen system, or end with a message that lists the known ones."""
    ran = [path.name for path in perflogs.glob("*") if path.is_dir()]
    learned = [path.stem for path in bands.glob("*") if path.is_dir() or path.suffix == ".yaml"]
    known = sorted({*ran, *learned})
    # The repository ships bands of other sites as examples.
    meant = [wanted] if wanted else ran or known
    if len(meant) != 1:
        raise failure(f"give --system NAME; known systems: {', '.join(known) or 'none'}")
    if ran and meant[0] not in known:
        raise failure(f"there is no system {wanted}; known systems: {', '.join(known)}")
    return meant[0]


def login_name() -> str:
    """Return the login name, also behind sudo."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):  # the version of Python decides which
        raise failure("your login name is unknown here; give your name with --by") from None


def seconds_option(text: str, option: str = "--limit") -> float:
    """Return the duration in `text`, in seconds."""
    try:
        seconds = seconds_of(text)
    except ValueError as error:
        raise failure(f"{option} {text}: {error}") from None
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise failure(f"{option} {text}: {'too long' if seconds else 'no time at all'}")
    return seconds


def listening(verbose: bool, work: Callable[[Listener], _T], command: str = "iobands run") -> _T:
    """Do `work` with a progress line on a terminal, or with ReFrame's whole output.

    Ends with a message if nothing was measured.
    """
    from rich.console import Console  # noqa: PLC0415 (slow to load)
    from rich.text import Text  # noqa: PLC0415

    from iobands.measure import Listener, SessionError  # noqa: PLC0415 (slow to load)

    console = Console(stderr=True, highlight=False, markup=False)
    try:
        if verbose:
            return work(Listener(line=typer.echo, step=lambda _: None))
        with console.status(command) as status:  # prints nothing unless on a terminal
            listener = Listener(
                line=lambda _: None,
                step=lambda text: status.update(Text(f"{command}: {text}")),
            )
            return work(listener)
    except SessionError as error:
        raise failure(str(error)) from error
