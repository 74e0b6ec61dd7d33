"""The page: what it says, that it is well-formed, and that it needs nothing else."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest

from iobands.model.series import slug
from iobands.reporting.page import render, write_page
from tests.factory import (
    case,
    daily,
    line,
    write_bands,
    write_perflog,
    write_report,
)
from tests.reporting.sites import everything, look

GOLDEN = Path(__file__).with_name("golden") / "page.txt"
VOID = {"meta", "img", "br", "link"}


class Page(HTMLParser):
    """Collects texts, attributes and whatever is not closed in its order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    def values(self, name: str) -> list[str]:
        return [value or "" for _, found, value in self.attributes if found == name]


def text_of(page: Page) -> str:
    """Return what a reader sees, a line for each piece of text."""
    lines = (" ".join(text.split()) for text in page.texts)
    return "".join(f"{line}\n" for line in lines if line)


def test_golden_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    found = text_of(Page(render(everything(Path()))))
    if request.config.getoption("--store-golden"):
        GOLDEN.write_text(found, encoding="utf-8")
    assert found == GOLDEN.read_text(encoding="utf-8")


def test_page_is_well_formed_and_needs_nothing_else(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>&\"'"
    write_report(tmp_path / "perflogs", [case(display_name=evil, file_system="y")])
    rows = [*daily([1.5, 1.1, 0.1]), *daily([2.0], file_system=evil, medium="nvme")]
    rows += [*daily([None], file_system="z"), line(perf_unit=evil)]
    write_perflog(tmp_path / "perflogs", rows)
    path = write_page(look(tmp_path), tmp_path / "out" / "page")
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    assert " ".join(page.texts).count(evil) >= 3  # as text: label, finding, rejected line
    assert "<script" not in text
    # nothing is fetched from elsewhere, and every link leads somewhere
    assert not re.search(r"(?:https?:)?//[a-z]", text)
    ids = page.values("id")
    assert len(set(ids)) == len(ids)
    assert {href.removeprefix("#") for href in page.values("href")} <= set(ids)
    for source in page.values("src"):
        assert (path.parent / source).is_file()
    assert len(page.values("src")) == 2  # a series without a sample has no figure
    assert {p.stat().st_mode & 0o777 for p in path.parent.rglob("*") if p.is_file()} == {0o644}


def test_page_is_replaced_and_leaves_nothing_behind(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.5]))
    found = look(tmp_path)
    write_page(found, tmp_path / "page")
    before = {p.name: p.read_bytes() for p in (tmp_path / "page").rglob("*") if p.is_file()}
    write_page(found, tmp_path / "page")
    after = {p.name: p.read_bytes() for p in (tmp_path / "page").rglob("*") if p.is_file()}
    assert before == after
    assert set(after) == {"index.html", f"{slug(found.series[0].key)}.svg"}


@pytest.mark.parametrize("days", [1, 2, 25, 730])
@pytest.mark.parametrize("band", [None, "2026-01-01", "2026-11-01", "2030-01-01"])
def test_figures_of_one_sample_and_of_two_years(
    tmp_path: Path, days: int, band: str | None
) -> None:
    if band:
        write_bands(tmp_path / "bands", since=band)
    write_perflog(tmp_path / "perflogs", daily([1.0 + day % 7 / 7 for day in range(days)]))
    found = look(tmp_path)
    write_page(found, tmp_path / "page")
    (figure,) = (tmp_path / "page" / "figures").iterdir()
    root = ET.parse(figure).getroot()
    text = " ".join("".join(root.itertext()).split())
    assert "write_bw in GiB/s" in text
    assert "time (UTC)" in text
    marks = len(root.findall(".//{http://www.w3.org/2000/svg}g[@clip-path]"))
    assert marks >= 1
    assert figure.stat().st_size < 400_000
    points = [
        use
        for group in root.iter("{http://www.w3.org/2000/svg}g")
        if group.get("id", "").startswith("PathCollection")
        for use in group.iter("{http://www.w3.org/2000/svg}use")
    ]
    assert len(points) == days


def test_page_without_any_series(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", [])
    path = write_page(look(tmp_path), tmp_path / "page")
    page = Page(path.read_text(encoding="utf-8"))
    assert page.open == []
    assert "no samples" in " ".join(page.texts)
