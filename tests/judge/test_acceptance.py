"""The verdict on a promise, for values worked out by hand."""

import math

import numpy as np
import pytest

from iobands.bands.contract import Outcome, Promise
from iobands.judge.acceptance import decide, evidence_of, spread_of, weights_of

#: A tolerance of ten percent, and five for either risk; runs are independent.
PROMISE = Promise(rate=10, unit="GiB/s", runs=20, lasting_hours=0)
BOUND = math.log(0.95 / 0.05)


def test_runs_at_one_time_count_for_less_than_two():
    # if nothing lasts, even runs of the same second are independent
    assert weights_of((0.0, 1.0), 0.0) == weights_of((0.0, 0.0), 0.0) == pytest.approx((1, 1))
    assert weights_of((0.0, 0.0), 36.0) == pytest.approx((1 / 1.6, 1 / 1.6))
    many = sum(weights_of((0.0,) * 100, 36.0))
    assert many == pytest.approx(100 / (0.4 + 0.6 * 100))


def test_correlation_is_lost_with_the_hours():
    correlation = 0.6 * math.exp(-1)
    assert sum(weights_of((0.0, 36.0), 36.0)) == pytest.approx(2 / (1 + correlation))


def test_spread_without_variation_is_what_is_assumed_by_its_weight():
    # a prior spread of 0.12 with the weight of three runs, and four runs of no spread
    assert spread_of(np.zeros(4), 4.0) == pytest.approx(math.sqrt(3 * 0.12**2 / 7))


def test_spread_of_correlated_runs_is_larger_than_theirs():
    logs = np.array([-0.1, 0.1, -0.1, 0.1])
    own = 0.1**2 * (math.pi / 2)
    assert spread_of(logs, 4.0) ** 2 == pytest.approx((3 * 0.12**2 + 4 * own / (3 / 4) * 1.75) / 7)
    assert spread_of(logs, 1.6) > spread_of(logs, 4.0)


def test_an_outlier_hardly_widens_the_spread():
    logs = np.array([-0.02, 0.02, -0.02, 0.02, 0.0, -2.0])
    without = np.array([-0.02, 0.02, -0.02, 0.02, 0.0, -0.09])
    assert spread_of(logs, 6.0) == pytest.approx(spread_of(without, 6.0))


def test_evidence_of_runs_at_the_promise():
    spread = math.sqrt(3 * 0.12**2 / 7)
    between = -math.log(0.9)
    each = (between / 2) / spread * (between / spread)
    found = evidence_of(np.zeros(4), (0.0, 1.0, 2.0, 3.0), PROMISE)
    assert found == pytest.approx(4 * each) == pytest.approx(3.5975, abs=1e-4)


@pytest.mark.parametrize(("rate", "outcome"), [(10, Outcome.MET), (9, Outcome.MISSED)])
def test_the_first_run_that_decides_is_the_last_one_that_counts(rate, outcome):
    # three runs give 2.31 nats, four 3.60, and 2.94 decide
    found = decide([rate] * 10, range(10), PROMISE)
    assert (found.outcome, found.runs) == (outcome, 4)
    assert (found.to_meet, found.to_miss) == pytest.approx((BOUND, -BOUND))
    assert abs(found.evidence[-1]) == pytest.approx(3.5975, abs=1e-4)
    assert found.rate == pytest.approx(rate)
    assert found.lower < rate < found.upper
    # what comes later changes nothing
    assert decide([rate] * 4 + [1.0] * 6, range(10), PROMISE) == found


def test_rates_in_the_middle_of_the_tolerance_decide_nothing():
    middle = 10 * math.sqrt(0.9)
    found = decide([middle] * 30, range(30), PROMISE)
    assert (found.outcome, found.runs) == (Outcome.UNDECIDED, 20)
    assert found.evidence[-1] == pytest.approx(0)


def test_without_a_run_nothing_is_known():
    found = decide([], [], PROMISE)
    assert (found.outcome, found.runs, found.rate) == (Outcome.UNDECIDED, 0, None)


def test_a_burst_of_varied_runs_does_not_decide():
    promise = Promise(rate=10, unit="GiB/s", runs=60)
    rates = [10 * math.exp(0.2 * (-1) ** n) for n in range(60)]
    assert decide(rates, [n / 60 for n in range(60)], promise).outcome is Outcome.UNDECIDED


@pytest.mark.parametrize(("rate", "outcome"), [(1000, Outcome.MET), (0.1, Outcome.MISSED)])
def test_what_is_far_from_the_promise_is_soon_decided_however_it_varies(rate, outcome):
    promise = Promise(rate=10, unit="GiB/s", runs=20)
    rates = [rate * math.exp(0.8 * (-1) ** run) for run in range(20)]
    found = decide(rates, [run / 10 for run in range(20)], promise)
    # a clipped run counts 3 nats times its weight, and ln 19 + ln 4 = 4.33 nats are needed
    assert (found.outcome, found.runs) == (outcome, 5)
    four = sum(weights_of((0.0, 0.1, 0.2, 0.3), 36.0))
    assert 3 * four < 4.33 < 3 * found.effective


def test_a_quantile_is_judged_by_the_share_of_runs_above_it():
    promise = Promise(rate=10, unit="GiB/s", runs=100, lasting_hours=0, quantile=0.25)
    three_of_four = [8, 12, 13, 14] * 25
    # the lower quartile is 11 or so: met; with half of the runs at 8 it is 8: missed
    assert decide(three_of_four, range(100), promise).outcome is not Outcome.MISSED
    assert decide([8, 8, 13, 14] * 25, range(100), promise).outcome is Outcome.MISSED
    assert decide([11, 12, 13, 14] * 25, range(100), promise).outcome is Outcome.MET


def test_smaller_risks_need_more_runs():
    careful = Promise(
        rate=10, unit="GiB/s", runs=20, lasting_hours=0, site_risk=0.001, vendor_risk=0.001
    )
    assert decide([10] * 20, range(20), careful).runs > 4
