"""Runs that were measured again: what asks for them, and what they say."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import numpy as np

from iobands.judge.detection import Detection, detect
from iobands.judge.prior import Months
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
    """Return the detection of a series with a run a day, or with runs at these hours."""
    times = at(24.0 * np.arange(len(values)) if hours is None else hours)
    every = np.ones(len(values), dtype=bool)
    history = History(times, values, every, ~every, every, np.arange(len(values)), ~every, {})
    return detect(history, np.arange(len(values)), None, NOTHING_LEARNED)


def doubt_after(*parts: tuple[int, float]) -> Doubt | None:
    return detected(levels(*parts, spread=0.05)).doubt


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
