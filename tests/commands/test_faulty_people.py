"""People's mistakes in maintenances, actions and schedules are named, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.commands.small_site import site
from tests.conftest import Command
from tests.fault_table import Observed, unwrapped

SERIES = "disk fpp write_bw"
WORK = """\
schema: 5
system: here
epochs: []
maintenance:
{}
"""


def window(begin: float, end: float, more: str = "") -> str:
    """A maintenance window that begins and ends this many days from now."""
    times = (datetime.now(timezone.utc) + timedelta(days=days) for days in (begin, end))
    first, last = (f"{each:%Y-%m-%dT%H:%M:%SZ}" for each in times)
    return f"  - {{from: {first}, to: {last}, reason: new disks{more}}}"


def works(*windows: str) -> Callable[[Path], None]:
    def declare(root: Path) -> None:
        path = root / "config" / "bands" / "here.yaml"
        path.write_text(WORK.format("\n".join(windows)))

    return declare


def nothing(_root: Path) -> None:
    """Inject nothing: the fault is in the command."""


def read_only_log(root: Path) -> None:
    (root / "config" / "alerts" / "here.jsonl").mkdir(parents=True)


def repaired(root: Path) -> None:
    log = root / "config" / "alerts" / "here.jsonl"
    if log.is_dir():
        log.rmdir()
    for path in root.rglob("*"):
        if path.is_fifo():
            path.unlink()


def pipe(*place: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        path = root.joinpath(*place)
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        os.mkfifo(path)

    return make


def no_configuration(root: Path) -> None:
    (root / "config" / "systems").rmdir()


@dataclass(frozen=True)
class Row:
    """A fault, the command to call, its exit status, and words that its message must contain."""

    fault: str
    expected: str
    inject: Callable[[Path], None]
    command: tuple[str, ...]
    status: int
    said: str


UNKNOWN = "unknown; what is wrong, and where"
OK = "the digest of today"
STATUS, RETIRE = ("status",), ("retire", SERIES, "--reason", "gone")
ROWS = [
    Row(
        *("maintenance that ends before it begins", UNKNOWN, works(window(2, 1)), STATUS, 3),
        "maintenance",
    ),
    Row(
        *("maintenance with an invalid rule", UNKNOWN),
        *(works(window(-3, -2, ", repeat: every wednesday")), STATUS, 3, "FREQ=MONTHLY"),
    ),
    Row(
        "maintenance file that is cut off", UNKNOWN, works("  - {from: 20"), STATUS, 3, "here.yaml"
    ),
    Row("maintenance of next year", f"{OK}; no change", works(window(365, 366)), STATUS, 0, "OK"),
    Row(
        *("two maintenances that overlap", f"{OK}; samples in both are left out once"),
        *(works(window(-3, -1), window(-2, 0.5)), STATUS, 0, "here: now, "),
    ),
    Row(
        *("action on an unknown series", "refused; names like it", nothing),
        *(("retire", "dsk fpp", "--reason", "gone"), 3, "the closest are: disk fpp write_bw"),
    ),
    Row("action without a reason", "refused", nothing, ("retire", SERIES), 3, "--reason"),
    Row(
        *("discard of a time without a sample", "refused; the nearest sample", nothing),
        *(("discard", SERIES, "--at", "2020-01-01T00:00:00Z", "--reason", "x"), 3, "the nearest"),
    ),
    Row(
        *("undo of nothing", "refused", nothing),
        *(("undo", SERIES, "--reason", "x"), 3, "nothing to undo"),
    ),
    Row("log of actions cannot be written", UNKNOWN, read_only_log, RETIRE, 3, "here.jsonl"),
    Row(
        *("pipe in place of the bands", UNKNOWN, pipe("config", "bands", "here.yaml"), STATUS, 3),
        "here.yaml: cannot be read: is not a regular file",
    ),
    Row(
        *("pipe in place of the log of actions", UNKNOWN),
        *(pipe("config", "alerts", "here.jsonl"), STATUS, 3, "is not a regular file"),
    ),
    Row(
        *("pipe in place of the last session's record", UNKNOWN),
        *(pipe("perflogs", "last-session.json"), STATUS, 3, "is not a regular file"),
    ),
    Row(
        *("schedule at an invalid time", "refused; how to write it", nothing),
        *(("schedule", "cron", "--at", "25:00"), 3, "write 05:00"),
    ),
    Row(
        *("schedule with a line break in an argument", "refused", nothing),
        *(("schedule", "cron", "--system", "a\n* * * * * b"), 3, "control character"),
    ),
    Row(
        *("schedule without a site configuration", "refused; what to name", no_configuration),
        *(("schedule", "cron"), 3, "--site"),
    ),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    site(tmp_path)
    (tmp_path / "config" / "systems").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row.fault, marks=pytest.mark.fault("people", row.fault, row.expected))
        for row in ROWS
    ],
)
def test_a_mistake_is_named(row: Row, root: Path, iobands: Command, observed: Observed) -> None:
    bands = root / "config" / "bands" / "here.yaml"
    right = bands.read_text()
    row.inject(root)
    done = iobands(*row.command)
    assert done.returncode == row.status
    assert row.said in unwrapped(done.stdout) + done.stderr
    assert "Traceback" not in done.stderr
    repaired(root)
    bands.write_text(right)
    (root / "config" / "systems").mkdir(exist_ok=True)
    again = iobands(*(RETIRE if row.command[0] == "retire" else STATUS))
    lines = unwrapped(done.stderr or done.stdout).splitlines()
    said = [each for each in lines if row.said in each]
    observed(
        **done.cells((said or [done.stderr or done.stdout])[0].strip()),
        next_run=again.returncode == 0,
    )


@pytest.mark.fault("people", "two actions at once", "both are logged")
def test_two_actions_at_once(root: Path, iobands: Command, observed: Observed) -> None:
    source = str(Path(__file__).resolve().parents[2] / "src")
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "iobands", *RETIRE, "--by", who],
            cwd=root,
            env={**os.environ, "PYTHONPATH": source},
            stdout=subprocess.PIPE,
            text=True,
        )
        for who in ("jane", "joe")
    ]
    said = [each.communicate()[0] for each in both]
    assert [each.returncode for each in both] == [0, 0]
    lines = (root / "config" / "alerts" / "here.jsonl").read_text().splitlines()
    # the second command may have seen the first one's entry
    assert len(lines) + sum("already retired" in each for each in said) == 2
    again = iobands("undo", SERIES, "--reason", "back")
    observed(message="", exit_status=0, left=[], next_run=again.returncode == 0)


@pytest.mark.needs("tracing")
@pytest.mark.fault("people", "fsync of the log of actions fails", "unknown; no action is logged")
def test_an_action_that_cannot_be_made_durable(
    root: Path, iobands: Command, observed: Observed
) -> None:
    log = root / "config" / "alerts" / "here.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text("# cut off")
    fail = ["strace", "-f", "-o", "/dev/null", "-e", "inject=fsync:error=EIO"]
    done = subprocess.run(
        [*fail, sys.executable, "-m", "iobands", *RETIRE],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "here.jsonl: Input/output error" in done.stderr
    assert log.read_text() == "# cut off"
    again = iobands(*RETIRE)
    assert len(log.read_text().splitlines()) == 2
    observed(
        message=done.stderr.strip(),
        exit_status=done.returncode,
        left=[],
        next_run=again.returncode == 0,
    )


REQUIRE = """\
from pathlib import Path
from iobands.measure.perflogs import require_writable
from iobands.measure import SessionError
try:
    require_writable(Path("perflogs"), "here")
except SessionError as error:
    raise SystemExit(f"ERROR: {error}")
"""


@pytest.mark.needs("tracing")
@pytest.mark.fault(
    "session", "over quota at the close of a perflog", "refused; the perflog is named"
)
def test_quota_at_the_close_of_a_perflog_is_named(root: Path, observed: Observed) -> None:
    perflog = root / "perflogs" / "here" / "local" / "BenchioFPP.log"
    fail = ["strace", "-f", "-o", "/dev/null", "-P", perflog, "-e", "inject=close:error=EDQUOT"]
    source = str(Path(__file__).resolve().parents[2] / "src")
    done, again = (
        subprocess.run(
            [*prefix, sys.executable, "-c", REQUIRE],
            cwd=root,
            env={**os.environ, "PYTHONPATH": source},
            capture_output=True,
            text=True,
            check=False,
        )
        for prefix in (fail, [])
    )
    assert "perflogs/here/local/BenchioFPP.log: Disk quota exceeded" in done.stderr
    observed(
        message=done.stderr.splitlines()[-1],
        exit_status=done.returncode,
        left=[],
        next_run=(again.returncode, again.stderr) == (0, ""),
    )
