"""The size and the beginning of a change: worked out by hand, and by slow exhaustive sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.alarms.charts import follow
from iobands.judge.detect.chart import onset_interval
from iobands.judge.detect.spacing import Spacing
from iobands.snapshot import Ratio, level_ratio
from tests.judge.series import levels

SCORES = st.lists(st.floats(-10, 10), min_size=1, max_size=40)
LOGARITHMS = st.lists(st.floats(-5, 5), min_size=1, max_size=30)


def test_an_onset_by_hand():
    # sums from the right: -6.5, 3.5, 4.5, 2.5, 1.5, 0.5; of those within 1.92 of 4.5 the first is
    # at run 1 and the last at run 2
    scores = np.array([-10.0, -1.0, 2.0, 1.0, 1.0, 0.5])
    assert onset_interval(scores, 5) == (2, 1, 2)


@given(SCORES, st.data())
def test_onsets_are_the_likeliest_of_all(scores: list[float], data: st.DataObject):
    raised = data.draw(st.integers(0, len(scores) - 1))
    likelihood = [sum(scores[start:]) for start in range(raised + 1)]
    best, low, high = onset_interval(np.array(scores), raised)
    assert likelihood[best] == pytest.approx(max(likelihood), abs=1e-9)
    assert low <= best <= high
    near = [k for k, each in enumerate(likelihood) if each >= max(likelihood) - 1.92 + 1e-6]
    assert low <= near[0] and near[-1] <= high


def test_a_ratio_by_hand():
    # ln 2 is the median of nine differences; three runs against three give no bound at 95 %
    found = level_ratio(np.log([1.0, 2.0, 4.0]), np.log([2.0, 4.0, 8.0]))
    assert found.value == pytest.approx(2.0)
    assert (found.low, found.high) == (0.0, math.inf)


def test_the_interval_of_a_ratio_by_hand():
    # 10 against 10: 100 differences with standard deviation sqrt(100 * 21 / 12) = 13.2, so the
    # interval goes from the 25th to the 25th from above, counted from 1
    before, after = np.arange(10.0), np.arange(10.0) * 1.5 + 3
    differences = sorted(b - a for a in before for b in after)
    found = level_ratio(before, after)
    assert found.low == pytest.approx(math.exp(differences[24]))
    assert found.high == pytest.approx(math.exp(differences[-25]))
    # twice as wide: 50 - 2 * 25.9 is below the first
    assert level_ratio(before, after, 2.0).high == math.inf


def test_a_ratio_to_nothing_is_unknown():
    found = level_ratio(np.array([]), np.array([1.0]))
    assert math.isnan(found.value)
    assert (found.low, found.high) == (0.0, math.inf)


@given(LOGARITHMS, LOGARITHMS)
def test_ratios_are_the_median_of_all_differences(before: list[float], after: list[float]):
    found = level_ratio(np.array(before), np.array(after))
    oracle = np.median([b - a for a in before for b in after])
    assert math.log(found.value) == pytest.approx(oracle, abs=1e-9)
    assert found.low <= found.value <= found.high


def test_of_a_long_change_the_oldest_and_newest_runs_count():
    before = np.zeros(20)
    after = np.concatenate((np.full(200, -1.0), np.full(5000, -9.0), np.full(200, -1.0)))
    assert level_ratio(before, after).value == pytest.approx(math.exp(-1))


@pytest.mark.parametrize(
    ("ratio", "least", "small"),
    [
        (Ratio(1.0, 0.96, 1.04), 0.05, True),
        (Ratio(1.0, 0.94, 1.04), 0.05, False),
        (Ratio(1.0, 0.96, 1.06), 0.05, False),
        (Ratio(0.95, 0.95, 0.95), 0.05, False),  # exactly the least matters
        (Ratio(1 / 0.95, 1 / 0.95, 1 / 0.95), 0.05, False),
        (Ratio(1.0, 0.0, math.inf), 0.05, False),
        (Ratio(1.0, 1.0, 1.0), 0.0, False),
    ],
)
def test_what_is_small(ratio: Ratio, least: float, small: bool):
    assert ratio.is_surely_small(least) is small


def test_a_second_loss_under_an_open_drop_is_a_fall_of_it():
    chart = follow(levels((200, 1), (40, 0.7), (20, 0.42)))
    (change,) = chart.changes
    (fall,) = change.falls
    assert change.is_open
    assert abs(fall.since - 240) <= 1
    assert fall.raised - 240 + 1 <= 6
    assert fall.ratio.low < 0.42 < fall.ratio.high
    # the level of the newest runs, in contrast to the mean since the onset
    assert change.newest.value == pytest.approx(0.42, rel=0.05)
    assert change.ratio.value > 0.5


def test_a_second_loss_under_a_drop_that_was_found_late_is_a_fall_too():
    chart = follow(levels((200, 1), (150, 0.91), (40, 0.5), seed=3, spread=0.12))
    change = chart.changes[0]
    assert change.raised - change.since > 30 and change.raised < 350
    assert [abs(fall.since - 350) <= 1 for fall in change.falls] == [True]


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_low_runs_of_one_hour_are_no_fall_before_the_next_day_either(seed: int):
    hours = np.append(np.arange(150) * 24.0, 150 * 24 + np.arange(6) * 0.2)
    values = levels((120, 1), (30, 0.7), (6, 0.5), seed=seed, spread=0.08)
    change = follow(values, spacing=Spacing(hours, np.zeros(len(hours), bool))).open_change
    assert change is not None
    assert change.falls == ()


def test_a_drop_that_keeps_its_level_falls_no_further():
    false = sum(
        len(change.falls)
        for seed in range(20)
        for change in follow(levels((200, 1), (150, 0.7), seed=seed)).changes
    )
    assert false == 0


def test_a_fall_from_what_recovered_in_part_is_a_fall_too():
    (change,) = follow(levels((200, 1), (40, 0.5), (60, 0.7), (20, 0.4), spread=0.05)).changes
    assert [abs(fall.since - 300) <= 1 for fall in change.falls] == [True]
    assert change.newest.value == pytest.approx(0.4, rel=0.05)
