"""Knowledge of a site from several files together: the sessions of its samples."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from iobands.source.known import read_known
from tests.factory import NOW, case, line, write_perflog, write_report

HOUR = timedelta(hours=1)
# hours ago and patterns of sessions: all, all, one again, and all; the first is no longer read
RUNS = ((900, ("fpp", "ssf")), (3, ("fpp", "ssf")), (2, ("ssf",)), (1, ("fpp", "ssf")))


def moment(hours: float, place: int) -> datetime:
    return NOW - hours * HOUR + place * timedelta(minutes=1)


def sessions(root: Path, **options: object) -> dict[str | None, list[int]]:
    known = read_known(root / "perflogs", root / "bands", root / "alerts", now=NOW, **options)
    return {key.pattern: each.sessions.tolist() for key, each in known.histories.items()}


@pytest.mark.parametrize("as_of", [False, True])
def test_reports_say_which_older_runs_are_of_one_session(tmp_path: Path, as_of: bool) -> None:
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
    assert sessions(tmp_path, as_of=as_of) == {"fpp": [0, 1, 2], "ssf": [0, 1, 2, 3]}
    for number, (hours, patterns) in enumerate(RUNS):
        cases = [
            case(
                display_name=pattern,
                pattern=pattern,
                result="pass",
                job_completion_time_unix=moment(hours, place).timestamp() + 0.4,
            )
            for place, pattern in enumerate(patterns)
        ]
        write_report(tmp_path / "perflogs", cases, days=(hours - 0.5) / 24, number=number)
    assert sessions(tmp_path, as_of=as_of) == {"fpp": [0, 1, 3], "ssf": [0, 1, 2, 3]}
