"""The shell never runs what a site file names: paths, hints and modules with special characters."""

import pytest

from tests.left_behind import files, left_behind
from tests.site_copy import BENCHIO, copy_suite

pytestmark = pytest.mark.machine

#: Special characters, each with a visible effect if the shell interprets it.
EVIL = "a \"b' $(touch ran-1) `touch ran-2`; touch ran-3 & $HOME *"


@pytest.mark.fault(
    "checks", "path and preset with shell metacharacters", "measured there; no command is run"
)
@pytest.mark.fault("checks", "newline in the account", "refused before anything is measured")
@pytest.mark.fault("checks", "newline in a path", "refused before anything is measured")
def test_a_path_and_a_preset_with_signs_of_the_shell(tmp_path, observed):
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
    command = ("--system=quoted", "-r", "--exec-policy=serial", *chosen)
    site_file = site.root / "config" / "systems" / "quoted.py"
    right = site_file.read_text(encoding="utf-8")
    before = files(site.root)
    refused = {}
    for fault, text in (
        ("newline in the account", right.replace("'scales'", "'account': 'a\\nb', 'scales'")),
        ("newline in a path", right.replace("'path': ", "'path': '/a\\n' ")),
    ):
        site_file.write_text(text, encoding="utf-8")
        done = site.reframe(*command)
        assert (done.returncode, done.stdout) == (1, ""), done.stdout
        refused[fault] = (done, left_behind(site.root, before))
    site_file.write_text(right, encoding="utf-8")
    run = site.reframe(*command)
    assert run.returncode == 0, run.stdout + run.stderr
    assert len([row for row in site.rows("quoted") if row["perf_var"] == "write_bw"]) == 2
    assert list(disk.iterdir()) == []
    assert list(tmp_path.rglob("ran-*")) == []
    plain = tmp_path / "plain"
    plain.mkdir()
    site_file.write_text(right.replace(repr(str(disk)), repr(str(plain))), encoding="utf-8")
    again = site.reframe(*command)
    assert str(plain) in site_file.read_text(encoding="utf-8")
    for fault, (done, left) in refused.items():
        observed(fault, message=done.stderr, exit_status=1, left=left, next_run=True)
    observed(
        "path and preset with shell metacharacters",
        message=next(line for line in run.stdout.splitlines() if "PASSED" in line),
        exit_status=run.returncode,
        left=disk.iterdir(),
        next_run=again.returncode == 0,
    )
