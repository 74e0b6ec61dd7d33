"""The files of the dashboard: their content, what they must not contain, and which ones change."""

from __future__ import annotations

import base64
import json
import os
import re
import stat
import zlib
from dataclasses import replace
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iobands.commands.report import _mount_of, published_of
from iobands.judge.site import read_site
from iobands.model import Leftover
from iobands.snapshot import Cause, CauseKind, Severity, Snapshot, public
from iobands.snapshot.stored import to_json
from iobands.views.dashboard.overview import headline, overview
from iobands.views.dashboard.series import job_id, series_id
from iobands.views.dashboard.write import write_dashboard
from iobands.views.explain_series import facts, moved
from iobands.views.notes import unevenly_placed
from iobands.views.published import rates_section, users_section
from iobands.views.writing import Bullets, Heading, Table, day_text, percent, ratio_text
from tests.factory import (
    NOW,
    case,
    daily,
    days_ago,
    line,
    write_bands,
    write_perflog,
    write_report,
    write_session,
)
from tests.judge.test_peers import with_targets
from tests.sites import SiteFiles, slow
from tests.views.sites import dropped, everything, healthy, look

SECRETS = {
    "jobid": "7654321",
    "job_nodelist": "node-of-jane",
    "hints_in_effect": "cb_config_list=node-of-joe:1",
}

SLOW = {"node_speeds": "write_bw=node-of-kim:0.5,one:1,another:1,more:1.1"}


def data_of(path: Path) -> Any:
    """Return the data in a file of the dashboard."""
    name, text = re.fullmatch(r'iobands\.receive\("(.+?)",(.*)\);\n', path.read_text()).groups()
    data = json.loads(text)
    return data if name == "site" else json.loads(zlib.decompress(base64.b64decode(data)))


def cells_in(column: Any) -> list[Any]:
    """Return the values of a column: a list, or a string of characters that index a few values."""
    is_list = isinstance(column, list)
    return column if is_list else [column["of"][ord(each) - 35] for each in column["at"]]


def everything_in(directory: Path) -> str:
    """Return all texts below `directory`, unpacked."""
    data = [json.dumps(data_of(path)) for path in (directory / "data").rglob("*.js")]
    names = [str(path.relative_to(directory)) for path in directory.rglob("*")]
    pages = [path.read_text() for path in directory.rglob("*.html")]
    return "\n".join([*data, *names, *pages])


def cells_of(site: Snapshot, directory: Path) -> dict[str, str]:
    write_dashboard(site, directory)
    rows = data_of(directory / "data" / "site.js")["rows"]
    return {row["kind"][0]: row["cells"] for row in rows}


def test_public_has_the_evidence_and_nobody(tmp_path: Path) -> None:
    site = everything(tmp_path)  # with an acknowledgement of jane, a failed check, bad lines
    write_perflog(tmp_path / "perflogs", daily([1.5] * 30, **SECRETS, **SLOW), name="Named.log")
    left = Leftover("here", Path("/scratch/left-by-jim"), "is in use", bytes=3 * 2**30)
    site = replace(look(tmp_path), leftovers=(left,))
    private = [*SECRETS.values(), "jane", "ticket 4711", "/mnt/secret", str(tmp_path)]
    private += ["/scratch/left-by-jim (3 GiB): is in use", "node-of-kim (0.5)"]
    hidden = [*private, "oserror", "node-of", "left-by"]
    paths = {("here", "disk"): "/mnt/secret"}
    write_dashboard(site, tmp_path / "private", paths=paths)
    assert all(each in everything_in(tmp_path / "private") for each in private)
    write_dashboard(public(site), tmp_path / "public")
    shown = everything_in(tmp_path / "public")
    assert [each for each in hidden if each in shown] == []
    said, open_to_all = (
        {each["subject"]: each["says"] for each in data_of(path)["alerts"]}
        for path in (tmp_path / kind / "data" / "site.js" for kind in ("private", "public"))
    )
    assert open_to_all["3 scratch writes"] == said["3 scratch writes"]
    assert open_to_all["1 home fpp write_bw"][-1] == "acknowledged"
    assert "scratch fpp write_bw" in shown
    named = next(each for each in site.series if each.status.runs >= 30)
    assert f'"{series_id(named.key)}"' in shown


def test_public_has_no_run_that_is_pinned_to_a_node(tmp_path: Path) -> None:
    rows = daily(dropped(0.5), case="node nid007") + daily(healthy(), case="target 3")
    # also a past alert, in the ledger
    rows += daily([*dropped(0.5), *healthy(30, seed=2)], case="node nid008")
    # a series that has moved to another scale, and one of a wrong clock
    rows += daily([1.5] * 2, last=9, case="node nid005")
    rows += daily([1.5] * 2, nodes=8, case="node nid005")
    rows += daily([1.5], last=-9, case="node nid006")
    write_perflog(tmp_path / "perflogs", rows)
    site = look(tmp_path)
    assert "nid005" in site.superseded[0]
    assert "nid006" in site.future[0].label
    assert "nid00" not in to_json(public(site))
    write_dashboard(site, tmp_path / "private")
    assert {"nid007", "nid008"} <= set(re.findall("nid00[78]", everything_in(tmp_path / "private")))
    assert any("nid008" in each.subject for each in site.ledger.entries)
    write_dashboard(public(site), tmp_path / "public")
    shown = everything_in(tmp_path / "public")
    assert "nid00" not in shown
    assert "target 3" in shown


def kinds(root: Path, *, over: bool = False) -> Snapshot:
    """Return a site with a doubled spread, a lost mode and a slide; `over` 20 runs ago."""
    rng = np.random.default_rng(3)
    noise = np.exp(rng.normal(0, 0.04, 160))
    wide = np.append(noise[:-40], np.exp(rng.normal(0, 0.16, 40)))  # four times the spread
    modes = np.where((rng.random(160) < 0.5) | (np.arange(160) >= 130), 1.0, 2.0)
    modes *= np.exp(rng.normal(0, 0.02, 160))
    slide = noise * np.append([1.0] * 100, np.linspace(1, 0.6, 60))
    after = np.exp(rng.normal(0, 0.04, 20 * over))
    rows = []
    for name, values in {"wide": wide, "modes": modes, "slide": slide}.items():
        rows += daily([*values.tolist(), *after.tolist()], file_system=name)
    failing = [value if day % 6 else None for day, value in enumerate(healthy(60, seed=2))]
    write_perflog(root / "perflogs", rows + daily(failing, file_system="failing"))
    return look(root)


def changes_in(page: Path, site: Snapshot) -> dict[str, Any]:
    """Return the last change of each series from the data of its page."""
    found = {}
    for series in site.series:
        about = data_of(page / "data" / job_id(series.key) / "series.js")
        for each in about["series"][0]["changes"]:
            found[series.key.file_system] = each
    return found


def test_a_change_of_the_spread_or_of_modes_is_no_change_of_the_level(tmp_path: Path) -> None:
    """A chart and its list of changes agree with the state of the series."""
    site = kinds(tmp_path)
    write_dashboard(site, tmp_path / "page")
    shown = changes_in(tmp_path / "page", site)
    assert {name: each["label"] for name, each in shown.items()} == {
        "wide": "unstable", "modes": "mode lost", "slide": "−39 %",
    }  # fmt: skip
    assert shown["wide"]["says"].startswith("varies between 0.9")
    assert shown["modes"]["says"].startswith("no run near 2.0")
    slid = shown["slide"]
    assert "slides since" in slid["says"]
    assert slid["since_low"] == slid["since_high"] == slid["since"]
    of_slide = next(each for each in site.series if each.key.file_system == "slide")
    (line,) = (each for each in moved(site, of_slide) if each.startswith("wide "))
    assert "write_bw: unstable since" in line


def test_users_read_of_a_change_what_its_alert_says(tmp_path: Path) -> None:
    site = kinds(tmp_path)
    members = {m.series.key.file_system: m for alert in site.alerts for m in alert.members}
    began = {
        name: each.series.status.change.began
        for name, each in members.items()
        if each.series.status.change
    }
    slid = percent(members["slide"].ratio.value)  # as in the alert, which dates it from there
    assert began["slide"] in {alert.since for alert in site.alerts}
    says = {"slide": slid, "wide": "unstable", "modes": "mode lost"}
    expected = {name: f"{text} since {day_text(began[name], NOW)}" for name, text in says.items()}
    expected["failing"] = "as usual"  # a check that fails now and then says nothing of the rates
    recommended, _ = published_of(site, tmp_path)
    blocks = users_section(public(site), recommended["here"], (), {})
    assert {row[1]: row[-1] for row in blocks[2].rows} == expected
    # a section of a documentation page says so, too, with the rates of the time before
    (changed,) = rates_section("here", recommended["here"], NOW)[-1:]
    assert set(changed.lines) == {
        f"fpp write on {name}: {text} since {began[name]:%Y-%m-%d}" for name, text in says.items()
    }
    (rates,) = recommended["here"][0].rates
    assert rates.holds == min(began.values())


def test_a_slide_that_is_over_keeps_its_beginning_and_its_size(tmp_path: Path) -> None:
    site = kinds(tmp_path, over=True)
    (alert,) = (each for each in site.past if each.severity is Severity.SLIDING)
    size, of_wide = (member.ratio for member in alert.members)
    # as while it was open, the level of the unstable series has not moved
    assert (alert.ratio, of_wide) == (size.value, None)
    write_dashboard(site, tmp_path / "page")
    slid = changes_in(tmp_path / "page", site)["slide"]
    assert slid["label"] == percent(size.value)
    assert slid["says"].startswith("slid to ")
    assert ratio_text(size) in slid["says"]
    (series,) = (each for each in site.series if each.key.file_system == "slide")
    (earlier,) = (text for name, text in facts(site, series) if name == "Earlier")
    assert earlier.startswith(f"drop from {day_text(alert.since, NOW)} to ")
    assert ratio_text(size) in earlier


def test_only_what_changed_is_written(tmp_path: Path) -> None:
    rows = daily([1.0 + day % 7 / 70 for day in range(900)])
    rows += daily([2.0] * 20, file_system="other")
    write_perflog(tmp_path / "perflogs", rows)
    first = write_dashboard(look(tmp_path), tmp_path / "page")
    mark = ".iobands-dashboard"
    files = [
        each for each in (tmp_path / "page").rglob("*") if each.is_file() and each.name != mark
    ]
    assert first == len(files)
    assert write_dashboard(look(tmp_path), tmp_path / "page") == 0
    before = {path: path.read_bytes() for path in (tmp_path / "page").rglob("*.js")}
    write_perflog(tmp_path / "perflogs", [*rows, *daily([1.0], last=0)])
    write_dashboard(look(tmp_path), tmp_path / "page")
    changed = {path.name for path, content in before.items() if path.read_bytes() != content}
    assert {"site.js", "2026-2.js"} <= changed
    assert not changed & {"earlier.js", "2026-1.js"}
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "page").rglob("*.*")}
    assert modes == {0o644}


def test_series_that_are_gone_leave_no_file(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", [*daily([1.0]), *daily([1.0], file_system="gone")])
    write_dashboard(look(tmp_path), tmp_path / "page")
    write_perflog(tmp_path / "perflogs", daily([1.0]))
    theirs = tmp_path / "page" / "data" / "theirs.js"
    theirs.write_text("let x;")
    # of a report that was killed
    names = ("index.html", "data/series.js", "app/main.js")
    halves = [tmp_path / "page" / f"{each}.0123456789abcdef" for each in names]
    halves = [each.with_name(f".{each.name}") for each in halves]
    for half in halves:
        half.write_text("")
    write_dashboard(look(tmp_path), tmp_path / "page")
    assert len(list((tmp_path / "page" / "data").glob("*/series.js"))) == 1
    assert theirs.exists()
    assert not [each for each in halves if each.exists()]


def test_runs_keep_their_order_and_digits(tmp_path: Path) -> None:
    values = [1.0 + day / 700 for day in range(800)]
    rows = [*daily(values, jobid=7), *daily(values, jobid=7, perf_var="read_bw")]
    write_perflog(tmp_path / "perflogs", rows)
    write_dashboard(look(tmp_path), tmp_path / "page")
    (job,) = (path for path in (tmp_path / "page" / "data").iterdir() if path.is_dir())
    about = data_of(job / "series.js")
    assert about["parts"] == ["earlier", "2026-1", "2026-2"]
    parts = [data_of(job / f"{part}.js") for part in about["parts"]]
    assert all(len(tables) == 1 for tables in parts)  # write and read share their times
    found = [value for (table,) in parts for value in cells_in(table["values"]["read_bw"])]
    assert len(found) == 800
    assert max(abs(one / other - 1) for one, other in zip(found, values, strict=True)) < 0.005
    times = [time for (table,) in parts for time in table["times"]]
    assert times.count(86_400) == 797  # the first of each part is absolute
    assert "jobid" not in parts[0][0]["columns"]
    assert parts[2][0]["columns"]["jobid"] == "7"
    assert [table["columns"]["fullness_percent"] for (table,) in parts] == [12.5] * 3


def test_parts_are_in_the_order_of_time_if_only_some_series_are_old(tmp_path: Path) -> None:
    rows = [*daily([1.0, 2.0]), *daily([1.0] * 800, perf_var="read_bw")]
    write_perflog(tmp_path / "perflogs", rows)
    write_dashboard(look(tmp_path), tmp_path / "page")
    (about,) = (tmp_path / "page" / "data").glob("*/series.js")
    assert data_of(about)["parts"] == ["earlier", "2026-1", "2026-2"]


def test_a_column_of_few_values_has_a_character_for_each_run(tmp_path: Path) -> None:
    values = [2.0 + day % 7 / 10 for day in range(60)]
    write_perflog(tmp_path / "perflogs", daily(values))
    write_dashboard(look(tmp_path), tmp_path / "page")
    (path,) = (tmp_path / "page" / "data").glob("*/2026-2.js")
    (table,) = data_of(path)
    assert set(table["values"]["write_bw"]) == {"of", "at"}
    assert cells_in(table["values"]["write_bw"]) == values


def test_numbers_of_any_size_and_unknown_ones_are_kept(tmp_path: Path) -> None:
    values = [0.0123, 4711.0, 90.0, 91.0]
    loads = ["null", 0.04, 0.0, 12.7]
    rows = [
        line(job_completion_time=days_ago(4 - day), perf_value=value, load_per_node=load)
        for day, (value, load) in enumerate(zip(values, loads, strict=True))
    ]
    write_perflog(tmp_path / "perflogs", rows)
    write_dashboard(look(tmp_path), tmp_path / "page")
    (path,) = (tmp_path / "page" / "data").glob("*/2026-2.js")
    (table,) = data_of(path)
    assert table["values"]["write_bw"] == values
    assert table["columns"]["load_per_node"] == [None, 0.0, 0.0, 12.7]


def test_cells_are_verdicts_gaps_and_failures(tmp_path: Path) -> None:
    write_bands(tmp_path / "bands", (1, 1.5, 2))  # floor: 1 / 2**1.5 = 0.354
    values = [1.5, 2.5, 0.9, 0.3, None, 1.0]
    other = daily([5.0, 5.0, 5.0, 5.0, 5.0, 5.0], file_system="other", perf_var="read_bw")
    young = daily([2.5, 2.5], file_system="young")
    write_perflog(tmp_path / "perflogs", [*daily(values), *other[:1], *other[-1:], *young])
    found = cells_of(look(tmp_path), tmp_path / "page")
    assert found == {"disk": "wabcmw", "other": "n....n", "young": "    aa"}


def test_a_day_without_any_run_is_a_column(tmp_path: Path) -> None:
    write_bands(tmp_path / "bands")
    write_perflog(tmp_path / "perflogs", [*daily([1.5, 1.5], last=3.25), *daily([1.5, 1.5])])
    assert cells_of(look(tmp_path), tmp_path / "page") == {"disk": "ww.ww"}


def test_a_week_without_a_weekly_run_is_a_column_and_its_days_are_none(tmp_path: Path) -> None:
    weeks = [line(job_completion_time=days_ago(7 * ago + 0.25)) for ago in (5, 4, 2, 1, 0)]
    write_perflog(tmp_path / "perflogs", weeks)
    assert cells_of(look(tmp_path), tmp_path / "page") == {"disk": "nn.nnn"}


def of_session(name: str, hours: float, *patterns: str, **fields: object) -> list[str]:
    """Return runs of these patterns, a minute apart, in a session this many hours ago."""
    return [
        line(
            job_completion_time=(NOW - timedelta(hours=hours, minutes=-number)).isoformat(),
            file_system=pattern,
            session=name,
            **fields,
        )
        for number, pattern in enumerate(patterns)
    ]


def test_what_was_not_selected_has_no_mark(tmp_path: Path) -> None:
    every = ("fpp", "fpn", "ssf")
    rows = of_session("A", 3, *every, purpose="scheduled")
    rows += of_session("B", 2, "fpp", purpose="manual")
    write_perflog(tmp_path / "perflogs", rows)
    assert cells_of(look(tmp_path), tmp_path / "page") == {"fpp": "nn", "fpn": "n ", "ssf": "n "}
    write_perflog(tmp_path / "perflogs", rows + of_session("C", 1, *every, purpose="scheduled"))
    assert cells_of(look(tmp_path), tmp_path / "page") == {"fpp": "nnn", "fpn": "n n", "ssf": "n n"}


def test_a_confirming_run_of_a_daily_site_marks_no_other(tmp_path: Path) -> None:
    every = ("fpp", "fpn", "ssf")
    rows = [
        row
        for ago in (4, 3, 2, 1)
        for row in of_session(str(ago), 24 * ago, *every, purpose="scheduled", interval_days=1)
    ]
    for ago in (3, 2, 1):
        hours = 24 * ago - 9
        rows += of_session(f"again {ago}", hours, "ssf", purpose="manual", interval_days=1)
    write_perflog(tmp_path / "perflogs", rows)
    found = cells_of(look(tmp_path), tmp_path / "page")
    assert found == {"fpp": "nn n n ", "fpn": "nn n n ", "ssf": "nnnnnnn"}
    assert data_of(tmp_path / "page/data/site.js")["interval"] == 86_400


def test_what_was_due_and_did_not_run_is_marked_in_its_session(tmp_path: Path) -> None:
    def day(ago: int, *patterns: str) -> list[str]:
        return of_session(f"day {ago}", 24 * ago, *patterns, purpose="scheduled", interval_days=1)

    weekly = {"purpose": "scheduled", "interval_days": 7}
    rows = [*day(3, "fpp", "ssf"), *of_session("week", 71, "fpn", **weekly)]
    rows += [*day(2, "fpp"), *day(1, "fpp", "ssf")]
    rows += of_session("day 2", 47.9, "fpn", perf_value="null", result="fail", **weekly)
    write_perflog(tmp_path / "perflogs", rows)
    found = cells_of(look(tmp_path), tmp_path / "page")
    # the weekly series is due from half a week on, and does not affect the daily ones
    assert found == {"fpp": "n nn", "ssf": "n .n", "fpn": " nm "}


def test_a_session_of_other_checks_or_of_another_system_is_no_gap(tmp_path: Path) -> None:
    def runs(name: str, hours: list[float], days: float, system: str = "here") -> list[str]:
        more = {"purpose": "scheduled", "interval_days": days, "system": system}
        return [row for h in hours for row in of_session(f"{system} {name} {h}", h, name, **more)]

    hourly = [*range(30, 0, -1)]
    rows = [*runs("daily", [29.5, 5.5], 1), *runs("hourly", hourly, 1 / 24)]
    write_perflog(tmp_path / "perflogs", rows)
    found = cells_of(look(tmp_path), tmp_path / "page")
    assert found["daily"].replace(" ", "") == "nn"
    # seven daily sessions per week; the last weekly run is late
    daily_ones = [24 * ago + 6 for ago in range(18, -1, -1)]
    rows = [*runs("daily", daily_ones, 1), *runs("weekly", [18 * 24 + 5, 11 * 24 + 5], 7)]
    write_perflog(tmp_path / "perflogs", rows)
    found = cells_of(look(tmp_path), tmp_path / "page")
    assert found["weekly"].strip() == "n       n" + 10 * " " + "."
    # two systems in alternating sessions, one of which missed a night
    rows = runs("daily", [78, 54, 6], 1)
    write_perflog(tmp_path / "perflogs", rows)
    theirs = runs("other", [66, 42, 18], 1, "there")
    write_perflog(tmp_path / "perflogs", theirs, system="there")
    found = cells_of(look(tmp_path), tmp_path / "page")
    assert found == {"daily": "n n .n", "other": " n nn "}


def test_a_gap_of_a_maintenance_is_none_and_public_without_its_reason(tmp_path: Path) -> None:
    (tmp_path / "bands").mkdir()
    (tmp_path / "bands" / "here.yaml").write_text(
        "schema: 5\nsystem: here\nepochs: []\nmaintenance:\n"
        "  - {from: 2026-11-18T00:00:00Z, to: 2026-11-19T00:00:00Z, reason: jane moves disks}\n"
    )
    write_perflog(tmp_path / "perflogs", [*daily([1.5] * 2, last=3.25), *daily([1.5] * 2)])
    assert cells_of(look(tmp_path), tmp_path / "page") == {"disk": "nnpnn"}
    assert "jane moves disks" in everything_in(tmp_path / "page")
    write_dashboard(public(look(tmp_path)), tmp_path / "public")
    assert "jane moves disks" not in everything_in(tmp_path / "public")


def test_a_file_system_has_its_path_and_size(tmp_path: Path) -> None:
    seen = {"examines": "file system", "result": "pass", "fail_phase": None, "size_gib": 2048.0}
    write_report(tmp_path / "perflogs", [case(display_name="EnvFileSystem", **seen)])
    write_perflog(tmp_path / "perflogs", daily([1.5], targets_active=4))
    write_dashboard(look(tmp_path), tmp_path / "page", paths={("here", "disk"): "/mnt/disk"})
    (found,) = data_of(tmp_path / "page/data/site.js")["file_systems"]
    wanted = ("path", "size_gib", "file_system_type", "fullness_percent", "targets_active")
    assert [found[name] for name in wanted] == ["/mnt/disk", 2048, "posix", 12.5, 4]


@pytest.mark.parametrize(
    ("apart", "declared", "days"),
    [(1, None, 1), (7, None, 7), (1 / 48, None, 1), (1 / 24, 1 / 24, 1 / 24), (1 / 48, 7, 7)],
)
def test_the_interval_is_learned(
    tmp_path: Path, apart: float, declared: float | None, days: float
) -> None:
    """Sessions in quick succession, such as somebody's first trials, are no schedule."""
    more = {"purpose": "scheduled"} | ({"interval_days": declared} if declared else {})
    rows = [
        row
        for n in range(9, -1, -1)
        for row in of_session(f"session {n}", 24 * apart * n + 1, "fpp", **more)
    ]
    write_perflog(tmp_path / "perflogs", rows)
    write_dashboard(look(tmp_path), tmp_path / "page")
    assert data_of(tmp_path / "page/data/site.js")["interval"] == round(days * 86_400)


def test_hostile_values_end_no_script(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>\u2028&\"'"
    write_report(tmp_path / "perflogs", [case(display_name=evil, file_system="y")])
    rows = [*daily([2.0], file_system=evil, medium=evil, jobid=evil), line(perf_unit=evil)]
    write_perflog(tmp_path / "perflogs", rows)
    write_dashboard(look(tmp_path), tmp_path / "page")
    for path in (tmp_path / "page" / "data").rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert "<" not in text
        assert "\u2028" not in text
        assert text.count("\n") == 1
    assert data_of(tmp_path / "page/data/site.js")["series"][0]["label"].startswith("</script>")


def test_no_series_at_all(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", [])
    site = read_site(tmp_path / "perflogs", tmp_path / "b", tmp_path / "a", now=NOW)
    write_dashboard(site, tmp_path / "page")
    found = data_of(tmp_path / "page" / "data" / "site.js")
    assert (found["newest"], found["series"], found["word"]) == (None, [], "UNKNOWN")
    assert found["session"] is None


def test_the_age_of_the_newest_session_is_on_the_page(tmp_path: Path) -> None:
    began = NOW - timedelta(days=1)
    write_perflog(tmp_path / "perflogs", daily([1.5]))
    write_session(tmp_path / "perflogs", began)
    write_dashboard(look(tmp_path), tmp_path / "page")
    found = data_of(tmp_path / "page" / "data" / "site.js")["session"]
    assert found == {"began": began.timestamp(), "how": "completed"}


def test_what_is_not_its_own_is_neither_replaced_nor_followed(tmp_path: Path) -> None:
    site = everything(tmp_path)
    home = tmp_path / "www"
    home.mkdir()
    (home / "index.html").write_text("of somebody else")
    with pytest.raises(FileExistsError, match=r"index\.html"):
        write_dashboard(site, home)
    (home / "index.html").unlink()
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "own.js").write_text("kept")
    (home / "data").symlink_to(victim)
    with pytest.raises(FileExistsError, match="symbolic link"):
        write_dashboard(site, home)
    (home / "data").unlink()
    (home / "notes.txt").write_text("kept")  # beside it anything may be
    before = os.umask(0o077)
    try:
        write_dashboard(site, home / "deep" / "er")
    finally:
        os.umask(before)
    write_dashboard(site, home / "deep" / "er")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (home / "deep").rglob("*.*")}
    assert modes == {0o644}
    assert stat.S_IMODE((home / "deep" / "er" / "data").stat().st_mode) == 0o755
    assert [path.name for path in victim.iterdir()] == ["own.js"]


def test_the_headline_names_the_trouble(tmp_path: Path) -> None:
    site = everything(tmp_path)
    worst = headline(site)
    assert re.fullmatch(r"scratch writes: −\d\d %, since 6 Nov; .+; \d more alerts", worst)
    (alert,) = (each for each in site.alerts if each.subject == "scratch writes")
    cause = Cause(CauseKind.TARGET_OUT, "OST 7 out of service (1 of 12)", NOW, 100.0)
    words = headline(replace(site, alerts=(replace(alert, cause=cause),)))
    assert words.endswith(" %, OST 7 out of service since 21 Nov")
    assert headline(replace(site, alerts=())) == ""
    rng = np.random.default_rng(3)  # four times the spread
    values = np.exp(rng.normal(0, np.repeat([0.04, 0.16], [120, 40]))).tolist()
    write_perflog(tmp_path / "wide" / "perflogs", daily(values))
    words = headline(look(tmp_path / "wide"))
    assert re.fullmatch(r"disk fpp write_bw: [\d.–]+ GiB/s, was [\d.–]+, since \d+ Oct", words)


def test_the_headline_of_two_systems_says_which_one_is_in_trouble(tmp_path: Path) -> None:
    for system, factor in (("one", 1.0), ("two", 0.5)):
        alike = ({"system": system, "pattern": pattern} for pattern in ("fpp", "ssf"))
        rows = [row for fields in alike for row in daily(dropped(factor), **fields)]
        write_perflog(tmp_path / "perflogs", rows, system=system)
    assert re.match(r"disk writes system=two: −\d\d %, since", headline(look(tmp_path)))


@pytest.mark.parametrize("names", [["one"], ["one", "two"]])
def test_the_public_sees_no_directory_of_files_that_cannot_be_read(
    names: list[str], tmp_path: Path
) -> None:
    path = write_perflog(tmp_path / "a b" / "perflogs", daily([1.5] * 30))
    for name in names:
        path.with_name(f"{name}.log").symlink_to("/proc/self/mem")  # reading it at 0 gives EIO
    site = look(tmp_path / "a b")
    assert [str(tmp_path) in each.subject for each in site.alerts] == [True]
    write_dashboard(public(site), tmp_path / "page")
    assert str(tmp_path) not in everything_in(tmp_path / "page")
    (alert,) = data_of(tmp_path / "page/data/site.js")["alerts"]
    assert alert["subject"] == {1: "one.log", 2: "2 files in local"}[len(names)]


def test_the_front_page_says_where_files_lie_unevenly_but_not_to_the_public(tmp_path: Path) -> None:
    full = {"fullest_target": "OST3", "fullest_target_percent": 97, "free_spread_percent": 80}
    write_perflog(tmp_path / "perflogs", daily([1.5] * 30, **full, busiest_target=2.5))
    site = look(tmp_path)
    for each, texts in ((site, unevenly_placed(site)), (public(site), None)):
        write_dashboard(each, tmp_path / "page")
        assert data_of(tmp_path / "page/data/site.js").get("uneven") == texts
    assert "OST3 is 97 % full" in unevenly_placed(site)[0]


def test_a_day_of_an_alert_leads_to_its_page_and_an_old_one_to_a_command(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(0.6, since=60, until=40, file_system="a")).read()
    write_dashboard(site, tmp_path / "page")
    found = data_of(tmp_path / "page/data/site.js")
    (over,) = found["over"]
    assert over["page"] == found["lately"][0]["page"] == "alerts/here-1.html"
    assert (tmp_path / "page" / over["page"]).is_file()
    assert len(over["series"]) == 4
    assert over["since"] < over["ended"] < NOW.timestamp()
    assert found["lately"][0]["number"] == 1


def test_alerts_of_one_number_in_two_systems_lead_to_their_own_pages(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(0.6, since=60, until=40, file_system="a")).read()
    (past,), (entry,) = site.past, site.ledger.entries
    other = replace(past, system="there")  # of the same time, too
    entries = (entry, replace(entry, system="there"))
    ledger = replace(site.ledger, entries=entries)
    found = overview(replace(site, past=(past, other), ledger=ledger), {})
    pages = [each["page"] for each in found["lately"]]
    assert pages == ["alerts/here-1.html", "alerts/there-1.html"]


HINTS = "cb_config_list=node-of-jim:1,node-of-joe:1,cb_nodes=2"


def test_users_see_rates_settings_commands_and_advice(tmp_path: Path) -> None:
    rows = []
    for seed, (name, level) in enumerate((("quick", 3.0), ("slow", 1.5), ("fallen", 6.0))):
        values = healthy(seed=seed, level=level)
        values[-9:] = [each * (0.4 if name == "fallen" else 1.0) for each in values[-9:]]
        rows += daily(values, file_system=name, hints_in_effect=HINTS)
    rows += daily([2.0] * 3, file_system="new", hints_in_effect=HINTS)
    write_perflog(tmp_path / "perflogs", rows)
    site = public(look(tmp_path))
    recommended, advised = published_of(site, tmp_path)
    blocks = users_section(
        site, recommended["here"], advised, {("here", "quick"): "/work", ("here", "x"): "/x"}
    )
    (rates,) = (each for each in blocks if isinstance(each, Table))
    today = {row[1]: row[-1] for row in rates.rows}
    assert (today["quick"], today["new"]) == ("as usual", "too new to tell")
    assert re.fullmatch(r"−\d\d % since 1[0-3] Nov", today["fallen"])
    lists = [line for each in blocks if isinstance(each, Bullets) for line in each.lines]
    assert "quick: /work" in lists
    assert "x: /x" not in lists
    assert not any("node-of-joe" in line for line in lists)
    best = [line for line in lists if "fallen rather than" in line]
    assert len(best) == 2
    # advice for settings whose series fell says so
    assert all(line.endswith(f"; fallen today: {today['fallen']}") for line in best)
    write_dashboard(site, tmp_path / "page", users=blocks)
    shown = data_of(tmp_path / "page/data/site.js")["users"]
    assert [kind for kind, _ in shown][:3] == ["Heading", "Paragraph", "Table"]
    assert "node-of" not in everything_in(tmp_path / "page")


def test_users_of_several_systems_read_which_one_it_is(tmp_path: Path) -> None:
    for system, level in (("one", 3.0), ("two", 1.5)):
        rows = daily(healthy(level=level), system=system)
        write_perflog(tmp_path / "perflogs", rows, system=system)
    site = public(look(tmp_path))
    found, advised = published_of(site, tmp_path)
    paths = {("one", "disk"): "/a", ("two", "disk"): "/b", ("two", "x"): "/x"}
    blocks = users_section(site, [*chain(*found.values())], advised, paths)
    (rates,) = (each for each in blocks if isinstance(each, Table))
    assert [row[1] for row in rates.rows] == ["disk (one)", "disk (two)"]
    assert Bullets(("disk (one): /a", "disk (two): /b")) in blocks
    settings = [each.text for each in blocks if isinstance(each, Heading) and each.level == 3]
    assert settings == ["File per process (FPP) (one)", "File per process (FPP) (two)"]


def test_targets_of_several_systems_name_theirs(tmp_path: Path) -> None:
    rows = with_targets(8, targets=4)
    for system in ("one", "two"):
        of_it = [row.replace("|here|", f"|{system}|") for row in rows]
        write_perflog(tmp_path / "perflogs", of_it, system=system)
    places = overview(look(tmp_path), {})["places"]
    assert [each["name"] for each in places] == [
        "OSTs of work system=one",
        "OSTs of work system=two",
    ]


def test_a_public_path_is_a_mount_point() -> None:
    mounts = ["/", "/proc", "/work", "/work/z19", "/workshop"]
    assert _mount_of("/work/z19/shared/jane", mounts) == "/work/z19"
    assert _mount_of("/work/z1", mounts) == "/work"
    assert _mount_of("/var/tmp/jane", mounts) == ""
