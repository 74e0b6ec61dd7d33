"""Runs that were measured again: what they may change, and what they must not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from iobands.judge.suspects import asks_of, repeats_of
from iobands.measure import Plan, write_plan
from iobands.model import Ask
from iobands.snapshot import RESOLVE, Certainty, State
from tests.factory import NOW, ROW, case, daily, line, write_perflog, write_report, write_session
from tests.sites import SiteFiles, look, slow


@pytest.mark.parametrize(("purpose", "late"), [("suspect", True), ("scheduled", False)])
def test_a_late_session_stays_late(tmp_path: Path, purpose: str, late: bool) -> None:
    rows = daily([1.5] * 30, last=3, interval_days=1, purpose="scheduled")
    when = (NOW - timedelta(hours=1)).isoformat()
    rows.append(line(job_completion_time=when, interval_days=1, purpose=purpose))
    write_perflog(tmp_path / "perflogs", rows)
    write_session(tmp_path / "perflogs", NOW - timedelta(days=3))
    said = [each.reason for each in look(tmp_path).alerts if each.subject == "last session"]
    assert bool(said) == late
    assert all(each.startswith("no session for more than 48 h") for each in said)


@pytest.mark.parametrize(("down", "late"), [("here", False), ("there", True)])
def test_only_its_own_maintenance_excuses_a_system(tmp_path: Path, down: str, late: bool) -> None:
    for system, days in (("here", 1), ("there", 7)):
        rows = daily([1.5] * 30, last=3, interval_days=days, purpose="scheduled", system=system)
        write_perflog(tmp_path / "perflogs", rows, system=system)
    write_session(tmp_path / "perflogs", NOW - timedelta(days=3))
    begin, end = ((NOW - timedelta(days=ago)).isoformat() for ago in (2.9, 0))
    window = {"from": begin, "to": end, "reason": "cooling water"}
    path = tmp_path / "bands" / f"{down}.yaml"
    path.parent.mkdir()
    bands = {"schema": 5, "system": down, "epochs": [], "maintenance": [window]}
    path.write_text(json.dumps(bands))
    said = [each.reason for each in look(tmp_path).alerts if each.subject == "last session"]
    assert bool(said) == late


@pytest.mark.parametrize(
    ("purpose", "result", "state"),
    [
        ("suspect", "fail", State.HEALTHY),
        ("scheduled", "fail", State.NO_DATA),
        ("scheduled", "abort", State.NO_DATA),
        ("manual", "fail", State.NO_DATA),
        ("manual", "abort", State.HEALTHY),
    ],
)
def test_only_a_run_that_was_due_or_failed_is_a_missing_sample(
    tmp_path: Path, purpose: str, result: str, state: State
) -> None:
    rows = daily([1.5, 1.52, 1.48] * 10, last=0.2, interval_days=1, purpose="scheduled")
    write_perflog(tmp_path / "perflogs", rows)
    write_report(tmp_path / "perflogs", [case(purpose=purpose, result=result)], days=0.1)
    (series,) = look(tmp_path).series
    assert series.status.state is state


def test_runs_of_older_perflogs_are_scheduled(tmp_path: Path) -> None:
    path = write_perflog(tmp_path / "perflogs", daily([1.5] * 5))
    lines = [each.split("|") for each in path.read_text().splitlines()]
    place = lines[0].index("purpose")
    older = ["|".join([*cells[:place], *cells[place + 1 :]]) for cells in lines]
    path.write_text("\n".join([*older, ""]))
    (series,) = look(tmp_path).series
    assert len(series.history.routine) == 5


def test_of_two_alerts_the_uncertain_one_is_the_reason(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(0.7, file_system="a")).read()
    (alert,) = site.alerts
    both = (
        replace(alert, number=1, certainty=Certainty.CERTAIN),
        replace(alert, number=2, certainty=Certainty.LIKELY),
    )
    asks = asks_of(replace(site, alerts=both), ())
    assert {ask.why for ask in asks} == {"alert 2 is not certain yet"}


@pytest.mark.parametrize(
    "more", [" %.repeat_no=2", " %.part=here:local %.nid=n1", " %.times_calls=yes"]
)
def test_a_check_that_was_repeated_by_hand_is_asked_by_its_own_name(
    tmp_path: Path, more: str
) -> None:
    name = ROW["display_name"]
    rows = daily([1.5, 1.52, 1.48] * 10, last=1, purpose="scheduled")
    rows += daily([0.3], last=0.2, purpose="manual", display_name=f"{name}{more}")
    write_perflog(tmp_path / "perflogs", rows)
    run = case(result="pass", fail_phase=None, nodes=4, time_limit=1800, display_name=name + more)
    write_report(tmp_path / "perflogs", [run], days=0.2)
    judged = SiteFiles(tmp_path).judge(with_power=False)
    (ask,) = repeats_of(judged.snapshot, NOW - timedelta(days=0.5), judged.known.reports.runs)
    # ReFrame makes the name of a repeat anew each time, so it would find no such check
    assert (ask.check, ask.node_hours) == (name, 2)


def test_a_repeat_by_hand_that_failed_is_over_when_the_check_runs_again(tmp_path: Path) -> None:
    rows = daily([1.5, 1.52, 1.48] * 10, last=3, interval_days=1, purpose="scheduled")
    rows += daily([1.5, 1.5], last=0.2, interval_days=1, purpose="scheduled")
    write_perflog(tmp_path / "perflogs", rows)
    repeat = case(display_name=f"{ROW['display_name']} %.repeat_no=0", purpose="manual")
    write_report(tmp_path / "perflogs", [repeat], days=0.5)
    report = case(result="pass", fail_phase=None, perfvalues={"here:local:write_bw": [1.5]})
    write_report(tmp_path / "perflogs", [report], days=0.2, number=1)
    found = look(tmp_path)
    assert [each.subject for each in found.alerts] == []
    assert [series.status.state for series in found.series] == [State.HEALTHY]


def test_what_a_person_has_resolved_is_planned_no_more(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).days(slow(0.8, since=4, file_system="a"))
    judged = files.judge()
    due = NOW - timedelta(hours=2)
    asks = tuple(
        replace(ask, due=due) for ask in asks_of(judged.snapshot, judged.known.reports.runs)
    )
    write_plan(files.perflogs, Plan(NOW, {}, asks), NOW)
    assert asks and files.read().planned == asks
    files.act(RESOLVE, "1", force=True)
    site = files.read()
    assert (site.alerts, site.planned) == ((), ())


def planned(root: Path, scheduler: str) -> Sequence[Ask]:
    """Return the planned runs after a session with this scheduler."""
    report = case(result="pass", fail_phase=None, purpose="scheduled", scheduler=scheduler, nodes=4)
    write_report(root / "perflogs", [report], days=0.2)
    judged = SiteFiles(root).judge(with_power=False)
    return asks_of(judged.snapshot, judged.known.reports.runs)


def ask_kinds(root: Path, scheduler: str) -> list[tuple[str, str, str]]:
    """Return target, node and reason of each planned run."""
    return [(ask.target, ask.node, ask.why) for ask in planned(root, scheduler)]


def night(day: float, **columns: object) -> str:
    when = (NOW - timedelta(days=day)).isoformat()
    return line(**{"job_completion_time": when, "nodes": 4, "interval_days": 1, **columns})


def shares(peers: Sequence[str], low: str = "") -> str:
    return "write_bw=" + ",".join(f"{peer}:{0.5 if peer == low else 1}" for peer in peers)


@pytest.mark.parametrize(
    ("scheduler", "node"), [("slurm", "nid2"), ("squeue", "nid2"), ("pbspro", ""), ("local", "")]
)
def test_a_node_under_suspicion_is_asked_for_by_name_where_the_scheduler_can(
    tmp_path: Path, scheduler: str, node: str
) -> None:
    nodes = ["nid1", "nid2", "nid3", "nid4"]
    rows = [night(day + 0.2, node_speeds=shares(nodes)) for day in range(30, 0, -1)]
    rows.append(night(0.2, node_speeds=shares(nodes, "nid2")))
    write_perflog(tmp_path / "perflogs", rows)
    why = "node nid2 of local may be slow"
    assert ask_kinds(tmp_path, scheduler) == [("", node, why)]
    # the pinned run counts for the node, which is asked for again because of the daily check
    before = evidence(tmp_path, "nid2")
    about = {"case": "node nid2", "purpose": "suspect", "interval_days": None}
    rows.append(night(0.1, node_speeds=shares(nodes, "nid2"), **about))
    write_perflog(tmp_path / "perflogs", rows)
    assert evidence(tmp_path, "nid2") > before
    assert ask_kinds(tmp_path, scheduler) == [("", node, why)]
    by_case = {each.key.case: len(each.history) for each in look(tmp_path).series}
    assert by_case == {None: 31, "node nid2": 1}


def evidence(root: Path, peer: str) -> float:
    (place,) = look(root).places
    return place.suspects()[peer]


def test_a_target_under_suspicion_is_pinned_beside_a_healthy_one(tmp_path: Path) -> None:
    lustre = {"file_system_type": "lustre", "stripe_count_asked": 1}
    osts = [str(number) for number in range(6)]
    rows = [night(d + 0.2, target_bandwidths=shares(osts), **lustre) for d in range(30, 0, -1)]
    rows.append(night(0.2, target_bandwidths=shares(osts, "4"), **lustre))
    # checks that cannot be pinned to a target, and that end later in each session
    for pattern, name, count in (("fpn", "FPN", 1), ("fpp", "Other", 1), ("fpp", "BenchioFPP", -1)):
        columns = {**lustre, "pattern": pattern, "stripe_count_asked": count}
        columns |= {"interface": name, "display_name": f"{name} %stripe_count_asked={count}"}
        rows += [night(d + 0.15, **columns) for d in range(30, -1, -1)]
    write_perflog(tmp_path / "perflogs", rows)
    assert {ask.check for ask in planned(tmp_path, "slurm")} == {ROW["display_name"]}
    slow, beside = ask_kinds(tmp_path, "slurm")
    assert slow == ("4", "", "OST 4 of disk may be slow")
    assert beside == ("0", "", "beside OST 4 of disk, which may be slow")
    # after the pinned runs, which are newer than the daily one, they are asked for again
    for target, rate in (("4", 0.75), ("0", 1.5)):
        columns = {**lustre, "case": f"target {target}", "perf_value": rate, "interval_days": None}
        rows.append(night(0.1, purpose="suspect", **columns))
    write_perflog(tmp_path / "perflogs", rows)
    assert ask_kinds(tmp_path, "slurm") == [slow, beside]


@pytest.mark.parametrize(("count", "target"), [("", "4"), (1, "4"), (2, ""), (-1, "")])
def test_only_files_with_one_stripe_are_pinned_to_a_target(
    tmp_path: Path, count: int | str, target: str
) -> None:
    lustre = {"file_system_type": "lustre", "stripe_count_asked": count}
    osts = [str(number) for number in range(6)]
    rows = [night(d + 0.2, target_bandwidths=shares(osts), **lustre) for d in range(30, 0, -1)]
    rows.append(night(0.2, target_bandwidths=shares(osts, "4"), **lustre))
    write_perflog(tmp_path / "perflogs", rows)
    first, *beside = ask_kinds(tmp_path, "slurm")
    assert first == (target, "", "OST 4 of disk may be slow")
    assert len(beside) == bool(target)
