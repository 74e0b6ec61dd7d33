"""A band from the runs of a series: its figures, and their confidence intervals."""

from __future__ import annotations

import math
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iobands.judge.calibrate import NoProposal, propose
from iobands.judge.detect.baseline import ranks


def lognormal(runs: int, seed: int = 0) -> np.ndarray:
    return np.exp(np.random.default_rng(seed).normal(0, 0.2, runs))


def below(count: int, runs: int, share: float) -> float:
    """P(fewer than `count` of `runs`), by the binomial formula."""
    return sum(comb(runs, k) * share**k * (1 - share) ** (runs - k) for k in range(count))


@pytest.mark.parametrize(
    ("runs", "low", "high"),
    [(20, 2, 10), (60, 9, 23), (100, 17, 34), (200, 38, 63), (400, 84, 118), (13, 1, 7)],
)
def test_ranks_worked_out_by_hand(runs: int, low: int, high: int) -> None:
    assert ranks(runs, 0.25) == (low, high)
    # the upper quartile is the lower one seen from above
    assert ranks(runs, 0.75) == (runs + 1 - high, runs + 1 - low)


def test_too_few_runs_have_no_interval() -> None:
    assert ranks(12, 0.25) is None  # 0.75^12 = 0.032
    assert ranks(20, 0.25, widened=2) is None  # 5 - 2 × 3 is no rank


@settings(max_examples=60)
@given(st.integers(13, 300), st.sampled_from([0.25, 0.5, 0.75]), st.sampled_from([0.95, 0.975]))
def test_ranks_cover_and_cannot_be_narrower(runs: int, share: float, confidence: float) -> None:
    found = ranks(runs, share, confidence=confidence)
    if found is None:
        assert min(below(1, runs, share), below(1, runs, 1 - share)) > 0 and runs < 20
        return
    low, high = found
    cover = below(high, runs, share) - below(low, runs, share)
    assert cover >= confidence - 1e-9
    assert below(high, runs, share) - below(low + 1, runs, share) < confidence + 1e-9
    assert below(high - 1, runs, share) - below(low, runs, share) < confidence + 1e-9


def test_figures_by_hand() -> None:
    # 21 values: quartiles of type 7 are the 6th, 11th and 16th
    found = propose(100.0 + np.random.default_rng(1).permutation(21)).band
    assert (found.lower_quartile, found.median, found.upper_quartile) == (105, 110, 115)
    assert (found.maximum, found.runs, found.state) == (120, 21, "provisional")
    # for 21 values, 14 / 17 interquartile ranges lower than for many
    assert found.floor == pytest.approx(105 * (105 / 115) ** (1.5 + 14 / 17), rel=1e-3)


@pytest.mark.parametrize(
    ("runs", "state"),
    [(20, "provisional"), (59, "provisional"), (60, "active"), (199, "active"), (200, "frozen")],
)
def test_states(runs: int, state: str) -> None:
    assert propose(lognormal(runs)).band.state == state


def test_a_frozen_band_is_not_changed_by_more_runs() -> None:
    values = lognormal(400)
    assert propose(values) == propose(values[:200])


@pytest.mark.parametrize("runs", [0, 1, 19])
def test_too_few_runs(runs: int) -> None:
    with pytest.raises(NoProposal):
        propose(lognormal(runs))


def test_equal_values_have_no_band_and_ties_have_one() -> None:
    for values in ([2.0] * 60, [2.0] * 45 + [1.5] * 7 + [3.0] * 8):
        with pytest.raises(NoProposal):
            propose(np.array(values))
    with pytest.raises(NoProposal, match="values are equal, 1050000, so"):
        propose(np.full(30, 1_050_000.0))
    tied = propose(np.tile([1.0, 2.0, 3.0, 4.0], 15)).band
    assert (tied.lower_quartile, tied.median, tied.upper_quartile) == (1.75, 2.5, 3.25)


def test_outliers_hardly_move_the_band() -> None:
    # of healthy runs the lower quartile is exp(-0.6745 × 0.2) = 0.874
    values = lognormal(200, seed=6)
    values[np.random.default_rng(6).choice(200, 20, replace=False)] *= 0.3
    found = propose(values)
    band = found.band
    assert band.lower_quartile == pytest.approx(0.874, rel=0.05)
    assert band.runs == pytest.approx(180, abs=3)
    assert len(found.notes) == 1


def test_a_series_with_many_low_runs_is_taken_as_it_is() -> None:
    values = lognormal(100, seed=7)
    values[np.random.default_rng(7).choice(100, 20, replace=False)] *= 0.01
    assert propose(values).band.runs == 100


def test_a_figure_of_the_page_cache_is_no_maximum() -> None:
    values = lognormal(99)
    assert propose(np.append(values, 1000.0)).band.maximum == pytest.approx(max(values), rel=1e-3)


def test_intervals_hold_the_true_quartile_as_often_as_they_say() -> None:
    true = math.exp(-0.6744898 * 0.2)
    hits = 0
    for seed in range(150):
        low, high = propose(lognormal(60, seed)).band.intervals["lower_quartile"]
        hits += low <= true <= high
    assert hits >= 136  # 142.5 for 95 %, less 2.4 standard deviations


def test_correlated_runs_have_wider_intervals() -> None:
    values = np.random.default_rng(3).standard_normal(200)
    for run in range(1, 200):
        values[run] = 0.6 * values[run - 1] + 0.8 * values[run]
    shuffled = np.random.default_rng(4).permutation(values)
    correlated, independent = propose(np.exp(0.2 * values)), propose(np.exp(0.2 * shuffled))
    assert correlated.correlation == pytest.approx(0.6, abs=0.15)
    widths = [
        pair[1] - pair[0]
        for pair in (correlated.band.intervals["median"], independent.band.intervals["median"])
    ]
    assert widths[0] > 1.3 * widths[1]


@settings(max_examples=80)
@given(st.lists(st.floats(1e-3, 1e6), min_size=20, max_size=90))
def test_any_history_gives_an_ordered_band_or_a_reason(values: list[float]) -> None:
    try:
        band = propose(np.array(values)).band
    except NoProposal as why:
        assert str(why)
        return
    figures = [band.floor, band.lower_quartile, band.median, band.upper_quartile, band.maximum]
    assert figures == sorted(figures)
    assert band.floor > 0
    assert 1 <= band.runs <= len(values)
    for name, (low, high) in band.intervals.items():
        assert low <= getattr(band, name) <= high
