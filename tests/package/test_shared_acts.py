"""Acts about what several series share: acknowledged, closed and taken back in one go."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobands.acts import ACKNOWLEDGE, CLOSE, NEW_NORMAL, REOPEN
from iobands.concerns import acknowledged_concerns, concerns
from iobands.states import State
from tests.package.acting_site import Site, levels


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
    assert [each.name for each in found.common] == ["all disk write_bw"]
    act = shared.act(ACKNOWLEDGE, "disk")
    known = shared.survey()
    assert (known.exit_status, concerns(known)) == (1, [])
    assert [each.who for each in acknowledged_concerns(known)] == ["all disk write_bw"]
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
    assert next(each.who for each in concerns(one)) == "all disk write_bw"
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
