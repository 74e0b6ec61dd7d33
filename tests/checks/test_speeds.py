"""How fast targets and nodes were, by the times of ranks whose files' targets are known."""

import random

import pytest

from checks.base.speeds import (
    RankTime,
    node_speeds,
    speeds_text,
    target_speeds,
    targets_text,
)
from checks.tools.benchio.result import rank_times


def ranks(seconds, nodes=None):
    """A rank for each time, rank n with the file fn."""
    nodes = nodes or [None] * len(seconds)
    return [
        RankTime(s, f"f{n}", node) for n, (s, node) in enumerate(zip(seconds, nodes, strict=True))
    ]


def files(targets):
    return {f"f{n}": own if isinstance(own, tuple) else (own,) for n, own in enumerate(targets)}


def test_a_target_is_as_fast_as_the_median_of_its_ranks():
    # rates 1, 1/2 and 1/4 of one target, 1 of the second, 1/2 of the third: medians 1/2, 1, 1/2
    found = target_speeds(ranks([1, 2, 4, 1, 2]), files([0, 0, 0, 5, 7]))
    assert found == pytest.approx({0: 1, 5: 2, 7: 1})


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8])
def test_the_slow_one_is_found_behind_stripes(width):
    # Neighbours in turn, as Lustre places them: 24 targets, and each rank waits for its slowest.
    dice = random.Random(width)
    layouts = [tuple((7 * n + k) % 24 for k in range(width)) for n in range(480)]
    seconds = [(2 if 11 in own else 1) * dice.lognormvariate(0, 0.1) for own in layouts]
    found = target_speeds(ranks(seconds), files(layouts))
    assert len(found) == 24
    assert found.pop(11) == pytest.approx(0.5, rel=0.15)
    assert all(0.8 < speed < 1.25 for speed in found.values())


def test_nothing_is_said_of_targets_that_no_rank_tells_apart():
    every = tuple(range(4))
    assert target_speeds(ranks([1, 2, 3, 4]), files([every] * 4)) == {}
    # 0 and 1 only ever appear together, 2 and 3 do not
    assert set(target_speeds(ranks([1, 1, 3, 4]), files([(0, 1), (0, 1), 2, 3]))) == {2, 3}


def test_a_slow_node_is_no_slow_target_and_the_other_way_round():
    nodes = [f"n{rank // 8}" for rank in range(32)]
    layouts = files([rank % 8 for rank in range(32)])
    slow_node = ranks([3 if node == "n2" else 1 for node in nodes], nodes)
    assert set(target_speeds(slow_node, layouts).values()) == {1}
    assert node_speeds(slow_node, layouts) == pytest.approx(
        {"n0": 1, "n1": 1, "n2": 1 / 3, "n3": 1}
    )
    slow_target = ranks([3 if rank % 8 == 5 else 1 for rank in range(32)], nodes)
    assert set(node_speeds(slow_target, layouts).values()) == {1}
    assert target_speeds(slow_target, layouts)[5] == pytest.approx(1 / 3)


def test_where_each_node_has_a_target_of_its_own_neither_is_blamed():
    one_each = ranks([1, 1, 1, 9], ["a", "b", "c", "d"])
    assert target_speeds(one_each, files([0, 1, 2, 3])) == {}
    assert node_speeds(one_each, files([0, 1, 2, 3])) == {}
    # without targets the time is the node's
    assert node_speeds(one_each, {})["d"] == pytest.approx(1 / 9)


def test_ranks_without_a_file_or_a_time_say_nothing():
    times = [*ranks([1, 1, 0, float("nan")]), RankTime(50, "unknown")]
    assert target_speeds(times, files([0, 1, 1, 1])) == {0: 1, 1: 1}
    assert target_speeds([], {}) == node_speeds([], {}) == {}


def test_columns():
    assert targets_text(files([0, 1, 2, 2, 3, 9])) == "0-1:1,2:2,3:1,9:1"
    assert targets_text(files([(0, 1, 2)] * 4)) == "0-2:4"
    assert targets_text({}) is None
    speeds = {"write_bw": {1: 0.98765, 0: 1.0}, "read_bw": {}}
    assert speeds_text(speeds) == "write_bw=0:1,1:0.988"
    assert speeds_text({"write_bw": {}}) is None


def test_the_last_repeat_is_of_the_files_that_are_there(tmp_path):
    path = tmp_path / "ranks.csv"
    path.write_text(
        "layer,operation,repeat,path,rank,host,seconds_open,seconds_transfer,seconds_sync,"
        'seconds_close,seconds\nproc,write,1,"a, b",0,n0,0,1,0,0,1\nproc,read,1,x,0,n0,0,1,0,0,2\n'
        "proc,write,2,x,0,n0,0,1,0,0,3\nproc,write,2,x,1,n1,0,1,0,0,4\n"
    )
    assert rank_times(path, "proc%06d.dat") == {
        "write_bw": [RankTime(3, "proc000000.dat", "n0"), RankTime(4, "proc000001.dat", "n1")]
    }


@pytest.mark.parametrize("last", ["proc,write,1", "proc,write,1,x,1,n1,0,1,0,0,", "\0\0\0"])
def test_a_file_of_times_that_was_cut_off_is_none(tmp_path, last):
    path = tmp_path / "ranks.csv"
    path.write_text(
        "layer,operation,repeat,path,rank,host,seconds_open,seconds_transfer,seconds_sync,"
        f"seconds_close,seconds\nproc,write,1,x,0,n0,0,1,0,0,1\n{last}"
    )
    with pytest.raises(ValueError, match=r"invalid literal|could not convert"):
        rank_times(path, "proc%06d.dat")
