"""Processes: who one is, whether it still runs, and which ones belong to a session.

Reads Linux's /proc. Every process of a session has its identifier in the environment, so that
what a killed session left running is found under any parent.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: The environment variable with the identifier of the session.
VARIABLE: Final = "IOBANDS_SESSION"

_PROC: Final = Path("/proc")
# Fields of /proc/PID/stat behind the name: 3, 5 and 22 of proc_pid_stat(5).
_STATE, _GROUP, _STARTED = 0, 2, 19


@dataclass(frozen=True)
class Process:
    """A process of this machine; `started`, in ticks since the boot, tells it from a later one."""

    pid: int
    started: int

    @property
    def is_alive(self) -> bool:
        """Whether it still runs; one that only waits for its parent to look does not."""
        return find(self.pid) == self


def boot_id() -> str:
    """Return what tells this boot of the machine from all others."""
    return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def find(pid: int) -> Process | None:
    """Return the process that has the number `pid` now, None if none has or it is a zombie."""
    fields = _stat(pid)
    return Process(pid, int(fields[_STARTED])) if fields else None


def of_group(leader: int) -> list[int]:
    """Return the numbers of the processes of this machine in the process group of `leader`."""
    pids = (int(directory.name) for directory in _PROC.glob("[0-9]*"))
    return [pid for pid in pids if (fields := _stat(pid)) and int(fields[_GROUP]) == leader]


def _stat(pid: int) -> list[bytes] | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()
    return None if fields[_STATE] in {b"Z", b"X"} else fields


def this_process() -> Process:
    """Return the process that calls."""
    process = find(os.getpid())
    assert process is not None
    return process


def of_session(session: str) -> list[Process]:
    """Return the processes of this machine that belong to `session`, without the calling one."""
    wanted = f"{VARIABLE}={session}".encode()
    found = []
    for directory in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is somebody else's
            if wanted in (directory / "environ").read_bytes().split(b"\0"):
                process = find(int(directory.name))
                if process and process.pid != os.getpid():
                    found.append(process)
    return found


def end_session(session: str, patience: float = 10) -> tuple[int, list[Process]]:
    """End the processes of `session`; return how many there were, and those that do not end.

    They are asked to, and after `patience` seconds they are killed.
    """
    left = of_session(session)
    number = len(left)
    for how in (signal.SIGTERM, signal.SIGKILL):
        asked: set[Process] = set()
        deadline = time.monotonic() + patience
        # one that has just been forked was in no earlier list
        while left and time.monotonic() < deadline:
            for process in {*left} - asked:
                with contextlib.suppress(OSError):
                    os.kill(process.pid, how)
            asked.update(left)
            time.sleep(0.05)
            left = of_session(session)
    return number, left
