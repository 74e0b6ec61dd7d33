"""The speeds of targets and nodes, from the times of ranks and the targets of their files."""

import csv
import math
import random

import pytest

from checks.base.speeds import (
    RankTime,
    node_speeds,
    speeds_text,
    target_bandwidths,
    targets_text,
)
from checks.filesystems import BACKENDS
from checks.tools.benchio.result import rank_times
from tests.checks.captures import states


def ranks(seconds, nodes=None):
    """Return a rank for each time; rank n has the file fn."""
    nodes = nodes or [None] * len(seconds)
    return [
        RankTime(s, f"f{n}", node) for n, (s, node) in enumerate(zip(seconds, nodes, strict=True))
    ]


def files(targets):
    return {f"f{n}": own if isinstance(own, tuple) else (own,) for n, own in enumerate(targets)}


def test_a_target_is_as_fast_as_the_median_of_its_ranks():
    # medians 1/2, 1 and 1/2; the median of the two others, by the logarithm, is 1/√2, 1/2, 1/√2
    found = target_bandwidths(
        ranks([1, 2, 4, 1, 1, 1, 2, 2, 4]), files([0] * 3 + [5] * 3 + [7] * 3)
    )
    assert found == pytest.approx({0: 0.5**0.5, 5: 2, 7: 0.5**0.5})


def test_a_target_that_ends_with_the_others_is_not_slow():
    # Four targets served their two files in turn, and target 4 both at once: its median gives 0.71.
    each = [1, 2] * 4
    assert target_bandwidths(
        ranks([*each, 2, 2]), files([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    ) == pytest.approx(dict.fromkeys(range(5), 1))
    # At half speed both end at four, which is half of the others' bandwidth.
    slow = target_bandwidths(ranks([*each, 4, 4]), files([0, 0, 1, 1, 2, 2, 3, 3, 4, 4]))
    assert slow.pop(4) == pytest.approx(0.5)


def said(speeds):
    """Return the targets with a known speed."""
    return {target: each for target, each in speeds.items() if not math.isnan(each)}


def unequal(law, slow=None, counts=(1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 8)):
    """Return bandwidths if target n has counts[n] files, each of which takes law(counts[n])."""
    layout = [target for target, count in enumerate(counts) for _ in range(count)]
    seconds = [law(counts[target]) * (2 if target == slow else 1) for target in layout]
    return target_bandwidths(ranks(seconds), files(layout))


@pytest.mark.parametrize(
    "law",
    [
        lambda files: files,  # the target limits, and its files share it
        lambda files: 1,  # the node limits
        lambda files: max(2, files),  # now the one and now the other
        lambda files: (files + 1) / 2,  # the median of files that are served one after another
    ],
)
def test_targets_with_more_files_than_others_are_as_fast(law):
    assert said(unequal(law)) == pytest.approx(dict.fromkeys(said(unequal(law)), 1))
    # the slow one has as many files as two others, or by far the most of all
    assert unequal(law, slow=1)[1] == pytest.approx(0.5)
    if law(8) == 8:
        assert unequal(law, slow=11)[11] == pytest.approx(0.5)
    assert min(each for target, each in said(unequal(law, slow=1)).items() if target != 1) > 0.99


def test_what_the_number_of_files_explains_is_not_said():
    # One file alone is as fast as each of three that share a target: slow, or is the node?
    found = unequal(lambda files: 3, counts=(1, 3, 3, 3))
    assert said(found) == pytest.approx({1: 1, 2: 1, 3: 1})
    assert math.isnan(found[0])
    assert target_bandwidths(ranks([1, 2, 2]), files([0, 1, 1])) == {}


def test_targets_of_several_stripes_a_file_share_its_bytes():
    # Files on 0 and 1, 0 and 2, … 0 and 6: 0 holds half of all bytes, and every rank waits for it.
    layouts = [(0, other) for other in range(1, 7) for _ in range(3)]
    found = target_bandwidths(ranks([18.0] * 18), files(layouts))
    assert said(found) == pytest.approx(dict.fromkeys(range(7), 1))


@pytest.mark.parametrize(("run", "counts"), [("im1", "0:4,1-2:2"), ("im2", "0:1,1:3,5:4")])
@pytest.mark.parametrize("variable", ["write_bw", "read_bw"])
def test_no_real_ost_with_more_or_fewer_files_is_called_slow(run, counts, variable, tmp_path):
    text = states("two runs of 8 files")
    begin = text.index(f"/mnt/lustre/user/{run}/")
    layouts, _, rest = text[begin:].partition("layer,operation")
    path = tmp_path / "ranks.csv"
    path.write_text("layer,operation" + rest.partition("\n/mnt")[0].rstrip() + "\n")
    targets = BACKENDS["lustre"].targets_of_files(layouts)
    assert targets_text(targets) == counts
    times = rank_times(path, "proc%06d.dat")[variable]
    speeds = target_bandwidths(times, targets)
    # Of two targets with two files, one served both at once and one in turn: both ended together.
    assert min(said(speeds).values(), default=1) > 0.99


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8])
def test_the_slow_one_is_found_behind_stripes(width):
    # Neighbours in turn, as Lustre places them: 24 targets, and each rank waits for its slowest.
    dice = random.Random(width)
    layouts = [tuple((7 * n + k) % 24 for k in range(width)) for n in range(480)]
    seconds = [(2 if 11 in own else 1) * dice.lognormvariate(0, 0.1) for own in layouts]
    found = target_bandwidths(ranks(seconds), files(layouts))
    assert len(found) == 24
    assert found.pop(11) == pytest.approx(0.5, rel=0.15)
    assert all(0.8 < speed < 1.25 for speed in found.values())


def test_nothing_is_said_of_targets_that_no_rank_tells_apart():
    every = tuple(range(4))
    assert target_bandwidths(ranks([1, 2, 3, 4]), files([every] * 4)) == {}
    # 0 and 1 only ever appear together, 2 and 3 do not
    assert set(target_bandwidths(ranks([1, 1, 3, 4]), files([(0, 1), (0, 1), 2, 3]))) == {2, 3}


def test_a_slow_node_is_no_slow_target_and_the_other_way_round():
    nodes = [f"n{rank // 8}" for rank in range(32)]
    layouts = files([rank % 8 for rank in range(32)])
    slow_node = ranks([3 if node == "n2" else 1 for node in nodes], nodes)
    assert set(target_bandwidths(slow_node, layouts).values()) == {1}
    assert node_speeds(slow_node, layouts) == pytest.approx(
        {"n0": 1, "n1": 1, "n2": 1 / 3, "n3": 1}
    )
    slow_target = ranks([3 if rank % 8 == 5 else 1 for rank in range(32)], nodes)
    assert set(node_speeds(slow_target, layouts).values()) == {1}
    assert target_bandwidths(slow_target, layouts)[5] == pytest.approx(1 / 3)


def test_where_each_node_has_a_target_of_its_own_neither_is_blamed():
    one_each = ranks([1, 1, 1, 9], ["a", "b", "c", "d"])
    assert target_bandwidths(one_each, files([0, 1, 2, 3])) == {}
    assert node_speeds(one_each, files([0, 1, 2, 3])) == {}
    # without targets the time is the node's
    assert node_speeds(one_each, {})["d"] == pytest.approx(1 / 9)


def test_ranks_without_a_file_or_a_time_say_nothing():
    times = [*ranks([1, 1, 0, float("nan")]), RankTime(50, "unknown")]
    assert target_bandwidths(times, files([0, 1, 1, 0])) == {0: 1, 1: 1}
    assert target_bandwidths([], {}) == node_speeds([], {}) == {}


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
    # Python 3.10 has a different error for the last one.
    with pytest.raises((ValueError, csv.Error), match=r"invalid literal|could not convert|NUL"):
        rank_times(path, "proc%06d.dat")
