"""Comparison of series that differ in one field, by samples close to each other in time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from iobands.judge.advise import compare
from iobands.source.perflog import read_perflogs
from iobands.views.published import comparison_lines
from tests.factory import daily, write_perflog


def rows_over(transport: str, values: list[float], **fields: str) -> list[str]:
    return daily(values, transport=transport, environ=f"gnu-{transport}", **fields)


def test_the_ratio_is_that_of_samples_of_one_day(tmp_path: Path) -> None:
    # day by day 3, 2, 2, 4, 2, 2.5 times as fast; the rate itself changes a hundredfold
    ofi = [1.0, 10.0, 100.0, 1.0, 50.0, 2.0]
    ucx = [3.0, 20.0, 200.0, 4.0, 100.0, 5.0]
    write_perflog(tmp_path, [*rows_over("ofi", ofi), *rows_over("ucx", ucx)])
    (found,) = compare(read_perflogs(tmp_path).histories, "transport")
    assert (found.key.transport, found.against.transport) == ("ucx", "ofi")
    assert found.ratio is not None
    # sorted 2, 2, 2, 2.5, 3, 4: the middle two make sqrt(5)
    assert found.ratio.median == pytest.approx(5**0.5)
    assert (found.ratio.lower, found.ratio.upper) == (pytest.approx(2), pytest.approx(4))
    assert comparison_lines([found], "transport") == [
        "here local disk fpp write_bw: ucx (gnu-ucx) / ofi (gnu-ofi): "
        "2.24, 2 to 4 (96.9 %), from 6 pairs"
    ]
    either_way = replace(found, ratio=replace(found.ratio, lower=0.9))
    assert comparison_lines([either_way], "transport")[0].endswith(
        "2.24, 0.9 to 4 (96.9 %), from 6 pairs, no difference shown"
    )


def test_what_to_hold_against_can_be_said(tmp_path: Path) -> None:
    write_perflog(tmp_path, [*rows_over("ofi", [1.0]), *rows_over("ucx", [4.0])])
    samples = read_perflogs(tmp_path).histories
    (found,) = compare(samples, "transport", against="ucx")
    assert found.ratio is not None
    assert found.ratio.median == pytest.approx(0.25)
    assert list(compare(samples, "transport", against="tcp")) == []
    assert "too few for an interval" in comparison_lines([found], "transport")[0]


def test_a_million_processes_are_counted_in_full(tmp_path: Path) -> None:
    sizes = (524_288, 1_048_576)
    write_perflog(tmp_path, [each for n in sizes for each in daily([n / 2**19], tasks=n)])
    (found,) = compare(read_perflogs(tmp_path).histories, "tasks", against="1048576")
    assert ": 524288 / 1048576: 0.5 from 1 pair" in comparison_lines([found], "tasks")[0]


def test_a_sample_is_in_one_pair_and_none_is_paired_from_afar(tmp_path: Path) -> None:
    # one sample of ofi, on the last day; three of ucx; only the last is near
    write_perflog(tmp_path, [*rows_over("ofi", [2.0]), *rows_over("ucx", [20.0, 10.0, 6.0])])
    samples = read_perflogs(tmp_path).histories
    (found,) = compare(samples, "transport")
    assert found.ratio is not None
    assert (found.ratio.pairs, found.ratio.median) == (1, pytest.approx(3))
    write_perflog(tmp_path, [*rows_over("ofi", [2.0]), *rows_over("ucx", [20.0], last=9)])
    (found,) = compare(read_perflogs(tmp_path).histories, "transport")
    assert found.ratio is None


def test_only_what_is_alike_otherwise_is_compared(tmp_path: Path) -> None:
    rows = [
        *rows_over("ofi", [1.0]),
        *rows_over("ucx", [2.0], hints="tuned"),
        *rows_over("ucx", [4.0], case="csc-blocking unit"),
    ]
    write_perflog(tmp_path, rows)
    samples = read_perflogs(tmp_path).histories
    assert list(compare(samples, "transport")) == []


def test_all_stripes_are_held_against_fewer(tmp_path: Path) -> None:
    one, all_ = daily([1.0], stripe_count_asked="1"), daily([10.0], stripe_count_asked="-1")
    write_perflog(tmp_path, [*all_, *one])
    found = list(compare(read_perflogs(tmp_path).histories, "stripe_count_asked"))
    assert comparison_lines(found, "stripe_count_asked") == [
        "here local disk fpp write_bw: all / 1: 10 from 1 pair, too few for an interval"
    ]
    against = compare(read_perflogs(tmp_path).histories, "stripe_count_asked", against="all")
    assert [each.against.stripe_count_asked for each in against] == [-1]


def test_lines_of_two_scales_can_be_told_apart(tmp_path: Path) -> None:
    rows = [
        row
        for tasks in ("4", "16")
        for transport in ("ofi", "ucx")
        for row in rows_over(transport, [1.0], tasks=tasks)
    ]
    write_perflog(tmp_path, rows)
    lines = comparison_lines(
        list(compare(read_perflogs(tmp_path).histories, "transport")), "transport"
    )
    assert [line.partition(":")[0] for line in lines] == [
        "here local disk fpp tasks=4 write_bw",
        "here local disk fpp tasks=16 write_bw",
    ]


def test_processes_go_with_nodes_and_volume(tmp_path: Path) -> None:
    few = daily([1.0], tasks="4", nodes="1", gib="0.5")
    many = daily([3.0], tasks="16", nodes="4", gib="2")
    write_perflog(tmp_path, [*many, *few])
    (found,) = compare(read_perflogs(tmp_path).histories, "tasks")
    assert comparison_lines([found], "tasks")[0].startswith(
        "here local disk fpp write_bw: 16 / 4: 3 from 1"
    )
