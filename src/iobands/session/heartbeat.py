"""Signs of life: who holds the lock touches it, so that other machines know that it runs.

They compare its time with that of a file made beside it now. On NFS both are the server's times. On
Lustre clients set them, by clocks that may be wrong, so the lock is watched as well.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_BEAT: Final = 60.0  # seconds between two signs of life
STOPPED: Final = 3600.0  # seconds without one, after which a session counts as over
_WATCH: Final = 3 * _BEAT
_CLOCK_OFF: Final = 300.0  # seconds by which two clocks may differ


def time_there(directory: Path) -> float:
    """Return the time by the clock of a file system, in seconds since 1970.

    Raises:
        OSError: no file can be made in `directory`.
    """
    handle, name = tempfile.mkstemp(dir=directory, prefix=".clock.")
    try:
        return os.fstat(handle).st_mtime
    finally:
        os.close(handle)
        Path(name).unlink()


def clock_problem(directory: Path) -> str | None:
    """Return how far this machine's clock is from that of the file system, None if they agree.

    Raises:
        OSError: no file can be made in `directory`.
    """
    ahead = time.time() - time_there(directory)
    if abs(ahead) < _CLOCK_OFF:
        return None
    size, unit = abs(ahead) / 60, "minutes"
    for more, larger in ((60, "hours"), (24, "days")):
        if size >= 2 * more:
            size, unit = size / more, larger
    off = f"{size:.0f} {unit} {'ahead of' if ahead > 0 else 'behind'}"
    return (
        f"the clock of {socket.gethostname()} is {off} that of the file system of {directory}: "
        "one of them is wrong, and the samples may be dated wrongly"
    )


def start_beating(lock: Path, is_ours: Callable[[], bool]) -> Callable[[], None]:
    """Touch `lock` every minute, and return what ends this.

    A session that was stopped for long may have lost its lock. Then it is asked to end.
    """
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(_BEAT):
            with contextlib.suppress(OSError):  # a server that is away for a while
                if not is_ours():
                    os.kill(os.getpid(), signal.SIGTERM)
                    return
                os.utime(lock)

    threading.Thread(target=beat, name="heartbeat", daemon=True).start()
    return ended.set


def has_stopped(lock: Path) -> bool:
    """Whether `lock` shows no sign of life: it is old, and is not touched while it is watched."""
    try:
        touched = _touched(lock)
        if time_there(lock.parent) - touched < STOPPED:
            return False
        until = time.monotonic() + _WATCH
        while time.monotonic() < until:
            time.sleep(_WATCH / 12)
            if _touched(lock) != touched:
                return False
    except OSError:
        return False
    return True


def _touched(lock: Path) -> float:
    handle = os.open(lock, os.O_RDONLY)  # NFS asks the server when a file is opened
    try:
        return os.fstat(handle).st_mtime
    finally:
        os.close(handle)
