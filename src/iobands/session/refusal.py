"""Why no session can begin, with what to do about it."""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
from pathlib import Path


class SessionRefusedError(Exception):
    """No session can begin; the message says why and what to do."""


def refusal(error: OSError, path: Path) -> SessionRefusedError:
    """Return the refusal for an error of the system on `path` below the perflogs."""
    return SessionRefusedError(
        f"{path}: {error.strerror or error}; nothing was measured, as no sample could be "
        f"recorded: {_remedy(error, path)}"
    )


def name_of(uid: int) -> str:
    """Return the name of a user, or the number where there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _remedy(error: OSError, path: Path) -> str:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return "free space there"
    if error.errno == errno.EROFS:
        return "mount it writable"
    there = path if path.exists() else path.parent
    if error.errno == errno.EPERM:
        return f"is it immutable (lsattr -d)? Then chattr -i {there}"
    with contextlib.suppress(OSError):
        owner, me = name_of(there.stat().st_uid), name_of(os.geteuid())
        if owner != me:
            return f"it belongs to {owner}; as root: chown -R {me} {there}"
    return f"look at its mode: ls -ld {there}"
