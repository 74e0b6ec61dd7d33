"""Judgements of the past stay as they were: later runs do not change them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.alarms.charts import follow
from iobands.judge.detect.prior import Measured, Month, Prior, months_of, priors_of
from iobands.snapshot import Certainty, Change, Series, Snapshot
from tests import factory
from tests.factory import NOW
from tests.sites import Factor, SiteFiles, slow

START = np.datetime64("2026-01-10T06", "ns")
DAYS = START + np.arange(400) * np.timedelta64(1, "D")


def noise(runs: int, seed: int = 1, spread: float = 0.05) -> np.ndarray:
    return spread * np.random.default_rng(seed).standard_normal(runs)


def test_what_is_learned_is_learned_at_the_beginning_of_each_month():
    since = months_of([DAYS[:60], DAYS[20:25]])
    assert [str(each)[:13] for each in since] == [
        "2026-01-10T06",  # the first run, before which nothing is known
        "2026-01-11T06",
        "2026-02-01T00",
        "2026-03-01T00",
    ]


def daily(values: np.ndarray) -> Measured:
    """Return daily runs, none of them measured again."""
    return Measured(DAYS[: len(values)], values, np.zeros(len(values), dtype=bool))


def prior_of(series: Iterable[np.ndarray]) -> Prior:
    """Return the prior of several series after all their runs, one a day."""
    return priors_of([*map(daily, series)], DAYS[-1:] + np.timedelta64(1, "D"))[0]


@given(seed=st.integers(0, 1000), end=st.integers(0, 300))
@settings(max_examples=30)
def test_a_later_run_changes_no_prior_of_before(seed: int, end: int):
    values = noise(300, seed)
    values[np.random.default_rng(seed).random(300) < 0.1] -= 1
    at = DAYS[[end]]
    assert priors_of([daily(values)], at) == priors_of([daily(values[:end])], at)


def test_outliers_are_counted_once_their_streak_has_ended():
    values = noise(100)
    values[[30, 50, 51]] -= 1
    found = [prior_of([values[:runs]]) for runs in (41, 42, 62, 63, 100)]
    # known ten runs after the first run that is no outlier
    assert [(each.begun, each.continued) for each in found] == [
        (0, 0), (1, 0), (1, 0), (2, 1), (2, 1),
    ]  # fmt: skip
    # a longer streak is a change
    values[70:74] -= 1
    assert prior_of([values]).begun == 2


@pytest.mark.parametrize("fall", [0.1, 0.5, 1.0])
def test_a_fall_of_today_is_no_outlier_and_no_correlation(fall: float):
    before = prior_of([noise(60)])
    values = noise(68)
    values[60:] -= fall
    after = prior_of([values])
    assert (after.begun, after.correlation) == (0, before.correlation)


@pytest.mark.parametrize("phi", [0.0, 0.3, 0.6])
def test_the_correlation_is_that_of_all_series(phi: float):
    random = np.random.default_rng(3)
    values = random.standard_normal((20, 400))
    for run in range(1, 400):
        values[:, run] = phi * values[:, run - 1] + np.sqrt(1 - phi**2) * values[:, run]
    values[::4, 200:] -= 5  # a change of the level is no correlation
    assert prior_of(values).correlation == pytest.approx(phi, abs=0.06)


def test_runs_are_judged_by_their_month():
    values = np.exp(np.concatenate((noise(200), noise(6, 2) - 0.7)))
    month = Month(203, 9.0, Prior())
    strict = follow(values, threshold=50, months=[month])
    assert [each.raised for each in strict.changes] == [203]
    assert strict.changes[0].threshold == strict.threshold == 9
    assert follow(values[:203], threshold=50, months=[month]).changes == ()


@pytest.mark.parametrize("spread", [0.005, 0.03, 0.1])
@pytest.mark.parametrize("phi", [0.0, 0.3, 0.6])
def test_a_deeper_drop_is_not_found_later(spread: float, phi: float):
    random = np.random.default_rng(1)
    values = random.standard_normal((8, 240))
    for run in range(1, 240):
        values[:, run] = phi * values[:, run - 1] + np.sqrt(1 - phi**2) * values[:, run]
    prior = prior_of(spread * values[:, :200])
    late = []
    for each in spread * values:
        raised = []
        for factor in (0.8, 0.5):
            after = np.log(factor) * (np.arange(240) >= 200)
            change, *_ = follow(np.exp(each + after), prior=prior).changes
            raised.append(change.raised)
        late.append(raised[1] > raised[0])
    assert not any(late)


@st.composite
def runs_twice(draw: st.DrawFn) -> tuple[float, list[tuple[float, float]]]:
    """Return a spread, and runs as logarithms, each as it is and as it is in a worse history.

    Runs that differ are below all healthy runs in the worse history: among the lowest healthy ones,
    a lower run may be the more usual one by chance. A run that is low again soon after one came
    back may be of the same streak of outliers, and so may a deep run after one that has become an
    outlier. So all runs are deep from the first low one on, and those after the first one that
    differs only in the worse history.
    """
    spread = draw(st.sampled_from([0.005, 0.01, 0.03]))
    deep = -12 * spread - 1e-6
    lowered = [-2.0, *[deep] * 4][: draw(st.integers(0, 5))]
    least = 0 if lowered else 1
    found = draw(st.lists(st.floats(-2 * spread, 0.1), min_size=least, max_size=4))
    found += draw(st.lists(st.floats(-2, deep), max_size=4))
    runs = [(each, each) for each in found]
    for lowest in lowered:
        value = draw(st.floats(lowest, 0.1))
        runs.append((value, draw(st.floats(value - 2, min(value, deep)))))
    return spread, runs


@given(seed=st.integers(0, 1000), drawn=runs_twice())
@settings(max_examples=60, deadline=None)
def test_lower_runs_never_give_less_evidence(
    seed: int, drawn: tuple[float, list[tuple[float, float]]]
):
    # holds if no outliers are known; otherwise a deep run may be one
    spread, runs = drawn
    before = noise(200, seed, spread)
    found = [
        follow(np.exp(np.append(before, each)), threshold=1000, prior=prior_of([before])).down[200:]
        for each in zip(*runs, strict=True)
    ]
    assert (found[1] >= found[0] - 1e-9).all()


def test_a_young_steady_disk_that_is_throttled_is_degraded_at_the_third_run():
    # unless its 20 runs correlate by chance
    raised = []
    for seed in range(40):
        values = 20 * np.exp(noise(27, seed, 0.005))
        values[24:] *= 0.7
        raised += [each.raised for each in follow(values).changes]
    assert raised.count(26) >= 34
    assert max(raised) == 26


@pytest.mark.parametrize("others", [(), ({"pattern": "ssf"},)])
def test_a_new_series_changes_no_threshold_of_before(others: Sequence[Mapping], tmp_path: Path):
    lines = factory.daily(np.exp(noise(150)))
    for each in others:
        lines += factory.daily(np.exp(noise(150)), **each)
    files = SiteFiles(tmp_path).write(lines)

    def thresholds() -> list[float]:
        judged = files.judge(false_alarms=0.01).judged
        (first,) = (each for key, each in judged.items() if key.gib == 0.5 and key.pattern == "fpp")
        return [each.threshold for each in first.detection.basis.months if each.first < 120]

    before = thresholds()
    # it makes a group of a single series, and two groups of one that share several fields
    files.write([*lines, *factory.daily(np.exp(noise(20)), gib=1, file_system="b")])
    assert thresholds() == before


PARTS = st.lists(
    st.tuples(st.integers(3, 60), st.sampled_from([0.3, 0.7, 1.0, 1.0, 1.0, 1.4])),
    min_size=1,
    max_size=5,
)


def changes_of(site: Snapshot) -> dict[str, tuple[Change[datetime], ...]]:
    def of(series: Series) -> tuple[Change[datetime], ...]:
        return series.status.evidence.changes if series.status.evidence else ()

    return {series.label: of(series) for series in site.series}


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    parts=PARTS,
    ago=st.lists(st.integers(1, 120), min_size=2, max_size=2),
)
# the end of the first drop is known only after the second could have been raised
@example(seed=0, parts=[(3, 0.3), (5, 0.7), (3, 0.3), (47, 0.3)], ago=[1, 51])
def test_the_changes_of_a_site_never_move(
    seed: int, parts: list[tuple[int, float]], ago: list[int]
):
    level = np.repeat(*reversed([*zip(*parts, strict=True)]))[:150]
    level = np.concatenate((np.ones(180 - len(level)), level))[::-1]

    def factor(fields: object, day: int) -> float:
        return float(level[day]) if fields["file_system"] == "a" else 1.0

    with TemporaryDirectory() as root:
        files = SiteFiles(Path(root)).days(factor, seed=seed, days=180)
        whole = changes_of(files.read())
        for every in whole.values():
            for before, after in pairwise(every):
                assert before.closed is not None
                assert before.closed <= after.raised
        for days in ago:
            past = changes_of(files.read(NOW - timedelta(days=days), as_of=True))
            for label, then in past.items():
                now = whole[label]
                over = [each for each in then if each.ended is not None]
                assert over == list(now[: len(over)])
                for each, same in zip(then[len(over) :], now[len(over) :], strict=False):
                    kept = ("direction", "raised", "score", "threshold", "baseline")
                    assert all(getattr(each, name) == getattr(same, name) for name in kept)
                    raised = [fall.raised for fall in each.falls]
                    assert raised == [fall.raised for fall in same.falls][: len(raised)]
                # what has been raised since then was raised by later runs
                new = now[len(then) :]
                assert all(each.raised > NOW - timedelta(days=days) for each in new)
                assert len(now) >= len(then)


def test_an_alert_that_is_over_stays_as_certain_as_it_was(tmp_path: Path):
    files = SiteFiles(tmp_path).days(
        slow(0.7, since=60, until=30, file_system="a", pattern="fpp", transport="ofi"), days=150
    )
    (still,) = files.read(NOW - timedelta(days=30), as_of=True).alerts
    (over,) = files.read(as_of=True).past
    assert over.number == still.number == 1
    assert over.certainty == still.certainty == Certainty.CERTAIN
    assert over.score == pytest.approx(still.score, rel=0.05)


# A series falls for two days together with another, too briefly for an alert of its own; and four
# series fall for four days, by so little that only the group shows it.
ALONE = slow(0.5, since=100, until=70, file_system="a", pattern="fpp", transport="ucx")
BRIEFLY = slow(0.7, since=97, until=95, file_system="a", pattern="fpp", transport="ofi")
TOGETHER = slow(0.86, since=100, until=96, file_system="a")


@pytest.mark.parametrize(
    ("factors", "members", "furthest"), [((ALONE, BRIEFLY), 2, 0.5), ((TOGETHER,), 4, 0.86)]
)
def test_the_levels_in_an_alert_that_is_over_never_move(
    tmp_path: Path, factors: Sequence[Factor], members: int, furthest: float
):
    rose = slow(2.0, since=60)
    files = SiteFiles(tmp_path).days(
        lambda *run: prod(of(*run) for of in (rose, *factors)), days=190
    )

    def levels(now: datetime) -> dict[str, tuple[float, float]]:
        (alert,) = (each for each in files.read(now, as_of=True).past if each.number == 1)
        return {
            each.series.label: (each.baseline, each.ratio.value)
            for each in alert.members
            if each.ratio and each.baseline
        }

    found = levels(NOW)
    assert found == levels(NOW - timedelta(days=61))
    assert len(found) == members
    assert all(baseline == pytest.approx(2, rel=0.05) for baseline, _ in found.values())
    ratios = [ratio for _, ratio in found.values()]
    assert min(ratios) == pytest.approx(furthest, rel=0.1)
    assert max(ratios) < 0.99
