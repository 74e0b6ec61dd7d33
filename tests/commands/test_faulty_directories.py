"""Run directories of killed sessions are removed or named, and nothing else is touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from iobands.measure.run_directories import new_note
from tests import mounts
from tests.commands.small_site import site
from tests.conftest import Command
from tests.fault_table import Observed
from tests.measure.test_sweep import noted

SITE = """\
disk = {{"path": {path!r}, "type": "posix"}}
partition = {{"name": "node", "extras": {{"filesystems": {{"disk": disk}}}}}}
system = {{"name": "here", "partitions": [partition]}}
"""


@dataclass(frozen=True)
class Place:
    """A file system, and the notes of the run directories on it."""

    root: Path

    @property
    def disk(self) -> Path:
        return self.root / "disk"

    @property
    def notes(self) -> Path:
        return self.root / "perflogs" / "here" / "leftovers"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    (tmp_path / "config" / "systems").mkdir(parents=True)
    (tmp_path / "config" / "site.py").write_text("")
    (tmp_path / "config" / "systems" / "here.py").write_text(SITE.format(path=str(place.disk)))
    place.disk.mkdir()
    place.notes.mkdir(parents=True)
    return place


def restarted(place: Place) -> Iterator[None]:
    noted(place.notes, place.disk)
    yield


def linked(place: Place) -> Iterator[None]:
    note = noted(place.notes, place.disk)
    precious = place.root / "precious"
    note.path.rename(precious)
    note.path.symlink_to(precious)
    yield
    assert (precious / "deep" / "proc000000.dat").exists()
    note.path.unlink()


def away(place: Place) -> Iterator[None]:
    noted(place.notes, place.disk)
    place.disk.rename(place.root / "moved")
    yield
    (place.root / "moved").rename(place.disk)


def mounted(place: Place) -> Iterator[None]:
    below = noted(place.notes, place.disk).path / "deep"
    with mounts.mounted(below, "--bind", place.root / "config"):
        yield
        assert (place.root / "config" / "site.py").exists()


def not_utf8(place: Place) -> Iterator[None]:
    note = place.notes / "iobands-BenchioFPP-0123456789"
    note.write_bytes(b"\xff\xfe")
    yield
    assert note.read_bytes() == b"\xff\xfe"
    note.unlink()


def outside(place: Place) -> Iterator[None]:
    victim = place.root / "elsewhere"
    victim.mkdir()
    note = noted(place.notes, victim)
    yield
    assert (note.path / "deep" / "proc000000.dat").exists()
    (place.notes / note.name).unlink()


NAMED = "stays, and is named with its size and why; exit status 1"
FAULTS: dict[str, tuple[Callable[[Place], Iterator[None]], str, int]] = {
    "machine restarted in the middle of a run": (restarted, "removed", 0),
    "link planted in place of a run directory": (linked, "not followed; named", 1),
    "file system away": (away, NAMED, 1),
    "something mounted below a run directory": (mounted, NAMED, 1),
    "note that is not UTF-8": (not_utf8, "named; the others are swept", 1),
    "note of a directory outside of the site's file systems": (outside, "not touched; named", 1),
}
needs_mounts = pytest.mark.needs("mounts")


def of_fault(fault: str) -> Any:
    root = [needs_mounts, pytest.mark.machine] if FAULTS[fault][0] is mounted else []
    return pytest.param(
        fault, marks=[*root, pytest.mark.fault("directories", fault, FAULTS[fault][1])]
    )


@pytest.mark.parametrize("fault", map(of_fault, FAULTS))
def test_it_goes_or_is_named(
    fault: str, place: Place, iobands: Command, observed: Observed
) -> None:
    inject, _, status = FAULTS[fault]
    with contextmanager(inject)(place):
        done = iobands("clean")
        assert (done.returncode, done.stderr) == (status, "")
        left = [note.name for note in place.notes.iterdir()]
        assert bool(left) == bool(status)
        assert all(name in done.stdout for name in left)
    again = iobands("clean")
    observed(
        message=done.stdout,
        exit_status=done.returncode,
        left=left,
        next_run=again.returncode == 0 and not list(place.disk.iterdir()),
    )


@pytest.mark.fault(
    "directories", "`iobands status` while the file system is away", "counted; no size is made up"
)
def test_no_size_is_said_of_what_cannot_be_seen(
    place: Place, iobands: Command, observed: Observed
) -> None:
    site(place.root)
    notes = [noted(place.notes, place.disk) for _ in range(2)]
    place.disk.rename(place.root / "moved")
    assert iobands("clean").returncode == 1
    digest = iobands("status")
    (line,) = (line for line in digest.stdout.splitlines() if line.startswith("Left behind"))
    assert line == "Left behind: 2 run directories that cannot be seen from here"
    (place.root / "moved").rename(place.disk)
    again = iobands("clean")
    observed(
        message=line,
        exit_status=digest.returncode,
        left=[note.path for note in notes],
        next_run=again.returncode == 0 and not list(place.disk.iterdir()),
    )


@pytest.fixture
def shared() -> Iterator[Path]:
    """A healthy site that other users can read, unlike pytest's own directories."""
    root = Path(tempfile.mkdtemp())
    try:
        root.chmod(0o755)
        yield site(root)
    finally:
        shutil.rmtree(root)


@pytest.mark.machine
@pytest.mark.needs("other users")
@pytest.mark.fault(
    "directories", "`iobands status` of a colleague, who may not list the notes", "it says so"
)
def test_a_colleague_hears_that_the_notes_are_closed(
    shared: Path, iobands: Command, observed: Observed
) -> None:
    note = new_note(shared / "disk", "BenchioFPP", "local", None).staying("busy", 4096)
    note.write(shared / "perflogs" / "here" / "leftovers")
    (shared / "config" / "systems").mkdir()
    colleague = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
    source = str(Path(__file__).resolve().parents[2] / "src")
    status, clean = (
        subprocess.run(
            [*colleague, sys.executable, "-m", "iobands", *command],
            cwd=shared,
            env={**os.environ, "PYTHONPATH": source},
            capture_output=True,
            text=True,
            check=False,
        )
        for command in (["status"], ["clean", "--site", "."])
    )
    closed = "perflogs/here/leftovers: cannot be listed: Permission denied"
    assert f"\nLeft behind: not known\n  {closed}\n" in status.stdout
    assert (status.returncode, "left behind" in status.stdout) == (0, False)
    assert (clean.returncode, closed in " ".join(clean.stdout.split())) == (1, True)
    ours = iobands("status", cwd=shared)
    observed(
        message=closed,
        exit_status=status.returncode,
        left=[note.path],
        next_run=ours.returncode == 1
        and "Left behind: 1 run directory, 0.00391 MiB" in ours.stdout,
    )


@pytest.mark.fault("directories", "site file that cannot be read", "unknown; nothing is removed")
def test_nothing_is_removed_by_a_site_file_that_cannot_be_read(
    place: Place, iobands: Command, observed: Observed
) -> None:
    note = noted(place.notes, place.disk)
    site_file = place.root / "config" / "systems" / "here.py"
    readable = site_file.read_text()
    site_file.write_text("system = {")
    done = iobands("clean", cwd=place.root)
    assert done.returncode == 3
    assert done.stderr.startswith(f"IOBANDS UNKNOWN: {site_file}: SyntaxError: ")
    assert done.stderr.count("\n") == 1
    assert note.path.exists()
    site_file.write_text(readable)
    again = iobands("clean", cwd=place.root)
    observed(
        message=done.stderr,
        exit_status=done.returncode,
        left=[note.path],
        next_run=again.returncode == 0 and not note.path.exists(),
    )
