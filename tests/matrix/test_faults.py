"""What goes wrong on a site: each ends in a clear failure, a clean file system and a report."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.xdist_group("minisite")

#: One check that takes some seconds on the slow disk, and one on CephFS.
SLOW = ["-n", "BenchioFPP", "-E", 'file_system == "slow"', "-p", "openmpi-ucx"]


def job_of(suite) -> str:
    """The job that is running, once it writes its files."""
    site = suite.site
    site.wait_until(lambda: any(site.left_behind()), "a run directory")
    directory = site.left_behind()[0]
    site.wait_until(lambda: any(directory.glob("*.dat")), "files in it")
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


def test_a_job_that_somebody_cancels(suite):
    run = suite.begin("-r", *SLOW)
    suite.site.call(f"scancel {job_of(suite)}")
    case = failed_case(suite, run)
    assert "CANCELLED" in case["fail_reason"]


def test_a_node_that_is_drained_meanwhile(suite):
    run = suite.begin("-r", *SLOW)
    job_of(suite)
    try:
        suite.site.call("scontrol update nodename=n2 state=drain reason=test")
        output, _ = run.communicate()
        # The job goes on to its end on a node that takes no further ones.
        assert run.returncode == 0, output
        # The next one would wait for the node for ever.
        again = suite.reframe("-r", *SLOW)
        assert again.returncode == 1
        case = suite.the_case()
        assert "pending" in case["fail_reason"]
    finally:
        suite.site.call("scontrol update nodename=n2 state=resume")


def test_a_job_that_takes_too_long(suite):
    path = suite.copy.root / "config" / "systems" / "minisite.py"
    text = path.read_text(encoding="utf-8")
    assert text.count('"time_limit": "5m"') == 1
    path.write_text(text.replace('"time_limit": "5m"', '"time_limit": "1m"'), encoding="utf-8")
    suite.site.call("true")
    run = suite.begin("-r", *SLOW)
    case = failed_case(suite, run)
    assert "TIME LIMIT" in case["fail_reason"]
