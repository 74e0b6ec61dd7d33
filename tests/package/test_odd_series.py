"""Odd series and what is said of each: few values, equal ones, wrong times and units."""

from __future__ import annotations

from pathlib import Path

import pytest
from iobands.reporting.digest_table import sparkline
from iobands.status.states import State
from iobands.status.survey import Series, take_survey

from iobands.bands import BELOW, COLLAPSED, NO_BAND, WITHIN, log_fence
from iobands.reporting.explain import explain, explanation_text
from iobands.results.perflog import read_perflogs
from tests.package.conftest import Command
from tests.package.factory import NOW, daily, days_ago, line, write_bands, write_perflog
from tests.package.test_states import dropped, healthy


def only(directory: Path, rows: list[str]) -> Series:
    """Return the one series that `rows` make."""
    write_perflog(directory / "perflogs", rows)
    (series,) = take_survey(directory / "perflogs", directory / "bands", now=NOW).series
    return series


def explained(directory: Path) -> str:
    survey = take_survey(directory / "perflogs", directory / "bands", now=NOW)
    return explanation_text(explain(survey, survey.series[0]), survey)


@pytest.mark.parametrize("number", [1, 2, 20])
def test_too_few_runs_say_so_and_nothing_else(tmp_path: Path, number: int) -> None:
    status = only(tmp_path, daily([5.0] * number)).status
    assert (status.state, status.verdict) == (State.CALIBRATING, NO_BAND)
    assert status.why == f"{number} of 20 runs"
    text = explained(tmp_path)
    assert f"{number} run{'s' if number > 1 else ''} to compare" in text
    assert "Look next: when there are enough runs" in text


def test_equal_values_are_healthy_and_a_percent_less_is_no_collapse(tmp_path: Path) -> None:
    status = only(tmp_path, daily([5.0] * 60)).status
    assert (status.state, status.verdict) == (State.HEALTHY, WITHIN)
    assert status.band is not None
    assert status.band.floor == pytest.approx(4.5)
    assert "0 of 59 earlier runs were lower, 59 the same" in explained(tmp_path)
    assert only(tmp_path, daily([5.0] * 60 + [4.95])).status.verdict == BELOW
    assert only(tmp_path, daily([5.0] * 60 + [4.4])).status.verdict == COLLAPSED


def test_the_floor_is_a_tenth_under_the_lower_quartile_at_least() -> None:
    assert log_fence(10, 10) == pytest.approx(9)
    # (0.9)^(1/1.5) is 0.932: with a wider band the fence holds
    assert log_fence(10, 10 / 0.94) == pytest.approx(9)
    assert log_fence(10, 20) == pytest.approx(10 * 0.5**1.5)


def test_equal_values_that_fall_are_degraded(tmp_path: Path) -> None:
    status = only(tmp_path, daily([5.0] * 60 + [3.5] * 12)).status
    assert status.state is State.DEGRADED
    assert status.change is not None
    assert status.change.ratio.value == pytest.approx(0.7)
    assert status.change.since.isoformat() == days_ago(11.25)


def test_a_thousandth_of_equal_values_is_healthy_and_told_in_the_evidence(tmp_path: Path) -> None:
    status = only(tmp_path, daily([5.0] * 60 + [4.99] * 12)).status
    assert (status.state, status.why, status.exit_status) == (State.HEALTHY, "", 0)
    settled = "down since 2026-11-09: 0.998 × the reference, less than the 5 % that matter"
    assert f"Settled     {settled}\n" in explained(tmp_path)
    # a person may want to know of less
    (tmp_path / "bands").mkdir(exist_ok=True)
    bands = "schema: 3\nsystem: here\nleast_change_percent: 0.1\nepochs: []\n"
    (tmp_path / "bands" / "here.yaml").write_text(bands)
    assert only(tmp_path, daily([5.0] * 60 + [4.99] * 12)).status.state is State.DEGRADED


def test_ties_raise_nothing_until_they_fall(tmp_path: Path) -> None:
    assert only(tmp_path, daily([5, 6] * 50)).status.state is State.HEALTHY
    status = only(tmp_path, daily([5, 6] * 50 + [4] * 12)).status
    assert status.state is State.DEGRADED
    assert status.change is not None
    assert status.change.since.isoformat() == days_ago(11.25)


def test_the_order_of_the_lines_does_not_matter(tmp_path: Path) -> None:
    rows = daily(dropped(90, 15, 0.6))
    status = only(tmp_path, rows).status
    # every second line first, so that most come before an earlier one
    shuffled = only(tmp_path, [*rows[1::2], *rows[::2]]).status
    assert status.state is shuffled.state is State.DEGRADED
    assert status.change == shuffled.change


def test_two_time_zones_make_one_history(tmp_path: Path) -> None:
    rows = daily(dropped(90, 15, 0.6))
    assert days_ago(0.25) == "2026-11-20T19:30:00+00:00"
    status = only(tmp_path, rows).status
    # the same moments on clocks five hours behind; times as ReFrame writes them
    elsewhere = [row.replace("T19:30:00+00:00", "T14:30:00-05:00") for row in rows[::2]]
    mixed = only(tmp_path, [*elsewhere, *rows[1::2]]).status
    assert mixed.change == status.change


@pytest.mark.parametrize("value", ["1e300", "1e-300", "2e9", "9e-10"])
def test_what_is_no_rate_is_rejected_by_both_readers(tmp_path: Path, value: str) -> None:
    path = write_perflog(tmp_path, [*daily([1.0] * 30), line(perf_value=value)])
    logs = read_perflogs(tmp_path)
    assert len(logs.samples) == 30
    (rejected,) = logs.rejected
    assert rejected.reason == f"perf_value: {value!r} is no rate that a file system can have"
    # alone, where no line is read in bulk
    path.write_text("\n".join(path.read_text().splitlines()[:1]) + f"\n{line(perf_value=value)}\n")
    assert read_perflogs(tmp_path).rejected[0].reason == rejected.reason


def test_the_largest_and_the_smallest_rate_are_shown(tmp_path: Path) -> None:
    status = only(tmp_path, daily([2.0**30, 2.0**-30] * 20)).status
    assert status.runs == 40
    assert sparkline([2.0**30, 2.0**-30]) == "█▁"


def test_a_sample_of_the_future_is_a_wrong_clock(tmp_path: Path) -> None:
    rows = [*daily(healthy(60)), line(job_completion_time=days_ago(-30))]
    status = only(tmp_path, rows).status
    assert status.state is State.NO_DATA
    assert (
        status.why == "the newest sample is of 2026-12-21, which is yet to come: a clock is wrong"
    )
    # an hour is only a clock that is ahead
    assert only(tmp_path, daily(healthy(60), last=-1 / 24)).status.state is State.HEALTHY


def test_a_change_of_unit_is_missed_and_told(tmp_path: Path) -> None:
    rows = [
        *daily(healthy(60), last=10.25),
        *daily([1500.0] * 10, perf_unit="MB/s"),
    ]
    status = only(tmp_path, rows).status
    assert (status.state, status.runs) == (State.NO_DATA, 60)
    assert status.why == "the newest sample is 10 days old"


def test_another_tool_may_change_its_unit(tmp_path: Path) -> None:
    (tmp_path / "adapter.yaml").write_text(
        "adapter: csv\ntime_zone: Europe/London\n"
        "fields: {system: here, partition: local, perf_var: write_bw}\n"
        "columns: {job_completion_time: when, perf_value: rate, perf_unit: unit}\n"
    )
    (tmp_path / "results.csv").write_text(
        "when,rate,unit\n"
        "2026-07-02 12:00:00,2,GiB/s\n"
        "2026-07-01 12:00:00,1024,MiB/s\n"  # not in order
        "2026-07-03T11:00:00Z,3,GiB/s\n"
        "2026-07-03 12:00:00,3,GiB/s\n"  # the same moment, in summer time
        "2026-07-04 12:00:00,nan,GiB/s\n"
        "2026-07-05 12:00:00,-inf,GiB/s\n"
        "2026-07-06 12:00:00,0,GiB/s\n"
        "2026-07-07 12:00:00,-5,MiB/s\n"
        "2026-07-08 12:00:00,,GiB/s\n"
        "2026-07-09 12:00:00,5,parsecs\n"
    )
    survey = take_survey(tmp_path, tmp_path / "bands", now=NOW)
    (series,) = survey.series
    assert series.samples["perf_value"].tolist() == [1, 2, 3]
    assert [(item.line, item.reason.split(":")[0]) for item in survey.rejected] == [
        (5, "repeats " + str(tmp_path / "results.csv")),
        (6, "perf_value"),
        (7, "perf_value"),
        (8, "perf_value"),
        (9, "perf_value"),
        (11, "perf_unit"),
    ]
    # the empty cell is a run that gave nothing, and not a line that cannot be read
    assert series.status.why == "the run of 2026-07-08 11:00 failed"


@pytest.mark.parametrize(
    ("quartiles", "said"),
    [
        ((3, 2, 1), "lower_quartile: 3 is above median 2; put them in order"),
        ((1, 3, 2), "median: 3 is above upper_quartile 2; put them in order"),
        ((0, 1, 2), "lower_quartile: must be finite and above 0, not 0"),
        ((1, 2, float("inf")), "upper_quartile: must be a number"),
        ((float("nan"), 1, 2), "lower_quartile: must be a number"),
    ],
)
def test_a_band_that_cannot_be_is_named(
    tmp_path: Path, iobands: Command, quartiles: tuple[float, float, float], said: str
) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.0]))
    write_bands(tmp_path / "bands", quartiles)
    for command in ("status", "calibrate"):
        done = iobands(command, "--perflogs", "perflogs", "--bands", "bands")
        assert done.returncode == 3
        assert said in done.stderr
        assert "here.yaml, epoch 'first', band 1" in done.stderr
