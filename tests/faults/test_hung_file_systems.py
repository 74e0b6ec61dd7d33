"""File systems that hang: what could not be removed is noted, and removed when they answer.

An ext4 is frozen: a process that writes there waits in the kernel, and no signal ends it.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.faults.test_layers_on_bad_devices import system
from tests.waiting import wait_until

pytestmark = pytest.mark.needs("mounts", "loop devices")


def freeze(disk):
    system("fsfreeze", "--freeze", str(disk))


def thaw(disk):
    system("fsfreeze", "--unfreeze", str(disk))


@pytest.fixture
def disk(tmp_path):
    """An empty ext4, thawed in the end."""
    image, where = tmp_path / "image", tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(32 * 2**20)
    system("mkfs.ext4", "-q", str(image))
    where.mkdir()
    system("mount", "-o", "loop", str(image), str(where))
    (where / "lost+found").rmdir()
    yield where
    subprocess.run(["fsfreeze", "--unfreeze", where], capture_output=True, check=False)
    for pid in users_of(where):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not users_of(where))
    system("umount", str(where))


def users_of(disk):
    """Return the processes with `disk` in their arguments, or as their directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(disk).encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


@pytest.fixture
def site(site_copy, disk):
    """A site with the file system `disk` and time limits of seconds instead of minutes."""
    for path, long, short in (
        ("checks/preflight/probe.py", "PATIENCE_SECONDS = 60", "PATIENCE_SECONDS = 6"),
        ("checks/base/schedulers.py", "SECONDS_TO_CLEAN_UP = 60", "SECONDS_TO_CLEAN_UP = 2"),
    ):
        text = (site_copy.root / path).read_text(encoding="utf-8")
        assert long in text
        (site_copy.root / path).write_text(text.replace(long, short), encoding="utf-8")
    return site_copy


def add_system(site, disk, **scale):
    site.add_local_system(
        "hung",
        {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 1, "mib_per_task": 1, **scale},
    )


def notes_of(site):
    notes = site.root / "perflogs" / "hung" / "leftovers"
    return [json.loads(path.read_text(encoding="utf-8")) for path in notes.glob("iobands-*")]


def run(site, check):
    return ("--system=hung", "-r", "--exec-policy=serial", "-n", check)


@pytest.mark.fault(
    "directories", "file system hangs, and answers later", "unfit; noted; removed by the next run"
)
def test_a_directory_that_comes_when_the_file_system_answers(site, disk, observed):
    add_system(site, disk)
    freeze(disk)
    done = site.reframe(*run(site, "EnvFileSystem"))
    (case,) = [case for case in site.test_cases("hung") if case["name"].startswith("EnvFile")]
    assert "does not answer within 6 s (asked for: directory)" in case["fail_reason"]
    (note,) = notes_of(site)
    assert list(disk.iterdir()) == []
    thaw(disk)
    wait_until(lambda: list(map(str, disk.iterdir())) == [note["path"]] and not users_of(disk))
    left = list(disk.iterdir())
    again = site.reframe(*run(site, "EnvFileSystem"))
    assert (list(disk.iterdir()), notes_of(site)) == ([], [])
    observed(
        message=case["fail_reason"],
        exit_status=done.returncode,
        left=left,
        next_run=again.returncode == 0,
    )


@pytest.mark.fault(
    "directories",
    "local job at its time limit on a file system that hangs, then a restart",
    "noted before; removed after it",
)
def test_a_machine_that_restarts_while_a_file_system_hangs(site, disk, iobands, observed):
    add_system(site, disk, time_limit="5s", repeats=100_000)
    session = site.begin_reframe(*run(site, "BenchioSerial"))
    try:
        wait_until(lambda: list(disk.glob("iobands-BenchioSerial-*/data/*.dat")))
        freeze(disk)
        (note,) = [each for each in notes_of(site) if "BenchioSerial" in each["path"]]
        assert note["pid"] == session.pid
        wait_until(lambda: not Path("/proc", str(note["script"]["pid"])).exists())
        # What is on the disk when the machine restarts: no call that hangs comes to its end.
        image = disk.with_name("image")
        shutil.copy(image, image.with_name("restarted"))
    finally:
        session.kill()
        session.communicate()
    for pid in users_of(disk):
        os.kill(pid, signal.SIGKILL)
    thaw(disk)
    wait_until(lambda: not users_of(disk))
    # processes that were just killed may keep it busy for a moment
    wait_until(lambda: subprocess.run(["umount", disk], check=False).returncode == 0)
    system("mount", "-o", "loop", str(image.with_name("restarted")), str(disk))
    (orphan,) = disk.iterdir()
    assert (str(orphan), orphan.stat().st_mode & 0o777) == (note["path"], 0o700)
    cleaned = iobands("clean", cwd=site.root)
    assert (cleaned.returncode, list(disk.iterdir())) == (0, []), cleaned.stdout
    add_system(site, disk)
    again = site.reframe(*run(site, "BenchioSerial"))
    assert (list(disk.iterdir()), notes_of(site)) == ([], [])
    observed(
        message=cleaned.stdout,
        exit_status=session.returncode,
        left=[orphan],
        next_run=again.returncode == 0,
    )
