"""`iobands run` with a real ReFrame on trivial checks."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock

from iobands.alerts.alert import Severity
from iobands.commands.options import find_root
from iobands.commands.site import SiteOptions, site_of
from iobands.site.site import Site
from iobands.status.state import State
from tests.commands.fake_root import make_root
from tests.conftest import Command

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


def test_run_measures_and_prints_the_digest(root: Path, iobands: Command) -> None:
    done = iobands("run", "--report", str(root / "page"), cwd=root / "checks")
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


def test_a_run_that_proves_nothing_and_a_check_that_cannot_start(
    root: Path, iobands: Command
) -> None:
    assert iobands("run", "--tag", "broken", cwd=root).returncode == 3
    lost, failed = measured(root).alerts
    assert (lost.severity, lost.subject) == (Severity.NO_DATA, "other fpp write_bw")
    assert "sanity error: pattern 'write' not found" in lost.reason
    assert (failed.severity, failed.subject) == (Severity.FAILED, "Unstarted")
    assert "oserror: no such file system" in failed.reason


def test_nothing_selected_is_an_error(root: Path, iobands: Command) -> None:
    done = iobands("run", "--tag", "weekly", cwd=root)
    assert (done.returncode, done.stdout) == (3, "")
    assert "weekly" in done.stderr


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


def test_checks_that_do_not_load_are_an_error(root: Path, iobands: Command) -> None:
    (root / "checks" / "broken.py").write_text(NOT_IMPORTABLE)
    (root / "checks" / "raises.py").write_text(RAISES)
    done = iobands("run", cwd=root)
    assert done.returncode == 3
    assert len(states(root)) == 2  # the others did run
    assert "broken.py" in done.stderr
    assert "'Raises': value error: no bands" in done.stderr


def test_a_broken_configuration_is_an_error(root: Path, iobands: Command) -> None:
    (root / "config" / "site.py").write_text("site_configuration = (\n")
    done = iobands("run", cwd=root)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("IOBANDS UNKNOWN: ")
    assert "Traceback" not in done.stderr


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


def test_a_second_run_says_who_holds_the_lock(root: Path, iobands: Command) -> None:
    perflogs = root / "perflogs"
    perflogs.mkdir()
    holder = {"pid": 4711, "host": "login1", "since": "2026-11-21T01:00:00+00:00"}
    (perflogs / ".iobands-run.holder").write_text(json.dumps(holder))
    with FileLock(perflogs / ".iobands-run.lock"):
        done = iobands("run", cwd=root)
    assert (done.returncode, done.stdout) == (3, "")
    assert all(str(value) in done.stderr for value in holder.values())


def test_fewer_cases_than_selected_is_an_error(
    root: Path, tmp_path: Path, iobands: Command
) -> None:
    """A ReFrame that leaves a case out: the real one, which loses a check after the listing."""
    real = Path(sys.executable).with_name("reframe")
    wrapper = tmp_path / "bin" / "reframe"
    wrapper.parent.mkdir()
    wrapper.write_text(
        f'#!/bin/sh\ncase " $* " in *" -r "*) set -- "$@" -n Good;; esac\nexec {real} "$@"\n'
    )
    wrapper.chmod(0o755)
    done = iobands("run", cwd=root, PATH=f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}")
    assert done.returncode == 3
    assert "1 of 2" in done.stderr


def test_being_ended_ends_reframe_and_its_job(root: Path) -> None:
    checks = root / "checks" / "trivial.py"
    checks.write_text(
        checks.read_text().replace(
            'executable_opts = ["write 1.5"]',
            'executable_opts = ["write 1.5"]\n'
            '    prerun_cmds = ["touch ../../../../../started", "sleep 600"]',
        )
    )
    child = subprocess.Popen(
        [sys.executable, "-m", "iobands", "run", "--", "-n", "Good"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 300
    while not (root / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (root / "started").exists()
    child.send_signal(signal.SIGTERM)
    _, said = child.communicate(timeout=300)
    assert child.returncode == 3, said
    with (root / "perflogs" / ".iobands-run.lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
