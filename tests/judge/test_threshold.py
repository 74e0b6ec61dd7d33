"""The cost and the benefit of a threshold: budget, power, and a short Monte Carlo simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.alarms.charts import follow
from iobands.judge.detect.prior import DEGRADED, Budget, Prior
from iobands.judge.detection import _run_length, power
from iobands.snapshot import DOWN
from tests.judge.series import healthy


def test_power_parts_the_series_that_can_see_from_those_that_cannot():
    narrow, wide = (follow(healthy(300, spread=spread), threshold=12) for spread in (0.1, 0.8))
    assert 2 <= power(narrow, 0.7) < 8
    assert power(narrow, 0.9) > power(narrow, 0.7)
    assert power(wide, 0.7) > 20
    assert power(narrow, 1.4) < 12
    assert power(follow([]), 0.7) == math.inf


def test_a_design_that_hardly_ever_sees_a_drop_hides_no_other():
    # three runs of 120 nats reach 300; if one of 128 runs is up and the others down, hardly any do
    sees = np.full(128, 120.0)
    never = np.full(128, -300.0)
    never[0] = 300 / 9
    assert _run_length(np.array([[never]] * 2), 300.0) == math.inf
    assert _run_length(np.array([[never, sees]] * 2), 300.0) == pytest.approx(3)


@pytest.mark.parametrize("spread", [0.003, 0.15])
@pytest.mark.parametrize("prior", [Prior(), Prior(4000, 40, 12, 0.2)])
def test_power_agrees_with_what_is_measured(spread: float, prior: Prior):
    history = healthy(200, spread=spread)
    expected = power(follow([], history=history, threshold=9.0, prior=prior), 0.7)
    random = np.random.default_rng(7)
    delays = []
    for _ in range(100):
        # runs like the history, but all of them at 0.7
        values = 0.7 * random.choice(history, 60)
        chart = follow(values, history=history, threshold=9.0, prior=prior)
        delays.append(chart.changes[0].raised + 1)
    assert expected == pytest.approx(np.mean(delays), rel=0.3)


def noise(kind: str, runs: int, random: np.random.Generator) -> np.ndarray:
    """Return logarithms of healthy runs with the interquartile range of a spread of 0.15."""
    if kind == "heavy tails":
        return 0.15 * 0.6745 / 0.7649 * random.standard_t(3, runs)
    if kind == "two modes":
        return 0.1 * random.choice([-1.0, 1.0], runs) + 0.03 * random.standard_normal(runs)
    found = random.standard_normal(runs)
    if kind == "outliers":
        found[random.random(runs) < 0.05] = -10
    if kind == "correlated":
        for run in range(1, runs):
            found[run] = 0.6 * found[run - 1] + 0.8 * found[run]
    return 0.15 * found


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "two modes", "outliers", "correlated"])
def test_false_alarms_are_as_rare_as_the_formula_has_it(kind: str):
    random = np.random.default_rng(11)
    raised = 0
    for _ in range(60):
        values = np.exp(noise(kind, 660, random))
        changes = follow(values[60:], history=values[:60], threshold=DEGRADED).changes
        raised += sum(change.direction == DOWN for change in changes)
    # of 36,000 runs 4.4 are expected at most, and four standard errors more are 12.8
    assert raised <= 36_000 / Budget(runs_a_year=1).years_to_false_alarm(DEGRADED) + 8.4
