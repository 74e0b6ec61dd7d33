"""`iobands run` with a real ReFrame on trivial checks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from iobands.commands.cli import find_root
from iobands.measure.run_directories import STAGES
from iobands.snapshot import Severity, State
from tests.commands.calling import alike, call
from tests.commands.fake_root import measured, states
from tests.conftest import Command
from tests.fault_table import Observed
from tests.measure.test_prune import aged
from tests.mounts import unanswered
from tests.notify.servers import Web, web_server

pytestmark = pytest.mark.machine

pytest.importorskip("reframe")

#: The message about the misspelt tag dayly.
NO_TAG = (
    "no check that runs on this system has the tag dayly; write one of broken, daily (did you mean "
    "daily?)"
)


@pytest.fixture
def pings(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """A server that a session of `iobands run --notify` pings."""
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
    # the digest, and none of ReFrame's output
    assert done.stdout.startswith("IOBANDS OK")
    assert "[ RUN" not in done.stdout
    assert "[ RUN      ] Good" in (root / "perflogs" / "iobands-run.log").read_text()
    assert (root / "page" / "index.html").is_file()


@pytest.mark.fault("people", "secret in the environment", "no job has it; the ping is sent")
def test_a_secret_of_the_environment_is_in_no_job(
    root: Path, iobands: Command, pings: Web, observed: Observed
) -> None:
    settings = {"schema": 1, "ping": {"env": "IOBANDS_PING"}}
    (root / "config" / "notify.yaml").write_text(json.dumps(settings))
    with (root / "checks" / "trivial.py").open("a") as checks:
        checks.write("\n\n@rfm.simple_test\nclass Telling(Good):\n    prerun_cmds = ['env']\n")
    given = {"IOBANDS_PING": f"{pings.url}/s3cr3t", "IOBANDS_OTHER": "as it is"}
    done = iobands("run", "--notify", "--", "--keep-stage-files", cwd=root, **given)
    assert [each.path for each in pings.asked] == ["/s3cr3t/start", "/s3cr3t"]
    every = [path.read_text(errors="replace") for path in root.rglob("*") if path.is_file()]
    assert any("IOBANDS_OTHER=as it is" in each for each in every)
    assert not any("s3cr3t" in each for each in every)
    observed(
        **done.cells(done.stdout.splitlines()[0]),
        next_run=iobands("run", "--notify", cwd=root, **given).returncode == 0,
    )


@pytest.mark.fault(
    "people",
    "notify.yaml is cut off, in a session",
    "unknown; measured, no secret in jobs",
)
def test_a_damaged_notify_file_costs_no_night(
    root: Path, iobands: Command, pings: Web, observed: Observed
) -> None:
    path = root / "config" / "notify.yaml"
    right = json.dumps({"schema": 1, "ping": {"env": "IOBANDS_PING"}})
    path.write_text(right[:-1])
    with (root / "checks" / "trivial.py").open("a") as checks:
        checks.write("\n\n@rfm.simple_test\nclass Telling(Good):\n    prerun_cmds = ['env']\n")
    given = {"IOBANDS_PING": f"{pings.url}/s3cr3t"}
    done = iobands("run", "--notify", "--", "--keep-stage-files", cwd=root, **given)
    assert "notify.yaml" in done.stderr
    assert (done.returncode, len(states(root)), pings.asked) == (3, 2, [])
    kept = [each.read_text(errors="replace") for each in root.rglob("*") if each.is_file()]
    assert not any("s3cr3t" in each for each in kept)
    path.write_text(right)
    again = iobands("run", "--notify", cwd=root, **given)
    observed(**done.cells(), next_run=(again.returncode, len(pings.asked)) == (0, 2))


def test_a_mistake_in_the_site_file_of_another_system_ends_no_session(
    root: Path, iobands: Command, pings: Web
) -> None:
    (root / "config" / "systems" / "other.py").write_text("system = {")
    (root / "perflogs" / "other" / "leftovers").mkdir(parents=True)
    done = iobands("run", "--notify", cwd=root)
    assert done.stdout.startswith("IOBANDS OK")
    assert "iobands: run directories of other may stay: " in done.stderr
    assert "other.py: SyntaxError: " in done.stderr
    assert (done.returncode, [each.path for each in pings.asked]) == (0, ["/uuid/start", "/uuid"])


def test_a_dashboard_that_cannot_be_written_costs_no_message(
    root: Path, iobands: Command, pings: Web
) -> None:
    (root / "page").write_text("in the way")
    done = iobands("run", "--notify", "--report", "page", cwd=root)
    assert done.stdout.startswith("IOBANDS OK")
    assert "the dashboard was not written: " in done.stderr
    assert done.returncode == 3
    assert [each.path for each in pings.asked] == ["/uuid/start", "/uuid/fail"]
    reason, first = pings.asked[1].body.split("\n")
    assert reason.startswith("the dashboard was not written: ")
    assert first.startswith("IOBANDS OK")


@pytest.mark.needs("mounts")
@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="no FUSE")
def test_a_dashboard_on_a_hung_disk_costs_no_sample_and_no_message(
    root: Path, tmp_path: Path, pings: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iobands.model.files._ANSWER", 1)
    with unanswered(tmp_path / "hung") as hung:
        page, site = str(hung / "page"), str(root)
        status, said = call("run", "--notify", "--report", page, "--site", site)
        refused, why = call("report", page, "--site", site)
    assert (status, refused, len(states(root))) == (3, 3, 2)
    hint = f"{page}: no answer within 1 s; check its file system"
    assert f"the dashboard was not written: {hint}" in said
    assert hint in why
    assert [each.path for each in pings.asked] == ["/uuid/start", "/uuid/fail"]


def test_a_session_pushes_by_itself_and_a_store_that_is_down_costs_it_nothing(
    root: Path, iobands: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(root / "cache"))
    store = root / "store"
    (root / "config" / "store.yaml").write_text("url: store\n")
    store.write_text("in the way")
    down = iobands("run", cwd=root)
    assert down.returncode == 0
    assert down.stderr.startswith(f"iobands: not pushed: {store}: ")
    assert down.stderr.endswith("; no push there has finished yet\n")
    store.unlink()

    def failing(*_: object) -> None:
        raise ArithmeticError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr("iobands.source.push.push_new", failing)
        odd = iobands("run", cwd=root)
    said = "iobands: not pushed: ArithmeticError: a bug; see iobands push\n"
    assert (odd.returncode, odd.stderr) == (0, said)
    up = iobands("run", cwd=root)
    assert (up.returncode, up.stderr) == (0, "")
    status = partial(iobands, "status", cwd=root)
    assert alike(lambda: status("--store", str(store)).stdout, lambda: status().stdout)
    assert [len(each.history.values) for each in measured(root).series] == [3, 3]


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


@pytest.mark.fault("session", "no check is selected", "unknown, and the tag that may be meant")
def test_nothing_selected_is_an_error(
    root: Path, iobands: Command, pings: Web, observed: Observed
) -> None:
    assert iobands("run", "--", "-n", "Good", cwd=root).returncode == 0
    record = (root / "perflogs" / "last-session.json").read_bytes()
    done = iobands("run", "--notify", "--tag", "dayly", cwd=root)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"IOBANDS UNKNOWN: {NO_TAG}\n"
    assert [each.path for each in pings.asked] == ["/uuid/start", "/uuid/fail"]
    assert "dayly" in pings.asked[1].body
    # the earlier session is still the last one
    assert (root / "perflogs" / "last-session.json").read_bytes() == record
    assert iobands("status", cwd=root).returncode == 0
    again = iobands("run", "--", "-n", "Good", cwd=root)
    observed(**done.cells(), next_run=again.returncode == 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("now", "reframe: error: unrecognized arguments: now"),
        ("-- -n (", "run session stopped: reframe error: invalid regex: '('"),
        ("-- -n Nosuch", "no check with the tag daily is selected by -n Nosuch; `iobands reframe"),
        ("-- -p nosuch", "no check with the tag daily is selected by -p nosuch; `iobands reframe"),
    ],
)
def test_arguments_that_select_nothing_are_no_failed_session(
    words: str, said: str, root: Path, iobands: Command
) -> None:
    assert iobands("run", "--", "-n", "Good", cwd=root).returncode == 0
    record = (root / "perflogs" / "last-session.json").read_bytes()
    done = iobands("run", *words.split(), cwd=root)
    assert (done.returncode, done.stderr.startswith(f"IOBANDS UNKNOWN: {said}")) == (3, True)
    assert (root / "perflogs" / "last-session.json").read_bytes() == record


def test_what_selects_nothing_is_not_scheduled(root: Path, iobands: Command) -> None:
    done = iobands("schedule", "cron", "--tag", "dayly", cwd=root)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", f"IOBANDS UNKNOWN: {NO_TAG}\n")
    cost = iobands("cost", "--tag", "dayly", cwd=root)
    assert cost.stderr == done.stderr


@pytest.mark.needs("fewer capabilities")
def test_perflogs_that_may_not_be_searched_are_named_with_what_to_do(root: Path) -> None:
    perflogs = root / "perflogs"
    perflogs.mkdir(mode=0)
    words = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    try:
        done = subprocess.run(
            [*words, sys.executable, "-m", "iobands", "run"],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        perflogs.chmod(0o755)
    assert done.returncode == 3
    assert done.stderr.startswith(f"IOBANDS UNKNOWN: {perflogs}/.session.json.")
    assert done.stderr.endswith(
        ": Permission denied; nothing was measured, as no sample could be recorded: look at its "
        f"mode: ls -ld {perflogs}\n"
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
    observed(**done.cells(), next_run=again.returncode == 0)


def test_why_reframe_stopped_is_said(root: Path, iobands: Command) -> None:
    """As for a user without a name, whom its own perflogs cannot record."""
    with (root / "checks" / "trivial.py").open("a") as checks:
        checks.write("import reframe.utility.osext as osext\nosext.osuser = lambda: None\n")
    done = iobands("run", cwd=root)
    assert done.returncode == 3
    why = "expected test cases ran: run session stopped: type error: can only concatenate str"
    assert why in done.stderr


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
    observed(**done.cells(), next_run=again.returncode == 0)


def test_reports_that_lie_elsewhere_are_an_error(root: Path, iobands: Command) -> None:
    path = root / "config" / "site.py"
    path.write_text(path.read_text().replace("perflogs/here/reports/", ""))
    for day in range(10):
        aged(root / "perflogs" / "here" / "reports" / f"run-report-{day}.json", day)
    old = root / "stage" / "20250101T050000Z-7"
    aged(aged(old / "rfm_job.out", STAGES + 1).parent, STAGES + 1)
    done = iobands("run", cwd=root)
    assert (done.returncode, done.stdout) == (3, "")
    assert "iobands-run.log" in done.stderr
    assert not old.exists()


def test_no_root(tmp_path: Path, iobands: Command) -> None:
    at = ("--site", str(tmp_path))
    for command in (("run",), ("run", *at), ("status", *at), ("report", "page", *at)):
        done = iobands(*command)
        assert done.returncode == 3
        assert "config/systems" in done.stderr


def test_root_is_the_nearest(root: Path) -> None:
    assert find_root(root / "checks") == root.resolve()
    assert find_root(Path("/")) is None
