"""When something is measured again, with times and limits worked out by hand."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

from iobands.measure.plan import (
    PLAN_NAME,
    Asked,
    Limits,
    Plan,
    affordable,
    inputs_of,
    limits_of,
    note_asked,
    read_plan,
    timed,
    within_hours,
    write_plan,
)
from iobands.model import Ask, FileError

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=timezone.utc)
ASK = Ask(
    *("here", "cpu", "gnu", "BenchioFPP %scale=large", "work", "suspect", "low", ("a-1",)),
    measured=NOW - timedelta(hours=3),
    node_hours=8.0,
)


def hours(number: float) -> datetime:
    return NOW + timedelta(hours=number)


def asked(*ago: float, cost: float = 8.0, ask: Ask = ASK) -> list[Asked]:
    return [Asked(hours(-each), ask.identity, cost) for each in ago]


def due(past: list[Asked], limits: Limits | None = None, ask: Ask = ASK) -> datetime | None:
    found = timed(ask, past, limits or Limits(), (), NOW)
    return found and found.due


def test_it_is_due_four_hours_after_its_newest_sample_or_its_last_job() -> None:
    assert due([]) == hours(1)
    # a job that is still queued, or gave no sample, is not submitted a second time
    assert due(asked(1)) == hours(3)
    assert due(asked(7)) == hours(1)


def test_a_check_is_measured_so_often_in_24_hours() -> None:
    past = asked(23, 19, 15, 11, 7)
    assert due(past) == hours(1)
    assert due([*past, *asked(3)]) == hours(1)  # when the first of six is a day old
    assert due(asked(20, 3), Limits(per_day=2)) == hours(4)
    other = replace(ASK, check="other")
    assert due(asked(1, 2, 3, 5, 7, 9, ask=other)) == hours(1)


@pytest.mark.parametrize(
    "limits", [Limits(every=0), Limits(per_day=0), Limits(node_hours_per_day=0)]
)
def test_a_limit_of_0_switches_it_off(limits: Limits) -> None:
    assert timed(ASK, [], limits, (), NOW) is None


def test_it_is_quiet_in_a_maintenance() -> None:
    window = (hours(0.5), hours(6))
    found = timed(ASK, [], Limits(), [window], NOW)
    assert found
    assert found.due == hours(6)
    assert not found.is_due(hours(2))
    later = timed(ASK, [], Limits(), [(hours(2), hours(6))], NOW)
    assert later
    assert (later.due, later.until) == (hours(1), hours(2))
    assert later.is_due(hours(1.5))
    shutdown = timed(ASK, [], Limits(), [(hours(0.5), hours(24 * 14))], NOW)
    assert shutdown
    assert not shutdown.is_due(hours(2))
    # if the hourly command is late, the maintenance has begun
    assert not later.is_due(hours(2))
    assert not Plan(NOW, {}, (later,)).calls(Path("none"), hours(0.5))
    assert Plan(NOW, {}, (later,)).calls(Path("none"), hours(2))


def test_what_the_node_hours_of_a_day_leave_room_for() -> None:
    second, small = replace(ASK, check="second"), replace(ASK, check="small", node_hours=1.0)
    asks = [ASK, second, small]
    limits = dict.fromkeys(asks, Limits(node_hours_per_day=20))
    assert affordable(asks, [], limits, NOW) == asks  # 17
    assert affordable(asks, asked(2), limits, NOW) == [ASK, small]  # 8 + 8 + 1; second: 24
    assert affordable(asks, asked(2, 3, cost=10), limits, NOW) == []  # spent
    assert affordable(asks, asked(25, 26, cost=10), limits, NOW) == asks  # yesterday
    # another partition has its own budget
    other = replace(ASK, partition="gpu")
    assert affordable([other], asked(2, 3, cost=10), {other: Limits()}, NOW) == [other]


def test_what_has_no_node_hours_left_waits_for_the_oldest_run_to_be_a_day_old() -> None:
    first, second = replace(ASK, due=NOW), replace(ASK, check="second", due=NOW)
    later = replace(ASK, check="third", due=hours(2))
    asks = [first, second, later]
    limits = dict.fromkeys(asks, Limits(node_hours_per_day=20))
    found = within_hours(asks, asked(7, 3, cost=5), limits, NOW)  # 10 + 8, but not 8 more
    assert [each.due for each in found] == [NOW, hours(17), hours(2)]
    # a run that costs more than the daily budget is considered once a day
    (alone,) = within_hours([first], [], {first: Limits(node_hours_per_day=7)}, NOW)
    assert alone.due == hours(24)


def test_a_clock_that_jumps() -> None:
    # clock set back: samples and jobs of the future neither postpone runs nor count forever
    future = replace(ASK, measured=hours(24 * 300))
    assert due([], ask=future) == NOW
    assert due(asked(-300 * 24), ask=future) == NOW
    # runs in the next hours count as today's
    assert due(asked(-2), Limits(per_day=1), ask=future) == hours(24)
    assert affordable([ASK], asked(-2, -3, cost=10), {ASK: Limits()}, NOW) == []
    # a plan made while the clock was ahead does not suppress it
    ahead = timed(replace(ASK, measured=hours(24 * 300)), [], Limits(), (), hours(24 * 300))
    assert ahead
    assert Plan(hours(24 * 300), {}, (ahead,)).calls(Path("none"), NOW)
    # clock set forward: it is due once, and counts
    assert due([*asked(24 * 300)], ask=replace(ASK, measured=hours(-24 * 300))) <= NOW


def test_a_plan_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "bands" / "here").mkdir(parents=True)
    (tmp_path / "bands" / "here.yaml").write_text("a")
    (tmp_path / "bands" / "here" / "epoch.yaml").write_text("of a command")
    (tmp_path / "bands" / ".here.yaml.swp").write_text("an editor's")
    (tmp_path / "bands" / "there.yaml").symlink_to("nothing")
    found = timed(ASK, [], Limits(), [(hours(2), hours(3))], NOW)
    plan = Plan(NOW, inputs_of(tmp_path), (found,), tuple(asked(1, 23)))
    assert list(plan.inputs) == ["bands/here.yaml", "bands/here/epoch.yaml"]
    write_plan(tmp_path, plan, NOW)
    assert read_plan(tmp_path) == plan
    assert not plan.calls(tmp_path, NOW)
    assert plan.calls(tmp_path, hours(1))
    # the clock was set back
    assert plan.calls(tmp_path, hours(-1))
    (tmp_path / "bands" / "here.yaml").write_text("ab")
    assert plan.calls(tmp_path, NOW)
    (tmp_path / "bands" / "here.yaml").unlink()
    assert plan.calls(tmp_path, NOW)


def said(directory: Path) -> dict:
    write_plan(directory, Plan(NOW, {}, (replace(ASK, due=NOW),), tuple(asked(1))), NOW)
    return json.loads((directory / PLAN_NAME).read_text())


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("asks", "due", "yesterday"),
        ("asks", "due", 5),
        ("asks", "measured", None),
        ("asks", "series", [1]),
        ("asks", "series", None),
        ("asks", "check", None),
        ("asks", "node_hours", "NaN"),
        ("asks", "node_hours", float("nan")),
        ("asks", "node_hours", -1),
        ("asks", "node_hours", 10**400),
        ("asks", "node", None),
        ("asked", "when", 5),
        ("asked", "check", []),
        ("asked", "node_hours", -1),
        ("asked", "node_hours", None),
    ],
)
def test_a_hostile_plan_calls_for_another(
    tmp_path: Path, part: str, field: str, value: object
) -> None:
    plan = said(tmp_path)
    plan[part][0][field] = value
    (tmp_path / PLAN_NAME).write_text(json.dumps(plan))
    found = read_plan(tmp_path)
    assert (found.calls(tmp_path, NOW), found.asks, found.asked) == (True, (), ())


@pytest.mark.parametrize("text", ["", '{"schema": 1, "asks": [{}]}', "\0"])
def test_a_damaged_plan_calls_for_another(tmp_path: Path, text: str) -> None:
    (tmp_path / PLAN_NAME).write_text(text)
    found = read_plan(tmp_path)
    assert (found.calls(tmp_path, NOW), found.asks, found.asked) == (True, (), ())


@pytest.mark.parametrize(
    ("field", "value", "read"),
    [
        ("check", "two\nlines", {"check": "two lines"}),
        ("target", "two\nlines", {"target": "two lines"}),
        ("other", 1, {}),
    ],
)
def test_what_is_odd_in_a_plan_is_read(
    tmp_path: Path, field: str, value: object, read: dict[str, str]
) -> None:
    plan = said(tmp_path)
    plan["asks"][0][field] = value
    (tmp_path / PLAN_NAME).write_text(json.dumps(plan))
    assert read_plan(tmp_path).asks == (replace(ASK, due=NOW, **read),)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"schema": 2}', '{"schema": 9}', "[" * 100_000, "\0"]
)
def test_a_plan_that_cannot_be_read_calls_for_another(tmp_path: Path, text: str) -> None:
    assert read_plan(tmp_path).calls(tmp_path, NOW)
    (tmp_path / PLAN_NAME).write_text(text)
    assert read_plan(tmp_path).calls(tmp_path, NOW)
    assert (read_plan(tmp_path).asks, read_plan(tmp_path).asked) == ((), ())


def test_a_plan_of_version_1_is_read(tmp_path: Path) -> None:
    plan = said(tmp_path)
    del plan["asked"], plan["asks"][0]["node"]
    (tmp_path / PLAN_NAME).write_text(json.dumps({**plan, "schema": 1}))
    assert read_plan(tmp_path) == Plan(NOW, {}, (replace(ASK, due=NOW),))


def test_a_pipe_in_place_of_the_plan_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / PLAN_NAME)
    assert read_plan(tmp_path).calls(tmp_path, NOW)


def test_what_is_measured_is_noted_and_due_again_later(tmp_path: Path) -> None:
    other = replace(ASK, check="other", due=NOW)
    write_plan(tmp_path, Plan(NOW, {}, (replace(ASK, due=NOW), other), tuple(asked(20))), NOW)
    note_asked(tmp_path, {ASK: Limits(every=4)}, hours(1))
    found = read_plan(tmp_path)
    assert [each.due for each in found.asks] == [hours(5), NOW]
    assert found.asked == tuple(asked(20, -1))
    # and entries are forgotten after a day
    note_asked(tmp_path, {ASK: Limits()}, hours(4))
    assert read_plan(tmp_path).asked == tuple(asked(-1, -4))


@pytest.mark.parametrize("said", ["4 hours", 4])
def test_a_limit_that_is_no_duration_is_named(said: object) -> None:
    site = SimpleNamespace(partitions={"local": {"suspects": {"every": said}}})
    with pytest.raises(FileError, match=r"config/systems/here\.py: suspects of local: "):
        limits_of(lambda _system: site, "here:local")


def test_a_limit_beyond_all_dates_is_not_due() -> None:
    site = SimpleNamespace(partitions={"local": {"suspects": {"every": "9999999d"}}})
    found = due([], limits_of(lambda _system: site, "here:local"))
    assert found is not None
    assert found > hours(24 * 365)
