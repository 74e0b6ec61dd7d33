"""A run that is stopped leaves nothing on the file system and no rate in the perflog."""

import os
import shutil
import signal

import pytest

from tests.waiting import wait_until


def add_slow_system(site, disk, **scale):
    site.add_local_system(
        "slow",
        {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 2, "mib_per_task": 8, "repeats": 100_000, **scale},
    )


RUN = ("--system=slow", "-r", "--exec-policy=serial", "-n", "BenchioFPP")


@pytest.mark.fault("checks", "SIGTERM to `reframe -r` in the middle of a job", "ended; no rate")
@pytest.mark.fault("checks", "time-out of a local job", "ended; no rate")
def test_a_run_that_is_ended_early(site_copy, tmp_path_factory, observed):
    disk, programs = tmp_path_factory.mktemp("disk"), tmp_path_factory.mktemp("bin")
    add_slow_system(site_copy, disk)
    session = site_copy.begin_reframe(*RUN)
    try:
        wait_until(lambda: list(disk.glob("iobands-*/data/proc*.dat")))
        session.send_signal(signal.SIGTERM)
        said, _ = session.communicate(timeout=300)
        assert session.returncode != 0
    finally:
        session.kill()
        session.wait()
    wait_until(lambda: not list(disk.iterdir()))

    add_slow_system(site_copy, disk, time_limit="3s")
    # Removing takes its time, as on a machine that is busy.
    remover = programs / "rm"
    remover.write_text(f'#!/bin/sh\nsleep 4\nexec {shutil.which("rm")} "$@"\n', encoding="utf-8")
    remover.chmod(0o755)
    late = site_copy.reframe(*RUN, env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"})
    (case,) = [c for c in site_copy.test_cases("slow") if "BenchioFPP" in c["display_name"]]
    assert (late.returncode, case["result"]) == (1, "fail")
    assert "; the scheduler ended the job: TIMEOUT (limit 3 s)" in case["fail_reason"]
    left = list(disk.iterdir())
    assert [row for row in site_copy.rows("slow") if row["perf_value"] != "null"] == []
    assert not left

    add_slow_system(site_copy, disk, repeats=1)
    again = site_copy.reframe(*RUN).returncode == 0
    signals = next(line for line in said.splitlines() if "signal" in line)
    for fault, message, status in (
        ("SIGTERM to `reframe -r` in the middle of a job", signals, session.returncode),
        ("time-out of a local job", case["fail_reason"], late.returncode),
    ):
        observed(fault, message=message, exit_status=status, left=left, next_run=again)
