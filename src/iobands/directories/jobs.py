"""Which jobs of this user a scheduler still has, pending ones too."""

from __future__ import annotations

import os
import pwd
import subprocess
from functools import cache
from typing import Final

_PATIENCE_SECONDS: Final = 30

_SLURM: Final = ["squeue", "--noheader", "--format=%A", "--user"]
_PBS: Final = ["qselect", "-u"]
_COMMANDS: Final = {
    "slurm": _SLURM,
    "squeue": _SLURM,
    "pbs": _PBS,
    "pbspro": _PBS,
    "torque": _PBS,
    "lsf": ["bjobs", "-noheader", "-o", "jobid", "-u"],
    # both forms of an identifier
    "flux": ["flux", "jobs", "--no-header", "--format={id} {id.dec}", "--user"],
}


@cache
def jobs_of_user(scheduler: str) -> frozenset[str] | None:
    """Return the identifiers of the user's jobs, None if the scheduler cannot be asked."""
    if scheduler not in _COMMANDS:
        return None
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
        said = subprocess.run(
            [*_COMMANDS[scheduler], user],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, KeyError, subprocess.TimeoutExpired):
        return None
    # bjobs fails where there is none.
    if said.returncode and "No unfinished job found" not in said.stderr:
        return None
    return frozenset(said.stdout.split())
