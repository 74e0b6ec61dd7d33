"""Pages with obstacles in their place: others' files, links, full devices, hostile names."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest

from tests.commands.small_site import site, unknown
from tests.conftest import Command
from tests.factory import line, write_perflog
from tests.fault_table import Observed
from tests.mounts import fill, in_memory

needs_mounts = pytest.mark.needs("mounts")


@pytest.mark.fault("reports", "a file where the directory should be", "unknown; the file stays")
def test_a_file_in_the_way_of_pages(healthy: Path, iobands: Command, observed: Observed) -> None:
    (healthy / "pages").write_text("mine")
    done = unknown(iobands("report", "pages"))
    assert (healthy / "pages").read_text() == "mine"
    (healthy / "pages").unlink()
    observed(**done.cells(), next_run=iobands("report", "pages").returncode == 0)


@pytest.mark.fault(
    "reports", "directory with an `index.html` of somebody else", "refused; it stays"
)
def test_pages_of_somebody_else(healthy: Path, iobands: Command, observed: Observed) -> None:
    (healthy / "pages").mkdir()
    (healthy / "pages" / "index.html").write_text("<p>mine")
    done = unknown(iobands("report", "pages"))
    assert [path.name for path in (healthy / "pages").iterdir()] == ["index.html"]
    assert (healthy / "pages" / "index.html").read_text() == "<p>mine"
    observed(**done.cells(), next_run=iobands("report", "new").returncode == 0)


@pytest.mark.fault("reports", "a link in place of a part of the pages", "not followed")
def test_a_linked_part(healthy: Path, iobands: Command, observed: Observed) -> None:
    assert iobands("report", "pages").returncode == 0
    outside = healthy / "outside"
    outside.mkdir()
    part = next(path for path in sorted((healthy / "pages").iterdir()) if path.is_dir())
    part.rename(healthy / "moved")
    part.symlink_to(outside)
    done = iobands("report", "pages")
    assert list(outside.iterdir()) == []
    part.unlink(missing_ok=True) if part.is_symlink() else None
    again = iobands("report", "pages")
    observed(**done.cells(), next_run=again.returncode == 0)


@pytest.mark.fault("reports", "a link in place of the data of one job", "not followed")
def test_a_linked_part_of_the_data(healthy: Path, iobands: Command, observed: Observed) -> None:
    assert iobands("report", "pages").returncode == 0
    (healthy / "outside").mkdir()
    job = next(path for path in (healthy / "pages" / "data").iterdir() if path.is_dir())
    shutil.rmtree(job)
    job.symlink_to(healthy / "outside")
    done = unknown(iobands("report", "pages"))
    assert list((healthy / "outside").iterdir()) == []
    job.unlink()
    observed(**done.cells(), next_run=iobands("report", "pages").returncode == 0)


def has_open(process: subprocess.Popen, path: Path) -> bool:
    descriptors = Path(f"/proc/{process.pid}/fd").glob("*")
    return any(descriptor.resolve() == path for descriptor in descriptors)


@pytest.mark.fault("reports", "another report is written into the same pages", "waits for it")
def test_two_reports_at_once(healthy: Path, iobands: Command, observed: Observed) -> None:
    assert iobands("report", "pages").returncode == 0
    stale = healthy / "pages" / "data" / "gone" / "series.js"
    stale.parent.mkdir()
    stale.write_text("iobands.receive(")
    command = [sys.executable, "-m", "iobands", "report", "pages"]
    with (healthy / "pages" / ".iobands-dashboard").open("rb") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        others = [
            subprocess.Popen(command, cwd=healthy, stdout=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        while not all(has_open(other, Path(mark.name)) for other in others):
            assert [other.poll() for other in others] == [None, None]
            time.sleep(0.05)
        assert stale.exists()
    said = [other.communicate(timeout=120)[0] for other in others]
    assert [other.returncode for other in others] == [0, 0]
    assert not stale.parent.exists()
    observed(
        message=said[0],
        left=[],
        exit_status=0,
        next_run=iobands("report", "pages").returncode == 0,
    )


def test_an_export_keeps_the_mode_of_the_file_that_it_replaces(
    healthy: Path, iobands: Command
) -> None:
    output = healthy / "samples.csv"
    before = os.umask(0o027)
    try:
        assert iobands("export", "--format", "csv", "--output", "samples.csv").returncode == 0
        assert output.stat().st_mode & 0o777 == 0o640
        output.write_text("private")
        output.chmod(0o600)
        assert iobands("export", "--format", "csv", "--output", "samples.csv").returncode == 0
    finally:
        os.umask(before)
    assert output.read_text() != "private"
    assert output.stat().st_mode & 0o777 == 0o600


@needs_mounts
@pytest.mark.machine
@pytest.mark.fault(
    "reports", "device becomes full while pages are written", "unknown; old pages stay"
)
def test_pages_on_a_full_device(healthy: Path, iobands: Command, observed: Observed) -> None:
    with in_memory(healthy / "device", "size=2m") as where:
        assert iobands("report", "device/pages").returncode == 0
        before = (where / "pages" / "index.html").read_bytes()
        newest = datetime.now(timezone.utc).isoformat()
        write_perflog(healthy / "perflogs", [line(job_completion_time=newest)], name="New.log")
        fill(filler := where / "filler")
        done = unknown(iobands("report", "device/pages"))
        assert (where / "pages" / "index.html").read_bytes() == before
        filler.unlink()
        again = iobands("report", "device/pages")
        observed(**done.cells(), next_run=again.returncode == 0)


@needs_mounts
@pytest.mark.machine
@pytest.mark.fault("reports", "read-only file system", "unknown; old pages stay")
def test_pages_on_a_read_only_device(healthy: Path, iobands: Command, observed: Observed) -> None:
    with in_memory(healthy / "device", "size=16m,ro") as where:
        done = unknown(iobands("report", "device/pages"))
        subprocess.run(["mount", "-o", "remount,rw", where], check=True)
        again = iobands("report", "device/pages")
        observed(**done.cells(), next_run=again.returncode == 0)


HOSTILE = "</script><img src=x onerror=alert(1)>`$(touch ran)`"


@pytest.mark.fault("reports", "names with HTML, script and shell in a perflog", "shown as text")
def test_hostile_names(tmp_path: Path, iobands: Command, observed: Observed) -> None:
    root = site(tmp_path / "site", file_system=HOSTILE, job_nodelist=HOSTILE)
    done = iobands("report", "pages", cwd=root)
    assert done.returncode == 0, done.stderr
    for page in (root / "pages").rglob("*"):
        if page.is_file():
            assert b"<img src=x" not in page.read_bytes(), page
    assert not list(tmp_path.rglob("ran"))
    again = iobands("report", "pages", cwd=site(tmp_path / "healthy"))
    observed(
        message=done.stdout,
        exit_status=done.returncode,
        left=done.left - {root / "pages"},
        next_run=again.returncode == 0,
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("page.md", ["maintenance", "report", "--output"]),
        ("figure.svg", ["explain", "write_bw", "--figure"]),
        ("report.txt", ["doctor", "--report"]),
    ],
)
def test_a_pipe_is_written_to_and_stays(
    name: str, words: list[str], healthy: Path, iobands: Command
) -> None:
    (healthy / "config" / "systems").mkdir()
    times = ("--since", "2026-01-01", "--until", "2026-01-02")
    iobands("maintenance", "begin", "--reason", "x", *times)
    pipe = healthy / name
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 1 << 20)
    iobands(*words, str(pipe))
    text = os.read(reader, 64)
    os.close(reader)
    assert pipe.is_fifo()
    assert text
