"""The CephFS backend on a real CephFS, with one node of the site and no scheduler."""

import subprocess

import pytest

from tests.site_copy import BENCHIO, copy_suite

pytestmark = pytest.mark.xdist_group("minisite")

FILE_SYSTEMS = {
    "plain": {"stripe_counts": [1, 4, -1, 8]},
    "sized": {
        "stripe_counts": [2],
        "striping": {"size_kib": 1024, "object_size_kib": 8192, "pool": "data"},
    },
    "as_it_is": {},
    "no_such_pool": {"stripe_counts": [2], "striping": {"pool": "nopool"}},
    "not_mounted": {"stripe_counts": [1], "path": "/tmp"},
}

# By file system and requested stripe count: the stripe count and size in effect, with four OSDs and
# Ceph's default stripe of 4 MiB.
IN_EFFECT = {
    ("plain", "1"): ("1", "4194304"),
    ("plain", "4"): ("4", "4194304"),
    ("plain", "-1"): ("4", "4194304"),
    ("sized", "2"): ("2", "1048576"),
    ("as_it_is", "null"): ("1", "4194304"),
}

REASONS = {
    "%file_system=plain %stripe_count_asked=8": "stripe count requested: 8; there are 4 OSDs up",
    "%file_system=no_such_pool": "Ceph refused the requested layout",
}


@pytest.fixture(scope="module")
def session(minisite, tmp_path_factory):
    """The site after a session on the real file system."""
    site = copy_suite(tmp_path_factory.mktemp("cephfs"), *BENCHIO)
    cephfs = minisite.file_system("ceph")
    common = {"path": str(cephfs), "type": "cephfs", "medium": "memory"}
    site.add_local_system(
        "striped",
        {name: {**common, **more} for name, more in FILE_SYSTEMS.items()},
        {"nodes": 1, "tasks_per_node": 2, "mib_per_task": 8},
    )
    run = site.reframe(
        "--system=striped", "-r", "--exec-policy=serial", "-n", "BenchioFPP", env=minisite.env
    )
    # Eight checks but the one that is skipped, and what they need: a build, and three looks.
    assert "Ran 11/12 test case(s)" in run.stdout, run.stdout + run.stderr
    return site


def test_the_layout_in_effect_is_recorded(session):
    rows = [row for row in session.rows("striped") if row["result"] == "pass"]
    found = {
        (row["file_system"], row["stripe_count_asked"]): (row["stripe_count"], row["stripe_size"])
        for row in rows
        if row["perf_var"] == "write_bw"
    }
    assert found == IN_EFFECT


def test_the_osds_are_counted(session):
    rows = session.rows("striped")
    counted = {(row["targets_active"], row["targets_inactive"]) for row in rows if row["pattern"]}
    assert ("4", "0") in counted


def test_what_cannot_be_had_is_named(session):
    failed = {
        case["display_name"]: case["fail_reason"]
        for case in session.test_cases("striped")
        if case["result"] == "fail"
    }
    assert len(failed) == len(REASONS)
    for mark, reason in REASONS.items():
        assert [text for name, text in failed.items() if mark in name and reason in text], failed


def test_what_is_not_mounted_is_skipped(session):
    skipped = [case for case in session.test_cases("striped") if case["result"] == "skip"]
    assert [case["file_system"] for case in skipped] == ["not_mounted"]
    assert skipped[0]["not_run"].startswith("not mounted on ")


def test_nothing_is_left(session, minisite):
    assert minisite.left_behind() == []


def test_the_mount_table_tells_it_from_other_file_systems(minisite):
    command = ["df", "--output=fstype", str(minisite.file_system("ceph"))]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["Type", "fuse.ceph-fuse"]
