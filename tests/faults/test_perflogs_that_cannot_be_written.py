"""A session whose samples could not be recorded is refused before anything is measured.

The real configuration and a real ReFrame, which is started by hand.
"""

import os
import subprocess

import pytest

from tests.left_behind import Ended, files, left_behind
from tests.mounts import fill, in_memory
from tests.site_copy import BENCHIO, copy_suite

pytestmark = pytest.mark.needs("mounts")


@pytest.fixture
def site(tmp_path):
    """A site whose perflogs lie on a file system of their own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    site = copy_suite(tmp_path / "site", *BENCHIO)
    site.add_local_system(
        "odd",
        {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 1, "mib_per_task": 1},
    )
    perflogs = site.root / "perflogs"
    perflogs.mkdir()
    with in_memory(perflogs, "size=4m"):
        yield site


def run(site, action="-r", **environment):
    before = files(site.root)
    done = site.reframe(
        *("--system=odd", "-n", "BenchioSerial", "--exec-policy=serial", action),
        env={**os.environ, **environment},
    )
    ended = Ended(done.args, done.returncode, done.stdout, done.stderr)
    ended.left = left_behind(site.root, before)
    return ended


REFUSED = "refused before anything is measured"


@pytest.mark.fault("checks", "perflog is a fifo", REFUSED)
@pytest.mark.fault("checks", "perflogs on a full device", REFUSED)
@pytest.mark.fault("checks", "perflogs on a read-only file system", REFUSED)
@pytest.mark.fault("checks", "editor's lock beside a site file", "measured")
@pytest.mark.fault("checks", "ReFrame's first log in `TMPDIR`", "measured; removed")
def test_each_fault_is_named_with_its_remedy_and_the_next_run_is_right(site, tmp_path, observed):
    refused = {}
    perflogs, temporary = site.root / "perflogs", tmp_path / "tmp"
    perflog = perflogs / "odd" / "node" / "BenchioSerial.log"
    perflog.parent.mkdir(parents=True)

    os.mkfifo(perflog)
    done = run(site)
    assert (done.returncode, "is not a regular file; remove it" in done.stderr) == (1, True)
    refused["perflog is a fifo"] = done
    perflog.unlink()

    fill(perflogs / "filler")
    done = run(site)
    assert (done.returncode, "No space left on device" in done.stderr) == (1, True)
    refused["perflogs on a full device"] = done
    assert run(site, "-l").returncode == 0  # to list takes no perflog
    (perflogs / "filler").unlink()

    subprocess.run(["mount", "-o", "remount,ro", perflogs], check=True)
    done = run(site)
    assert (done.returncode, "mount it writable" in done.stderr) == (1, True)
    refused["perflogs on a read-only file system"] = done
    subprocess.run(["mount", "-o", "remount,rw", perflogs], check=True)
    assert not (site.root / "stage").exists()

    perflog.write_text("a line that was cut off", encoding="utf-8")
    temporary.mkdir()
    lock = site.root / "config" / "systems" / ".#odd.py"
    lock.symlink_to("jane@login1.4711:1763600000")
    done = run(site, TMPDIR=str(temporary))
    lock.unlink()
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [row["perf_var"] for row in site.rows("odd") if row["perf_value"] not in {"null", None}]
    assert sorted(rows) == ["read_bw", "write_bw"]
    assert not list(temporary.glob("rfm-*"))
    assert not list(perflogs.glob(".*"))
    again = run(site, TMPDIR=str(temporary))
    assert not list(temporary.glob("rfm-*"))
    for fault in ("editor's lock beside a site file", "ReFrame's first log in `TMPDIR`"):
        observed(
            fault,
            message=next(line for line in done.stdout.splitlines() if "PASSED" in line),
            exit_status=done.returncode,
            left=done.left,
            next_run=again.returncode == 0,
        )
    for fault, each in refused.items():
        observed(
            fault,
            message=each.stderr,
            exit_status=each.returncode,
            left=each.left,
            next_run=done.returncode == 0,
        )
