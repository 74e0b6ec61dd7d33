"""What `iobands explain` tells of a pool, of perflogs in which it is known what moved."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from iobands.reporting.digest import digest_text
from iobands.reporting.explain_pool import chosen_pools, explain_pool, pool_text
from iobands.reporting.figures_pool import pool_evidence
from iobands.reporting.page import render, write_page
from iobands.status.survey import Survey
from tests.package.conftest import Command
from tests.package.factory import NOW
from tests.package.sites import SERIES, site
from tests.package.test_shared import slow


def told(found: Survey, name: str) -> str:
    (pool,) = chosen_pools(found, name)
    return pool_text(explain_pool(found, pool), found)


def test_who_moved_and_who_did_not(tmp_path: Path) -> None:
    found = site(tmp_path, slow(0.7, transport="ucx"))
    text = told(found, "all transport ucx")
    moved, still = text.split("Moved together")[1].split("Did not move")
    for file_system in "ab":
        for pattern in ("fpp", "ssf"):
            assert f"  {file_system} {pattern} ucx write_bw  0." in moved
    assert "ofi" not in moved
    assert "all transport ofi: 1.0" in still or "all transport ofi: 0.9" in still
    assert "middle of 4 series" in still
    assert "fabric" in text.splitlines()[-1]
    # what is told under another pool is not said again
    other = told(found, "all a")
    assert other.startswith("all a: nothing that lasts")
    assert "all transport ucx" in other.splitlines()[-1]


def test_a_member_that_did_not_move(tmp_path: Path) -> None:
    spared = slow(1 / 0.7, file_system="a", pattern="ssf", transport="ofi")
    falls = slow(0.7, file_system="a")
    found = site(tmp_path, lambda *run: falls(*run) * spared(*run))
    moved, still = told(found, "all a").split("Did not move")
    assert "a ssf ofi write_bw" in still.split("all b")[0]
    assert "a ssf ofi write_bw" not in moved
    assert "in 3 of its 4 series" in digest_text(found, Console(width=100))


def test_a_member_that_moved_too_is_not_said_not_to_have(tmp_path: Path) -> None:
    falls, spared = slow(0.7, file_system="a"), slow(0.88 / 0.7, file_system="a", pattern="ssf")
    found = site(tmp_path, lambda *run: falls(*run) * spared(*run), variables=("write_bw",))
    text = told(found, "all a")
    still = text.split("Did not move")[1]
    for line in still.splitlines():
        if line.startswith("  a "):
            low, high = re.findall(r"\((0|[\d.]+)–([\d.]+)\)", line)[0]
            assert float(low) <= 1 <= float(high)


def test_what_changed_with_them_is_named(tmp_path: Path) -> None:
    nodes = iter(["n1"] * 8 * 138 + ["n9"] * 8 * 12)
    found = site(tmp_path, slow(0.7, file_system="a"), nodes=lambda _: [next(nodes)])
    text = told(found, "all a")
    assert "node list: n1 before, n9 since (in 4 of 4 series)" in text
    assert "at what changed with them (node list)" in text.splitlines()[-1]


def test_a_pool_that_is_too_young(tmp_path: Path) -> None:
    found = site(tmp_path, slow(1.0), days=6)
    assert "none: of no variable" in told(found, "all a")
    (pool,) = chosen_pools(found, "all a")
    assert pool_evidence(explain_pool(found, pool), NOW).startswith(b"<?xml")


def test_how_a_pool_is_called(tmp_path: Path) -> None:
    found = site(tmp_path, slow(1.0), days=8)
    assert [pool.name for pool in chosen_pools(found, "transport")] == [
        "all transport ofi",
        "all transport ucx",
    ]
    assert [pool.name for pool in chosen_pools(found, "ALL b")] == ["all b"]
    assert chosen_pools(found, " ") == chosen_pools(found, "c") == []


def test_many_series_under_a_change_are_cut_short(tmp_path: Path) -> None:
    series = [{**fields, "hints": hints} for fields in SERIES for hints in ("x", "y", "z")]
    found = site(tmp_path, slow(0.7, file_system="a"), series=series, days=90)
    text = digest_text(found, Console(width=100))
    assert "common drop: all a" in text.splitlines()[0]
    assert text.count("    a ") == 8
    assert "  What moved with it, and where to look: iobands explain 'all a'\n" in text
    assert "    and 4 more: iobands explain 'all a'" in text
    page = render(found)
    assert page.count("<li>a ") == 12


def test_the_page_draws_it(tmp_path: Path) -> None:
    found = site(tmp_path, slow(0.7, file_system="a"), days=90)
    page = write_page(found, tmp_path / "page").read_text()
    (name,) = re.findall(r'img src="(figures/all_a[^"]*)"', page)
    assert "run over the usual level" in (tmp_path / "page" / name).read_text()


@pytest.mark.parametrize("form", ["svg", "png"])
def test_figures(tmp_path: Path, form: str) -> None:
    found = site(tmp_path, slow(0.7, file_system="a"), days=90)
    (pool,) = chosen_pools(found, "all a")
    drawn = pool_evidence(explain_pool(found, pool), NOW, form)
    if form == "svg":
        assert "run over the usual level" in drawn.decode()
        assert drawn == pool_evidence(explain_pool(found, pool), NOW, form)
    else:
        assert drawn.startswith(b"\x89PNG")


def test_the_command(tmp_path: Path, iobands: Command) -> None:
    site(tmp_path, slow(0.7, file_system="a"), days=90)
    done = iobands("explain", "all a", "--figure", "f.svg", "--overdue", "1e6")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("all a: degraded since 2026-11-")
    assert (tmp_path / "f.svg").read_text().startswith("<?xml")
    assert iobands("explain", "b ssf ucx write_bw").stdout.startswith("b ssf ucx write_bw: ")
    several = iobands("explain", "transport")
    assert several.returncode == 3
    assert "  all transport ofi\n  all transport ucx" in several.stderr
    assert "and in common:\n  all a\n" in iobands("explain", "nothing").stderr
    (common,) = json.loads(iobands("status", "--format", "json").stdout)["common"]
    assert (common["kind"], len(common["series"])) == ("file system", 4)
