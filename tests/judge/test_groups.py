"""Groups of series: a common change is found sooner, and a change of one series is not common."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from benchmarks.alarms.charts import follow
from iobands.judge.detect.prior import Month, Prior
from iobands.judge.groups import (
    GroupChange,
    GroupMember,
    group_changes,
    rank_correlation,
    session_begins,
)

#: The threshold of a site with some fifty series, rounded up.
THRESHOLD = 12.0
BEGUN = 300
#: Months of thirty sessions.
MONTHS = [Month(first, THRESHOLD, Prior()) for first in range(0, 1500, 30)]


def site(
    sessions: int, series: int, seed: int, shared: float = 0.0, spread: float = 0.1
) -> np.ndarray:
    """Return healthy values of shape (sessions, series) with correlation `shared`."""
    random = np.random.default_rng(seed)
    common = random.standard_normal((sessions, 1)) * np.sqrt(shared)
    own = random.standard_normal((sessions, series)) * np.sqrt(1 - shared)
    return 100 * np.exp(spread * (common + own))


def members(values: np.ndarray) -> list[GroupMember]:
    """Return the series in the columns of `values`, NaN where one has no run."""
    found = []
    for column in values.T:
        there = np.flatnonzero(~np.isnan(column))
        found.append(GroupMember(follow(column[there], threshold=THRESHOLD), there))
    return found


def lasting(found: list[GroupMember]) -> GroupChange | None:
    return next((each for each in group_changes(found, MONTHS) if each.ended is None), None)


def change_in(values: np.ndarray) -> GroupChange | None:
    return lasting(members(values))


def test_what_is_known_later_of_a_series_changes_nothing():
    values = site(330, 4, seed=3)
    values[60:90] *= 0.7
    whole, cut = members(values), members(values[:75])
    cut_later = [
        replace(
            each.chart,
            logarithms=each.chart.logarithms[:75],
            increments=each.chart.increments[:75],
            changes=then.chart.changes,
        )
        for each, then in zip(whole, cut, strict=True)
    ]
    later = [GroupMember(each, np.arange(75)) for each in cut_later]
    assert max(each.baselines[-1][0] for each in cut_later) > 75
    assert group_changes(later, MONTHS) == group_changes(cut, MONTHS) != ()


@pytest.mark.parametrize("number", [10, 4])
def test_what_many_or_some_share_is_found(number: int):
    values = site(330, 10, seed=3)
    values[BEGUN:, :number] *= 0.7
    change = change_in(values)
    assert change is not None
    assert set(change.ratios) == set(range(number))
    assert abs(change.onset - BEGUN) <= 1
    assert BEGUN <= change.raised <= BEGUN + 6
    for ratio in change.ratios.values():
        assert ratio.low < 0.7 < ratio.high
        assert ratio.value == pytest.approx(0.7, rel=0.1)


def test_one_alone_is_nothing_shared():
    values = site(330, 10, seed=3)
    values[BEGUN:, 2] *= 0.3
    assert change_in(values) is None


@pytest.mark.parametrize(
    ("factor", "bad", "seed"), [(0.7, 2, 12), (0.75, 1, 7), (0.8, 1, 7), (0.8, 1, 9)]
)
def test_one_that_fell_and_one_with_a_bad_session_share_nothing(factor: float, bad: int, seed: int):
    values = site(330, 2, seed=seed)
    values[BEGUN:, 0] *= factor
    values[BEGUN + bad, 1] *= 0.5
    assert group_changes(members(values), MONTHS) == ()


@pytest.mark.parametrize(("factor", "series"), [(0.2, 2), (0.5, 4), (0.7, 4), (0.7, 10)])
def test_one_bad_session_of_all_is_no_change(factor: float, series: int):
    values = site(330, series, seed=5)
    values[BEGUN] *= factor
    for end in (BEGUN + 1, BEGUN + 2, BEGUN + 5):
        assert group_changes(members(values[:end]), MONTHS) == ()
    values[BEGUN + 1] *= factor
    assert group_changes(members(values[: BEGUN + 2]), MONTHS)[0].delay == 2


def test_a_healthy_group_has_no_change():
    assert [change_in(site(400, 8, 20 + seed, shared=0.5)) for seed in range(6)] == [None] * 6


def test_a_drop_among_noise_is_found_sooner_than_in_one_series():
    together, alone = [], []
    for seed in range(4):
        values = site(420, 8, seed, spread=0.3)
        values[BEGUN:] *= 0.7
        change = change_in(values)
        assert change is not None
        together.append(change.raised - BEGUN)
        every = [each.chart.changes for each in members(values)]
        alone += [changes[0].raised - BEGUN if changes else 120 for changes in every]
    assert np.mean(together) < 0.6 * np.mean(alone)


def test_what_has_recovered_is_no_change():
    values = site(400, 8, seed=5)
    values[BEGUN : BEGUN + 30] *= 0.7
    assert change_in(values[: BEGUN + 30]) is not None
    (past,) = group_changes(members(values), MONTHS)
    assert abs(past.onset - BEGUN) <= 1
    assert past.delay == past.raised - past.onset + 1
    assert past.ended is not None
    assert BEGUN + 30 <= past.ended <= BEGUN + 45


@pytest.mark.parametrize("seed", range(8))
def test_what_has_recovered_is_not_found_again_from_the_same_sessions(seed: int):
    values = site(375, 8, seed=seed)
    values[BEGUN : BEGUN + 15] *= 0.87
    drops = group_changes(members(values), MONTHS)
    assert drops != ()
    assert all(before.ended <= drop.onset for before, drop in pairwise(drops))


def test_a_second_drop_after_a_recovery_is_found():
    values = site(400, 8, seed=5)
    values[BEGUN - 60 : BEGUN - 30] *= 0.7
    values[380:] *= 0.7
    change = change_in(values)
    assert change is not None
    assert abs(change.onset - 380) <= 1


def test_a_series_that_fell_alone_before_keeps_no_group_open():
    values = site(400, 6, seed=6)
    values[200:, 0] *= 0.4
    values[BEGUN : BEGUN + 30, 1:] *= 0.7
    open_then = change_in(values[: BEGUN + 25])
    assert open_then is not None
    assert set(open_then.ratios) >= {1, 2, 3, 4, 5}
    assert change_in(values) is None


def test_a_rise_is_no_group_s_change():
    values = site(330, 8, seed=7)
    values[BEGUN:] *= 1.5
    assert change_in(values) is None


def test_series_that_miss_sessions_take_part():
    values = site(340, 6, seed=8)
    values[BEGUN:] *= 0.7
    values[np.random.default_rng(8).random(values.shape) < 0.3] = np.nan
    change = change_in(values)
    assert change is not None
    assert set(change.ratios) <= set(range(6))  # the others had not run by then
    assert len(change.ratios) >= 4
    assert abs(change.onset - BEGUN) <= 2


def test_sessions_keep_their_numbers():
    values = site(330, 4, seed=9)
    values[BEGUN:] *= 0.6
    numbered = [GroupMember(each.chart, 5 * each.sessions + 70_000) for each in members(values)]
    plain, change = change_in(values), lasting(numbered)
    assert plain is not None and change is not None
    assert (change.onset, change.raised) == (5 * plain.onset + 70_000, 5 * plain.raised + 70_000)


def test_of_several_runs_of_a_session_the_last_counts():
    values = site(330, 4, seed=9)
    values[BEGUN:] *= 0.6
    # each third session has two runs of each series
    sessions = np.arange(330) - np.arange(330) // 4
    change = lasting([GroupMember(each.chart, sessions) for each in members(values)])
    assert change is not None
    assert len(change.ratios) == 4
    assert sessions[BEGUN] - 1 <= change.onset <= sessions[BEGUN] + 1


def test_old_sessions_are_not_looked_at():
    # a drop of 1000 sessions ago that lasts has become the level that the newest 400 have
    values = site(1500, 4, seed=10)
    values[:500] *= 3
    change = change_in(values)
    assert change is None or change.onset >= 1100


@pytest.mark.parametrize(("seed", "shared"), [(0, 0.4), (1, 0.0), (1, 0.4), (3, 0.0)])
def test_what_was_said_of_a_group_is_never_unsaid(seed: int, shared: float):
    random = np.random.default_rng(seed)
    values = site(330, 6, seed, shared)
    for begin in random.integers(30, 300, 3):
        length, fallen = random.integers(5, 40), random.integers(2, 7)
        values[begin : begin + length, :fallen] *= random.choice([0.5, 0.7, 0.85])
    values[: random.integers(0, 200), 5] = np.nan  # a series that came later
    said: dict[tuple[int, int, tuple[int, ...]], None] = {}
    for known in range(40, 331, 10):
        found = group_changes(members(values[:known]), MONTHS)
        now = {(each.onset, each.raised, tuple(each.ratios)): None for each in found}
        assert said.keys() <= now.keys()
        assert all(raised >= known - 10 for _, raised, _ in now.keys() - said.keys())
        said |= now


def test_equal_values_raise_nothing():
    assert change_in(np.full((200, 5), 3.0)) is None


def test_rank_correlation_is_the_mean_of_all_pairs() -> None:
    columns = np.array([[1.0, 0.2, 40.0], [2.0, 0.1, 30.0], [3.0, 0.4, 20.0], [9.0, 0.3, 10.0]])
    # by 1 - 6 * sum(d**2) / (n * (n**2 - 1)): 0.6, -1 and -0.6
    assert rank_correlation(columns) == pytest.approx(-1 / 3)


def test_equal_values_share_a_rank_as_scipy_s_do() -> None:
    random = np.random.default_rng(1)
    values = np.round(random.normal(size=(60, 4)) + random.normal(size=(60, 1)))
    expected = (stats.spearmanr(values).statistic.sum() - 4) / 12
    assert rank_correlation(values) == pytest.approx(expected)
    # steady series: nearly all of their values are equal, and they have nothing in common
    steady = np.where(random.random((120, 6)) < 0.9, 1.0, random.random((120, 6)))
    assert abs(rank_correlation(steady)) < 0.1
    assert rank_correlation(np.ones((30, 3))) == 0


def test_sessions_that_overlap_begin_in_order():
    # of runs that name no session, the n-th of a day go together
    five, one, two = (np.datetime64(f"2026-11-01T0{hour}:00", "ns") for hour in (5, 1, 2))
    once, twice = (np.array([0]), np.array([five])), (np.array([0, 1]), np.array([one, two]))
    assert session_begins([once, twice]).tolist() == np.array([five, five]).tolist()
    assert session_begins([twice, once]).tolist() == np.array([one, two]).tolist()
