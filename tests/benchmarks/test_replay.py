"""The replay of a real site: told once, on the day of the raising, from nothing of later days."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from benchmarks.alarms.real import ADAPTER, RealPage, mark
from benchmarks.alarms.replay import Replay, replay

_FIRST = datetime(2026, 1, 1, 5, tzinfo=timezone.utc)
_DAYS = 60
_DROP = 40  # the day from which on the writes are at 0.4
_COLLAPSED = 35


def table(path: Path, days: int) -> Path:
    """Write what a site measured up to a day: steady reads, and writes that fall once."""
    random = np.random.default_rng(3)
    spread = np.exp(0.05 * random.standard_normal((_DAYS, 2)))
    lines = [
        "time,system,file_system,application,pattern,operation,processes,volume_gib,"
        "bandwidth_gib_s,ost_full_percent"
    ]
    for day in range(days):
        when = _FIRST + timedelta(days=day)
        write = 10 * spread[day, 0] * (0.4 if day >= _DROP else 0.2 if day == _COLLAPSED else 1)
        for operation, value in (("write", write), ("read", 20 * spread[day, 1])):
            lines.append(f"{when},site,fs,ior,shared,{operation},8,4,{value:.4f},50")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Replay:
    """Return what was told of all days."""
    return replay(table(tmp_path_factory.mktemp("real") / "all.csv", _DAYS), ADAPTER, 1)


def test_a_drop_is_told_once_and_on_its_day(told: Replay) -> None:
    (alarm,) = told.alarms
    assert (alarm.key.variable, alarm.first.direction) == ("write_bw", "down")
    assert alarm.first.raised.date() == (alarm.day - timedelta(days=1)).date()
    assert alarm.first.since == _FIRST + timedelta(days=_DROP)
    assert timedelta(0) < alarm.first.raised - alarm.first.since < timedelta(days=10)
    assert alarm.last.ratio.low < 0.4 < alarm.last.ratio.high
    assert len(told.limits) == 1


def test_no_later_day_is_in_what_was_told(told: Replay, tmp_path: Path) -> None:
    short = replay(table(tmp_path / "short.csv", 50), ADAPTER, 2)
    for key, days in short.days.items():
        assert days == told.days[key][:50]
    assert [each.first for each in short.alarms] == [each.first for each in told.alarms]


def test_runs_are_counted_by_each_way_of_judging(told: Replay) -> None:
    writes, reads = sorted(told.days, key=lambda key: key.variable, reverse=True)
    # of the writes the collapsed one, and each since the drop, are under 0.7 of the median
    assert sum(day.under_reference for day in told.days[writes]) == 1 + _DAYS - _DROP
    assert sum(day.under_reference for day in told.days[reads]) == 0
    collapsed = _FIRST + timedelta(days=_COLLAPSED)
    assert collapsed in [day.when for day in told.transients(writes)]
    # no band for 20 runs, and then a quarter of the healthy ones
    assert 3 <= sum(day.under_quartile for day in told.days[reads]) <= 18
    assert told.years(reads) == pytest.approx((_DAYS - 1) / 365.25)


def test_the_page_tells_and_draws_each_alarm(told: Replay, tmp_path: Path) -> None:
    page = RealPage(told, Path("a-year.csv"))
    text = page.text("2026-11-21")
    (alarm,) = told.alarms
    assert (
        mark("fs shared write_bw", alarm)
        == f"fs shared write_bw degraded {alarm.first.raised:%Y-%m-%d}"
    )
    assert "| 1 | fs shared write_bw degraded | 2026-02-10" in text
    assert "not looked at yet" in text
    page.draw(tmp_path)
    assert (tmp_path / "real-fs.png").read_bytes().startswith(b"\x89PNG")
