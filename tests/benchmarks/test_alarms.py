"""The benchmark of the alerts: figures worked out by hand, and a small year day by day."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from benchmarks.alarms import accepting, peers, real_page, simulate, slow, tables, together
from benchmarks.alarms.__main__ import with_section
from benchmarks.alarms.figures import NEVER, Delays, Rate
from benchmarks.alarms.marked import MARKS, Mark, read_marks
from benchmarks.alarms.real import Event, Replay, Said, events_of, replay
from benchmarks.alarms.score import Score, summary
from benchmarks.alarms.worlds import WORLDS, normals, with_outliers
from checks.base.speeds import RankTime, target_bandwidths
from iobands.judge.normal import TransientRuns
from iobands.model import SERIES_FIELDS, SeriesKey, slug
from iobands.snapshot import AlertEvent

_FIRST = datetime(2026, 1, 1, 5, tzinfo=timezone.utc)
_DAYS, _DROP = 45, 30


def key(tool: str, variable: str = "write_bw") -> SeriesKey:
    fields = dict.fromkeys(SERIES_FIELDS) | {"system": "s", "partition": "p"}
    fields |= {"file_system": "fs", "tool": tool}
    return SeriesKey(**fields, variable=variable)


def said(day: int, severity: str, *tools: str) -> Said:
    keys = frozenset(key(tool) for tool in tools)
    return Said(date(2026, 1, day), severity, "x", keys, date(2026, 1, 1), 0.5, "likely", "")


def test_figures_by_hand() -> None:
    assert str(Rate(4, 2)) == "2 ± 1"
    assert str(Rate(0, 10)) == "0 (< 0.3)"
    delays = Delays((1.0, 2.0, 3.0, NEVER), 10)
    assert (delays.mean, delays.missed, delays.quantile(0.5)) == (4.0, 0.25, 3.0)
    assert delays.error == pytest.approx(math.sqrt((9 + 4 + 1 + 36) / 3) / 2)


def test_a_fixed_number_of_runs_by_hand() -> None:
    # (2 × 1.645 × 0.1 / 0.10536)² = 9.75 independent runs; correlated ones count for less
    assert accepting.fixed_number(0.1, 0.0) == 10
    assert accepting.fixed_number(0.01, 0.0) == 3
    # three days correlated by 0.3 and 0.15 count as 3 / (1 + 2 (2 × 0.3 + 0.15) / 3) = 2 runs
    assert accepting.fixed_number(0.0450, 0.5) == 3
    assert accepting.fixed_number(0.0455, 0.5) == 4


def test_acceptances_hardly_err() -> None:
    found = accepting.accepted(0.0, 0.0, 24.0, 0.0, 0.5, number=40, seed=1)
    assert {(each.spread, each.truth) for each in found} == {
        (spread, truth) for spread in accepting.SPREADS for truth in accepting.TRUTHS
    }
    low, high = ([e for e in found if e.truth == truth] for truth in (0.9, 1.05))
    assert np.mean([each.met for each in low]) <= 0.1
    assert np.mean([each.missed for each in high]) <= 0.1
    assert sum(e.runs for e in low) < sum(e.fixed for e in low)


@pytest.mark.parametrize("world", WORLDS)
def test_worlds_have_the_correlation_that_was_asked_for(world: str) -> None:
    random = np.random.default_rng(1)
    normal = normals(random, 20, 2000, 0.6)
    assert np.corrcoef(normal[:, 1:].ravel(), normal[:, :-1].ravel())[0, 1] == pytest.approx(
        0.6, abs=0.02
    )
    assert np.isfinite(WORLDS[world](normal)).all()


@pytest.mark.parametrize(
    ("place", "each"), [(slow.Targets(8, 2), 2), (slow.Nodes(6, 16, peers=9), 1)]
)
def test_a_slow_one_shows_in_the_times_of_real_ranks(place: slow.Place, each: int) -> None:
    random = np.random.default_rng(1)
    used = place.used(random)
    assert {len(set(own)) for own in used.tolist()} == {each}
    assert sorted(map(len, slow.rank_times()["write"])) == [16] * 60
    worst = int(used[0, 0])
    speeds = np.where(np.arange(place.peers) == worst, 0.25, 1.0)
    found = slow.session(random, "write", place, used, speeds)
    assert set(np.flatnonzero(np.isfinite(found))) == set(used.ravel())
    assert np.nanargmin(found) == worst
    assert found[worst] < np.log(0.5)


@pytest.mark.parametrize("targets", [3, 24, 96])
def test_files_in_rotation_give_what_the_check_records(targets: int) -> None:
    random, place = np.random.default_rng(targets), slow.Targets(targets)
    used = place.used(random)
    seconds = np.exp(random.normal(0, 0.4, len(used)))
    times = [RankTime(float(each), str(rank)) for rank, each in enumerate(seconds)]
    files = {str(rank): own for rank, own in enumerate(used.tolist())}
    assert place.speeds(seconds, used) == pytest.approx(target_bandwidths(times, files))


def test_targets_are_drawn_by_their_free_space() -> None:
    random = np.random.default_rng(1)
    unequal = slow.Weighted(3, 1, (1.0, 1.0, 4.0), 6000)
    files = np.bincount(unequal.used(random)[:, 0])
    # the penalty of the target that was just used makes it a little less than 4000
    assert 3400 < files[2] < 4000
    assert files[0] == pytest.approx(files[1], rel=0.1)
    equal = slow.Weighted(3, 1, (1.0, 1.0, 1.2), 1200)
    assert np.bincount(equal.used(random)[:, 0]) == pytest.approx(400, abs=1)
    assert np.bincount(equal.rotated.used(random)[:, 0]) == pytest.approx(400, abs=1)
    pairs = slow.weighted(random, np.array([1.0, 1.0, 4.0]), 100, stripes=2)
    assert all(len(set(pair)) == 2 for pair in pairs.tolist())


def test_a_busy_target_is_slower_for_each_file_and_no_slow_one() -> None:
    random, healthy = np.random.default_rng(1), np.ones(4)
    place = slow.Weighted(4, 1, (1.0, 1.0, 1.0, 5.0), 4, 2.0)
    used = np.array([[3], [3], [3], [0]])
    assert place.busy(used, healthy).tolist() == [1.5, 1.5, 1.5, 1.0]
    assert place.busy(used, np.array([0.5, 1, 1, 1])).tolist() == [1.5, 1.5, 1.5, 2.0]
    assert slow.false_names(slow.Weighted(4, 1, (1.0, 1.0, 3.0, 5.0), 8), 0.0, seed=1) == 0
    assert len(slow.session(random, "write", place, used, healthy)) == 4


def test_a_slow_node_is_named_by_the_sessions_that_use_it() -> None:
    found, right = slow.delays(slow.Nodes(8, 16, peers=24), 0.5, 0.0, number=2, seed=1)
    assert right == 1
    assert 3 <= min(found.runs) <= max(found.runs) <= 6


@pytest.mark.parametrize("pairs", [False, True])
def test_outliers_come_at_their_rate(pairs: bool) -> None:
    values = with_outliers(np.random.default_rng(1), np.zeros((50, 2000)), 0.02, pairs=pairs)
    assert np.mean(values < 0) == pytest.approx(0.02, rel=0.1)
    again = np.mean(values[:, 1:][values[:, :-1] < 0] < 0)
    assert again > 0.4 if pairs else again < 0.1


@pytest.mark.parametrize(("band", "mean", "ninth"), [("NVMe FPP", 2.8, 5), ("SSF HDD", 7.9, 14)])
def test_the_oracle_is_that_of_a_simulation(band: str, mean: float, ninth: float) -> None:
    # The expected figures were simulated with 400 series, by another program.
    found = simulate.oracle(band, 0.7, 1000.0)
    assert found == (pytest.approx(mean, rel=0.06), ninth)


def test_a_steady_disk_is_found_and_a_healthy_site_is_quiet() -> None:
    assert simulate.steady_disk(0.58, 12, 3, seed=1).quantile(0.9) <= 5
    assert simulate.outliers(0.0, pairs=False, series=3, seed=1) <= 1


def test_a_group_is_found_before_its_series() -> None:
    group, alone = together.delays("nothing", 10, 0.7, number=2, seed=1)
    assert group.mean < alone.mean


def test_every_table_of_the_page_has_its_aims() -> None:
    rate, delays = Rate(1, 2), Delays((1.0, 2.0), 10)
    drawn = {
        "years": [0, 1, 0, 0], "delays": (delays, delays), "outliers": 1, "steady": delays,
        "groups_false": 1, "groups": (delays, delays), "incidents": rate, "improvement": delays,
        "causes": Counter(right=1), "healthy_peers": 1, "unequal_peers": (delays, delays),
    }  # fmt: skip
    for name, found in drawn.items():
        table = tables.TABLES[name]
        for case in table.cases:
            cells = table.row(case, [found])
            assert len(cells) == len(table.head.split("|"))
            assert {"met", "**missed**"} & set(map(str, cells))


def test_a_section_that_was_measured_anew_says_when(tmp_path: Path) -> None:
    page = "# Rates\n\nAll.\n\n## One\n\nOld.\n\n| 1 |\n\n## Two\n\nKept.\n"
    (tmp_path / "error-rates.md").write_text(page)
    new = "# Rates\n\n## One\n\nNew.\n\n| 2 |\n\n## Two\n\nNot simulated.\n"
    found = with_section(tmp_path, "One", new, "2026-01-02")
    assert found == page.replace("Old.\n\n| 1 |", "Measured on 2026-01-02. New.\n\n| 2 |")
    last = with_section(None, "Two", new, "2026-01-02")
    assert last == "## Two\n\nMeasured on 2026-01-02. Not simulated.\n"


def test_shuffled_days_break_incidents_and_keep_single_runs() -> None:
    days = np.arange(100).astype("datetime64[D]").astype("datetime64[ns]")
    low = np.zeros(100, dtype=bool)
    low[[20, 50, 80]] = True
    runs = {key(tool): TransientRuns(days, np.where(low, 0.3, 1.0), low) for tool in "ab"}
    assert together.shuffled_incidents(runs, (), 20, seed=1).alarms <= 5
    low[20:30] = True
    runs = {key(tool): TransientRuns(days, np.where(low, 0.3, 1.0), low) for tool in "ab"}
    assert together.shuffled_incidents(runs, (), 20, seed=1).alarms > 5
    place = (key("a").file_system, key("a").variable)
    known = [(*place, date(1970, 1, 21), date(1970, 1, 30))]
    assert together.shuffled_incidents(runs, known, 20, seed=1).alarms <= 5


def test_an_alert_of_several_days_is_one_event() -> None:
    found = events_of(
        [
            said(1, "degraded", "a"),
            said(2, "incident", "a"),
            said(2, "degraded", "a", "b"),
            said(3, "degraded", "b"),
            said(20, "degraded", "b"),
        ]
    )
    assert [(event.first.severity, len(event.days)) for event in found] == [
        ("degraded", 3),
        ("incident", 1),
        ("degraded", 1),
    ]


def test_limits_of_the_first_runs() -> None:
    values = np.concatenate((np.tile([9.0, 11.0], 10), [10.0, 8.9, 6.9, 10.0]))
    # The mean is 10 and the standard deviation 1.026, so the limits are 6.92 and 9.
    assert [each.raised for each in peers.control_chart(values)] == [22]
    assert [each.raised for each in peers.reframe(values)] == [21, 22]


@pytest.mark.parametrize("name", ["otava", "ruptures", "asv"])
def test_peers_find_a_step(name: str) -> None:
    pytest.importorskip(name)
    detector = {"otava": peers.otava, "ruptures": peers.pelt, "asv": peers.asv}[name]
    values = np.exp(0.05 * np.random.default_rng(1).standard_normal(100))
    values[60:] *= 0.5
    assert any(abs(point - 60) <= 1 for point in detector(values))


def test_the_delay_of_a_peer_is_that_of_its_first_report_of_the_drop() -> None:
    alarms = [
        peers.Alarm(70, 20, is_drop=True),
        peers.Alarm(72, 60, is_drop=False),
        peers.Alarm(74, 59, is_drop=True),
    ]
    assert peers.delay(alarms, 60, 100) == 15
    assert peers.delay(alarms, 60, 10) == NEVER


@pytest.fixture(scope="module")
def small_year(tmp_path_factory: pytest.TempPathFactory) -> Replay:
    """Return the replay of a small year: steady reads, and writes that fall once."""
    random = np.random.default_rng(3)
    spread = np.exp(0.02 * random.standard_normal((_DAYS, 2)))
    lines = [
        "darshan_start_time,_file_system,darshan_app,darshan_nprocs,darshan_total_gibs_posix,"
        "darshan_biggest_write_api_bytes,darshan_biggest_write_api_files,"
        "darshan_biggest_read_api_bytes,darshan_biggest_read_api_files,"
        "darshan_agg_perf_by_slowest_posix,fshealth_ost_avg_full_pct"
    ]
    for day in range(_DAYS):
        when = _FIRST + timedelta(days=day)
        write = 10 * spread[day, 0] * (0.4 if day >= _DROP else 1)
        for moved, value in (("4,1,,", write), (",,4,1", 20 * spread[day, 1])):
            start = when.timestamp()
            lines.append(f"{start},fs,/bin/ior,8,4,{moved},{1024 * value:.4f},50")
    # a run that moved no data has no rate
    lines.append(f"{_FIRST.timestamp()},,/bin/ior,8,,,,,,,")
    table = tmp_path_factory.mktemp("real") / "year.csv"
    table.write_text("\n".join(lines) + "\n")
    return replay(table)


def test_a_drop_is_raised_once_and_in_words(small_year: Replay) -> None:
    (event,) = [each for each in small_year.events if each.first.severity == "degraded"]
    began = (_FIRST + timedelta(days=_DROP)).date()
    assert event.first.since == began
    assert small_year.sessions(event) == (event.first.day - began).days + 1 <= 5
    assert event.last.day == (_FIRST + timedelta(days=_DAYS - 1)).date()
    assert event.first.ratio == pytest.approx(0.4, abs=0.03)
    assert event.first.line.startswith("degraded  1 fs shared write_bw  ")


def test_incidents_of_the_shuffled_year_come_from_its_single_runs(small_year: Replay) -> None:
    # the first 20 runs have no band, and the runs of the drop are in it
    assert {runs.times.size for runs in small_year.transient.values()} == {_DAYS - 20, _DROP - 20}
    assert together.shuffled_incidents(small_year.transient, (), 5, seed=1).alarms == 0


def test_a_stretch_is_found_in_what_was_said(small_year: Replay) -> None:
    (event,) = [each for each in small_year.events if each.first.severity == "degraded"]
    begin = event.first.since
    stretch = real_page.Stretch("", "fs", "write_bw", begin, begin + timedelta(days=9), 3)
    assert event in stretch.events(small_year)
    assert stretch.sessions(small_year, event.first.day) == small_year.sessions(event)
    other = real_page.Stretch("", "fs", "read_bw", begin, begin + timedelta(days=9), 3)
    assert other.events(small_year) == []


def test_the_page_shows_and_draws_each_alert(small_year: Replay, tmp_path: Path) -> None:
    text = real_page.page(small_year, Path("year.csv"), "2026-11-21")
    numbers: dict[int, Event] = real_page.numbered(small_year)
    assert all(f"`{event.first.line}`" in text for event in numbers.values())
    assert real_page.unjudged(small_year) == [event.name for event in numbers.values()]
    real_page.draw(small_year, tmp_path)
    assert (tmp_path / "real-fs.png").read_bytes().startswith(b"\x89PNG")


_BEGAN = (_FIRST + timedelta(days=_DROP)).date()
_WRITES, _READS = frozenset(["ior shared write"]), frozenset(["ior shared read"])


def mark(kind: str, first: int, last: int, series: frozenset[str] = _WRITES) -> Mark:
    """Return a mark; its days count from the one on which the writes fall."""
    days = (_BEGAN + timedelta(days=each) for each in (first, last))
    return Mark("fs", kind, kind != "healthy", *days, series)


def test_a_mark_that_needs_an_alert_is_found_by_it(small_year: Replay) -> None:
    (event,) = [each for each in small_year.events if each.first.severity == "degraded"]
    score = Score(
        small_year, [mark("drop", 0, 14), mark("drop", 0, 14, _READS), mark("rise", 0, 14)]
    )
    fall, reads, rise = score.answers
    sessions = small_year.sessions(event)
    assert (fall.sessions, dict(fall.runs)) == (sessions, {"ior shared write": sessions})
    assert fall.words == f"`{event.first.line}`"
    assert (reads.sessions, dict(reads.runs)) == (None, {"ior shared read": None})
    assert rise.sessions is None
    assert score.unexplained(score.alarms) == []
    assert "| changes that need an alert: found | 1 of 3 | all | **missed** |" in summary(score)


@pytest.mark.parametrize(
    ("first", "last", "is_about"), [(3, 9, True), (3, 4, False), (-9, -1, False)]
)
def test_an_alert_dates_a_change_too_early_by_the_length_of_its_mark(
    small_year: Replay, first: int, last: int, is_about: bool
) -> None:
    score = Score(small_year, [mark("drop", first, last), mark("healthy", -5, 5)])
    assert (score.unexplained(score.alarms) == []) == is_about
    assert f"| of these in a healthy stretch | {int(not is_about)} |" in summary(score)


def test_the_statuses_of_all_evenings_are_counted(small_year: Replay) -> None:
    (event,) = [each for each in small_year.events if each.first.severity == "degraded"]
    assert len(small_year.statuses) == _DAYS
    assert small_year.statuses.count(2) == len(event.days)


def test_an_alert_that_comes_back_without_new_evidence_opened_again(small_year: Replay) -> None:
    days = [said(1, "degraded", "a"), said(2, "degraded", "a"), said(5, "degraded", "a")]
    score = Score(replace(small_year, said=tuple(days)), [])
    assert [event.first.day.day for event in score.reopened] == [5]
    new = replace(days[2], since=date(2026, 1, 3))
    assert Score(replace(small_year, said=(*days[:2], new)), []).reopened == []
    daily = [*days[:2], replace(days[2], day=date(2026, 1, 3))]
    assert Score(replace(small_year, said=tuple(daily)), []).reopened == []


def test_what_happens_to_an_alert_tells_of_the_series_that_it_names(small_year: Replay) -> None:
    alert = replace(said(1, "degraded", "a", "b"), day=_BEGAN, number=1)
    when = datetime.combine(_BEGAN + timedelta(days=2), _FIRST.timetz())
    fell = AlertEvent(when, 1, "fell", names=(slug(key("b")),))
    fall = Mark("fs", "drop", True, _BEGAN, _BEGAN + timedelta(days=9), frozenset(["a None write"]))
    assert fall.tells(replace(alert, happened=(fell,))) == frozenset()
    other = replace(fall, series=frozenset(["a None write", "b None write"]))
    assert other.tells(replace(alert, happened=(fell,))) == {key("b")}
    assert other.tells(replace(alert, happened=(fell,), direction="up")) == frozenset()
    late = replace(fell, when=when + timedelta(days=20))
    assert other.tells(replace(alert, happened=(late,))) == frozenset()
    assert Score(
        replace(small_year, said=(replace(alert, happened=(fell, late)),)), [other]
    ).fell == [
        True,
        False,
    ]


def test_an_alert_is_known_by_its_number(small_year: Replay) -> None:
    days = [replace(said(day, "degraded", tool), number=1) for day, tool in ((1, "a"), (9, "b"))]
    (event,) = events_of(days)
    assert event.days == days
    assert Score(replace(small_year, said=tuple(days)), []).reopened == [event]
    others = [days[0], replace(days[1], number=2)]
    assert len(events_of(others)) == 2
    assert Score(replace(small_year, said=tuple(others)), []).reopened == []


def test_a_changed_subject_is_not_one_of_changed_series(small_year: Replay) -> None:
    days = [said(1, "degraded", "a"), said(2, "degraded", "a"), said(3, "degraded", "a", "b")]
    days[1:] = [replace(each, subject=f"y{n}") for n, each in enumerate(days[1:])]
    score = Score(replace(small_year, said=tuple(days)), [])
    assert [after.day.day for _, after in score.renamed] == [2, 3]
    assert "| of these over the same series | 1 | 0 | **missed** |" in summary(score)


def test_a_test_that_stopped_has_no_data(small_year: Replay) -> None:
    stopped = Mark("fs", "gap", True, date(2026, 1, 3), date(2026, 1, 9), _WRITES)
    key = next(each.key for each in small_year.series if each.key.variable == "write_bw")
    days = [replace(said(day, "no data"), keys=frozenset([key])) for day in (2, 5, 6)]
    assert Score(replace(small_year, said=tuple(days)), [stopped]).stopped == [3]
    assert Score(replace(small_year, said=()), [stopped]).stopped == [None]


def test_the_marks_of_the_real_year_are_about_its_series(small_year: Replay) -> None:
    tools = {
        "ior": ("fpp", "shared"), "hacc_io_write": ("fpp",), "hacc_io_read": ("fpp",),
        "vpicio_uni": ("shared",), "dbscan_read": ("shared",),
    }  # fmt: skip
    ways = [("write_bw", "dbscan_read hacc_io_read"), ("read_bw", "vpicio_uni hacc_io_write")]
    every = [
        replace(
            small_year.series[0], key=replace(key(tool, way), pattern=pattern, file_system=place)
        )
        for place in ("scratch1", "scratch2", "scratch3")
        for tool, patterns in tools.items()
        for pattern in patterns
        for way, lacks in ways
        if tool not in lacks
    ]
    assert len(every) == 24
    found = read_marks(MARKS, replace(small_year, series=tuple(every)))
    assert all(each.first <= each.last for each in found)
    # 54 marks, 29 of them with an alert due, and ten dips of three file systems each
    assert len([each for each in found if each.is_change]) == 54 + 30
    assert len([each for each in found if each.is_must and each.is_change]) == 29
    assert len([each for each in found if each.is_must and not each.is_change]) == 6
