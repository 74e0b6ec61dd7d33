"""The lock by which one session at a time measures in a site's directory, and the session record.

The lock is a file that names its holder, made by link(2): that is atomic on NFS and Lustre too,
where flock(2) may be missing or local to a node. The kernel does not remove it, so a lock is stale
when its processes have ended or their machine has restarted. If this machine cannot see them, the
heartbeat decides: the holder touches the lock every minute, and the lock's time is compared with
the time of a new file next to it. On NFS the server sets both; on Lustre clients do, with clocks
that may be wrong, so the lock is also watched for three minutes.

The record, `perflogs/last-session.json`, is written when a session begins and again when it ends.
A record without an end is left by a session that was killed, or whose machine went down.
"""

from __future__ import annotations

import errno
import hashlib
import os
import pwd
import secrets
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from iobands import model
from iobands.measure.documents import decoded, read_object, write_document
from iobands.measure.processes import Process, forget_jobs
from iobands.model import LastSession, Rejected, SessionError, Unusable

LOCK_NAME: Final = ".session.json"
#: The command of a session that ends when another one begins.
SUSPECTS: Final = "iobands run --suspects"
_WANTED: Final = ".session.wanted"
#: The errors of link(2) on a file system without hard links.
_NO_LINKS: Final = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_BEAT: Final = 60.0  # seconds between two heartbeats
STOPPED: Final = 3600.0  # seconds without a heartbeat after which a session counts as over
_WATCH: Final = 3 * _BEAT
_CLOCK_OFF: Final = 300.0  # seconds by which two clocks may differ
_YIELD_BEAT: Final = 5.0  # seconds after which a session that yields looks whether it was asked to
_YIELD_WAIT: Final = 2 * _BEAT + 180  # seconds to wait for a session that yields to end
_PAUSE: Final = 2.0


class BusyError(SessionError):
    """Another session holds the lock."""


def refusal(error: OSError, path: Path) -> SessionError:
    """Return the error for a failed system call on `path` below the perflogs."""
    return SessionError(
        f"{path}: {error.strerror or error}; nothing was measured, as no sample could be "
        f"recorded: {_remedy(error, path)}"
    )


@contextmanager
def refusing(perflogs: Path) -> Iterator[None]:
    """Turn an OSError into a SessionError; below the perflogs, its message says what to do."""
    try:
        yield
    except OSError as error:
        path = Path(error.filename or perflogs)
        if perflogs not in {path, *path.parents}:
            raise SessionError(f"{path}: {error.strerror}; nothing was measured") from error
        raise refusal(error, path) from error


def user_name(uid: int) -> str:
    """Return the name of a user, or the number if there is no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _remedy(error: OSError, path: Path) -> str:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return "free space there"
    if error.errno == errno.EROFS:
        return "mount it writable"
    there = path.parent
    with suppress(OSError):  # the directory may not be searched
        there = path if path.exists() else there
    if error.errno == errno.EPERM:
        return f"is it immutable (lsattr -d)? Then chattr -i {there}"
    with suppress(OSError):
        owner, me = user_name(there.stat().st_uid), user_name(os.geteuid())
        if owner != me and user_name(there.resolve().parent.stat().st_uid) == owner:
            return f"it belongs to {owner}; run iobands as {owner}: sudo -u {owner}"
        if owner != me:
            return f"it belongs to {owner}; as root: chown -R {me} {there}"
    return f"look at its mode: ls -ld {there}"


@dataclass(frozen=True)
class Holder:
    """Who holds the lock: the session, and its processes, which are on one host."""

    session: str
    command: str
    user: str
    began: str
    processes: tuple[Process, ...]

    def __post_init__(self) -> None:
        """Refuse a session without a process."""
        if not self.processes:
            raise ValueError("no process")

    @property
    def is_alive(self) -> bool | None:
        """Whether one of its processes runs; None if none is seen, but some cannot be seen here."""
        alive = {each.is_alive() for each in self.processes}
        return True in alive or (None if None in alive else False)

    def is_over(self, lock: Path) -> bool:
        """Whether another session may take the lock: its processes or its heartbeat have ended."""
        alive = self.is_alive
        return alive is False or (alive is None and has_stopped(lock))

    @property
    def yields(self) -> bool:
        """Whether it ends when another session begins."""
        return self.command == SUSPECTS

    def __str__(self) -> str:
        """Say who measures, where and since when."""
        pids, host = ", ".join(str(each.pid) for each in self.processes), self.processes[0].host
        return f"`{self.command}` of {self.user}, pid {pids} on {host}, since {self.began}"


def lock_path(perflogs: Path) -> Path:
    """Return the path of the lock."""
    return perflogs / LOCK_NAME


def new_holder(command: str) -> Holder:
    """Return the holder of a new session of this process."""
    now = datetime.now(timezone.utc)
    session, began = f"{now:%Y%m%dT%H%M%SZ}-{os.getpid()}", now.isoformat(timespec="seconds")
    return Holder(session, command, user_name(os.geteuid()), began, (Process.this(),))


def read_holder(perflogs: Path) -> Holder | None:
    """Return the holder, None if the lock is free; raise SessionError if it cannot be read."""
    return _read(lock_path(perflogs))


def acquire(perflogs: Path, holder: Holder) -> Holder | None:
    """Take the lock for `holder`; return the killed session that held it before, if any.

    A holder that yields is asked to end, and waited for.

    Raises:
        BusyError: another session holds the lock.
        SessionError: the lock cannot be made.
    """
    path, until = lock_path(perflogs), time.monotonic() + _YIELD_WAIT
    # in the same directory, as BeeGFS has no hard links between directories
    new = path.with_name(f"{LOCK_NAME}.{secrets.token_hex(16)}")
    with refusing(perflogs), ExitStack() as stack:
        stack.callback(_remove, new)
        # a power failure must not leave an empty lock
        write_document(new, asdict(holder), durable=True)
        while True:
            try:
                former = _take(path, new)
            except BusyError:
                found = _read(path)
                is_for_good = found is not None and not found.yields
                if holder.yields or is_for_good or time.monotonic() > until:
                    raise
                wanted(perflogs).touch()
                time.sleep(_PAUSE)
            else:
                wanted(perflogs).unlink(missing_ok=True)
                return former


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


def wanted(perflogs: Path) -> Path:
    """Return the path of the file that asks a session that yields to end."""
    return perflogs / _WANTED


def _take(path: Path, new: Path) -> Holder | None:
    """Make `path` a hard link to `new`; return the stale holder that it replaces, if any.

    Several sessions may find a lock stale. A second lock, named after the stale session, decides
    which of them replaces it.
    """
    if _linked(new, path):
        return None
    former = _read(path)
    if former is None or not former.is_over(path):
        raise BusyError(_refusal(path, former))
    name = hashlib.sha256(former.session.encode()).hexdigest()[:32]
    claim = path.with_name(f"{LOCK_NAME}.{name}")
    _take(claim, new)
    found = _read(path)
    if found != former:  # it was taken, or given back, since
        claim.unlink()
        raise BusyError(_refusal(path, found))
    claim.replace(path)
    return former


def _linked(new: Path, path: Path) -> bool:
    """Make `path` a hard link to `new`; return whether it is one, False if it is another file."""
    try:
        os.link(new, path)
    except FileExistsError:
        # NFS also raises this for a link that it made, if the server's first answer was lost
        with suppress(FileNotFoundError):
            return new.samefile(path)
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        needs = "the lock needs a file system with hard links"
        raise SessionError(
            f"{path}: {error.strerror}; nothing was measured: {needs}; "
            f"make {path.parent} a link to a directory on one"
        ) from error
    return True


def _read(path: Path) -> Holder | None:
    try:
        return decoded(Holder, read_object(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SessionError(f"{path}: {error.strerror}") from error
    except Unusable:
        raise SessionError(f"{path} is damaged; remove it if no session is running") from None


def join(perflogs: Path, holder: Holder) -> None:
    """Add the calling process to the processes of `holder`, which holds the lock."""
    joined = replace(holder, processes=(*holder.processes, Process.this()))
    with refusing(perflogs):
        write_document(lock_path(perflogs), asdict(joined), durable=True)


def release(perflogs: Path, session: str) -> None:
    """Forget the jobs of `session` and remove its lock; if that fails, the lock becomes stale."""
    with suppress(SessionError, OSError):
        holder = read_holder(perflogs)
        if holder and holder.session == session:
            forget_jobs(perflogs)
            lock_path(perflogs).unlink()


def _refusal(path: Path, holder: Holder | None) -> str:
    if holder is None:
        return "another session has just finished; try again"
    said = f"another session is measuring: {holder}"
    if holder.is_alive is None:
        hours = f"{STOPPED / 3600:g} h"
        said += f"; it cannot be seen from here: if it has ended, remove {path}"
        said += f", or wait: the next session takes over {hours} after its last heartbeat"
    return said


def time_there(directory: Path) -> float:
    """Return the time of a file system's clock, in seconds since 1970, or raise OSError."""
    with tempfile.NamedTemporaryFile(dir=directory, prefix=".clock.") as file:
        return os.fstat(file.fileno()).st_mtime


def clock_problem(directory: Path) -> str | None:
    """Return a message if this machine's clock and the file system's differ, or raise OSError."""
    ahead = time.time() - time_there(directory)
    if abs(ahead) < _CLOCK_OFF:
        return None
    minutes, units = round(abs(ahead) / 60), {"days": 24 * 60, "hours": 60, "minutes": 1}
    unit, size = next(each for each in units.items() if minutes >= 2 * each[1])
    off = f"{minutes / size:.0f} {unit} {'ahead of' if ahead > 0 else 'behind'}"
    return (
        f"the clock of {socket.gethostname()} is {off} the clock of the file system of "
        f"{directory}: one of them is wrong, and the samples may have wrong dates"
    )


def start_beating(perflogs: Path, holder: Holder) -> Callable[[], None]:
    """Touch the lock of `holder` every minute or sooner, and return a function that stops this.

    This process gets SIGTERM if another session has taken the lock, as after a suspension, or if
    another session wants the lock of one that yields.
    """
    ended, pause = threading.Event(), _YIELD_BEAT if holder.yields else _BEAT

    def beat() -> None:
        while not ended.wait(pause):
            with suppress(OSError):  # a file server may not answer for a while
                found: Holder | None = holder
                with suppress(SessionError):
                    found = read_holder(perflogs)
                is_anothers = found is not None and found.session != holder.session
                if is_anothers or (holder.yields and wanted(perflogs).exists()):
                    os.kill(os.getpid(), signal.SIGTERM)
                    return
                os.utime(lock_path(perflogs))

    threading.Thread(target=beat, name="heartbeat", daemon=True).start()
    return ended.set


def has_stopped(lock: Path) -> bool:
    """Whether `lock` was last touched an hour ago, and is not touched for three more minutes."""
    with suppress(OSError):
        touched, until = _touched(lock), time.monotonic() + _WATCH
        is_old = time_there(lock.parent) - touched >= STOPPED
        while is_old and time.monotonic() < until:
            time.sleep(_WATCH / 12)
            is_old = _touched(lock) == touched
        return is_old
    return False


def _touched(lock: Path) -> float:
    with lock.open("rb") as file:  # NFS asks the server when a file is opened
        return os.fstat(file.fileno()).st_mtime


RECORD_NAME: Final = "last-session.json"
_RECORD_SCHEMA: Final = 1
_LATER: Final = range(_RECORD_SCHEMA, 100)  # fields that a newer iobands added are ignored


def begin_record(perflogs: Path, holder: Holder, tag: str, system: str | None) -> LastSession:
    """Record that a session has begun, or raise OSError."""
    host, began = holder.processes[0].host, model.parse_time(holder.began)
    record = LastSession(holder.session, tag, system, host, began)
    write_record(perflogs, record)
    return record


def write_record(perflogs: Path, record: LastSession | None) -> None:
    """Replace the record, or remove it for None, or raise OSError."""
    if record:
        said = {"schema": _RECORD_SCHEMA, **asdict(record)}
        write_document(perflogs / RECORD_NAME, said)
    else:
        (perflogs / RECORD_NAME).unlink()


def record_killed(perflogs: Path, session: str) -> None:
    """Record that a session was killed; without its stale lock, nothing else would show it."""
    record = read_last_session(perflogs)
    if record and record.session == session and record.how == model.KILLED:
        with suppress(OSError):  # it must not stop the session that takes over
            write_record(perflogs, record)


def read_last_session(perflogs: Path, rejected: list[Rejected] | None = None) -> LastSession | None:
    """Return the record, None if it does not exist or is damaged; `rejected` gets the reason.

    A session without an end counts as `killed` unless its processes may still run. If it has given
    its lock back, it counts as `failed`: it could not record its end.
    """
    path = perflogs / RECORD_NAME
    failed = [] if rejected is None else rejected
    try:
        record = decoded(LastSession, read_object(path, _LATER)) if path.exists() else None
    except OSError as error:
        failed.append(model.not_read(path, error))
        return None
    except Unusable:
        why = "not the record of a session; the next session replaces it"
        failed.append(Rejected(path, 0, why))
        return None
    if record is None or record.ended is not None or record.how != model.RUNNING:
        return record
    with suppress(SessionError):
        holder = read_holder(perflogs)
        if holder and holder.session == record.session and holder.is_alive is not False:
            return record
    if not lock_path(perflogs).exists():
        why = "its end could not be recorded; was the disk full, or the lock removed by hand?"
        return replace(record, how=model.FAILED, reason=why)
    # a file system that became read-only keeps the lock, too
    why = f"by a signal, {record.host} restarted, or perflogs could not be written"
    return replace(record, how=model.KILLED, reason=why)
