"""A session that cron starts in odd surroundings: its samples have their usual place and form.

The real configuration and a real ReFrame, which `iobands run` starts.
"""

import os
from datetime import datetime

import pytest

from tests.preloaded import preloaded

SAMPLES = ("--system=odd", "--", "-n", "BenchioSerial")


@pytest.fixture
def site(site_copy, tmp_path_factory):
    """A site with a directory to measure."""
    disk = tmp_path_factory.mktemp("disk")
    site_copy.add_local_system(
        "odd",
        {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 1, "mib_per_task": 1},
    )
    return site_copy


@pytest.fixture
def measured(site):
    """Two sessions with all the oddities, and the site."""
    odd = {
        **os.environ,
        "TZ": "XYZ-5:30:15",
        "RFM_PERFLOG_DIR": str(site.root / "elsewhere"),
        "RFM_PREFIX": str(site.root / "elsewhere"),
    }
    before = os.umask(0)
    try:
        runs = [site.iobands("run", *SAMPLES, env=odd) for _ in range(2)]
    finally:
        os.umask(before)
    return site, runs


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


@pytest.mark.fault(
    "checks", "perflogs where locks are ENOSYS (Lustre without `flock`)", "measured and recorded"
)
def test_perflogs_without_locks(site, tmp_path_factory, observed):
    library = preloaded("no_locks", tmp_path_factory.mktemp("library"))
    env = {**os.environ, **library, "NO_LOCKS": str(site.root)}
    first = site.iobands("run", *SAMPLES, env=env)
    assert first.returncode == 0, first.stdout + first.stderr
    rows = [row for row in site.rows("odd") if row["perf_value"] not in {"null", None}]
    assert [row["perf_var"] for row in rows] == ["write_bw", "read_bw"]
    # commands of people write to the site in the same environment
    retired = site.iobands("retire", "write_bw", "--reason", "a test", env=env)
    assert retired.returncode == 0, retired.stderr
    second = site.iobands("run", *SAMPLES, env=dict(os.environ))
    observed(
        message=first.stdout,
        exit_status=first.returncode,
        left=[],
        next_run=second.returncode == 0,
    )


@pytest.mark.fault("checks", "quota at close of a perflog", "unknown: the samples are named")
def test_quota_at_close_of_a_perflog(site, tmp_path_factory, observed):
    library = preloaded("close_quota", tmp_path_factory.mktemp("library"))
    env = {**os.environ, **library, "CLOSE_QUOTA": "BenchioSerial.log"}
    first = site.iobands("run", *SAMPLES, env=env)
    assert first.returncode == 3
    said = [line for line in first.stderr.splitlines() if "Disk quota exceeded" in line]
    assert all(
        f" {name} " in line for name, line in zip(("write_bw", "read_bw"), said, strict=True)
    )
    assert "Traceback" not in first.stderr
    assert "NoneType" not in first.stdout + first.stderr
    second = site.iobands("run", *SAMPLES, env=dict(os.environ))
    rows = [row for row in site.rows("odd") if row["perf_value"] not in {"null", None}]
    assert sorted(row["perf_var"] for row in rows) == ["read_bw"] * 2 + ["write_bw"] * 2
    observed(
        message=said[0],
        exit_status=first.returncode,
        left=[],
        next_run=second.returncode == 0,
    )
