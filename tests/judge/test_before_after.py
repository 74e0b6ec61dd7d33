"""Before and after a maintenance: steps and errors by hand, and claims that must not be made."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from iobands.judge.before_after import (
    Unit,
    Usual,
    _as_normal,
    _quantile,
    fit,
    forecast,
    grouped,
    rule,
    since_alone,
    usual_of,
)
from iobands.snapshot import ShiftVerdict


def daily(values, after, *, first=0.0):
    """Return daily runs: `values` before a maintenance, and `after` after it."""
    logs = np.log([*values, *after])
    hours = first + 24.0 * np.arange(len(logs))
    return Unit(hours, logs, np.arange(len(logs)) >= len(values))


def healthy(days, spread=0.05, seed=1):
    return np.exp(spread * np.random.default_rng(seed).standard_normal(days))


def ruled(**units):
    return rule(units, dict.fromkeys(units, 1.0), usual_of(units))


@pytest.mark.parametrize("freedom", [3.0, 8.0, 15.0])
@pytest.mark.parametrize("t", [0.5, 2.0, 4.5])
def test_students_t_is_that_of_scipy_within_a_tenth_of_the_tail(freedom, t):
    normal = _as_normal(t, freedom)
    assert stats.norm.sf(normal) == pytest.approx(stats.t.sf(t, freedom), rel=0.1)
    assert _quantile(2 * stats.norm.sf(normal), freedom) == pytest.approx(t)


def test_the_step_of_runs_that_do_not_depend_on_each_other_is_the_difference_of_means():
    before = [1.0, 1.02, 0.98, 1.01, 0.99] * 8
    unit = daily(before, [0.8, 0.81, 0.79])
    usual = Usual.of(unit)
    usual = Usual(usual.level, 0.02, 0.0, 0.4, 24.0, usual.residuals)
    found = fit(unit, usual)
    means = np.mean(np.log([0.8, 0.81, 0.79])) - np.mean(np.log(before))
    assert found.step == pytest.approx(means, abs=0.001)
    # 1.1 allows for a wrong correlation; exp(-24/6) of the lasting part is left after a day
    assert found.error == pytest.approx(1.1 * 0.02 * math.sqrt(1 / 3 + 1 / 40), rel=0.02)


def test_runs_of_one_evening_say_little_more_than_one():
    before = healthy(40)
    unit = daily(before, [1.0])
    usual = Usual.of(unit)
    evening = np.append(unit.hours[:-1], unit.hours[-1] + 0.1 * np.arange(20))
    many = Unit(evening, np.append(unit.logs[:-1], np.zeros(20)), np.arange(60) >= 40)
    one, twenty = (fit(each, usual).error for each in (unit, many))
    assert twenty > math.sqrt(1 - usual.new) * one * 0.95
    assert twenty < one


@pytest.mark.parametrize("apart", [1.0, 6.0, 12.0])
def test_where_runs_are_made_all_day_long_a_day_has_24_hours(apart):
    hours = apart * np.arange(-30 * 24 // apart, 5 * 24 // apart)
    is_after = hours >= 0
    random = np.random.default_rng(1)
    # a part that lasts for a day, and a part that is independent in each run
    lasting = random.standard_normal(35)[(hours // 24).astype(int)]
    new = random.standard_normal(len(hours))
    logs = 0.05 * (math.sqrt(0.6) * lasting + math.sqrt(0.4) * new) - 0.3 * is_after
    unit = Unit(hours, logs, is_after)
    assert [days for _, days in unit.counts] == [30, 5]
    assert unit.usual.spread == pytest.approx(0.05, rel=0.2)  # of a run, not of its day's median
    assert ruled(a=unit)["a"].outcome is ShiftVerdict.SLOWER


def test_what_is_new_in_each_run_is_known_of_the_file_system():
    days = [replace(daily(healthy(40, seed=n), []), share=0.2) for n in range(4)]
    assert Usual.of(days[0]).new == pytest.approx(0.2)
    group = grouped(days, [np.arange(40)] * 4)
    assert (group.share, group.members, group.new) == (0.2, 4, pytest.approx(0.05))
    assert Usual.of(group).new == pytest.approx(0.05)


def test_a_large_loss_of_a_week_is_slower_and_a_gain_faster():
    before, after = healthy(60), healthy(8, seed=2)
    found = ruled(loss=daily(before, 0.75 * after), gain=daily(before, 1.3 * after))
    assert [each.outcome for each in found.values()] == [ShiftVerdict.SLOWER, ShiftVerdict.FASTER]
    assert found["loss"].ratio.low < 0.75 < found["loss"].ratio.high < 1


def test_nothing_changed_says_how_much_is_left_open():
    one = ruled(a=daily(healthy(60), healthy(20, seed=3)))["a"]
    assert one.outcome is ShiftVerdict.NO_CHANGE
    assert 0 < one.bound < 0.1


def test_one_bad_evening_is_no_claim_where_such_days_happen():
    values = healthy(60)
    values[[7, 22, 41]] = 0.5
    others = {f"other {n}": daily(healthy(60, seed=n), [1.0] * 7) for n in range(4)}
    # three such days of 60, and half of one in 100 assumed: 3.5 / 160
    evening = ruled(a=daily(values, [0.5]), **others)["a"]
    assert evening.fit.mistaken == pytest.approx(3.5 / 160)
    assert evening.outcome is ShiftVerdict.UNDECIDED
    week = ruled(a=daily(values, [0.5] * 7), **others)["a"]
    assert week.fit.mistaken == pytest.approx(3.5 / 160 * max(0.3, week.fit.usual.kept) ** 3)
    assert week.outcome is ShiftVerdict.SLOWER


def test_one_bad_day_of_two_and_of_three_is_no_claim():
    for after in ([0.3, 1.0], [1.0, 0.3, 1.0]):
        assert ruled(a=daily(healthy(60), after))["a"].outcome is not ShiftVerdict.SLOWER


def test_a_claim_passes_its_error_to_the_rest():
    before = healthy(60)
    alone = ruled(a=daily(before, healthy(3, seed=2)))["a"].error
    both = ruled(a=daily(before, healthy(3, seed=2)), lost=daily(before, 0.5 * healthy(7, seed=4)))
    assert both["lost"].error == pytest.approx(0.025)
    assert both["a"].error == alone == pytest.approx(0.05)


def test_too_few_days_before_give_no_ruling():
    assert ruled(a=daily(healthy(4), [1.0])) == {}


def test_more_days_decide_and_the_forecast_falls_with_them():
    unit = daily(healthy(60), [])
    losses = [forecast(unit, 0.01, 5, days) for days in (3, 7, 14)]
    assert all(losses) and losses == sorted(losses, reverse=True)
    assert forecast(daily(healthy(3), []), 0.01, 5, 3) is None
    short = ruled(a=daily(healthy(60), [0.97]))["a"]
    assert short.outcome is ShiftVerdict.UNDECIDED
    assert 1 <= short.more() <= 21


def test_a_group_keeps_what_its_members_share_and_averages_the_rest():
    random = np.random.default_rng(5)
    shared = 0.04 * random.standard_normal(68)
    members = []
    for _ in range(12):
        own = 0.08 * random.standard_normal(68)
        members.append(Unit(24.0 * np.arange(68), shared + own, np.arange(68) >= 60))
    group = grouped(members, [np.arange(68)] * 12)
    spread = Usual.of(group).spread
    assert spread == pytest.approx(math.hypot(0.04, 0.08 / math.sqrt(12)), rel=0.25)
    assert group.is_after.sum() == 8


def test_a_member_with_a_bad_day_does_not_make_its_group_slower():
    members = [daily(healthy(60, seed=n), healthy(1, seed=n + 50)) for n in range(10)]
    members[0] = daily(healthy(60), [0.1])
    group = grouped(members, [np.arange(61)] * 10)
    assert abs(fit(group, Usual.of(group)).step) < 0.05


def test_later_runs_alone_confirm_or_do_not():
    lost = daily(healthy(60), [*(0.7 * healthy(3)), *(0.7 * healthy(7, seed=6))])
    back = daily(healthy(60), [*(0.7 * healthy(3)), *healthy(7, seed=6)])
    end = lost.hours[62]
    assert since_alone(lost, end, Usual.of(lost), -1.0)
    assert not since_alone(back, end, Usual.of(back), -1.0)
