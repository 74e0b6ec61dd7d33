"""The lock of a site's root: who holds it, who is refused, and when it is stale."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from iobands.measure import SessionError, Workplace, processes
from iobands.measure import lock as lock_module
from iobands.measure.lock import (
    LOCK_NAME,
    SUSPECTS,
    BusyError,
    acquire,
    clock_problem,
    join,
    lock_path,
    new_holder,
    read_holder,
    release,
    wanted,
)
from iobands.measure.processes import Process
from iobands.measure.session import measure_again, open_session
from iobands.model import Ask
from tests.fault_table import Observed
from tests.waiting import wait_until


def test_who_measures_between_sessions_gives_way(tmp_path: Path) -> None:
    between = new_holder(SUSPECTS)
    session = replace(new_holder("iobands run --tag daily"), session="daily")
    acquire(tmp_path, between)
    with pytest.raises(BusyError):  # the next hourly command does not displace it
        acquire(tmp_path, replace(between, session="an hour later"))
    assert not wanted(tmp_path).exists()
    waiting = threading.Thread(target=acquire, args=(tmp_path, session))
    waiting.start()
    wait_until(wanted(tmp_path).exists)
    assert read_holder(tmp_path) == between  # it holds the lock until its jobs have ended
    release(tmp_path, between.session)
    waiting.join(30)
    assert read_holder(tmp_path) == session
    assert not wanted(tmp_path).exists()
    with pytest.raises(BusyError):  # a session yields to nobody
        acquire(tmp_path, replace(session, session="another"))


@pytest.mark.parametrize("is_wanted", [True, False])
def test_who_judges_between_sessions_gives_way_in_order(tmp_path: Path, is_wanted: bool) -> None:
    """It yields at the signal of its heartbeat; a person's signal is an interruption."""
    at = Workplace(tmp_path, lambda _: SimpleNamespace(partitions={}))

    def judge() -> tuple[Ask, ...]:
        if is_wanted:
            wanted(at.perflogs).touch()
        signal.raise_signal(signal.SIGTERM)
        return ()

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # a killed test says nothing
    try:
        with (
            contextlib.nullcontext()
            if is_wanted
            else pytest.raises(KeyboardInterrupt, match="by a signal")
        ):
            assert measure_again(at, judge, 60) is None
    finally:
        signal.signal(signal.SIGTERM, before)
    assert read_holder(at.perflogs) is None


def test_a_hangup_that_is_ignored_ends_no_session(tmp_path: Path) -> None:
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with open_session(tmp_path, "iobands run"):
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_one_at_a_time(tmp_path: Path) -> None:
    first, second = new_holder("iobands run"), replace(new_holder("reframe -r"), session="second")
    assert acquire(tmp_path, first) is None
    with pytest.raises(SessionError) as refused:
        acquire(tmp_path, second)
    assert all(
        text in str(refused.value) for text in ("iobands run", first.began, socket.gethostname())
    )
    release(tmp_path, second.session)  # who does not hold it
    assert read_holder(tmp_path) == first
    release(tmp_path, first.session)
    assert list(tmp_path.iterdir()) == []
    assert acquire(tmp_path, second) is None


def test_it_is_held_as_long_as_one_of_its_processes_runs(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as gone:
        process = Process.of(gone.pid)
        gone.kill()
    assert process.started is not None
    killed = replace(new_holder("iobands run"), processes=(process,))
    assert acquire(tmp_path, killed) is None
    join(tmp_path, killed)  # as ReFrame does
    with pytest.raises(SessionError):
        acquire(tmp_path, new_holder("iobands run"))
    release(tmp_path, killed.session)
    assert acquire(tmp_path, killed) is None
    new = new_holder("iobands run")
    assert acquire(tmp_path, new) == killed
    assert read_holder(tmp_path) == new


def test_a_process_of_the_same_number_is_another(tmp_path: Path) -> None:
    holder = new_holder("iobands run")
    (process,) = holder.processes
    acquire(tmp_path, replace(holder, processes=(replace(process, started=process.started - 1),)))
    assert acquire(tmp_path, holder) is not None


def test_the_machine_has_restarted(tmp_path: Path) -> None:
    before = replace(Process.this(), boot="before")
    holder = replace(new_holder("iobands run"), processes=(before,))
    acquire(tmp_path, holder)
    assert acquire(tmp_path, new_holder("iobands run")) == holder


def test_machines_of_one_image_have_network_addresses_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = set()
    for address in ("02:00:00:00:00:01", "02:00:00:00:00:02"):
        machine = tmp_path / address
        (machine / "net" / "eth0" / "device").mkdir(parents=True)
        (machine / "net" / "lo").mkdir()
        (machine / "net" / "eth0" / "address").write_text(f"{address}\n")
        (machine / "machine-id").write_text("3d1219c7c4c5404aaa1f6d2a48adfda4\n")
        monkeypatch.setattr(processes, "_MACHINE", machine / "machine-id")
        monkeypatch.setattr(processes, "_NETWORK", machine / "net")
        processes.machine_id.cache_clear()
        found.add(processes.machine_id())
    processes.machine_id.cache_clear()
    assert len(found) == 2


ELSEWHERE = {
    "another host": {"host": "login9", "boot": "before"},
    "a host of the same name": {"machine": "another", "boot": "another"},
    "a container": {"namespace": "pid:[1]", "pid": 2**22 - 1},
}


@pytest.mark.parametrize(
    "where",
    [
        pytest.param(
            where,
            marks=pytest.mark.fault(
                "session", f"{name} measures on the same perflogs", "refused; how to go on"
            ),
            id=name,
        )
        for name, where in ELSEWHERE.items()
    ],
)
def test_of_another_machine_or_container_nothing_is_known(
    tmp_path: Path, where: dict[str, Any], observed: Observed
) -> None:
    elsewhere = replace(Process.this(), **where)
    holder = replace(new_holder("iobands run"), processes=(elsewhere,))
    acquire(tmp_path, holder)
    with pytest.raises(SessionError) as refused:
        acquire(tmp_path, new_holder("iobands run"))
    assert (
        f"cannot be seen from here: if it has ended, remove {lock_path(tmp_path)}, or wait"
        in str(refused.value)
    )
    assert read_holder(tmp_path) == holder
    lock_path(tmp_path).unlink()
    new = new_holder("iobands run")
    acquire(tmp_path, new)
    right = read_holder(tmp_path) == new
    observed(message=str(refused.value), exit_status=3, left=[LOCK_NAME], next_run=right)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the heartbeat beat every 20 ms."""
    monkeypatch.setattr(lock_module, "_BEAT", 0.02)
    monkeypatch.setattr(lock_module, "_WATCH", 0.5)


@pytest.mark.usefixtures("quick")
def test_without_a_sign_of_life_it_is_taken_over(tmp_path: Path) -> None:
    elsewhere = replace(Process.this(), host="login9")
    holder = replace(new_holder("iobands run"), processes=(elsewhere,))
    acquire(tmp_path, holder)
    path, new = lock_path(tmp_path), replace(new_holder("iobands run"), session="new")
    past = time.time() - lock_module.STOPPED

    os.utime(path, (past + 60, past + 60))
    with pytest.raises(SessionError):  # too early to tell whether it is alive
        acquire(tmp_path, new)

    # a machine whose clock is years behind: its heartbeat looks old, but moves
    os.utime(path, (1, 1))
    moving = threading.Event()

    def touch() -> None:
        for second in itertools.count(2):
            if moving.wait(0.02):
                return
            os.utime(path, (second, second))

    thread = threading.Thread(target=touch)
    thread.start()
    try:
        with pytest.raises(SessionError):
            acquire(tmp_path, new)
    finally:
        moving.set()
        thread.join()

    os.utime(path, (past - 60, past - 60))
    assert acquire(tmp_path, new) == holder
    assert read_holder(tmp_path) == new


@pytest.mark.parametrize(
    ("hours", "off"),
    [(0.1, "6 minutes ahead of"), (1, "60 minutes ahead of"), (-1.9, "114 minutes behind"),
     (2, "2 hours ahead of"), (47, "47 hours ahead of"), (-72, "3 days behind")],
)  # fmt: skip
def test_how_far_a_clock_is_off(
    hours: float, off: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_module, "time_there", lambda _: time.time() - 3600 * hours)
    assert f" is {off} the clock of the file system" in str(clock_problem(tmp_path))


def test_one_of_an_older_version_ends_with_a_restart(tmp_path: Path) -> None:
    process = {"host": socket.gethostname(), "boot": "before", "pid": 7, "started": 9}
    said = {"session": "old", "command": "iobands run", "user": "me", "began": "then"}
    lock_path(tmp_path).write_text(json.dumps({**said, "processes": [process]}))
    assert acquire(tmp_path, new_holder("iobands run")) is not None


@pytest.mark.usefixtures("quick")
def test_a_session_shows_signs_of_life_until_its_lock_is_anothers(tmp_path: Path) -> None:
    perflogs = tmp_path / "perflogs"
    lock = lock_path(perflogs)
    interrupted = pytest.raises(KeyboardInterrupt, match="by a signal")
    with interrupted, open_session(perflogs, "iobands run") as (holder, _):
        os.utime(lock, (1, 1))
        wait_until(lambda: lock.stat().st_mtime > 1)
        other = replace(holder, session="another")
        lock.unlink()
        acquire(perflogs, other)
        wait_until(lambda: False)
    assert read_holder(perflogs) == other


@pytest.mark.fault("session", "NFS loses the answer to `link`", "the session has its lock")
def test_an_answer_of_the_server_that_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, observed: Observed
) -> None:
    link = os.link

    def link_and_lose_the_answer(source: Path, target: Path) -> None:
        link(source, target)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))

    monkeypatch.setattr(os, "link", link_and_lose_the_answer)
    first = new_holder("iobands run")
    assert acquire(tmp_path, first) is None
    assert [path.name for path in tmp_path.iterdir()] == [LOCK_NAME]
    with pytest.raises(SessionError):
        acquire(tmp_path, replace(first, session="second"))
    release(tmp_path, first.session)
    right = acquire(tmp_path, first) is None
    observed(message="", exit_status=0, left=[], next_run=right)


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(SessionError, match="a file system with hard links"):
        acquire(tmp_path, new_holder("iobands run"))
    assert list(tmp_path.iterdir()) == []


#: Takes the lock on request, prints whether it got it, and holds it until standard input ends. In
#: this process, flock(2) does not work.
CONTENDER = """\
import errno, fcntl, sys
from pathlib import Path
def flock(*_): raise OSError(errno.ENOSYS, "no locks here")
fcntl.flock = fcntl.lockf = flock
from iobands.measure.lock import acquire, new_holder
from iobands.measure import SessionError
print("ready", flush=True)
for _ in sys.stdin:
    try:
        acquire(Path(sys.argv[1]), new_holder("iobands run"))
        print("held", flush=True)
    except SessionError as error:
        print("refused", flush=True)
"""


@pytest.mark.fault(
    "session", "three begin at once beside the lock of a killed one", "one of them measures"
)
def test_of_three_beside_a_stale_lock_one_takes_it(tmp_path: Path, observed: Observed) -> None:
    killed = replace(new_holder("iobands run"), processes=(replace(Process.this(), boot="before"),))
    command = [sys.executable, "-c", CONTENDER, tmp_path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with contextlib.ExitStack() as stack:
        three = [
            stack.enter_context(subprocess.Popen(command, **pipes, text=True)) for _ in range(3)
        ]
        assert [each.stdout.readline() for each in three] == ["ready\n"] * 3
        for each_round in range(60):
            lock_path(tmp_path).unlink(missing_ok=True)
            acquire(tmp_path, replace(killed, session=f"killed-{each_round}"))
            for each in three:
                each.stdin.write("now\n")
            for each in three:
                each.stdin.flush()
            said = sorted(each.stdout.readline() for each in three)
            assert said == ["held\n", "refused\n", "refused\n"]
            assert [path.name for path in tmp_path.iterdir()] == [LOCK_NAME]
    holder = read_holder(tmp_path)
    assert holder is not None
    with pytest.raises(SessionError) as refused:
        acquire(tmp_path, replace(holder, session="late", processes=(Process.this(),)))
        acquire(tmp_path, new_holder("iobands run"))
    observed(message=str(refused.value), exit_status=3, left=[], next_run=True)


def test_one_that_was_killed_as_it_took_over(tmp_path: Path) -> None:
    gone = replace(Process.this(), boot="before")
    killed, taker = (
        replace(new_holder("iobands run"), session=name, processes=(gone,))
        for name in ("killed", "taker")
    )
    acquire(tmp_path, killed)
    other = tmp_path / "other"
    other.mkdir()
    acquire(other, taker)
    name = hashlib.sha256(b"killed").hexdigest()[:32]
    lock_path(other).rename(tmp_path / f"{LOCK_NAME}.{name}")  # it held the lock on that session
    other.rmdir()
    new = new_holder("iobands run")
    assert acquire(tmp_path, new) == killed
    assert read_holder(tmp_path) == new
    assert [path.name for path in tmp_path.iterdir()] == [LOCK_NAME]


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"processes": 1}', b"[1]", b"[" * 999])
def test_a_damaged_lock_is_said(tmp_path: Path, content: bytes) -> None:
    lock_path(tmp_path).write_bytes(content)
    with pytest.raises(SessionError, match="damaged; remove it"):
        acquire(tmp_path, new_holder("iobands run"))


def test_a_lock_that_cannot_be_removed_hides_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system that has become read-only during the session."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with open_session(tmp_path, "iobands run") as (holder, _):
        monkeypatch.setattr(Path, "unlink", refuse)
    assert read_holder(tmp_path) == holder


def test_a_power_failure_leaves_no_empty_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would keep each later session from measuring until somebody removes it."""
    path, synced = lock_path(tmp_path), []

    def sync(handle: int) -> None:
        about = os.fstat(handle)
        synced.append((about.st_ino, about.st_size, path.exists()))

    monkeypatch.setattr(os, "fsync", sync)
    acquire(tmp_path, new_holder("iobands run"))
    # the complete content of the lock file is on disk before the file gets its name
    about = path.stat()
    assert synced[0] == (about.st_ino, about.st_size, False)
