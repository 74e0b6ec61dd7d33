"""Performance data, as Nagios and Icinga read them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from iobands.model import UNKNOWN, Rejected
from iobands.snapshot import Snapshot
from iobands.views.digest import performance, plugin_line
from tests.conftest import Command
from tests.factory import NOW, daily, write_perflog
from tests.sites import NOTHING_KNOWN
from tests.views.sites import healthy, look

#: One datum as defined by the guidelines for plug-ins.
DATUM = re.compile(
    r"'((?:[^'=]|'')*)'=(-?[0-9.e+-]+);;((?:[0-9.e+-]+:)?);0(?: |$)",
)


def site(root: Path) -> Snapshot:
    rows = daily(healthy())
    rows += daily([2.5], perf_var="read_bw", file_system="it's a=b", pattern="fpp")
    rows += daily([7.5], file_system="disk", pattern="ssf", stripe_count_asked=4)
    rows += daily([7.5], file_system="disk", pattern="ssf", stripe_count_asked=-1)
    write_perflog(root / "perflogs", rows)
    return look(root)


def test_each_rate_is_a_datum_with_its_floor(tmp_path: Path) -> None:
    found = site(tmp_path)
    line = plugin_line(found)
    assert line.count("|") == 1
    text, data = line.split(" | ")
    assert text.startswith("IOBANDS OK: ")
    read = {label: (value, floor) for label, value, floor in DATUM.findall(data)}
    assert "".join(each[0] for each in DATUM.finditer(data)) == data
    assert sorted(read) == [
        "disk fpp write_bw",
        "disk ssf stripes 4 write_bw",
        "disk ssf stripes all write_bw",
        "it''s a b fpp read_bw",
    ]
    (series,) = [each for each in found.series if each.label == "disk fpp write_bw"]
    assert series.status.value is not None and series.status.band is not None
    value, floor = read["disk fpp write_bw"]
    assert abs(float(value) - series.status.value) < 1e-5
    assert abs(float(floor.removesuffix(":")) - series.status.band.floor) < 1e-5
    assert read["it''s a b fpp read_bw"] == ("2.5", "")


def test_a_series_has_no_rate_while_its_samples_are_missing(tmp_path: Path) -> None:
    known, other = site(tmp_path).series[:2]
    lacks = replace(other, status=replace(other.status, missing="the run failed"))
    (datum,) = performance(replace(NOTHING_KNOWN, series=(known, lacks)))
    assert datum.startswith(f"'{known.label}'=")


def test_a_site_without_rates_has_no_bar() -> None:
    assert performance(NOTHING_KNOWN) == []
    assert plugin_line(NOTHING_KNOWN) == "IOBANDS UNKNOWN: no samples; measure with: iobands run"


def test_the_line_says_what_cannot_be_read() -> None:
    lines = Rejected(Path("perflogs/a.log"), 7, "12 columns instead of 60")
    unread = Rejected(Path("perflogs/b"), 0, "cannot be read: Permission denied", is_unread=True)
    line = plugin_line(replace(NOTHING_KNOWN, rejected=(lines,)))
    assert line.endswith("; 1 line rejected")
    line = plugin_line(replace(NOTHING_KNOWN, rejected=(lines, unread)))
    assert line.endswith("; 2 lines rejected; perflogs/b: cannot be read: Permission denied")


def test_a_bar_in_a_name_does_not_end_the_text(tmp_path: Path) -> None:
    (series, *_) = site(tmp_path).series
    found = replace(NOTHING_KNOWN, series=(replace(series, label="a|b\nc"),))
    (datum,) = performance(found)
    assert datum.startswith("'a/b?c'=")


def test_the_command_has_the_exit_status_of_the_site(tmp_path: Path, iobands: Command) -> None:
    found = site(tmp_path)
    of_then = ("--as-of", NOW.isoformat(), f"--perflogs={tmp_path / 'perflogs'}")
    done = iobands("status", "--format", "plugin", *of_then)
    assert done.returncode == found.exit_status
    assert done.stdout.count("\n") == 1
    assert " | 'disk fpp write_bw'=" in done.stdout


def test_a_monitor_sees_why_the_site_cannot_be_read(tmp_path: Path, iobands: Command) -> None:
    done = iobands("status", "--format", "plugin", f"--perflogs={tmp_path / 'absent'}")
    assert done.returncode == UNKNOWN
    assert done.stdout.startswith(f"IOBANDS UNKNOWN: {tmp_path / 'absent'}: ")
    assert done.stderr == ""
