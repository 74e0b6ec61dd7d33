"""The command that runs a session every night, and its line for cron."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import socket
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

_SETTINGS: Final = ("IOBANDS_ACCOUNT", "IOBANDS_RESERVATION", "IOBANDS_QOS")
#: The programs that a session calls, and that cron's PATH may lack.
_PROGRAMS: Final = ("reframe", "sbatch", "qsub", "bsub", "flux", "mpirun", "srun")
#: The variables that Lmod and Environment Modules set in a shell that has `module`.
MODULES: Final = ("LMOD_CMD", "MODULESHOME")
_USUAL_PATH: Final = ("/usr/local/bin", "/usr/bin", "/bin")
_DAYS: Final = ("Sun", "Mon")
#: The characters that a unit file interprets within double quotes.
_UNIT_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "%": "%%", "$": "$$"})
# Exit statuses 1 and 2 report the state of the site; 3 means that something is missing.
_UNITS: Final = """\
# ~/.config/systemd/user/{name}.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c "{command}"
SuccessExitStatus=1 2
TimeoutStartSec=infinity

# ~/.config/systemd/user/{name}.timer
[Timer]
OnCalendar={calendar}
Persistent=true

[Install]
WantedBy=timers.target
"""


#: How often a session runs.
Every = Literal["hour", "6h", "12h", "day", "week"]
_HOURS: Final[Mapping[Every, int]] = {"6h": 6, "12h": 12, "day": 24, "week": 24}


@dataclass(frozen=True)
class Job:
    """A scheduled command: `arguments` in `root` with `environment`, `at` minutes after midnight.

    With `modules`, it runs in a login shell, which has the command `module`.
    """

    name: str
    root: Path
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    every: Every
    at: int
    modules: bool = False

    def shell(self) -> str:
        """Return the job as a command of a POSIX shell."""
        settings = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        if self.modules:  # keep the login shell's PATH, with the modules that its profile loads
            settings = [f'{each}:"$PATH"' if each[:5] == "PATH=" else each for each in settings]
        command = " ".join([*settings, shlex.join(self.arguments)])
        command = f"cd {shlex.quote(str(self.root))} && {command}"
        return f"bash -lc {shlex.quote(command)}" if self.modules else command

    def _clock(self) -> tuple[int, str, int]:
        """Return the days to add to the weekday, the hours or `*`, and the minute."""
        first, minute = divmod(self.at, 60)
        if self.every == "hour":
            return 0, "*", minute
        hours = sorted((first + n) % 24 for n in range(0, 24, _HOURS[self.every]))
        return first // 24, ",".join(map(str, hours)), minute

    def cron_line(self) -> str:
        """Return the line for `crontab -e`, with `%` escaped, which cron takes for a line break."""
        return f"{self.cron_time()}  {self.shell()}".replace("%", r"\%")

    def cron_time(self) -> str:
        """Return the five fields of a crontab, whose week begins with Sunday, day 0."""
        days, hour, minute = self._clock()
        return f"{minute} {hour} * * {days if self.every == 'week' else '*'}"

    def scron_lines(self) -> str:
        """Return the lines for `scrontab -e`, which run the command in a job of Slurm."""
        account = self.environment.get("IOBANDS_ACCOUNT")
        output = self.root / "perflogs" / f"{self.name}-%j.out"
        options = [f"--account={account}"] if account else []
        options += [f"--job-name={self.name}", "--time=12:00:00", f"--output={output}"]
        options.append("--open-mode=append")  # the job has the same number every night
        lines = [f"#SCRON {shlex.quote(each)}" for each in options]
        return "\n".join([*lines, f"{self.cron_time()}  {self.shell()}"])

    def units(self) -> str:
        """Return the service and the timer for systemd, each below its path."""
        days, hour, minute = self._clock()
        day = f"{_DAYS[days]} " if self.every == "week" else ""
        calendar = f"{day}*-*-* {hour.zfill(2) if hour != '*' else hour}:{minute:02}:00"
        command = self.shell().translate(_UNIT_ESCAPES)
        return _UNITS.format(name=self.name, command=command, calendar=calendar)


def new_job(
    root: Path,
    tag: str | None,
    options: Sequence[str],
    *,
    every: Every,
    clock: tuple[int, int],
    jitter: int,
    account: str | None,
    system: str | None = None,
) -> Job:
    """Return the job that runs the checks with `tag`, at up to `jitter` minutes after `clock`.

    Without a tag, it runs `--suspects`. The delay is derived from host, directory, tag and
    `system`, and so is the same each night. Raises ValueError for a control character, or a program
    that is missing or that others can replace.
    """
    name = f"{tag or 'suspects'} {system or ''}".strip()
    selection = ("--tag", tag) if tag else ("--suspects",)
    arguments = (_program(), "run", *selection, *options)
    settings = {name: os.environ.get(name, "") for name in _SETTINGS}
    settings["IOBANDS_ACCOUNT"] = account or settings["IOBANDS_ACCOUNT"]
    environment = {name: value for name, value in settings.items() if value}
    environment["PATH"] = ":".join(dict.fromkeys([*_program_directories(), *_USUAL_PATH]))
    if not "".join([str(root), *arguments, *environment.values()]).isprintable():
        raise ValueError("a path or an argument has a line break or another control character")
    seed = f"{socket.gethostname()}:{root}:{name}".encode()
    delay = int.from_bytes(hashlib.sha256(seed).digest()[:4], "big") % (jitter + 1)
    job = f"iobands-{re.sub(r'[^A-Za-z0-9]+', '-', name)}"
    modules = any(os.environ.get(name) for name in MODULES)
    at = clock[0] * 60 + clock[1] + delay
    return Job(job, root, arguments, environment, every, at, modules)


def _program() -> str:
    """Return the program iobands: the one beside this Python, else the one on PATH."""
    beside = Path(sys.executable).with_name("iobands")
    found = str(beside) if beside.is_file() else shutil.which("iobands")
    if not found:
        raise ValueError("the program iobands is neither beside Python nor on PATH")
    return found


def _program_directories() -> Iterator[str]:
    """Yield the directories of the programs; ValueError if other users may write to one."""
    every = os.environ.get("PATH", os.defpath).split(":")
    safe = ":".join(each for each in every if is_safe(Path(each)))
    found = {name: shutil.which(name, path=safe) or shutil.which(name) for name in _PROGRAMS}
    for name, program in {"iobands": _program(), **found}.items():
        place = Path(program or "/").parent
        if not is_safe(place):
            raise ValueError(
                f"{name} would be run from {place}, where other users may replace it: it must be "
                "in an absolute path that only you, root and groups can write to"
            )
        if program:
            yield str(place)


def is_safe(directory: Path) -> bool:
    """Whether a directory is absolute, and others can neither write there nor replace it."""
    own = {directory, directory.resolve()}
    try:
        modes = [(e, e.stat().st_mode) for e in own.union(*(each.parents for each in own))]
    except OSError:
        return False
    return directory.is_absolute() and not any(
        mode & stat.S_IWOTH and (each in own or not mode & stat.S_ISVTX) for each, mode in modes
    )
