"""A run that is stopped leaves nothing on the file system and no rate in the perflog."""

import json
import os
import shutil
import signal
import time
from dataclasses import replace

import pytest


def add_slow_system(site, disk, **scale):
    site.add_local_system(
        "slow",
        {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 2, "mib_per_task": 8, "repeats": 100_000, **scale},
    )


@pytest.fixture
def disk(tmp_path_factory):
    return tmp_path_factory.mktemp("disk")


def test_time_limit(site_copy, disk, tmp_path_factory):
    add_slow_system(site_copy, disk, time_limit="3s")
    # Removing takes its time, as on a machine that is busy.
    programs = tmp_path_factory.mktemp("bin")
    remover = programs / "rm"
    remover.write_text(f'#!/bin/sh\nsleep 4\nexec {shutil.which("rm")} "$@"\n', encoding="utf-8")
    remover.chmod(0o755)
    run = site_copy.reframe(
        *("--system=slow", "-r", "--exec-policy=serial", "-n", "BenchioFPP"),
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
    )
    assert run.returncode == 1
    (case,) = [c for c in site_copy.test_cases("slow") if "BenchioFPP" in c["display_name"]]
    assert case["result"] == "fail"
    assert "timed out" in case["fail_reason"]
    assert not list(disk.iterdir())
    assert [row for row in site_copy.rows("slow") if row["perf_value"] != "null"] == []


def test_terminated_from_outside(site_copy, disk):
    add_slow_system(site_copy, disk)
    session = site_copy.begin_reframe(
        "--system=slow", "-r", "--exec-policy=serial", "-n", "BenchioFPP"
    )
    try:
        wait_until(lambda: list(disk.glob("iobands-*/proc*.dat")))
        session.send_signal(signal.SIGTERM)
        session.communicate(timeout=300)
        assert session.returncode != 0
    finally:
        session.kill()
        session.wait()
    wait_until(lambda: not list(disk.iterdir()))


def test_a_machine_that_goes_down_leaves_what_the_next_session_removes(site_copy, disk, tmp_path):
    site = replace(site_copy, checks=("checks/preflight/checks.py",))
    site.add_local_system(
        "slow",
        {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 1, "mib_per_task": 1},
    )
    dd = tmp_path / "bin" / "dd"
    dd.parent.mkdir()
    dd.write_text(f"#!/bin/sh\n[ ! -e {tmp_path}/hang ] || exec sleep 1000\n", encoding="utf-8")
    dd.chmod(0o755)
    hang = tmp_path / "hang"
    hang.touch()
    selected = ("--system=slow", "-r", "--exec-policy=serial", "-n", "EnvFileSystem")
    session = site.begin_reframe(
        *selected, env={**os.environ, "PATH": f"{dd.parent}:{os.environ['PATH']}"}
    )
    notes = site.root / "perflogs" / "slow" / "leftovers"
    try:
        wait_until(lambda: list(disk.iterdir()))
        (note,) = [json.loads(path.read_text(encoding="utf-8")) for path in notes.iterdir()]
        assert [note["path"]] == [str(path) for path in disk.iterdir()]
        assert note["pid"] == session.pid
    finally:
        session.kill()
        session.communicate()
        os.killpg(note["script"]["pid"], signal.SIGKILL)
    hang.unlink()
    (orphan,) = disk.iterdir()
    assert orphan.stat().st_mode & 0o777 == 0o700
    run = site.reframe(*selected)
    assert run.returncode == 0, run.stdout + run.stderr
    assert list(disk.iterdir()) == []
    assert list(notes.iterdir()) == []


def wait_until(condition, seconds=300):
    """Wait for what must come; the bound is generous, since it only ends a failed test."""
    for _ in range(seconds * 10):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("waited in vain")
