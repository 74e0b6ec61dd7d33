"""Running programs for a site: short ones to their end, and daemons."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from minisite.errors import SiteError
from minisite.place import Place
from minisite.waiting import PATIENCE_S

#: The environment variable by which `down` finds the processes of a site; no others have it.
MARK = "IOBANDS_MINISITE_PART_OF"


def environment(place: Place) -> dict[str, str]:
    """The environment of the site's own programs, with only a few variables of the caller's."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TZ") if name in os.environ}
    # A user's PATH often has no sbin.
    kept["PATH"] = kept.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
    kept["LC_ALL"] = "C"
    return kept | {MARK: str(place.root)} | user_environment(place)


def user_environment(place: Place) -> dict[str, str]:
    """The variables that name the site to a user's programs; templates/env sets them in a shell."""
    return {
        "IOBANDS_MINISITE": str(place.root),
        "SLURM_CONF": str(place.root / "slurm.conf"),
        "CEPH_CONF": str(place.root / "ceph.conf"),
    }


def run(
    place: Place,
    command: Sequence[str | Path],
    seconds: float = PATIENCE_S,
    given: str | None = None,
) -> str:
    """Run a program to its end; return its output, or raise an error with its message."""
    words = [str(word) for word in command]
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(place),
        )
    except FileNotFoundError as error:
        raise SiteError(f"the program {words[0]} is not installed") from error
    try:
        out, err = process.communicate(given, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        # Do not wait: a process inside a hanging file system cannot even be killed.
        process.kill()
        raise SiteError(f"{' '.join(words)} did not end within {seconds:g} s") from error
    if process.returncode:
        said = (err or out).strip().splitlines()
        raise SiteError(f"{' '.join(words)} failed: {said[-1] if said else process.returncode}")
    return out


def start(place: Place, name: str, command: Sequence[str | Path]) -> subprocess.Popen:
    """Start a daemon; its first output goes to a log file with its name."""
    log = place.logs / f"{name}.out"
    with log.open("ab") as out:
        return subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment(place),
            cwd="/",
            start_new_session=True,
        )
