"""Faults of a site: each ends in a clear failure, a clean file system and a report."""

from __future__ import annotations

import glob
import json
import os
import shutil
import signal

import pytest

pytestmark = pytest.mark.xdist_group("unfit minisite")

#: One check, on the slow disk.
SLOW = ["-n", "BenchioFPP.*%scale=site", "-E", 'file_system == "slow"', "-p", "openmpi-ucx"]


def of_ceph(stripe_count: int) -> list[str]:
    """One check on CephFS."""
    chosen = f'file_system == "ceph" and stripe_count_asked == {stripe_count}'
    return ["-n", "BenchioFPP.*%scale=site", "-E", chosen, "-p", "openmpi-ucx"]


def job_of(suite) -> str:
    """Return the running job, once it writes its files."""
    site = suite.site
    # The probe runs first and also has a run directory for a moment: glob.glob does not fail when
    # it vanishes.
    site.wait_until(lambda: glob.glob(f"{site.root}/*/iobands-*/data/*.dat"), "files in the making")  # noqa: PTH207
    (job,) = site.call("squeue --noheader --states=R --format=%i").split()
    return job


def failed_case(suite, run) -> dict:
    """The failed case, which left rows without a value in the perflog."""
    output, _ = run.communicate()
    assert run.returncode == 1, output
    case = suite.the_case()
    assert case["result"] == "fail"
    rows = [row for row in suite.rows if row["pattern"] == case["pattern"]]
    assert rows
    assert {row["perf_value"] for row in rows} == {"null"}
    return case


def test_a_node_that_is_drained_meanwhile(suite):
    # So slow that the job does not end before the test has seen it.
    suite.site.throttle("256K")
    try:
        run = suite.begin("-r", *SLOW)
        job_of(suite)
        suite.site.call("scontrol update nodename=n2 state=drain reason=test")
        suite.site.throttle("20M")
        output, _ = run.communicate()
        # The job goes on to its end on a node that takes no further ones.
        assert run.returncode == 0, output
        # The next job would wait for the node forever.
        suite.change_site_file('"max_pending_time": "1m"', '"max_pending_time": "30s"')
        again = suite.reframe("-r", *SLOW)
        assert again.returncode == 1
        reason = suite.the_case()["fail_reason"]
        assert "the job never began" in reason
        assert "waited for more than 30 s" in reason
    finally:
        suite.site.throttle("20M")
        suite.site.call("scontrol update nodename=n2 state=resume")


def test_a_job_that_ends_before_reframe_sees_it(suite, tmp_path):
    """Slurm without accounting forgets the job and its nodes."""
    real = shutil.which("squeue", path=suite.site.env["PATH"])
    late = tmp_path / "bin" / "squeue"
    late.parent.mkdir()
    late.write_text(
        # ReFrame asks for the nodes of a job; the script of the job asks for other things.
        f"""#!/bin/sh
case "$*" in *%N*) while {real} --noheader --me | grep -q .; do sleep 0.2; done ;; esac
exec {real} "$@"
""",
        encoding="utf-8",
    )
    late.chmod(0o755)
    path = f"{late.parent}:{suite.site.env['PATH']}"
    run = suite.copy.reframe(
        "--system=minisite", "-r", *of_ceph(4), env={**suite.site.env, "PATH": path}
    )
    assert run.returncode == 0, run.stdout
    assert {row["job_nodelist"] for row in suite.rows if row["pattern"] == "fpp"} == {"n1,n2,n3,n4"}


@pytest.mark.fault("checks", "a job reaches its time limit", "asked to end; no rate, no file")
def test_a_job_that_takes_too_long(suite, observed):
    # Some seconds each: a process that waits for one long fsync could not be ended.
    suite.repeat()
    # Slurm says so a minute before the end and up to half a minute earlier, but not before the
    # program has begun.
    suite.change_site_file('"time_limit": "5m"', '"time_limit": "2m"')
    case = failed_case(suite, suite.begin("-r", *SLOW))
    assert "near its limit 120 s" in case["fail_reason"]
    left = suite.site.left_behind()
    suite.change_site_file(', "repeats": 1000', "")
    again = suite.reframe("-r", *SLOW)
    observed(message=case["fail_reason"], exit_status=1, left=left, next_run=again.returncode == 0)


def test_a_module_that_is_missing(suite):
    suite.change_site_file('"launcher": "srun",', '"launcher": "srun", "modules": ["gcc/0"],')
    suite.change_site_file('"name": "minisite",', '"name": "minisite", "modules_system": "tmod4",')
    run = suite.reframe("-r", *of_ceph(4))
    assert run.returncode == 1
    failed = [case for case in suite.copy.test_cases("minisite") if case["result"] == "fail"]
    # A module of the partition: neither its file systems nor its environments can be looked at.
    assert {case["display_name"].split()[0] for case in failed} == {"EnvProbe", "EnvCompiler"}
    for case in failed:
        assert "'modulecmd python show gcc/0' failed" in case["fail_reason"]


def test_a_store_that_stops(suite):
    suite.repeat()
    store = int((suite.site.root / "run" / "osd.1.pid").read_text(encoding="utf-8"))
    run = suite.begin("-r", *of_ceph(4))
    job_of(suite)
    os.kill(store, signal.SIGSTOP)
    try:
        case = failed_case(suite, run)
    finally:
        os.kill(store, signal.SIGCONT)
    assert "benchio: rank " in case["fail_reason"]
    assert "Connection timed out" in case["fail_reason"]


def test_a_file_system_that_is_full(suite):
    # Enough space according to df, but not according to the quota of the pool, which takes effect
    # some seconds late.
    suite.repeat(mib_per_task=64)
    quota = suite.site.call("ceph osd pool get-quota data --format json")
    suite.site.call("ceph osd pool set-quota data max_bytes 134217728")
    try:
        case = failed_case(suite, suite.begin("-r", *of_ceph(4)))
    finally:
        before = json.loads(quota)["quota_max_bytes"]
        suite.site.call(f"ceph osd pool set-quota data max_bytes {before}")
        suite.site.wait_until(
            lambda: "POOL_FULL" not in suite.site.call("ceph health --format json"), "room again"
        )
    # A write that was on its way when the pool became full is held back until it times out.
    full = ("No space left on device", "Connection timed out")
    assert any(reason in case["fail_reason"] for reason in full), case["fail_reason"]
