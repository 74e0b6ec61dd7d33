"""Pruning by age: run reports and the stage directories of past sessions; perflogs never."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import time
from pathlib import Path
from typing import Final

_DAY: Final = 86_400
#: How long a run report is kept, in days: what it alone knows are runs without a sample.
REPORTS: Final = 400
#: How long the stage directories of failed checks are kept, in days.
STAGES: Final = 30

_RECENT: Final = 10

_REPORT: Final = re.compile(r"run-report-\d+\.json")
_SESSION: Final = re.compile(r"\d{8}T\d{6}Z-\d+")


def prune(root: Path) -> None:
    """Remove what is too old, and stage directories in which no file is left.

    A clock alone makes nothing old: it must have dated reports of `_RECENT` days that are kept.
    What others can have put there stays.
    """
    reports = [
        path
        for path in (root / "perflogs").glob("*/reports/*.json")
        if _REPORT.fullmatch(path.name) and _is_ours(path, root)
    ]
    today = int(time.time() // _DAY)
    recent = {day for path in reports if (day := _day(path)) >= today - REPORTS}
    is_known = len(recent) >= _RECENT
    for path in reports:
        if is_known and 0 < _day(path) < today - REPORTS:
            with contextlib.suppress(OSError):
                path.unlink()
    for path in (root / "stage").glob("*"):
        if _SESSION.fullmatch(path.name) and _is_ours(path, root) and path.is_dir():
            old = is_known and 0 < _day(path) < today - STAGES
            if old or not any(each.is_symlink() or each.is_file() for each in path.rglob("*")):
                shutil.rmtree(path, ignore_errors=True)


def _is_ours(path: Path, root: Path) -> bool:
    """Whether this user owns `path` and no other user can have renamed it to its name.

    No directory on the way from `root` is writable by all. A link in `root` itself, where only this
    user writes, is meant so; no other is followed.
    """
    *between, top = path.parents[: len(path.relative_to(root).parts) - 1]
    try:
        modes = [top.stat().st_mode, *(each.lstat().st_mode for each in between)]
        found = path.lstat()
    except OSError:
        return False
    return (
        found.st_uid == os.geteuid()
        and not stat.S_ISLNK(found.st_mode)
        and all(stat.S_ISDIR(mode) and not mode & stat.S_IWOTH for mode in modes)
    )


def _day(path: Path) -> int:
    """Return the day of the last change since 1970, 0 where it is not known."""
    try:
        return int(path.lstat().st_mtime // _DAY)
    except OSError:
        return 0
