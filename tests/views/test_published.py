"""The published section: its figures, its commands in a shell, and the drift of pages."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from iobands.judge.advise import published
from iobands.snapshot import Change, Changed, Ratio, Recommended
from iobands.source.site_file import SiteFile
from iobands.views.published import comment, drift, rates_section
from iobands.views.writing import DocumentFormat, written
from tests.factory import NOW, daily, write_bands, write_perflog
from tests.sites import levels
from tests.views.sites import look

# 1 to 20 with no two neighbours alike, so that no run says anything about the next
VALUES = [float(v) for pair in zip(range(1, 11), range(20, 10, -1), strict=True) for v in pair]
HINTS = {"romio_cb_write": "enable", "cb_config_list": "*:2"}
SETTINGS = SiteFile(
    partitions={
        "local": {
            "filesystems": {"disk": {"medium": "hdd", "striping": {"size_kib": 1024}}},
            "hint_presets": {"tuned": {"env_vars": {"LIMIT": "64K; $HOME"}, "romio_hints": HINTS}},
            "recommended": [{"pattern": "fpp", "hints": "tuned", "stripe_count": -1}],
        }
    },
    environments={"builtin": {"name": "builtin", "env_vars": [["PML", "ucx"]]}},
)
LUSTRE = {
    "hints": "tuned", "stripe_count_asked": -1, "stripe_count": 12, "stripe_size": 2**20,
    "file_system_type": "lustre", "striping_command": "lfs setstripe -c -1 -S 1024k",
}  # fmt: skip


@pytest.fixture
def found(tmp_path: Path) -> list[Recommended]:
    rows = [*daily(VALUES, **LUSTRE), *daily([0.1] * 20, **{**LUSTRE, "hints": "default"})]
    write_perflog(tmp_path / "perflogs", rows)
    return published(look(tmp_path).series, SETTINGS, [])


def test_the_figures_are_of_the_recommended_series(found: list[Recommended]) -> None:
    (each,) = found
    (rates,) = each.rates
    assert (each.key.hints, each.is_asked, rates.runs) == ("tuned", True, 20)
    # type 7 of Hyndman and Fan: 1 + 19 x 0.25, 0.5, 0.75
    assert rates.figures == {
        "maximum": 20, "upper_quartile": 15.25, "median": 10.5, "lower_quartile": 5.75,
    }  # fmt: skip
    # of 20 runs the 6th and the 15th (statistical tables of the sign test)
    assert rates.intervals["median"] == (6, 15)
    assert f"{rates.first:%m-%d} {rates.last:%m-%d}" == "11-01 11-20"


def test_what_an_import_does_not_know_is_left_out(tmp_path: Path) -> None:
    unknown = {**LUSTRE, "stripe_count": "null", "stripe_size": "null"}
    write_perflog(tmp_path / "perflogs", daily(VALUES, **unknown))
    found = published(look(tmp_path).series, SETTINGS, [])
    said = written(rates_section("archer2", found, NOW), "markdown")
    assert "- Stripe count: all targets\n- MPI transport" in said


def test_what_differs_between_file_systems_is_said_of_each(tmp_path: Path) -> None:
    other = {**LUSTRE, "file_system": "m", "stripe_size": 4 * 2**20, "hints_in_effect": "cb=2"}
    write_perflog(tmp_path / "perflogs", [*daily(VALUES, **LUSTRE), *daily(VALUES, **other)])
    found = published(look(tmp_path).series, SETTINGS, [])
    said = written(rates_section("here", found, NOW), "markdown")
    assert "\n- Stripe size: 1 MiB on disk, 4 MiB on m\n" in said
    assert "\n- MPI-IO hints: none on disk, cb=2 on m\n" in said
    assert "\nMeasured with: benchio 1.0, interface" in said


@pytest.mark.parametrize("factor", [0.5, 1.6])
def test_runs_of_a_change_that_is_over_are_of_another_level(tmp_path: Path, factor: float) -> None:
    write_perflog(tmp_path / "perflogs", daily(levels((60, 1), (20, factor), (30, 1))))
    (rates,) = published(look(tmp_path).series, SiteFile(), [])[0].rates
    assert rates.runs == pytest.approx(90, abs=2)
    assert rates.figures["median"] == pytest.approx(1.5, rel=0.02)
    # a quarter of the runs are 0.67 standard deviations of 8 % below the median, or more
    assert rates.figures["lower_quartile"] == pytest.approx(1.5 * 0.947, rel=0.02)
    assert rates.figures["maximum"] < 1.5 * 1.35


def test_each_epoch_of_the_runs_is_named(tmp_path: Path) -> None:
    rows = [*daily(VALUES, last=15, **LUSTRE), *daily(VALUES, **{**LUSTRE, "file_system": "m"})]
    write_perflog(tmp_path / "perflogs", rows)
    path = write_bands(tmp_path / "bands")
    said = json.loads(path.read_text("utf-8"))
    said["epochs"] += [{"name": "upgrade", "since": "2026-11-10", "source": "a test", "bands": []}]
    path.write_text(json.dumps(said), "utf-8")
    (each,) = published(look(tmp_path).series, SiteFile(), [])
    assert each.rates[0].epoch == "first, upgrade"


def test_a_few_runs_promise_nothing_and_each_cache_is_named(tmp_path: Path) -> None:
    read = {**LUSTRE, "perf_var": "read_bw"}
    rows = [*daily([2.0], **read), *daily([3.0], **{**read, "file_system": "m", "cache": "none"})]
    write_perflog(tmp_path / "perflogs", rows)
    found = published(look(tmp_path).series, SETTINGS, [])
    said = written(rates_section("here", found, NOW), "markdown")
    assert "page cache before reads: dropped on disk, none on m." in said
    (row,) = (each for each in said.splitlines() if each.startswith("| ") and "GiB/s" in each)
    figures = [cell.strip() for cell in row.strip("|").split("|")][4:9]
    assert sorted(figures) == ["2.5", "–", "–", "–", "–"]


def test_a_shell_runs_the_commands(found: list[Recommended], tmp_path: Path) -> None:
    lines = (*found[0].commands[("disk",)], "env")
    calls = tmp_path / "calls"
    lfs = tmp_path / "lfs"
    lfs.write_text(f'#!/bin/sh\nprintf "%s " "$@" > {calls}\n')
    lfs.chmod(0o755)
    done = subprocess.run(
        ["bash", "-euc", "\n".join(lines)],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert calls.read_text().split() == ["setstripe", "-c", "-1", "-S", "1024k", "results"]
    assert {"LIMIT=64K; $HOME", "PML=ucx"} <= set(done.stdout.splitlines())
    assert (tmp_path / "romio-hints").read_text() == "romio_cb_write enable\ncb_config_list *:2\n"
    assert f"ROMIO_HINTS={tmp_path}/romio-hints" in done.stdout


def page_of(found: list[Recommended], form: DocumentFormat = "markdown") -> str:
    return written([*rates_section("here", found, NOW), comment(found)], form)


@pytest.mark.parametrize("form", ["markdown", "rst", "html"])
def test_a_page_agrees_until_something_in_it_changes(
    found: list[Recommended], form: DocumentFormat
) -> None:
    page = page_of(found, form)
    assert drift(page, found, NOW) == []
    for old, new, what in (
        ("10.5", "15.4", "median 15.4, now 10.5 (95 %: 6–15) in 20 runs"),
        ("lfs setstripe -c -1", "lfs setstripe -c 1", "lacks the command: lfs setstripe -c -1"),
        ("fpp", "fpn", "fpn write on hdd: no run measures this"),
        ("fpp", "fpn", "fpp write on hdd: measured, but not on the page"),
    ):
        assert any(what in each for each in drift(page.replace(old, new), found, NOW)), what
    # only the table is edited by hand; the comment still has the figure from the runs
    edited = "".join(
        line if "iobands table" in line else line.replace("15.3", "99.9")
        for line in page.splitlines(keepends=True)
    )
    assert drift(edited, found, NOW) == ["fpp write on hdd: the page does not show 15.3"]


def test_of_a_page_with_two_systems_the_tables_of_one_are_checked(
    found: list[Recommended],
) -> None:
    both = page_of(found).replace('"system":"here"', '"system":"there"') + page_of(found)
    assert drift(both, found, NOW, "here") == []
    # if no system is named, the table of a system that is gone is reported
    assert drift(both, found, NOW) == ["fpp write on hdd: no run measures this"]


def test_what_the_results_of_another_tool_do_not_say_is_not_made_up(tmp_path: Path) -> None:
    unsaid = (
        "environ",
        "interface",
        "file_system",
        "medium",
        "transport",
        "hints",
        "fsync",
        "tool_version",
    )
    sizes = dict.fromkeys(("nodes", "gib"))
    rows = daily(VALUES, tool="ior", tasks=64, **dict.fromkeys(unsaid), **sizes)
    write_perflog(tmp_path / "perflogs", rows)
    page = page_of(published(look(tmp_path).series, SiteFile(), []))
    assert "\n- File systems: unknown (unknown)\n- MPI-IO hints: none\n" in page
    assert "\nMeasured with: ior, 64 processes.\n" in page
    assert "| fpp | unknown | write |" in page
    assert "None" not in page


def test_a_figure_that_is_only_a_part_of_others_is_not_on_the_page(
    found: list[Recommended],
) -> None:
    page = page_of(found)
    *lines, last = page.splitlines()
    assert "iobands table" in last
    text = re.sub(r"20\d\d-\d\d-\d\d", "some day", "\n".join(lines))
    edited = f"{text}\n{last}".replace("| 20 |", "| 120 | 20.5 | 2.20 |")
    assert drift(edited, found, NOW) == ["fpp write on hdd: the page does not show 20"]
    assert drift(f"{edited} At most 20.\n", found, NOW) == []


def test_a_page_of_a_few_runs_agrees_with_them(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily(VALUES[:8], **LUSTRE))
    found = published(look(tmp_path).series, SETTINGS, [])
    assert drift(page_of(found), found, NOW) == []


def test_rates_on_two_partitions_have_two_names(tmp_path: Path) -> None:
    rows = [
        row
        for name, level in (("cpu", 1), ("gpu", 3))
        for row in daily([level * value for value in VALUES], partition=name)
    ]
    write_perflog(tmp_path / "perflogs", rows)
    found = published(look(tmp_path).series, SiteFile(), [])
    page = page_of(found)
    for name, median in (("cpu", "10.5"), ("gpu", "31.5")):
        assert f"### File per process (FPP), partition={name}\n" in page
        (row,) = (line for line in page.splitlines() if f"| fpp partition={name} |" in line)
        assert row.split(" | ")[6] == median
    assert drift(page, found, NOW) == []
    # a row whose series is gone is not compared with the other series
    assert drift(page, found[1:], NOW) == ["fpp partition=cpu write on hdd: no run measures this"]


def test_a_page_drifts_as_time_goes_on(found: list[Recommended]) -> None:
    page, rates = page_of(found), found[0].rates[0]
    assert drift(page, found, rates.holds + timedelta(days=1)) == [
        f"fpp write on hdd: held until {rates.holds:%Y-%m-%d}"
    ]
    upgraded = [replace(found[0], rates=(replace(rates, epoch="upgrade"),))]
    assert drift(page, upgraded, NOW) == ["fpp write on hdd: epoch none, now upgrade"]
    half = Ratio(0.5, 0.4, 0.6)
    change = Change("down", *[NOW] * 4, ratio=half, baseline=2, score=12, threshold=9)
    fell = replace(rates, changed=(Changed("disk", change),))
    after = [replace(found[0], rates=(fell,))]
    assert drift(page, after, NOW) == [
        f"fpp write on hdd: disk has changed: −50 % since {NOW:%Y-%m-%d}"
    ]
    assert drift(page_of(after), after, NOW) == []  # the page says so itself


def test_a_page_without_a_rate_agrees_while_there_is_none(found: list[Recommended]) -> None:
    page = page_of([])
    assert drift(page, [], NOW) == []
    assert "fpp write on hdd: measured, but not on the page" in drift(page, found, NOW)


def test_a_page_of_one_system_is_not_compared_with_another(
    found: list[Recommended],
) -> None:
    low = {name: value / 2 for name, value in found[0].rates[0].figures.items()}
    (rates,) = found[0].rates
    key = replace(found[0].key, system="there")
    there = [
        replace(
            found[0], key=key, rates=(replace(rates, figures=low, intervals=dict.fromkeys(low)),)
        )
    ]
    none = "here: fpp write on hdd: measured, but not on the page"
    assert drift(page_of(there), [*found, *there], NOW) == [none]


@pytest.mark.parametrize("said", ["", "iobands table {", "iobands table {}", "Median: 10 GiB/s"])
def test_a_page_without_the_comment_is_refused(found: list[Recommended], said: str) -> None:
    with pytest.raises(ValueError, match="comment from `iobands table`"):
        drift(f"<!-- {said} -->", found, NOW)


def test_names_from_a_log_stay_text(found: list[Recommended]) -> None:
    hostile = "<script>|`x`*\x1b["
    rates = replace(found[0].rates[0], file_systems=(hostile,), epoch=hostile)
    blocks = rates_section("here", [replace(found[0], rates=(rates,))], NOW)
    for form in ("html", "markdown"):
        text = written([*blocks, comment([replace(found[0], rates=(rates,))])], form)
        assert "<script>" not in text
        assert "\x1b" not in text


def test_the_command_says_by_its_exit_status_whether_a_page_drifted(iobands, tmp_path) -> None:
    write_perflog(tmp_path / "perflogs", daily(VALUES))
    page = tmp_path / "page.md"
    page.write_text(iobands("table", "--holds", "99999").stdout)
    assert "| fpp |" in page.read_text()
    assert iobands("table", "--check", "page.md", "--holds", "99999").returncode == 0
    # in a page of another encoding, the text that iobands printed is still read
    page.write_bytes(page.read_bytes() + "für alle".encode("latin-1"))
    assert iobands("table", "--check", "page.md", "--holds", "99999").returncode == 0
    page.write_text(page.read_text(errors="replace").replace('"fpp"', '"ssf"'))
    assert iobands("table", "--check", "page.md", "--holds", "99999").returncode == 1
    page.write_text("")
    for name, why in (("page.md", "no comment from"), ("none.md", "No such file or directory")):
        done = iobands("table", "--check", name)
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.startswith(f"IOBANDS UNKNOWN: {name}: {why}")
