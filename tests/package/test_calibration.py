"""Which runs a band is learnt from, and its intervals."""

from __future__ import annotations

import math
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iobands.calibration import healthy, propose, ranks
from iobands.levels import NoProposal, segments


def lognormal(runs: int, seed: int = 0, spread: float = 0.2) -> np.ndarray:
    return np.exp(np.random.default_rng(seed).normal(0, spread, runs))


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
    with pytest.raises(ValueError, match="no ranks"):
        ranks(0, 0.25)


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
    found = propose(100 + np.random.default_rng(1).permutation(21))
    assert (found.lower_quartile, found.median, found.upper_quartile) == (105, 110, 115)
    assert (found.maximum, found.runs, found.state) == (120, 21, "provisional")
    assert found.floor == pytest.approx(105 * (105 / 115) ** 1.5, rel=1e-3)
    assert found.below_maximum == pytest.approx(math.exp(math.log(0.05) / 21))


@pytest.mark.parametrize(
    ("runs", "state"),
    [(20, "provisional"), (59, "provisional"), (60, "active"), (199, "active"), (200, "frozen")],
)
def test_states(runs: int, state: str) -> None:
    assert propose(lognormal(runs)).state == state


def test_frozen_is_not_changed_by_more_runs() -> None:
    values = lognormal(400)
    first, more = propose(values[:200]), propose(values)
    assert (more.lower_quartile, more.median, more.floor) == (
        first.lower_quartile,
        first.median,
        first.floor,
    )
    assert (more.state, list(more.used)) == ("frozen", list(range(200)))


def test_too_few_runs() -> None:
    for values in ([], [1.0], lognormal(19)):
        with pytest.raises(NoProposal, match=f"^{len(values)} healthy runs of 20"):
            propose(values)


def test_equal_values_and_ties() -> None:
    with pytest.raises(NoProposal, match="are the same"):
        propose([2.0] * 60)
    with pytest.raises(NoProposal, match="are the same"):
        propose([2.0] * 45 + [1.5] * 7 + [3.0] * 8)
    tied = propose(np.tile([1.0, 2.0, 3.0, 4.0], 15))
    assert (tied.lower_quartile, tied.median, tied.upper_quartile) == (1.75, 2.5, 3.25)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_no_number(wrong: float) -> None:
    with pytest.raises(ValueError, match="not a positive finite number"):
        propose([*lognormal(30), wrong])


def test_quartiles_out_of_order_are_refused() -> None:
    class Band:
        lower_quartile, median, upper_quartile, maximum = 3.0, 2.0, 1.0, None

    with pytest.raises(ValueError):
        healthy(lognormal(30), Band())


def test_level_shift_is_found_and_the_newest_level_used() -> None:
    values = lognormal(160, seed=2)
    values[:80] *= 1.5
    found = segments(values)
    assert len(found) == 2
    assert abs(found[0].end - 80) <= 3
    band = propose(values)
    assert band.used[0] == found[0].end
    assert "the newest; not the runs around 1.5" in band.why


def test_newest_level_that_is_too_short_waits() -> None:
    values = lognormal(92, seed=2)
    values[80:] *= 2
    band = propose(values)
    assert band.used[-1] < 84
    assert "too few for a level of their own" in band.why


def test_a_level_that_came_back_counts_from_both_sides() -> None:
    values = lognormal(150, seed=4)
    values[60:90] *= 0.5
    band = propose(values)
    assert len(band.used) == pytest.approx(120, abs=4)
    assert band.median == pytest.approx(1, rel=0.06)
    assert "earlier stretches of the same level" in band.why


def test_no_level_is_long_enough() -> None:
    values = lognormal(57, seed=2, spread=0.02)
    values[19:38] *= 2
    values[38:] *= 4
    with pytest.raises(NoProposal, match="3 levels in 57 runs, none of them with 20"):
        propose(values)


def test_one_level_is_seldom_cut() -> None:
    cut = sum(len(segments(lognormal(200, seed))) > 1 for seed in range(200))
    assert cut <= 8  # some 1 % are expected


def test_halved_runs_hardly_move_the_band() -> None:
    # of runs that are healthy the quartile is exp(-0.6745 × 0.2) = 0.874
    values = lognormal(200, seed=6)
    hit = np.random.default_rng(6).choice(200, 20, replace=False)
    values[hit] *= 0.3
    band = propose(values)
    assert band.lower_quartile == pytest.approx(0.874, rel=0.05)
    assert band.runs == pytest.approx(180, abs=3)
    assert "collapsed runs left out" in band.why


def test_a_series_that_often_collapses_is_taken_as_it_is() -> None:
    values = lognormal(100, seed=7)
    values[np.random.default_rng(7).choice(100, 20, replace=False)] *= 0.01
    band = propose(values)
    assert band.runs == 100
    assert "too many to be exceptions" in band.why


def test_a_figure_of_the_memory_is_no_maximum() -> None:
    values = [*lognormal(99), 1000.0]
    assert propose(values).maximum == pytest.approx(max(values[:-1]), rel=1e-3)


def test_intervals_hold_the_true_quartile_as_often_as_they_say() -> None:
    true = math.exp(-0.6744898 * 0.2)
    hits = 0
    for seed in range(300):
        low, high = propose(lognormal(60, seed)).intervals["lower_quartile"]
        hits += low <= true <= high
    assert hits >= 275  # 285 for 95 %, less 2.6 standard deviations


POSITIVE = st.floats(1e-3, 1e6)


@settings(max_examples=80)
@given(st.lists(POSITIVE, min_size=20, max_size=90), st.floats(0.125, 8))
def test_any_history_gives_an_ordered_band_or_a_reason(values: list[float], unit: float) -> None:
    try:
        band = propose(values)
    except NoProposal as why:
        assert str(why)
        return
    figures = [band.floor, band.lower_quartile, band.median, band.upper_quartile, band.maximum]
    assert figures == sorted(figures)
    assert band.floor > 0
    assert 1 <= band.runs <= len(band.used) <= len(values)
    for name, (low, high) in band.intervals.items():
        assert low <= getattr(band, name) <= high


def test_runs_under_alarms_are_not_healthy() -> None:
    values = lognormal(200, seed=8)
    values[100:130] *= 0.5
    free, chart = healthy(values)
    assert chart.open_alarm is None
    assert len(set(free) & set(range(102, 128))) == 0
    values[180:] *= 0.5
    assert healthy(values)[1].open_alarm is not None
