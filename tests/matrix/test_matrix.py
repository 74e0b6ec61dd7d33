"""The matrix on a real scheduler and a real striped file system: written, read back and verified.

File per process and shared file, on CephFS with one stripe and four, over OFI and UCX and with two
MPI libraries, with two hint presets; and on the fast disk and the slow one.
"""

from __future__ import annotations

from itertools import product

import pytest

from tests.matrix.conftest import Suite
from tests.site_copy import BENCHIO, copy_suite

pytestmark = pytest.mark.xdist_group("minisite")

SELECTION = [
    "-n",
    "(BenchioFPP|BenchioSSF).*%scale=small",
    "-E",
    'file_system == "ceph" or transport == "ofi"',
]
ENVIRONMENTS = {"openmpi-ofi": "ofi", "openmpi-ucx": "ucx", "mpich-ucx": "ucx"}
PRESETS = {"fpp": ["default"], "ssf": ["default", "romio-csc"]}

#: Pattern, file system, stripe count, environment and preset of each run.
EXPECTED = {
    *(
        (pattern, "ceph", stripes, environment, hints)
        for pattern, stripes, environment in product(PRESETS, "14", ENVIRONMENTS)
        for hints in PRESETS[pattern]
    ),
    *(
        (pattern, disk, "null", "openmpi-ofi", hints)
        for pattern, disk in product(PRESETS, ["fast", "slow"])
        for hints in PRESETS[pattern]
    ),
}
#: The slow disk is held to 20 MiB/s.
SLOW_GIB_S = 20 / 1024


@pytest.fixture(scope="module")
def rows(minisite, tmp_path_factory):
    """The rows of one session with all these runs."""
    suite = Suite(copy_suite(tmp_path_factory.mktemp("matrix"), *BENCHIO), minisite)
    minisite.wait_until(minisite.is_idle, "an idle site")
    run = suite.reframe("-r", "--exec-policy=serial", *SELECTION)
    assert run.returncode == 0, run.stdout + run.stderr
    assert minisite.left_behind() == []
    return [row for row in suite.rows if row["tool"] == "benchio"]


def test_every_combination_ran_and_proved_both_rates(rows):
    fields = ("pattern", "file_system", "stripe_count_asked", "environ", "hints")
    found = [(*(row[field] for field in fields), row["perf_var"]) for row in rows]
    assert sorted(found) == sorted(
        (*combination, variable) for combination in EXPECTED for variable in ("write_bw", "read_bw")
    )
    assert {row["result"] for row in rows} == {"pass"}
    assert all(float(row["perf_value"]) > 0 for row in rows)


def test_what_was_asked_took_effect(rows):
    for row in rows:
        assert row["transport_in_effect"] == row["transport"] == ENVIRONMENTS[row["environ"]]
        assert row["stripe_count"] == row["stripe_count_asked"]
        asked = row["hints"] == "romio-csc"
        assert row["hints_in_effect"] == (
            "cb_config_list=*:2,romio_cb_write=enable,romio_ds_write=disable" if asked else "null"
        )
        assert row["file_system_type"] == ("cephfs" if row["file_system"] == "ceph" else "posix")
        assert (row["nodes"], row["tasks"]) == ("2", "2")


def test_files_have_a_stripe_on_each_target(rows):
    assert {row["stripe_size"] for row in rows if row["file_system"] == "ceph"} == {"1048576"}


def test_what_went_on_meanwhile_is_there(rows):
    for row in rows:
        assert row["job_nodelist"] == "n1,n2"
        assert float(row["load_per_node"]) > 0
        assert row["other_jobs"] == "0"
        if row["file_system"] == "ceph":
            assert (row["targets_active"], row["targets_inactive"]) == ("4", "0")


def test_the_slow_disk_is_slow(rows):
    slow = [row for row in rows if row["file_system"] == "slow"]
    assert slow
    for row in slow:
        assert float(row["perf_value"]) < 1.5 * SLOW_GIB_S, row
