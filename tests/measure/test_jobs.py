"""The jobs of a session: which are cancelled, and when one is known to be over."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

from iobands.measure import SESSION_ENV, Workplace, lock_path, processes, session
from iobands.measure.documents import write_document
from iobands.measure.processes import (
    JOBS_NAME,
    await_end,
    cancel_jobs,
    cluster_of,
    has_ended,
    note_job,
)
from iobands.measure.reframe import LOG, Ended, Selection
from iobands.measure.session import end_rest, open_session
from iobands.model import COMPLETED, REPEAT, SUSPECT, Ask
from tests.fault_table import Observed

Program = Callable[[str, str], None]

ME = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Makes a fake program of the scheduler, which notes its arguments in a file of its name."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    cluster_of.cache_clear()

    def make(name: str, script: str) -> None:
        path = directory / name
        path.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/{name}\n{script}\n')
        path.chmod(0o755)

    return make


#: A fake squeue that lists the user's jobs of the name that it is given.
SQUEUE = f"""\
case "$*" in
"--noheader --format=%A --user={ME} --name=rfm_EnvProbe") echo 12; echo 14 ;;
"--noheader --format=%A --user={ME} --name=rfm_Other") echo 15 ;;
*) exit 1 ;;
esac
"""


def test_jobs_of_a_killed_session_are_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Program
) -> None:
    program("scancel", "exit 1")
    program("squeue", SQUEUE)
    monkeypatch.delenv(SESSION_ENV, raising=False)
    note_job(tmp_path, "slurm", 11, "rfm_EnvProbe")  # of no session
    monkeypatch.setenv(SESSION_ENV, "mine")
    for scheduler, job in (("slurm", 12), ("local", 13), ("squeue", 14), ("slurm", 16)):
        note_job(tmp_path, scheduler, job, "rfm_EnvProbe")  # 16 has ended
    note_job(tmp_path, "lsf", 17, "rfm_EnvProbe")  # there is no bjobs
    assert cancel_jobs(tmp_path) == [
        "its jobs were cancelled: 12, 14",
        "the scheduler does not answer; these jobs may still run: 17 of lsf",
    ]
    assert (tmp_path / "scancel").read_text() == "-- 12\n-- 14\n"
    assert cancel_jobs(tmp_path) == []


def test_a_job_of_pbs_is_found_by_the_first_letters_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Program
) -> None:
    program("qdel", "")
    program("qselect", '[ "$4" != rfm_BenchioFPP_ ] || echo 2009.vm')  # OpenPBS 23.06
    monkeypatch.setenv(SESSION_ENV, "mine")
    note_job(tmp_path, "pbspro", "2009.vm", "rfm_BenchioFPP_bcc7195b")
    assert cancel_jobs(tmp_path) == ["its jobs were cancelled: 2009.vm"]
    assert (tmp_path / "qdel").read_text() == "2009.vm\n"


@pytest.mark.parametrize("name", ["SQUEUE_STATES", "SCANCEL_STATE"])
def test_filters_of_the_user_hide_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Program, name: str
) -> None:
    program("scancel", f'[ -z "${name}" ] || exit 1')
    program("squeue", f'[ -n "${name}" ] || echo 12')
    monkeypatch.setenv(SESSION_ENV, "mine")
    monkeypatch.setenv(name, "RUNNING")
    note_job(tmp_path, "slurm", 12, "rfm_EnvProbe")
    assert cancel_jobs(tmp_path) == ["its jobs were cancelled: 12"]


def test_jobs_of_one_name_are_cancelled_again(tmp_path: Path, program: Program) -> None:
    """A session that cancels the jobs of a killed one may have to cancel its own later."""
    program("scancel", "")
    for job in (12, 13):
        program("squeue", f"echo {job}")
        (tmp_path / JOBS_NAME).write_text(f"slurm {job} rfm_EnvProbe\n")
        assert cancel_jobs(tmp_path) == [f"its jobs were cancelled: {job}"]


def test_a_session_that_lost_its_lock_leaves_jobs_of_the_next_one(
    tmp_path: Path, program: Program
) -> None:
    """As after the machine was suspended, or a file server was away for hours."""
    program("scancel", "")
    program("squeue", "echo 12")
    with open_session(tmp_path, "iobands run") as (holder, _):
        (tmp_path / JOBS_NAME).write_text("slurm 12 rfm_EnvProbe\n")
        ours = holder.processes[0]
        after = replace(holder, session="the next one", processes=(replace(ours, pid=1),))
        write_document(lock_path(tmp_path), asdict(after))
        assert end_rest(tmp_path, holder.session) == []
    assert (tmp_path / JOBS_NAME).exists()
    assert not (tmp_path / "scancel").exists()


def test_jobs_of_a_reframe_that_was_killed_between_sessions_are_cancelled(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the node ran out of memory: ReFrame was not asked to end and cancelled no job."""
    program("scancel", "")
    program("squeue", "echo 12")
    now, perflogs = datetime.now(timezone.utc), tmp_path / "perflogs"

    def killed(*_: object) -> Ended:
        (perflogs / JOBS_NAME).write_text("slurm 12 rfm_Good\n")
        return Ended(-9, COMPLETED, 1, (), "", (), ())

    monkeypatch.setattr(session.reframe, "run_checks", killed)
    at = Workplace(tmp_path, lambda _: SimpleNamespace(partitions={}))
    place, why, since = ("here", "p", "e", "Good", None), (SUSPECT, ""), now - timedelta(days=1)
    again = session.measure_again(at, lambda: [Ask(*place, *why, ("a",), since)], 60)
    assert again is not None
    assert "its jobs were cancelled: 12" in again.notes


@pytest.mark.parametrize(
    ("hostnames", "measured"), [({"here": ".*a", "there": "b"}, {"here"}), ({}, {"here", "there"})]
)
def test_another_cluster_measures_its_own_suspects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hostnames: dict[str, str], measured: set[str]
) -> None:
    """Two of them may share a site's directory."""
    systems, asked = tmp_path / "config" / "systems", set()
    systems.mkdir(parents=True)
    for name in ("here", "local", "there"):
        (systems / f"{name}.py").touch()
    monkeypatch.setattr(socket, "gethostname", lambda: "login-a")

    def read(system: str) -> SimpleNamespace:
        names = [hostnames[system]] if system in hostnames else []
        return SimpleNamespace(partitions={}, hostnames=["."] if system == "local" else names)

    def run(_: Workplace, selection: Selection, *_more: object) -> Ended:
        asked.add(str(selection.system).partition(":")[0])
        return Ended(0, COMPLETED, 1, (), "", (), ())

    monkeypatch.setattr(session.reframe, "run_checks", run)
    since = datetime.now(timezone.utc) - timedelta(days=1)
    place, why = ("p", "e", "Good", None), (SUSPECT, "")
    asks = [Ask(system, *place, *why, ("a",), since) for system in ("here", "there")]
    session.measure_again(Workplace(tmp_path, read), lambda: asks, 60)
    assert asked == measured


def test_a_wait_for_repeats_that_cannot_begin_ends_no_session(tmp_path: Path) -> None:
    """As on a disk or with a quota that was used up by the runs before."""
    log = tmp_path / "perflogs" / LOG
    log.mkdir(parents=True)  # in its place
    at = Workplace(tmp_path, lambda _: SimpleNamespace(partitions={}))
    low = datetime.now(timezone.utc)
    ask = Ask("here", "p", "e", "Good", None, REPEAT, "", ("a",), low)
    again = session.measure_again(at, lambda: [ask], 60)
    assert again is not None
    assert again.problems == (f"not measured again: {log}: Is a directory",)


HOSTILE = [
    "slurm -u root rfm_EnvProbe",
    "slurm --state=RUNNING rfm_EnvProbe",
    "slurm -uroot",
    "slurm 12",
    "slurm 12 production",
    "slurm 15 rfm_EnvProbe",  # a job of ours, of another name
    "slurm 99 rfm_EnvProbe",  # no job of ours
    "slurm 12,99 rfm_EnvProbe",
    "slurm ALL rfm_EnvProbe",
    "slurm 12 rfm_EnvProbe --name=x",
    "slurm 12 rfm_EnvProbe,rfm_Other",
    "pbs -- rfm_EnvProbe",
    "rm -rf rfm_EnvProbe",
    "\x00\xff",
    "",
]


@pytest.mark.fault(
    "session",
    "notes of jobs that are damaged, or name jobs of others",
    "these are not touched; said",
)
def test_nothing_else_is_cancelled(tmp_path: Path, program: Program, observed: Observed) -> None:
    program("scancel", "")
    program("qdel", "")
    program("squeue", SQUEUE)
    (tmp_path / JOBS_NAME).write_text("\n".join(HOSTILE))
    (said,) = cancel_jobs(tmp_path)
    assert said.endswith(f"{len(HOSTILE) - 3} lines are not jobs of a session; they were ignored")
    assert not (tmp_path / "scancel").exists()
    assert not (tmp_path / "qdel").exists()
    (tmp_path / JOBS_NAME).write_text("slurm 12 rfm_EnvProbe\n")
    again = cancel_jobs(tmp_path)
    observed(
        message=said,
        exit_status=0,
        left=[],
        next_run=again == ["its jobs were cancelled: 12"],
    )


@pytest.mark.parametrize("listed", ["echo 12 '<html>'", "echo error; exit 1"])
def test_a_list_that_is_none_cancels_nothing(tmp_path: Path, program: Program, listed: str) -> None:
    program("scancel", "")
    program("squeue", listed)
    (tmp_path / JOBS_NAME).write_text("slurm 12 rfm_EnvProbe\n")
    assert cancel_jobs(tmp_path) == [
        "the scheduler does not answer; these jobs may still run: 12 of slurm"
    ]
    assert not (tmp_path / "scancel").exists()


def test_notes_that_are_a_pipe_are_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / JOBS_NAME)
    (said,) = cancel_jobs(tmp_path)
    assert "is not a regular file" in said
    monkeypatch.setenv(SESSION_ENV, "mine")
    with pytest.raises(OSError, match="No such device"):
        note_job(tmp_path, "slurm", 12, "rfm_EnvProbe")


@pytest.mark.parametrize(
    ("scheduler", "name", "says", "is_over"),
    [
        ("slurm", "squeue", "echo RUNNING", False),
        ("slurm", "squeue", "echo COMPLETING", False),  # its processes may still write
        ("slurm", "squeue", "echo REQUEUE_HOLD", False),
        ("slurm", "squeue", "echo EXPEDITING", False),
        ("slurm", "squeue", "echo CANCELLED", True),
        ("slurm", "squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2", True),
        ("slurm", "squeue", "true", None),
        ("slurm", "squeue", "echo '<html>COMPLETED</html>'", None),
        ("slurm", "squeue", "echo 'Unable to contact slurm controller' >&2; exit 1", None),
        ("pbs", "qstat", "echo '    job_state = R'", False),
        ("pbs", "qstat", "echo '    job_state = F'", True),
        ("pbs", "qstat", "echo 'qstat: Unknown Job Id 12' >&2; exit 153", True),
        ("pbs", "qstat", "echo 'cannot connect to server' >&2; exit 111", None),
        ("lsf", "bjobs", "echo RUN", False),
        ("lsf", "bjobs", "echo EXIT", True),
        ("lsf", "bjobs", "echo 'Job <12> is not found' >&2; exit 255", True),
        ("flux", "flux", "echo RUN", False),
        ("flux", "flux", "echo INACTIVE", True),
        ("sge", "qstat", "echo", None),
    ],
)
def test_a_job_is_over_when_its_scheduler_says_so(
    program: Program, scheduler: str, name: str, says: str, is_over: bool | None
) -> None:
    program(name, says)
    assert has_ended(scheduler, "12") is is_over
    assert has_ended(scheduler, "--all") is None


@pytest.mark.parametrize(
    ("scheduler", "name", "says", "cluster"),
    [
        ("slurm", "scontrol", "echo 'ClusterName             = mini'", "mini"),
        ("pbspro", "qstat", "echo 'Server: pbs01'", "pbs01"),
        ("lsf", "lsid", "echo 'My cluster name is lsf1'", "lsf1"),
        ("slurm", "scontrol", "exit 1", None),
        ("local", "scontrol", "", None),
    ],
)
def test_the_cluster_is_what_the_scheduler_says(
    program: Program, scheduler: str, name: str, says: str, cluster: str | None
) -> None:
    program(name, says)
    assert cluster_of(scheduler) == cluster


ANSWERS = """\
case $(wc -l <{}/squeue) in
1) echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1 ;;
2) echo PENDING ;;
3) echo RUNNING ;;
4) echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1 ;;
*) echo COMPLETED ;;
esac
"""


def test_a_job_is_waited_for_that_squeue_could_not_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Program
) -> None:
    program("squeue", ANSWERS.format(tmp_path))
    monkeypatch.setattr(processes, "_PAUSE", 0)
    asked = tmp_path / "squeue"
    await_end("slurm", "7", 600)  # sacct knows the jobs that have ended
    await_end("squeue", "7", 0)
    assert not asked.exists()
    for times in (4, 5):
        await_end("squeue", "7", 600)
        question = "--noheader --states=all --format=%T --jobs=7"
        assert asked.read_text().splitlines() == [question] * times
