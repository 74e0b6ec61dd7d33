"""Sessions of other users if /proc hides their processes, as on most login nodes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import iobands as package
from iobands.measure.lock import acquire, begin_record, lock_path, new_holder, read_holder
from iobands.measure.processes import Process
from tests.commands.small_site import site
from tests.fault_table import Observed

pytestmark = [
    pytest.mark.machine,
    pytest.mark.needs("mount namespaces", "other users"),
]

ANOTHER = 65534  # nobody
TAKE = """\
import sys
from pathlib import Path
from iobands.measure.lock import acquire, new_holder
from iobands.measure import SessionError
try:
    acquire(Path(sys.argv[1]), new_holder("iobands run"))
except SessionError as error:
    raise SystemExit(f"IOBANDS UNKNOWN: {error}")
"""


@pytest.fixture
def shared() -> Iterator[Path]:
    """A site whose perflogs others may write to, unlike pytest's own directories."""
    root = Path(tempfile.mkdtemp())
    try:
        site(root)
        root.chmod(0o755)
        (root / "perflogs").chmod(0o777)
        yield root
    finally:
        shutil.rmtree(root)


def as_another(root: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    hide = "mount -t proc -o hidepid=2 proc /proc"
    change = 'exec setpriv --reuid "$0" --regid "$0" --clear-groups "$@"'
    return subprocess.run(
        [
            "unshare",
            "--mount",
            "sh",
            "-c",
            f"{hide} && {change}",
            str(ANOTHER),
            sys.executable,
            *arguments,
        ],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.fault(
    "session", "`iobands status` of a colleague, /proc with hidepid=2", "the session goes on"
)
@pytest.mark.fault(
    "session", "`iobands run` of a colleague, /proc with hidepid=2", "refused; who measures"
)
def test_a_session_that_cannot_be_seen_goes_on(shared: Path, observed: Observed) -> None:
    perflogs = shared / "perflogs"
    holder = new_holder("iobands run")
    acquire(perflogs, holder)
    begin_record(perflogs, holder, "daily", None)
    status = as_another(shared, "-m", "iobands", "status")
    assert (status.returncode, "last session" in status.stdout) == (0, False), status.stdout
    refused = as_another(shared, "-c", TAKE, perflogs)
    assert refused.returncode == 1
    assert (
        f"cannot be seen from here: if it has ended, remove {lock_path(perflogs)}" in refused.stderr
    )
    assert read_holder(perflogs) == holder

    # kill(2) does not find a process that has ended, either
    with subprocess.Popen(["true"]) as child:
        ended = replace(Process.this(), pid=child.pid)
    lock_path(perflogs).unlink()
    acquire(perflogs, replace(holder, processes=(ended,)))
    again = as_another(shared, "-m", "iobands", "status")
    assert (again.returncode, "last session  killed" in again.stdout) == (3, True)
    taken = as_another(shared, "-c", TAKE, perflogs)
    for name, done, right in (
        ("status", status, again.returncode == 3),
        ("run", refused, taken.returncode == 0),
    ):
        observed(
            f"`iobands {name}` of a colleague, /proc with hidepid=2",
            message=done.stdout or done.stderr,
            exit_status=0 if name == "status" else 3,
            left=[],
            next_run=right,
        )
