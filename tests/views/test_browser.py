"""The dashboard in a real browser: what people see and do there, and that there are no errors."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from iobands.judge.account import accounts_of
from iobands.judge.advise import compare
from iobands.snapshot import VERDICTS, Snapshot, public
from iobands.views.dashboard.overview import Cluster, about_cluster
from iobands.views.dashboard.series import job_id, series_id
from iobands.views.dashboard.write import write_clusters, write_dashboard
from iobands.views.maintenance import page_about
from iobands.views.writing import Heading, Table, figure
from tests.factory import NOW, daily, write_perflog, write_session
from tests.judge.test_peers import with_targets
from tests.sites import SiteFiles, slow
from tests.views.sites import RUNS, acknowledge, dropped, healthy, look

pytestmark = [pytest.mark.machine, pytest.mark.xdist_group("browser")]

EVIL = "<img src=x onerror=evil()>\"'"
# milliseconds, generous: they only end a failed test
TIMEOUT = 300_000
expect.set_options(timeout=TIMEOUT)
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 900}

Open = Callable[..., Page]


def rows_of(file_system: str, transport: str, values: list[float], seed: int) -> list[str]:
    fields = {"file_system": file_system, "transport": transport, "environ": f"gnu-{transport}"}
    load = [f"{0.1 + day % 9 / 10:.1f}" for day in range(len(values))]
    rows = []
    for variable, measured in (("write_bw", values), ("read_bw", healthy(seed=seed + 50))):
        for day, value in enumerate(measured):
            last = 0.25 + len(measured) - 1 - day
            more = {"jobid": 4000 + day, "load_per_node": load[day], "perf_var": variable}
            rows += daily([value], last=last, **fields, **more)
    return rows


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """A site with a drop that two series share, a missing run and a hostile name."""
    root = tmp_path_factory.mktemp("browser")
    rows = []
    for seed, (name, transport) in enumerate(
        (("slow", "ofi"), ("slow", "ucx"), ("good", "ofi"), ("good", "ucx"))
    ):
        values = dropped(0.6, seed) if name == "slow" else healthy(seed=seed)
        rows += rows_of(name, transport, values, seed)
    for speed, days, last in ((1, 26, 4.25), (0.5, 4, 0.25)):  # of target 2
        speeds = f"write_bw=0:1,1:1,2:{speed},3:1"
        rows += daily([1.0] * days, last=last, file_system="lustre", target_bandwidths=speeds)
    rows += daily([1.0] * 3 + [None], file_system=EVIL, jobid=EVIL, hints_in_effect=EVIL)
    write_perflog(root / "perflogs", rows)
    write_session(root / "perflogs", NOW - timedelta(days=1))
    site = look(root)
    write_dashboard(site, root / "page")
    write_clusters(root / "page" / "all", [about_cluster("one", "../", site)], NOW)
    return site


def address_of(page: Page) -> str:
    """Return the fragment of the page's address; `page.url` is updated only later."""
    return page.evaluate("location.hash")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser without a screen."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(
    browser: Browser, site: Snapshot, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Open]:
    """Opens a place of the dashboard in a new window; no window may report an error.

    Each window is closed after its test, because an open one costs processor time.
    """
    root = tmp_path_factory.getbasetemp() / "browser0" / "page"
    wrong: list[str] = []
    windows = []

    def open_(place: str = "", *, later: timedelta = timedelta(0), **options: object) -> Page:
        options = {"viewport": DESKTOP, "color_scheme": "light", **options}
        window = browser.new_context(**options)
        windows.append(window)
        page = window.new_page()
        page.set_default_timeout(TIMEOUT)
        page.clock.install(time=NOW + later)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else 0)
        page.on("request", lambda asked: is_own(asked.url) or wrong.append(asked.url))
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.goto(f"{root.as_uri()}/index.html{place}")
        page.wait_for_selector("h1", state="attached")
        return page

    def is_own(url: str) -> bool:
        return url.startswith((root.as_uri(), "data:", "blob:"))

    yield open_
    for window in windows:
        window.close()
    assert wrong == []


def id_of(site: Snapshot, *values: str) -> str:
    (found,) = (each.key for each in site.series if set(values) <= {*each.key.fields().values()})
    return series_id(found)


def violations(page: Page, **options: object) -> list[str]:
    # preloading would fetch the style sheets again, which the page forbids
    found = Axe().run(page, options={"preload": False, **options}).response["violations"]
    return [f"{each['id']}: {node['html']}" for each in found for node in each["nodes"]]


def test_the_front_page_says_what_is_wrong_since_when_and_how_sure(opened: Open) -> None:
    page = opened()
    first = page.locator("#needs-attention li").first.inner_text().replace("\u00a0", " ")
    assert "slow fpp writes" in first
    assert "since 6 Nov" in first
    assert "certain" in first
    expect(page.locator("#state")).to_contain_text("CRITICAL slow fpp writes: −")
    expect(page.locator("#state .summary")).to_contain_text("since 6 Nov")
    expect(page.locator("#recent .heat tbody tr")).to_have_count(10)
    assert page.evaluate("window.evil") is None
    expect(page.locator("img")).to_have_count(0)
    cell = page.locator(".heat tbody tr").first.locator("a").last
    assert "collapsed, alert 1 slow fpp writes" in cell.get_attribute("aria-label")
    cell.click()
    page.wait_for_selector("h1 >> text=Alert 1 slow fpp writes")
    page.locator("figure a").first.click()
    page.wait_for_selector("h1 >> text=slow")
    expect(page.locator(".run")).to_contain_text("20 Nov 19:30")


def test_an_old_page_is_never_green(opened: Open) -> None:
    fresh = opened(later=timedelta(days=1))
    expect(fresh.locator("#state .tag")).to_contain_text("CRITICAL")
    old = opened(later=timedelta(days=3, hours=9))
    expect(old.locator("#state .tag")).to_contain_text("UNKNOWN")
    expect(old.locator("#state")).to_contain_text("no run for 3 days")
    expect(old.locator("#state")).to_contain_text("newest session 4 days ago: completed")
    said = """word => iobands.judgement({ ...iobands.site, word, headline: "all: no data" },
      iobands.site.newest + 30 * 86400).text"""
    no_run = "no run for 30 days, and one is expected every 24 hours"
    assert old.evaluate(said, "UNKNOWN") == no_run  # and not that there are no data
    assert old.evaluate(said, "WARNING") == f"{no_run}; last known: WARNING, all: no data"
    fresh.clock.run_for(timedelta(days=2).total_seconds() * 1000)
    expect(fresh.locator("#state .tag")).to_contain_text("UNKNOWN")


def test_a_page_of_the_past_has_the_age_that_its_runs_had_then(opened: Open) -> None:
    page = opened(later=timedelta(days=30))
    page.evaluate("iobands.site.past = true; iobands.showState()")
    expect(page.locator("#state .tag")).to_contain_text("CRITICAL")
    expect(page.locator("#state .note")).to_contain_text("newest run 6 hours ago")
    expect(page.locator("#state .note")).to_contain_text("newest session 24 hours ago")
    expect(page.locator("#state .note")).to_contain_text("as it was known then")
    for made, said in ((20, "just now"), (45, "45 seconds ago"), (-3600, "dated in the future")):
        page.evaluate(f"iobands.site.made = iobands.site.newest + {made}; iobands.showState()")
        expect(page.locator("#state .note")).to_contain_text(f"newest run {said}; newest session")


def test_a_made_up_site_says_so(opened: Open) -> None:
    page = opened("#/compare")
    expect(page.locator(".banner")).to_have_count(0)
    page.evaluate("iobands.site.made_up = true; iobands.showState()")
    expect(page.locator(".banner")).to_contain_text("made-up")
    assert page.title().startswith("Made up · Compare · CRITICAL")


def test_what_cannot_be_judged_is_not_green(opened: Open) -> None:
    page = opened()
    word = """(states) => iobands.judgement({ ...iobands.site, word: "OK",
      series: states.map((state) => ({ state })) }, iobands.site.made).word"""
    assert page.evaluate(word, ["calibrating", "calibrating"]) == "CALIBRATING"
    assert page.evaluate(word, ["calibrating", "healthy"]) == "OK"
    text = """() => iobands.judgement({ ...iobands.site, word: "OK", headline: "",
      counts: "calibrating: at least 15 more runs; 2 series", series: [{ state: "calibrating" }] },
      iobands.site.made).text"""
    assert page.evaluate(text) == "at least 15 more runs; 2 series"  # behind CALIBRATING
    page.evaluate("""() => { Object.assign(iobands.site, { word: "OK", headline: "",
      counts: "calibrating: at least 15 more runs; 2 series" });
      iobands.site.series.forEach((each) => { each.state = "calibrating"; });
      iobands.showState(); }""")
    expect(page.locator("#state")).to_contain_text("CALIBRATING at least 15 more runs; 2 series")
    expect(page.locator("#state .note")).not_to_contain_text("15 more runs")  # said once
    nothing = "iobands.element('p', {}, [false, null, undefined, '', 0]).textContent"
    assert page.evaluate(nothing) == "0"


def test_the_filter_stays_in_the_address(opened: Open) -> None:
    page = opened()
    page.fill("#q", "good write ucx")
    page.select_option("#state-filter", "healthy")
    expect(page.locator("#recent .heat tbody tr")).to_have_count(1)
    assert len(address_of(page)) < 200
    again = opened(address_of(page))
    expect(again.locator("#series tbody tr")).to_have_count(1)
    assert again.input_value("#q") == "good write ucx"
    late = opened("#/?state=sliding")  # a state that no series has any more
    expect(late.locator("#found")).to_contain_text("0 of 10 series")
    assert late.input_value("#state-filter") == "sliding"
    late.select_option("#state-filter", label="any")
    expect(late.locator("#found")).to_contain_text("10 of 10 series")


def test_hover_keys_and_zoom_of_a_series(opened: Open, site: Snapshot) -> None:
    page = opened(f"#/series/{id_of(site, 'slow', 'ofi', 'write_bw')}")
    page.wait_for_selector(".plot canvas")
    expect(page.locator(".run")).to_contain_text("run 120 of 120")
    # while an alert is open, the last months are in view
    expect(page.locator("[aria-live]")).to_contain_text("In view: 91 runs")
    page.locator(".plot").focus()
    page.keyboard.press("0")
    page.locator(".plot .u-over").hover(position={"x": 5, "y": 50})
    expect(page.locator(".run")).to_contain_text("job: 4000")
    page.locator(".plot").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".run")).to_contain_text("run 119 of 120")
    page.keyboard.press("+")
    expect(page.locator("[aria-live]")).not_to_contain_text("In view: 120 runs")
    fewer = page.locator("[aria-live]").inner_text()
    address = address_of(page)
    assert len(address) < 200
    again = opened(address)
    again.wait_for_selector(".plot canvas")
    expect(again.locator("[aria-live]")).to_have_text(fewer)
    expect(again.locator(".run")).to_contain_text("run 119 of 120")
    page.keyboard.press("0")
    expect(page.locator("[aria-live]")).to_contain_text("In view: 120 runs")
    assert "detects −20 %" not in page.locator("main").inner_text()  # technical terms are folded
    page.locator("summary", has_text="How it is judged").click()
    text = page.locator("main").inner_text().replace("\u00a0", " ")
    assert "Change: " in text
    assert "detects −20 % in about" in text
    expect(page.locator(".title", has_text="load per node")).to_have_count(1)
    page.locator("summary", has_text="Runs as a table").click()
    expect(page.locator("details tbody tr")).to_have_count(100)
    page.get_by_label("read_bw").check()
    assert "with=read_bw" in address_of(page)


def test_zoom_by_keyboard_keeps_the_chosen_run_in_view_and_is_in_a_comparison_too(
    opened: Open, site: Snapshot
) -> None:
    series = id_of(site, "good", "ofi", "write_bw")
    page = opened(f"#/series/{series}")
    expect(page.locator("[aria-live]")).to_contain_text("In view: 120 runs")
    page.locator(".plot").focus()
    for key in ("End", "+", "+", "+", "+"):
        page.keyboard.press(key)
    expect(page.locator("[aria-live]")).to_contain_text(" to 20 Nov;")
    page = opened(f"#/compare?sets={series},{id_of(site, 'good', 'ucx', 'write_bw')}")
    page.locator("#together .chart").focus()
    page.keyboard.press("+")
    assert "from=2026-" in address_of(page)
    page.keyboard.press("0")
    assert "from=2026-" not in address_of(page)


def test_the_hours_of_a_chart_are_even_when_the_readers_clocks_change(opened: Open) -> None:
    hours = """() => { const holder = iobands.element("div");
      document.body.append(holder);
      const days = ["2026-03-07T12:00Z", "2026-03-08T20:00Z"];
      const times = days.map((each) => Date.parse(each) / 1000);
      const line = { times, values: [1, 2], colour: "line" };
      const plot = iobands.chart(holder, { title: "", height: 200, lines: [line] });
      return new Promise((done) => queueMicrotask(() => done(plot.axes[0]._splits))); }"""
    ticks = opened(timezone_id="America/New_York").evaluate(hours)
    assert len(ticks) > 3
    assert len({later - earlier for earlier, later in pairwise(ticks)}) == 1


def test_a_run_has_the_figure_and_the_verdict_of_the_digest(opened: Open, site: Snapshot) -> None:
    page = opened()
    runs = """async (id) => { const { values, verdicts } = await iobands.history(id);
      return values.map((value, place) => [iobands.figure(value), verdicts[place]]); }"""
    for series in site.series:
        known = zip(series.history.values.tolist(), series.verdicts.codes.tolist(), strict=True)
        expected = [[figure(value), VERDICTS[code]] for value, code in known]
        assert page.evaluate(runs, series_id(series.key)) == expected
    halves = {
        106.5: "107",
        1.125: "1.13",
        1234.5: "1235",
        12450.0: "12500",
        0.0: "0",
        3e-7: "0.0000003",
    }
    assert page.evaluate("(values) => values.map(iobands.figure)", [*halves]) == [*halves.values()]
    assert [*map(figure, halves)] == [*halves.values()]


def test_arrow_keys_lead_through_the_heat_map(opened: Open) -> None:
    page = opened()
    page.locator(".heat a.cell[tabindex='0']").focus()
    before = page.evaluate("document.activeElement.title")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.title") < before
    expect(page.locator(".heat a.cell[tabindex='0']")).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_selector("h1 >> text=slow")


def test_arrow_keys_pass_blank_cells(opened: Open) -> None:
    page = opened()
    cells = page.locator(".heat tbody tr").first.locator("a.cell")
    wanted = cells.nth(-3).get_attribute("title")
    cells.nth(-2).evaluate("(each) => each.remove()")  # as of a session without this check
    page.locator(".heat a.cell[tabindex='0']").first.focus()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.title") == wanted


def test_the_first_key_skips_to_the_content_and_leaves_it(opened: Open, site: Snapshot) -> None:
    for place in ("", f"#/series/{id_of(site, 'slow', 'ofi', 'write_bw')}"):
        page = opened(place)
        before = page.locator("h1").inner_text()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        assert page.locator("h1").inner_text() == before
        assert address_of(page).startswith(place)


@pytest.mark.parametrize(
    ("hours", "headline"),
    [(47, "1 of 1 sites needs attention"), (49, "No report for 2 days: the state of the sites")],
)
def test_an_old_page_of_all_sites_says_that_it_is_old(
    opened: Open, hours: int, headline: str
) -> None:
    page = opened(later=timedelta(hours=hours))
    page.goto(page.evaluate("location.href").replace("index.html", "all/index.html"))
    expect(page.locator("h1")).to_contain_text(headline)
    assert page.title().startswith("UNKNOWN") == (hours > 48)


def test_a_comparison_has_the_ratio_of_the_command(opened: Open, site: Snapshot) -> None:
    samples = {each.key: each.history for each in site.series if len(each.history) > 20}
    (expected,) = (
        each.ratio
        for each in compare(samples, "transport", against="ofi")
        if (each.key.file_system, each.key.variable) == ("good", "write_bw")
    )
    page = opened(f"#/series/{id_of(site, 'good', 'ofi', 'write_bw')}")
    page.get_by_role("link", name="another transport").click()
    row = page.locator("#ratios tbody tr").nth(1).inner_text()
    shown = [float(each) for each in re.findall(r"\d\.\d+", row.split("GiB/s")[1])]
    assert shown[:3] == pytest.approx([expected.median, expected.lower, expected.upper], abs=0.006)
    assert "120 pairs" in row
    page.go_back()
    page.get_by_role("link", name="the month before").click()
    page.wait_for_selector("#together canvas")
    expect(page.locator("#ratios")).to_contain_text("bootstrap")
    expect(page.locator("#ratios tbody .n")).to_have_text(["30", "30"])  # no run is in both
    assert len(address_of(page)) < 200


def test_no_page_violates_wcag_or_is_wider_than_a_phone(opened: Open, site: Snapshot) -> None:
    slow = id_of(site, "slow", "ofi", "write_bw")
    both = ",".join(id_of(site, "good", each, "write_bw") for each in ("ofi", "ucx"))
    places = {"": ".heat", f"#/series/{slow}": "canvas", f"#/compare?sets={both}": "canvas"}
    for place, waits_for in places.items():
        page = opened(place, viewport=PHONE)
        page.wait_for_selector(waits_for)
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        page.emulate_media(color_scheme="dark")
        assert violations(page, runOnly=["color-contrast"]) == []
        page.set_viewport_size(DESKTOP)
        assert page.evaluate("document.documentElement.scrollWidth") <= DESKTOP["width"]


#: Finds numbers, days and intervals whose unit, month or end is on the next line.
BROKEN = r"""() => {
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const whole = /\d\s(%|×|GiB|[A-Z][a-z]{2}\b)|(?:×\s)?\([\d.]+–\u2060?\d/g;
  while (texts.nextNode()) {
    for (const each of texts.currentNode.data.matchAll(whole)) {
      const range = document.createRange();
      range.setStart(texts.currentNode, each.index);
      range.setEnd(texts.currentNode, each.index + each[0].length);
      if (new Set([...range.getClientRects()].map((box) => box.top)).size > 1) found.push(each[0]);
    }
  }
  return found;
}"""


def test_on_any_phone_a_page_fits_and_a_number_is_beside_its_unit(
    opened: Open, site: Snapshot
) -> None:
    page = opened()
    front, slow = page.url, id_of(site, "slow", "ofi", "write_bw")
    for place in (front, f"{front}#/series/{slow}", front.replace("index", "alerts/here-1")):
        page.goto(place)
        page.wait_for_selector("#about, #series h2, h2#series")
        for width in range(320, 480, 10):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate(BROKEN) == []
            if slow not in place:  # its charts are drawn again a little later
                assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_scripts_no_file_is_blamed(opened: Open) -> None:
    page = opened()
    window = page.context.browser.new_context(java_script_enabled=False)
    without = window.new_page()
    without.goto(page.url)
    expect(without.locator("main")).to_contain_text("is missing or damaged")
    expect(without.locator("main > p")).to_be_hidden()
    window.close()


def test_each_page_of_one_of_several_sites_leads_to_the_page_of_all(
    opened: Open, site: Snapshot
) -> None:
    page = opened()
    front = page.url
    every = Path(front.removeprefix("file://")).with_name("several")
    write_dashboard(site, every / "one", several=True)
    write_clusters(every, [about_cluster("one", "one/", site)], NOW)
    for name in ("index", "alerts/here-1"):
        page.goto(front.replace("index", name))
        expect(page.get_by_role("link", name="I/O performance of here")).to_have_count(1)
        expect(page.get_by_role("link", name="All sites")).to_have_count(0)
        page.goto((every / "one" / f"{name}.html").as_uri())
        page.get_by_role("link", name="All sites").click()
        expect(page.locator("h1")).to_have_text("1 of 1 sites needs attention")


def test_no_long_name_makes_a_page_wider(opened: Open, tmp_path: Path) -> None:
    long = "n" * 120
    names = dict.fromkeys(("system", "file_system", "pattern", "medium"), long)
    write_perflog(tmp_path / "perflogs", daily(dropped(0.6), **names), system=long)
    page, site = opened(), look(tmp_path)
    other = Path(page.url.removeprefix("file://")).with_name("long")
    write_dashboard(site, other)
    found = [about_cluster(f"{number}{long}", "../", site) for number in range(2)]
    found.append(Cluster("unread", "", 3, f"cannot be read: /{long * 2}", "unknown", (), ()))
    write_clusters(other / "all", found, NOW)
    (alert,) = (other / "alerts").iterdir()
    write_dashboard(site, other, several=True)  # whose pages have one more link
    for path in (other / "index.html", other / "all" / "index.html", alert):
        page.goto(path.as_uri())
        page.wait_for_selector("h2")
        for width in (320, 390, 1280):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            for link in page.locator("nav a:not(#home)").all():
                lines = """link => { const text = document.createRange();
                  text.selectNodeContents(link); return text.getClientRects().length; }"""
                assert link.evaluate(lines) == 1  # not "Compar" and "e"


def test_the_page_of_an_alert_needs_no_script_and_fits(opened: Open) -> None:
    page = opened(viewport=PHONE)
    page.goto(page.url.replace("index.html", "alerts/here-1.html"))
    page.wait_for_selector("h1 >> text=Alert 1 slow fpp writes")
    expect(page.locator("script")).to_have_count(0)
    expect(page.locator("#series ~ .grid svg")).to_have_count(2)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.emulate_media(color_scheme="dark")
    assert violations(page, runOnly=["color-contrast"]) == []
    page.set_viewport_size(DESKTOP)
    assert page.evaluate("document.documentElement.scrollWidth") <= DESKTOP["width"]
    page.locator("figure a").first.click()
    page.wait_for_selector(".plot canvas")
    assert "from=2026-" in address_of(page)
    page.locator(".lead a").click()  # and back
    page.wait_for_selector("h1 >> text=Alert 1 slow fpp writes")


def test_commands_that_are_wider_than_a_phone_scroll_by_keyboard(
    opened: Open, tmp_path: Path
) -> None:
    slow_target = SiteFiles(tmp_path).write(with_targets(40, slow=7, since=6)).read()
    page = opened(viewport=PHONE)
    other = Path(page.url.removeprefix("file://")).with_name("targets")  # below what is opened
    write_dashboard(slow_target, other)
    page.goto((other / "alerts" / "here-1.html").as_uri())
    expect(page.locator("pre")).to_contain_text("iobands reframe")
    assert violations(page, runOnly=["scrollable-region-focusable"]) == []


def test_a_set_of_half_a_period_is_refused(opened: Open, site: Snapshot) -> None:
    page = opened("#/compare")
    page.get_by_label("Add a series").fill("good fpp ofi write_bw")
    page.get_by_label("from").fill("2026-11-01")
    page.get_by_role("button", name="Add").click()
    expect(page.locator("[role=status]")).to_contain_text("first and the last day")
    page.get_by_label("to", exact=True).fill("2026-11-10")
    page.get_by_role("button", name="Add").click()
    expect(page.locator("#ratios tbody .n")).to_have_text("10")


def test_days_of_a_set_are_written_as_everywhere(opened: Open, site: Snapshot) -> None:
    one = id_of(site, "slow", "ofi", "write_bw")
    page = opened(f"#/compare?sets={one}@2026-11-01..2026-11-05,{one}@2026-11-31..2026-13-01")
    expect(page.locator("#ratios tbody th")).to_have_count(1)  # the other one has no such days
    said = page.locator("#ratios tbody th").inner_text().replace("\u00a0", " ")
    assert said.endswith("write_bw, 1 Nov to 5 Nov")


def test_no_ratio_of_what_cannot_be_compared(opened: Open, site: Snapshot) -> None:
    unlike = ("slow", "ofi", "write_bw"), ("good", "ucx", "write_bw")
    alike = ("slow", "ofi", "write_bw"), ("good", "ofi", "write_bw")
    for pair, says in ((unlike, "no ratio: the "), (alike, " × (")):
        page = opened(f"#/compare?sets={','.join(id_of(site, *each) for each in pair)}")
        page.wait_for_selector("#together canvas")
        expect(page.locator("#ratios tbody tr").nth(1)).to_contain_text(says)


def test_on_a_phone_the_ratio_of_a_comparison_is_in_view(opened: Open, site: Snapshot) -> None:
    pair = [id_of(site, name, "ofi", "write_bw") for name in ("slow", "good")]
    page = opened(f"#/compare?sets={','.join(pair)}", viewport=PHONE)
    page.wait_for_selector("#together canvas")
    assert page.locator("#ratios .scroll").evaluate("box => box.scrollWidth <= box.clientWidth")
    assert violations(page) == []


def test_on_a_phone_a_series_is_a_card(opened: Open) -> None:
    page = opened(viewport=PHONE)
    card = page.locator("#series tbody tr").first
    assert card.bounding_box()["width"] <= PHONE["width"]
    assert card.evaluate("row => row.scrollWidth <= row.clientWidth")
    expect(page.locator("#series thead")).to_be_hidden()
    wide = opened(viewport={"width": 1200, "height": 900})
    assert wide.locator("#series .scroll").evaluate("box => box.scrollWidth <= box.clientWidth")


def test_on_a_phone_file_systems_are_cards_and_commands_stay_whole(opened: Open) -> None:
    page = opened(viewport=PHONE)
    expect(page.locator("#file-systems thead, [aria-labelledby=file-systems] thead")).to_be_hidden()
    page.goto(page.url.split("index.html")[0] + "alerts/here-1.html")
    command = page.locator(".commands dt").first.bounding_box()
    says = page.locator(".commands dd").first.bounding_box()
    assert says["y"] >= command["y"] + command["height"]


def test_on_a_phone_a_target_is_a_card(opened: Open, tmp_path: Path) -> None:
    slow_target = SiteFiles(tmp_path).write(with_targets(40, slow=7, since=6)).read()
    page = opened(viewport=PHONE)
    other = Path(page.url.removeprefix("file://")).with_name("cards")
    write_dashboard(slow_target, other)
    page.goto((other / "index.html").as_uri())
    page.get_by_text("Table", exact=True).click()
    table = page.get_by_role("region", name="Table: ")
    assert table.evaluate("box => box.scrollWidth <= box.clientWidth")
    expect(table.locator("tbody th").first).to_have_text("OST 7")  # without its heading
    expect(table.locator("tbody tr").first).to_contain_text("slow")
    assert violations(page) == []


def test_users_read_rates_also_on_a_small_phone(opened: Open, site: Snapshot) -> None:
    headings = ("Pattern", "File system", "Expect", "Newest run", "Today")
    long = "low in the newest run, and not measured since"
    row = ("File per process", "scratch", "32.2–37.8 GiB/s", "20.5 GiB/s", long)
    users = [Heading("Rates to expect", 2), Table(headings, (row,))]
    page = opened(viewport={"width": 320, "height": 700})
    other = Path(page.url.removeprefix("file://")).with_name("public")
    write_dashboard(public(site), other, users=users)
    page.goto((other / "index.html").as_uri())
    table = page.get_by_role("region", name="Table of rates")
    expect(table.locator("tbody tr")).to_have_text(
        "File per processscratch32.2–37.8 GiB/s20.5 GiB/s" + long
    )
    expect(page.locator("main")).not_to_contain_text("[object")
    box = table.locator("table").bounding_box()
    assert box["x"] + box["width"] <= 320
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_what_is_acknowledged_is_not_called_well(opened: Open, tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily(dropped(0.6)))
    acknowledge(tmp_path, file_system="disk")
    page = opened()
    other = Path(page.url.removeprefix("file://")).with_name("acknowledged")
    write_dashboard(look(tmp_path), other)
    page.goto((other / "index.html").as_uri())
    said = "WARNING alerts: 1 degraded (acknowledged); 1 of 1 series degraded"
    expect(page.locator(".summary")).to_contain_text(said)
    expect(page.locator("main")).to_contain_text(
        "Every alert that needs attention is acknowledged."
    )
    expect(page.locator("main")).not_to_contain_text("no series has become worse")


def test_the_distribution_is_on_the_scale_of_the_chart(opened: Open, site: Snapshot) -> None:
    # with other charts on the same time axis, and alone
    for values in (("slow", "ofi", "write_bw"), (EVIL,)):
        page = opened(f"#/series/{id_of(site, *values)}")
        page.wait_for_selector(".side svg", state="attached")
        bars, plot = (page.locator(each).bounding_box() for each in (".side svg", ".plot .u-over"))
        assert plot["height"] > 200
        assert abs(bars["y"] - plot["y"]) <= 1
        assert abs(bars["height"] - plot["height"]) <= 1
    expect(page.locator(".key", has_text="alert raised")).to_contain_text("epoch begins")


def test_print_is_on_white_without_controls(opened: Open, site: Snapshot) -> None:
    ink = "getComputedStyle(document.querySelector('h2')).color"
    for place in ("index.html", "alerts/here-1.html"):  # which have no chart
        page = opened(color_scheme="dark")
        page.goto(page.url.replace("index.html", place))
        page.wait_for_selector("h2")
        dark = page.evaluate(ink)
        page.emulate_media(media="print")
        assert (dark, page.evaluate(ink)) == ("rgb(228, 232, 238)", "rgb(34, 39, 46)")
    page = opened(f"#/series/{id_of(site, 'slow', 'ofi', 'write_bw')}", color_scheme="dark")
    page.wait_for_selector(".plot canvas")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("nav").inner_text() == "I/O performance of here"
    paper = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--paper')")
    assert paper == "#ffffff"
    assert page.pdf()[:5] == b"%PDF-"


def test_six_weeks_fit_a_printed_page_with_their_names(opened: Open) -> None:
    across = 703  # of A4 between its margins, in CSS pixels
    page = opened(viewport={"width": across + 91, "height": 1000})
    page.emulate_media(media="print")
    expect(page.locator("#recent .heat thead th")).to_have_count(43)
    for name in ("tbody th a", "tbody tr:first-child td:last-child .cell"):
        box = page.locator(f"#recent .heat {name}").first.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= across


def test_a_printed_page_has_tables_as_a_screen_of_its_width_has_not(opened: Open) -> None:
    across = 703  # of A4 between its margins, in CSS pixels
    page = opened(viewport={"width": across, "height": 1000})
    expect(page.locator("#series thead")).to_be_hidden()
    page.emulate_media(media="print")
    expect(page.locator("#series thead")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= across


def test_a_copy_that_lacks_a_file_says_so(opened: Open, site: Snapshot, tmp_path: Path) -> None:
    write_dashboard(site, tmp_path)
    page = opened().context.browser.new_page()  # a window that may report errors
    series, damaged = site.series[0].key, tmp_path / "data" / job_id(site.series[0].key)
    text = (damaged / "series.js").read_text()
    (damaged / "series.js").write_text(text[:99])
    page.goto(f"{(tmp_path / 'index.html').as_uri()}#/series/{series_id(series)}")
    said = f"data/{job_id(series)}/series.js is missing or damaged; is the copy"
    expect(page.locator("main [role=alert]")).to_contain_text(said)
    expect(page.locator("main")).not_to_contain_text("Loading")
    (tmp_path / "data" / "site.js").unlink()
    page.reload()
    expect(page.locator("main")).to_contain_text("a file of the dashboard is missing or damaged")
    page.close()


def test_what_a_killed_report_has_not_described_yet_is_not_shown(
    opened: Open, tmp_path: Path
) -> None:
    write_perflog(tmp_path / "perflogs", daily(healthy()))
    page = opened()
    other = Path(page.url.removeprefix("file://")).with_name("killed")
    site = look(tmp_path)
    write_dashboard(site, other)
    job = other / "data" / job_id(site.series[0].key)
    about = (job / "series.js").read_bytes()
    write_perflog(tmp_path / "perflogs", daily(healthy(RUNS + 1)))
    write_dashboard(look(tmp_path), other)
    (job / "series.js").write_bytes(about)  # a run's values come before its verdict
    page.goto(f"{(other / 'index.html').as_uri()}#/series/{series_id(site.series[0].key)}")
    expect(page.locator(".run")).to_contain_text(f"run {RUNS} of {RUNS}")
    expect(page.locator("main [role=alert]")).to_have_count(0)


def test_the_table_of_a_maintenance_scrolls_on_a_phone(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "bands").mkdir()
    (tmp_path / "bands" / "here.yaml").write_text(
        "schema: 5\nsystem: here\nepochs: []\nmaintenance:\n"
        "  - {from: 2026-11-01T00:00:00Z, to: 2026-11-02T00:00:00Z, reason: jane moves disks}\n"
    )
    held = accounts_of(SiteFiles(tmp_path).days(slow(0.7, since=19)).judge())
    page = opened(viewport=PHONE)
    other = Path(page.url.removeprefix("file://")).with_name("held")  # below what is opened
    write_dashboard(look(tmp_path), other, maintenances=held)
    odd = replace(held[0], system="x#y?%2e")  # in an address, these characters are no name
    assert re.fullmatch("maintenances/[0-9a-f]{10}-2026-11-01.html", page_about(odd))
    page.goto((other / page_about(held[0])).as_uri())
    expect(page.locator("tbody tr").first).to_contain_text("slower")
    verdict = page.locator("tbody td:nth-child(2)").first.bounding_box()
    assert verdict["x"] + verdict["width"] <= PHONE["width"]
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_an_endless_name_leaves_room_for_the_others(opened: Open, tmp_path: Path) -> None:
    endless = daily(dropped(0.5), file_system="W" * 4000)
    write_perflog(tmp_path / "perflogs", endless + daily(dropped(0.5), pattern="ssf"))
    (tmp_path / "bands").mkdir()
    (tmp_path / "bands" / "here.yaml").write_text(
        "schema: 5\nsystem: here\nepochs: []\nmaintenance:\n"
        "  - {from: 2026-11-01T00:00:00Z, to: 2026-11-02T00:00:00Z, reason: new disks}\n"
    )
    held = accounts_of(SiteFiles(tmp_path).judge())
    page = opened()
    other = Path(page.url.removeprefix("file://")).with_name("endless")  # below what is opened
    write_dashboard(SiteFiles(tmp_path).read(), other, maintenances=held)
    page.goto((other / "index.html").as_uri())
    for names in (".heat th a", "#series th a"):
        expect(page.locator(names)).to_have_count(2)
        assert max(each.bounding_box()["height"] for each in page.locator(names).all()) < 200
    page.goto((other / page_about(held[0])).as_uri())
    cell = page.locator("tbody td:nth-child(2)").first.bounding_box()
    assert cell["x"] + cell["width"] <= DESKTOP["width"]


def test_the_last_days_are_the_ones_before_the_newest_run(opened: Open, tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily(healthy(1500)))  # four years
    page = opened()
    other = Path(page.url.removeprefix("file://")).with_name("years")
    site = look(tmp_path)
    write_dashboard(site, other)
    page.goto(f"{(other / 'index.html').as_uri()}#/series/{series_id(site.series[0].key)}")
    for days, runs in ((30, 31), (90, 91), (365, 366)):  # the newest one and those so long before
        page.get_by_label(re.compile(f"last ({days} days|{'year' * (days == 365)})$")).click()
        expect(page.locator("[aria-live]")).to_contain_text(f"In view: {runs} runs from ")
        expect(page.locator("[aria-live]")).to_contain_text(" to 20 Nov;")


def test_the_chart_of_a_series_reaches_to_its_newest_failed_run(
    opened: Open, tmp_path: Path
) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.0, 1.1, None]))  # 20 Nov 19:30 failed
    page = opened()
    other = Path(page.url.removeprefix("file://")).with_name("failed")
    site = look(tmp_path)
    write_dashboard(site, other)
    page.goto((other / "index.html").as_uri())
    page.evaluate("""() => { const drawn = iobands.together;
      iobands.together = (plots, whole, more) => {
        window.whole = whole;
        return drawn(plots, whole, more);
      }; }""")
    page.locator("#series tbody a").click()
    page.wait_for_selector(".tools button")
    failed = (NOW - timedelta(days=0.25)).timestamp()
    assert page.evaluate("window.whole")[1] > failed


def test_no_line_crosses_a_long_silence(opened: Open) -> None:
    # daily runs with a gap of a month, in which the other line has runs
    values = opened().evaluate("""() => {
      const at = (days) => days.map((day) => 86400 * day);
      const lines = [[[0, 1, 2, 3, 33, 34], [1, 2, null, 3, 4, 5]], [[1, 20, 34], [6, 7, 8]]]
        .map(([days, values]) => ({ times: at(days), values, colour: "soft" }));
      const main = document.getElementById("main");
      const { data } = iobands.chart(main, { title: "", height: 99, lines });
      return data[1].map((value) => value === null ? "gap" : value ?? "unknown");
    }""")
    assert values == [1, 2, "unknown", 3, "gap", "gap", 4, 5]


def test_what_is_printed_or_sent_to_somebody_has_all_runs_if_they_were_in_view(
    opened: Open, site: Snapshot
) -> None:
    page = opened(f"#/series/{id_of(site, 'slow', 'ofi', 'write_bw')}")
    expect(page.locator("[aria-live]")).to_contain_text("In view: 91 runs")
    page.get_by_label("All runs").click()
    expect(page.locator("[aria-live]")).to_contain_text("In view: 120 runs")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator("[aria-live]")).to_contain_text("In view: 120 runs")
    again = opened(address_of(page))
    expect(again.locator("[aria-live]")).to_contain_text("In view: 120 runs")


def test_a_cell_leads_to_a_run_of_its_session_not_to_the_one_before(
    opened: Open, site: Snapshot
) -> None:
    series = id_of(site, "good", "ofi", "write_bw")  # its runs end at 19:30
    for began, run in (("2026-11-10T06:00", "10 Nov 19:30"), ("2026-11-10T19:30", "10 Nov 19:30")):
        expect(opened(f"#/series/{series}?at={began}").locator(".run")).to_contain_text(run)
    for when in ("2027-01-01T00:00", "no time"):
        shown = opened(f"#/series/{series}?at={when}").locator(".run")
        expect(shown).to_contain_text("run 120 of 120")


def test_the_session_with_which_an_alert_began_leads_to_it(opened: Open) -> None:
    page = opened()
    # its first run was ten minutes before the one that fell
    page.evaluate("iobands.site.alerts[0].since += 600")
    page.evaluate("iobands.showFront(document.getElementById('main'), {})")
    row = page.locator("#recent .heat tbody tr").first
    assert 'title="6 Nov 19:30: collapsed, alert 1 ' in row.inner_html()
    assert 'title="5 Nov 19:30: collapsed, alert 1 ' not in row.inner_html()


def test_a_series_that_is_gone(opened: Open) -> None:
    main = opened("#/series/0000000000").locator("main")
    expect(main).to_contain_text("No series has this name")


def test_each_place_is_named_in_the_title_and_to_a_screen_reader(
    opened: Open, site: Snapshot
) -> None:
    series = site.series[0]
    key = series_id(series.key)
    page = opened(f"#/series/{key}")
    page.wait_for_selector("#about")
    assert page.title().split(" · ")[0] == series.label
    assert page.locator("dt").get_by_text(re.compile(r"^$")).count() == 0
    page.goto(page.url.split("#")[0] + "#/compare?sets=" + key)
    page.wait_for_selector("#together [role=img]")
    assert page.title().startswith("Compare · ")
    assert "table above" in page.locator("#together [role=img]").get_attribute("aria-label")
    page.goto(page.url.split("#")[0] + "#/")
    page.wait_for_selector("#state-filter")
    assert page.title().startswith("CRITICAL · ")
    expect(page.get_by_role("combobox", name="in state")).to_have_count(1)


def test_a_column_in_percent_has_its_unit(opened: Open) -> None:
    names = ["fullness_percent", "free_spread_percent", "open_close_percent", "interval_days"]
    assert opened().evaluate("names => names.map(iobands.nameOf)", [*names, "busiest_target"]) == [
        "fullness in %", "difference in free space between targets in %",
        "time in opens and closes in %", "interval in days",
        "files on the busiest target (× its round-robin share)",
    ]  # fmt: skip
