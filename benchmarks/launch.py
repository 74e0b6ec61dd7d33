"""Starting programs, under mpirun or alone, with error messages that quote their output."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import Final

from benchmarks.errors import BenchmarkError, HangError

_LONGEST_RUN_S: Final = 300
_LINES_OF_MESSAGE: Final = 5
# Allows more ranks than cores, and a run as root in a container.
_MPI_SETTINGS: Final = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_btl_base_warn_component_unused": "0",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_mapby": ":oversubscribe",
}
_ROOT_SETTINGS: Final = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(command: Sequence[object]) -> str:
    """Run a command to its end and return what it printed.

    Raises:
        BenchmarkError: it failed.
        HangError: it did not end.
    """
    words = [str(word) for word in command]
    settings = _MPI_SETTINGS | (_ROOT_SETTINGS if os.geteuid() == 0 else {})
    try:
        done = subprocess.run(
            words,
            env=settings | dict(os.environ),
            capture_output=True,
            text=True,
            timeout=_LONGEST_RUN_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise HangError(f"{' '.join(words)} did not end in {_LONGEST_RUN_S} s") from error
    except OSError as error:
        raise BenchmarkError(f"{' '.join(words)}: {error}") from error
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip().splitlines()[:_LINES_OF_MESSAGE]
        raise BenchmarkError(f"{' '.join(words)} failed: {' / '.join(said)}")
    return done.stdout


def run_ranks(ranks: int, command: Sequence[object]) -> str:
    """Run a command on this many MPI ranks and return what they printed."""
    return run(["mpirun", "-n", ranks, *command])
