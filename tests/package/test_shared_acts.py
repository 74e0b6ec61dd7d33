"""Acts about what several series share: acknowledged, closed and taken back in one go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from iobands.alerts.acting import act_of
from iobands.alerts.acts import ACKNOWLEDGE, CLOSE, NEW_NORMAL, REOPEN
from iobands.alerts.alarms_writer import add
from iobands.alerts.targets import CannotAct, Request, chosen
from iobands.reporting.concerns import acknowledged_concerns, concerns
from iobands.status.states import State

from iobands.reporting.format import acts_told
from tests.package.acting_site import Site, levels
from tests.package.factory import NOW
from tests.package.sites import site


@pytest.fixture
def shared(tmp_path: Path) -> Site:
    """Two series of one file system that drop together, and one elsewhere that does not."""
    dropping = {
        name: levels((105, 1), (45, 0.7), (20, 0.45), seed=seed)
        for seed, name in enumerate(("disk", "disk2"))
    }
    return Site(tmp_path, **dropping, home=levels((170, 1), seed=7))


def test_a_shared_cause_is_acknowledged_in_one_go(shared: Site) -> None:
    found = shared.survey(120)
    assert [each.name for each in found.common] == ["all disk"]
    act = shared.act(ACKNOWLEDGE, "disk")
    known = shared.survey()
    assert (known.exit_status, concerns(known)) == (1, [])
    assert [each.who for each in acknowledged_concerns(known)] == ["all disk"]
    assert [act.names(each.key) for each in known.series] == [True, True, False]
    assert shared.survey(150).exit_status == 1
    worse = shared.survey(170)
    assert worse.exit_status == 2
    assert any("; worse since 2026-11-" in each.why for each in concerns(worse))


def test_a_shared_cause_stays_loud_while_one_series_is_not_acknowledged(shared: Site) -> None:
    shared.survey(120)
    shared.act(ACKNOWLEDGE, "disk fpp write_bw")
    one = shared.survey()
    assert one.exit_status == 2
    assert next(each.who for each in concerns(one)) == "all disk"
    shared.act(ACKNOWLEDGE, "disk ssf write_bw")
    assert shared.survey().exit_status == 1


def test_a_shared_cause_is_closed_and_reopened_in_one_go(shared: Site) -> None:
    shared.survey(120)
    shared.act(CLOSE, "disk")
    closed = shared.survey()
    assert (closed.exit_status, closed.common) == (0, ())
    # of one series alone, and the other stays closed
    shared.act(REOPEN, "disk fpp write_bw")
    states = [each.status.state for each in shared.survey().series]
    assert states == [State.DEGRADED, State.HEALTHY, State.HEALTHY]


def test_a_new_normal_of_a_shared_cause(shared: Site) -> None:
    shared.survey(120)
    shared.act(NEW_NORMAL, "disk")
    states = [each.status.state for each in shared.survey().series]
    assert states == [State.CALIBRATING, State.CALIBRATING, State.HEALTHY]


@pytest.fixture
def slow_node(tmp_path: Path) -> Path:
    """A site that runs on two of eight nodes, one of which has been slow for forty days."""

    def nodes(random: np.random.Generator) -> list[str]:
        return [f"n{number}" for number in sorted(random.choice(8, 2, replace=False))]

    def slow(_: dict[str, str], day: int, names: Sequence[str]) -> float:
        return 0.7 if "n3" in names and day < 40 else 1.0

    assert [each.name for each in site(tmp_path, slow, nodes=nodes).common] == ["all node n3"]
    return tmp_path


def test_a_repaired_node_takes_its_own_runs_with_it_and_no_others(slow_node: Path) -> None:
    survey = Site(slow_node).look(NOW)
    before = {each.key: len(each.status.following.rows) for each in survey.series}
    request = Request(CLOSE, "jane", "new cable")
    (target,) = chosen(survey, "node n3", request, every=False)
    act = act_of(target, request, survey)
    assert act is not None
    assert act.on_nodes == ("n3",)
    add(slow_node / "alarms" / "here.yaml", "here", act)
    closed = Site(slow_node).look(NOW)
    assert (closed.exit_status, closed.common) == (0, ())
    for each in closed.series:
        lists = each.samples["job_nodelist"].astype(str)
        times = each.samples["job_completion_time"]
        slow = (lists.str.contains("n3") & (times >= act.since)).to_numpy()
        rows = each.status.following.rows
        if each.key in target.pool.keys:
            assert len(rows) == before[each.key] - np.count_nonzero(slow)
            assert not slow[rows].any()
    ((heading, text),) = acts_told(closed.series[0].acts)
    assert heading == "Closed"
    assert text.endswith("to 2026-11-21; of runs on n3")


def test_a_node_has_no_normal_of_its_own(slow_node: Path) -> None:
    survey = Site(slow_node).look(NOW)
    request = Request(NEW_NORMAL, "jane", "an old node")
    (target,) = chosen(survey, "node n3", request, every=False)
    with pytest.raises(CannotAct, match="throw away all 1200 runs of 8 series, of which ") as why:
        act_of(target, request, survey)
    assert "`iobands acknowledge`" in str(why.value)
    known = act_of(target, Request(ACKNOWLEDGE, "jane", "an old node"), survey)
    assert known is not None and known.on_nodes == ("n3",)
