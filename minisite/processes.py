"""The processes of a site: found by their environment, ended one by one, never by name alone."""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from minisite.commands import MARK
from minisite.place import Place

#: Programs that overwrite their environment with a title, so that it cannot be read.
RETITLED = "slurmstepd"


@dataclass(frozen=True)
class Process:
    """A process; its start time distinguishes it from a later one with the same id."""

    pid: int
    started: str
    parent: int
    name: str


def _look(pid: int) -> Process | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    name = stat[stat.index("(") + 1 : stat.rindex(")")]
    fields = stat[stat.rindex(")") + 2 :].split()
    if fields[0] in "ZX":
        return None
    return Process(pid, started=fields[19], parent=int(fields[1]), name=name)


def _environment(pid: int) -> dict[str, str]:
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return {}
    return dict(item.split("=", 1) for item in text.split("\0") if "=" in item)


def _is_ours(process: Process, place: Place) -> bool:
    environment = _environment(process.pid)
    if environment.get(MARK) == str(place.root):
        return True
    # A process of a job: a user's shell that sourced the site's `env` has only SLURM_CONF.
    if place.has(environment.get("SLURM_CONF", "")) and (
        # A user's srun would wait for the controller forever.
        "SLURMD_NODENAME" in environment or process.name == "srun"
    ):
        return True
    return process.name.startswith(RETITLED) and any(
        place.has(path) for path in _open_paths(process.pid)
    )


def _open_paths(pid: int) -> Iterable[str]:
    links = [Path(f"/proc/{pid}/cwd"), Path(f"/proc/{pid}/root"), Path(f"/proc/{pid}/exe")]
    with suppress(OSError):
        links += list(Path(f"/proc/{pid}/fd").iterdir())
    for link in links:
        with suppress(OSError):
            yield str(link.readlink())


def _all() -> list[Process]:
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [process for process in map(_look, pids) if process is not None]


def find(place: Place) -> list[Process]:
    """Return all processes of a site, and their descendants."""
    everything = _all()
    ours = {process.pid for process in everything if _is_ours(process, place)}
    grown = True
    while grown:
        heirs = {process.pid for process in everything if process.parent in ours} - ours
        ours |= heirs
        grown = bool(heirs)
    ours.discard(os.getpid())
    return [process for process in everything if process.pid in ours]


def roots() -> set[Path]:
    """Return the directories of all sites that have a process."""
    named = (_environment(process.pid).get(MARK) for process in _all())
    return {Path(root) for root in named if root}


def holders(place: Place) -> list[Process]:
    """Return all users' processes with an open file or their working directory in the site's."""
    return [
        process
        for process in _all()
        if process.pid != os.getpid() and any(map(place.has, _open_paths(process.pid)))
    ]


def send(process: Process, number: signal.Signals) -> None:
    """Send a signal to this process only, even if its id has been reused since."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        now = _look(process.pid)
        if now is not None and now.started == process.started:
            with suppress(OSError):
                signal.pidfd_send_signal(handle, number)
    finally:
        os.close(handle)


def end_all(place: Place, patience: float = 10) -> list[Process]:
    """End all processes of the site; return those that still exist after `patience` seconds.

    Sends SIGKILL: their data are removed with the site, and on another signal a client would try
    to return locks to a server that has just ended, and wait for it.
    """
    end = time.monotonic() + patience
    while found := find(place):
        for process in found:
            send(process, signal.SIGKILL)
        if time.monotonic() > end:
            return found
        time.sleep(0.05)
    return []
