"""A healthy site of one series, and the check of a command that reports UNKNOWN."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

from tests.factory import line, write_bands, write_perflog
from tests.left_behind import Ended


def site(root: Path, ago: int = 0, **fields: object) -> Path:
    """Make a healthy site of one series at `root`, with its newest sample `ago` days old."""
    now = datetime.now(timezone.utc)
    rows = [
        line(job_completion_time=(now - timedelta(days=days + ago + 0.1)).isoformat(), **fields)
        for days in range(9, -1, -1)
    ]
    write_bands(root / "config" / "bands")
    write_perflog(root / "perflogs", rows)
    return root


def unknown(done: Ended) -> Ended:
    """Check that a command could not do its work and said so in one line; return it."""
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stderr.startswith("IOBANDS UNKNOWN: ")
    assert done.stderr.count("\n") == 1
    return done
