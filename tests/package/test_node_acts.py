"""Acts about a node among many: they are about the runs that touched it, and about no others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from iobands.alerts.acting import act_of
from iobands.alerts.acts import ACKNOWLEDGE, CLOSE, REOPEN, Act
from iobands.alerts.alarms_writer import add
from iobands.alerts.targets import Request, chosen
from iobands.learning import calibrate
from iobands.reporting.concerns import concerns
from iobands.status.states import State
from iobands.status.survey import Survey, take_survey

from tests.package.factory import NOW
from tests.package.sites import site

BAD, SLOW = "n1", 0.4
NAMES = [f"n{number}" for number in range(12)]


def three_of_twelve(random: np.random.Generator) -> Sequence[str]:
    return sorted(random.choice(NAMES, 3, replace=False))


def factor(fields: dict[str, str], day: int, names: Sequence[str]) -> float:
    """A node is slow since 40 days, and the file system b is since 12."""
    return (SLOW if day < 40 and BAD in names else 1) * (
        0.6 if day < 12 and fields["file_system"] == "b" else 1
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = site(tmp_path, factor, nodes=three_of_twelve)
    assert {each.name for each in found.common} == {"all b", f"all node {BAD}"}
    return tmp_path


def survey(root: Path) -> Survey:
    return take_survey(root / "perflogs", root / "bands", now=NOW, alarms=root / "alarms")


def do(root: Path, kind: str, name: str = f"all node {BAD}") -> Act:
    request = Request(kind, "jane", "its cable")
    found = survey(root)
    (target,) = chosen(found, name, request, every=False)
    act = act_of(target, request, found)
    assert act is not None
    add(root / "alarms" / "here.yaml", "here", act)
    return act


def test_an_acknowledged_node_hides_no_other_drop(root: Path) -> None:
    assert do(root, ACKNOWLEDGE).on_nodes == (BAD,)
    known = survey(root)
    loud = [each.who for each in concerns(known) if each.word == "degraded"]
    assert "all b" in loud
    assert f"all node {BAD}" not in loud
    assert known.exit_status == 2
    of_b = [each.status for each in known.series if each.key.file_system == "b"]
    assert any(status.state is State.DEGRADED for status in of_b)
    assert not any(status.is_quiet for status in of_b)


def test_only_the_runs_on_a_closed_node_are_left_out(root: Path) -> None:
    before = survey(root)
    do(root, CLOSE)
    after = survey(root)
    assert [each.name for each in after.common] == ["all b"]
    for old, new in zip(before.series, after.series, strict=True):
        assert old.status.following and new.status.following
        gone = np.setdiff1d(old.status.following.rows, new.status.following.rows)
        lists = new.samples["job_nodelist"].astype(str)
        touched = lists.str.split(",").map(lambda names: BAD in names)
        late = new.samples["job_completion_time"] >= after.common[0].change.since
        # of the newest days, when it was slow for certain
        wanted = set(np.flatnonzero(touched & late))
        assert wanted <= set(gone)
        assert not set(gone) & set(np.flatnonzero(~touched))
    (found,) = calibrate(root / "perflogs", root / "bands", now=NOW, alarms=root / "alarms")
    notes = [note for one in found.learnt for note in one.notes]
    assert any("under closed alarms left out" in note for note in notes)
    assert all(one.proposal.runs > 100 for one in found.learnt)


def test_what_was_done_to_several_series_is_taken_back_as_one(root: Path) -> None:
    act = do(root, ACKNOWLEDGE, "all b")
    back = do(root, REOPEN, "b")
    assert (back.of, back.series) == (act.when, act.series)


def test_only_the_node_itself_is_taken_back(root: Path) -> None:
    act = do(root, ACKNOWLEDGE)
    with pytest.raises(ValueError, match="nothing was done"):
        do(root, REOPEN, "all b")
    assert do(root, REOPEN).of == act.when
    assert f"all node {BAD}" in [each.who for each in concerns(survey(root))]
