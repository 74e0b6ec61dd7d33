"""`iobands run` with a real ReFrame on trivial checks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from iobands.alerts.alert import Severity
from iobands.commands.options import find_root
from iobands.commands.site import SiteOptions, site_of
from iobands.session.lock import acquire, new_holder, read_holder
from iobands.session.processes import of_session
from iobands.session.reconcile import reconcile, report_files
from iobands.session.record import INTERRUPTED, KILLED, LIMIT, begin_record, read_last_session
from iobands.site.site import Site
from iobands.status.series import Series
from iobands.status.state import State
from tests.commands.fake_root import make_root
from tests.conftest import Command
from tests.factory import line, write_perflog
from tests.fault_table import Observed
from tests.left_behind import files, left_behind
from tests.notify.servers import Web, web_server
from tests.sites import levels

pytestmark = pytest.mark.machine

pytest.importorskip("reframe")

SOURCE = Path(__file__).resolve().parents[2] / "src"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path)


def measured(root: Path) -> Site:
    return site_of(SiteOptions(root=root))


def states(root: Path) -> dict[str, State]:
    return {series.label: series.status.state for series in measured(root).series}


@pytest.fixture
def pings(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """What a session of `iobands run --notify` pings."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with web_server() as web:
        settings = {"schema": 1, "ping": f"{web.url}/uuid"}
        (root / "config" / "notify.yaml").write_text(json.dumps(settings))
        yield web


def test_run_measures_and_prints_the_digest(root: Path, iobands: Command, pings: Web) -> None:
    done = iobands("run", "--notify", "--report", str(root / "page"), cwd=root / "checks")
    first, last = pings.asked
    assert (first.path, last.path) == ("/uuid/start", "/uuid")
    assert last.body == done.stdout.splitlines()[0]
    assert (done.returncode, done.stderr) == (0, "")
    assert states(root) == {
        "disk fpp write_bw": State.CALIBRATING,
        "disk ssf write_bw": State.CALIBRATING,
    }
    # the digest, and nothing of what ReFrame says
    assert done.stdout.startswith("IOBANDS OK")
    assert "[ RUN" not in done.stdout
    assert "[ RUN      ] Good" in (root / "perflogs" / "iobands-run.log").read_text()
    assert (root / "page" / "index.html").is_file()


def test_verbose_shows_what_reframe_says_and_arguments_go_through(
    root: Path, iobands: Command
) -> None:
    done = iobands("run", "--verbose", "--", "-n", "Good", cwd=root)
    assert done.returncode == 0
    assert "(1/1) Good" in done.stdout
    assert list(states(root)) == ["disk fpp write_bw"]


@pytest.mark.fault("session", "a check cannot start", "no rate; unknown, and the reason")
@pytest.mark.fault("session", "a run proves nothing", "no rate; unknown, and the reason")
def test_a_run_that_proves_nothing_and_a_check_that_cannot_start(
    root: Path, iobands: Command, observed: Observed
) -> None:
    done = iobands("run", "--tag", "broken", cwd=root)
    assert done.returncode == 3
    lost, failed = measured(root).alerts
    assert (lost.severity, lost.subject) == (Severity.NO_DATA, "other fpp write_bw")
    assert "sanity error: pattern 'write' not found" in lost.reason
    assert (failed.severity, failed.subject) == (Severity.FAILED, "Unstarted")
    assert "oserror: no such file system" in failed.reason
    again = iobands("run", cwd=root)
    for fault, alert in (("a run proves nothing", lost), ("a check cannot start", failed)):
        observed(
            fault,
            message=f"{alert.severity.value}  {alert.subject}  {alert.reason}",
            exit_status=done.returncode,
            left=done.left,
            next_run="disk fpp write_bw" in states(root) and again.returncode == 3,
        )


@pytest.mark.fault("session", "no check is selected", "unknown, and the tag")
def test_nothing_selected_is_an_error(
    root: Path, iobands: Command, pings: Web, observed: Observed
) -> None:
    done = iobands("run", "--notify", "--tag", "weekly", cwd=root)
    assert (done.returncode, done.stdout) == (3, "")
    assert "weekly" in done.stderr
    assert [each.path for each in pings.asked] == ["/uuid/start", "/uuid/fail"]
    assert "weekly" in pings.asked[1].body
    again = iobands("run", "--", "-n", "Good", cwd=root)
    observed(
        **done.cells(),
        next_run=again.returncode == 0,
    )


NOT_IMPORTABLE = """\
import reframe as rfm
import nowhere_to_be_found

@rfm.simple_test
class Broken(rfm.RunOnlyRegressionTest):
    tags = {"daily"}
"""
RAISES = """\
import reframe as rfm
from reframe.core.builtins import *

@rfm.simple_test
class Raises(rfm.RunOnlyRegressionTest):
    tags = {"daily"}

    @run_after("init")
    def fail(self):
        raise ValueError("no bands")
"""


@pytest.mark.fault("session", "a check cannot be loaded", "the others run; unknown, and why")
def test_checks_that_do_not_load_are_an_error(
    root: Path, iobands: Command, observed: Observed
) -> None:
    (root / "checks" / "broken.py").write_text(NOT_IMPORTABLE)
    (root / "checks" / "raises.py").write_text(RAISES)
    done = iobands("run", cwd=root)
    assert done.returncode == 3
    assert len(states(root)) == 2  # the others did run
    assert "broken.py" in done.stderr
    assert "'Raises': value error: no bands" in done.stderr
    for name in ("broken.py", "raises.py"):
        (root / "checks" / name).unlink()
    again = iobands("run", "--", "-n", "Good", cwd=root)
    observed(
        **done.cells(),
        next_run=again.returncode == 0,
    )


@pytest.mark.fault("session", "site configuration that is no Python", "unknown, and why")
def test_a_broken_configuration_is_an_error(
    root: Path, iobands: Command, observed: Observed
) -> None:
    path = root / "config" / "site.py"
    right = path.read_text()
    path.write_text("site_configuration = (\n")
    done = iobands("run", cwd=root)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("IOBANDS UNKNOWN: ")
    assert f"{path}, line 1: SyntaxError: " in done.stderr
    assert done.stderr.count("\n") == 1
    path.write_text(right)
    again = iobands("run", "--", "-n", "Good", cwd=root)
    observed(
        **done.cells(),
        next_run=again.returncode == 0,
    )


def test_reports_that_lie_elsewhere_are_an_error(root: Path, iobands: Command) -> None:
    path = root / "config" / "site.py"
    path.write_text(path.read_text().replace("perflogs/here/reports/", ""))
    done = iobands("run", cwd=root)
    assert (done.returncode, done.stdout) == (3, "")
    assert "iobands-run.log" in done.stderr


def test_no_root(tmp_path: Path, iobands: Command) -> None:
    for arguments in ((), ("--root", str(tmp_path))):
        done = iobands("run", *arguments)
        assert done.returncode == 3
        assert "config/site.py" in done.stderr


def test_root_is_the_nearest(root: Path) -> None:
    assert find_root(root / "checks") == root.resolve()
    assert find_root(Path("/")) is None


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
    """A session in the middle of its first job, which never ends by itself."""
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


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what must come; the bound is generous, since it only ends a failed test."""
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


@pytest.mark.fault("session", "`iobands run` during a session", "refused; who measures, since when")
@pytest.mark.fault("session", "`reframe -r` during a session", "refused; who measures, since when")
@pytest.mark.fault("session", "SIGTERM in the middle", "its jobs and processes end; it says so")
def test_being_ended_ends_reframe_and_its_job(
    root: Path,
    before: frozenset[Path],
    hanging: subprocess.Popen[str],
    iobands: Command,
    observed: Observed,
) -> None:
    perflogs = root / "perflogs"
    holder = read_holder(perflogs)
    assert holder is not None
    assert len(of_session(holder.session)) > 1  # ReFrame, and what its job runs

    # meanwhile nobody else measures, and listing is free
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
    assert of_session(holder.session) == []
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


@pytest.mark.fault(
    "session", "SIGKILL in the middle", "what it left is ended before the next one begins"
)
def test_a_killed_session_is_taken_over(
    root: Path,
    before: frozenset[Path],
    hanging: subprocess.Popen[str],
    iobands: Command,
    observed: Observed,
) -> None:
    perflogs = root / "perflogs"
    holder = read_holder(perflogs)
    assert holder is not None
    hanging.kill()
    hanging.wait()
    wait_until(lambda: holder.is_stale)  # the kernel asks ReFrame to end
    left = left_behind(root, before)
    last = read_last_session(perflogs)
    assert last is not None
    assert last.how == KILLED
    done = iobands("run", cwd=root)
    assert done.returncode == 0
    assert holder.began in done.stderr
    assert of_session(holder.session) == []
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
    holder = replace(new_holder("iobands run"), boot="before")
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
    observed(
        **done.cells(),
        next_run=again.returncode == 0,
    )


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
    """The environment of processes whose clock is an hour behind while a file is there."""
    library = tmp_path / "clock.so"
    source = Path(__file__).parents[1] / "programs" / "clock.c"
    warnings = ("-Wall", "-Wextra", "-Werror")
    subprocess.run(["mpicc", *warnings, "-shared", "-fPIC", "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library), "CLOCK_IS_BACK": str(tmp_path / "is-back")}


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


CUT_OFF = """\
#!/bin/sh
{reframe} "$@"
status=$?
truncate -s -90 perflogs/here/reports/*.json
exit $status
"""


@pytest.mark.fault(
    "session", "run report cut off while an alert is open", "the digest; the known loss goes first"
)
def test_a_damaged_report_hides_no_alert(
    root: Path, tmp_path: Path, iobands: Command, observed: Observed
) -> None:
    now = datetime.now(timezone.utc)
    values = levels((90, 3.0), (20, 1.0))
    days = range(len(values), 0, -1)
    times = [(now - timedelta(days=ago)).isoformat() for ago in days]
    lines = [
        line(job_completion_time=when, perf_value=value, fsync="null", cache="null")
        for when, value in zip(times, values, strict=True)
    ]
    write_perflog(root / "perflogs", lines, name="Good.log")
    program = tmp_path / "bin" / "reframe"
    program.parent.mkdir()
    program.write_text(CUT_OFF.format(reframe=Path(sys.executable).with_name("reframe")))
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    done = iobands("run", "--", "-n", "Good", cwd=root, PATH=path)
    assert done.returncode == 2, done.stderr
    assert done.stdout.startswith("IOBANDS CRITICAL: 1 degraded")
    assert len(by_label(root)["disk fpp write_bw"].history.values) == len(values) + 1
    again = iobands("run", "--", "-n", "Good", cwd=root)
    observed(**done.cells(), next_run=(again.returncode, again.stderr) == (2, ""))


TEAR = """\
import os
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import *
from trivial import Base


@rfm.simple_test
class Tear(Base):
    executable_opts = ["write 1.5"]

    @run_after("init")
    def wait(self):
        self.depends_on("Good")

    @run_before("run")
    def tear(self):
        perflog = Path(__file__).parents[1] / "perflogs" / "here" / "local" / "Good.log"
        if os.environ["FAULT"] == "torn":
            os.truncate(perflog, perflog.stat().st_size - 9)
        else:
            perflog.unlink()
            perflog.mkdir()
"""


@pytest.mark.fault("session", "a perflog line is lost or torn", "written from the run report; said")
@pytest.mark.fault("session", "a sample can be written nowhere", "unknown; the sample is named")
def test_a_value_that_is_not_in_the_perflog_is_written_from_the_report(
    root: Path, iobands: Command, observed: Observed
) -> None:
    assert iobands("run", "--", "-n", "Good", cwd=root).returncode == 0
    perflogs = root / "perflogs"
    (perflog,) = perflogs.glob("here/local/Good.log")
    (report,) = report_files(perflogs)
    written = perflog.read_bytes()
    assert reconcile(report, perflogs).values == 1
    assert perflog.read_bytes() == written
    header, line = written.splitlines(keepends=True)
    for left in (header, header + line[:-9], header + line[:-1]):
        perflog.write_bytes(left)
        found = reconcile(report, perflogs)
        assert (len(found.restored), found.lost) == (1, ())
        assert perflog.read_bytes().endswith(b"\n" + line)
    (root / "checks" / "tear.py").write_text(TEAR)
    torn = iobands("run", "--", "-n", "Tear", cwd=root, FAULT="torn")
    assert (torn.returncode, "written from the report" in torn.stderr) == (0, True)
    lost = iobands("run", "--", "-n", "Tear", cwd=root, FAULT="lost")
    assert (lost.returncode, "Good write_bw 1.5 GiB/s could not be" in lost.stderr) == (3, True)
    perflog.rmdir()
    again = iobands("run", "--", "-n", "Good", cwd=root).returncode == 0
    for fault, done in (
        ("a perflog line is lost or torn", torn),
        ("a sample can be written nowhere", lost),
    ):
        observed(
            fault,
            **done.cells(),
            next_run=again,
        )


LOST = """\
import os
import reframe as rfm
from reframe.core.builtins import *
from reframe.core.exceptions import SanityError
from trivial import Base


@rfm.simple_test
class Lost(Base):
    tags = {"lossy"}
    executable_opts = ["write 1.0"]
    attempt = variable(int, value=int(os.environ["IOBANDS_ATTEMPT"]), loggable=True)

    @run_before("sanity")
    def lose(self):
        if self.attempt == 1:
            raise SanityError("JOB 7 ON n1 CANCELLED AT 05:30 DUE TO NODE FAILURE")


@rfm.simple_test
class Low(Base):
    tags = {"lossy"}
    file_system = "low"
    executable_opts = ["write 0.25"]
    reference = {"*": {"write_bw": (1.0, -0.5, None, "GiB/s")}}
"""


@pytest.mark.fault("session", "a node is lost", "run once more, and the sample says so")
def test_what_infrastructure_spoilt_is_run_once_more_and_a_low_rate_is_not(
    root: Path, iobands: Command, observed: Observed
) -> None:
    (root / "checks" / "lost.py").write_text(LOST)
    done = iobands("run", "--tag", "lossy", cwd=root)
    assert (done.returncode, "DUE TO NODE FAILURE" in done.stderr) == (0, True)
    last = read_last_session(root / "perflogs")
    assert last is not None
    assert last.counts["repeated"] == 1
    reports = [json.loads(path.read_bytes()) for path in report_files(root / "perflogs")]
    cases = [[case for run in each["runs"] for case in run["testcases"]] for each in reports]
    first, second = cases
    assert {(case["name"], case["result"]) for case in first} == {("Lost", "fail"), ("Low", "fail")}
    assert [(case["name"], case["result"], case["attempt"]) for case in second] == [
        ("Lost", "pass", 2)
    ]
    again = iobands("run", "--", "-n", "Good", cwd=root)
    observed(
        **done.cells(),
        next_run=again.returncode == 0,
    )
    assert {label: len(each.history.values) for label, each in by_label(root).items()} == {
        "disk fpp write_bw": 2,
        "low fpp write_bw": 1,
    }


def by_label(root: Path) -> dict[str, Series]:
    return {series.label: series for series in measured(root).series}
