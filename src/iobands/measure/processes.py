"""Processes: their identity, whether they still run, and which belong to a session.

Reads Linux's /proc. Every process of a session has the session's identifier in its environment, so
that the processes of a killed session are found whatever their parent.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from iobands.model import SESSION_ENV

_PROC: Final = Path("/proc")
_MACHINE: Final = Path("/etc/machine-id")
_NETWORK: Final = Path("/sys/class/net")
# Fields of /proc/PID/stat behind the name: 3, 5 and 22 of proc_pid_stat(5).
_STATE, _GROUP, _STARTED = 0, 2, 19
_MOST_PIDS: Final = 2**22  # PID_MAX_LIMIT of Linux


@dataclass(frozen=True)
class Process:
    """A process by its machine, the boot of that machine, its number and its start in clock ticks.

    A later process with the same number is another one. Two machines may share a name, and a
    container numbers its processes anew. `machine` and `namespace` are None in older records only.
    """

    host: str
    boot: str
    pid: int
    started: int | None
    machine: str | None = None
    namespace: str | None = None

    @classmethod
    def of(cls, pid: int) -> Process:
        """Return the process `pid` of this host; one that has ended has no start."""
        host = socket.gethostname()
        return cls(host, boot_id(), pid, _started(pid), machine_id(), _namespace())

    @classmethod
    def this(cls) -> Process:
        """Return the calling process."""
        return cls.of(os.getpid())

    @classmethod
    def from_fields(cls, fields: object) -> Process | None:
        """Return the process that `fields` of JSON describe, None if they are not valid."""
        if not isinstance(fields, Mapping):
            return None
        pid, started = fields.get("pid"), fields.get("started")
        host, boot = fields.get("host"), fields.get("boot")
        machine, namespace = fields.get("machine"), fields.get("namespace")
        if not (isinstance(host, str) and isinstance(boot, str)):
            return None
        if not isinstance(machine, str | None) or not isinstance(namespace, str | None):
            return None
        if type(pid) is not int or not 0 < pid < _MOST_PIDS:
            return None
        return cls(host, boot, pid, started if type(started) is int else None, machine, namespace)

    def is_alive(self) -> bool | None:
        """Whether it still runs; None if it cannot be seen: on another machine, or hidden."""
        if not self._is_of_this_machine():
            return None
        if self.boot != boot_id():
            return False
        if self.namespace not in {None, _namespace()} or _is_hidden(self.pid):
            return None
        started = _started(self.pid)
        return started is not None and started == self.started

    def group(self) -> list[int]:
        """Return the numbers of the processes in its process group, as far as they can be seen."""
        if not self._is_of_this_machine() or self.boot != boot_id():
            return []
        if self.namespace not in {None, _namespace()}:
            return []
        if _started(self.pid) not in {None, self.started}:
            return []  # a number is given again only after its group has ended
        pids = (int(directory.name) for directory in _PROC.glob("[0-9]*"))
        return [pid for pid in pids if (fields := _stat(pid)) and int(fields[_GROUP]) == self.pid]

    def _is_of_this_machine(self) -> bool:
        return self.host == socket.gethostname() and self.machine in {None, machine_id()}


def boot_id() -> str:
    """Return the identifier of this boot of the machine."""
    return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


@cache
def machine_id() -> str:
    """Return what distinguishes machines of one name: machine-id(5) and a MAC address.

    Machines that boot from one image may share the first.
    """
    known = []
    addresses = sorted(each.parent / "address" for each in _NETWORK.glob("*/device"))
    for path in (_MACHINE, *addresses[:1]):
        with contextlib.suppress(OSError):
            known.append(path.read_text(encoding="ascii").strip())
    return "-".join(known)


def _namespace() -> str:
    """Return the PID namespace of this process."""
    return (_PROC / "self/ns/pid").readlink().name


def _is_hidden(pid: int) -> bool:
    """Whether there is a process that /proc does not show, as with its option hidepid."""
    try:
        (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True
    return False


def _started(pid: int) -> int | None:
    """Return when the process `pid` started, None if it does not exist or is a zombie."""
    fields = _stat(pid)
    return int(fields[_STARTED]) if fields else None


def _stat(pid: int) -> list[bytes] | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()
    return None if fields[_STATE] in {b"Z", b"X"} else fields


def processes_of(session: str) -> list[Process]:
    """Return the processes of this machine that belong to `session`, without the calling one."""
    wanted = f"{SESSION_ENV}={session}".encode()
    found = []
    for directory in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is somebody else's
            if wanted in (directory / "environ").read_bytes().split(b"\0"):
                process = Process.of(int(directory.name))
                if process.started is not None and process.pid != os.getpid():
                    found.append(process)
    return found


def end_session(session: str, patience: float = 10) -> tuple[int, list[Process]]:
    """End the processes of `session`; return their number, and those that could not be ended.

    They get SIGTERM, and after `patience` seconds SIGKILL.
    """
    left = processes_of(session)
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
            left = processes_of(session)
    return number, left
