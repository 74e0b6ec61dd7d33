"""The jobs of a session, noted so that a killed session's are cancelled, and those of a user."""

from __future__ import annotations

import os
import pwd
import subprocess
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from iobands.session.processes import VARIABLE

NAME: Final = ".session.jobs"
_PATIENCE: Final = 30  # seconds for a scheduler's answer
_PAUSE: Final = 2  # seconds between two questions
#: The states in which Slurm has not ended the script of a job.
_GOES_ON: Final = frozenset({"PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "STOPPED"})

#: By ReFrame's name of a scheduler: what cancels a job, and what lists those of a user.
_SLURM: Final = (("scancel",), ("squeue", "--noheader", "--format=%A", "--user"))
_PBS: Final = (("qdel",), ("qselect", "-u"))
_COMMANDS: Final = {
    "slurm": _SLURM,
    "squeue": _SLURM,
    "pbs": _PBS,
    "pbspro": _PBS,
    "torque": _PBS,
    "lsf": (("bkill",), ("bjobs", "-noheader", "-o", "jobid", "-u")),
    # both forms of an identifier
    "flux": (
        ("flux", "cancel"),
        ("flux", "jobs", "--no-header", "--format={id} {id.dec}", "--user"),
    ),
}


@cache
def jobs_of_user(scheduler: str) -> frozenset[str] | None:
    """Return the user's jobs, pending ones too; None if the scheduler cannot be asked."""
    if scheduler not in _COMMANDS:
        return None
    try:
        said = _call([*_COMMANDS[scheduler][1], pwd.getpwuid(os.geteuid()).pw_name])
    except KeyError:
        return None
    # bjobs fails where there is none.
    if said is None or (said.returncode and "No unfinished job found" not in said.stderr):
        return None
    return frozenset(said.stdout.split())


def note_job(perflogs: Path, scheduler: str, jobid: object) -> None:
    """Note a job of this process' session; one of the scheduler `local` is a process, and none."""
    if VARIABLE in os.environ and scheduler in _COMMANDS:
        with (perflogs / NAME).open("a", encoding="utf-8") as stream:
            stream.write(f"{scheduler} {jobid}\n")


def await_end(scheduler: str, jobid: str, seconds: float) -> None:
    """Wait until a job has ended that ReFrame takes for ended, for at most so many `seconds`.

    With the scheduler `squeue` it does so whenever squeue fails, as while slurmctld restarts. The
    job would write on beside the next one.
    """
    until = time.monotonic() + seconds
    while scheduler == "squeue" and time.monotonic() < until and _may_run(jobid):
        time.sleep(_PAUSE)


def _may_run(jobid: str) -> bool:
    """Whether Slurm has not said that a job is over."""
    said = _call(["squeue", "--noheader", f"--jobs={jobid}", "--format=%T"])
    if said is None:
        return True
    if said.returncode:
        return "Invalid job id" not in said.stderr
    return not _GOES_ON.isdisjoint(said.stdout.split())


def forget_jobs(perflogs: Path) -> None:
    """Remove the notes: the jobs have ended."""
    (perflogs / NAME).unlink(missing_ok=True)


def cancel_jobs(perflogs: Path) -> list[str]:
    """Cancel the jobs that are noted, and return them; one that has ended is none of the matter."""
    try:
        lines = (perflogs / NAME).read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    jobs = [(scheduler, job) for scheduler, _, job in (each.partition(" ") for each in lines)]
    for scheduler, job in jobs:
        if scheduler in _COMMANDS and job:
            _call([*_COMMANDS[scheduler][0], job])
    forget_jobs(perflogs)
    return [job for _, job in jobs]


def _call(command: Sequence[str]) -> subprocess.CompletedProcess[str] | None:
    """Return how a command of a scheduler ended, None if it cannot be called or does not answer."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
