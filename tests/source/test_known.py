"""Knowledge of a site from several files together: the sessions of its samples."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from iobands.source.known import read_known
from tests.factory import NOW, line, write_perflog

HOUR = timedelta(hours=1)
# hours ago and patterns of sessions: all, all, one again, and all
RUNS = ((900, ("fpp", "ssf")), (3, ("fpp", "ssf")), (2, ("ssf",)), (1, ("fpp", "ssf")))


def moment(hours: float, place: int) -> datetime:
    return NOW - hours * HOUR + place * timedelta(minutes=1)


def sessions(root: Path) -> dict[str | None, list[int]]:
    known = read_known(root / "perflogs", root / "bands", root / "alerts", now=NOW)
    return {key.pattern: each.sessions.tolist() for key, each in known.histories.items()}


def test_older_runs_of_one_day_are_of_one_session(tmp_path: Path) -> None:
    rows = [
        line(
            job_completion_time=moment(hours, place).isoformat(),
            pattern=pattern,
            display_name=pattern,
        )
        for hours, patterns in RUNS
        for place, pattern in enumerate(patterns)
    ]
    write_perflog(tmp_path / "perflogs", rows)
    # the n-th runs of each series on a day go together
    assert sessions(tmp_path) == {"fpp": [0, 1, 2], "ssf": [0, 1, 2, 3]}
