"""Perflogs before a session: they can be written, and their last line has its end.

ReFrame opens a perflog when a check has measured: what it cannot write then is lost.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

from iobands.model.replaced import naming
from iobands.model.series import path_part
from iobands.session.refusal import SessionRefusedError, name_of, refusal

_ROOM: Final = 2**18  # bytes that must fit in: far more than the lines and report of a session
_PROBE: Final = ".writable"


def require_writable(perflogs: Path, system: str) -> None:
    """Refuse the session where perflogs or run reports of `system` could not be written.

    Raises:
        SessionRefusedError: the message names the file and the remedy.
    """
    below = perflogs / path_part(system)
    files = [*below.glob("*/*.log"), *below.glob("*/.*.lock")]
    if os.geteuid() == 0:
        _refuse_root([path for path in (below, *files) if path.exists()])
    directories = [perflogs, below, *sorted(p for p in below.glob("*") if p.is_dir())]
    try:
        (below / "reports").mkdir(parents=True, exist_ok=True)
        for directory in directories:
            require_room(directory)
        for path in sorted(files):
            _require_file(path)
    except OSError as error:
        raise refusal(error, Path(error.filename)) from error


def takes_locks(perflogs: Path) -> bool:
    """Whether files there can be locked: not on a Lustre that is mounted without `flock`."""
    try:
        with tempfile.TemporaryFile(dir=perflogs) as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def open_to_all(perflogs: Path) -> list[str]:
    """Return a note on what all users may write there: whoever can add lines decides what is said.

    In a sticky directory they may add files, and change none.
    """
    found = []
    below = [path for pattern in ("*", "*/*", "*/*/*.log") for path in perflogs.glob(pattern)]
    for path in (perflogs, *sorted(below)):
        mode = path.lstat().st_mode
        sticky = stat.S_ISDIR(mode) and mode & stat.S_ISVTX
        if mode & stat.S_IWOTH and not (sticky or stat.S_ISLNK(mode)):
            found.append(str(path))
    if not found:
        return []
    more = f" and {len(found) - 1} more" if found[1:] else ""
    return [f"{found[0]}{more}: all users may write there: chmod -R o-w {perflogs}"]


def end_lines(perflogs: Path, system: str) -> list[Path]:
    """End the last line of each perflog that was cut off, so that the next is one of its own.

    Return the perflogs that had such a line.
    """
    torn = []
    for path in sorted((perflogs / path_part(system)).glob("*/*.log")):
        with naming(path), path.open("rb+") as stream:
            if stream.seek(0, os.SEEK_END):
                stream.seek(-1, os.SEEK_END)
                if stream.read(1) != b"\n":
                    stream.write(b"\n")
                    torn.append(path)
    return torn


def require_room(directory: Path) -> None:
    """Write a file below `directory`, as large as a session's results, and remove it.

    Raises:
        OSError: there is no room, or nothing can be written.
    """
    probe = directory / f"{_PROBE}.{os.getpid()}"
    with naming(probe), contextlib.ExitStack() as stack:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        stack.callback(probe.unlink)
        stack.callback(os.close, descriptor)
        written = os.write(descriptor, bytes(_ROOM))
        if written < _ROOM:  # the file system became full: the next write says so
            os.write(descriptor, bytes(_ROOM - written))
        os.fsync(descriptor)


def _require_file(path: Path) -> None:
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise SessionRefusedError(f"{path}: is no regular file; remove it")
    with naming(path):
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK))


def _refuse_root(paths: list[Path]) -> None:
    """Refuse root where another user's perflogs are: what root makes, that user cannot write."""
    for path in paths:
        owner = path.stat().st_uid
        if owner != 0:
            name = name_of(owner)
            raise SessionRefusedError(
                f"{path} belongs to {name}, who could not write what root adds; "
                f"run it as {name}: sudo -u {name} iobands run"
            )
