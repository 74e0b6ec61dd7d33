"""A canary on a file system that hangs or is full, and one that is killed."""

import os
import signal
import time

import pytest

from tests.faults.test_hung_file_systems import disk, freeze, thaw, users_of  # noqa: F401
from tests.waiting import wait_until

pytestmark = pytest.mark.needs("mounts", "loop devices")

NODE = ("canary", "--node", "n1", "--mib", "4", "--limit", "24")


@pytest.fixture
def site(site_copy, disk):  # noqa: F811
    """A site in which a session has built benchio."""
    place = {"path": str(disk), "type": "posix", "medium": "disk", "mounted_as": "ext4"}
    scale = {"nodes": 1, "tasks_per_node": 1, "mib_per_task": 1}
    site_copy.add_local_system("one", {"disk": place}, scale)
    done = site_copy.reframe("--system=one", "-r", "--exec-policy=serial", "-n", "BenchioSerial")
    assert done.returncode == 0, done.stdout + done.stderr
    return site_copy


def canary(site):
    done = site.iobands(*NODE, env=os.environ)
    return done.returncode, done.stdout


def notes_of(site):
    return list((site.root / "perflogs" / "one" / "leftovers").glob("iobands-*"))


def test_whatever_happens_to_the_file_system_it_answers_in_time(site, disk):  # noqa: F811
    status, line = canary(site)
    assert (status, line.startswith("IOBANDS FIT: n1: disk: writes ")) == (0, True), line

    freeze(disk)
    began = time.monotonic()
    status, line = canary(site)
    assert time.monotonic() - began < 60
    assert (status, "UNFIT: n1: disk: hung: no answer" in line) == (2, True), line
    assert len(notes_of(site)) == 2
    thaw(disk)
    wait_until(lambda: not users_of(disk))
    assert len(list(disk.iterdir())) == 2  # they came when it answered
    assert canary(site)[0] == 0
    assert (list(disk.iterdir()), notes_of(site)) == ([], [])

    with (disk / "full").open("wb") as file:
        os.posix_fallocate(
            file.fileno(), 0, os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize - (2 << 20)
        )
    status, line = canary(site)
    assert (status, "UNFIT: n1: disk: full: " in line) == (2, True), line
    (disk / "full").unlink()


def test_one_that_is_killed_leaves_nothing(site, disk):  # noqa: F811
    running = site.begin_iobands(*NODE, env=os.environ)
    wait_until(lambda: list(disk.glob("iobands-Canary-*/data/*.dat")))
    for pid in (running.pid, *map(int, children_of(running.pid))):
        os.kill(pid, signal.SIGKILL)
    running.communicate()
    wait_until(lambda: not list(disk.iterdir()))  # its script has removed it
    cleaned = site.iobands("clean", env=os.environ)
    assert (cleaned.returncode, notes_of(site)) == (0, []), cleaned.stdout
    assert canary(site)[0] == 0
    assert not list((site.root / "stage").glob("canary-*"))


def children_of(pid):
    """The command's own child, which does the work."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:  # noqa: PTH123
        return file.read().split()
