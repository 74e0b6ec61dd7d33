"""The table of docs/cases.md names each published figure, and nothing that does not exist."""

import re
import runpy
from functools import cache

import pytest

from tests.site_copy import ROOT

PAGE = (ROOT / "docs" / "cases.md").read_text("utf-8")
TABLE = PAGE.partition("## What the texts say\n")[2].partition("\n## ")[0]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TABLE.splitlines()
    if line.startswith("| ") and not line.startswith("| Where ")
]
KINDS = ("check", "preset", "band", "layer", "file system", "scale", "by hand", "documented")
TRIED = ("Lustre", "minisite", "local", "script", "nothing")
CONFIG = ROOT / "config"


def parts(cell: str) -> list[tuple[str, list[str], str]]:
    """Return kind, names and system of each part of a cell."""
    found = []
    for part in cell.split("; "):
        kind = next((each for each in KINDS if part.startswith(each)), "")
        assert kind, part
        names, _, system = part.removeprefix(kind).partition(":")[0].partition(" of `")
        found.append((kind, re.findall(r"`([^`]+)`|\*\*(.+?)\*\*", names), system.strip("`")))
    return [(kind, [a or b for a, b in names], system) for kind, names, system in found]


@cache
def extras(system: str) -> dict:
    """Return the merged extras of all partitions of a site file."""
    found = {}
    site = runpy.run_path(str(CONFIG / "systems" / f"{system}.py"))["system"]
    for partition in site["partitions"]:
        for name, value in partition["extras"].items():
            if isinstance(value, dict):
                found.setdefault(name, {}).update(value)
    return found


def figures(system: str) -> set[str]:
    """Return the figures of a bands file with their units, as quoted there."""
    text = (CONFIG / "bands" / f"{system}.yaml").read_text("utf-8")
    return set(re.findall(r"#: ([0-9.]+ \S+)$", text, re.MULTILINE))


def known(kind: str, system: str) -> set[str]:
    """Return the existing names of a kind."""
    if kind == "check":
        sources = [path.read_text("utf-8") for path in (ROOT / "checks").rglob("*.py")]
        return {name for text in sources for name in re.findall(r"simple_test\nclass (\w+)", text)}
    if kind == "layer":
        registry = (ROOT / "src" / "benchio" / "layers" / "registry.F90").read_text("utf-8")
        return set(re.findall(r'call add\("([\w-]+)"', registry))
    if kind == "by hand":
        return {title.rstrip(".") for title in re.findall(r"^\*\*(.+?)\*\*", PAGE, re.MULTILINE)}
    if kind == "band":
        return figures(system)
    words = {"preset": "hint_presets", "file system": "filesystems", "scale": "scales"}
    return set(extras(system)[words[kind]])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1][:40])
def test_what_a_row_names_is_there(row):
    where, words, here, tried = row
    assert where
    assert words
    assert tried in TRIED
    for kind, names, system in parts(here):
        if kind != "documented":
            assert names, here
            assert set(names) - known(kind, system) == set(), kind


def test_the_table_is_whole():
    assert len(ROWS) > 80
    named = {name for row in ROWS for kind, names, _ in parts(row[2]) for name in names}
    assert known("by hand", "") - named == set()
    cases = {name for name in known("check", "") if re.match("Archer2|BulkLustre|Cray|Csc", name)}
    assert cases - named == set()


@pytest.mark.parametrize("system", sorted(path.stem for path in (CONFIG / "bands").glob("*.yaml")))
def test_each_figure_of_a_bands_file_is_in_the_table(system):
    named = {
        name
        for row in ROWS
        for kind, names, of in parts(row[2])
        if (kind, of) == ("band", system)
        for name in names
    }
    assert named == figures(system)
