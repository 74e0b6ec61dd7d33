"""Transient collapses of series and file systems, of perflogs in which it is known what did."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest
from iobands.alerts.acts import ACKNOWLEDGE, CLOSE, REOPEN
from iobands.alerts.collapses import FALLEN, RISEN
from iobands.alerts.file_systems import Collapses, FileSystem
from iobands.alerts.targets import CannotAct
from iobands.reporting.collapse_views import change_text, rate_text
from iobands.reporting.concerns import acknowledged_concerns, concerns
from iobands.reporting.digest_json import as_json
from iobands.status.survey import Survey, take_survey

from iobands.reporting.explain import explain, explanation_text
from iobands.reporting.format import summary
from iobands.reporting.page import render
from tests.package.acting_site import Site
from tests.package.conftest import Command
from tests.package.factory import NOW, daily, days_ago, write_bands, write_perflog
from tests.package.test_states import dropped

RUNS = 420
#: A collapse a month, and in the newest 60 runs one every four days.
SELDOM = tuple(range(10, 360, 30))
OFTEN = tuple(range(362, 420, 4))


def values(collapsed: Collection[int], runs: int = RUNS, seed: int = 1) -> list[float]:
    """Return values of which none is near the floor, and a fifth of them in runs `collapsed`.

    Their logarithms are even between -0.1 and 0.1: the floor is at -0.2.
    """
    found = np.exp(np.random.default_rng(seed).uniform(-0.1, 0.1, runs))
    found[list(collapsed)] *= 0.2
    return list(found)


def survey(tmp_path: Path, rows: list[str]) -> Survey:
    write_perflog(tmp_path / "perflogs", rows)
    return take_survey(tmp_path / "perflogs", tmp_path / "bands", now=NOW)


def only(found: Survey) -> FileSystem:
    (file_system,) = found.collapses.file_systems
    return file_system


def of(found: Survey, label: str) -> Collapses:
    (series,) = [each for each in found.series if each.label == label]
    return found.collapses.of(series.key)


def events(told: Collapses) -> int:
    assert told.count is not None
    return told.count.events


def test_series_that_collapse_in_one_night_are_one_event(tmp_path: Path) -> None:
    rows = daily(values((50, 80)), pattern="fpp") + daily(values((50,), seed=2), pattern="ssf")
    # and an hour later, in another job of the same night
    rows += daily(values((80,), seed=3), last=0.2, pattern="serial")
    found = survey(tmp_path, rows)
    assert (only(found).series, events(only(found).collapses)) == (3, 2)
    assert [events(of(found, f"disk {name} write_bw")) for name in ("fpp", "ssf", "serial")] == [
        2,
        1,
        1,
    ]


def test_variables_of_one_job_are_one_event(tmp_path: Path) -> None:
    rows = daily(values((50,))) + daily(values((50,), seed=2), perf_var="read_bw")
    assert events(only(survey(tmp_path, rows)).collapses) == 1


def test_series_that_collapse_in_nights_of_their_own(tmp_path: Path) -> None:
    rows = daily(values((50, 80))) + daily(values((60, 90), seed=2), pattern="ssf")
    file_system = only(survey(tmp_path, rows))
    assert events(file_system.collapses) == 4
    assert file_system.collapses.newest is not None
    assert f"{file_system.collapses.newest:%Y-%m-%d}" == "2025-12-26"  # 329.25 days before NOW


def test_file_systems_are_apart(tmp_path: Path) -> None:
    rows = daily(values((50, 80))) + daily(values((50,), seed=2), file_system="nvme")
    found = {each.name: each for each in survey(tmp_path, rows).collapses.file_systems}
    assert {name: events(each.collapses) for name, each in found.items()} == {"disk": 2, "nvme": 1}


def test_runs_of_a_lasting_drop_do_not_count(tmp_path: Path) -> None:
    rows = daily([*values((50,), 200), *values(range(40), 40, 2)])
    found = survey(tmp_path, rows)
    assert found.series[0].status.state.value == "degraded"
    told = of(found, "disk fpp write_bw")
    assert told.count is not None
    assert (told.count.runs, told.count.events) == (200, 1)


def test_a_drop_that_ended_does_not_count_either(tmp_path: Path) -> None:
    slow = values(range(40), 40, 2)
    rows = daily([*values((50,), 200), *slow, *values((), 100, 3)])
    told = of(survey(tmp_path, rows), "disk fpp write_bw")
    assert told.count is not None
    assert 295 <= told.count.runs <= 305  # when it ended is known to a few runs
    assert told.count.events == 1


def test_runs_of_a_common_drop_do_not_count(tmp_path: Path) -> None:
    rows = []
    for seed, pattern in enumerate(("fpp", "fpn", "ssf", "serial")):
        rows += daily(dropped(150, 12, 0.75, seed + 10), pattern=pattern)
    found = survey(tmp_path, rows)
    (common,) = found.common
    for key in common.keys:
        count = found.collapses.of(key).count
        assert count is not None
        assert count.runs <= 140


def test_a_short_series_has_no_floor(tmp_path: Path) -> None:
    found = survey(tmp_path, daily(values((3,), 12)))
    assert found.collapses.file_systems == ()
    told = of(found, "disk fpp write_bw")
    assert (told.count, told.why) == (None, "no floor: too few runs for a band")
    (as_data,) = as_json(found)["series"]
    assert (as_data["collapses"]["why"], as_data["collapses"]["events"]) == (told.why, None)
    (series,) = found.series
    text = explanation_text(explain(found, series), found)
    assert "Collapses   none counted: no floor: too few runs for a band" in text


def test_a_published_band_has_a_floor_from_the_first_run(tmp_path: Path) -> None:
    write_bands(tmp_path / "bands")  # 1, 1.5 and 2: the floor is 1 / 2 ** 1.5 = 0.354
    found = survey(tmp_path, daily([1.5, 0.36, 1.5, 0.35, 1.5]))
    told = of(found, "disk fpp write_bw")
    assert told.count is not None
    assert (told.count.runs, told.count.collapsed, told.count.events) == (5, 1, 1)
    assert "once in 5 runs" in rate_text(told)
    assert "too few to tell" in change_text(told)


def test_each_run_is_held_against_the_band_of_its_time(tmp_path: Path) -> None:
    write_bands(tmp_path / "bands", since="2026-11-19")  # before that, there was none
    told = of(survey(tmp_path, daily([0.1, 0.1, 1.5, 0.1, 1.5])), "disk fpp write_bw")
    assert told.count is not None
    assert (told.count.runs, told.count.events) == (2, 1)


def test_runs_that_failed_for_being_slow_count(tmp_path: Path) -> None:
    rows = daily(values((), 100), last=1.25)
    rows += daily([0.01], result="fail", fail_phase="performance")
    assert events(of(survey(tmp_path, rows), "disk fpp write_bw")) == 1


def test_a_rate_that_has_risen_is_a_warning(tmp_path: Path, iobands: Command) -> None:
    rows = daily(values((*SELDOM, *OFTEN))) + daily(values((), seed=2), file_system="nvme")
    found = survey(tmp_path, rows)
    assert found.series[0].status.state.value == "healthy"
    assert found.exit_status == 1
    assert "IOBANDS WARNING" in summary(found)
    assert summary(found).endswith("1 file system with more collapses")
    (told,) = concerns(found)
    assert (told.names, told.word) == (("disk",), "collapses more often")
    assert told.why.startswith("15 of the newest 60 rounds in 15 events, 12 of the 360 before")
    disk, nvme = as_json(found)["file_systems"]
    assert disk["collapses"]["change"]["outcome"] == RISEN
    assert nvme["collapses"]["change"]["outcome"] is None  # there were none at all
    assert 'id="collapses"' in render(found)
    assert "The rate has risen" in render(found)
    run = iobands("explain", "disk fpp", "--perflogs", "perflogs")
    assert "the rate has risen: 15 of the newest 60 runs" in run.stdout


def test_a_rise_that_is_acknowledged_is_quiet_until_it_is_worse(tmp_path: Path) -> None:
    # an event in 30 runs, then one in 8, and at last one in 4, the most there can be
    collapsed = (*range(10, 360, 30), *range(362, 450, 8), *range(450, 520, 4))
    site = Site(tmp_path, disk=values(collapsed, 520))
    assert site.survey(420).exit_status == 1
    act = site.act(ACKNOWLEDGE, "disk")
    assert (act.kind, act.series) == ("acknowledge-collapses", ({"file_system": "disk"},))
    assert act.since is not None
    assert act.since.isoformat() == days_ago(519 - 360 + 0.25)  # when the newest 60 runs began
    known = site.survey()
    assert (known.exit_status, concerns(known)) == (0, [])
    (told,) = acknowledged_concerns(known)
    assert (told.names, told.word) == (("disk",), "collapses more often")
    assert "as often" in told.why and "acknowledged 2026-08-13 " in told.why
    assert as_json(known)["file_systems"][0]["acknowledged"]["reason"] == "a reason"
    with pytest.raises(CannotAct, match="can be acknowledged, and no more"):
        site.act(CLOSE, "disk collapses")
    assert site.survey(450).exit_status == 0
    assert site.survey(520).exit_status == 1
    site.act(ACKNOWLEDGE, "disk collapses")
    assert site.survey().exit_status == 0
    for _ in range(2):
        site.act(REOPEN, "disk collapses")
    assert site.survey().exit_status == 1


def test_a_rise_after_a_good_time_is_another_one(tmp_path: Path) -> None:
    collapsed = (*range(10, 360, 30), *range(362, 420, 8), 450, 500, 550, *range(602, 660, 5))
    site = Site(tmp_path, disk=values(collapsed, 660))
    site.survey(420)
    site.act(ACKNOWLEDGE, "disk collapses")
    assert site.survey(440).exit_status == 0
    found = site.survey(660)
    assert (only(found).collapses.outcome, only(found).known) == (RISEN, None)


def test_a_rate_that_has_fallen_is_told_and_no_warning(tmp_path: Path) -> None:
    often = range(4, 360, 5)
    found = survey(tmp_path, daily(values(often)))
    assert only(found).collapses.outcome == FALLEN
    assert found.exit_status == 0
    assert [each.word for each in concerns(found)] == ["collapses less often"]


def test_a_steady_rate_is_not_mentioned(tmp_path: Path) -> None:
    found = survey(tmp_path, daily(values(range(10, RUNS, 30))))
    assert concerns(found) == []
    assert found.exit_status == 0
    assert "no change of the rate is seen" in change_text(only(found).collapses)


def test_a_new_series_is_no_rise_of_the_file_system(tmp_path: Path) -> None:
    rows = daily(values(SELDOM))
    rows += daily(values(range(2, 60, 4), 60, 2), pattern="ssf")
    told = only(survey(tmp_path, rows)).collapses
    assert told.comparison is not None
    assert told.comparison.recent.events == 0
    assert told.outcome != RISEN


def test_more_runs_a_day_are_no_rise(tmp_path: Path) -> None:
    # one run in ten collapses; from run 180 on there are four runs a day
    often = [run for run in range(RUNS) if run % 10 == 5]
    rows = daily(values(often)[:180], last=60.25)
    for part in range(4):
        rows += daily(values(often)[180 + part :: 4], last=0.25 - part / 20)
    assert only(survey(tmp_path, rows)).collapses.outcome != RISEN


@pytest.mark.parametrize("bad", ["nan", "inf", "-1", "0"])
def test_values_that_are_none_are_no_collapses(tmp_path: Path, bad: str) -> None:
    rows = daily([*values((), 60), bad, *values((), 10)])  # type: ignore[list-item]
    assert events(of(survey(tmp_path, rows), "disk fpp write_bw")) == 0


def test_all_runs_alike_have_none(tmp_path: Path) -> None:
    told = only(survey(tmp_path, daily([1.5] * 100))).collapses
    assert (events(told), told.outcome) == (0, None)
    assert rate_text(told, "round").startswith("never in 100 rounds: 0.0 % a round (0.0–3.6)")
