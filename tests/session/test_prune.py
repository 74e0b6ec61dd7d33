"""Pruning by age: what is removed, and that perflogs and what is not ours never are."""

from __future__ import annotations

import os
import time
from pathlib import Path

from iobands.session.prune import REPORTS, STAGES, prune
from tests.left_behind import files


def aged(path: Path, days: float) -> Path:
    """Make a file, or age a directory."""
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
