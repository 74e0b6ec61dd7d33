"""The documentation site: built with warnings as errors, complete, and readable from a disk."""

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from iobands.commands.main import COMMANDS
from iobands.model import FIELDS
from tests.site_copy import ROOT

pytestmark = pytest.mark.machine  # it takes half a minute
pytest.importorskip("material")


class Links(HTMLParser):
    """The links of a page, the files that a browser loads for it, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in {"img", "script"} and given.get("src"):
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") in {"stylesheet", "icon", "preload"}:
            self.loaded.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Links]:
    place = tmp_path_factory.mktemp("site") / "docs"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", place],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {path: Links(path.read_text("utf-8")) for path in place.rglob("*.html")}


def home(site: dict[Path, Links]) -> Path:
    return min(site, key=lambda path: len(path.parts)).parent


def test_no_link_is_dead(site: dict[Path, Links]) -> None:
    dead = []
    for path, page in site.items():
        if path.name == "404.html":  # for a server, with links relative to the root
            continue
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme in {"http", "https", "mailto"}:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = site[target].places if target in site and parts.fragment else {parts.fragment}
            if not target.exists() or parts.fragment not in known:
                dead.append(f"{path.name}: {link}")
    assert dead == []


def test_nothing_is_loaded_from_a_network(site: dict[Path, Links]) -> None:
    loaded = {each for page in site.values() for each in page.loaded}
    assert [each for each in loaded if urlsplit(each).netloc] == []
    for path in home(site).rglob("*.svg"):
        assert re.findall(r"(?:url\(|href=)[\"']?(?:https?:)?//", path.read_text("utf-8")) == []


def test_the_reference_has_each_command_and_column(site: dict[Path, Links]) -> None:
    commands = site[home(site) / "reference" / "commands.html"].places
    assert {f"iobands-{name}" for rows in COMMANDS.values() for name in rows} <= commands
    columns = (home(site) / "reference" / "columns.html").read_text("utf-8")
    assert [each.name for each in FIELDS if f"<code>{each.name}</code>" not in columns] == []
    benchio = (home(site) / "reference" / "benchio.html").read_text("utf-8")
    assert "--decomposition" in benchio
    assert "A file of the whole array is in Fortran order" in " ".join(benchio.split())


def test_each_explanation_has_a_picture_of_the_demo(site: dict[Path, Links]) -> None:
    for name in ("proof", "bands", "alerts", "targets"):
        shown = site[home(site) / "explanation" / f"{name}.html"].loaded
        assert any("pictures/made/" in each for each in shown), name


def test_a_word_is_linked_where_a_page_first_uses_it(site: dict[Path, Links]) -> None:
    links = site[home(site) / "explanation" / "bands.html"].links
    assert links.count("../glossary.html#term-band") == 1
    assert links.count("../glossary.html#term-epoch") == 1


def test_a_word_of_plain_english_is_not_linked(site: dict[Path, Links]) -> None:
    proof = (home(site) / "explanation" / "proof.html").read_text("utf-8")
    assert "what the loader resolves" in proof
    alerts = (home(site) / "explanation" / "alerts.html").read_text("utf-8")
    assert "within limits that" in " ".join(alerts.split())
    bands = (home(site) / "explanation" / "bands.html").read_text("utf-8")
    assert "On a logarithmic scale" in bands
    assert "with their 95 % intervals" in bands


def test_no_list_is_torn(site: dict[Path, Links]) -> None:
    # Python-Markdown needs a blank line before a list, and four spaces before a later part of an
    # item; GitHub needs less.
    torn = {}
    for path in site:
        _, _, text = path.read_text("utf-8").partition("<article")
        text = re.sub(r"<pre>.*?</pre>", "", text, flags=re.DOTALL)
        found = re.findall(r"^(?:</?p>|</div>)*(?:\d+\.|[-*+]) .{,20}", text, re.MULTILINE)
        found += re.findall(r"</ol>\n<div class=.*?></div>\n<ol>", text)
        torn |= {path.name: found} if found else {}
    assert torn == {}


def test_no_page_shows_the_mark_before_a_bar(site: dict[Path, Links]) -> None:
    shown = {path.name: re.findall(r"<code>[^<]*\\\|", path.read_text("utf-8")) for path in site}
    assert {name: found for name, found in shown.items() if found} == {}
    commands = (home(site) / "reference" / "commands.html").read_text("utf-8")
    assert "<code>--every hour|6h|12h|day|week</code>" in commands


def test_the_search_works_from_a_disk(site: dict[Path, Links]) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or pytest.skip("needs chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto((home(site) / "index.html").as_uri())
        page.click("input.md-search__input")
        page.keyboard.type("heartbeat")
        page.wait_for_selector(".md-search-result__item")
        found = page.locator(".md-search-result__link").first.get_attribute("href")
        browser.close()
    assert found
    assert found.startswith(home(site).as_uri())
