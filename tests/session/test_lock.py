"""The lock of a root: who holds it, who is refused, and when it is stale."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from iobands.session.lock import acquire, join, new_holder, path_of, read_holder, release
from iobands.session.processes import Process
from iobands.session.refusal import SessionRefusedError


def test_one_at_a_time(tmp_path: Path) -> None:
    first, second = new_holder("iobands run"), replace(new_holder("reframe -r"), session="second")
    assert acquire(tmp_path, first) is None
    with pytest.raises(SessionRefusedError) as refused:
        acquire(tmp_path, second)
    assert all(text in str(refused.value) for text in ("iobands run", first.began, first.host))
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
    with pytest.raises(SessionRefusedError):
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


def test_of_another_host_nothing_is_known(tmp_path: Path) -> None:
    elsewhere = replace(Process.this(), host="login9", boot="before")
    acquire(tmp_path, replace(new_holder("iobands run"), processes=(elsewhere,)))
    with pytest.raises(SessionRefusedError) as refused:
        acquire(tmp_path, new_holder("iobands run"))
    assert f"if login9 is gone or has restarted since, remove {path_of(tmp_path)}" in str(
        refused.value
    )


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"processes": 1}', b"[1]"])
def test_a_damaged_lock_is_said(tmp_path: Path, content: bytes) -> None:
    path_of(tmp_path).write_bytes(content)
    with pytest.raises(SessionRefusedError, match="damaged; remove it"):
        acquire(tmp_path, new_holder("iobands run"))
