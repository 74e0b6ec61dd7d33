"""IO500 run by ReFrame. The tests need `io500.sh` on PATH; elsewhere they are skipped."""

import shutil

import pytest

from tests.preloaded import preloaded
from tests.site_copy import OTHER_TOOLS, copy_suite

pytestmark = [
    pytest.mark.machine,
    pytest.mark.skipif(not shutil.which("io500.sh"), reason="io500.sh is not on PATH"),
]


@pytest.fixture
def site(tmp_path, tmp_path_factory):
    copy = copy_suite(tmp_path, *OTHER_TOOLS)
    disk = {"path": str(tmp_path_factory.mktemp("disk")), "type": "posix", "medium": "disk"}
    # IO500 looks for names with `01`, which fewer files would not have
    scale = {
        "nodes": 1,
        "tasks_per_node": 2,
        "mib_per_task": 4,
        "repeats": 1,
        "files_per_task": 400,
    }
    copy.add_local_system("here", {"disk": disk}, scale)
    return copy


def run(site, *arguments):
    return site.reframe("--system=here", "-r", "-n", "Io500", *arguments)


def test_a_limited_run_is_measured(site):
    done = run(site)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [row for row in site.rows("here") if row["tool"] == "io500"]
    rates = {row["perf_var"]: float(row["perf_value"]) for row in rows}
    assert all(rates[name] > 0 for name in ("ior_easy_write", "mdtest_hard_stat", "find"))


def test_a_run_whose_fsync_fails_has_no_score(site, tmp_path):
    library = preloaded("no_fsync", tmp_path)["LD_PRELOAD"]
    assert run(site, "-S", f"Io500.env_vars=LD_PRELOAD:{library}").returncode == 1
    (case,) = (each for each in site.test_cases("here") if each["name"].startswith("Io500"))
    assert "a failed call was measured: fsync(" in case["fail_reason"]
