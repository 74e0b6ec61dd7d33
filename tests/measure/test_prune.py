"""Pruning by age: what is removed, and that perflogs and others' files never are."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from iobands.measure.run_directories import REPORTS, STAGES, prune
from tests.left_behind import files


def aged(path: Path, days: float) -> Path:
    """Make a file, or take an existing directory, and set its age."""
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    then = time.time() - days * 86_400
    os.utime(path, (then, then))
    return path


def test_what_is_old_goes_and_perflogs_stay(tmp_path: Path) -> None:
    reports, logs = tmp_path / "perflogs/here/reports", tmp_path / "perflogs/here/local"
    stage = tmp_path / "stage"
    goes = [
        aged(reports / "run-report-1.json", REPORTS + 1),
        aged(stage / "20250101T050000Z-77/here/local/mpi/Ior/rfm_job.out", STAGES + 1),
    ]
    stays = [
        aged(reports / "run-report-2.json", REPORTS - 1),
        aged(reports / "notes.json", 4000),
        aged(logs / "BenchioFPP.log", 4000),
        aged(logs / "BenchioFPP.log.h1", 4000),
        aged(tmp_path / "perflogs/iobands-run.log", 4000),
        aged(stage / "20260101T050000Z-78/here/local/mpi/Ior/rfm_job.out", STAGES - 1),
        aged(stage / "mine/rfm_job.out", 4000),
    ]
    stays += [aged(reports / f"run-report-{day + 10}.json", day) for day in range(10)]
    victim = aged(tmp_path / "elsewhere/file", 4000)
    (stage / "20240101T050000Z-1").symlink_to(victim.parent)
    empty = stage / "20261120T050000Z-79"
    (empty / "here/local").mkdir(parents=True)
    for name, days in (("20250101T050000Z-77", STAGES + 1), ("20260101T050000Z-78", STAGES - 1)):
        aged(stage / name, days)
    aged(stage / "mine", 4000)
    prune(tmp_path)
    left = files(tmp_path)
    assert left.isdisjoint([*goes, empty])
    assert left >= {*stays, victim, stage / "20240101T050000Z-1"}


def test_a_session_under_a_wrong_clock_makes_nothing_old(tmp_path: Path) -> None:
    reports = tmp_path / "perflogs/here/reports"
    kept = {aged(reports / f"run-report-{day}.json", 40 * 365 + day) for day in range(500)}
    stage = aged(tmp_path / "stage/20260101T050000Z-78/rfm_job.out", 40 * 365)
    aged(stage.parent, 40 * 365)
    new = aged(reports / "run-report-500.json", 0)
    prune(tmp_path)
    assert files(tmp_path) >= {*kept, stage, new}


OLD = {
    "perflogs": "perflogs/here/reports/run-report-400.json",
    "perflogs/here": "perflogs/here/reports/run-report-400.json",
    "perflogs/here/reports": "perflogs/here/reports/run-report-400.json",
    "stage": "stage/20250101T050000Z-77",
}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Make a report and a stage directory that are too old."""
    for day in range(10):
        aged(tmp_path / "perflogs/here/reports" / f"run-report-{day}.json", day)
    aged(tmp_path / OLD["perflogs"], REPORTS + 1)
    aged(tmp_path / OLD["stage"] / "rfm_job.out", STAGES + 1)
    aged(tmp_path / OLD["stage"], STAGES + 1)
    return tmp_path


@pytest.mark.parametrize("place", OLD)
def test_a_link_is_followed_only_in_the_root(old: Path, place: str) -> None:
    (old / place).rename(old / "moved")
    (old / place).symlink_to(old / "moved")
    prune(old)
    assert (old / OLD[place]).exists() == ("/" in place)


@pytest.mark.parametrize("place", OLD)
def test_what_others_can_have_renamed_stays(old: Path, place: str) -> None:
    (old / place).chmod(0o777)
    prune(old)
    assert (old / OLD[place]).exists()
    (old / place).chmod(0o775)
    prune(old)
    assert not (old / OLD[place]).exists()


@pytest.mark.needs("other users")
def test_what_another_user_owns_stays(old: Path) -> None:
    for place in OLD.values():
        os.chown(old / place, 1, 1)
    prune(old)
    assert all((old / place).exists() for place in OLD.values())
