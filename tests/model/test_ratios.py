"""The ratio of pairs and its interval, for values worked out by hand."""

from __future__ import annotations

import random

import pytest

from iobands.model import CONFIDENCE, paired_ratio


def test_six_pairs_have_their_extremes_as_the_interval() -> None:
    # ratios 1.0, 1.1, 1.2, 1.5, 2.0, 3.0; the middle two make sqrt(1.2 * 1.5) = sqrt(1.8)
    pairs = [(3.0, 1.0), (1.1, 1.0), (2.4, 2.0), (3.0, 2.0), (0.5, 0.5), (8.0, 4.0)]
    ratio = paired_ratio(pairs)
    assert ratio.median == pytest.approx(1.8**0.5)
    assert (ratio.lower, ratio.upper) == (pytest.approx(1.0), pytest.approx(3.0))
    assert ratio.confidence == 1 - 2 / 64


def test_nine_pairs_leave_one_out_at_each_end() -> None:
    # without one value at each end, 1 - 2 (1 + 9) / 512 = 0.961; without two, 0.820
    ratio = paired_ratio([(float(value), 1.0) for value in (9, 2, 7, 4, 5, 6, 3, 8, 1)])
    assert (ratio.lower, ratio.median, ratio.upper) == pytest.approx((2, 5, 8))
    assert ratio.confidence == pytest.approx(1 - 20 / 512)


def test_seventeen_pairs_leave_four_out() -> None:
    # for 17 pairs, the table of the sign test gives the fifth smallest and largest (0.951)
    ratio = paired_ratio([(float(value), 1.0) for value in range(1, 18)])
    assert (ratio.lower, ratio.median, ratio.upper) == pytest.approx((5, 9, 13))
    assert ratio.confidence == pytest.approx(0.951, abs=0.001)


def test_five_pairs_are_too_few() -> None:
    # 1 - 2 / 32 = 0.9375
    ratio = paired_ratio([(2.0, 1.0)] * 5)
    assert (ratio.median, ratio.lower, ratio.upper, ratio.confidence) == (2.0, None, None, None)


def test_off_against_on_is_the_reciprocal() -> None:
    pairs = [(1.0, 2.0), (3.0, 5.0), (2.0, 1.0), (7.0, 3.0), (1.0, 1.0), (4.0, 9.0)]
    one, other = paired_ratio(pairs), paired_ratio([(b, a) for a, b in pairs])
    assert one.median == pytest.approx(1 / other.median)
    assert one.lower == pytest.approx(1 / other.upper)


@pytest.mark.parametrize("pairs", [[], [(1.0, 0.0)], [(-1.0, 1.0)], [(float("nan"), 1.0)]])
def test_what_has_no_ratio(pairs: list[tuple[float, float]]) -> None:
    with pytest.raises(ValueError, match="ratio"):
        paired_ratio(pairs)


def test_a_drift_of_the_file_system_cancels_and_the_interval_holds_what_it_promises() -> None:
    # a rate that falls to a hundredth over time, with noise: the true ratio is 1.25
    draw = random.Random(3)
    held = 0
    for _ in range(1000):
        pairs = []
        for number in range(6):
            level = 10 * 0.46**number
            pairs.append(
                (1.25 * level * draw.lognormvariate(0, 0.2), level * draw.lognormvariate(0, 0.2))
            )
        ratio = paired_ratio(pairs)
        assert ratio.lower is not None and ratio.upper is not None
        held += ratio.lower <= 1.25 <= ratio.upper
    # 0.969 expected; three standard errors of 1000 draws are 0.016
    assert held / 1000 == pytest.approx(1 - 2 / 64, abs=0.017)
    assert held / 1000 > CONFIDENCE - 0.005
