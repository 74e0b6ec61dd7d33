"""The daily budget: reserved before anything runs, and cut by priority."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from iobands.measure import Selection, Workplace, session
from iobands.measure.plan import BUDGET_NAME, Cost, costs_of, reserve
from iobands.measure.reframe import Ended
from iobands.model import COMPLETED
from tests.commands.calling import call

TODAY = date(2026, 11, 22)
FPP = {
    "display_name": "BenchioFPP %scale=large",
    "tool": "benchio",
    "file_system": "disk",
    "tags": ["full", "weekly"],
    "gib": 512.0,
    "repeats": 3,
    "nodes": 16,
    "time_limit": 1800.0,
    "valid_systems": ["here:cpu", "here:gpu"],
    "valid_prog_environs": ["gnu"],
}
PREFLIGHT = {"display_name": "EnvNodes", "valid_systems": ["+io"]}


def test_a_check_costs_its_volume_and_its_limit() -> None:
    assert costs_of([PREFLIGHT, FPP]) == [
        Cost("BenchioFPP %scale=large", partition, "disk", 2, 1536.0, 8.0)
        for partition in ("here:cpu", "here:gpu")
    ]


def test_the_weekly_checks_cost_their_volume_once_a_week(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("init", str(tmp_path / "site"), "--from", "local")[0] == 0
    here = {**FPP, "valid_systems": ["local:node"]}
    chosen = {**here, "gib": 0, "nodes": 0, "display_name": "as many nodes as are idle"}
    monkeypatch.setattr("iobands.measure.describe", lambda *_: [here, chosen])

    def said(*words: str) -> list[str]:
        status, text = call("cost", "--site", str(tmp_path / "site"), *words)
        assert status == 0, text
        assert "Not counted: 1 check, as the scheduler chooses the nodes; no" in text
        return next(line for line in text.splitlines() if line.startswith("disk")).split()[1:]

    # 3 times 512 GiB are 1.5 TiB; 365 / 7 = 52.14 weeks; 16 nodes for half an hour are 8 h
    assert said("--tag", "weekly") == ["2", "1.5", "0.214", "78.2", "-", "8", "417"]
    assert said("--tag", "full") == ["2", "1.5", "1.5", "548", "-", "8", "2920"]
    for day in ("1", "1d", "24h"):
        assert said("--tag", "weekly", "--every", day) == said("--tag", "full")


def test_clean_knows_the_systems(tmp_path: Path) -> None:
    assert call("init", str(tmp_path / "site"), "--from", "local")[0] == 0
    clean = ("clean", "--site", str(tmp_path / "site"), "--system")
    status, said = call(*clean, "loacl:node")
    assert (status, "there is no system loacl; known systems: local" in said) == (3, True)
    assert call(*clean, "local:node") == (0, "Nothing is left behind.\n")


def test_only_a_partition_that_measures_again_costs_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config" / "systems").mkdir(parents=True)
    partitions = [
        {"name": name, "extras": {"filesystems": {}, "suspects": {"per_day": most}}}
        for name, most in (("cpu", 1), ("gpu", 0))
    ]
    text = f'system = {{"name": "here", "partitions": {partitions}}}\n'
    (tmp_path / "config" / "systems" / "here.py").write_text(text)
    monkeypatch.setattr("iobands.measure.describe", lambda *_: [FPP])
    said = " ".join(call("cost", "--site", str(tmp_path))[1].split())
    # each takes 8 node hours per day, and one of them a tenth more
    assert " 16 5840 " in said
    assert "up to 10 % more runs, 292 node hours a year" in said
    assert "Repeats on here:gpu: off" in said


def cost(name: str, priority: int, gib: float = 1024, hours: float = 1) -> Cost:
    return Cost(name, "here:cpu", "disk", priority, gib, hours)


def test_what_exceeds_the_budget_is_cut_by_priority(tmp_path: Path) -> None:
    full, weekly, daily = cost("full", 3), cost("weekly", 2), cost("daily", 1)
    small = cost("small", 3, gib=0.5)
    budgets = {"here:cpu": {"written_tib": 2.5}}
    chosen = [full, small, weekly, daily]
    assert reserve(tmp_path, chosen, budgets, TODAY) == [full]
    # on the same day there is budget left for small checks, and on the next one for all again
    assert reserve(tmp_path, [daily, small], budgets, TODAY) == [daily]
    assert reserve(tmp_path, chosen, budgets, TODAY + timedelta(days=1)) == [full]
    assert reserve(tmp_path, chosen, {"here:cpu": {"node_hours": 1.5}}, TODAY) == [
        weekly,
        full,
        small,
    ]
    assert reserve(tmp_path, chosen, {"here:gpu": {"written_tib": 0, "node_hours": 0}}, TODAY) == []


def test_what_exceeds_the_budget_of_one_partition_is_measured_on_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config" / "systems").mkdir(parents=True)
    (tmp_path / "config" / "systems" / "here.py").touch()
    (tmp_path / "perflogs").mkdir()
    two = {**FPP, "display_name": "two", "valid_systems": ["here:cpu", "here:gpu"]}
    one = {**FPP, "display_name": "one", "valid_systems": ["here:cpu"]}
    none = {"daily_budget": {"node_hours": 0}}
    site_file = SimpleNamespace(partitions={"cpu": none, "gpu": {}}, hostnames=())
    monkeypatch.setattr("iobands.measure.plan.describe", lambda *_: [two, one])
    said: list[object] = []

    def run(_at: Workplace, _what: Selection, *more: object) -> Ended:
        said.extend(more)
        return Ended(0, COMPLETED, 1, (), "", (), (), (tmp_path / "report.json",))

    monkeypatch.setattr(session.reframe, "run_checks", run)
    at = Workplace(tmp_path, lambda _: site_file)
    outcome = session.measure(at, Selection("daily"), 60)
    assert (said[0], said[3]) == (["-x", "^one$"], [("here:cpu", "two")])
    assert outcome.problems[-1].endswith("in the site file: one, two on here:cpu")


@pytest.mark.parametrize(
    "spent", ["[1]", "[NaN, 0]", "[1e999, 0]", "[0, -1]", f"[1{'0' * 400}, 0]", '["nan", 0]']
)
def test_a_damaged_reservation_is_none(tmp_path: Path, spent: str) -> None:
    (tmp_path / BUDGET_NAME).write_text(
        f'{{"day": "2026-11-22", "spent": {{"here:cpu": {spent}}}}}'
    )
    daily, budgets = cost("daily", 1), {"here:cpu": {"node_hours": 1}}
    assert reserve(tmp_path, [daily], budgets, TODAY) == []
    assert reserve(tmp_path, [daily], budgets, TODAY) == [daily]
