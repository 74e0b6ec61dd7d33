"""The evidence of one run: cells and scores worked out by hand, and values to reject."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.alarms.charts import follow
from iobands.judge.detect.baseline import inflation, serial_correlation
from iobands.judge.detect.scores import (
    DESIGNS,
    DROPS,
    Blend,
    band_cells,
    cell_counts,
    history_cells,
)

DROP_30 = DESIGNS.index(0.7)
NVME = (135, 150, 180, 200)


def test_cells_of_a_history_get_smaller_towards_both_ends():
    # Of 100 runs a middle cell holds 5; from the ends the cells hold 1, 2, 4, and then 5.
    counts = list(cell_counts(100))
    assert counts[:6] == [1, 2, 4, 8, 13, 18]
    assert counts[-3:] == [97, 99, 100]


def test_every_healthy_probability_is_a_share_of_ranks():
    cells = history_cells(np.log(np.arange(1.0, 101.0)))
    assert cells.healthy[0] == pytest.approx(1 / 101)
    assert cells.healthy[3] == pytest.approx(4 / 101)
    assert cells.healthy.sum() == pytest.approx(1)
    assert np.allclose(cells.changed.sum(axis=1), 1)


def test_the_score_of_a_run_below_the_lower_quartile_by_hand():
    # Of healthy runs times 0.7 those are under 135 that were under 192.86, in the uppermost
    # piece of the band: ln 180 = 5.193 at 0.674 and ln 200 = 5.298 at 2.576 standard deviations,
    # so ln 192.86 = 5.262 lies at 1.92, and 0.9726 is below. The neighbours of 0.7, from 3 % under
    # to 3 % over, change that by under 0.01.
    changed = 0.9726
    top = 0.93 * changed + 0.07 * 0.25
    bottom = 0.998 * 0.25 + 0.002 * changed
    cells = band_cells(NVME)
    assert cells.changed[DROP_30, 0] == pytest.approx(changed, abs=0.01)
    found = cells.scores(np.log([120.0]))[0, DROP_30]
    assert found == pytest.approx(math.log(top / bottom) - cells.penalty[DROP_30], abs=0.01)
    # and no more than one standard error and two thirds of a spread of at most 3 nats
    assert 0 < cells.penalty[DROP_30] < 1.7 * 3 / math.sqrt(100)


def test_a_run_in_the_upper_quarter_speaks_against_a_drop_by_at_most_the_strays():
    # No healthy run times 0.7 comes over 180: what is left is the share of stray runs.
    cells = band_cells(NVME)
    found = cells.scores(np.log([190.0]))[0, DROP_30] + cells.penalty[DROP_30]
    assert found == pytest.approx(math.log(0.07 / 0.998), abs=0.01)


def test_a_longer_history_takes_less_off_the_score():
    random = np.random.default_rng(1)
    short, long = (history_cells(random.normal(0, 0.2, n)) for n in (50, 200))
    assert (long.penalty[: len(DROPS)] < short.penalty[: len(DROPS)]).all()


def test_a_tie_gets_the_ratio_of_all_cells_that_it_touches():
    cells = history_cells(np.log(np.repeat([1.0, 2.0, 3.0], 20)))
    tied = cells.scores(np.log([2.0]))[0]
    below, above = cells.scores(np.log([1.9]))[0], cells.scores(np.log([2.1]))[0]
    assert (tied <= np.maximum(below, above) + 1e-6).all() or np.isfinite(tied).all()
    # if the history has only this value, it is no evidence for any change
    same = history_cells(np.log(np.full(40, 7.0)))
    assert (same.scores(np.log([7.0])) <= 0).all()


def test_likelihood_ratios_are_averaged_on_the_way_from_band_to_history():
    random = np.random.default_rng(3)
    own, published = history_cells(np.log(random.normal(150, 20, 40))), band_cells(NVME)
    run = np.log([118.0])
    expected = np.log(0.25 * np.exp(own.scores(run)) + 0.75 * np.exp(published.scores(run)))
    assert np.allclose(Blend(own, published, 0.25).scores(run), expected, atol=1e-5)


def test_equal_quartiles_give_finite_scores():
    scores = band_cells((5, 5, 5, 5)).scores(np.log([1.0, 4.9, 5.0, 5.1, 9.0]))
    assert np.isfinite(scores).all()
    assert scores[0, DROP_30] > 0 > scores[4, DROP_30]


def autoregressive(phi: float, runs: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    values = random.standard_normal(runs)
    for run in range(1, runs):
        values[run] = phi * values[run - 1] + math.sqrt(1 - phi**2) * values[run]
    return values


@pytest.mark.parametrize("phi", [0.0, 0.3, 0.6])
def test_serial_correlation_is_found_also_with_a_level_shift(phi):
    found, shifted = [], []
    for seed in range(60):
        values = autoregressive(phi, 200, seed)
        found.append(serial_correlation(values))
        values[100:] += 3
        shifted.append(serial_correlation(values))
    assert np.mean(found) == pytest.approx(phi, abs=0.06)
    assert np.mean(shifted) == pytest.approx(phi, abs=0.15)


def test_inflation_by_hand():
    assert inflation(0.6) == pytest.approx(2.0)
    assert inflation(0.0) == 1.0
    assert serial_correlation(np.full(50, 3.0)) == 0.0


def test_the_cells_of_rounded_runs_by_hand():
    # three values with a step of 1; between 1.5 and 2.5 lie two of the seven runs and of nine
    cells = history_cells(np.array([1.0, 2, 3, 1, 2, 3, 3]))
    assert cells.edges.tolist() == [0.5, 1.5, 2.5, 3.5]
    assert cells.healthy == pytest.approx([1 / 9, 2 / 9, 2 / 9, 3 / 9, 1 / 9])


@pytest.mark.parametrize("steps", [10, 20])
def test_rounded_values_raise_no_more_than_others(steps: int):
    random = np.random.default_rng(1)
    values = np.exp(0.2 * random.standard_normal((40, 365)))
    step = (np.quantile(values, 0.99) - np.quantile(values, 0.01)) / steps
    rounded = np.round(values / step) * step
    # by the cells between the values, one in ten series raised an alarm within the year
    assert sum(len(follow(each, threshold=13.5).changes) for each in rounded) == 0
