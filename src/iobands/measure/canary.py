"""The canary: a short test of one node's file systems, without a scheduler and ReFrame.

It runs one process of a benchio that a session has kept, with the guards and the run directory of a
job. A process that hangs on a file system cannot be killed, so every wait has a time limit.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import select
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from iobands import model
from iobands.measure import run_directories
from iobands.measure.lock import STOPPED, lock_path, read_holder
from iobands.measure.run_directories import new_note, notes_of, of_suite, read_notes, sweep
from iobands.model import SessionError

_FILES: Final = ("benchio", "build.out", "environment", "identity", "libraries")
_SUMS: Final = "SHA256SUMS"
_KEY: Final = re.compile(r"[0-9a-f]{32}\n")
_AGAIN: Final = "`iobands run` builds it again"


def take_build(site: Path, place: tuple[str, str, str], program: Path) -> dict[str, str]:
    """Copy a kept benchio to `program`, and return the environment variables that it needs.

    Raises OSError if there is no build for `place` or it cannot be copied, and SessionError if it
    does not match its checksums or others could have changed it.
    """
    builds, pointer = site / "builds", build_pointer(site, *place)
    about = builds.lstat()
    if (about.st_uid, about.st_mode) != (os.geteuid(), stat.S_IFDIR | 0o700):
        raise SessionError(f"{builds} must be your own directory, of mode 0700: chmod 700 {builds}")
    key = model.read_small(pointer).decode("ascii", "replace")
    if not _KEY.fullmatch(key):
        raise SessionError(f"{pointer} is damaged; {_AGAIN}")
    kept = builds / key.strip()
    try:
        found = {name: model.read_small(kept / name) for name in (*_FILES, _SUMS)}
    except OSError as error:
        raise SessionError(f"{kept}: {error.strerror}; {_AGAIN}") from error
    proven = [f"{hashlib.sha256(found[name]).hexdigest()}  {name}\n" for name in _FILES]
    if "".join(proven).encode() != found[_SUMS]:
        raise SessionError(f"the benchio in {kept} was damaged or replaced; {_AGAIN}")
    with os.fdopen(os.open(program, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700), "wb") as stream:
        stream.write(found["benchio"])
    lines = found["environment"].decode("utf-8", "surrogateescape").split("\0")
    return dict(line.split("=", 1) for line in lines if "=" in line)


def build_pointer(site: Path, *place: str) -> Path:
    """Return the file that names the kept build for a system, partition and environment."""
    return site / "builds" / ".".join(map(model.path_part, place))


_CHECK: Final = "Canary"
_GRACE: Final = 2.0  # seconds that the script may take beyond the limit of the program
_OWN: Final = frozenset({"HOME", "USER", "LOGNAME"})
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Nest:
    """Where canaries run: a node of a partition, in a programming environment of a site."""

    site: Path
    system: str
    partition: str
    environ: str
    node: str
    file_systems: Mapping[str, Mapping[str, Any]]
    environment: Mapping[str, Any]

    @property
    def transport(self) -> str:
        """The MPI transport that the environment demands, or `default`."""
        features = self.environment.get("features", ())
        return next((each for each in ("ofi", "ucx") if each in features), "default")


@dataclass(frozen=True)
class Look:
    """The finding of one run on a file system: status, reason if it is not fit, and rates.

    `at_most` is an upper bound of the rates in GiB/s, for a run that did not finish in time.
    `is_unstarted` means that the script began benchio, but benchio could not run.
    """

    status: int
    why: str = ""
    rates: Mapping[str, float] = field(default_factory=dict)
    columns: Mapping[str, object] = field(default_factory=dict)
    at_most: float | None = None
    is_unstarted: bool = False


def within(seconds: float, work: Callable[[], tuple[int, str]]) -> tuple[int, str]:
    """Return the result of `work`, run in a child process; UNKNOWN if it takes over `seconds`."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            status, line = work()
            os.write(theirs, f"{status}{line}".encode())
        finally:
            sys.stderr.flush()
            os._exit(0)
    os.close(theirs)
    answered = bool(select.select([ours], [], [], seconds)[0])
    said = os.read(ours, 1 << 16).decode() if answered else ""
    os.close(ours)
    if said:
        return int(said[0]), said[1:]
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    hung = f"no answer within {seconds:g} s; is the site's directory hung?"
    why = "its process ended without an answer" if answered else hung
    return model.UNKNOWN, f"IOBANDS UNKNOWN: canary: {why}"


def become_owner(site: Path) -> None:
    """Switch from root to the owner of the site's directory, permanently.

    Must be called before anything in the directory is used. Raises SessionError if `site` is a
    link, belongs to another user, or is root's and others may write there, or if its owner cannot
    read the installation.
    """
    about, is_root = site.lstat(), os.geteuid() == 0
    if stat.S_ISLNK(about.st_mode):
        raise SessionError(f"{site} is a link; name the directory itself")
    if is_root and about.st_uid:
        owner = pwd.getpwuid(about.st_uid)
        os.initgroups(owner.pw_name, owner.pw_gid)
        os.setresgid(*[owner.pw_gid] * 3)
        os.setresuid(*[owner.pw_uid] * 3)
        os.environ.update(HOME=owner.pw_dir, USER=owner.pw_name, LOGNAME=owner.pw_name)
        for path in (os.__file__, __file__):  # else the next import fails, whichever that is
            if not os.access(path, os.R_OK):
                remedy = "install Python and iobands where all users can read them"
                raise SessionError(f"{owner.pw_name} cannot read {path}; {remedy}")
        os.chdir(site)
    elif about.st_uid != os.geteuid():
        whose = f"{site} belongs to user {about.st_uid}"
        raise SessionError(f"{whose}; run it as that user, or as root")
    elif is_root and about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise SessionError(f"{site}: others may write there, so root runs nothing there")


def await_session(perflogs: Path, until: float, say: Callable[[str], None]) -> None:
    """Wait while a session measures, and say so once; SessionError at the monotonic `until`."""
    said = ""
    while (holder := read_holder(perflogs)) and holder.is_alive is not False:
        with suppress(OSError):
            age = time.time() - lock_path(perflogs).stat().st_mtime
            if holder.is_alive is None and age > STOPPED:
                return
        if time.monotonic() > until:
            raise SessionError(f"a session is measuring: {holder}")
        if not said:
            said = f"waits: a session is measuring: {holder}"
            say(said)
        time.sleep(min(1.0, max(0.05, until - time.monotonic())))


def look(nest: Nest, name: str, mib: int, seconds: int) -> Look:
    """Run a canary of `mib` MiB on the file system `name`, for at most `seconds`.

    Raises SessionError if no kept benchio can be used, and OSError if nothing can be written there.
    """
    settings = nest.file_systems[name]
    types, proofs = (of_suite(nest.site, f"checks.{e}") for e in ("filesystems", "base.canary"))
    names = types.mount_names(settings, types.BACKENDS[settings["type"]])
    stage = nest.site / "stage" / f"canary-{nest.node}"
    shutil.rmtree(stage, ignore_errors=True)  # left by a canary that was killed
    stage.mkdir(mode=0o700, parents=True)
    notes, root = notes_of(nest.site / "perflogs", nest.system), Path(settings["path"])
    mpi = nest.environment.get("extras", {}).get("mpi")
    try:
        place = (nest.system, nest.partition, nest.environ)
        environment = {name: os.environ[name] for name in _OWN & {*os.environ}} | {"PATH": _PATH}
        environment |= proofs.REPORT_VARIABLES.get(mpi, {})
        environment |= take_build(nest.site, place, stage / "benchio")
        note = new_note(root, _CHECK, "local", None)
        note.write(notes)
        (stage / "run_directory.txt").write_text(f"{note.path}\n", "utf-8")
        room = mib / 1024 + settings.get("min_free_gib", 0)
        script = Path(proofs.__file__).with_suffix(".sh")
        words = [script, root, types.mount_asked(settings), mib, room, seconds, *names]
        with (stage / "output.txt").open("wb") as output:
            child = subprocess.Popen(
                ["bash", *map(str, words)],
                cwd=stage,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        note = note.submitted(str(child.pid))
        note.write(notes)
        try:
            child.wait(seconds + _GRACE)
        except subprocess.TimeoutExpired:
            late = f"no answer within {seconds} s"
            # on a hung file system, its processes sleep
            is_busy = note.script and note.script.is_busy()
            _kill(child)
            if is_busy:
                return Look(model.UNKNOWN, f"busy: {late}, as it waits for a processor")
            return Look(model.CRITICAL, f"hung: {late}")
        if (stage / "removed_directories.txt").exists() or not (stage / "making").exists():
            (notes / note.name).unlink(missing_ok=True)
        _sweep_killed(notes, {root: names})
        asked = proofs.AskedCanary(str(root), mib, seconds, mpi, nest.transport)
        found = vars(proofs.finding_of(stage, child.returncode, asked))
        return Look(**{**found, "columns": _columns(nest, name, mib) | found["columns"]})
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _sweep_killed(notes: Path, roots: Mapping[Path, Any]) -> None:
    """Remove the run directories that killed canaries of this machine left below `roots`."""
    own = {
        note.name
        for _, note in read_notes(notes)
        if note and f"-{_CHECK}-" in note.name and note.path.parent in roots
        if note.process.is_alive() is False
        and run_directories.why_kept(note) != run_directories.LIVE
    }
    if own:
        sweep(notes, roots, own=own)


def _kill(script: subprocess.Popen[bytes]) -> None:
    for how in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(script.pid, how)
        with suppress(subprocess.TimeoutExpired):
            script.wait(1)
    script.returncode = script.returncode or 1  # Popen must not wait for it


def _columns(nest: Nest, name: str, mib: int) -> dict[str, object]:
    """Return the perflog columns (contract 2) that all samples of a run share."""
    settings = nest.file_systems[name]
    return {
        model.TIME: datetime.now(timezone.utc).isoformat(timespec="microseconds"),
        "result": "pass",
        "display_name": _CHECK,
        "system": nest.system,
        "partition": nest.partition,
        "environ": nest.environ,
        "job_nodelist": nest.node,
        "suite_version": model.__version__,
        "tool": "benchio",
        "pattern": "fpp",
        "interface": "posix",
        "file_system": name,
        "medium": settings["medium"],
        "file_system_type": settings["type"],
        "transport": nest.transport,
        "hints": "default",
        "fsync": "true",
        "nodes": 1,
        "tasks": 1,
        "gib": mib / 1024,
        "attempt": 1,
        "purpose": model.MANUAL,
        "case": "canary",
    }


def rows_of_run(run: Look, purpose: str, verdicts: Mapping[str, str]) -> list[dict[str, object]]:
    """Return one row for each rate of a run, for the log of its node."""
    verdict = ",".join(f"{name}={said}" for name, said in verdicts.items())
    return [
        {**run.columns, "purpose": purpose, "band_verdict": verdict, "perf_var": name,
         "perf_value": f"{rate:.6g}", "perf_unit": model.VARIABLE_UNITS[name]}
        for name, rate in run.rates.items()
    ]  # fmt: skip
