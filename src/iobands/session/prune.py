"""Pruning by age: run reports and the stage directories of past sessions; perflogs never."""

from __future__ import annotations

import contextlib
import re
import shutil
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
    """
    reports = [
        path
        for path in (root / "perflogs").glob("*/reports/*.json")
        if _REPORT.fullmatch(path.name)
    ]
    today = int(time.time() // _DAY)
    recent = {day for path in reports if (day := _day(path)) >= today - REPORTS}
    is_known = len(recent) >= _RECENT
    for path in reports:
        if is_known and 0 < _day(path) < today - REPORTS:
            with contextlib.suppress(OSError):
                path.unlink()
    for path in (root / "stage").glob("*"):
        if _SESSION.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            old = is_known and 0 < _day(path) < today - STAGES
            if old or not any(each.is_symlink() or each.is_file() for each in path.rglob("*")):
                shutil.rmtree(path, ignore_errors=True)


def _day(path: Path) -> int:
    """Return the day of the last change since 1970, 0 where it is not known."""
    try:
        return int(path.lstat().st_mtime // _DAY)
    except OSError:
        return 0
