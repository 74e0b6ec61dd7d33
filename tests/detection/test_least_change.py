"""Changes that are too small to matter: told quietly, and nothing is hidden behind them."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from iobands.detection import DOWN, RECOVERED, SETTLED, UP, begin, extend, follow
from iobands.detection.settling import crept, is_small, shifts
from tests.detection.test_chart import same


def test_what_is_small_by_hand():
    # 4.75 of 5.00 is the least that matters, and so is its inverse
    assert [is_small(each, 0.05) for each in (0.951, 0.95, 1.052, 1 / 0.95)] == [
        *(True, False, True, False)
    ]
    assert not is_small(1.0, 0.0)


def test_levels_by_hand():
    levels = ((3, -0.01), (5, -0.03), (7, 0.0))
    assert shifts(levels, 2, 9).tolist() == [0, -0.01, -0.01, -0.03, -0.03, 0, 0]
    assert shifts(levels, 4, 6).tolist() == [-0.01, -0.03]


def test_how_far_a_level_crept_by_hand():
    # downwards since run 2; too few runs up to run 8, then the median of runs 2 to 9 and so on
    logarithms = np.array([0.0, 0, -1, -2, -3, -4, -5, -6, -7, -8, -9])
    assert crept(logarithms, ((2, -0.5),), 8, 11, 0.0).tolist() == [0.0, 4.5, 5.0]
    # once there are more than 60, the newest 60: here -70 to -11
    long = -np.arange(71.0)
    assert crept(long, ((2, -0.5),), 70, 71, 0.0).tolist() == [40.5]


def test_a_thousandth_is_settled_and_no_alarm():
    chart = follow([5.0] * 60 + [4.99] * 60)
    assert chart.alarms == ()
    assert not chart.is_watched
    (change,) = chart.settled
    assert (change.direction, change.onset, change.end) == (DOWN, 60, SETTLED)
    assert change.ratio.value == pytest.approx(0.998)
    assert chart.evidence == 0


def test_watch_is_not_for_what_does_not_matter():
    small, large = ([5.0] * 200 + [level] * 2 for level in (4.99, 4.5))
    assert follow(small, limit=14).down[-1] >= 5.7
    assert not follow(small, limit=14).is_watched
    assert follow(large, limit=14).is_watched


@pytest.mark.parametrize("drop", [0.7, 0.9, 0.94])
@pytest.mark.parametrize("spread", [0.0, 0.01])
def test_a_drop_after_a_small_one_is_seen_as_soon(drop, spread):
    noise = np.exp(spread * np.random.default_rng(3).standard_normal(220))
    level = np.repeat([1, drop], [200, 20])
    known = follow(5 * level * noise).open_alarm
    level[100:] *= 0.98
    found = follow(5 * level * noise).open_alarm
    assert known is not None and found is not None
    assert found.raised <= known.raised
    # it is told against the reference, and not against what has settled
    assert found.ratio.value == pytest.approx(0.98 * drop, rel=0.01)
    assert found.onset == 200


@pytest.mark.parametrize("spread", [0.0, 0.002, 0.01, 0.03])
def test_a_percent_a_month_is_not_hidden(spread):
    random = np.random.default_rng(8)
    noise = np.exp(spread * random.standard_normal(540))
    values = 5 * noise * 0.99 ** (np.maximum(np.arange(540) - 60, 0) / 30)
    alarms = follow(values).alarms
    assert {alarm.direction for alarm in alarms} == {DOWN}
    assert max(alarm.ratio.value for alarm in alarms) <= 0.955
    # the level is 5 % off after five months, and one of the newest 60 runs is so a month later
    assert 205 <= alarms[0].raised <= 270
    assert alarms[-1].is_open


def test_steps_that_are_too_small_each_add_up():
    # 2 % each: 0.98, 0.9604, 0.941
    values = 5 * 0.98 ** np.repeat([0, 1, 2, 3], 40)
    chart = follow(values)
    assert [round(each.ratio.value, 4) for each in chart.settled] == [0.98, 0.9604]
    assert chart.open_alarm is not None
    assert chart.open_alarm.onset == 120
    assert chart.open_alarm.ratio.value == pytest.approx(0.98**3)


def test_there_and_back_again_is_told_twice_and_leaves_the_reference():
    chart = follow([5.0] * 60 + [4.9] * 60 + [5.0] * 200)
    assert chart.alarms == ()
    assert [each.direction for each in chart.settled] == [DOWN, UP]
    assert chart.shift == 0
    assert set(chart.reference) == {chart.logarithms[0]}
    assert len(chart.reference) == 200


def test_a_repair_to_almost_the_same_level_ends_the_alarm():
    values = [5.0] * 100 + [3.5] * 20 + [4.99] * 60
    chart = follow(values)
    (alarm,) = chart.alarms
    assert (alarm.ended, alarm.end) == (120, RECOVERED)
    assert alarm.closed <= 127
    assert chart.shift == pytest.approx(math.log(4.99 / 5))
    assert follow(values[:160] + [3.5] * 5).open_alarm is not None


def test_without_a_least_change_each_counts():
    alarm = follow([5.0] * 60 + [4.99] * 20, least=0).open_alarm
    assert alarm is not None
    with pytest.raises(ValueError, match="share from 0"):
        begin(least=1.0)


@pytest.mark.parametrize("cuts", [(70, 71), (100, 130, 131), tuple(range(60, 240))])
def test_a_chart_continued_settles_as_one_drawn_at_once(cuts):
    noise = np.exp(0.004 * np.random.default_rng(2).standard_normal(300))
    values = 5 * noise * np.repeat([1, 0.98, 0.96, 0.7, 0.97], 60)
    whole = follow(values)
    assert len(whole.settled) >= 2 and len(whole.alarms) == 1
    parts = begin()
    for first, last in pairwise((0, *cuts, 300)):
        parts = extend(parts, values[first:last])
    same(whole, parts)
    assert (whole.settled, whole.levels) == (parts.settled, parts.levels)
