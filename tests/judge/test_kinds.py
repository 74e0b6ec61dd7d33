"""The kind of a change, for made-up series that lose a mode, vary more, or slide."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.alarms.charts import follow
from iobands.judge.detect.chart import slide_begins
from iobands.judge.detect.scores import DESIGNS, MODE, SPREAD, history_cells, lower_mode
from iobands.snapshot import DOWN, Change, State

# Two runs in five are in the lower mode, at 0.6, in random order.
_LOW = np.random.default_rng(3).permutation(np.arange(200) % 5 < 2)


def _noise(runs: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(runs)


def _modes(lost: int) -> np.ndarray:
    """Return 200 runs in two modes, 40 % of them in the lower one, then `lost` runs in this one."""
    level = np.concatenate((np.where(_LOW, 0.6, 1.0), np.full(lost, 0.6)))
    return level * np.exp(0.05 * _noise(200 + lost))


def _only(values: np.ndarray) -> Change[int]:
    (found,) = follow(values, threshold=12.0).changes
    return found


def _kind(found: Change[int]) -> State | None:
    return found.turns[-1].kind if found.turns else None


def test_two_modes_are_split_between_them_and_one_is_not() -> None:
    ordered = np.log(np.sort(_modes(0)))
    assert lower_mode(ordered) == 80
    assert lower_mode(np.sort(0.2 * _noise(200))) == 0
    # few runs far below are outliers
    outliers = np.concatenate((np.log(np.full(10, 0.3)), 0.05 * _noise(190)))
    assert lower_mode(np.sort(outliers)) == 0
    assert lower_mode(np.zeros(200)) == 0


def test_a_lost_mode_leaves_all_runs_to_the_other() -> None:
    cells = history_cells(np.log(_modes(0)))
    lost = cells.changed[MODE]
    # 80 of 200 runs: one of the lower mode is 2.5 times as probable, one of the upper is not
    lower = np.searchsorted(cells.edges, np.log(0.8))
    assert lost[:lower] == pytest.approx(cells.healthy[:lower] * 201 / 80)
    assert lost[lower + 1 :].sum() == pytest.approx(0.0)
    assert lost.sum() == pytest.approx(1.0)


def test_where_no_mode_can_be_lost_the_design_says_nothing() -> None:
    cells = history_cells(0.2 * _noise(200))
    assert np.allclose(cells.changed[MODE], cells.healthy)
    assert np.allclose(cells.scores(0.2 * _noise(50, 2))[:, MODE], 0.0)


def test_twice_the_spread_by_hand() -> None:
    # if the runs 1 to 99 spread twice as far around 50, those now below 25.5 were below 37.75
    cells = history_cells(np.arange(1.0, 100.0))
    until = np.cumsum(cells.changed[SPREAD])
    place = int(np.searchsorted(cells.edges, 25.5))
    edge = cells.edges[place]
    assert until[place] == pytest.approx((50 + (edge - 50) / 2) / 100, abs=0.005)
    assert len(cells.changed) == len(DESIGNS) + 2


def test_a_lost_upper_mode_is_found_within_thirty_one_runs() -> None:
    found = _only(_modes(40))
    assert (found.direction, _kind(found)) == (DOWN, State.MODE_LOST)
    assert found.raised - 200 + 1 <= 31
    assert found.was == pytest.approx((0.6, 1.0), rel=0.03)


def test_twice_the_spread_is_no_drop_and_no_rise() -> None:
    values = np.exp(0.1 * _noise(300))
    values[200:] **= 2
    found = _only(values)
    assert _kind(found) is State.UNSTABLE
    assert found.ratio.value == pytest.approx(1.0, abs=0.06)
    assert found.was == pytest.approx(np.percentile(values[:200], [25, 75]), rel=0.02)
    assert found.now == pytest.approx(np.exp([-0.135, 0.135]), rel=0.07)


def test_a_spread_that_stays_small_does_not_matter() -> None:
    values = np.exp(0.01 * _noise(300))
    values[200:] **= 2
    assert follow(values, threshold=12.0).changes == ()


def test_an_unstable_series_recovers() -> None:
    values = np.exp(0.1 * _noise(400))
    values[200:300] **= 2
    found = _only(values)
    assert found.ended is not None
    assert 280 <= found.ended <= 320


def test_an_unstable_series_that_falls_turns_degraded() -> None:
    values = np.exp(0.1 * _noise(330))
    values[200:] **= 2
    values[280:] *= 0.6
    found = _only(values)
    assert [each.kind for each in found.turns] == [State.UNSTABLE, State.DEGRADED]
    assert 280 < found.turns[-1].when <= 310


def test_a_slide_is_dated_from_its_beginning() -> None:
    values = np.exp(0.03 * _noise(320))
    values[200:] *= 0.97 ** (np.arange(120) / 30)
    found = _only(values)
    assert _kind(found) is State.SLIDING
    begins = next(each.since for each in found.turns if each.since is not None)
    assert abs(begins - 200) <= 20
    assert found.newest is not None
    assert found.newest.value == pytest.approx(0.97**3.85, abs=0.03)


@pytest.mark.parametrize("factor", [0.9, 0.8, 0.5])
@pytest.mark.parametrize("spread", [0.02, 0.1])
def test_a_step_is_neither_a_slide_nor_a_spread(factor: float, spread: float) -> None:
    values = np.exp(spread * _noise(300))
    values[200:] *= factor
    found = _only(values)
    assert found.turns == ()


def test_two_steps_are_no_slide() -> None:
    values = 0.03 * _noise(300)
    values[150:] -= 0.2
    values[220:] -= 0.2
    assert slide_begins(values, 1.0) is None
    assert slide_begins(0.03 * _noise(300), 1.0) is None


def test_what_was_said_stands_whatever_runs_follow() -> None:
    values = np.exp(0.03 * _noise(320))
    values[200:] *= 0.97 ** (np.arange(120) / 30)
    turns = _only(values).turns
    for runs in range(turns[0].when + 1, 320):
        known = tuple(each for each in turns if each.when < runs)
        assert follow(values[:runs], threshold=12.0).changes[-1].turns == known
