"""Series with their times: the runs that are judged, the budget, the cadence and the sessions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobands.judge.detect.prior import DEGRADED, Budget
from iobands.snapshot import runs_a_year_at, sessions_of


def days(*numbers: float) -> np.ndarray:
    """Return times this many days after the beginning of 2026."""
    begin = np.datetime64("2026-01-01", "ns")
    return begin + (np.array(numbers) * 24 * 3600 * 1e9).astype("timedelta64[ns]")


def runs_a_year(times: np.ndarray) -> float:
    """Return the runs per year of a series, as estimated after its newest run."""
    later = np.append(times, days(0))[-2:][:1] + np.timedelta64(1, "ns")
    return float(runs_a_year_at(times, later)[0])


@pytest.mark.parametrize(("alarms", "runs"), [(1.0, 365.0), (1.0, 182_500.0), (4.0, 73_000.0)])
def test_the_threshold_keeps_the_budget(alarms: float, runs: float):
    budget = Budget(alarms, runs)
    threshold = budget.threshold
    assert threshold >= DEGRADED
    assert 1 / budget.years_to_false_alarm(threshold) <= alarms
    assert (4 * threshold).is_integer()


def test_the_threshold_depends_on_runs_a_false_alarm():
    assert Budget(4.0, 365 * 200).threshold == Budget(1.0, 365 * 50).threshold
    assert Budget(1.0, 365 * 500).threshold > Budget(1.0, 365 * 5).threshold
    # an estimate that grows by one run per day does not change the threshold
    assert Budget(1.0, 100_000).threshold == Budget(1.0, 100_365).threshold


def test_years_to_a_false_alarm_of_a_score():
    # of exp(0.6 x 12 + 3.6) runs, as measured
    assert Budget(1.0, 730).years_to_false_alarm(12) == pytest.approx(49_020.8 / 730)


def test_the_cadence_is_that_of_the_newest_year():
    weekly = 1500 + 7 * np.arange(1, 60)
    assert runs_a_year(days(*range(1500), *weekly)) == pytest.approx(365 / 7, rel=0.01)


def test_a_pause_does_not_change_the_cadence():
    twice = np.arange(200) / 2
    assert runs_a_year(days(*twice[:90], *twice[150:])) == runs_a_year(days(*twice)) == 730


@given(st.lists(st.sampled_from([1, 1, 1, 2, 7, 30]), min_size=1, max_size=300))
def test_the_cadence_is_by_the_median_gap_of_the_year(gaps: list[int]):
    every = np.cumsum([0, *gaps])
    year = every[every >= every[-1] - 365]
    usual = np.median(np.diff(year)) if year[-1] - year[0] >= 30 else 1
    assert runs_a_year(days(*every)) == pytest.approx(365 / usual)


@pytest.mark.parametrize("numbers", [(), (1,), (1, 2, 3), range(0, 28, 7)])
def test_a_young_series_counts_as_daily(numbers: tuple[int, ...]):
    assert runs_a_year(days(*numbers)) == 365


def numbers(names: dict[str, str], **times: np.ndarray) -> dict[str, list[int]]:
    """Return the session numbers of runs; `names` gives each run's session as a letter or `-`."""
    codes = {
        key: np.array([" ABC".find(each) for each in names.get(key, "-" * len(every))], dtype=int)
        for key, every in times.items()
    }
    return {key: each.tolist() for key, each in sessions_of(times, codes).items()}


def test_runs_of_a_night_that_name_no_session_are_of_one():
    found = numbers(
        {},
        late=days(0.99, 1.98),  # shortly before midnight
        early=days(1.01, 2.02),
        twice=days(0.995, 1.03),
    )
    # the second run of a night goes with the second of the others
    assert found == {"late": [0, 2], "early": [0, 2], "twice": [0, 1]}


def test_runs_that_name_a_session_are_of_it():
    # all, then one of them again, then all, within an hour
    found = numbers(
        {"fpp": "ABC", "ssf": "AC"}, fpp=days(0.500, 0.510, 0.520), ssf=days(0.501, 0.521)
    )
    assert found == {"fpp": [0, 1, 2], "ssf": [0, 2]}


def test_a_session_goes_on_over_midnight_and_may_have_two_runs_of_a_series():
    found = numbers({"fpp": "AAB", "ssf": "AB"}, fpp=days(0.9, 1.1, 1.9), ssf=days(1.2, 1.95))
    assert found == {"fpp": [0, 0, 1], "ssf": [0, 1]}


def test_older_runs_are_of_the_day_and_newer_ones_of_their_session():
    found = numbers(
        {"fpp": "--AB", "ssf": "--B"}, fpp=days(1.2, 2.2, 3.2, 3.25), ssf=days(1.21, 2.21, 3.26)
    )
    assert found == {"fpp": [0, 1, 2, 3], "ssf": [0, 1, 3]}


def test_a_clock_that_was_set_back_lets_no_number_fall():
    found = numbers({"fpp": "BA", "ssf": "A"}, fpp=days(2.2, 3.2), ssf=days(1.2))
    assert found == {"fpp": [1, 1], "ssf": [0]}
