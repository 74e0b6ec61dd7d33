"""The normal of a series at a time, which follows adopted levels."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from iobands.bands import log_fence
from iobands.snapshot import VERDICTS, Series, State
from tests.factory import NOW, daily, write_bands
from tests.sites import SiteFiles, levels, only


def series_of(root: Path, *parts: tuple[int, float]) -> Series:
    return only(SiteFiles(root).write(daily(levels(*parts))).read())


def counts(series: Series, runs: slice) -> dict[str, int]:
    found = np.bincount(series.verdicts.codes[runs], minlength=len(VERDICTS))
    return {name: int(number) for name, number in zip(VERDICTS, found, strict=True) if number}


def test_a_fall_back_to_the_old_level_is_no_longer_normal(tmp_path: Path) -> None:
    series = series_of(tmp_path, (100, 1), (60, 1.6), (12, 1))
    # the medians are 1.5 and 1.5 x 1.6 = 2.4
    assert series.status.state is State.DEGRADED
    assert series.status.band.median == pytest.approx(2.4, rel=0.05)
    assert series.status.evidence.level == pytest.approx(series.status.band.median, rel=0.02)
    assert series.status.verdict in ("below", "collapsed")
    assert counts(series, slice(-12, None)).keys() <= {"below", "collapsed"}


def test_an_improvement_is_above_what_is_normal_until_it_is_adopted(tmp_path: Path) -> None:
    series = series_of(tmp_path, (100, 1), (60, 1.6))
    assert counts(series, slice(100, 130)) == {"above": 30}
    assert counts(series, slice(131, None)).get("within", 0) >= 10
    begins = [begin for begin, _ in series.verdicts.segments]
    medians = [band.median for band in series.verdicts.bands]
    assert begins == sorted(begins)
    assert [median > 2 for median in medians] == sorted(median > 2 for median in medians)


def test_runs_of_a_drop_change_nothing_of_what_is_normal(tmp_path: Path) -> None:
    series = series_of(tmp_path, (100, 1), (60, 0.7))
    assert series.status.state is State.DEGRADED
    assert series.status.band.median == pytest.approx(1.5, rel=0.03)


def test_the_verdict_of_a_run_never_changes(tmp_path: Path) -> None:
    rows = daily(levels((80, 1), (8, 0.6), (30, 1), (50, 1.5), (20, 1)))
    last = SiteFiles(tmp_path).write(rows)
    every = only(last.read()).verdicts.codes
    for ago in (25, 60, 90, 140):
        known = only(last.read(NOW - timedelta(days=ago), as_of=True)).verdicts.codes
        assert known.tolist() == every[: len(known)].tolist()


def test_a_declared_band_is_normal_while_it_is_in_force(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).write(daily(levels((60, 1))))
    write_bands(files.bands, (2.0, 2.1, 2.2), since=f"{NOW - timedelta(days=10):%Y-%m-%d}")
    series = only(files.read())
    assert counts(series, slice(-9, None)).keys() <= {"below", "collapsed"}
    assert not series.status.provisional
    assert [(band.median, band.is_own) for band in series.verdicts.bands] == [(2.1, False)]


def test_a_band_that_is_published_later_judges_no_earlier_run(tmp_path: Path) -> None:
    path = write_bands(tmp_path / "bands", (2.0, 2.2, 2.4), since="2026-11-19")
    later = path.read_text().replace('"schema": 1', '"schema": 3')
    path.write_text(later.replace('"source"', '"continues": true, "source"'))
    site = SiteFiles(tmp_path).write(daily(levels((100, 1)))).read()
    assert [each for each in (*site.alerts, *site.past) if each.number] == []
    # the newest two of the hundred runs, of 19 and 20 November, have it
    verdicts = only(site).verdicts
    begin, place = verdicts.segments[-1]
    assert verdicts.bands[place].median == 2.2
    assert sum(verdicts.times >= begin) == 2


@pytest.mark.parametrize("runs", [20, 30, 60, 200])
@pytest.mark.parametrize("spread", [0.1, 0.2])
def test_a_healthy_run_collapses_as_seldom_by_a_young_band(runs: int, spread: float) -> None:
    random, normal = np.random.default_rng(5), NormalDist(0, spread)
    quartiles = np.quantile(np.exp(random.normal(0, spread, (4000, runs))), (0.25, 0.75), axis=1)
    floors = [log_fence(lower, upper, runs) for lower, upper in quartiles.T]
    share = np.mean([normal.cdf(np.log(floor)) for floor in floors])
    # for exact quartiles of a normal distribution, the floor is at -4 * 0.6745 standard deviations
    assert share == pytest.approx(NormalDist().cdf(-4 * 0.67449), rel=0.2)
