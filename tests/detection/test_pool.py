"""Several series of one file system together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from iobands.detection import DOWN, Part, follow, follow_together
from iobands.detection.correlation import correlation_between
from iobands.detection.parts import stretches
from tests.detection.parts import charts, parts


def sessions(count: int, series: int, seed: int, shared: float = 0.3) -> np.ndarray:
    random = np.random.default_rng(seed)
    common = random.standard_normal((count, 1)) * np.sqrt(shared)
    own = random.standard_normal((count, series)) * np.sqrt(1 - shared)
    return 100 * np.exp(0.15 * (common + own))


def test_a_common_drop_is_found_sooner_than_in_the_single_series():
    alone, together = [], []
    for seed in range(12):
        values = sessions(420, 8, seed)
        values[300:] *= 0.9
        values[np.random.default_rng(seed).random(values.shape) < 0.05] = np.nan
        single = charts(values)
        pooled = follow_together(parts(values), limit=8.0)
        together += [next((a.alarm.raised for a in pooled.alarms), 420) - 300]
        alone += [next((a.raised for a in single[0].alarms), 400) - 285]
    assert np.mean(together) < 0.6 * np.mean(alone)


def test_it_is_told_once_with_the_series_under_it():
    values = sessions(360, 6, 3)
    values[300:, :4] *= 0.75
    pooled = follow_together(parts(values), limit=8.0)
    common = pooled.open_alarm
    assert common is not None
    assert common.alarm.direction == DOWN
    assert abs(common.alarm.onset - 300) <= 2
    assert set(common.series[:4]) == {0, 1, 2, 3}


@pytest.mark.parametrize(("factor", "alarms"), [(0.98, 0), (0.92, 1)])
def test_what_is_too_small_for_one_is_so_for_several(factor, alarms):
    values = 100 * np.exp(0.02 * np.random.default_rng(9).standard_normal((420, 6)))
    values[300:] *= factor
    assert len(follow_together(parts(values), limit=8.0).alarms) == alarms


def test_steps_of_several_that_are_too_small_each_add_up():
    values = 100 * np.exp(0.005 * np.random.default_rng(9).standard_normal((360, 6)))
    values[240:] *= 0.98
    values[300:] *= 0.96  # 0.941 of the references of the series
    # a limit that no series reaches by itself, so that none of them settles
    brought = parts(values, limit=1000.0)
    assert follow_together(brought, limit=8.0, least=0).alarms[0].alarm.raised == 240
    (common,) = follow_together(brought, limit=8.0).alarms
    assert 300 <= common.alarm.raised <= 305


def test_one_series_alone_is_nothing_in_common():
    values = sessions(360, 6, 4)
    values[250:, 2] *= 0.3
    single = charts(values)
    assert single[2].open_alarm is not None
    assert follow_together(parts(values), limit=8.0).alarms == ()


def test_a_series_that_is_down_already_keeps_no_common_alarm_open():
    values = sessions(420, 4, 6)
    values[200:, 0] *= 0.4
    values[300:330, 1:] *= 0.7
    pooled = follow_together(parts(values), limit=8.0)
    assert [each.alarm.direction for each in pooled.alarms] == [DOWN]
    (common,) = pooled.alarms
    assert abs(common.alarm.onset - 300) <= 2
    assert common.alarm.ended is not None
    assert abs(common.alarm.ended - 330) <= 3


@pytest.mark.parametrize("shared", [0.0, 0.3, 0.6])
def test_what_series_share_is_measured_by_ranks(shared):
    table = np.log(sessions(200, 12, 8, shared))
    table[144:] += np.log(0.7)  # where a block begins: no correlation
    table[np.random.default_rng(8).random(table.shape) < 0.2] = np.nan
    # every pair by itself, over the sessions that both have: slowly, and in blocks of their own
    found = []
    for one in range(12):
        for other in range(one):
            for rows in (slice(0, 144), slice(144, 200)):
                pair = table[rows][:, [one, other]]
                pair = pair[~np.isnan(pair).any(axis=1)]
                found.append(spearmanr(pair[:, 0], pair[:, 1]).statistic)
    assert correlation_between(table) == pytest.approx(np.mean(found), abs=0.05)


def test_too_few_common_sessions_tell_nothing():
    assert correlation_between(np.log(sessions(29, 3, 1))) is None
    alternating = np.log(sessions(100, 2, 1))
    alternating[::2, 0] = alternating[1::2, 1] = np.nan
    assert correlation_between(alternating) is None
    assert correlation_between(np.full((50, 3), np.nan)) is None


def test_healthy_series_that_share_their_days_raise_nothing():
    for seed in range(5):
        values = sessions(500, 10, 20 + seed, shared=0.5)
        assert follow_together(parts(values), limit=8.0).alarms == ()


def test_what_does_not_fit_is_refused():
    values = sessions(50, 2, 5)
    with pytest.raises(ValueError, match="two at least"):
        follow_together(parts(values)[:1])
    for wrong in (np.arange(49), np.zeros(50, dtype=int)):
        with pytest.raises(ValueError, match="for 50 runs"):
            Part.of(follow(values[:, 0]), wrong)


def test_stretches_end_at_a_gap_of_either_side():
    # runs 0, 1, 3, 4, 5 of sessions 7, 8, 11, 12, 20
    found = stretches(np.array([7, 8, 11, 12, 20]), np.array([0, 1, 3, 4, 5]))
    assert found == [
        (slice(7, 9), slice(0, 2)),
        (slice(11, 13), slice(3, 5)),
        (slice(20, 21), slice(5, 6)),
    ]
    assert stretches(np.array([], dtype=int), np.array([], dtype=int)) == []


def test_many_gaps_are_not_worth_slices():
    every_other = np.arange(0, 40, 2)
    assert stretches(every_other, np.arange(20)) is None
