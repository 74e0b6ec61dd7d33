"""Checks of a site's directory for `iobands doctor`: can a session run, is it scheduled?"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import IntEnum
from errno import ETIMEDOUT
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from iobands import measure
from iobands.bands import load_bands
from iobands.model import (
    COMPLETED,
    UNKNOWN,
    WARNING,
    FileError,
    Rejected,
    SessionError,
    in_time,
    resolved,
)
from iobands.notify.outbox import PORTS, TRACKERS, SendError, read_settings, scrubbed, secret
from iobands.source import store as stores
from iobands.source.known import maintenance_of
from iobands.source.perflog import unknown_columns
from iobands.source.push import late, read_pushed
from iobands.source.site_file import SiteFile, read_site_file
from iobands.views.writing import age_text, plural

_CONNECT_SECONDS: Final = 5
_SERVER_SECONDS: Final = 20
_FILE_SYSTEM_SECONDS: Final = 10
_LEAST_GIB: Final = 1  # free space for perflogs and the dashboard
_GIB: Final = 2**30
#: Marks the hourly entry of a schedule, which alone never starts a session.
_SUSPECTS: Final = re.compile(r" --suspects\b|\biobands-suspects\b")
_CALLED: Final = re.compile(r"\biobands ([a-z]+)")
_PATH: Final = re.compile(r"(?<![\w./-])/[^\s'\";&|:]+")
_SCHEDULERS: Final = (
    ("crontab", "-l"),
    ("scrontab", "-l"),
    ("systemctl", "--user", "--no-legend", "--full", "list-timers"),
)


class Level(IntEnum):
    """How bad a finding is; the value is the exit status."""

    OK = 0
    WARN = WARNING
    FAIL = UNKNOWN


@dataclass(frozen=True)
class Line:
    """A line of the output: what was checked, what was found, and what to do about it."""

    what: str
    found: str
    remedy: str = ""
    level: Level = Level.OK


warned: Final = partial(Line, level=Level.WARN)
failed: Final = partial(Line, level=Level.FAIL)


def site_lines(site: Path) -> Iterator[Line]:
    """Check a site's directory, and yield a line for each finding."""
    perflogs, config, system = site / "perflogs", site / "config", None
    try:  # find out which system ReFrame selects here, and whether it accepts the site file
        described = measure.describe(site, ["-t", "smoke"])
        system = next((each["system"] for each in described if each.get("system")), None)
        measuring = sum("gib" in each for each in described)
        found = f"{system}, {plural(measuring, 'smoke check')}"
        no = "no file system is measured"
        yield Line("site file", found) if measuring else failed("site file", found, no)
    except (SessionError, OSError, ValueError) as error:
        said = str(error).replace("give --system NAME", "set RFM_SYSTEM=NAME")
        if said.lower().startswith("reframe "):  # the doctor's line about ReFrame says what to do
            yield failed("site file", said)
        else:
            found, _, remedy = said.partition("; ")
            if "did not end" in found:  # the template `local` once looked at its disk
                remedy += f"; its template may have changed: iobands init {site} --check"
            yield failed("site file", found, remedy or "correct config/systems")
    yield from _perflogs(perflogs, system)
    builds = site / "builds"  # people open it by chmod -R to let others read the site
    if builds.is_dir() and builds.stat().st_mode & 0o077:
        said = f"{builds}: others can enter it, so no build in it is used"
        yield warned("builds", said, f"every session builds, no canary runs: chmod 700 {builds}")
    if system:
        file = read_site_file(config / "systems", system)
        yield from dict.fromkeys(_file_systems(file))  # partitions mostly have the same ones
        yield from _compilers(file)
        remedy = "correct it: every check fails until it can be read"
        try:
            bands = load_bands(config / "bands", system)
            remedy = "correct it: its maintenances do not count"
            maintenance_of(bands, datetime.now(timezone.utc))
        except (FileError, OSError) as error:
            yield failed("bands", str(error), remedy)
    yield _session(perflogs)
    yield _schedule(site)
    yield from _password(config / "store.yaml")
    yield _store(perflogs, config / "store.yaml")
    yield from _channels(config / "notify.yaml")


def _perflogs(perflogs: Path, system: str | None) -> Iterator[Line]:
    if not perflogs.is_dir():
        yield Line("perflogs", f"{perflogs}: the first session makes it")
        return
    try:
        if system:
            measure.require_writable(perflogs, system)
        problem = measure.clock_problem(perflogs)
    except (SessionError, OSError) as error:
        said = measure.refusal(error, perflogs) if isinstance(error, OSError) else error
        yield failed("perflogs", str(said))
        return
    if newer := unknown_columns(perflogs):
        remedy = "a newer iobands wrote them; all others are read"
        yield warned("columns", f"not known here: {', '.join(newer)}", remedy)
    for note in measure.open_to_all(perflogs):
        yield warned("perflogs", note)
    free = shutil.disk_usage(perflogs).free / _GIB
    text = f"writable, {free:.1f} GiB free"
    if free < _LEAST_GIB:
        yield warned("perflogs", text, f"keep {_LEAST_GIB} GiB for a year of perflogs")
    else:
        yield Line("perflogs", text)
    if problem:
        yield failed("clock", problem, "correct it: timedatectl, chronyc tracking")
    else:
        yield Line("clock", "agrees with the file system of the perflogs")
    if measure.takes_locks(perflogs):
        yield Line("locks", "files of the perflogs can be locked")
    else:
        text = "the file system of the perflogs has no file locks; a session works without them"
        yield warned("locks", text, "start ReFrame only by `iobands run` or `iobands reframe`")


def _file_systems(file: SiteFile) -> Iterator[Line]:
    """Check the file systems as this host sees them; compute nodes may have others."""
    late = TimeoutError(ETIMEDOUT, f"no answer within {_FILE_SYSTEM_SECONDS} s")
    for extras in file.partitions.values():
        for name, place in extras.get("filesystems", {}).items():
            what = f"file system {name}"
            try:
                line = in_time(_FILE_SYSTEM_SECONDS, partial(_file_system, what, place), late)
            except OSError as error:
                line = failed(what, f"{place['path']}: {error.strerror}", "check its servers")
            yield line


def _file_system(what: str, place: Mapping[str, Any]) -> Line:
    path = Path(place["path"])
    if not path.is_dir():
        remedy = "make it, or look on a compute node: iobands reframe -- -r -t env"
        return warned(what, f"{path}: not on this host", remedy)
    free, least = shutil.disk_usage(path).free / _GIB, place.get("min_free_gib", 0)
    text = f"{path}, {free:.1f} GiB free"
    if not os.access(path, os.W_OK | os.X_OK):
        remedy = "name a directory that the user of the session can write to"
        return failed(what, f"{path}: not writable", remedy)
    if free < least:
        return failed(what, text, f"its checks are skipped: min_free_gib is {least}")
    is_root = path.stat().st_dev == Path("/").stat().st_dev
    if is_root and place["type"] == "posix" and "mounted_as" not in place:
        text = f"{path} is on the root file system; iobands canary calls it unmounted"
        return warned(what, text, "if it belongs there, add 'mounted_as' in the site file")
    return Line(what, text)


def _compilers(file: SiteFile) -> Iterator[Line]:
    """Check that a login shell finds each environment's Fortran compiler and CMake."""
    for name, environment in file.environments.items():
        what, compiler = f"environment {name}", environment.get("ftn", "ftn")
        if not compiler:  # contract 4 allows that
            yield Line(what, "names no Fortran compiler; CMake looks for one")
            continue
        lines = [f'PATH="$PATH":{shlex.quote(os.environ.get("PATH", ""))}']
        for each in environment.get("modules", ()):
            module = each if isinstance(each, str) else each["name"]
            lines.append(f"module load {shlex.quote(module)} >/dev/null 2>&1")
        before = environment.get("prepare_cmds", ())
        lines += [f"{{ {each}\n}} >/dev/null 2>&1" for each in before]
        wanted = [shlex.split(compiler)[0], "cmake"]
        lines += [f"command -v {shlex.quote(each)} || echo missing" for each in wanted]
        where = measure.output_of("bash", "-lc", "\n".join(lines)).splitlines()[-2:]
        lacking = [name for name, place in zip(wanted, where, strict=False) if place == "missing"]
        if lacking or not where:
            remedy = "install it, or correct ftn, modules and prepare_cmds of the environment"
            yield failed(what, f"not found: {', '.join(lacking or wanted)}", remedy)
        else:
            yield Line(what, where[0])


def _session(perflogs: Path) -> Line:
    try:
        holder = measure.read_holder(perflogs) if perflogs.is_dir() else None
    except (SessionError, OSError) as error:
        return warned("session", str(error), "remove it if no session runs")
    if holder:
        if holder.is_over(measure.lock_path(perflogs)):
            return warned("session", f"killed: {holder}", "the next session cleans up")
        return Line("session", f"one runs now: {holder}")
    unreadable: list[Rejected] = []
    if (last := measure.read_last_session(perflogs, unreadable)) is None:
        remedy = "" if unreadable else "measure once by hand: iobands run"
        found = str(unreadable[0]) if unreadable else "none by iobands run yet"
        return warned("session", found, remedy)
    text = f"the last one began {age_text(datetime.now(timezone.utc) - last.began)}: {last.how}"
    if last.how == COMPLETED:
        return Line("session", text)
    return warned("session", f"{text}: {last.reason}", f"see perflogs/{measure.LOG}")


def _schedule(site: Path) -> Line:
    for command in _SCHEDULERS:
        for line in measure.output_of(*command).splitlines():
            if "iobands" not in line or _SUSPECTS.search(line) or line.lstrip().startswith("#"):
                continue
            is_timer, unit = command[0] == "systemctl", line.split()[-1]
            job = measure.output_of("systemctl", "--user", "cat", unit) if is_timer else line
            called_there = _CALLED.findall(job)  # empty for a script
            if called_there and not {"run", "reframe"} & {*called_there}:
                continue
            for named in map(Path, _PATH.findall(job)):
                with suppress(TimeoutError):  # a dashboard, or another site
                    place = resolved(named)
                    if site in (place, *place.parents):
                        return Line("schedule", f"{command[0]}: {' '.join(line.split()[:5])}")
    remedy = "print one: iobands schedule cron (schedules of other users cannot be seen)"
    return warned("schedule", f"this user has none for {site}", remedy)


def _password(settings: Path) -> Iterator[Line]:
    """Warn of a password in the store's URL that everybody can read."""
    with suppress(FileError, OSError, ValueError):  # the line about the store says what is wrong
        url = stores.store_of(settings) or ""
        if settings.stat().st_mode & 0o004 and (urlsplit(url).password or "password=" in url):
            said = f"everybody can read the password in {settings}"
            yield warned("store", said, "move it to ~/.pgpass, and change it")


def _store(perflogs: Path, settings: Path) -> Line:
    """Check that the site's store answers, and that no push is overdue."""
    try:
        if (url := stores.store_of(settings)) is None:
            return Line("store", "none named in config/store.yaml")
    except FileError as error:
        return failed("store", str(error), "correct it")
    now, name = datetime.now(timezone.utc), stores.without_password(url)
    pushed = read_pushed(perflogs, url)
    last = f"the last push was {age_text(now - pushed.when)}" if pushed.when else "never pushed"
    silent = stores.StoreError(f"{name}: no answer within {_SERVER_SECONDS} s")

    def ask() -> None:
        with stores.open_store(url):
            pass

    try:
        in_time(_SERVER_SECONDS, ask, silent)
    except Exception as error:  # a half-installed engine may raise anything
        problem = str(error) or type(error).__name__
        if problem == str(stores.nothing_there(name)) and not pushed.when:
            return warned("store", problem, "the first push makes it: iobands push")
        return failed("store", f"{problem}; {last}", "correct it, then try: iobands push")
    text = f"{name} answers, schema {stores.STORE_SCHEMA}; {last}"
    why = late(perflogs, settings, now)
    if pushed.when and not why:
        return Line("store", text)
    return warned("store", f"{text}; it lacks what is new {why}" if why else text, "iobands push")


def moved_store(clone: Path, site: Path) -> list[str]:
    """Return what to do if a copied config/store.yaml means another store: a relative path."""
    settings = Path("config/store.yaml")
    with suppress(FileError):
        before, after = stores.store_of(clone / settings), stores.store_of(site / settings)
        if before != after:
            return [f"The store was {before}; {settings} now means {after}: write one of them."]
    return []


def _channels(path: Path) -> Iterator[Line]:
    if not path.exists():
        yield Line("notifications", "none set up in config/notify.yaml")
        return
    try:
        settings = read_settings(path)
    except FileError as error:
        yield failed("notifications", str(error), "correct it")
        return
    options = [(each.name, each.options) for each in (*settings.channels, *settings.monitors)]
    if settings.ping:
        options.append(("ping", {"url": settings.ping}))
    silent = SendError(f"no answer within {_SERVER_SECONDS} s")  # of DNS, or the disk of a secret
    for name, each in options:
        try:
            said = in_time(_SERVER_SECONDS, partial(_reached, each), silent)
            yield Line(f"channel {name}", scrubbed(said))
        except (SendError, ValueError) as error:  # ValueError: a malformed URL
            remedy = "correct it, then try: iobands notify --test"
            yield failed(f"channel {name}", scrubbed(str(error)), remedy)


def _reached(options: Mapping[str, Any]) -> str:
    """Return the program or server of a channel if it and the secrets exist, or raise SendError."""
    for value in options.values():
        if isinstance(value, dict) and value.keys() & {"env", "file"}:
            secret(value)
    if program := options.get("sendmail") or next(iter(options.get("command", ())), None):
        if not shutil.which(program):
            raise SendError(f"{program}: no such program")
        return str(program)
    if url := options.get("url", TRACKERS.get(options.get("type", ""))):
        parts = urlsplit(secret(url))
        host, port = parts.hostname or "", parts.port or {"http": 80}.get(parts.scheme, 443)
    else:
        usual = PORTS[options.get("security", "none")]
        host, port = options.get("server", "localhost"), options.get("port", usual)
    try:
        socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        raise SendError(f"{host}, port {port}: {error.strerror or error}") from None
    return f"{host}, port {port}, answers"
