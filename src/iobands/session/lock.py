"""The lock of a root: one session at a time, by cron or by hand.

The lock is a file that names its holder. It is made by link(2), which is atomic on NFS and Lustre
too, where flock(2) may be missing or local to a node. No kernel removes it, so a lock is stale
when its processes are gone: on their machine by number and start time, or after it restarted.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from iobands.session.processes import Process
from iobands.session.refusal import SessionRefusedError, name_of, refusal

NAME: Final = ".session.json"


@dataclass(frozen=True)
class Holder:
    """Who holds the lock: the session, and its processes, which are on one host."""

    session: str
    command: str
    user: str
    began: str
    processes: tuple[Process, ...]

    @property
    def host(self) -> str:
        """The host of its processes."""
        return self.processes[0].host

    @property
    def is_stale(self) -> bool:
        """Whether it is certain that none of its processes runs any more."""
        return all(each.is_alive() is False for each in self.processes)

    def __str__(self) -> str:
        """Say who measures, where and since when."""
        pids = ", ".join(str(process.pid) for process in self.processes)
        return f"`{self.command}` of {self.user}, pid {pids} on {self.host}, since {self.began}"


def path_of(perflogs: Path) -> Path:
    """Return the path of the lock."""
    return perflogs / NAME


def new_holder(command: str) -> Holder:
    """Return a new session of this process."""
    now = datetime.now(timezone.utc)
    return Holder(
        session=f"{now:%Y%m%dT%H%M%SZ}-{os.getpid()}",
        command=command,
        user=name_of(os.geteuid()),
        began=now.isoformat(timespec="seconds"),
        processes=(Process.this(),),
    )


def read_holder(perflogs: Path) -> Holder | None:
    """Return the holder of the lock, None if nobody holds it.

    Raises:
        SessionRefusedError: the lock cannot be read.
    """
    path = path_of(perflogs)
    try:
        said = json.loads(path.read_bytes())
        processes = tuple(Process(**each) for each in said.pop("processes"))
        if not processes:
            raise ValueError("no process")
        return Holder(**said, processes=processes)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SessionRefusedError(f"{path}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError):
        raise SessionRefusedError(
            f"{path} is damaged; remove it if nobody measures here now"
        ) from None


def acquire(perflogs: Path, holder: Holder) -> Holder | None:
    """Take the lock for `holder`; return the one of a killed session that it was taken from.

    Raises:
        SessionRefusedError: another session holds the lock, or it cannot be made.
    """
    path = path_of(perflogs)
    with _written(path, holder) as new, _one_at_a_time(perflogs):
        try:
            os.link(new, path)
            return None
        except FileExistsError:
            pass
        former = read_holder(perflogs)
        if former is None or not former.is_stale:
            raise SessionRefusedError(_refusal(path, former))
        new.replace(path)
        return former


def join(perflogs: Path, holder: Holder) -> None:
    """Add the calling process to those of `holder`, which holds the lock."""
    joined = replace(holder, processes=(*holder.processes, Process.this()))
    with _written(path_of(perflogs), joined) as new:
        new.replace(path_of(perflogs))


def release(perflogs: Path, session: str) -> None:
    """Give the lock back, if `session` still holds it."""
    with contextlib.suppress(SessionRefusedError, FileNotFoundError):
        holder = read_holder(perflogs)
        if holder and holder.session == session:
            path_of(perflogs).unlink()


def _refusal(path: Path, holder: Holder | None) -> str:
    said = f"another session measures here: {holder or 'it has just ended, try again'}"
    if holder and holder.host != socket.gethostname():
        said += f"; if {holder.host} is gone or has restarted since, remove {path}"
    return said


@contextlib.contextmanager
def _written(path: Path, holder: Holder) -> Iterator[Path]:
    """Yield a file beside `path` with the record of `holder`, which does not stay."""
    new = path.with_name(f"{path.name}.{socket.gethostname()}.{os.getpid()}")
    try:
        new.write_text(json.dumps(asdict(holder)) + "\n", encoding="utf-8")
        yield new
    except OSError as error:
        raise refusal(error, new) from error
    finally:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)


@contextlib.contextmanager
def _one_at_a_time(perflogs: Path) -> Iterator[None]:
    """Keep two processes of this host, which alone may judge a lock stale, from doing it at once.

    Where the file system has no flock, only the moment between judging and replacing is open.
    """
    directory = os.open(perflogs, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)
