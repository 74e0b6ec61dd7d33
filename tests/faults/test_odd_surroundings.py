"""A session that cron starts with odd surroundings: its samples are where, and as, others expect.

The real configuration and a real ReFrame, which `iobands run` starts.
"""

import os
from datetime import datetime

import pytest

SAMPLES = ("--system=odd", "--", "-n", "BenchioSerial")


@pytest.fixture
def measured(site_copy, tmp_path_factory):
    """Two sessions with all of it, and the site."""
    disk = tmp_path_factory.mktemp("disk")
    site_copy.add_local_system(
        "odd",
        {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 1, "mib_per_task": 1},
    )
    odd = {
        **os.environ,
        "TZ": "XYZ-5:30:15",
        "RFM_PERFLOG_DIR": str(site_copy.root / "elsewhere"),
        "RFM_PREFIX": str(site_copy.root / "elsewhere"),
    }
    before = os.umask(0)
    try:
        runs = [site_copy.iobands("run", *SAMPLES, env=odd) for _ in range(2)]
    finally:
        os.umask(before)
    return site_copy, runs


@pytest.mark.fault("checks", "`umask 000` in cron", "measured; nothing that all users may write")
@pytest.mark.fault("checks", "`RFM_PERFLOG_DIR` in the environment", "the samples are in perflogs")
@pytest.mark.fault("checks", "`TZ` with seconds", "measured; the samples have a time")
def test_samples_are_where_and_as_others_expect(measured, observed):
    site, (first, second) = measured
    rows = [row for row in site.rows("odd") if row["perf_value"] not in {"null", None}]
    assert [row["perf_var"] for row in rows] == ["write_bw", "read_bw"] * 2, first.stdout
    assert not (site.root / "elsewhere").exists()
    for row in rows:
        offset = datetime.fromisoformat(row["job_completion_time"]).utcoffset()
        assert offset.total_seconds() % 60 == 0
    assert "rejected" not in second.stdout
    paths = [site.root / "perflogs", *(site.root / "perflogs").rglob("*")]
    assert [path for path in paths if path.stat().st_mode & 0o002] == []
    for fault in (
        "`umask 000` in cron",
        "`RFM_PERFLOG_DIR` in the environment",
        "`TZ` with seconds",
    ):
        observed(
            fault,
            message=next(line for line in first.stdout.splitlines() if "2 series" in line),
            exit_status=first.returncode,
            left=[],
            next_run=second.returncode == first.returncode == 0,
        )
