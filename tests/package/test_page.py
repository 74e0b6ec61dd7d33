"""The page: what it says, that it is well-formed, and that it needs nothing else."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest

from iobands.reporting.page import write_page
from iobands.model.series import slug
from iobands.status.survey import Survey, take_survey
from tests.package.factory import (
    NOW,
    case,
    daily,
    line,
    write_bands,
    write_perflog,
    write_report,
)

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


def survey(tmp_path: Path, rows: list[str]) -> Survey:
    write_perflog(tmp_path / "perflogs", rows)
    return take_survey(tmp_path / "perflogs", tmp_path / "bands", now=NOW)


def test_page(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>&\"'"
    write_bands(tmp_path / "bands", variable="write_bw", medium="hdd")
    write_report(tmp_path / "perflogs", [case(display_name=evil, file_system="y")])
    rows = [*daily([1.5, 1.1, 0.1]), *daily([2.0], file_system=evil, medium="nvme")]
    found = survey(tmp_path, [*rows, *daily([None], file_system="z"), line(perf_unit=evil)])
    path = write_page(found, tmp_path / "out" / "page")
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    said = " ".join(" ".join(page.texts).split())
    assert "IOBANDS UNKNOWN: 3 series: 1 no data, 1 healthy, 1 calibrating" in said
    assert "2026-11-21 01:30" in said
    assert "0.1 GiB/s is under the floor of 0.354 GiB/s" in said
    for words in ("collapsed", "no data", "calibrating", "healthy", "1–1.5–2", "1 of 20 runs"):
        assert words in said
    assert said.count(evil) >= 3  # as text: label, finding, rejected line
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
    found = survey(tmp_path, daily([1.5]))
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
    found = survey(tmp_path, daily([1.0 + day % 7 / 7 for day in range(days)]))
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
    path = write_page(survey(tmp_path, []), tmp_path / "page")
    page = Page(path.read_text(encoding="utf-8"))
    assert page.open == []
    assert "no samples" in " ".join(page.texts)
