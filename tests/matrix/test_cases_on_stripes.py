"""Cases that need stripes, on a real striped file system with four targets."""

import re

import pytest

from tests.site_copy import copy_suite

pytestmark = pytest.mark.xdist_group("minisite")

MODULES = ("archer2_page", "bulk_lustre", "cray_slides", "cray_hints", "csc_page")
CASES = (
    "Archer2StripeCount|Archer2StripeSize|BulkLustre(LargeFile|SmallFiles)|CrayNode|CrayOneFile|"
    "CrayFewFiles|CrayTargetsPerAggregator|CraySharedHdf5|CrayHdf5Dump|CscSmallFiles"
)
#: The stripes in effect with the setting, by case and stripe count asked.
RAN = {
    ("archer2-stripe-count", 4): 4,
    ("archer2-stripe-size", 1): 1,
    ("archer2-stripe-size", 4): 4,
    ("bulk-lustre-large-file", 4): 4,
    ("bulk-lustre-small-files", 1): 1,
    ("cray-node", 4): 4,
    # as many stripes as there are targets and processes
    ("cray-one-file", 1): 4,
    # one process, and so one file over all targets
    ("cray-few-files", 1): 4,
    ("cray-targets-per-aggregator against 1", 4): 4,
    ("cray-targets-per-aggregator against 2", 4): 4,
    ("cray-hdf5-dump", 4): 4,
    ("csc-small-files", 4): 4,
}
SKIPPED = {
    "needs 8 stripes: only 4 targets of ceph take files",
    "needs 16 stripes: only 4 targets of ceph take files",
    "compares all stripes with 4: the site file has no more",
    "has 1 aggregators on both sides: too few stripes or processes",
}


@pytest.fixture(scope="module")
def session(minisite, tmp_path_factory):
    site = copy_suite(
        tmp_path_factory.mktemp("cases"), *(f"checks/cases/{name}.py" for name in MODULES)
    )
    ceph = {
        "path": str(minisite.file_system("ceph")),
        "type": "cephfs",
        "medium": "memory",
        "stripe_counts": [1, 4],
        "striping": {"size_kib": 1024, "object_size_kib": 4096},
    }
    scale = {"nodes": 1, "tasks_per_node": 4, "mib_per_task": 4}
    site.add_local_system("cases", {"ceph": ceph}, scale)
    run = site.reframe(
        *("--system=cases", "-r", "--exec-policy=serial", "-n", CASES, "-S", "pairs=1"),
        "--keep-stage-files",
        env=minisite.env,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return site


def test_stripes_of_rules_and_of_texts_are_in_effect(session):
    found = {
        (row["case"], int(row["stripe_count_asked"])): int(row["stripe_count"])
        for row in session.rows("cases")
        if row["perf_var"] == "write_ratio" and float(row["perf_value"]) > 0
    }
    assert found == RAN


def test_accesses_are_aligned_with_the_osds_of_the_objects(session, minisite, tmp_path):
    rows = [row for row in session.rows("cases") if row["pattern"] == "aligned"]
    cases = {"bulk-lustre-large-file", "bulk-lustre-small-files"}
    assert {row["case"] for row in rows if row["perf_var"] == "write_bw"} == cases
    # one scan of many files is a rate; of one file it is nothing
    scans = [row for row in rows if row["perf_var"] == "scan_rate"]
    assert [row["case"] for row in scans] == ["bulk-lustre-small-files"]
    # of both sides, each with as many files as MiB
    (kept,) = (session.root / "stage").rglob("*SmallFiles*/scans.txt")
    times = [line.split() for line in kept.read_text(encoding="utf-8").splitlines()]
    slow, fast = sorted(16e9 / (int(end) - int(start)) for _, start, end in times)
    assert float(scans[0]["perf_value"]) == pytest.approx((slow + fast) / 2)
    # The monitors' answers agree with their map of the OSDs.
    tables = list((session.root / "stage").rglob("osds.txt"))
    assert len(tables) == 2
    minisite.call(f"ceph osd getmap -o {tmp_path}/map")
    (pool,) = re.findall(r"(\d+) data", minisite.call("ceph osd lspools"))
    for table in tables:
        lines = [line.split() for line in table.read_text(encoding="utf-8").splitlines()]
        assert len(lines) >= 4
        for name, osd in lines[:6]:
            said = minisite.call(
                f"osdmaptool {tmp_path}/map --test-map-object {name} --pool {pool}"
            )
            assert said.endswith(f"-> [{osd}]\n")


def test_what_the_file_system_lacks_is_said(session):
    cases = session.test_cases("cases")
    assert {case["skip_reason"] for case in cases if case["result"] == "skip"} == SKIPPED


def test_aggregators_are_as_many_as_asked_where_nodes_share_a_host(minisite, tmp_path):
    """ROMIO counts hosts by name, and the two nodes of the job have the same host name."""
    site = copy_suite(tmp_path, "checks/cases/cray_hints.py")
    chosen = "file_system == 'fast' and scale == 'small'"
    run = site.reframe(
        *("--system=minisite", "-r", "--exec-policy=serial", "-S", "pairs=1", "-E", chosen),
        *("-n", "CrayHdf5Dump", "-p", "openmpi-ucx"),
        env=minisite.env,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    rows = [row for row in site.rows("minisite") if row["perf_var"] == "write_ratio"]
    assert [(row["nodes"], row["hints_in_effect"]) for row in rows] == [
        ("2", "cb_config_list=*:2,cb_nodes=2,romio_cb_write=enable,romio_ds_write=disable")
    ]


def test_nothing_is_left(session, minisite):
    assert session.rows("cases")
    assert minisite.left_behind() == []
