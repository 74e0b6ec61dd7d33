"""Checks that fail now and then: the rule, and their alerts through time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product
from math import comb
from pathlib import Path

import numpy as np
import pytest

from iobands.judge.happenings import SESSIONS, enough
from iobands.judge.requests import RequestError
from iobands.snapshot import ACKNOWLEDGE, Alert, Snapshot
from iobands.source.action_log import ALERT_LOG, alert_log
from iobands.views.digest import digest_text, explanation
from tests.factory import NOW, daily, days_ago
from tests.sites import DAY, SiteFiles

#: Eight checks; each measures writes and reads.
CHECKS = [f"fs{number}" for number in range(8)]


def write(
    root: Path,
    failures: Collection[int],
    days: int = 100,
    others: Collection[int] = (),
    checks: Sequence[str] = CHECKS,
    two: Collection[int] = (),
) -> SiteFiles:
    """Write days of a site; the check of `fs0` fails `failures` days ago, all checks on `others`.

    On the days of `two`, the checks of `fs0` and `fs1` fail.
    """
    rows: list[str] = []
    for number, (name, variable) in enumerate(product(checks, ("write_bw", "read_bw"))):
        values: list[float | None] = [
            float(each) for each in 2 * np.exp(np.random.default_rng(number).normal(0, 0.03, days))
        ]
        alone, both = failures if name == "fs0" else (), two if name in ("fs0", "fs1") else ()
        for ago in (*alone, *both, *others):
            values[days - 1 - ago] = None
        rows += daily(values, file_system=name, pattern="fpp", perf_var=variable)
    return SiteFiles(root).write(rows)


def flaky(alerts: Sequence[Alert]) -> list[Alert]:
    return [each for each in alerts if each.severity.value == "flaky"]


def test_so_many_failures_are_no_chance() -> None:
    # a hundred checks a day at a rate of one in 200, one false alarm in ten years
    rate, a_year = 0.005, 100 * 365 / 0.1
    least = enough(a_year, rate)

    def alarms(least: int) -> float:
        tail = sum(
            comb(39, n) * rate**n * (1 - rate) ** (39 - n) for n in range(least - 1, SESSIONS)
        )
        return a_year * rate * tail

    assert alarms(least) <= 1 < alarms(least - 1)
    assert least == 5
    assert enough(365, 0.001) == 3
    assert enough(a_year, 0.1) > 10


@pytest.mark.parametrize("rate", [0.005, 0.02])
def test_healthy_checks_are_rarely_flaky(rate: float) -> None:
    # 20 checks for 500 years: at most a tenth of an alarm per year
    random, checks, years = np.random.default_rng(3), 20, 500
    least = enough(checks * 365 / 0.1, rate)
    failed = random.random((checks * years, 365)) < rate
    sums = np.cumsum(np.pad(failed, ((0, 0), (1, 0))), axis=1)
    within = sums[:, SESSIONS:] - sums[:, :-SESSIONS]
    assert (within >= least).any(axis=1).sum() / years <= 0.1


def test_a_check_that_fails_now_and_then_is_one_alert(tmp_path: Path) -> None:
    site = write(tmp_path, (3, 9, 20, 30)).read()
    (alert,) = flaky(site.alerts)
    assert alert.number == 1
    assert {each.series.key.file_system for each in alert.members} == {"fs0"}
    assert alert.reason == (
        "failed in 4 of the last 40 sessions; the last on 17 Nov: failed in sanity"
    )
    assert alert.since is not None
    assert alert.since == NOW - 30.25 * DAY
    assert site.exit_status == 1
    assert all(each.status.state.value == "healthy" for each in site.series)
    found = digest(site)
    assert "  flaky  1 fs0 fpp  failed in 4 of the last 40 sessions; the last on 17 Nov" in found


def test_its_failures_are_all_that_people_count(tmp_path: Path) -> None:
    # three in a row, and a bad day of all checks, which is the newest failure
    site = write(tmp_path, (9, 10, 11, 20, 30, 35), others=(2,)).read()
    (alert,) = flaky(site.alerts)
    assert alert.reason == (
        "failed in 7 of the last 40 sessions; the last on 18 Nov: failed in sanity"
    )
    (series, *_) = [member.series for member in alert.members]
    shown = explanation(site, series, 100)
    assert "7 of the last 40 sessions, newest 18 Nov 19:30 in sanity" in shown


def digest(site: Snapshot) -> str:
    from rich.console import Console  # noqa: PLC0415

    return digest_text(site, Console(width=80))


@pytest.mark.parametrize(
    ("failures", "others"),
    [
        ((3, 9), ()),  # twice
        ((3, 4, 5, 6, 7, 8), ()),  # an outage of six days
        ((50, 62, 75, 90), ()),  # over
        ((), (3, 9, 20, 30)),  # everything failed on these days
    ],
)
def test_what_is_not_flaky(
    tmp_path: Path, failures: tuple[int, ...], others: tuple[int, ...]
) -> None:
    assert flaky(write(tmp_path, failures, others=others).read().alerts) == []


def test_a_bad_night_that_midnight_cuts_in_two_makes_no_check_flaky(tmp_path: Path) -> None:
    rows = []
    for number, name in enumerate(CHECKS):
        values: list[float | None] = [2 + 0.01 * (day % 7) for day in range(100)]
        for ago in (3, 12, 20, 30) if number in (0, 1, 7) else ():
            values[99 - ago] = None
        # from 20:00 to 01:00, all in UTC
        rows += daily(values, last=(5.5 - 0.7 * number) / 24, file_system=name)
    assert not flaky(SiteFiles(tmp_path).write(rows).read().alerts)


def test_it_is_over_after_as_many_good_sessions(tmp_path: Path) -> None:
    files = write(tmp_path, (41, 50, 62, 70), days=120)
    (past,) = flaky(files.read().past)
    assert past.ended == NOW - 41.25 * DAY
    assert [each.kind for each in past.events] == ["opened", "closed"]
    assert past.events[-1].when == NOW - 1.25 * DAY
    (still,) = flaky(files.judge(NOW - 2 * DAY, as_of=True).snapshot.alerts)
    assert still.number == past.number


def test_told_in_parts_is_as_at_once(tmp_path: Path) -> None:
    failures = (5, 11, 20, 28, 33, 90, 96, 101, 110)
    files = write(tmp_path, failures, days=160, checks=CHECKS[:2])
    at_once = [each.events for each in (*files.read().past, *files.read().alerts) if each.number]
    for ago in range(120, -1, -4):
        judged = files.judge(NOW - ago * DAY, as_of=True, with_power=False)
        for system, events in judged.news.items():
            ALERT_LOG.append(alert_log(files.perflogs, system), events)
    site = files.read()
    assert [each.events for each in (*site.past, *site.alerts) if each.number] == at_once
    assert [len(flaky(each)) for each in (site.past, site.alerts)] == [1, 1]


def test_one_that_was_resolved_says_by_whom_and_can_be_undone(tmp_path: Path) -> None:
    files = write(tmp_path, (3, 10, 17, 24, 31))
    files.act("resolve", "1", reason="a cable")
    over = files.read()
    (past,) = over.past
    assert [each.series.label for each in past.members] == [
        "fs0 fpp read_bw",
        "fs0 fpp write_bw",
    ]
    said = explanation(over, past)
    assert "by jane: a cable" in said
    assert "Cause: unknown" not in said
    files.act("undo", "1", now=NOW + DAY / 24)
    assert len(flaky(files.read(NOW + DAY / 24).alerts)) == 1


def test_an_answer_makes_no_other_check_flaky(tmp_path: Path) -> None:
    # days on which two of six checks fail are bad days, also after an answer about one of them
    files = write(tmp_path, (3, 8, 15, 22, 29), checks=CHECKS[:6], two=(12, 19, 26, 33, 38))
    (alert,) = flaky(files.read().alerts)
    assert {each.series.key.file_system for each in alert.members} == {"fs0"}
    files.act("resolve", "1", reason="a cable")
    site = files.read()
    assert not site.alerts
    assert [each.number for each in site.past] == [1]


def test_its_series_have_no_level_that_could_be_normal(tmp_path: Path) -> None:
    files = write(tmp_path, (3, 10, 17, 24, 31))
    site = files.read()
    assert "iobands resolve 1" in explanation(site, site.alerts[0])
    assert "rebaseline" not in explanation(site, site.alerts[0])
    with pytest.raises(RequestError, match="is about failed runs, not about a level"):
        files.act("rebaseline", "1")


def change_level(root: Path, factor: float, days: float) -> None:
    """Multiply the writes of `fs0` by `factor` from `days` ago on."""
    path = root / "perflogs" / "here" / "local" / "BenchioFPP.log"
    cells = [text.split("|") for text in path.read_text().splitlines()]
    names = {name: place for place, name in enumerate(cells[0])}
    for row in cells[1:]:
        is_other = row[names["file_system"]] == "fs0" and row[names["perf_var"]] == "write_bw"
        if is_other and row[0] > days_ago(days) and row[names["perf_value"]] != "null":
            row[names["perf_value"]] = str(factor * float(row[names["perf_value"]]))
    path.write_text("".join(f"{'|'.join(row)}\n" for row in cells))


def test_it_does_not_hide_the_drop_of_one_of_its_series(tmp_path: Path) -> None:
    files = write(tmp_path, (3, 10, 17, 24, 31))
    change_level(tmp_path, 0.6, 12)
    assert files.act("acknowledge", "fs0 fpp write_bw").direction == "down"


@pytest.mark.parametrize("factor", [0.6, 1.4])
def test_its_answer_is_not_about_a_change_that_began_before(tmp_path: Path, factor: float) -> None:
    files = write(tmp_path, (3, 8, 13, 18, 23))
    change_level(tmp_path, factor, 27)
    (alert,) = flaky(files.read().alerts)
    action = files.act("resolve", str(alert.number), force=True)
    assert action.since == alert.since_low == NOW - 23.25 * DAY


def test_it_can_be_acknowledged_and_stays_so(tmp_path: Path) -> None:
    files = write(tmp_path, (3, 9, 20, 30))
    files.act(ACKNOWLEDGE, "1")
    (alert,) = flaky(files.read().alerts)
    assert alert.is_quiet
