"""What a site file names is never run by the shell: paths, hints and modules with its signs."""

import pytest

from tests.site_copy import BENCHIO, copy_suite

pytestmark = pytest.mark.machine

#: What each sign would do if the shell saw it.
EVIL = "a \"b' $(touch ran-1) `touch ran-2`; touch ran-3 & $HOME *"


def test_a_path_and_a_preset_with_signs_of_the_shell(tmp_path):
    site = copy_suite(tmp_path / "site", *BENCHIO)
    disk = tmp_path / EVIL
    disk.mkdir()
    site.add_local_system(
        "quoted",
        {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 2, "mib_per_task": 1},
        hint_presets={"signs": {"env_vars": {"PRESET": EVIL}}},
    )
    chosen = ("-n", "BenchioSSF|EnvFileSystem", "--keep-stage-files")
    run = site.reframe("--system=quoted", "-r", "--exec-policy=serial", *chosen)
    assert run.returncode == 0, run.stdout + run.stderr
    assert len([row for row in site.rows("quoted") if row["perf_var"] == "write_bw"]) == 2
    assert list(disk.iterdir()) == []
    assert list(tmp_path.rglob("ran-*")) == []
