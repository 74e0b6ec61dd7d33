"""Commands in bad surroundings: started by cron, without space, among files of others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import iobands as package
from iobands.measure.lock import LOCK_NAME
from tests.commands.small_site import site, unknown
from tests.conftest import Command
from tests.factory import line, write_perflog, write_session
from tests.fault_table import Observed
from tests.left_behind import Ended, files, left_behind
from tests.soak.__main__ import clock_library

COMMAND = f"{sys.executable} -m iobands"
SOURCE = str(Path(package.__file__).parents[1])


def shell(root: Path, script: str, environment: Mapping[str, str] | None = None) -> Ended:
    """Run a line of shell script in `root`, in which $IOBANDS is the command."""
    known = {**os.environ} if environment is None else {"PATH": "/usr/bin:/bin", **environment}
    before = files(root)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=root,
        env={**known, "PYTHONPATH": SOURCE, "IOBANDS": COMMAND},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=300,
        check=False,
    )
    ended = Ended(done.args, done.returncode, done.stdout, done.stderr)
    ended.left = left_behind(root, before)
    return ended


ANY = "the digest, and its exit status"
SURROUNDINGS = {
    "environment of cron: `PATH` alone": ("$IOBANDS status", {}),
    "no `HOME`": ("unset HOME; $IOBANDS status", None),
    "`HOME` cannot be written": ("HOME=/proc $IOBANDS status", None),
    "`TMPDIR` is missing": ("TMPDIR=/nonexistent $IOBANDS status", None),
    "locale that is not installed": ("env LC_ALL=tr_TR.UTF-8 $IOBANDS status", None),
    "locale of another encoding": ("PYTHONIOENCODING=shift-jis $IOBANDS status", None),
    "locale C without UTF-8": ("$IOBANDS status", {"LC_ALL": "C", "PYTHONUTF8": "0"}),
    "`COLUMNS` and `TERM` are nonsense": ("$IOBANDS status", {"COLUMNS": "-1", "TERM": "x"}),
    "time zone of the machine is unknown": ("$IOBANDS status", {"TZ": "Nowhere/At_All"}),
    "standard input is closed": ("$IOBANDS status <&-", None),
    "standard error is closed": ("$IOBANDS status 2>&-", None),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.fault("monitor", name, ANY)) for name in SURROUNDINGS],
)
def test_the_digest_is_the_same(name: str, healthy: Path, observed: Observed) -> None:
    script, environment = SURROUNDINGS[name]
    done = shell(healthy, script, environment)
    assert (done.returncode, done.stderr) == (0, "")
    observed(**done.cells(), next_run=done.stdout.startswith("IOBANDS OK: "))


NOT_READ = {
    "standard output is closed": ">&-",
    "standard output is a pipe that nobody reads": "| true",
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=pytest.mark.fault("monitor", name, "only the exit status is left: 3, no data"),
        )
        for name in NOT_READ
    ],
)
def test_the_exit_status_remains(
    name: str, tmp_path: Path, iobands: Command, observed: Observed
) -> None:
    root = site(tmp_path, ago=6)
    done = shell(root, f"$IOBANDS status {NOT_READ[name]}; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")
    site(tmp_path)
    again = iobands("status")
    observed(**done.cells(), next_run=again.returncode == 0)


@pytest.mark.fault("monitor", "device of the output is full", "unknown, and why")
def test_a_full_output(healthy: Path, iobands: Command, observed: Observed) -> None:
    done = shell(healthy, "$IOBANDS status >/dev/full")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    again = iobands("status")
    observed(**done.cells(), next_run=again.returncode == 0)


@pytest.mark.fault("monitor", "working directory was removed", "unknown, and why")
def test_a_directory_that_is_gone(tmp_path: Path, iobands: Command, observed: Observed) -> None:
    root = site(tmp_path / "site")
    done = shell(root, 'mkdir gone; cd gone; rmdir "$PWD"; $IOBANDS status')
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    again = iobands("status", cwd=root)
    observed(**done.cells(), next_run=again.returncode == 0)


@pytest.mark.fault("monitor", "`umask 077`", "pages that others can read")
def test_pages_can_be_read(healthy: Path, iobands: Command, observed: Observed) -> None:
    done = shell(healthy, "umask 077; $IOBANDS report pages")
    assert done.returncode == 0, done.stderr
    pages = [healthy / "pages", *(healthy / "pages").rglob("*")]
    assert [path for path in pages if path.stat().st_mode & 0o044 != 0o044] == []
    again = iobands("report", "pages")
    observed(
        message=done.stdout,
        exit_status=done.returncode,
        left=done.left - {healthy / "pages"},
        next_run=again.returncode == 0,
    )


@pytest.mark.fault("monitor", "`umask 0`", "pages that others cannot write")
def test_pages_cannot_be_written(healthy: Path, iobands: Command, observed: Observed) -> None:
    done = shell(healthy, "umask 0; $IOBANDS report pages")
    assert done.returncode == 0, done.stderr
    pages = [healthy / "pages", *(healthy / "pages").rglob("*")]
    assert [path for path in pages if path.stat().st_mode & 0o002] == []
    again = iobands("report", "pages")
    observed(
        message=done.stdout,
        exit_status=done.returncode,
        left=done.left - {healthy / "pages"},
        next_run=again.returncode == 0,
    )


@pytest.mark.machine
@pytest.mark.needs("tracing")
@pytest.mark.fault("monitor", "killed while it reads (SIGKILL)", "nothing is changed")
def test_a_killed_reader(healthy: Path, iobands: Command, observed: Observed) -> None:
    # Kill it when it opens the perflog; with --seccomp-bpf, strace 6.1 sends no signal.
    (perflog,) = healthy.glob("perflogs/here/local/*.log")
    kill = f"strace -f -o /dev/null -P {perflog.relative_to(healthy)} -e inject=openat:signal=KILL"
    done = shell(healthy, f"exec {kill} $IOBANDS report pages")
    again = iobands("status")
    assert (done.returncode, done.left) == (-signal.SIGKILL, frozenset())
    observed(**done.cells(), next_run=again.stdout.startswith("IOBANDS OK: "))


@pytest.mark.fault(
    "monitor", "session under a clock of 2066", "unknown: the clock is named; nothing is pruned"
)
def test_a_session_of_2066(healthy: Path, iobands: Command, observed: Observed) -> None:
    record = healthy / "perflogs" / "last-session.json"
    said = {"schema": 1, "session": "s", "tag": "daily", "system": None, "host": "node"}
    times = {"began": "2066-11-22T05:00:00+00:00", "ended": "2066-11-22T06:00:00+00:00"}
    end = {"how": "completed", "counts": {}, "reason": None, "seconds": {}}
    record.write_text(json.dumps({**said, **times, **end}))
    done = iobands("status")
    (alert,) = [text for text in done.stdout.splitlines() if "  failed  clock  " in text]
    assert "newest session dated in the future: completed" in " ".join(done.stdout.split())
    record.unlink()
    observed(**done.cells(alert), next_run=iobands("status").returncode == 0)


@pytest.mark.skipif(clock_library() is None, reason="libfaketime is not installed")
@pytest.mark.fault(
    "monitor", "clock is 40 years ahead of the file system's", "unknown: the clock is named"
)
def test_a_clock_that_is_off(healthy: Path, iobands: Command, observed: Observed) -> None:
    clock = {"LD_PRELOAD": clock_library() or "", "FAKETIME": "+40y", "NO_FAKE_STAT": "1"}
    done = shell(healthy, "$IOBANDS status", {**os.environ, **clock})
    digest = " ".join(done.stdout.split())
    off = "is 14600 days ahead of the clock of the file system"
    said = f"failed clock the clock of {os.uname().nodename} {off}"
    assert said in digest
    again = iobands("status")
    observed(**done.cells(said), next_run=again.stdout.startswith("IOBANDS OK: "))


@pytest.mark.fault("people", "bands file that is no YAML", "unknown; its place is named")
def test_broken_bands(healthy: Path, iobands: Command, observed: Observed) -> None:
    bands = healthy / "config" / "bands" / "here.yaml"
    right = bands.read_text()
    bands.write_text("schema: 1\nsystem: [here\n")
    done = iobands("status")
    (said,) = [text for text in done.stdout.splitlines() if "  failed  bands of here  " in text]
    bands.write_text(right)
    observed(**done.cells(said), next_run=iobands("status").returncode == 0)


@pytest.mark.fault("people", "log of actions is binary", "its lines are rejected by name; it stays")
def test_a_binary_log_of_actions(healthy: Path, iobands: Command, observed: Observed) -> None:
    log = healthy / "config" / "alerts" / "here.jsonl"
    log.parent.mkdir(parents=True)
    log.write_bytes(bytes(range(256)))
    done = iobands("status")
    (said, *_) = [text for text in done.stdout.splitlines() if "here.jsonl:" in text]
    assert log.read_bytes() == bytes(range(256))
    log.unlink()
    again = iobands("status")
    observed(**done.cells(said), next_run=again.returncode == 0 and "rejected" not in again.stdout)


@pytest.mark.fault("people", "perflogs were moved away", "unknown, and what to do")
def test_no_perflogs(healthy: Path, iobands: Command, observed: Observed) -> None:
    (healthy / "config" / "systems").mkdir()  # as a site has them
    (healthy / "perflogs").rename(healthy / "moved")
    done = unknown(iobands("status"))
    assert "there are no perflogs; measure first" in done.stderr
    (healthy / "moved").rename(healthy / "perflogs")
    observed(**done.cells(), next_run=iobands("status").returncode == 0)


@pytest.mark.fault(
    "session", "record of the last session is damaged", "the digest goes on without it"
)
def test_a_damaged_record(healthy: Path, iobands: Command, observed: Observed) -> None:
    record = healthy / "perflogs" / "last-session.json"
    record.write_bytes(b'{"schema": 1, "began": \xff')
    done = iobands("status")
    assert "Traceback" not in done.stderr
    record.unlink()
    observed(**done.cells(), next_run=iobands("status").returncode == 0)


@pytest.mark.fault(
    "session", "no session for days, as cron stopped", "unknown, with the last session"
)
def test_a_missed_schedule(healthy: Path, iobands: Command, observed: Observed) -> None:
    perflogs = healthy / "perflogs"
    (perflog,) = perflogs.glob("here/local/*.log")
    fresh = perflog.read_text()
    ago = datetime.now(timezone.utc) - timedelta(days=2.5)
    write_perflog(
        perflogs, [line(job_completion_time=ago.isoformat(), interval_days=1)], perflog.name
    )
    write_session(perflogs, ago)
    done = iobands("status")
    (said,) = (text for text in done.stdout.splitlines() if "last session" in text)
    assert "newest session 2 days ago: completed" in done.stdout
    assert done.returncode == 3
    perflog.write_text(fresh)
    observed(**done.cells(said.strip()), next_run=iobands("status").returncode == 0)


@pytest.mark.fault("session", "lock is damaged", "refused before anything is measured; it is named")
def test_a_damaged_lock(healthy: Path, iobands: Command, observed: Observed) -> None:
    (healthy / "config" / "systems").mkdir()
    (healthy / "perflogs" / LOCK_NAME).write_bytes(b"\xff")
    done = unknown(iobands("run"))
    assert "damaged; remove it" in done.stderr
    left = {path for path in files(healthy) if path.name == LOCK_NAME}
    (healthy / "perflogs" / LOCK_NAME).unlink()
    observed(
        message=done.stderr,
        exit_status=done.returncode,
        left=left,
        next_run="damaged" not in iobands("run").stderr,
    )
