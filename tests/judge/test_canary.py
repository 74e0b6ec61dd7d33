"""When a node is slower than its peers, for values worked out by hand."""

import random

import pytest

from iobands.judge.canary import AgainstPeers


def against(*rates, of=(1.0,) * 399 + (0.9,), nodes=3):
    """Return runs to be compared with the samples `of`, which come from `nodes` nodes."""
    peers = {f"n{number}": of[number::nodes] for number in range(nodes)}
    return AgainstPeers("write_bw", rates, peers)


def test_the_floor_is_twice_as_far_down_as_the_lowest_peer():
    assert against(1.0, of=(1.0,) * 399 + (0.7,)).floor == pytest.approx(0.49)
    assert against(1.0, of=(4.0,) * 399 + (2.0,)).floor == pytest.approx(1.0)


def test_above_two_thirds_or_so_of_the_median_nothing_is_slow():
    assert against(1.0).floor == pytest.approx(0.65)  # 0.9 squared is 0.81
    assert not against(0.66, 0.66).is_slow


def test_half_the_rate_is_slow_if_it_is_so_twice():
    assert against(0.5, 0.52).is_slow
    assert against(0.5, 0.5).verdict == "collapsed"
    assert not against(0.5).is_slow
    assert not against(0.5, 0.98).is_slow
    assert against(0.5, 0.98).verdict == "within"


@pytest.mark.parametrize(("number", "nodes"), [(399, 3), (400, 2), (0, 3)])
def test_too_few_runs_or_nodes_make_no_band(number, nodes):
    held = against(0.001, 0.001, of=(1.0,) * number, nodes=nodes)
    assert (held.floor, held.verdict, held.is_slow) == (None, "no band", False)


def test_a_healthy_run_is_rarely_below_the_floor():
    """With exponential tails: 2 / ((n + 1) (n + 2)), by chance as well as by the formula."""
    draw = random.Random(7).expovariate
    tries, number = 40_000, 20
    below = sum(draw(1) > 2 * max(draw(1) for _ in range(number)) for _ in range(tries))
    assert below / tries == pytest.approx(2 / (21 * 22), rel=0.25)  # 0.0043, 173 times
