"""What a site's directory needs for a session: files, compilers, clock, schedule, channels."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import IntEnum
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from iobands.measure import (
    LOG,
    SessionError,
    clock_problem,
    describe,
    lock_path,
    open_to_all,
    read_holder,
    read_last_session,
    refusal,
    require_writable,
    takes_locks,
)
from iobands.model import COMPLETED, UNKNOWN, WARNING, FileError
from iobands.notify.outbox import SendError, read_settings, scrubbed, secret
from iobands.source.perflog import unknown_columns
from iobands.source.site_file import SiteFile, read_site_file
from iobands.views import age_text

_SECONDS: Final = 60  # for each program that is called
_CONNECT_SECONDS: Final = 5
_LEAST_GIB: Final = 1  # free space for perflogs and the dashboard
_GIB: Final = 2**30
_PORTS: Final = {"tls": 465, "starttls": 587}
#: In an entry that measures only what is in doubt, after a session has said what that is.
_SUSPECTS: Final = re.compile(r" --suspects\b|\biobands-suspects\b")
_SCHEDULERS: Final = (
    ("crontab", "-l"),
    ("scrontab", "-l"),
    ("systemctl", "--user", "--no-legend", "list-timers"),
)


class Level(IntEnum):
    """How bad a finding is; the value is the exit status."""

    OK = 0
    WARN = WARNING
    FAIL = UNKNOWN


@dataclass(frozen=True)
class Line:
    """What was looked at, what was found, and what to do about it."""

    what: str
    found: str
    remedy: str = ""
    level: Level = Level.OK


def site_lines(site: Path) -> Iterator[Line]:
    """Yield what is found of the directory of a site."""
    perflogs, systems = site / "perflogs", site / "config" / "systems"
    system, line = _site_file(site)
    yield line
    yield from _perflogs(perflogs, system)
    if system:
        file = read_site_file(systems, system)
        yield from _file_systems(file)
        yield from _compilers(file)
    for name in ("config/alerts", "config/bands"):
        path = next(each for each in (site / name, site / "config") if each.exists())
        if not os.access(path, os.W_OK | os.X_OK):
            remedy = "who acknowledges alerts has to write there"
            yield Line("actions", f"{path}: not writable", remedy, Level.WARN)
    yield _session(perflogs)
    yield _schedule(site)
    yield from _channels(site / "config" / "notify.yaml")


def _site_file(site: Path) -> tuple[str | None, Line]:
    """Return the system that ReFrame selects here, and whether it takes the site file."""
    remedy, fail = "correct config/systems", Level.FAIL
    try:
        described = describe(site, ["-t", "smoke"])
    except (SessionError, OSError, ValueError) as error:
        # which has a line of its own that says what to do
        is_of_reframe = str(error).lower().startswith("reframe ")
        return None, Line("site file", str(error), "" if is_of_reframe else remedy, fail)
    system = next((each["system"] for each in described if each.get("system")), None)
    measuring = sum("gib" in each for each in described)
    found = f"{system}, {measuring} smoke checks"
    if not measuring:
        return system, Line("site file", found, "no file system is measured", fail)
    return system, Line("site file", found)


def _perflogs(perflogs: Path, system: str | None) -> Iterator[Line]:
    if not perflogs.is_dir():
        yield Line("perflogs", f"{perflogs}: the first session makes it")
        return
    try:
        if system:
            require_writable(perflogs, system)
        problem = clock_problem(perflogs)
    except (SessionError, OSError) as error:
        text = str(error if isinstance(error, SessionError) else refusal(error, perflogs))
        yield Line("perflogs", text, level=Level.FAIL)
        return
    newer = unknown_columns(perflogs)
    if newer:
        remedy = "a newer iobands wrote them; the others are read"
        yield Line("columns", f"not known here: {', '.join(newer)}", remedy, Level.WARN)
    for note in open_to_all(perflogs):
        yield Line("perflogs", note, level=Level.WARN)
    free = shutil.disk_usage(perflogs).free / _GIB
    few = (f"keep {_LEAST_GIB} GiB for a year of perflogs", Level.WARN) if free < _LEAST_GIB else ()
    yield Line("perflogs", f"writable, {free:.1f} GiB free", *few)
    if problem:
        remedy = "correct it: timedatectl, chronyc tracking"
        yield Line("clock", problem, remedy, Level.FAIL)
    else:
        yield Line("clock", "agrees with the file system of the perflogs")
    if takes_locks(perflogs):
        yield Line("locks", "files of the perflogs can be locked")
    else:
        text = "the file system of the perflogs takes none; a session needs none"
        yield Line("locks", text, "start ReFrame by iobands alone", Level.WARN)


def _file_systems(file: SiteFile) -> Iterator[Line]:
    """Yield the file systems as this host sees them; compute nodes may have others."""
    for extras in file.partitions.values():
        for name, place in extras.get("filesystems", {}).items():
            path, what = Path(place["path"]), f"file system {name}"
            if not path.is_dir():
                remedy = "make it, or look on a compute node: iobands reframe -- -r -t env"
                yield Line(what, f"{path}: not on this host", remedy, Level.WARN)
                continue
            free, least = shutil.disk_usage(path).free / _GIB, place.get("min_free_gib", 0)
            text, remedy = f"{path}, {free:.1f} GiB free", ""
            if not os.access(path, os.W_OK | os.X_OK):
                text, remedy = f"{path}: not writable", "give the user of the session a directory"
            elif free < least:
                remedy = f"its checks are skipped: min_free_gib is {least}"
            yield Line(what, text, remedy, Level.FAIL if remedy else Level.OK)


def _compilers(file: SiteFile) -> Iterator[Line]:
    """Yield whether each environment has its compiler, in a login shell with its modules."""
    for name, environment in file.environments.items():
        what, compiler = f"environment {name}", environment.get("ftn") or "ftn"
        lines = [f'PATH="$PATH":{shlex.quote(os.environ.get("PATH", ""))}']
        for each in environment.get("modules", ()):
            module = each if isinstance(each, str) else each["name"]
            lines.append(f"module load {shlex.quote(module)} >/dev/null 2>&1")
        lines.append(f"command -v {shlex.quote(compiler)} || echo missing")
        where = said_by("bash", "-lc", "\n".join(lines)).rpartition("\n")[2]
        if where in {"missing", ""}:
            remedy = "install it, or correct ftn and modules of the environment"
            yield Line(what, f"no compiler {compiler}", remedy, Level.FAIL)
        else:
            yield Line(what, where)


def _session(perflogs: Path) -> Line:
    try:
        holder = read_holder(perflogs) if perflogs.is_dir() else None
    except (SessionError, OSError) as error:
        return Line("session", str(error), "remove it if no session runs", Level.WARN)
    if holder:
        if holder.is_over(lock_path(perflogs)):
            return Line("session", f"killed: {holder}", "the next one clears up", Level.WARN)
        return Line("session", f"one runs now: {holder}")
    last = read_last_session(perflogs)
    if last is None:
        return Line("session", "none yet", "measure once by hand: iobands run", Level.WARN)
    ago = age_text(datetime.now(timezone.utc) - last.began)
    text = f"the last one began {ago}: {last.how}"
    if last.how == COMPLETED:
        return Line("session", text)
    return Line("session", f"{text}: {last.reason}", f"see perflogs/{LOG}", Level.WARN)


def _schedule(site: Path) -> Line:
    """Return whether cron, Slurm or systemd starts sessions for this user."""
    for command in _SCHEDULERS:
        for line in said_by(*command).splitlines():
            is_ours = str(site) in line or command[0] != "crontab"
            is_session = "iobands" in line and not _SUSPECTS.search(line)
            if is_session and is_ours and not line.lstrip().startswith("#"):
                return Line("schedule", f"{command[0]}: {' '.join(line.split()[:5])}")
    remedy = "iobands schedule cron prints it; schedules of other users are not seen"
    return Line("schedule", f"none of this user for {site}", remedy, Level.WARN)


def _channels(path: Path) -> Iterator[Line]:
    if not path.exists():
        yield Line("notifications", "none; config/notify.yaml would name them")
        return
    try:
        settings = read_settings(path)
    except FileError as error:
        yield Line("notifications", str(error), "correct it", Level.FAIL)
        return
    options = {each.name: each.options for each in (*settings.channels, *settings.monitors)}
    if settings.ping:
        options["ping"] = {"url": settings.ping}
    for name, each in options.items():
        try:
            yield Line(f"channel {name}", scrubbed(_reached(each)))
        except SendError as error:
            remedy = "then try: iobands notify --test"
            yield Line(f"channel {name}", scrubbed(str(error)), remedy, Level.FAIL)


def _reached(options: Mapping[str, Any]) -> str:
    """Return where a channel leads, once its secrets are there and its server answers.

    Raises:
        SendError: a secret or a program is missing, or nothing answers.
    """
    for value in options.values():
        if isinstance(value, dict) and value.keys() & {"env", "file"}:
            secret(value)
    if program := options.get("sendmail") or next(iter(options.get("command", ())), None):
        if not shutil.which(program):
            raise SendError(f"{program}: no such program")
        return str(program)
    if "url" in options:
        parts = urlsplit(secret(options["url"]))
        host, port = parts.hostname or "", parts.port or {"http": 80}.get(parts.scheme, 443)
    else:
        usual = _PORTS.get(options.get("security", ""), 25)
        host, port = options.get("server", "localhost"), options.get("port", usual)
    try:
        socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        raise SendError(f"{host}, port {port}: {error.strerror or error}") from None
    return f"{host}, port {port}, answers"


def said_by(*command: str) -> str:
    """Return what a program prints; nothing if it is missing or hangs."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""
