"""Sessions that are ended, killed or disturbed, and how the next one handles that."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from iobands.measure.lock import (
    Holder,
    acquire,
    begin_record,
    new_holder,
    read_holder,
    read_last_session,
)
from iobands.measure.processes import Process, processes_of
from iobands.measure.run_reports import report_files
from iobands.model import INTERRUPTED, KILLED, LIMIT, SESSION_ENV
from tests.commands.fake_root import by_label, measured, states
from tests.conftest import Command
from tests.fault_table import Observed
from tests.left_behind import files, left_behind
from tests.preloaded import preloaded
from tests.soak.__main__ import clock_library
from tests.waiting import wait_until

pytestmark = pytest.mark.machine

pytest.importorskip("reframe")

SOURCE = Path(__file__).resolve().parents[2] / "src"


STARTED = """\
    @run_before("run")
    def wait(self):
        self.prerun_cmds = ["touch ../../../../../started", "sleep 600"]
"""


@pytest.fixture
def before(root: Path) -> frozenset[Path]:
    """The files of a root where nothing was measured."""
    return files(root)


@pytest.fixture
def hanging(root: Path, before: frozenset[Path]) -> Iterator[subprocess.Popen[str]]:
    """A session in its first job, which never ends by itself."""
    checks = root / "checks" / "trivial.py"
    good = 'executable_opts = ["write 1.5"]\n'
    checks.write_text(checks.read_text().replace(good, f"{good}\n{STARTED}"))
    with subprocess.Popen(
        [sys.executable, "-m", "iobands", "run", "--", "-n", "Good"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        wait_until((root / "started").exists)
        (root / "started").unlink()
        checks.write_text(checks.read_text().replace(STARTED, ""))
        yield child
        child.kill()


@pytest.fixture
def holder(root: Path, hanging: subprocess.Popen[str]) -> Holder:
    """The holder of that session's lock."""
    found = read_holder(root / "perflogs")
    assert found is not None
    return found


@pytest.mark.fault("session", "`iobands run` during a session", "refused; who measures, since when")
@pytest.mark.fault("session", "`reframe -r` during a session", "refused; who measures, since when")
@pytest.mark.fault("session", "SIGTERM in the middle", "its jobs and processes end; it says so")
def test_being_ended_ends_reframe_and_its_job(
    root: Path,
    before: frozenset[Path],
    hanging: subprocess.Popen[str],
    holder: Holder,
    iobands: Command,
    observed: Observed,
) -> None:
    perflogs = root / "perflogs"
    assert len(processes_of(holder.session)) > 1  # ReFrame, and what its job runs

    # meanwhile nobody else can measure, but can list checks
    reframe = [Path(sys.executable).with_name("reframe"), "-C", "config/site.py", "-c", "checks"]
    during = files(root)
    by_hand = subprocess.run(
        [*reframe, "-r"], cwd=root, capture_output=True, text=True, check=False
    )
    left_by_hand = left_behind(root, during)
    refused = iobands("run", cwd=root)
    assert (by_hand.returncode, refused.returncode) == (1, 3)
    for said in (by_hand.stderr, refused.stderr):
        assert str(hanging.pid) in said
        assert holder.began in said
    assert subprocess.run([*reframe, "-l"], cwd=root, check=False).returncode == 0

    hanging.send_signal(signal.SIGTERM)
    _, said = hanging.communicate(timeout=300)
    left = left_behind(root, before)
    assert hanging.returncode == 3, said
    assert processes_of(holder.session) == []
    assert read_holder(perflogs) is None
    last = read_last_session(perflogs)
    assert last is not None
    assert (last.how, last.counts["aborted"]) == (INTERRUPTED, 1)
    again = iobands("run", "--", "-n", "Good", cwd=root).returncode == 0
    for fault, message, status, remains in (
        ("`iobands run` during a session", refused.stderr, refused.returncode, refused.left),
        ("`reframe -r` during a session", by_hand.stderr, by_hand.returncode, left_by_hand),
        ("SIGTERM in the middle", said, hanging.returncode, left),
    ):
        observed(fault, message=message, exit_status=status, left=remains, next_run=again)


def test_being_ended_tells_of_processes_that_did_not_end_with_their_job(
    hanging: subprocess.Popen[str], holder: Holder
) -> None:
    with subprocess.Popen(["sleep", "600"], env={**os.environ, SESSION_ENV: holder.session}):
        hanging.send_signal(signal.SIGTERM)
        _, said = hanging.communicate(timeout=300)
    assert "a signal: 1 of 1 test cases were begun; ended 1 process that the session left" in said


@pytest.mark.fault(
    "session", "SIGKILL in the middle", "what it left is ended before the next one begins"
)
def test_a_killed_session_is_taken_over(
    root: Path,
    before: frozenset[Path],
    hanging: subprocess.Popen[str],
    holder: Holder,
    iobands: Command,
    observed: Observed,
) -> None:
    perflogs = root / "perflogs"
    hanging.kill()
    hanging.wait()
    wait_until(lambda: holder.is_alive is False)  # the kernel asks ReFrame to end
    left = left_behind(root, before)
    last = read_last_session(perflogs)
    assert last is not None
    assert last.how == KILLED
    done = iobands("run", cwd=root)
    assert done.returncode == 0
    assert holder.began in done.stderr
    assert processes_of(holder.session) == []
    assert list(states(root)) == ["disk fpp write_bw", "disk ssf write_bw"]
    observed(
        message=f"{done.stderr.strip().splitlines()[0]} (by the next run)",
        exit_status=hanging.returncode,
        left=left,
        next_run=done.returncode == 0,
    )


@pytest.mark.fault("session", "machine restarts in the middle", "unknown, until the next one")
def test_a_session_before_a_restart_is_taken_over(
    root: Path, iobands: Command, observed: Observed
) -> None:
    run = ("run", "--", "-n", "Good")
    assert iobands(*run, cwd=root).returncode == 0
    before = files(root)
    perflogs = root / "perflogs"
    before_restart = replace(Process.this(), boot="before")
    holder = replace(new_holder("iobands run"), processes=(before_restart,))
    acquire(perflogs, holder)
    begin_record(perflogs, holder, "daily", None)
    left = left_behind(root, before)
    done = iobands("status", cwd=root)
    assert (done.returncode, "last session  killed" in done.stdout) == (3, True)
    again = iobands(*run, cwd=root)
    assert "a session was killed" in again.stderr
    observed(
        message=next(text for text in done.stdout.splitlines() if "last session  " in text),
        exit_status=done.returncode,
        left=left,
        next_run=(again.returncode, iobands("status", cwd=root).returncode) == (0, 0),
    )


@pytest.mark.fault(
    "session", "it takes longer than its limit", "ended; unknown, and what is missing"
)
def test_a_limit_ends_the_session(root: Path, iobands: Command, observed: Observed) -> None:
    checks = root / "checks" / "trivial.py"
    slow = 'executable_opts = ["write 0.25"]\n'
    checks.write_text(checks.read_text().replace(slow, f'{slow}    prerun_cmds = ["sleep 600"]\n'))
    assert iobands("run", "--limit", "0s", cwd=root).returncode == 3
    done = iobands("run", "--limit", "8s", cwd=root)
    assert done.returncode == 3
    last = read_last_session(root / "perflogs")
    assert last is not None
    assert last.how == LIMIT
    assert last.reason is not None
    assert last.reason in done.stderr
    assert last.counts["expected"] == 2
    again = iobands("run", "--", "-n", "Good", cwd=root)
    observed(**done.cells(), next_run=again.returncode == 0)


ODD = """\
import signal
import time
from pathlib import Path

from trivial import *


@rfm.simple_test
class SetBack(Base):
    tags = {"odd"}
    executable_opts = ["write 1.5"]
    prerun_cmds = ["sleep 1", '>>"$CLOCK_IS_BACK"', "sleep 1", "date +%s"]


@rfm.simple_test
class Asked(Base):
    tags = {"odd"}
    executable_opts = ["write 1.5"]

    @run_before("sanity")
    def ask(self):
        try:
            signal.raise_signal(signal.SIGTERM)
            time.sleep(1)
        except Exception:  # as the handlers of logging do
            pass
"""


@pytest.fixture
def clock(tmp_path: Path) -> dict[str, str]:
    """The environment of processes whose clock is an hour behind while a certain file exists."""
    return {**preloaded("clock", tmp_path), "CLOCK_IS_BACK": str(tmp_path / "is-back")}


@pytest.mark.fault("session", "clock is put back an hour in mid-run", "measured to the end")
def test_no_sleep_follows_a_clock_that_is_put_back(
    root: Path, clock: dict[str, str], iobands: Command, observed: Observed
) -> None:
    (root / "checks" / "odd.py").write_text(ODD)
    chosen = ("run", "--limit", "60s", "--tag", "odd", "--", "-n", "SetBack", "--keep-stage-files")
    done = iobands(*chosen, cwd=root, **clock)
    assert (done.returncode, done.stderr) == (0, "")
    (output,) = root.glob("stage/**/rfm_job.out")
    assert 3500 < time.time() - int(output.read_text().split()[0]) < 7200
    shutil.rmtree(root / "stage")
    Path(clock["CLOCK_IS_BACK"]).unlink()
    again = iobands(*chosen, cwd=root)
    assert len(by_label(root)["disk fpp write_bw"].history.values) == 2
    observed(**done.cells(), next_run=again.returncode == 0)


@pytest.mark.fault("session", "SIGTERM while ReFrame logs", "ended; no rate")
def test_a_signal_is_not_lost(root: Path, iobands: Command, observed: Observed) -> None:
    (root / "checks" / "odd.py").write_text(ODD)
    before = files(root)
    reframe = [Path(sys.executable).with_name("reframe"), "-C", "config/site.py", "-c", "checks"]
    done = subprocess.run(
        [*reframe, "-r", "-n", "Asked"], cwd=root, capture_output=True, text=True, check=False
    )
    left = left_behind(root, before)
    assert read_holder(root / "perflogs") is None
    (report,) = report_files(root / "perflogs")
    (case,) = json.loads(report.read_bytes())["runs"][0]["testcases"]
    assert (done.returncode, case["result"], case["perfvalues"]) == (1, "abort", {})
    again = iobands("run", "--", "-n", "Good", cwd=root)
    observed(
        message=next(text for text in done.stderr.splitlines() if "signal" in text),
        exit_status=done.returncode,
        left=left,
        next_run=again.returncode == 0,
    )


@pytest.mark.skipif(clock_library() is None, reason="libfaketime is not installed")
@pytest.mark.fault("session", "one session under a clock of 2066", "nothing is removed; named")
def test_a_session_under_a_clock_of_2066(root: Path, iobands: Command, observed: Observed) -> None:
    """Its files have the right time, as on NFS; tests/measure/test_prune.py has the opposite."""
    command = ("run", "--", "-n", "Good", "--keep-stage-files")
    assert iobands(*command, cwd=root).returncode == 0
    kept = {*report_files(root / "perflogs"), *(root / "stage").glob("*")}
    clock = {"LD_PRELOAD": clock_library() or "", "FAKETIME": "+40y", "NO_FAKE_STAT": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "iobands", *command],
        cwd=root,
        env={**os.environ, **clock, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    (said,) = [each for each in done.stderr.splitlines() if "14600 days ahead of" in each]
    assert done.returncode == 3, done.stderr
    status = iobands("status", cwd=root)
    assert "newest session dated in the future" in status.stdout
    assert "  failed  clock  " in status.stdout
    assert status.returncode == 3
    again = iobands(*command, cwd=root)
    assert {path for path in kept if path.exists()} == kept
    assert "newest session just now: completed" in again.stdout
    (future,) = measured(root).future
    at = future.when.isoformat()
    assert at[:4] == "2066"
    discarded = iobands(
        *("discard", "disk fpp write_bw", "--reason", "a clock", "--at", at), cwd=root
    )
    assert discarded.returncode == 0, discarded.stderr
    observed(
        message=said,
        exit_status=done.returncode,
        left=[],
        next_run=iobands("status", cwd=root).returncode == 0,
    )
