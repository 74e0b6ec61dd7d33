"""A short Monte Carlo of the test of collapse rates, with bounds wide enough not to flake."""

from __future__ import annotations

import numpy as np
import pytest
from iobands.alerts.collapses import EARLIER, FALLEN, RECENT, RISEN, compare
from iobands.alerts.file_systems import FALSE_RISES

from benchmarks.alarms.collapses import Quiet, false_rises, found


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_false_rises_stay_within_the_budget(correlation: float) -> None:
    measured = false_rises(Quiet("NVMe FPP", "collapse", correlation), 40, 1000)
    assert 0.03 < measured.collapsed / measured.rounds < 0.07  # the world's own 5 %
    for file_systems in (1, 3):
        value, error = measured.a_year(file_systems), measured.error(file_systems)
        assert value < FALSE_RISES + 4 * error


def test_a_single_look_keeps_its_level() -> None:
    looks, level = 3000, 0.05
    random = np.random.default_rng(5)
    told = [compare(random.random(RECENT + EARLIER) < 0.1, level).outcome for _ in range(looks)]
    error = (level / looks) ** 0.5
    assert told.count(RISEN) / looks < level + 4 * error
    assert told.count(FALLEN) / looks < level + 4 * error
    assert told.count(RISEN) / looks > 0.01  # exact, and conservative only as counts are whole


def test_a_large_rise_is_found_and_a_steady_rate_is_not() -> None:
    assert found(0.05, 5.0, 60).within(150) > 0.75
    assert found(0.05, 1.0, 60).within(150) < 0.15
