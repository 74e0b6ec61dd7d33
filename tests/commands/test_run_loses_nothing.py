"""Reports, perflogs and nodes that fail during a session: no sample is lost silently."""

from __future__ import annotations

import gzip
import json
import os
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from iobands.measure import LOG
from iobands.measure.lock import read_last_session
from iobands.measure.perflogs import reconcile
from iobands.measure.run_reports import report_files
from tests.commands.fake_root import by_label
from tests.conftest import Command
from tests.factory import line, write_perflog
from tests.fault_table import Observed
from tests.sites import levels

pytestmark = pytest.mark.machine

pytest.importorskip("reframe")


CUT_OFF = """\
#!/bin/sh
{reframe} "$@"
status=$?
truncate -s -90 perflogs/here/reports/*.json
exit $status
"""


@pytest.mark.fault(
    "session", "run report cut off while an alert is open", "the digest; the known loss comes first"
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
    assert done.stdout.startswith("IOBANDS CRITICAL: alerts: 1 degraded")
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
    assert reconcile([report], perflogs) == ([], [])
    assert perflog.read_bytes() == written
    header, line = written.splitlines(keepends=True)
    for left in (header, header + line[:-9], header + line[:-1]):
        perflog.write_bytes(left)
        notes, lost = reconcile([report], perflogs)
        assert (len(notes), lost) == (1, [])
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


@pytest.mark.fault(
    "session", "a perflog comes from an older backup", "written from older run reports; said"
)
def test_a_perflog_from_a_backup_gets_back_what_older_reports_have(
    root: Path, iobands: Command, observed: Observed
) -> None:
    perflog = root / "perflogs" / "here" / "local" / "Good.log"
    backup = b""
    for number in range(4):
        assert iobands("run", "--", "-n", "Good", cwd=root).returncode == 0
        backup = backup or perflog.read_bytes()
        if number == 1:  # lines that logrotate has moved to another file are not missing
            with gzip.open(f"{perflog}.1.gz", "wb") as packed:
                packed.write(backup)
    every = perflog.read_bytes().splitlines()
    header = every[0]
    perflog.write_bytes(header + b"\n")
    done = iobands("run", "--", "-n", "Good", cwd=root)
    assert "Good write_bw 1.5 GiB/s and 2 more: missing in its perflog" in done.stderr
    header_again, *lines = perflog.read_bytes().splitlines()
    assert header_again == header
    # the first lines are in the compressed file, and the last is of the new session
    assert sorted(lines)[:3] == sorted(every[2:])
    assert len(lines) == 4
    before = perflog.read_bytes()
    again = iobands("run", "--", "-n", "Good", cwd=root)
    assert perflog.read_bytes().startswith(before)
    assert len(perflog.read_bytes().splitlines()) == 6
    observed(**done.cells(), next_run=again.returncode == 0 and "missing" not in again.stderr)


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
    observed(**done.cells(), next_run=again.returncode == 0)
    assert {label: len(each.history.values) for label, each in by_label(root).items()} == {
        "disk fpp write_bw": 2,
        "low fpp write_bw": 1,
    }


PROBED = """\
import os
import reframe as rfm
from reframe.core.builtins import *
from reframe.core.exceptions import SanityError
from trivial import Base


class Probe(rfm.RunOnlyRegressionTest):
    executable = "true"

    @sanity_function
    def is_fit(self):
        if os.environ["IOBANDS_ATTEMPT"] == "1":
            raise SanityError("JOB 7 ON n1 CANCELLED AT 05:30 DUE TO NODE FAILURE")
        return True


@rfm.simple_test
class Probed(Base):
    tags = {"probed"}
    probe = fixture(Probe, scope="partition")
    executable_opts = ["write 1.0"]
"""


def test_a_preflight_that_infrastructure_spoilt_costs_no_night(
    root: Path, iobands: Command
) -> None:
    (root / "checks" / "probed.py").write_text(PROBED)
    done = iobands("run", "--tag", "probed", cwd=root)
    assert (done.returncode, done.stderr.count("DUE TO NODE FAILURE")) == (0, 1)
    assert len(by_label(root)["disk fpp write_bw"].history.values) == 1


def test_a_log_that_cannot_be_written_costs_no_session(root: Path, iobands: Command) -> None:
    log = root / "perflogs" / LOG
    log.parent.mkdir(exist_ok=True)
    log.symlink_to("/dev/full")
    done = iobands("run", "--", "-n", "Good", cwd=root)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(by_label(root)["disk fpp write_bw"].history.values) == 1
