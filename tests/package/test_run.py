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

from iobands.commands.run import find_root
from tests.package.conftest import Command, environment
from tests.package.fake_root import make_root

pytest.importorskip("reframe")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path)


def test_run_measures_and_prints_the_digest(root: Path, iobands: Command) -> None:
    done = iobands("run", "--report", str(root / "page"), cwd=root / "checks")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("IOBANDS OK: 2 series: 2 calibrating\n")
    assert "[ RUN" not in done.stdout
    assert "[ RUN      ] Good" in (root / "perflogs" / "iobands-run.log").read_text()
    assert "disk fpp write_bw" in (root / "page" / "index.html").read_text()


def test_verbose_shows_what_reframe_says_and_arguments_go_through(
    root: Path, iobands: Command
) -> None:
    done = iobands("run", "--verbose", "--", "-n", "Good", cwd=root)
    assert done.returncode == 0
    assert "(1/1) Good" in done.stdout
    assert "Collapsed" not in done.stdout


def test_a_run_that_proves_nothing_is_no_data(root: Path, iobands: Command) -> None:
    done = iobands("run", "--tag", "unproven", cwd=root)
    assert done.returncode == 3
    assert "other fpp write_bw: no data: the run of " in done.stdout
    assert "failed in sanity: sanity error: pattern 'write' not found" in done.stdout


def test_a_check_that_cannot_start_is_a_finding(root: Path, iobands: Command) -> None:
    done = iobands("run", "--tag", "unstarted", cwd=root)
    assert done.returncode == 3
    assert "Unstarted: failed: on here:local in setup" in done.stdout
    assert "oserror: no such file system" in done.stdout


def test_nothing_selected_is_an_error(root: Path, iobands: Command) -> None:
    done = iobands("run", "--tag", "weekly", cwd=root)
    assert (done.returncode, done.stdout) == (3, "")
    assert "no check was selected: no check has the tag weekly" in done.stderr


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
class Broken(rfm.RunOnlyRegressionTest):
    tags = {"daily"}

    @run_after("init")
    def fail(self):
        raise ValueError("no bands")
"""


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (NOT_IMPORTABLE, "not loaded: skipping test file"),
        (RAISES, "not loaded: skipping test 'Broken': value error: no bands"),
    ],
)
def test_a_check_that_does_not_load_is_an_error(
    root: Path, iobands: Command, source: str, said: str
) -> None:
    (root / "checks" / "broken.py").write_text(source)
    done = iobands("run", cwd=root)
    assert done.returncode == 3
    assert done.stdout.startswith("IOBANDS OK: 2 series")  # the others did run
    assert said in done.stderr


def test_a_broken_configuration_is_an_error(root: Path, iobands: Command) -> None:
    (root / "config" / "site.py").write_text("site_configuration = (\n")
    done = iobands("run", cwd=root)
    assert (done.returncode, done.stdout) == (3, "")
    assert "ReFrame could not list the checks: " in done.stderr
    assert "Traceback" not in done.stderr


def test_reports_that_lie_elsewhere_are_an_error(root: Path, iobands: Command) -> None:
    path = root / "config" / "site.py"
    path.write_text(path.read_text().replace("perflogs/here/reports/", ""))
    done = iobands("run", cwd=root)
    assert done.returncode == 3
    assert "left 0 run reports" in done.stderr


def test_no_root(tmp_path: Path, iobands: Command) -> None:
    done = iobands("run", cwd=tmp_path)
    assert done.returncode == 3
    assert "no config/site.py here or above" in done.stderr
    assert "no config/site.py there" in iobands("run", "--root", str(tmp_path)).stderr


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
    said = "(pid 4711 on login1 since 2026-11-21T01:00:00+00:00)"
    assert f"another run holds the lock {said}" in done.stderr
    assert iobands("run", cwd=root).returncode == 0  # and afterwards it is free


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
    assert "IOBANDS UNKNOWN: 1 of 2 expected test cases ran" in done.stderr


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
        env=environment(),
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
