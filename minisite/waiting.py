"""Waiting for a condition, with a time limit and a message."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from minisite.errors import SiteError

#: How long a part may take to be ready on a busy machine, in seconds.
PATIENCE_S = 120


def wait_until(
    ready: Callable[[], bool],
    what: str,
    log: Path,
    daemon: subprocess.Popen | None = None,
) -> None:
    """Return once `ready` is true; fail if it takes too long, or the daemon has ended."""
    end = time.monotonic() + PATIENCE_S
    while not ready():
        if daemon is not None and daemon.poll() is not None:
            raise SiteError(f"{what} has ended with status {daemon.returncode}: see {log}")
        if time.monotonic() > end:
            raise SiteError(f"{what} was not ready within {PATIENCE_S} s: see {log}")
        time.sleep(0.1)
