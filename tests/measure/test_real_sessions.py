"""Which runs belong to one session, and their purposes: with real ReFrame and benchio."""

import os
from collections import Counter
from datetime import datetime, timezone

import pytest

from iobands.judge.site import read_site
from iobands.views.dashboard.series import heat_map
from tests.site_copy import BENCHIO, copy_suite

pytestmark = pytest.mark.machine

ONE = ("-n", "BenchioFPP")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A site with two file systems: all checks ran, then one by hand, then all again."""
    site = copy_suite(tmp_path_factory.mktemp("site"), *BENCHIO)
    disks = {
        name: {"path": str(tmp_path_factory.mktemp(name)), "type": "posix", "medium": "disk"}
        for name in ("disk", "other")
    }
    site.add_local_system("sessions", disks, {"nodes": 1, "tasks_per_node": 2, "mib_per_task": 1})
    for run in (
        lambda: site.iobands("run", "--system=sessions", env=dict(os.environ)),
        lambda: site.reframe("--system=sessions", "-r", "--exec-policy=serial", *ONE),
        lambda: site.iobands("run", "--system=sessions", env=dict(os.environ)),
        lambda: site.iobands("run", "--system=sessions", "--", *ONE, env=dict(os.environ)),
    ):
        done = run()
        assert done.returncode == 0, done.stdout + done.stderr
    return site


def test_all_runs_of_a_session_name_it_and_its_purpose(measured):
    rows = [row for row in measured.rows("sessions") if row["tool"] == "benchio"]
    found = Counter((row["session"], row["purpose"]) for row in rows)
    assert [(purpose, number) for (_, purpose), number in sorted(found.items())] == [
        ("scheduled", 16),
        ("manual", 4),
        ("scheduled", 16),
        ("manual", 4),
    ]
    assert len({session for session, _ in found}) == 4
    # the reports agree for the runs that gave no line in the perflog
    cases = [case for case in measured.test_cases("sessions") if case["name"].startswith("Bench")]
    assert {(case["session"], case["purpose"]) for case in cases} == {max(found)}


def test_a_row_is_marked_in_the_sessions_that_selected_it(measured):
    root, now = measured.root, datetime.now(timezone.utc)
    site = read_site(root / "perflogs", root / "bands", root / "alerts", now=now)
    rows = heat_map(site)["rows"]
    assert len(rows) == 16
    found = {(row["kind"][1], row["cells"]) for row in rows}
    assert found == {("fpp", "nnnn")} | {(name, "n n ") for name in ("fpn", "serial", "ssf")}
    # older perflogs lack these fields, but their reports say which samples ran together
    for path in (root / "perflogs" / "sessions").glob("*/*.log"):
        lines = [line.split("|") for line in path.read_text(encoding="utf-8").splitlines()]
        first = lines[0].index("session")
        older = ["|".join(cells[:first] + cells[first + 2 :]) for cells in lines]
        path.write_text("\n".join([*older, ""]), encoding="utf-8")
    older = read_site(root / "perflogs", root / "bands", root / "alerts", now=now)
    assert older.samples["purpose"].unique().to_list() == ["scheduled"]
    assert heat_map(older)["rows"] == rows
