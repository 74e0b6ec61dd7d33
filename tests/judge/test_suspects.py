"""What a run that an earlier one asked for changes, and what it must not."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from iobands.judge.site import read_site
from iobands.snapshot import Snapshot, State
from tests.factory import NOW, case, daily, line, write_perflog, write_report, write_session


def site(root: Path) -> Snapshot:
    return read_site(root / "perflogs", root / "bands", root / "alerts", now=NOW)


@pytest.mark.parametrize(("purpose", "late"), [("suspect", True), ("scheduled", False)])
def test_a_late_session_stays_late(tmp_path: Path, purpose: str, late: bool) -> None:
    rows = daily([1.5] * 30, last=3, interval_days=1, purpose="scheduled")
    when = (NOW - timedelta(hours=1)).isoformat()
    rows.append(line(job_completion_time=when, interval_days=1, purpose=purpose))
    write_perflog(tmp_path / "perflogs", rows)
    write_session(tmp_path / "perflogs", NOW - timedelta(days=3))
    said = [each.reason for each in site(tmp_path).alerts if each.subject == "last session"]
    assert bool(said) == late
    assert all(each.startswith("no session for more than 48 h") for each in said)


@pytest.mark.parametrize(
    ("purpose", "state"), [("suspect", State.HEALTHY), ("scheduled", State.NO_DATA)]
)
def test_a_failure_of_a_run_that_was_asked_for_is_no_missing_sample(
    tmp_path: Path, purpose: str, state: State
) -> None:
    rows = daily([1.5, 1.52, 1.48] * 10, last=0.2, interval_days=1, purpose="scheduled")
    write_perflog(tmp_path / "perflogs", rows)
    write_report(tmp_path / "perflogs", [case(purpose=purpose)], days=0.1)
    (series,) = site(tmp_path).series
    assert series.status.state is state


def test_runs_of_older_perflogs_are_scheduled(tmp_path: Path) -> None:
    path = write_perflog(tmp_path / "perflogs", daily([1.5] * 5))
    lines = [each.split("|") for each in path.read_text().splitlines()]
    place = lines[0].index("purpose")
    older = ["|".join([*cells[:place], *cells[place + 1 :]]) for cells in lines]
    path.write_text("\n".join([*older, ""]))
    (series,) = site(tmp_path).series
    assert len(series.history.routine) == 5
