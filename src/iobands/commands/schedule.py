"""The command `iobands schedule`: entries for cron, systemd and Slurm that run it every night."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import socket
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Final

import typer

from iobands.commands.options import AsSystemOption, RootOption, TagOption, failure, root_of

_SETTINGS: Final = ("IOBANDS_ACCOUNT", "IOBANDS_RESERVATION", "IOBANDS_QOS")
#: What a session calls; cron's own PATH may lack it.
_PROGRAMS: Final = ("reframe", "sbatch", "qsub", "bsub", "flux", "mpirun", "srun")
#: What the modules systems Lmod and Environment Modules set in a shell that has `module`.
_MODULES: Final = ("LMOD_CMD", "MODULESHOME")
_USUAL_PATH: Final = ("/usr/local/bin", "/usr/bin", "/bin")
_SUNDAY: Final = 0
_UNITS: Final = Path(__file__).with_name("systemd.txt")


class Form(str, Enum):
    """What runs it."""

    CRON = "cron"
    SYSTEMD = "systemd"
    SLURM = "slurm"


class Every(str, Enum):
    """How often it runs."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"


@dataclass(frozen=True)
class Job:
    """What runs when: `arguments` in `root` with `environment`, at `hour` and `minute`.

    `jitter` is in minutes, and `offset` a part of it that is the same at each run. A job with
    `modules` needs the command `module`, which a login shell has.
    """

    name: str
    root: Path
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    every: Every
    hour: int
    minute: int
    jitter: int
    offset: int
    modules: bool = False

    def shell(self) -> str:
        """Return it as a command of a POSIX shell."""
        settings = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        if self.modules:  # which the profile put on PATH as well
            settings = [f'{each}:"$PATH"' if each[:5] == "PATH=" else each for each in settings]
        command = f"{' '.join(settings)} {shlex.join(self.arguments)}"
        command = f"cd {shlex.quote(str(self.root))} && {command}"
        return f"bash -lc {shlex.quote(command)}" if self.modules else command

    def cron_time(self) -> str:
        """Return the five fields of a crontab."""
        days, at = divmod(self.hour * 60 + self.minute + self.offset, 24 * 60)
        hour = "*" if self.every is Every.HOUR else str(at // 60)
        day = str(_SUNDAY + days) if self.every is Every.WEEK else "*"
        return f"{at % 60} {hour} * * {day}"


def schedule(
    form: Annotated[Form, typer.Argument(help="What runs it.", show_default=False)],
    tag: TagOption = "daily",
    every: Annotated[
        Every | None,
        typer.Option("--every", help="How often. [default: week for weekly, else day]"),
    ] = None,
    at: Annotated[str, typer.Option("--at", metavar="HH:MM", help="When, local time.")] = "05:00",
    jitter: Annotated[
        int,
        typer.Option("--jitter", metavar="MINUTES", min=0, max=720, help="Up to so much later."),
    ] = 30,
    system: AsSystemOption = None,
    dashboard: Annotated[
        str, typer.Option("--report", metavar="DIR", help="Where the dashboard is written.")
    ] = "dashboard",
    notify: Annotated[
        bool, typer.Option("--notify", help="Also tell people, as config/notify.yaml says.")
    ] = False,
    account: Annotated[
        str | None, typer.Option("--account", help="[default: IOBANDS_ACCOUNT]")
    ] = None,
    root: RootOption = None,
) -> None:
    """Print the entries for cron, systemd or scrontab that run `iobands run` regularly.

    The jitter keeps sites and tags apart: with cron and Slurm it is a minute of their own, derived
    from host, directory and tag; with systemd a delay. The environment has the account, and a PATH
    with what a session calls. Where this shell has the command `module`, a login shell of bash runs
    it, as jobs get the command from there.
    """
    place = root_of(root)
    clock = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", at)
    if clock is None:
        raise failure(f"--at {at}: not a time of day; write 05:00")
    arguments = [_program(), "run", "--tag", tag, "--report", dashboard]
    arguments += ["--system", system] if system else []
    arguments += ["--notify"] if notify else []
    seed = f"{socket.gethostname()}:{place}:{tag}".encode()
    job = Job(
        name=f"iobands-{re.sub(r'[^A-Za-z0-9]+', '-', tag)}",
        root=place,
        arguments=tuple(arguments),
        environment=_environment(account),
        every=every or (Every.WEEK if tag == "weekly" else Every.DAY),
        hour=int(clock[1]),
        minute=int(clock[2]),
        jitter=jitter,
        offset=int.from_bytes(hashlib.sha256(seed).digest()[:4], "big") % (jitter + 1),
        modules=any(os.environ.get(name) for name in _MODULES),
    )
    every_text = [str(place), *job.arguments, *job.environment.values()]
    if any(not text.isprintable() for text in every_text):
        raise failure("a path or an argument has a line break or another control character")
    texts = {Form.CRON: as_cron, Form.SYSTEMD: as_systemd, Form.SLURM: as_slurm}
    typer.echo(texts[form](job), nl=False)


def as_cron(job: Job) -> str:
    """Return a line for `crontab -e`, in which a percent sign would be a line break."""
    command = job.shell().replace("%", r"\%")
    return f"# {job.name}: for `crontab -e`\n{job.cron_time()}  {command}\n"


def as_slurm(job: Job) -> str:
    """Return lines for `scrontab -e`."""
    account = job.environment.get("IOBANDS_ACCOUNT")
    lines = [
        f"# {job.name}: for `scrontab -e`; it runs in a job, from which others are submitted",
        *([f"#SCRON --account={account}"] if account else []),
        f"#SCRON --job-name={job.name}",
        "#SCRON --time=12:00:00",
        f"#SCRON --output={str(job.root).replace('%', '%%')}/perflogs/{job.name}-%j.out",
        f"{job.cron_time()}  {job.shell()}",
    ]
    return "\n".join(lines) + "\n"


def as_systemd(job: Job) -> str:
    """Return a service and a timer, each behind the name of its file."""
    day = {Every.HOUR: "*-*-* *", Every.DAY: "*-*-* {:02}", Every.WEEK: "Sun *-*-* {:02}"}
    when = f"{day[job.every].format(job.hour)}:{job.minute:02}:00"
    # by a shell: systemd takes no quotation marks in the path of a program
    command = f"/bin/sh -c {_word(job.shell().replace('$', '$$'))}"
    return _UNITS.read_text().format(name=job.name, when=when, jitter=job.jitter, command=command)


def _program() -> str:
    """Return the program iobands: the one beside this Python, else the one on PATH."""
    beside = Path(sys.executable).with_name("iobands")
    found = str(beside) if beside.is_file() else shutil.which("iobands")
    if not found:
        raise failure("the program iobands is neither beside Python nor on PATH")
    return found


def _environment(account: str | None) -> dict[str, str]:
    """Return the account and the like, and a PATH that has what a session calls."""
    found = {name: os.environ[name] for name in _SETTINGS if os.environ.get(name)}
    if account:
        found["IOBANDS_ACCOUNT"] = account
    found["PATH"] = ":".join(dict.fromkeys([*_places(), *_USUAL_PATH]))
    return found


def _places() -> Iterator[str]:
    """Yield the directories of the programs; others who can write there would run as this user."""
    every = os.environ.get("PATH", os.defpath).split(":")
    safe = ":".join(each for each in every if _is_safe(Path(each)))
    found = {name: shutil.which(name, path=safe) or shutil.which(name) for name in _PROGRAMS}
    for name, program in {"iobands": _program(), **found}.items():
        place = Path(program or "/").parent
        if not _is_safe(place):
            raise failure(
                f"{name} would be run from {place}, where others may put another one: it must be "
                "an absolute path that only you, root and groups can write to"
            )
        if program:
            yield str(place)


def _is_safe(directory: Path) -> bool:
    """Return whether a directory is absolute, and others can neither write there nor replace it."""
    own = {directory, directory.resolve()}
    try:
        modes = [(e, e.stat().st_mode) for e in own.union(*(each.parents for each in own))]
    except OSError:
        return False
    return directory.is_absolute() and not any(
        mode & stat.S_IWOTH and (each in own or not mode & stat.S_ISVTX) for each, mode in modes
    )


def _word(text: str) -> str:
    """Return a word in systemd's quotes."""
    escaped = text.replace("%", "%%").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
