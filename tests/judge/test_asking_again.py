"""Runs that were measured again: what asks for them, and what they say."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

from iobands.judge.detection import Detection, detect
from iobands.judge.prior import Months, Prior
from iobands.judge.spacing import LIFE, Spacing
from iobands.snapshot import MAYBE_OVER, SUSPECTED, UNCERTAIN, Doubt, History
from tests.judge.series import levels

BEGIN = datetime(2026, 1, 1, 8, tzinfo=timezone.utc)
NOTHING_LEARNED = Months(np.empty(0, "datetime64[ns]"), (), ())


def at(hours: np.ndarray) -> np.ndarray:
    """Return times so many hours after `BEGIN`."""
    return np.datetime64(BEGIN.replace(tzinfo=None), "ns") + np.round(hours * 3600).astype(
        int
    ) * np.timedelta64(1, "s")


def detected(values: np.ndarray, hours: np.ndarray | None = None) -> Detection:
    """Return the detection of a series with a run a day, or with runs at these hours.

    Runs that are not at the hour of the daily one were asked for.
    """
    times = at(24.0 * np.arange(len(values)) if hours is None else hours)
    every = np.ones(len(values), dtype=bool)
    asked = ~every if hours is None else hours % 24 != 0
    history = History(times, values, every, ~every, every, np.arange(len(values)), asked, {})
    return detect(history, np.arange(len(values)), None, NOTHING_LEARNED)


def doubt_after(*parts: tuple[int, float]) -> Doubt | None:
    return detected(levels(*parts, spread=0.05)).doubt


def daily_then(low: float, hours: list[float], after: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return 200 healthy days, low runs so many hours after the last one, then healthy days."""
    values = np.concatenate((levels((200, 1), spread=0.05), np.full(len(hours), 150 * low)))
    times = np.concatenate((24.0 * np.arange(200), 24.0 * 199 + np.array(hours)))
    later = 24.0 * (np.ceil(times[-1] / 24) + 1 + np.arange(after))
    healthy = levels((200 + after, 1), spread=0.05)[200:]
    return np.concatenate((values, healthy)), np.concatenate((times, later))


def weights(hours: list[float], correlation: float) -> np.ndarray:
    """Return the weights of the last runs of a daily series, with more at these hours."""
    times = np.concatenate((24.0 * np.arange(20), 24.0 * 19 + np.array(hours)))
    spacing = Spacing(times, times % 24 != 0)
    every = slice(0, len(times))
    return spacing.weights(every, np.full(len(times), correlation))[-len(hours) :]


def test_a_run_says_less_the_sooner_it_follows_another():
    # two runs with the correlation c tell what 2 / (1 + c) independent ones do
    at_once, by_day = 2 / 1.6 - 1, 2 / 1.3 - 1
    assert weights([0.001], 0.3)[0] == pytest.approx(at_once / by_day, rel=1e-3)
    assert weights([24], 0.3)[0] == weights([13], 0.3)[0] == 1
    one, four, eight = (weights([hours], 0.3)[0] for hours in (1, 4, 8))
    assert at_once / by_day < one < four < eight < 1
    # however many follow at once, together they tell less than two at the usual gap
    assert 1 < weights([n / 1000 for n in range(1, 50)], 0.3).sum() < 2


def test_what_was_measured_twenty_times_in_an_hour_is_no_alert():
    assert not detected(*daily_then(0.3, [24 + n / 20 for n in range(20)], 5)).changes
    assert detected(*daily_then(0.3, [24.0 * n for n in range(1, 20)])).open_change


def test_trouble_that_ends_within_the_day_is_no_alert():
    found = detected(*daily_then(0.3, [24, 28, 32, 36], 3))
    assert not found.changes
    assert found.doubt is None
    assert found.transients == ()  # no repeat showed that it was over
    # what may just last tells no more than how rarely it begins, and how seldom it lasts so long
    most = -math.log(Prior().rate) + 12 / LIFE
    assert 2.5 < found.chart.down[203] < most + 1


def test_low_runs_whose_repeats_are_healthy_again_are_a_transient():
    values, hours = daily_then(0.25, [24, 26, 28])
    found = detected(np.append(values, 150), np.append(hours, hours[-1] + 1))
    (transient,) = found.transients
    assert (transient.low, transient.runs) == (3, 4)
    assert transient.until - transient.since == timedelta(hours=5)
    assert transient.ratio == pytest.approx(0.25, rel=0.02)
    assert str(transient) == "up to 5 h at 0.25 ×, 3 of 4 runs"
    assert not found.changes
    # an ordinary low run and a healthy repeat are nothing to tell
    values, hours = daily_then(0.95, [24])
    assert not detected(np.append(values, 150), np.append(hours, hours[-1] + 1)).transients


def test_series_that_share_what_is_measured_again_count_once_a_day():
    values, hours = daily_then(0.25, [24, 28, 32, 48])
    again, daily = detected(values, hours), detected(*daily_then(0.25, [24, 48]))
    one, other = again.routine_chart.increments, daily.routine_chart.increments
    assert not one[201:203].any()
    assert one[[200, 203]] == pytest.approx(other[[200, 201]], rel=0.05)


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
    """Return the detection of runs every six minutes that nobody asked for."""
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
