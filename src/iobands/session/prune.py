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

_REPORT: Final = re.compile(r"run-report-\d+\.json")
_SESSION: Final = re.compile(r"\d{8}T\d{6}Z-\d+")


def prune(root: Path) -> None:
    """Remove what is too old, and stage directories in which no file is left."""
    now = time.time()
    for path in (root / "perflogs").glob("*/reports/*.json"):
        if _REPORT.fullmatch(path.name) and _is_older(path, now - REPORTS * _DAY):
            with contextlib.suppress(OSError):
                path.unlink()
    for path in (root / "stage").glob("*"):
        if _SESSION.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            old = _is_older(path, now - STAGES * _DAY)
            if old or not any(each.is_symlink() or each.is_file() for each in path.rglob("*")):
                shutil.rmtree(path, ignore_errors=True)


def _is_older(path: Path, moment: float) -> bool:
    try:
        return path.lstat().st_mtime < moment
    except OSError:
        return False
