"""What a limit costs and brings: the fleet budget, the power, and a short Monte Carlo."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.alarms.measure import LIMITS, delay, false_alarms, oracle
from benchmarks.alarms.worlds import BANDS, world
from iobands.detection import (
    WATCH,
    begin,
    follow,
    limit_for,
    power,
    runs_between_false_alarms,
)


def test_a_larger_site_has_a_higher_limit_and_never_one_under_watch():
    assert limit_for(1, 500) > limit_for(1, 50) > limit_for(1, 5)
    assert limit_for(100, 1) == WATCH


def test_the_fleet_budget_is_kept_by_the_formula():
    limit = limit_for(2.0, 300, 365)
    assert 300 * 365 / runs_between_false_alarms(limit) == pytest.approx(2.0)


@pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf])
def test_a_site_without_a_size_is_refused(wrong):
    with pytest.raises(ValueError, match="positive finite"):
        limit_for(wrong, 10)
    with pytest.raises(ValueError, match="positive finite"):
        power(begin(BANDS["NVMe FPP"]), wrong)


def test_power_tells_the_series_that_can_see_from_those_that_cannot():
    narrow, wide = (
        follow(np.exp(spread * np.random.default_rng(1).standard_normal(300)), limit=9)
        for spread in (0.1, 0.8)
    )
    assert 2 <= power(narrow) < 8
    assert power(narrow, 0.9) > power(narrow)
    assert power(wide) > 20
    assert power(narrow, 1.4) < 12
    assert power(begin()) == math.inf


def test_power_agrees_with_what_is_measured():
    made = world("SSF NVMe", "plain")
    random = np.random.default_rng(7)
    history = np.exp(made.draw(random, 1, 200)[0])
    reckoned = power(begin(history=history, limit=8.0))
    found = []
    for values in np.exp(made.draw(random, 150, 60)):
        chart = follow(values * 0.7, history=history, limit=8.0)
        found.append(chart.alarms[0].raised + 1)
    assert reckoned == pytest.approx(np.mean(found), rel=0.3)


@pytest.mark.parametrize("tail", ["plain", "heavy", "collapse", "two modes"])
@pytest.mark.parametrize("band", BANDS)
def test_false_alarms_are_as_seldom_as_is_stated(band, tail):
    found = false_alarms(world(band, tail), 60, 60, 1000, seed=11, limit=WATCH)
    index = int(np.argmin(np.abs(LIMITS - WATCH)))
    # 60,000 runs: 60 alarms at ARL0 = 1000; 120 are eight standard errors away
    assert found.alarms[index] < 120


def test_correlated_runs_raise_few_false_alarms_too():
    found = false_alarms(world("NVMe FPP", "plain", 0.6), 60, 60, 1000, seed=12, limit=WATCH)
    assert found.alarms[int(np.argmin(np.abs(LIMITS - WATCH)))] < 120


def test_a_drop_is_seen_soon():
    made = world("NVMe FPP", "plain")
    best = oracle(made, 0.7, 1000, 40, seed=13)
    assert 2.2 < best.mean < 3.4
    ours = delay(made, 200, np.full(60, np.log(0.7)), WATCH, 150, seed=14)
    assert ours.missed == 0
    assert best.mean < ours.mean < 1.6 * best.mean
