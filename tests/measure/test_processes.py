"""Processes that a session left running are found, even in other sessions, and ended."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from iobands.measure import SESSION_ENV, processes
from iobands.measure.processes import end_session, processes_of


def test_what_a_session_left_is_ended_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_GRACE", 1)
    # one that ignores SIGTERM in a process session of its own, and one of another iobands session
    stubborn = (
        "trap '' TERM; setsid sh -c \"trap '' TERM; echo; while :; do sleep 0.1; done\" & wait"
    )
    with (
        subprocess.Popen(
            ["sh", "-c", stubborn], env={**os.environ, SESSION_ENV: "mine"}, stdout=subprocess.PIPE
        ) as mine,
        subprocess.Popen(["sleep", "600"], env={**os.environ, SESSION_ENV: "mine too"}) as other,
    ):
        assert mine.stdout is not None
        mine.stdout.readline()
        number, left = end_session("mine")
        status = other.poll()
        other.kill()
        assert (number >= 2, left, processes_of("mine"), status) == (True, [], [], None)


def test_a_qsub_that_waits_for_further_jobs_is_ended_without_a_word(tmp_path: Path) -> None:
    qsub = shutil.copy("/bin/sh", tmp_path / "qsub")
    env = {**os.environ, SESSION_ENV: "mine"}
    with subprocess.Popen([qsub, "-c", "read line"], env=env, stdin=subprocess.PIPE) as mine:
        found = [each.pid for each in processes_of("mine")]
        assert (found, end_session("mine")) == ([mine.pid], (0, []))
