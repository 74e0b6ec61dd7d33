"""What the commands share: options, their interpretation, output, and how a command fails."""

from __future__ import annotations

import getpass
import inspect
import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cache, partial, wraps
from importlib.util import find_spec
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, get_args, get_type_hints

import typer

from iobands.model import (
    OK,
    UNKNOWN,
    entries,
    naming,
    parse_time,
    printable,
    replace_file,
    resolved,
    seconds_of,
)

if TYPE_CHECKING:
    from rich.status import Status

    from iobands.measure import Workplace
    from iobands.source.site_file import SiteFile

_T = TypeVar("_T")
#: By parameter: its flag or metavar if the command line has it, else None.
_given: dict[str, str | None] = {}

#: The modules that `iobands[report]` installs beyond the core.
REPORT_MODULES: Final = ("jinja2", "matplotlib", "pandas", "scipy", "uplot")


def option(names: str, text: str, min: float | None = None, max: float | None = None) -> object:
    """Return an option for Annotated; `names` are its flags and metavar, as in `--by NAME`."""
    flags = [each for each in names.split() if each.startswith("-")]
    metavar = names.split()[len(flags) :]
    return typer.Option(*flags, metavar=" ".join(metavar) or None, help=text, min=min, max=max)


def span(flag: str, text: str, unit: str, min: float = 0, max: float = 1_000_000) -> object:
    """Return an option that takes a number of `unit`, such as days, or a duration such as 36h."""

    def parsed(given: object) -> float:
        try:
            value = float(str(given))
        except ValueError:
            try:
                value = seconds_of(str(given)) / seconds_of(f"1{unit[0]}")
            except ValueError as error:
                raise typer.BadParameter(f"{given} is {error}") from None
        if value < min or value > max:
            raise typer.BadParameter(f"{given}: write {min} to {max} {unit}")
        return value

    return typer.Option(flag, metavar="TIME", help=text, parser=parsed)


def argument(name: str, text: str) -> object:
    """Return an argument for Annotated; `name` is its metavar, `text` its help."""
    return typer.Argument(metavar=name, help=text)


_SERIES: Final = (
    "The number of an alert, or words of the name of an alert or a series, as in `iobands status`."
)
_CONFIG: Final = (
    "The directory with bands, alerts, systems and notify.yaml. [default: config here, else in the "
    "site's directory]"
)
_ROOT: Final = "The site's directory. [default: the one around the working directory]"
_AS_OF: Final = (
    "Show what was known at TIME, without later runs and actions. TIME is a date (the end of that "
    "day), a time (UTC unless it has an offset) or an age such as 7d. [default: now]"
)
_ALARMS: Final = "The false alarms a year to accept, for all series of a system together."

SeriesArgument = Annotated[list[str], argument("SERIES", _SERIES)]
ReframeArguments = Annotated[
    list[str] | None,
    argument("[-- REFRAME_ARGUMENT...]", "Further arguments for ReFrame, such as -n BenchioSSF."),
]
PerflogsOption = Annotated[
    Path | None, "DIR", "The perflogs. [default: perflogs here, else in the site's directory]"
]
RootOption = Annotated[Path | None, option("--site DIR", _ROOT)]
SystemOption = Annotated[str | None, "NAME", "This system only. [default: all]"]
OneSystemOption = Annotated[str | None, "NAME", "The system. [default: the only one that ran]"]
AsSystemOption = Annotated[str | None, "NAME", "The system. [default: ReFrame detects it]"]
TagOption = Annotated[str, "TAG", "Select the checks with this tag."]
FalseAlarmsOption = Annotated[float, option("--false-alarms NUMBER", _ALARMS, 0.001, 1_000_000)]
ByOption = Annotated[str | None, "NAME", "Your name. [default: your login name]"]
VerboseOption = Annotated[bool, option("--verbose -v", "Show ReFrame's output.")]
NotifyOption = Annotated[bool, "Also send messages, as config/notify.yaml says."]
YesOption = Annotated[bool, option("--yes -y", "Write without asking.")]
DryRunOption = Annotated[bool, "Show what the command would do, and do nothing."]
#: The format of times, for help texts.
WHEN: Final = "a date (UTC), or a time with its offset"


@dataclass(frozen=True)
class SiteOptions:
    """Where the files of a site are and how it is judged; the annotated fields are options.

    Default paths are below `root`; without it, here if they exist, else in the site around.
    `as_of` is a past time, None for now. `store` is the URL of a store to read instead of perflogs.
    """

    perflogs: PerflogsOption = None
    config: Annotated[Path | None, "DIR", _CONFIG] = None
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
        if self.root is not None:
            root_of(self.root)  # exits if it is no site
            return self.root / path
        around = None if path.exists() else find_root(Path.cwd())
        return around / path if around else path


@dataclass(frozen=True)
class StoredSiteOptions(SiteOptions):
    """`SiteOptions` with --store."""

    store: Annotated[str | None, "URL", "Read this store instead of the site's own files."] = None


@dataclass(frozen=True)
class PastSiteOptions(StoredSiteOptions):
    """`StoredSiteOptions` with --as-of."""

    as_of: Annotated[str | None, "TIME", _AS_OF] = None


@dataclass(frozen=True)
class UnjudgedOptions(SiteOptions):
    """The options of commands that judge nothing and act on one system."""

    system: OneSystemOption = None
    false_alarms: float = 1


@dataclass(frozen=True)
class SampleOptions(StoredSiteOptions):
    """The options of commands that read only samples."""

    config: Path | None = None
    false_alarms: float = 1


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return `command` with a signature that typer understands.

    A parameter `name: Annotated[type, "VALUE", "help"]`, or `name_`, becomes the option --name; a
    switch has no "VALUE". The parameter `options` becomes the annotated fields of its class.
    """
    parameters = dict(inspect.signature(command, eval_str=True).parameters)
    names: list[str] = []
    kind: Any = None
    if "options" in parameters:
        kind = parameters.pop("options").annotation
        hints, fields = get_type_hints(kind, include_extras=True), inspect.signature(kind)
        names = [name for name in fields.parameters if hasattr(hints[name], "__metadata__")]
        # first the options that the command's own class adds, then the inherited ones
        names.sort(key=lambda name: name not in kind.__annotations__)
        for name in names:
            parameters[name] = fields.parameters[name].replace(annotation=hints[name])
    only = inspect.Parameter.KEYWORD_ONLY
    shown = [
        inspect.Parameter("context", only, annotation=typer.Context),
        *(each.replace(kind=only, annotation=_declared(each)) for each in parameters.values()),
    ]

    @wraps(command)
    def call(context: typer.Context, **given: object) -> None:
        _given.clear()
        for each in context.command.params:
            source = context.get_parameter_source(str(each.name))
            word = each.opts[0] if each.param_type_name == "option" else str(each.metavar)
            is_given = source is not None and source.name == "COMMANDLINE"
            # click before 8.3 also says so of a list of arguments that is absent
            is_given = is_given and given.get(str(each.name)) not in (None, [])
            _given[str(each.name)] = word if is_given else None
            if is_given:
                _refuse_odd(word, given.get(str(each.name)))
        if "store" in names and given["store"]:
            # these two take paths and recommended settings from site files, which no store has
            has_files = command.__name__ in {"report", "table"}
            own = {"perflogs"} if has_files else {"perflogs", "config", "root"}
            refuse("with --store", *(name for name in names if name in own))
        if kind:
            given["options"] = kind(**{name: given.pop(name) for name in names})
        command(**given)

    # typer reads the signature by `inspect`, which looks here first
    call.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in shown}
    return call


def _refuse_odd(word: str, value: object) -> None:
    """Exit with a message if a value is empty, not text in this locale, or not a number."""
    text = "".join(value) if value and isinstance(value, list) else value
    if isinstance(text, str):
        if not text.strip():  # a shell variable that is not set
            remedy = "`iobands status` has the names" if word == "SERIES" else "give a value"
            raise failure(f"{word} is empty; {remedy}")
        try:
            text.encode()
        except UnicodeEncodeError:
            problem = "has bytes that are not valid in this locale; check LANG and LC_ALL"
            raise failure(f"{word} {problem}") from None
    if isinstance(value, float) and isnan(value):  # passes every check of a range
        raise failure(f"{word} is not a number; give one")


def _declared(parameter: inspect.Parameter) -> object:
    """Return the annotation of a parameter, with the texts replaced by an option of typer."""
    *value, text = parameter.annotation.__metadata__
    kind, info = parameter.annotation.__origin__, text
    if isinstance(text, str):
        name = parameter.name.strip("_").replace("_", "-")
        info = option(" ".join([f"--{name}", *value]), text)
    if Path in (kind, *get_args(kind)):
        info.parser = _path
    return Annotated[kind, info]


def _path(text: str | Path) -> Path:
    """Return `text` as a path; exit if it is empty, as that would be the working directory."""
    if not str(text).strip():
        raise failure("a path is empty; give a value")
    return Path(text)


def site_files(directory: Path) -> Callable[[str], SiteFile]:
    """Return a function that reads the site file of a system in `directory` once.

    A site file may take seconds, as if a disk that it names does not answer.
    """
    from iobands.source.site_file import read_site_file  # noqa: PLC0415 (slow to load)

    return cache(partial(read_site_file, directory))


def find_root(start: Path) -> Path | None:
    """Return the nearest site's directory, from `start` upwards."""
    here = start.resolve()
    return next((each for each in (here, *here.parents) if is_site(each)), None)


def is_site(directory: Path) -> bool:
    """Whether a directory is a site's, that is, has config/systems."""
    return (directory / "config" / "systems").is_dir()


def root_of(given: Path | None) -> Path:
    """Return the site's directory `given` by --site, or the nearest one; exit without one."""
    found = given or find_root(Path.cwd())
    if found is None or not is_site(found):
        where = f"{given}: no config/systems there" if given else "no config/systems here or above"
        raise failure(
            f"{where}; run it in the directory of a site, give --site DIR, or make one: "
            "iobands init DIR"
        )
    return found.resolve()


def is_within_site(path: Path, *own: Path) -> bool:
    """Whether a path is a site's directory, or within its perflogs, its configuration or `own`."""
    here = resolved(path)
    if root := find_root(here):
        own += (root / "perflogs", root / "config")
    return here == root or any(here.is_relative_to(each.resolve()) for each in own)


def refuse_mixing(directory: Path, perflogs: Path) -> None:
    """Exit with a message if pages in `directory` would mix with the files of a site."""
    if is_within_site(directory, perflogs):
        raise failure(f"{directory}: has files of a site; name another directory for the pages")


def refuse(where: str, *names: str) -> None:
    """Exit with a message if one of these parameters was given; `where` it has no effect.

    Raises:
        KeyError: the command has no such parameter.
    """
    for given in [_given[name] for name in names]:
        if given:
            raise failure(f"{given} has no effect {where}")


def say(*lines: str) -> None:
    """Print lines without control characters, folded to the terminal, or to a mail's width."""
    from iobands.views.writing import fitted  # noqa: PLC0415 (slow to load)

    typer.echo(fitted(lines), nl=False)


def show(document: str) -> None:
    """Print a document as it is, without folding its lines."""
    typer.echo(document, nl=not document.endswith("\n") and bool(document))


def write_file(path: Path, content: bytes, mode: int | None = None) -> None:
    """Replace the file that an option names; if it is a device or pipe, write to it.

    A new file gets `mode`, or what the umask allows.
    """
    # not replaced either: /dev/stdout, which may be a link to a file
    if path.exists() and (not path.is_file() or path.parent == Path("/dev")):
        with naming(path):
            path.write_bytes(content)
    else:
        replace_file(path, content, mode=mode)


def note(text: str) -> None:
    """Print a remark to standard error."""
    _complain(f"iobands: {text}")


def problems(found: Iterable[str]) -> int:
    """Print the problems, and return the exit status: unknown, or OK if there are none."""
    status = OK
    for problem in found:
        _complain(f"IOBANDS UNKNOWN: {problem}")
        status = UNKNOWN
    return status


def _complain(text: str) -> None:
    """Print a message to standard error without control characters; further lines are indented."""
    typer.echo("\n  ".join(map(printable, text.split("\n  "))), err=True)


def failure(message: str) -> typer.Exit:
    """Print `message`, and return the exception to raise for the exit status unknown."""
    return typer.Exit(problems([message]))


def reason_of(error: Exception, more: str = "") -> str:
    """Return an error's message; for a bug of iobands, also its type and `more`."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'the working directory'}: {error.strerror}"
    return str(error) if is_for_people(error) else f"{type(error).__name__}: {error}{more}"


def is_for_people(error: Exception) -> bool:
    """Whether an error is the system's, or iobands' own: then its message is meant for users."""
    is_loop = str(error).startswith("Symlink loop from ")  # Path.resolve until Python 3.12
    return isinstance(error, OSError) or is_loop or type(error).__module__.startswith("iobands.")


def missing_of_report() -> str | None:
    """Return a missing module of those that `iobands[report]` installs, or None."""
    return next((name for name in REPORT_MODULES if find_spec(name) is None), None)


def require_report(what: str) -> None:
    """Exit with a message if a module of `iobands[report]` is missing, which `what` needs."""
    if name := missing_of_report():
        raise failure(f"{what} needs {name}, which is missing: pip install 'iobands[report]'")


def time_of(text: str, option: str = "--since", others: str = "") -> datetime:
    """Return the moment in `text`, or exit; a date alone means 00:00 UTC, as in contract 3.

    `others` ends the error message: further formats that the option accepts.
    """
    try:
        return parse_time(text).astimezone(timezone.utc)
    except ValueError as error:
        raise failure(f"{option} {error}{others}") from None


def past_time(text: str) -> datetime:
    """Return the moment that the value of --as-of means, or exit with a message."""
    now, said = datetime.now(timezone.utc).replace(microsecond=0), text.strip()
    with suppress(ValueError, OverflowError):
        return now - timedelta(seconds=seconds_of(said))
    try:
        when = parse_time(f"{said}Z")  # a time without an offset is UTC
    except ValueError:
        when = time_of(said, "--as-of", "; or an age, such as 7d")
    if when.replace(microsecond=0) > now:
        raise failure(f"--as-of {text}: in the future; nothing is known then")
    is_date = len(said) == len("2023-10-09")
    return min(when + timedelta(days=1, seconds=-1), now) if is_date else when


def system_of(options: SiteOptions) -> str:
    """Return the chosen or only system, or exit with a message that lists the known ones."""
    wanted, perflogs, bands = options.system, options.perflogs_directory, options.config_of("bands")
    # a file server may show a `.snapshot` anywhere
    there = (path for path in entries(perflogs, []) if path.is_dir())
    ran = [path.name for path in there if not path.name.startswith(".")]
    learned = [path.stem for path in bands.glob("[!.]*") if path.is_dir() or path.suffix == ".yaml"]
    described = [path.stem for path in (bands.parent / "systems").glob("[!._]*.py")]
    known = sorted({*ran, *learned, *described})
    # in a clone, `known` includes example bands and site files of other sites
    meant = [wanted] if wanted else ran or known
    if len(meant) == 1 and meant[0] in known:
        return meant[0]
    names = ", ".join(known) or "none; run it in the directory of a site"
    said = f"there is no system {wanted}" if wanted else "give --system NAME"
    raise failure(f"{said}; known systems: {names}")


def login_name() -> str:
    """Return the login name, under sudo the caller's; exit if it is unknown."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):  # KeyError before Python 3.13
        raise failure("your login name is unknown here; give your name with --by") from None


def seconds_option(text: str, option: str = "--limit") -> float:
    """Return the duration in `text` in seconds, or exit with a message."""
    try:
        seconds = seconds_of(text)
    except ValueError as error:
        raise failure(f"{option} {text}: {error}") from None
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise failure(f"{option} {text}: {'too long' if seconds else 'must be longer than 0'}")
    return seconds


def working(what: str) -> Status:
    """Show a progress line as long as the result is open, on a terminal only."""
    from rich.console import Console  # noqa: PLC0415 (slow to load)

    return Console(stderr=True, highlight=False, markup=False).status(what)


def at_work(
    root: Path, verbose: bool, work: Callable[[Workplace], _T], command: str = "iobands run"
) -> _T:
    """Do `work` at a site; show a progress line on a terminal, or if `verbose` ReFrame's output."""
    from rich.text import Text  # noqa: PLC0415 (slow to load)

    from iobands.measure import Workplace  # noqa: PLC0415 (slow to load)

    read = site_files(root / "config" / "systems")
    if verbose:
        return work(Workplace(root, read, line=typer.echo))
    with working(command) as status:
        return work(
            Workplace(root, read, step=lambda said: status.update(Text(f"{command}: {said}")))
        )
