"""A process that cannot be taken for a later one with its number."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from iobands.session.processes import boot_id, find, of_group


@dataclass(frozen=True)
class Process:
    """A process by its host, the boot of that host, its number and its start in clock ticks."""

    host: str
    boot: str
    pid: int
    started: int | None

    @classmethod
    def of(cls, pid: int) -> Process:
        """Return the process `pid` of this host; one that has ended has no start."""
        found = find(pid)
        return cls(socket.gethostname(), boot_id(), pid, found.started if found else None)

    @classmethod
    def this(cls) -> Process:
        """Return the calling process."""
        return cls.of(os.getpid())

    @classmethod
    def from_fields(cls, fields: object) -> Process | None:
        """Return the process that `fields` of JSON describe, None if they describe none."""
        if not isinstance(fields, Mapping):
            return None
        host, boot, pid = fields.get("host"), fields.get("boot"), fields.get("pid")
        started = fields.get("started")
        if not (isinstance(host, str) and isinstance(boot, str) and type(pid) is int):
            return None
        return cls(host, boot, pid, started if type(started) is int else None)

    def fields(self) -> dict[str, object]:
        """Return the process as JSON has it."""
        return asdict(self)

    def is_alive(self) -> bool | None:
        """Whether it still runs; None of a process of another host, which cannot be seen."""
        if self.host != socket.gethostname():
            return None
        found = find(self.pid)
        return self.boot == boot_id() and found is not None and found.started == self.started

    def group(self) -> list[int]:
        """Return the processes of the group that it led, as far as this host can see."""
        if self.host != socket.gethostname() or self.boot != boot_id():
            return []
        leader = find(self.pid)  # a number is given again only after its group has ended
        return of_group(self.pid) if leader is None or leader.started == self.started else []
