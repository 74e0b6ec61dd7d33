"""Runs that were measured again: the reasons for them, and how they count as evidence."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobands.judge.detect.prior import Budget, Measured, Months, Prior, priors_of
from iobands.judge.detect.spacing import Life, Spacing
from iobands.judge.detection import Detection, detect
from iobands.snapshot import MAYBE_OVER, SUSPECTED, UNCERTAIN, History
from iobands.snapshot.history import Doubt
from tests.judge.series import levels

BEGIN = datetime(2026, 1, 1, 8, tzinfo=timezone.utc)
NOTHING_LEARNED = Months(np.zeros(1, "datetime64[ns]"), (Budget(),), (Prior(),))


def at(hours: np.ndarray) -> np.ndarray:
    """Return times this many hours after `BEGIN`."""
    return np.datetime64(BEGIN.replace(tzinfo=None), "ns") + np.round(hours * 3600).astype(
        int
    ) * np.timedelta64(1, "s")


def detected(values: np.ndarray, hours: np.ndarray | None = None) -> Detection:
    """Return the detection of a series with one run per day, or with runs at these hours.

    Runs at hours other than the daily one count as measured again.
    """
    times = at(24.0 * np.arange(len(values)) if hours is None else hours)
    every = np.ones(len(values), dtype=bool)
    asked = ~every if hours is None else hours % 24 != 0
    history = History(times, values, every, ~every, every, np.arange(len(values)), asked, {})
    return detect(history, np.arange(len(values)), None, NOTHING_LEARNED)


def doubt_after(*parts: tuple[int, float]) -> Doubt | None:
    return detected(levels(*parts, spread=0.05)).doubt


def daily_then(low: float, hours: list[float], after: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return 200 healthy days, low runs this many hours after the last one, then healthy days."""
    values = np.concatenate((levels((200, 1), spread=0.05), np.full(len(hours), 150 * low)))
    times = np.concatenate((24.0 * np.arange(200), 24.0 * 199 + np.array(hours)))
    later = 24.0 * (np.ceil(times[-1] / 24) + 1 + np.arange(after))
    healthy = levels((200 + after, 1), spread=0.05)[200:]
    return np.concatenate((values, healthy)), np.concatenate((times, later))


def foreseen(
    hours: list[float], values: list[float], correlation: float, new: float = 0.4
) -> tuple[np.ndarray, ...]:
    """Return the weights, new values and shown changes of runs at `hours` after a daily run."""
    times = np.concatenate((24.0 * np.arange(20), 24.0 * 19 + np.array(hours)))
    spacing = Spacing(times, times % 24 != 0)
    every = np.concatenate((np.zeros(19), values))
    found = spacing.foreseen(
        slice(0, len(times)), every, *np.full((2, len(times)), [[correlation], [new]])
    )
    return tuple(each[-len(hours) :] for each in found)


def test_a_run_says_less_the_sooner_it_follows_another():
    # Right after each other, two runs share 0.6: the prediction of the second is 0.6 of the first,
    # with variance 1 - 0.6 ** 2 = 0.64. A change by 1 shows as 0.4 / 0.8, so it counts 0.25 times
    # 2.2, the variance of the mean of a long series of which half of the 0.6 remain after a day.
    (weight,), (new,), (shown,) = foreseen([0.0001], [-1.0, -1.4], 0.3)
    assert new == pytest.approx((-1.4 + 0.6) / 0.8, rel=1e-3)
    assert shown == pytest.approx(0.5, rel=1e-3)
    assert weight == pytest.approx(0.25 * 2.2, rel=1e-3)
    # if only a tenth is independent, the prediction is 0.9, and the remaining variance 1 - 0.81
    (weight,), (new,), (shown,) = foreseen([0.0001], [-1.0, -1.4], 0.3, 0.1)
    assert new == pytest.approx((-1.4 + 0.9) / math.sqrt(0.19), rel=1e-3)
    assert shown == pytest.approx(0.1 / math.sqrt(0.19), rel=1e-3)
    assert weight == pytest.approx(0.01 / 0.19 * (0.1 + 0.9 * 2), rel=1e-3)  # (1 + 1/3) / (1 - 1/3)
    # from half a day on a run counts in full: the divisor of all scores accounts for the rest
    for hours in (13, 24):
        assert [each[0] for each in foreseen([hours], [-1.0, -1.4], 0.3)] == [1, -1.4, 1]
    one, four, eight = (foreseen([hours], [0.0, 0.0], 0.3)[0][0] for hours in (1, 4, 8))
    assert 0.55 < one < four < eight < 1
    # at six runs per day each soon counts a fifth: together they count 1.24 times as much as one
    many = foreseen([4.0 * n for n in range(1, 60)], [0.0] * 60, 0.3)[0]
    assert many[-6:].sum() == pytest.approx(1.24, abs=0.02)


@given(st.lists(st.tuples(st.sampled_from([0.1, 1, 5, 11, 13, 23, 24, 25, 49]), st.booleans())))
def test_a_run_is_close_after_half_the_median_of_nine_gaps(drawn: list[tuple[float, bool]]):
    hours = np.cumsum([0, *(gap for gap, _ in drawn)])
    asked = np.array([False, *(again for _, again in drawn)])
    for of in (asked, np.zeros_like(asked)):  # without repeated runs, the code takes a short cut
        routine = hours[~of]
        expected = [False]
        for before, this in pairwise(hours.tolist()):
            gaps = np.diff(routine[routine < this])[-9:]
            expected.append(len(gaps) == 9 and this - before < np.median(gaps) / 2)
        assert Spacing(hours, of).close.tolist() == expected


def test_what_was_measured_twenty_times_in_an_hour_is_no_alert():
    assert not detected(*daily_then(0.3, [24 + n / 20 for n in range(20)], 5)).changes
    assert detected(*daily_then(0.3, [24.0 * n for n in range(1, 20)])).open_change


def test_trouble_that_ends_within_the_day_is_no_alert():
    found = detected(*daily_then(0.3, [24, 28, 32], 3))
    assert not found.changes
    assert found.doubt is None
    assert found.transients == ()  # no repeat showed that it was over
    # trouble that may last by chance counts as its rarity, and as the rarity of its duration
    most = -math.log(Prior().rate) - math.log(Prior().lasts(8))
    assert 2.5 < found.chart.down[202] < most + 1


def runs_of(values: list[float], hours: list[float]) -> Measured:
    """Return 40 daily runs at 1, and further `values` this many `hours` after the 20th."""
    days = 24.0 * np.arange(40)
    every = np.concatenate((days, 19 * 24.0 + np.array(hours)))
    order = np.argsort(every)
    rates = np.concatenate((np.exp(0.01 * np.sin(days)), values))[order]
    return Measured(at(every[order]), np.log(rates), (every % 24 != 0)[order])


def life_after(values: list[float], hours: list[float]) -> Life:
    late = at(np.array([24.0 * 39 + 1]))
    return priors_of([runs_of(values, hours)], late)[0].life


def test_an_episode_teaches_how_long_trouble_lasts():
    assert Life().hours == pytest.approx(5.5)
    # low for 8 hours and over after 12: the mean square is (64 + 144) / 2 = 104
    life = life_after([0.3, 0.3, 0.3, 1.0], [1, 5, 9, 13])
    assert life == Life(1, pytest.approx(104), 0)
    assert life.hours == pytest.approx(math.sqrt((10 * 5.5**2 + 104) / 11))  # with ten of 5.5 h
    assert life.days == pytest.approx(1 / 101)
    # an episode that ended just within a day
    assert life_after([0.3] * 7 + [1.0], [1, 5, 9, 13, 17, 21, 23, 23.5]) == Life(
        1, pytest.approx((22**2 + 22.5**2) / 2), 0
    )
    # a low run that was not measured again may have lasted a minute
    assert life_after([], []) == Life()


def test_trouble_lasts_as_its_life_says():
    life = Life(90, 90 * 4.0**2, 10)  # and ten of 5.5 h
    assert life.hours == pytest.approx(math.sqrt((90 * 16 + 302.5) / 100))
    assert life.days == pytest.approx(11 / 200)
    assert life.lasts(0, 0.1) == 1
    assert life.lasts(4, 0.1) == pytest.approx(0.945 * math.exp(-16 / 17.425) + 0.055)
    assert life.lasts(48, 0.1) == pytest.approx(0.0055)  # a tenth goes on to the next day


def pairs_of(second: float, number: int) -> list[Measured]:
    """Return series with a run one standard deviation low, and one `second` low right after it.

    The runs around them have the level 0 and quartiles at 0.6745 below and above it. The second
    run is compared only with the first, for whatever reason it was measured.
    """
    days = np.arange(60)
    daily = 0.6745 * np.resize([-1.0, 1.0, 0.0], 60)
    daily[40] = -1.0
    at_hours = np.insert(24.0 * days, 41, 24.0 * 40 + 1e-4)
    values = 0.05 * np.insert(daily, 41, -second)
    return [Measured(at(at_hours), values, np.arange(61) == 41)] * number


def new_of(series: list[Measured]) -> Prior:
    return priors_of(series, at(np.array([24.0 * 60])))[0]


def test_what_is_new_in_each_run_is_learned_from_runs_close_together():
    assert Prior().new == 0.4
    # the slope shrinks to 0.6, which counts like 50 pairs, and outliers are clipped to 2.5; the
    # level does not contribute, as days do not correlate
    for number, second in ((1, 0.8), (50, 0.8), (5000, 0.8), (50, 0.1), (50, 3.0)):
        found = new_of(pairs_of(second, number))
        assert found.correlation < 0
        new = 1 - (number * min(second, 2.5) + 50 * 0.6) / (number + 50)
        assert found.new == pytest.approx(min(max(new, 0.05), 0.9), abs=1e-3)


def test_no_outlier_and_no_later_run_says_what_is_new():
    (one,) = pairs_of(0.5, 1)
    deep = Measured(one.times, np.where(one.asked, -3.0, one.values), one.asked)
    assert new_of([deep] * 50).new == 0.4
    # known once there are ten runs of the schedule after the pair
    series = pairs_of(1.0, 50)
    found = priors_of(series, at(np.array([24.0 * 49 + 1, 24.0 * 50, 24.0 * 50 + 1, 24.0 * 60])))
    assert [each.new < 0.35 for each in found] == [False, False, True, True]


@pytest.mark.parametrize(("new", "correlation"), [(0.2, 0.3), (0.4, 0.3), (0.6, 0.3), (0.2, 0.6)])
def test_the_share_that_is_new_is_found_although_low_runs_alone_are_repeated(
    new: float, correlation: float
):
    random, size = np.random.default_rng(1), 200 * 6
    kept = (correlation / (1 - new)) ** (1 / 6)
    series = []
    for _ in range(40):
        lasting = random.standard_normal(size)
        for now in range(1, size):
            lasting[now] = kept * lasting[now - 1] + math.sqrt(1 - kept**2) * lasting[now]
        values = math.sqrt(1 - new) * lasting + math.sqrt(new) * random.standard_normal(size)
        grid = np.arange(size)
        made = (grid % 6 == 0) | np.append(False, (values[:-1] < -1.5) & (grid[:-1] % 6 == 0))
        series.append(Measured(at(4.0 * grid[made]), 0.05 * values[made], grid[made] % 6 > 0))
    found = priors_of(series, at(np.array([4.0 * size])))[0]
    assert found.new == pytest.approx(new, abs=0.08)


def test_the_throttled_disk_of_two_series_is_degraded_at_the_third_repeat():
    # 24 daily runs at a spread of 0.5 %, then 14 of 20 MiB/s, asked again every four hours
    for seed in range(5):
        noise = np.exp(0.005 * np.random.default_rng(seed).standard_normal(30))
        low = np.concatenate((24.0 * np.arange(25), 24.0 * 24 + np.array([4, 8, 12])))
        values = 20 * noise[:28] * np.where(low < 24 * 24, 1, 0.7)
        assert detected(values[:27], low[:27]).open_change is None
        assert detected(values, low).open_change.raised == BEGIN + timedelta(days=24, hours=12)
        # and full speed in the session of the next day, asked again after four and eight hours
        back = np.concatenate((low, [24.0 * 25, 24.0 * 25 + 4, 24.0 * 25 + 8]))
        values = np.concatenate((values, 20 * noise[27:]))
        assert detected(values[:-1], back[:-1]).open_change
        (change,) = detected(values, back).changes
        assert change.closed == BEGIN + timedelta(days=25, hours=8)


def test_low_runs_whose_repeats_are_healthy_again_are_a_transient():
    values, hours = daily_then(0.25, [24, 26, 28])
    found = detected(np.append(values, 150), np.append(hours, hours[-1] + 1))
    (transient,) = found.transients
    assert (transient.low, transient.runs) == (3, 4)
    assert transient.until - transient.since == timedelta(hours=5)
    assert transient.ratio == pytest.approx(0.25, rel=0.02)
    assert str(transient) == "up to 5 h at 0.25 ×, 3 of 4 runs"
    assert str(replace(transient, ratio=0.0042)) == "up to 5 h at 0.0042 ×, 3 of 4 runs"
    assert not found.changes
    # a slightly low run and a healthy repeat are not reported
    values, hours = daily_then(0.95, [24])
    assert not detected(np.append(values, 150), np.append(hours, hours[-1] + 1)).transients


def test_a_transient_is_not_forgotten_when_an_improvement_is_adopted():
    values, hours = daily_then(0.25, [24, 26, 28])
    values = np.concatenate((values, [150], 1.5 * levels((50, 1), seed=2, spread=0.05)))
    hours = np.concatenate((hours, [hours[-1] + 1], 24.0 * np.arange(201, 251)))
    found = detected(values, hours)
    assert [each.end for each in found.changes] == ["adopted"]
    (transient,) = found.transients
    assert transient == detected(values[:204], hours[:204]).transients[0]


def test_series_that_share_what_is_measured_again_count_once_a_day():
    values, hours = daily_then(0.25, [24, 28, 32, 48])
    again, daily = detected(values, hours), detected(*daily_then(0.25, [24, 48]))
    one, other = again.routine_chart.increments, daily.routine_chart.increments
    assert not one[201:203].any()
    assert one[[200, 203]] == pytest.approx(other[[200, 201]], rel=1e-6)


def test_a_change_says_how_many_repeats_confirm_it():
    values, hours = daily_then(0.5, [4.0 * n for n in range(6, 40)])
    change = detected(values, hours).open_change
    assert (change.repeats, change.confirmed) == (28, 28)  # and 6 daily runs
    values[-2] = 150
    assert detected(values, hours).open_change.confirmed == 27
    assert detected(*daily_then(0.5, [24.0 * n for n in range(1, 20)])).open_change.repeats == 0


def test_the_disk_of_the_minisite_is_found_throttled_at_the_third_run():
    random = np.random.default_rng(1)
    values = 20 * np.exp(0.005 * random.standard_normal(27))
    values[24:] *= 0.7
    for hours in (24.0, 0.1):  # a session a day, or ten an hour
        found = detected(values, hours * np.arange(27)) if hours > 1 else in_a_row(values)
        assert [point.raised for point in found.chart.changes] == [26]


def in_a_row(values: np.ndarray) -> Detection:
    """Return the detection of routine runs every six minutes."""
    every = np.ones(len(values), dtype=bool)
    times = at(0.1 * np.arange(len(values)))
    sessions = np.arange(len(values))
    history = History(times, values, every, ~every, every, sessions, ~every, {})
    return detect(history, sessions, None, NOTHING_LEARNED)


def test_a_loss_is_found_sooner_when_it_is_measured_again():
    every_four = [4.0 * n for n in range(6, 40)]
    again, daily = (
        detected(*daily_then(0.5, hours)).open_change
        for hours in (every_four, [24.0 * n for n in range(1, 20)])
    )
    assert again.since == daily.since == BEGIN + timedelta(days=200)
    assert again.raised < daily.raised - timedelta(hours=12)


def test_a_low_run_is_doubted_and_a_healthy_one_after_it_is_not():
    lasting = doubt_after((200, 1), (2, 0.7))
    assert lasting.kind == SUSPECTED
    assert lasting.nats >= 2.5
    assert lasting.since == BEGIN + timedelta(days=200)  # the first of the low runs
    assert doubt_after((200, 1), (1, 0.7), (1, 1)) is None
    assert doubt_after((200, 1)) is None


def test_an_alert_is_uncertain_until_its_newest_runs_look_healthy():
    assert doubt_after((200, 1), (15, 0.5)).kind == UNCERTAIN
    over = doubt_after((200, 1), (15, 0.5), (2, 1))
    assert (over.kind, over.since) == (MAYBE_OVER, BEGIN + timedelta(days=215))
    assert doubt_after((200, 1), (15, 0.5), (20, 1)) is None
    assert doubt_after((200, 1), (15, 1.5)) is None  # nobody waits for an improvement
