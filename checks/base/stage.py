"""The stage directory: the output of jobs, and the scripts that they source."""

import shlex
import shutil
import time
from collections.abc import Iterable
from pathlib import Path


def read_output(*paths: Path) -> str:
    """The text of these files one after the other; a missing file counts as empty."""
    return "\n".join(
        path.read_text(encoding="utf-8", errors="replace") for path in paths if path.exists()
    )


def await_files(stage: Path, names: Iterable[str], seconds: float) -> None:
    """Wait at most this many `seconds` for files that a job on other nodes has left.

    An NFS client may show them only when its cached attributes are a minute old.
    """
    until = time.monotonic() + seconds
    while not {*names} <= {path.name for path in stage.iterdir()} and time.monotonic() < until:
        time.sleep(1)


def seconds_between(stage: Path, before: str, after: str) -> float | None:
    """The time between the last changes of two files; None if one is missing."""
    try:
        return (stage / after).stat().st_mtime - (stage / before).stat().st_mtime
    except OSError:
        return None


def copy_scripts(scripts: Iterable[Path], directory: Path) -> None:
    """Copy shell scripts into a stage directory, so that jobs do not read the checkout."""
    for script in scripts:
        shutil.copy(script, directory)


def call(command: str, *arguments: object) -> str:
    """A shell command with each argument quoted."""
    return shlex.join([command, *map(str, arguments)])
