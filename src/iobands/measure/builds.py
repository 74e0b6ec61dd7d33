"""The benchio that sessions have built and kept, as a canary uses it; `kept.sh` of checks keeps it.

`builds/<system>.<partition>.<environment>` has the name of the build that sessions use there.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path
from typing import Final

from iobands.measure import SessionError
from iobands.model import path_part, read_small

_FILES: Final = ("benchio", "build.out", "environment", "identity", "libraries")
_KEY: Final = re.compile(r"[0-9a-f]{32}\n")
_AGAIN: Final = "`iobands run` builds it again"


def has_build(site: Path, *place: str) -> bool:
    """Whether sessions have kept a build for a system, partition and environment."""
    return _pointer(site, *place).is_file()


def take_build(site: Path, place: tuple[str, str, str], program: Path) -> dict[str, str]:
    """Copy the build for a system, partition and environment to `program`, proven by its checksums.

    Return the variables that its environment sets.

    Raises:
        SessionError: there is none, others could have changed it, or it is damaged.
        OSError: it cannot be copied.
    """
    builds = site / "builds"
    about = builds.lstat()
    if (about.st_uid, about.st_mode) != (os.geteuid(), stat.S_IFDIR | 0o700):
        raise SessionError(f"{builds} must be your own directory, of mode 0700")
    key = read_small(_pointer(site, *place)).decode("ascii", "replace")
    if not _KEY.fullmatch(key):
        raise SessionError(f"{_pointer(site, *place)} is damaged; {_AGAIN}")
    kept = builds / key.strip()
    try:
        found = {name: read_small(kept / name) for name in _FILES}
        sums = read_small(kept / "SHA256SUMS")
    except OSError as error:
        raise SessionError(f"{kept}: {error.strerror}; {_AGAIN}") from error
    proven = [f"{hashlib.sha256(found[name]).hexdigest()}  {name}\n" for name in _FILES]
    if "".join(proven).encode() != sums:
        raise SessionError(f"the benchio in {kept} was damaged or replaced; {_AGAIN}")
    handle = os.open(program, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
    with os.fdopen(handle, "wb") as stream:
        stream.write(found["benchio"])
    lines = found["environment"].decode("utf-8", "surrogateescape").split("\0")
    return dict(line.split("=", 1) for line in lines if "=" in line)


def _pointer(site: Path, *place: str) -> Path:
    return site / "builds" / ".".join(map(path_part, place))
