"""docs/howto/accept-a-system.md, command by command, with real ReFrame and benchio."""

import os
import re

import pytest

from tests.site_copy import ROOT, copy_suite

pytestmark = pytest.mark.machine

PAGE = (ROOT / "docs" / "howto" / "accept-a-system.md").read_text(encoding="utf-8")
SCALE = {"nodes": 1, "tasks_per_node": 2, "mib_per_task": 1}


def test_the_commands_of_the_page_accept_a_disk(tmp_path):
    pytest.importorskip("reframe")
    site = copy_suite(tmp_path / "site")
    disk = tmp_path / "disk"
    disk.mkdir()
    site.add_local_system(
        "mine", {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}}, SCALE
    )
    (contract,) = re.findall(r"`contract\.yaml`:\n\n```yaml\n(.*?)```", PAGE, re.DOTALL)
    (site.root / "contract.yaml").write_text(contract.replace("system: local", "system: mine"))
    commands = re.findall(r"^iobands (accept .*)$", PAGE, re.MULTILINE)
    said = [site.iobands(*command.split(), env={**os.environ}) for command in commands]
    every = [done.stdout + done.stderr for done in said]
    assert [done.returncode for done in said] == [0, 0, 0], every
    cost, accepted, checked = (done.stdout for done in said)
    assert re.search(r"^all +10 ", cost, re.MULTILINE)
    assert re.search(r"^file per process, writes +met ", accepted, re.MULTILINE)
    assert "No file has changed." in checked
    report = (site.root / "acceptances" / "contract" / "report.md").read_text()
    for proof in ("| file\\_system\\_type | posix |", "| fsync | true |", "figures/line-001.svg"):
        assert proof in report
    rows = [row for row in site.rows("mine") if row["perf_var"] == "write_bw"]  # of no build
    assert 3 <= len(rows) <= 10
    assert {row["purpose"] for row in rows} == {"acceptance"}
    assert not list(disk.iterdir())
