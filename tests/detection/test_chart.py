"""The chart of a series: what raises an alarm, what it tells, and that dealing out is no matter."""

from __future__ import annotations

import math
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iobands.detection import (
    DOWN,
    LAG,
    LARGEST_REFERENCE,
    NEW_NORMAL,
    RECOVERED,
    UP,
    begin,
    extend,
    follow,
)
from iobands.detection.change import level_ratio, onset_interval

NVME = SimpleNamespace(lower_quartile=135, median=150, upper_quartile=180, maximum=200)


def healthy(runs: int, seed: int = 1, median: float = 150.0, spread: float = 0.15) -> np.ndarray:
    return median * np.exp(spread * np.random.default_rng(seed).standard_normal(runs))


def same(one, other) -> None:
    assert np.array_equal(one.down, other.down)
    assert np.array_equal(one.up, other.up)
    assert np.array_equal(one.increments, other.increments)
    assert np.array_equal(one.reference, other.reference)
    assert one.alarms == other.alarms


def test_a_healthy_series_raises_none_and_a_drop_is_found_dated_and_sized():
    values = healthy(500)
    assert follow(values).alarms == ()
    values[300:340] *= 0.7
    (alarm,) = follow(values).alarms
    assert alarm.direction == DOWN
    assert 300 <= alarm.raised <= 310
    assert alarm.onset_low <= 300 <= alarm.onset_high
    assert alarm.ratio.low < 0.7 < alarm.ratio.high
    assert alarm.score >= alarm.limit
    assert alarm.end == RECOVERED
    assert 335 <= alarm.ended <= 346 <= alarm.closed + 8


def test_a_rise_is_found_and_is_no_drop():
    values = healthy(400)
    values[250:] *= 1.4
    alarm = follow(values).open_alarm
    assert alarm is not None
    assert (alarm.direction, alarm.is_open) == (UP, True)
    assert alarm.ratio.low < 1.4 < alarm.ratio.high


def test_a_change_that_turns_round_ends_the_first_alarm_and_raises_the_other():
    values = healthy(400)
    values[200:260] *= 1.3
    values[260:] *= 0.4
    up, down = follow(values).alarms
    assert (up.direction, down.direction) == (UP, DOWN)
    assert abs(up.ended - 260) <= 3
    assert down.is_open
    assert down.ratio.high < 0.5


def test_no_onset_lies_among_the_runs_that_the_reference_was_learnt_from():
    values = healthy(60)
    values[20:] *= 1.5
    (alarm,) = follow(values).alarms
    assert alarm.onset_low == alarm.onset == 20


def test_a_smaller_change_than_it_first_looked_like_stays_open():
    values = healthy(700, seed=4, spread=0.1)
    values[200:] *= 0.75
    chart = follow(values)
    assert len(chart.alarms) == 1
    assert chart.open_alarm is not None


def test_a_band_speaks_from_the_first_run_on():
    chart = follow(healthy(12, seed=2, median=100, spread=0.03), NVME)
    assert chart.open_alarm is not None
    assert chart.open_alarm.onset == 0
    assert not follow(healthy(12, seed=2)).can_judge


def test_the_reference_grows_lags_and_is_frozen():
    assert len(follow(healthy(20)).reference) == 20
    # 25 runs are a reference once run 24 has had LAG quiet runs after it
    assert len(follow(healthy(25 + LAG - 1)).reference) == 20
    assert len(follow(healthy(25 + LAG)).reference) == 25
    assert len(follow(healthy(1500)).reference) == LARGEST_REFERENCE


def test_no_run_of_an_open_alarm_joins_the_reference():
    values = healthy(400)
    values[100:160] *= 0.5
    chart = follow(values)
    assert chart.reference.min() > math.log(150 * 0.55)
    assert len(chart.reference) == LARGEST_REFERENCE


def test_a_new_normal_ends_the_alarm_and_starts_the_reference_anew():
    values = healthy(300)
    values[150:] *= 0.6
    chart = follow(values, NVME, resets=[200])
    (alarm,) = chart.alarms
    assert (alarm.ended, alarm.end) == (200, NEW_NORMAL)
    assert chart.band is None
    assert chart.open_alarm is None
    assert np.exp(np.median(chart.reference)) == pytest.approx(90, rel=0.1)


def test_two_levels_in_the_history_make_no_drop_of_what_is_not_lower():
    # half of the history at 7, half at 17.5; then all at 16.5, over the median
    random = np.random.default_rng(5)
    history = np.where(np.arange(40) % 2, 7.0, 17.5) * np.exp(0.01 * random.standard_normal(40))
    values = 16.5 * np.exp(0.01 * random.standard_normal(200))
    assert all(alarm.direction == UP for alarm in follow(values, history=history).alarms)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_what_is_no_measurement_is_refused(wrong):
    with pytest.raises(ValueError, match="value 1 is"):
        follow([1.0, wrong])
    with pytest.raises(ValueError, match="positive finite"):
        begin(history=[wrong])


def test_limits_and_resets_are_looked_at():
    with pytest.raises(ValueError, match="limits are positive"):
        begin(limit=0)
    with pytest.raises(ValueError, match="resets"):
        follow([1.0, 2.0], resets=[2])
    with pytest.raises(ValueError, match="resets"):
        extend(follow([1.0, 2.0]), [3.0], resets=[1])


def test_nothing_one_run_and_equal_runs():
    assert follow([]).evidence == 0
    assert follow([3.0]).alarms == ()
    chart = follow(np.full(500, 3.0))
    assert chart.alarms == ()
    assert chart.evidence == 0


def test_a_series_of_few_distinct_values_raises_no_alarm():
    random = np.random.default_rng(6)
    chart = follow(random.choice([9.0, 10.0, 11.0], size=2000))
    assert chart.alarms == ()


def test_a_change_out_of_equal_runs_is_seen():
    values = np.full(200, 3.0)
    values[150:] = 2.0
    alarm = follow(values).open_alarm
    assert alarm is not None
    assert alarm.onset == 150
    assert alarm.ratio.value == pytest.approx(2 / 3)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    cuts=st.lists(st.integers(0, 420), max_size=8),
    with_band=st.booleans(),
    change=st.tuples(st.integers(0, 420), st.integers(1, 150), st.sampled_from([0.3, 0.7, 1.5])),
    reset=st.none() | st.integers(0, 419),
)
def test_a_chart_continued_equals_a_chart_drawn_at_once(seed, cuts, with_band, change, reset):
    values = healthy(420, seed=seed)
    start, length, factor = change
    values[start : start + length] *= factor
    band = NVME if with_band else None
    resets = [] if reset is None else [reset]
    whole = follow(values, band, resets=resets, limit=7)
    parts = begin(band, limit=7)
    bounds = sorted({0, *cuts, 420})
    for first, last in pairwise(bounds):
        inside = [mark for mark in resets if first <= mark < last]
        parts = extend(parts, values[first:last], resets=inside)
    same(whole, parts)


@settings(max_examples=25)
@given(factor=st.floats(1e-3, 1e3), seed=st.integers(0, 10_000))
def test_the_unit_does_not_matter(factor, seed):
    values = healthy(300, seed=seed)
    values[200:] *= 0.6
    one, other = follow(values), follow(values * factor)
    assert [a.raised for a in one.alarms] == [a.raised for a in other.alarms]
    assert np.allclose(one.down, other.down)


def test_an_onset_by_hand():
    # sums from the right: 0.5, 1.5, 2.5, 4.5, 3.5, -6.5; all within 1.92 of 4.5: runs 2 to 3...
    scores = np.array([-10.0, -1.0, 2.0, 1.0, 1.0, 0.5])
    assert onset_interval(scores, 5) == (2, 1, 2)


def test_a_ratio_by_hand():
    before, after = np.log([1.0, 2.0, 4.0]), np.log([2.0, 4.0, 8.0])
    found = level_ratio(before, after)
    assert found.value == pytest.approx(2.0)
    # three runs against three say nothing at 95 %
    assert (found.low, found.high) == (0.0, math.inf)
