"""The jobs of a session that a scheduler runs, noted so that a killed session's are cancelled."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from pathlib import Path
from typing import Final

from iobands.session.processes import VARIABLE

NAME: Final = ".session.jobs"
_PATIENCE: Final = 30  # seconds for a scheduler's answer
_PAUSE: Final = 2  # seconds between two questions
#: The states in which Slurm has not ended the script of a job.
_GOES_ON: Final = frozenset({"PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "STOPPED"})
_CANCEL: Final = {
    "slurm": ("scancel",),
    "squeue": ("scancel",),
    "pbs": ("qdel",),
    "pbspro": ("qdel",),
    "torque": ("qdel",),
    "lsf": ("bkill",),
    "flux": ("flux", "cancel"),
}


def note_job(perflogs: Path, scheduler: str, jobid: object) -> None:
    """Note a job of this process' session; one of the scheduler `local` is a process, and none."""
    if VARIABLE in os.environ and scheduler in _CANCEL:
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
    try:
        said = subprocess.run(
            ["squeue", "--noheader", f"--jobs={jobid}", "--format=%T"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return True
    except OSError:
        return False
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
        if scheduler in _CANCEL and job:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    [*_CANCEL[scheduler], job],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    check=False,
                    timeout=_PATIENCE,
                )
    forget_jobs(perflogs)
    return [job for _, job in jobs]
