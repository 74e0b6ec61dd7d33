"""States from charts, from perflogs to what a digest says; drops are put in at a known run."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from iobands.reporting.concerns import concerns
from iobands.reporting.digest_json import as_json
from iobands.status.following import Budget, runs_a_year
from iobands.status.states import State
from iobands.status.survey import Survey, take_survey

from iobands.detection import WATCH, runs_between_false_alarms
from tests.package.factory import NOW, daily, write_bands, write_perflog


def survey(site: Path, lines: list[str], **options: object) -> Survey:
    write_perflog(site / "perflogs", lines)
    return take_survey(site / "perflogs", site / "bands", now=NOW, **options)


def healthy(runs: int, seed: int = 1, level: float = 1.5) -> list[float]:
    noise = np.random.default_rng(seed).normal(0, 0.08, runs)
    return [float(value) for value in level * np.exp(noise)]


def dropped(runs: int, after: int, factor: float, seed: int = 1) -> list[float]:
    """Return healthy values, the last `after` of which are times `factor`."""
    values = healthy(runs, seed)
    return values[:-after] + [value * factor for value in values[-after:]]


def only(found: Survey):
    (series,) = found.series
    return series.status


def test_a_drop_is_degraded_with_its_date_and_size(tmp_path: Path) -> None:
    found = survey(tmp_path, daily(dropped(120, 15, 0.7)))
    status = only(found)
    assert (status.state, found.exit_status) == (State.DEGRADED, 2)
    change = status.change
    # the newest run was 0.25 days before NOW, and the first of 15 slow ones 14 days before that
    began = NOW - timedelta(days=14.25)
    assert change.since_low <= began <= change.since_high
    assert change.ratio.low < 0.7 < change.ratio.high
    assert change.score >= change.limit == found.budget.limit
    assert change.years >= 1  # one false alarm a year was allowed
    (concern,) = (each for each in concerns(found) if each.word != "collapsed")
    assert concern.word == "degraded"
    assert status.why.startswith("since 2026-11-0")
    assert "× (" in concern.why
    assert concern.why.endswith("on this site")


def test_a_rise_is_an_improvement(tmp_path: Path) -> None:
    found = survey(tmp_path, daily(dropped(120, 25, 1.5)))
    assert (only(found).state, found.exit_status) == (State.IMPROVED, 0)
    assert only(found).change.ratio.low > 1


def test_a_few_low_runs_are_watched(tmp_path: Path) -> None:
    states = [
        only(survey(tmp_path / str(after), daily(dropped(120, after, 0.7)))).state
        for after in range(1, 9)
    ]
    assert states[0] is State.HEALTHY  # one low run means nothing
    assert State.WATCH in states
    assert states[-1] is State.DEGRADED
    order = [State.HEALTHY, State.WATCH, State.DEGRADED]
    assert states == sorted(states, key=order.index)


def test_a_published_band_judges_from_the_first_runs(tmp_path: Path) -> None:
    write_bands(tmp_path / "bands", (135, 150, 180))
    status = only(survey(tmp_path, daily([75.0] * 15)))
    assert status.state is State.DEGRADED


def test_collapsed_runs_count_though_they_failed(tmp_path: Path) -> None:
    rows = daily(healthy(100), last=10.25)
    rows += daily([0.2] * 10, result="fail", fail_phase="performance")
    assert only(survey(tmp_path, rows)).state is State.DEGRADED


def test_a_degraded_series_without_news_stays_degraded(tmp_path: Path) -> None:
    status = only(survey(tmp_path, daily(dropped(120, 15, 0.5), last=9)))
    assert status.state is State.DEGRADED
    assert status.why.endswith("on this site; and the newest sample is 9 days old")
    assert status.missing == "the newest sample is 9 days old"


def test_an_open_alarm_does_not_teach_the_band(tmp_path: Path) -> None:
    status = only(survey(tmp_path, daily(dropped(120, 40, 0.5))))
    assert status.band.median == pytest.approx(1.5, rel=0.03)
    assert status.band.runs <= 82


def test_what_recovered_is_healthy_and_remembered(tmp_path: Path) -> None:
    values = healthy(150)
    values[80:100] = [value * 0.5 for value in values[80:100]]
    status = only(survey(tmp_path, daily(values)))
    assert (status.state, status.change) == (State.HEALTHY, None)
    (change,) = status.following.changes
    assert (change.direction, change.end) == ("down", "recovered")


def test_more_series_need_more_evidence() -> None:
    one, many = Budget(1.0, 365), Budget(1.0, 500 * 365)
    assert many.limit > one.limit
    for budget in (one, many, Budget(4.0, 365 * 200)):
        # rounded up: never more false alarms than were allowed
        assert budget.runs_a_year / runs_between_false_alarms(budget.limit) <= (
            budget.false_alarms_a_year
        )
    assert Budget(4.0, 365 * 200).limit == Budget(1.0, 365 * 50).limit
    assert one.limit > WATCH


def test_the_budget_counts_runs_of_all_series(tmp_path: Path) -> None:
    rows = daily(healthy(60))
    rows += [row for n in range(3) for row in daily(healthy(3, n), file_system=f"fs{n}")]
    found = survey(tmp_path, rows, false_alarms=2)
    assert found.budget.false_alarms_a_year == 2
    # once a day each, the young ones because nothing else is known; and the chart of them all
    assert found.budget.runs_a_year == pytest.approx(5 * 365)


def test_the_cadence_is_that_of_the_newest_year() -> None:
    days = np.datetime64("2020-01-01") + np.arange(0, 1500, 1)
    weekly = days[-1] + np.timedelta64(7, "D") * np.arange(1, 60)
    times = np.concatenate((days, weekly)).astype("datetime64[ns]")
    assert runs_a_year(times) == pytest.approx(365 / 7, rel=0.01)


def test_a_time_without_runs_does_not_change_the_cadence() -> None:
    # else the limit falls while nothing runs, and raises alarms about the past
    hours = np.datetime64("2026-01-01T05:00") + np.timedelta64(12, "h") * np.arange(200)
    gap = np.concatenate((hours[:90], hours[150:])).astype("datetime64[ns]")
    assert runs_a_year(gap) == runs_a_year(hours.astype("datetime64[ns]")) == 730


def test_json_tells_the_alarm_and_the_power(tmp_path: Path) -> None:
    found = survey(tmp_path, daily(dropped(120, 15, 0.7)))
    (series,) = json.loads(json.dumps(as_json(found), allow_nan=False))["series"]
    alarm = series["alarm"]
    assert (alarm["direction"], alarm["ended"]) == ("down", None)
    assert alarm["ratio_low"] < 0.7 < alarm["ratio_high"]
    assert series["evidence"]["down"] > alarm["limit"]
    assert 2 < series["evidence"]["power_runs"] < 12
