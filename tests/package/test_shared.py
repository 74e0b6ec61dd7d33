"""A change that series share is found, and told once, under the pool that explains it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from iobands.reporting.concerns import concerns
from iobands.reporting.digest_json import as_json
from iobands.status.survey import Survey

from tests.package.sites import Factor, site

SLOW = 12


def slow(factor: float = 0.7, since: int = SLOW, **fields: str) -> Factor:
    """Return what multiplies the runs of the last days whose series have these fields."""

    def of(series: dict[str, str], day: int, _: object) -> float:
        mine = all(series[name] == value for name, value in fields.items())
        return factor if mine and day < since else 1.0

    return of


def degraded(found: Survey) -> list[tuple[str, ...]]:
    return [each.names for each in concerns(found) if each.word == "degraded"]


@pytest.mark.parametrize(
    ("fields", "name", "number"),
    [
        ({"file_system": "a"}, "all a", 4),
        ({"transport": "ucx"}, "all transport ucx", 4),
        ({}, "all partition local", 8),
    ],
)
def test_it_is_told_under_the_pool_of_those_that_fell(
    tmp_path: Path, fields: dict[str, str], name: str, number: int
) -> None:
    found = site(tmp_path, slow(0.75, **fields))
    (common,) = found.common
    assert (common.name, len(common.keys)) == (name, number)
    assert degraded(found) == [(name,)]
    assert all(
        getattr(key, field) == value for key in common.keys for field, value in fields.items()
    )
    assert common.change.ratio.low < 0.75 < common.change.ratio.high
    assert found.exit_status == 2


def test_the_right_pool_is_nearly_always_told(tmp_path: Path) -> None:
    told = Counter()
    for seed in range(8):
        found = site(tmp_path / str(seed), slow(0.8, transport="ucx"), seed=seed, days=110)
        told.update(each.name for each in found.common)
    assert told["all transport ucx"] >= 7
    assert told.total() <= 9


def test_one_series_alone_is_no_common_drop(tmp_path: Path) -> None:
    found = site(tmp_path, slow(0.6, file_system="a", pattern="fpp", transport="ofi"))
    assert found.common == ()
    assert degraded(found) == [("a fpp ofi write_bw",)]


def test_two_causes_are_two_lines(tmp_path: Path) -> None:
    early, late = slow(file_system="a", since=60), slow(0.75, file_system="b")
    found = site(tmp_path, lambda *run: early(*run) * late(*run))
    assert sorted(each.name for each in found.common) == ["all a", "all b"]
    since = {each.name: each.change.since for each in found.common}
    assert (since["all b"] - since["all a"]).days in range(45, 52)


def test_a_series_that_fell_long_before_is_told_on_its_own(tmp_path: Path) -> None:
    early = slow(0.6, file_system="a", pattern="fpp", transport="ofi", since=80)
    late = slow(0.7, file_system="a")
    found = site(tmp_path, lambda *run: min(early(*run), late(*run)))
    (common,) = found.common
    assert len(common.keys) == 3
    assert degraded(found) == [("all a",), ("a fpp ofi write_bw",)]


def test_writes_and_reads_are_one_line(tmp_path: Path) -> None:
    variables = ("write_bw", "read_bw")
    found = site(tmp_path, slow(0.7, file_system="a"), variables=variables, days=110)
    (common,) = found.common
    assert set(common.changes) == set(variables)
    assert len(common.keys) == 8
    assert "write_bw 0.7" in common.text() and "read_bw 0.7" in common.text()
    assert degraded(found) == [("all a",)]
    (told,) = as_json(found)["common"]
    assert {each["variable"] for each in told["changes"]} == set(variables)
    assert len(told["series"]) == len(told["members"]) == 8


def test_a_bad_node_among_many_is_named(tmp_path: Path) -> None:
    def nodes(random: np.random.Generator) -> list[str]:
        return [f"n{i}" for i in sorted(random.choice(8, 2, replace=False))]

    def of(_: object, day: int, names: list[str]) -> float:
        return 0.6 if "n5" in names and day < 30 else 1.0

    found = site(tmp_path, of, nodes=nodes, seed=3)
    (common,) = found.common
    assert common.name == "all node n5"
    assert degraded(found)[0] == ("all node n5",)
    assert common.change.ratio.low < 0.6 < common.change.ratio.high


def test_a_healthy_site_with_changing_nodes_has_nothing_in_common(tmp_path: Path) -> None:
    def nodes(random: np.random.Generator) -> list[str]:
        return [f"n{i}" for i in sorted(random.choice(8, 2, replace=False))]

    found = site(tmp_path, slow(1.0), nodes=nodes)
    assert len({each.pool.name for each in found.pooled}) == 5 + 8
    assert found.common == ()
