"""What a session left running is found, wherever it went, and ended."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from iobands.session import jobs
from iobands.session.jobs import await_end, cancel_jobs, note_job
from iobands.session.processes import VARIABLE, end_session, of_session


def test_what_a_session_left_is_ended_and_nothing_else() -> None:
    # one in a session of its own that does not want to end, and one of another session
    stubborn = (
        "trap '' TERM; setsid sh -c \"trap '' TERM; echo; while :; do sleep 0.1; done\" & wait"
    )
    with (
        subprocess.Popen(
            ["sh", "-c", stubborn], env={**os.environ, VARIABLE: "mine"}, stdout=subprocess.PIPE
        ) as mine,
        subprocess.Popen(["sleep", "600"], env={**os.environ, VARIABLE: "mine too"}) as other,
    ):
        assert mine.stdout is not None
        mine.stdout.readline()
        number, left = end_session("mine", patience=1)
        status = other.poll()
        other.kill()
        assert (number >= 2, left, of_session("mine"), status) == (True, [], [], None)


def test_jobs_of_a_killed_session_are_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scancel = tmp_path / "bin" / "scancel"
    scancel.parent.mkdir()
    scancel.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/cancelled\nexit 1\n')
    scancel.chmod(0o755)
    monkeypatch.setenv("PATH", f"{scancel.parent}:{os.environ['PATH']}")
    monkeypatch.delenv(VARIABLE, raising=False)
    note_job(tmp_path, "slurm", 11)  # of no session
    monkeypatch.setenv(VARIABLE, "mine")
    for scheduler, job in (("slurm", 12), ("local", 13), ("squeue", "14_1"), ("lsf", 15)):
        note_job(tmp_path, scheduler, job)  # there is no bkill
    assert cancel_jobs(tmp_path) == ["12", "14_1", "15"]
    assert (tmp_path / "cancelled").read_text() == "12\n14_1\n"
    assert cancel_jobs(tmp_path) == []


SQUEUE = """\
#!/bin/sh
echo "$@" >>{0}/asked
case $(wc -l <{0}/asked) in
1) echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1 ;;
2) echo PENDING ;;
3) echo RUNNING ;;
4) echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1 ;;
*) echo COMPLETED ;;
esac
"""


def test_a_job_is_waited_for_that_squeue_could_not_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    squeue = tmp_path / "squeue"
    squeue.write_text(SQUEUE.format(tmp_path))
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(jobs, "_PAUSE", 0)
    asked = tmp_path / "asked"
    await_end("slurm", "7", 600)  # sacct says what has ended
    await_end("squeue", "7", 0)
    assert not asked.exists()
    for times in (4, 5):
        await_end("squeue", "7", 600)
        assert asked.read_text().splitlines() == ["--noheader --jobs=7 --format=%T"] * times
