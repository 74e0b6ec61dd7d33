"""The page that compares several sites."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest

from iobands.judge.site import read_site
from iobands.model import CRITICAL, OK, UNKNOWN, WARNING
from iobands.snapshot import public
from iobands.views.dashboard.overview import Cluster, about_cluster, clusters_page
from iobands.views.dashboard.series import series_id
from iobands.views.dashboard.write import write_clusters, write_dashboard
from tests.factory import NOW, case, daily, write_perflog, write_report
from tests.sites import whole_demo
from tests.views.sites import dropped, look


def rows_of(page: str) -> list[list[str]]:
    """Return the cells of the tables that compare rates."""
    table = page.partition("What they deliver")[2]
    rows = re.findall(r"<tr>(.*?)</tr>", table)
    texts = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]
    return [[html.unescape(re.sub(r"<[^>]+>", "", text)) for text in row] for row in texts]


def test_series_are_compared_per_node_and_tebibyte_with_intervals(tmp_path: Path) -> None:
    # 1.0 to 3.4: the sign test leaves out 7 of 25 at each end (1 - 2 * 0.0216 = 0.957)
    values = [1 + 0.1 * (n * 7 % 25) for n in range(25)]
    clusters = []
    for name, factor in (("one", 1), ("two", 10)):
        perflogs = tmp_path / name / "perflogs"
        write_perflog(perflogs, daily([factor * each for each in values], nodes=4))
        if name == "one":
            seen = {"result": "pass", "fail_phase": None, "size_gib": 2048.0}
            seen["examines"] = "file system"
            write_report(perflogs, [case(display_name="EnvFileSystem", **seen)])
        site = look(tmp_path / name)
        clusters.append(about_cluster(name, f"{name}/", site))
    page = clusters_page(clusters, NOW)
    assert rows_of(page) == [
        ["Site", "Series", "Nodes", "GiB/s", "GiB/s per node", "GiB/s per TiB"],
        ["two", "disk fpp write_bw", "4", "22 (17–27)", "5.5 (4.25–6.75)", "–"],
        ["one", "disk fpp write_bw", "4", "2.2 (1.7–2.7)", "0.55 (0.425–0.675)", "1.1 (0.85–1.35)"],
    ]
    assert f'href="one/index.html#/series/{series_id(site.series[0].key)}"' in page
    few = replace(clusters[0], rates=()), clusters[1]
    assert "What they deliver" not in clusters_page(few, NOW)


def test_each_system_of_a_site_is_compared(tmp_path: Path) -> None:
    """Their file systems often have the same names."""
    clusters = []
    for name, systems in (("one", ("a", "b")), ("two", ("c",))):
        for factor, system in enumerate(systems, 1):
            values = [factor * (1 + 0.1 * (n * 7 % 25)) for n in range(25)]
            rows = daily(values, system=system, nodes=4)
            write_perflog(tmp_path / name / "perflogs", rows, system=system)
        clusters.append(about_cluster(name, f"{name}/", look(tmp_path / name)))
    shown = [row[:2] for row in rows_of(clusters_page(clusters, NOW))]
    of_b, of_a = "disk fpp system=b write_bw", "disk fpp system=a write_bw"
    assert shown[1:] == [["one", of_b], ["one", of_a], ["two", "disk fpp write_bw"]]


def test_the_public_page_of_all_says_what_the_public_dashboard_says(tmp_path: Path) -> None:
    whole_demo(tmp_path, NOW)
    config = tmp_path / "config"
    site = read_site(tmp_path / "perflogs", config / "bands", config / "alerts", now=NOW)
    for seen, advice in ((site, True), (public(site), False)):
        page = clusters_page([about_cluster("one", "one/", seen)], site.now)
        assert "OST 7 of fast" in page
        assert ("drain it" in page) == advice
        assert ("slower than usual" if not advice else "CRITICAL") in page
        counts = "alerts: 2 degraded" if advice else "32<"
        assert f"made up, nothing was measured; {counts}" in page
        assert '<span class="tag critical">' in page  # as the page of the site has it
        assert ("needs attention" in page) == ("run iobands report" in page) == advice
        assert ("<h1>I/O is as usual at none of 1 sites" in page) != advice


def test_a_site_that_judges_nothing_yet_is_not_ok(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.0]))
    for seen, word, headline in (
        (look(tmp_path), "CALIBRATING", "None of 1 sites needs attention"),
        (public(look(tmp_path)), "too new to tell", "I/O is as usual at none of 1 sites"),
    ):
        page = clusters_page([about_cluster("one", "one/", seen)], NOW)
        assert f'<span class="tag calibrating">{word}</span>' in page
        assert f"<h1>{headline}</h1>" in page


@pytest.mark.parametrize(("days", "word"), [(1.9, "CRITICAL"), (2.1, "UNKNOWN")])
def test_a_site_without_a_run_for_two_days_is_unknown_as_on_its_own_page(
    tmp_path: Path, days: float, word: str
) -> None:
    write_perflog(tmp_path / "perflogs", daily(dropped(0.6), last=days))
    site = look(tmp_path)
    assert site.exit_status == CRITICAL
    page = clusters_page([about_cluster("one", "one/", site)], NOW)
    assert f'<span class="tag {word.lower()}">{word}</span>' in page
    assert "1 of 1 sites needs attention" in page


def test_an_alert_whose_reason_is_not_public_says_what_it_is(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.0] * 10, last=20.25))
    page = clusters_page([about_cluster("one", "one/", public(look(tmp_path)))], NOW)
    assert '<a href="one/index.html">disk fpp write_bw</a>: no data' in page


def test_users_are_shown_no_count_of_alerts(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily(dropped(0.6)))
    site = look(tmp_path)
    assert "alerts: 1 degraded" in clusters_page([about_cluster("one", "one/", site)], NOW)
    page = clusters_page([about_cluster("one", "one/", public(site))], NOW)
    assert '<td class="wide" data-label="Series">1</td>' in page
    assert "1 degraded" not in page


@pytest.mark.parametrize(
    ("sites", "headline"),
    [
        ([(OK, False), (WARNING, False)], "None of 2 sites needs attention"),
        ([(OK, False), (WARNING, True)], "1 of 2 sites needs attention"),
        ([(CRITICAL, True), (UNKNOWN, False)], "2 of 2 sites need attention"),
    ],
)
def test_what_is_acknowledged_needs_no_attention(
    sites: list[tuple[int, bool]], headline: str
) -> None:
    alerts = [("7 home writes", "−31 %", "alert-7.html")]
    page = clusters_page(
        [
            Cluster(f"site {n}", "", status, "", "never", alerts if has_alert else [], ())
            for n, (status, has_alert) in enumerate(sites)
        ],
        NOW,
    )
    assert f"<h1>{headline}</h1>" in page


def test_nothing_of_a_single_site_that_was_there_is_left(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily(dropped(0.6), job_nodelist="node-of-kim"))
    site, page = look(tmp_path), tmp_path / "page"
    write_dashboard(site, page)
    write_dashboard(site, page / "one")
    assert [*page.glob("alerts/*")]
    write_clusters(page, [about_cluster("one", "one/", site)] * 2, NOW)
    assert not [each for name in ("alerts", "data") for each in (page / name).rglob("*")]
    assert [*page.glob("one/alerts/*")]


def test_no_dashboard_of_a_site_that_left_the_page_is_left(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily(dropped(0.6), job_nodelist="node-of-kim"))
    site, page = look(tmp_path), tmp_path / "page"
    for name in ("one", "a two", "others"):
        write_dashboard(site, page / name)
    two = about_cluster("a two", "a%20two/", site)
    write_clusters(page, [about_cluster("one", "one/", site), two], NOW)
    unread = Cluster("a two", "", UNKNOWN, "cannot be read", "unknown", (), ())
    write_clusters(page, [unread, unread], NOW)
    assert not [*(page / "one").glob("data/*"), *(page / "one").glob("alerts/*")]
    assert not (page / "one" / "index.html").exists()  # it would wait for its data forever
    assert [*(page / "a two").glob("data/*")]  # it may be read the next time
    write_clusters(page, [two, two], NOW)
    write_clusters(page, [unread, unread], NOW, public=True)
    assert not [*(page / "a two").glob("data/*")]
    assert [*(page / "others").glob("data/*")]  # which no page of several sites had


def test_no_dashboard_of_several_sites_is_left_when_one_of_them_stays(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily(dropped(0.6), job_nodelist="node-of-kim"))
    site, page = look(tmp_path), tmp_path / "page"
    for name in ("one", "two"):
        write_dashboard(site, page / name)
    write_clusters(page, [about_cluster(name, f"{name}/", site) for name in ("one", "two")], NOW)
    write_dashboard(site, page)
    assert [*page.glob("data/*")]
    assert not [*page.glob("*/data/*"), *page.glob("*/alerts/*"), *page.glob("*/index.html")]
    assert not [*page.glob("clusters.*")]
    page.joinpath("clusters.css").write_text("of somebody else")
    write_dashboard(site, page)
    assert [*page.glob("clusters.*")]
