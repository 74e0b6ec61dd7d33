"""Checks on file systems that fail: a clear reason, no rate, nothing left behind.

One ReFrame session runs the checks on real file systems that are broken in different ways.
"""

import os
import subprocess

import pytest

from tests.site_copy import copy_suite

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts file systems: needs root")

FILE_SYSTEMS = {
    "healthy": {},
    "absent": {},
    "readonly": {},
    "small": {},
    "inodes": {},
    "guarded": {"min_free_gib": 1},
}

MOUNTS = {
    "readonly": "size=16m,ro",
    "small": "size=4m",
    "inodes": "size=64m,nr_inodes=4",  # its root, the run directory and two files
    "guarded": "size=64m",
}

REASONS = {
    "absent": "no directory can be made there: does it exist, may you write?",
    "readonly": "no directory can be made there: does it exist, may you write?",
    "small": "4096 KiB are free, this run needs 0.0078125 GiB",
    "guarded": "KiB are free, this run needs 1.00781 GiB: 0.0078125 to write",
    "inodes": "No space left on device",
}


@pytest.fixture(scope="module")
def broken_session(tmp_path_factory):
    """The site after a session on all its file systems, and what ReFrame printed."""
    file_systems = tmp_path_factory.mktemp("file_systems")
    site = copy_suite(tmp_path_factory.mktemp("site"))
    site.add_local_system(
        "broken",
        {
            name: {"path": str(file_systems / name), "type": "posix", "medium": "disk", **more}
            for name, more in FILE_SYSTEMS.items()
        },
        {"nodes": 1, "tasks_per_node": 4, "mib_per_task": 2},
    )
    for name in ("healthy", *MOUNTS):
        (file_systems / name).mkdir()
    try:
        for name, options in MOUNTS.items():
            mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", file_systems / name]
            subprocess.run(mount, check=True)
        run = site.reframe("--system=broken", "-r", "--exec-policy=serial", "-n", "BenchioFPP")
        left = {name: sorted((file_systems / name).iterdir()) for name in ("healthy", *MOUNTS)}
        yield site, run, left
    finally:
        for name in MOUNTS:
            subprocess.run(["umount", file_systems / name], check=False)


def reason_of(site, file_system):
    cases = site.test_cases("broken")
    (case,) = [case for case in cases if f"file_system={file_system} " in case["display_name"]]
    return case["result"], case["fail_phase"], case["fail_reason"]


def test_the_healthy_one_is_measured(broken_session):
    site, run, _ = broken_session
    assert run.returncode == 1, run.stdout + run.stderr
    assert reason_of(site, "healthy") == ("pass", None, None)
    rows = [row for row in site.rows("broken") if row["file_system"] == "healthy"]
    assert sorted(row["perf_var"] for row in rows) == ["read_bw", "write_bw"]
    assert all(float(row["perf_value"]) > 0 for row in rows)


@pytest.mark.parametrize("file_system", REASONS)
def test_a_broken_one_fails_with_its_reason(broken_session, file_system):
    site, _, _ = broken_session
    result, phase, reason = reason_of(site, file_system)
    assert (result, phase) == ("fail", "sanity")
    assert REASONS[file_system] in reason


@pytest.mark.parametrize("file_system", REASONS)
def test_a_broken_one_has_no_rate(broken_session, file_system):
    site, _, _ = broken_session
    rows = [row for row in site.rows("broken") if row["file_system"] == file_system]
    assert all(row["perf_value"] in {"null", "None"} for row in rows)


def test_nothing_is_left_behind(broken_session):
    _, _, left = broken_session
    assert left == {name: [] for name in left}
