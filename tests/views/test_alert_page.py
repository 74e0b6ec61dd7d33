"""The page of an alert: what it shows of open and past alerts, and what it never shows."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from iobands.snapshot import (
    ACKNOWLEDGE,
    DOWN,
    MERGED,
    OPENED,
    Alert,
    AlertEvent,
    Member,
    Ratio,
    Severity,
    Snapshot,
    public,
)
from iobands.views.alert_lines import MOST_PAST, page_of, with_pages
from iobands.views.dashboard.alert_page import alert_pages, frame_of, picture
from iobands.views.dashboard.write import write_dashboard
from iobands.views.explain_alert import of_alert
from iobands.views.explain_series import of_series
from tests.factory import NOW, daily, days_ago, line, write_perflog
from tests.sites import DAY, SiteFiles, slow
from tests.views.sites import look


def pages(site: Snapshot) -> dict[str, str]:
    return dict(alert_pages(site))


def text(page: str) -> str:
    """Return what a reader sees."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def times(*days: float) -> np.ndarray:
    return np.array([np.datetime64("2026-10-01", "ns") + np.timedelta64(int(24 * d), "h")
                     for d in days])  # fmt: skip


def test_an_open_alert_and_one_of_the_past_have_a_page(tmp_path: Path) -> None:
    def both(fields: dict[str, str], day: int) -> float:
        past = slow(0.6, since=70, until=40, file_system="a")
        return past(fields, day) * slow(0.6, since=12, file_system="b")(fields, day)

    site = SiteFiles(tmp_path).days(both).read()
    found = pages(site)
    assert set(found) == {"alerts/here-1.html", "alerts/here-2.html"}
    past, new = (text(found[f"alerts/here-{number}.html"]) for number in (1, 2))
    assert "Alert 1 a writes" in past
    assert "recovered" in past
    assert "Next step" not in past
    assert "Alert 2 b writes" in new
    assert "iobands acknowledge 2 --reason TEXT" in new
    assert "Owner: nobody has acknowledged it" in new
    assert "Owner" not in past
    # on a phone, the pictures fill several screens
    assert new.index("Next step") < new.index("Series that moved: 4 of 4")
    # a chart for each of the four members; no series that stayed shares their name
    assert found["alerts/here-2.html"].count("<svg") == 4
    assert "a: none of 4 series went down" in new
    assert "<details open><summary>All that did not move" in found["alerts/here-2.html"]
    again = dict(alert_pages(replace(site, now=site.now + DAY)))
    assert again["alerts/here-1.html"] == found["alerts/here-1.html"]  # nothing to write again


def test_a_merged_alert_leads_to_the_one_that_took_its_series(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(0.6, since=12, file_system="a")).read()
    (alert,) = site.alerts
    over = replace(alert, number=4, ended=NOW, end="recovered")
    merged = (*alert.events, AlertEvent(NOW, 2, MERGED, into=1))
    ended = replace(over, number=2, end="merged into 1", events=merged)
    others = replace(ended, number=3, system="there"), over
    found = pages(replace(site, past=(ended, *others)))
    link = '<a href="../alerts/here-1.html">degraded from 9 Nov to 21 Nov: merged into 1</a>'
    assert [name for name, page in found.items() if link in page.replace("\u00a0", " ")] == [
        "alerts/here-2.html"
    ]
    assert sum("../alerts/" in page for page in found.values()) == 1


def test_what_did_not_move_is_drawn_beside_it(tmp_path: Path) -> None:
    factor = slow(0.5, since=12, file_system="a", pattern="fpp")
    site = SiteFiles(tmp_path).days(factor, variables=("write_bw", "read_bw")).read()
    (page,) = pages(site).values()
    members, still = page.split("Did not move")
    drawn = len(site.alerts[0].members)
    assert members.count("<svg") == drawn
    assert still.count("<svg") == still.count("/s before") == min(6, 8 - drawn)


def test_what_was_down_already_is_named_with_its_alert_and_not_drawn(tmp_path: Path) -> None:
    early = slow(0.5, since=30, pattern="fpp", variable="read_bw")
    late = slow(0.5, since=12, pattern="fpp", variable="write_bw")
    files = SiteFiles(tmp_path).days(
        lambda fields, day: early(fields, day) * late(fields, day),
        variables=("write_bw", "read_bw"),
    )
    site = files.read()
    first, second = (pages(site)[f"alerts/here-{number}.html"] for number in (1, 2))
    (alert,) = [each for each in site.alerts if each.number == 1]
    early_ones = [each.series.label for each in alert.members]
    (said,) = re.findall(r"<li>Already down, alert 1: (.+?)</li>", second)
    assert sorted(said.split(", ")) == sorted(early_ones)
    assert "Already" not in first
    assert "/s before" not in second  # nothing else shares its name


def test_a_picture_has_the_levels_before_and_since_and_the_onset() -> None:
    alert = Alert(
        Severity.DEGRADED, "a", since=NOW, direction=DOWN, number=1, system="here",
    )  # fmt: skip
    of_runs = times(*range(20))
    since = of_runs[10].astype("datetime64[us]").item().replace(tzinfo=NOW.tzinfo)
    window = frame_of(replace(alert, since=since), [of_runs])
    svg = picture(window, of_runs, np.array([10.0] * 10 + [5.0] * 10), (10.0, 5.0))
    # 300 wide for 19 days, so 158 to the onset; 92 high for 11.5, so 12 and 52 down
    assert '<path class="onset" d="M158 0V92"/>' in svg
    assert '<path class="before" d="M0 12H158"/>' in svg
    assert '<path class="since" d="M158 52H300"/>' in svg
    assert svg.count("h0") == 20
    assert "M300 52h0" in svg


def test_the_newest_run_of_each_series_is_drawn_and_behind_its_link(tmp_path: Path) -> None:
    rows = []
    for seconds, pattern in enumerate(("fpp", "ssf", "fpn")):
        last = 0.25 - 0.0101 * seconds  # a quarter of an hour after the one before
        values = [2.0] * 40 + [1.0] * 20
        rows += daily(values, last=last, pattern=pattern)
    write_perflog(tmp_path / "perflogs", rows)
    site = look(tmp_path)
    (page,) = pages(site).values()
    assert [svg.count("h0") for svg in re.findall("<svg.*?</svg>", page)] == [60] * 3
    ends = re.findall(r"to=(\d{4}-\d\d-\d\dT\d\d:\d\d)", page)
    newest = max(each.history.last for each in site.series)
    assert newest.second > 0
    assert all(f"{newest:%Y-%m-%dT%H:%M:%S}" < f"{end}:00" for end in ends)


def test_ten_years_of_an_open_alert_are_a_small_picture() -> None:
    alert = Alert(Severity.DEGRADED, "a", since=NOW, number=1, system="here")
    of_runs = times(*range(3650))
    since = of_runs[100].astype("datetime64[us]").item().replace(tzinfo=NOW.tzinfo)
    svg = picture(frame_of(replace(alert, since=since), [of_runs]), of_runs, np.ones(3650))
    assert 180 <= svg.count("h0") <= 240
    assert len(svg) < 4000


def test_only_the_newest_of_the_past_have_a_page(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(0.6, since=12, file_system="a")).read()
    (alert,) = site.alerts
    past = tuple(
        replace(alert, number=100 + n, ended=NOW - n * DAY, end="recovered", members=())
        for n in range(MOST_PAST + 5)
    )
    numbers = [each.number for each in with_pages(replace(site, past=past))]
    assert numbers == [1, *range(100, 100 + MOST_PAST)]


def test_pages_of_alerts_that_are_gone_are_removed(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path)
    site = files.days(slow(0.6, since=12, file_system="a")).read()
    write_dashboard(site, tmp_path / "page")
    page = tmp_path / "page" / "alerts" / "here-1.html"
    theirs = page.with_name("theirs.html")
    theirs.write_text("<!DOCTYPE html>\n<html lang='en'>")
    assert page.exists()
    write_dashboard(replace(site, alerts=()), tmp_path / "page")
    assert not page.exists()
    assert theirs.exists()


def test_hostile_names_are_text(tmp_path: Path) -> None:
    evil = "</title><img src=x onerror=evil()>\"'&\x1b\u2028"
    plain = evil.replace("\x1b\u2028", "")  # a perflog cannot contain these characters
    rows = daily([2.0] * 40 + [1.0] * 9, file_system=plain, medium=plain, jobid=plain)
    write_perflog(tmp_path / "perflogs", rows)
    site = look(tmp_path)
    assert site.alerts
    alert = replace(site.alerts[0], reason=evil, subject=evil)
    event = AlertEvent(NOW, 1, OPENED, subject=evil, names=(evil,))
    site = replace(site, alerts=(replace(alert, events=(event,), number=1, system=evil),))
    (page,) = pages(site).values()
    assert "<img" not in page
    assert "\x1b" not in page
    assert page.count("</title>") == 1
    assert "&lt;img src=x onerror=evil()&gt;" in page
    assert "<script" not in page


def test_public_pages_have_nobody_and_no_command(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).days(slow(0.6, since=12, file_system="a"))
    files.act(ACKNOWLEDGE, "1", reason="a secret switch")
    site = files.read()
    grew = AlertEvent(NOW, 1, "renamed", subject="node cn7 of compute", names=("node cn7 of x",))
    site = replace(site, alerts=tuple(replace(a, events=(*a.events, grew)) for a in site.alerts))
    (private,) = pages(site).values()
    (shown,) = pages(public(site)).values()
    hidden = ("jane", "a secret switch", "cn7", "iobands acknowledge", "iobands resolve")
    assert [each for each in hidden if each not in private] == ["iobands acknowledge"]
    assert [each for each in hidden if each in shown] == []
    assert "a writes" in shown
    assert "acknowledged at 01:30</li>" in shown
    assert shown.count("<svg") == private.count("<svg")


def test_members_without_a_level_are_drawn(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([2.0] * 40))
    site = look(tmp_path)
    member = Member(site.series[0], Ratio(float("nan"), 0.0, float("inf")), 2.0)
    alert = Alert(Severity.INCIDENT, "a", (member, Member(site.series[0])), number=4, system="x",
                  since=NOW - 5 * DAY)  # fmt: skip
    (page,) = pages(replace(site, alerts=(alert,))).values()
    assert page.count("<svg") == 2
    assert "nan" not in page.lower()


def test_a_target_that_was_slow_once_is_drawn_from_its_own_level(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)

    def run(
        day: int,
    ) -> str:  # target 7 has 1.2 times the others' speed, and half of it for 20 days
        speeds = np.exp(rng.normal(0, 0.05, 24))
        speeds[7] *= 1.2 * (0.5 if 20 <= day < 40 else 1)
        listed = ",".join(f"{number}:{speed:.4f}" for number, speed in enumerate(speeds))
        return line(
            job_completion_time=days_ago(day + 0.25),
            target_bandwidths=f"write_bw={listed}",
            file_system_type="lustre",
            perf_value=rng.normal(1.5, 0.1),
        )

    site = SiteFiles(tmp_path).write([run(day) for day in range(99, -1, -1)]).read()
    (page,) = pages(site).values()
    assert "OST 7 of disk" in page
    before, since = (
        float(re.search(rf'"{n}" d="M\d+ (\d+)H', page)[1]) for n in ("before", "since")
    )
    axis = float(re.search(r'class="axis" d="M0 (\d+)H', page)[1])
    # 45 runs before it, its 20 runs and 15 after it
    assert len(re.findall(r"M\d+ \d+h0", page)) == pytest.approx(80, abs=5)
    assert (axis - since) / (axis - before) == pytest.approx(0.5, abs=0.05)


def test_the_page_of_a_flaky_check_moves_no_level(tmp_path: Path) -> None:
    failing = [None if day % 6 == 0 else 1 + day % 7 / 70 for day in range(60)]
    site = SiteFiles(tmp_path).write(daily(failing)).read()
    (alert,) = site.alerts
    for shown in (site, public(site)):
        (page,) = pages(shown).values()
        assert "Its series: 1" in page
        assert "moved" not in page
        assert "level before" not in page
    assert "iobands resolve 1" in pages(site)[page_of(alert)]
    assert "rebaseline" not in pages(site)[page_of(alert)]
    said = [*of_alert(site, alert)]
    assert "Its series: 1" in said
    assert "Next step: see whether the checks run, and how they ended" in said
    of_its_series = [*of_series(site, site.series[0])]
    assert "Next step: see whether the check runs, and how it ended" in of_its_series
