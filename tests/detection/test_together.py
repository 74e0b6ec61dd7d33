"""A short Monte Carlo of pooled charts, with bounds that are wide enough not to flake."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.alarms.measure import LIMITS
from benchmarks.alarms.together import Days, pooled_delay, pooled_false_alarms, told
from benchmarks.alarms.together_page import limit_of_site
from benchmarks.alarms.worlds import world
from iobands.alerts.pools import FILE_SYSTEM, KINDS, NODES
from iobands.detection import runs_between_false_alarms


@pytest.mark.parametrize("days", [Days(), Days(0.3), Days(0.3, 0.6)], ids=str)
@pytest.mark.parametrize("band", ["NVMe FPP", "SSF HDD"])
def test_pools_have_as_few_false_alarms_as_is_stated(band: str, days: Days) -> None:
    found = pooled_false_alarms(world(band, "plain"), days, 6, 12, 1000, seed=21)
    index = int(np.argmin(np.abs(LIMITS - 6.0)))
    promised = 12 * 1000 / runs_between_false_alarms(6.0)  # nine
    assert found.alarms[index] < promised + 4 * promised**0.5


def test_a_drop_of_a_tenth_is_told_in_common_first() -> None:
    found = pooled_delay(
        world("NVMe FPP", "plain"), Days(0.3), 8, 0.9, limit_of_site(), 12, 120, seed=22
    )
    assert found.pooled.missed == 0
    # 21 sessions and 62 runs in the long Monte Carlo
    assert found.pooled.mean < 0.6 * found.single.mean
    assert 12 < found.pooled.mean < 35


@pytest.mark.parametrize("kind", KINDS)
def test_a_drop_is_told_under_its_pool(kind: str) -> None:
    found = told(world("NVMe FPP", "plain"), Days(0.3), kind, 0.7, 12.0, 4, seed=23)
    assert found.right >= 3
    assert found.wrong + found.more <= 1


def test_nothing_is_told_of_a_healthy_site() -> None:
    for kind in (FILE_SYSTEM, NODES):
        found = told(world("SSF HDD", "heavy"), Days(0.3), kind, 1.0, 12.0, 2, seed=24)
        assert (found.right, found.wrong, found.none) == (0, 0, 2)
