"""Events, rates and tests of collapses, against figures worked out by hand and by other routes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from iobands.alerts.collapses import (
    ENDING,
    FALLEN,
    GREATEST_LEVEL,
    RISEN,
    UNCHANGED,
    Comparison,
    Window,
    begins,
    binomial_interval,
    compare,
    count,
    level_for,
    observed_days,
    poisson_interval,
)
from scipy.stats import binomtest, chi2, fisher_exact

DAILY = 365.0


def flags(text: str) -> np.ndarray:
    """Return which runs of `text` collapsed: those that are an x."""
    return np.array([letter == "x" for letter in text], dtype=bool)


@pytest.mark.parametrize(
    ("runs", "events", "chances"),
    [
        ("........", 0, 8),
        ("..x.....", 1, 5),  # the three after it could not begin one
        ("..xxx...", 1, 3),
        ("x..x...x", 2, 2),  # two good ones do not end it, three do
        ("xxxxxxxx", 1, 1),
        ("", 0, 0),
    ],
)
def test_events_by_hand(runs: str, events: int, chances: int) -> None:
    beginning, possible = begins(flags(runs))
    assert (int(beginning.sum()), int(possible.sum())) == (events, chances)


@given(st.lists(st.booleans(), max_size=60))
def test_events_as_a_loop_finds_them(collapsed: list[bool]) -> None:
    found, possible = begins(np.array(collapsed, dtype=bool))
    good = ENDING
    for run, is_collapsed in enumerate(collapsed):
        assert bool(possible[run]) == (good >= ENDING)
        assert bool(found[run]) == (is_collapsed and good >= ENDING)
        good = 0 if is_collapsed else good + 1


@given(st.lists(st.booleans(), max_size=60), st.integers(0, 60))
def test_events_of_the_past_stay(collapsed: list[bool], cut: int) -> None:
    whole = np.array(collapsed, dtype=bool)
    for now, then in zip(begins(whole), begins(whole[:cut]), strict=True):
        assert np.array_equal(now[:cut], then)


@pytest.mark.parametrize(
    ("events", "low", "high"),
    # Garwood's table (Biometrika 28, 1936), 95 %
    [(0, 0, 3.689), (1, 0.0253, 5.572), (5, 1.623, 11.668), (10, 4.795, 18.390)],
)
def test_poisson_intervals_of_the_table(events: int, low: float, high: float) -> None:
    assert poisson_interval(events) == pytest.approx((low, high), abs=6e-4)


@given(st.integers(0, 400))
def test_poisson_intervals_by_chi_squared(events: int) -> None:
    low = chi2.ppf(0.025, 2 * events) / 2 if events else 0.0
    assert poisson_interval(events) == pytest.approx((low, chi2.ppf(0.975, 2 * events + 2) / 2))


@given(st.integers(1, 400), st.floats(0, 1))
def test_binomial_intervals_by_scipy(runs: int, share: float) -> None:
    events = round(share * runs)
    expected = binomtest(events, runs).proportion_ci(0.95, "exact")
    assert binomial_interval(events, runs) == pytest.approx(tuple(expected), abs=1e-9)


def test_binomial_intervals_by_hand() -> None:
    # none of n: 1 - 0.025 ** (1 / n)
    assert binomial_interval(0, 10) == pytest.approx((0, 1 - 0.025**0.1))
    assert binomial_interval(10, 10) == pytest.approx((0.025**0.1, 1))


windows = st.tuples(st.integers(0, 60), st.integers(1, 400)).map(
    lambda pair: Window(pair[1], min(pair), pair[1], min(pair))
)


@given(windows, windows)
def test_the_test_is_fishers(recent: Window, earlier: Window) -> None:
    compared = Comparison(recent, earlier, 0.01)
    table = [
        [recent.events, recent.chances - recent.events],
        [earlier.events, earlier.chances - earlier.events],
    ]
    for chance, alternative in (
        (compared.chance_of_more, "greater"),
        (compared.chance_of_fewer, "less"),
    ):
        expected = fisher_exact(table, alternative=alternative).pvalue
        assert chance == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_the_test_by_hand() -> None:
    # The lady tasting tea (Fisher, "The design of experiments", 1935): 3 of 4 right, 17 in 70.
    tea = Comparison(Window(4, 3, 4, 3), Window(4, 1, 4, 1), 0.05)
    assert tea.chance_of_more == pytest.approx(17 / 70)
    assert tea.chance_of_fewer == pytest.approx(69 / 70)


def runs(earlier: int, recent: int) -> np.ndarray:
    """Return 360 runs and 60 newer ones with so many events, evenly spread."""
    old, new = np.zeros(360, dtype=bool), np.zeros(60, dtype=bool)
    old[np.arange(earlier) * 360 // max(earlier, 1)] = True
    new[1 + np.arange(recent) * 60 // max(recent, 1)] = True
    return np.concatenate((old, new))


@pytest.mark.parametrize(
    ("earlier", "recent", "outcome"),
    [(12, 2, UNCHANGED), (12, 10, RISEN), (80, 2, FALLEN), (4, 0, None), (0, 4, None)],
)
def test_outcomes(earlier: int, recent: int, outcome: str | None) -> None:
    compared = compare(runs(earlier, recent), 0.005)
    assert (compared.earlier.events, compared.recent.events) == (earlier, recent)
    assert compared.outcome == outcome


def test_a_ratio_by_hand() -> None:
    # 12 events leave 360 - 36 of the earlier runs, 5 leave 60 - 15 of the newest
    compared = compare(runs(12, 5), 0.005)
    assert (compared.earlier.chances, compared.recent.chances) == (324, 45)
    ratio = compared.ratio
    assert ratio is not None
    assert ratio.value == pytest.approx((5 / 45) / (12 / 324))
    low, high = binomtest(5, 17).proportion_ci(0.95, "exact")
    assert ratio.low == pytest.approx(low / (1 - low) * 324 / 45)
    assert ratio.high == pytest.approx(high / (1 - high) * 324 / 45)


def test_events_that_never_were_before() -> None:
    ratio = compare(runs(0, 8), 0.005).ratio
    assert ratio is not None
    assert math.isinf(ratio.value)
    assert math.isinf(ratio.high)
    assert ratio.low > 1


@given(st.lists(st.booleans(), max_size=500))
def test_windows_are_parts_of_the_whole(collapsed: list[bool]) -> None:
    whole = np.array(collapsed, dtype=bool)
    compared, counted = compare(whole, 0.01), count(whole, np.arange(len(whole)))
    assert compared.recent.runs + compared.earlier.runs == min(len(whole), 425)
    assert compared.recent.events + compared.earlier.events <= counted.events
    assert counted.events <= counted.collapsed <= counted.runs
    assert counted.events <= counted.chances


def test_rates_a_run_and_a_year() -> None:
    # daily for 730 days, ten events: 4.9 to 18.4 in two years
    collapsed = np.zeros(730, dtype=bool)
    collapsed[::73] = True
    found = count(collapsed, np.arange(730))
    assert (found.events, found.chances, found.newest) == (10, 700, 657)
    assert found.years == pytest.approx(730 / 365.25)
    assert found.a_year is not None
    assert found.a_run is not None
    assert found.a_year.value == pytest.approx(10 / found.years)
    assert found.a_year.low == pytest.approx(4.795 / found.years, abs=1e-3)
    assert found.a_year.high == pytest.approx(18.390 / found.years, abs=1e-3)
    assert found.a_run.value == pytest.approx(1 / 70)


@pytest.mark.parametrize(
    ("days", "observed"),
    [
        ([], 0),
        ([5], 1),
        ([5, 5, 5], 1),  # three runs a day see one day
        ([1, 2, 3, 4], 4),
        ([1, 2, 3, 4, 104], 4 + 3),  # of a gap, three times the usual
        ([0, 7, 14, 21], 28),
    ],
)
def test_days_observed(days: list[int], observed: float) -> None:
    assert observed_days(np.array(days, dtype=np.int64)) == observed


def test_nothing_observed_has_no_rate() -> None:
    found = count(flags(""), np.array([], dtype=np.int64))
    assert (found.a_run, found.a_year, found.newest) == (None, None, None)
    assert compare(flags(""), 0.01).outcome is None


def test_the_level_falls_with_what_is_tested() -> None:
    # a look in ten runs: three file systems that run daily have 109.5 of their own a year
    assert level_for(0.5, 3 * DAILY) == pytest.approx(0.5 / 109.5)
    assert level_for(0.5, 1) == GREATEST_LEVEL


def test_windows_without_a_chance_tell_nothing() -> None:
    # collapsed all the time: the newest runs are of an event that began before them
    compared = compare(np.ones(300, dtype=bool), 0.05)
    assert (compared.recent.chances, compared.outcome, compared.ratio) == (0, None, None)
