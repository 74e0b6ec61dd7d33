"""Outliers: the number of runs below the floor of their band without a lasting drop."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest

from iobands.snapshot import Outliers
from tests.factory import NOW, daily, write_bands
from tests.sites import DAY, SiteFiles, only


def values(low: Collection[int], runs: int, seed: int = 1) -> list[float]:
    """Return healthy values that are not near the floor, with those of the runs `low` at a fifth.

    The healthy logarithms are uniform from -0.1 to 0.1, which puts the floor at -0.2.
    """
    found = np.exp(np.random.default_rng(seed).uniform(-0.1, 0.1, runs))
    found[list(low)] *= 0.2
    return list(found)


def counted(tmp_path: Path, rows: list[str]) -> Outliers:
    return only(SiteFiles(tmp_path).write(rows).read()).outliers


def test_single_runs_under_the_floor_are_counted(tmp_path: Path) -> None:
    found = counted(tmp_path, daily(values((20, 50, 80, 110), 120)))
    assert (found.runs, found.outliers) == (100, 4)  # the first 20 have no band yet
    assert found.newest == NOW - (0.25 + 9) * DAY


def test_a_run_that_failed_for_being_slow_is_counted(tmp_path: Path) -> None:
    rows = daily(values((), 100), last=1.25)
    rows += daily([0.01], result="fail", fail_phase="performance")
    # it may be the first of many: a streak is an outlier once it has ended
    assert counted(tmp_path, rows) == Outliers(80, 0)
    assert counted(tmp_path, [*rows, *daily([1.0], last=0.1)]).outliers == 1


@pytest.mark.parametrize("after", [0, 60])
def test_runs_of_a_lasting_drop_do_not_count(tmp_path: Path, after: int) -> None:
    every = np.array(values((30,), 115 + after))
    every[100:115] *= 0.3
    found = counted(tmp_path, daily(every))
    assert (found.runs, found.outliers) == (80 + after, 1)


def test_each_run_is_judged_by_the_band_of_its_time(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).write(daily([0.1, 0.1, 1.5, 0.1, 1.5]))
    # 1, 1.5 and 2: the floor is 1 / 2^1.5 = 0.354; before 19 November there is no band
    write_bands(files.bands, since="2026-11-19")
    found = only(files.read()).outliers
    assert (found.runs, found.outliers) == (2, 1)


def test_the_floor_follows_a_level_that_rose(tmp_path: Path) -> None:
    every = np.array(values((), 300))
    every[150:] *= 2
    every[[140, 290]] = 1.0  # healthy before, half after
    assert counted(tmp_path, daily(every)).outliers == 1


def test_without_a_band_nothing_is_counted(tmp_path: Path) -> None:
    assert counted(tmp_path, daily(values((3,), 12))) == Outliers()


def test_file_systems_have_the_sum_of_their_series(tmp_path: Path) -> None:
    rows = daily(values((30,), 60)) + daily(values((40, 50), 60, 2), pattern="ssf")
    rows += daily(values((), 60, 3), file_system="home")
    found = SiteFiles(tmp_path).write(rows).read().file_systems
    known = {(each.system, each.name): each.outliers for each in found}
    assert {place: (each.runs, each.outliers) for place, each in known.items()} == {
        ("here", "disk"): (80, 3),
        ("here", "home"): (40, 0),
    }
    assert known["here", "disk"].newest == NOW - (0.25 + 9) * DAY
