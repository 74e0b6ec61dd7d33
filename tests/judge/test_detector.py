"""The detector: which changes it finds, when, their sizes, and what ends them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.alarms.charts import follow
from iobands.judge.detect.baseline import LARGEST_BASELINE
from iobands.judge.detect.chart import USED, Chart
from iobands.judge.detect.detector import ADOPTION, LAG
from iobands.judge.detect.prior import Month, Prior
from iobands.judge.detect.spacing import Spacing
from iobands.snapshot import ADOPTED, DOWN, RECOVERED, UP
from tests.judge.series import healthy, levels

NVME = (135, 150, 180, 200)

#: A threshold so high that no example raises an alarm by chance.
HIGH = 25.0


def test_a_drop_is_found_dated_and_sized_and_its_recovery_too():
    assert follow(healthy(500)).changes == ()
    (change,) = follow(levels((300, 1), (40, 0.7), (160, 1))).changes
    assert change.direction == DOWN
    assert 300 <= change.raised <= 310
    assert change.since_low <= 300 <= change.since_high
    assert change.ratio.low < 0.7 < change.ratio.high
    assert change.score >= change.threshold
    assert change.end == RECOVERED
    assert 338 <= change.ended <= 342 <= change.closed <= 350


def test_a_drop_that_lasts_is_open():
    change = follow(levels((300, 1), (40, 0.7))).open_change
    assert change is not None
    assert (change.ended, change.closed, change.end) == (None, None, None)


def test_a_change_that_turns_round_ends_the_first_and_raises_the_other():
    up, down = follow(levels((200, 1), (20, 1.4), (100, 0.4))).changes
    assert (up.direction, down.direction) == (UP, DOWN)
    assert abs(up.ended - 220) <= 3
    assert down.is_open
    assert down.ratio.high < 0.5


def test_a_smaller_drop_than_it_first_looked_like_stays_open():
    chart = follow(levels((200, 1), (500, 0.75), seed=4))
    assert len(chart.changes) == 1
    assert chart.open_change is not None


def test_an_improvement_that_lasts_is_adopted_and_what_falls_from_it_is_a_drop():
    values = levels((200, 1), (80, 1.5), (20, 1))
    rise, drop = follow(values).changes
    assert (rise.direction, rise.end) == (UP, ADOPTED)
    assert ADOPTION <= rise.ended - rise.since <= ADOPTION + 3
    assert rise.ratio.low < 1.5 < rise.ratio.high
    # compared with the baseline before the rise, these runs would be healthy
    assert (drop.direction, drop.is_open) == (DOWN, True)
    assert abs(drop.since - 280) <= 1
    assert drop.ratio.low < 1 / 1.5 < drop.ratio.high
    assert drop.baseline == pytest.approx(1.5 * 150, rel=0.05)


def test_an_improvement_is_adopted_with_its_thirtieth_run():
    (young,) = follow(levels((200, 1), (29, 1.5), spread=0.003)).changes
    assert young.is_open
    (rise,) = follow(levels((200, 1), (30, 1.5), spread=0.003)).changes
    assert (rise.since, rise.closed, rise.ended, rise.end) == (200, 229, 230, ADOPTED)


def test_runs_that_the_level_after_an_improvement_is_learned_from_say_nothing():
    # of its thirty runs, half were asked for: five more are needed for a baseline
    asked = np.zeros(240, bool)
    asked[201:230:2] = True
    chart = follow(levels((200, 1), (40, 1.5)), spacing=Spacing(24.0 * np.arange(240), asked))
    assert (chart.changes[0].ended, [first for first, _ in chart.baselines][-2:]) == (
        230,
        [230, 235],
    )
    for says in (chart.increments, chart.alone):
        assert (np.flatnonzero(says[200:].any(axis=1)) + 200).tolist() == [
            *range(200, 230),
            *range(235, 240),
        ]


def test_an_improvement_that_is_young_is_open():
    change = follow(levels((200, 1), (20, 1.5))).open_change
    assert change is not None
    assert change.direction == UP


def test_a_drop_is_never_adopted():
    assert follow(levels((200, 1), (400, 0.7))).open_change is not None


@pytest.mark.parametrize(("back", "ends"), [(4.99, True), (4.8, True), (4.5, False)])
def test_a_return_to_within_5_percent_ends_a_drop(back: float, ends: bool):
    change = follow([5.0] * 100 + [3.5] * 20 + [back] * 60).changes[0]
    assert (change.ended, change.end) == ((120, RECOVERED) if ends else (None, None))


def test_after_a_return_the_next_drop_is_found():
    change = follow([5.0] * 100 + [3.5] * 20 + [4.99] * 40 + [3.5] * 5).open_change
    assert change is not None
    assert abs(change.since - 160) <= 1
    assert change.ratio.value == pytest.approx(0.7)


@pytest.mark.parametrize("small", [0.99, 0.97])
def test_a_drop_after_a_small_one_is_seen_as_soon(small: float):
    known, found = (
        follow(levels((200, 1), (100, level), (30, 0.7), spread=0.003)).open_change
        for level in (1.0, small)
    )
    assert known is not None and found is not None
    assert found.raised <= known.raised + 2
    assert found.ratio.value == pytest.approx(0.7, rel=0.02)


def test_a_published_band_judges_from_the_first_run_on():
    chart = follow(healthy(12, seed=2, median=100, spread=0.03), NVME)
    assert chart.open_change is not None
    assert chart.open_change.since == 0
    assert not follow(healthy(12, seed=2)).baseline.can_judge


def test_a_band_yields_to_the_runs_of_the_series():
    # 60 runs at 100 are no drop, because by now they alone are the baseline, without the band
    own = healthy(80, seed=2, median=100, spread=0.03)
    assert follow(own[60:], NVME).changes != ()
    assert follow(own[60:], NVME, history=own[:60]).changes == ()
    # between 20 and 60 both count
    scores = follow([], NVME, history=own[:40]).baseline.scores.scores(np.log([100.0]))
    published = follow([], NVME).baseline.scores.scores(np.log([100.0]))
    alone = follow([], history=own[:40]).baseline.scores.scores(np.log([100.0]))
    expected = np.log(0.5 * np.exp(alone) + 0.5 * np.exp(published))
    assert np.allclose(scores, expected)


def test_the_baseline_grows_with_a_lag_and_is_frozen():
    sizes = {runs: len(follow(healthy(runs)).baseline.runs) for runs in (20, 59, 60, 1500)}
    # 30 runs are a baseline once LAG runs after them were quiet
    assert LAG == 30
    assert sizes == {20: 20, 59: 20, 60: 30, 1500: LARGEST_BASELINE}


def test_no_run_of_a_drop_joins_the_baseline():
    chart = follow(levels((100, 1), (60, 0.5), (240, 1)))
    assert np.exp(chart.baseline.runs.min()) > 150 * 0.55
    assert len(chart.baseline.runs) == LARGEST_BASELINE


def test_no_onset_lies_among_the_runs_of_the_first_baseline():
    values = healthy(45)
    values[20:] *= 1.5
    (change,) = follow(values).changes
    assert change.since_low == change.since == 20


def test_two_levels_in_the_history_make_no_drop_of_what_is_not_lower():
    # half of the history at 7, half at 17.5; then all at 16.5, over the median
    random = np.random.default_rng(5)
    history = np.where(np.arange(40) % 2, 7.0, 17.5) * np.exp(0.01 * random.standard_normal(40))
    values = 16.5 * np.exp(0.01 * random.standard_normal(200))
    assert all(change.direction == UP for change in follow(values, history=history).changes)


def test_a_suspected_drop_has_a_first_run_and_a_size():
    values = levels((200, 1), (3, 0.6), spread=0.05)
    chart = follow(values, threshold=HIGH)
    assert chart.changes == ()
    assert chart.suspicion is not None
    onset, ratio = chart.suspicion
    assert onset == 200
    assert ratio.value == pytest.approx(0.6, rel=0.1)
    assert follow(values[:200], threshold=HIGH).suspicion is None
    # a change that is open is more than a suspicion
    assert follow(levels((200, 1), (20, 0.6))).suspicion is None


def test_no_suspicion_of_what_is_too_small():
    small, large = ([5.0] * 200 + [level] * 3 for level in (4.99, 4.5))
    assert follow(small, threshold=HIGH).suspicion is None
    assert follow(large, threshold=HIGH).suspicion is not None


def test_nothing_one_run_and_equal_runs():
    assert follow([]).changes == follow([3.0]).changes == ()
    equal = follow(np.full(500, 3.0))
    assert not equal.down.any()
    assert not equal.up.any()


def test_a_change_out_of_equal_runs_is_seen():
    change = follow([3.0] * 150 + [2.0] * 50).open_change
    assert change is not None
    assert change.since == 150
    assert change.ratio.value == pytest.approx(2 / 3)


@pytest.mark.parametrize("spread", [0.002, 0.01, 0.03])
def test_a_percent_a_month_is_found(spread: float):
    noise = np.exp(spread * np.random.default_rng(8).standard_normal(540))
    changes = follow(5 * noise * 0.99 ** (np.maximum(np.arange(540) - 60, 0) / 30)).changes
    assert changes and changes[-1].is_open
    assert {change.direction for change in changes} == {DOWN}


def test_steps_that_are_too_small_each_add_up():
    # 2 % each: 0.98, 0.9604, 0.941
    (change,) = follow(5 * 0.98 ** np.repeat([0, 1, 2, 3], [200, 40, 40, 40])).changes
    assert change.is_open
    assert abs(change.since - 280) <= 1
    assert change.ratio.value == pytest.approx(0.98**3)


def test_without_a_least_change_each_counts():
    assert follow([5.0] * 60 + [4.99] * 20, least=0).open_change is not None
    assert follow([5.0] * 60 + [4.99] * 20).changes == ()


def found(chart: Chart) -> list[tuple[object, ...]]:
    return [(each.direction, each.raised, each.ended, each.end) for each in chart.changes]


PARTS = st.lists(
    st.tuples(st.integers(1, 90), st.sampled_from([0.3, 0.6, 0.8, 1.0, 1.0, 1.0, 1.5])),
    min_size=1,
    max_size=4,
)


@settings(max_examples=40)
@given(factor=st.floats(1e-3, 1e3), seed=st.integers(0, 10_000), parts=PARTS)
def test_the_unit_does_not_matter(factor: float, seed: int, parts: list[tuple[int, float]]):
    values = levels((60, 1), *parts, seed=seed)
    one, other = follow(values), follow(values * factor)
    assert found(one) == found(other)
    assert np.allclose(one.down, other.down, atol=1e-4)
    assert np.allclose(one.up, other.up, atol=1e-4)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    few=st.lists(st.floats(0.9, 1.1), min_size=1, max_size=5),
    banded=st.booleans(),
)
def test_ties_raise_nothing(seed: int, few: list[float], banded: bool):
    values = 150 * np.random.default_rng(seed).choice(few, size=600)
    band = tuple(np.quantile(values[:100], (0.25, 0.5, 0.75)))
    assert follow(values, band if banded else None, threshold=HIGH).changes == ()


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    parts=PARTS,
    cuts=st.lists(st.integers(1, 420), min_size=1, max_size=3),
    banded=st.booleans(),
)
def test_later_runs_change_nothing_of_what_is_over(
    seed: int, parts: list[tuple[int, float]], cuts: list[int], banded: bool
):
    values = levels((60, 1), *parts, seed=seed)
    band = NVME if banded else None
    whole = follow(values, band)
    for cut in cuts:
        before = follow(values[:cut], band)
        over = [each for each in before.changes if not each.is_open]
        assert over == [each for each in whole.changes if each.closed and each.closed < cut]
        if before.open_change:
            same = whole.changes[len(over)]
            assert same.raised == before.open_change.raised
            assert same.direction == before.open_change.direction


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    spread=st.floats(0, 0.005),
    steps=st.lists(st.floats(0.975, 1.0), min_size=1, max_size=4),
)
def test_what_is_smaller_than_the_least_change_is_no_change(
    seed: int, spread: float, steps: list[float]
):
    parts = [(100, 1.0), *((50, step) for step in steps)]
    values = levels(*parts, seed=seed, spread=spread)
    assert follow(values).changes == ()


def test_what_is_smaller_than_the_least_change_is_never_suspected():
    for runs in range(12):
        assert follow([5.0] * 100 + [4.99] * runs).suspicion is None


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), parts=PARTS, least=st.floats(0, 0.3))
def test_changes_are_in_order_and_large_enough(
    seed: int, parts: list[tuple[int, float]], least: float
):
    changes = follow(levels((60, 1), *parts, seed=seed), least=least).changes
    for one, other in pairwise(changes):
        assert one.ended is not None
        assert one.ended <= other.since_low
    for each in changes:
        assert each.since_low <= each.since <= each.since_high <= each.raised
        assert each.ratio.low <= each.ratio.value <= each.ratio.high
        assert each.score >= each.threshold


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_going_on_from_what_is_settled_is_as_judging_all_runs(drawn: st.DataObject) -> None:
    seed = drawn.draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    size = int(random.integers(5, random.choice([600, 600, 600, 3 * USED])))
    values = np.exp(random.normal(0, random.choice([0.005, 0.03, 0.1, 0.3]), size))
    for _ in range(random.integers(0, 5)):
        first, last = np.sort(random.integers(0, size + 1, 2))
        values[first:last] *= random.choice([0.3, 0.5, 0.7, 0.8, 0.9, 1.2, 1.5])
    values[random.random(size) < 0.02] *= 0.4
    asked = random.random(size) < random.choice([0, 0.2])
    hours = np.cumsum(np.where(asked, 4.0, 24.0))
    months = [
        Month(
            first,
            random.uniform(9, 13),
            Prior(1000 + first, int(random.integers(30)), 3, 0.3, new=random.uniform(0.05, 0.9)),
        )
        for first in range(0, size, 30)
    ]
    known = drawn.draw(st.integers(0, size))
    part = follow(values[:known], months=months, spacing=Spacing(hours[:known], asked[:known]))
    terms = {"months": months, "spacing": Spacing(hours, asked)}
    anew, again = follow(values, **terms), follow(values, settled=part.settled, **terms)
    assert again.changes == anew.changes
    for name in ("down", "up", "sums", "starts"):
        np.testing.assert_array_equal(getattr(again, name), getattr(anew, name))
    for name in ("increments", "alone"):
        np.testing.assert_array_equal(getattr(again, name)[-USED:], getattr(anew, name)[-USED:])
