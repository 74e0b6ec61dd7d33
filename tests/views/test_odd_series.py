"""Every view of odd series: with few, equal or extreme values, wrong clocks or odd names."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobands.snapshot.stored import to_json
from iobands.views.dashboard.overview import overview
from iobands.views.dashboard.write import write_dashboard
from iobands.views.digest import SCREEN, explanation
from iobands.views.figures import evidence
from tests.factory import case, daily, days_ago, line, write_perflog, write_report
from tests.snapshot.read_back import from_json
from tests.views.sites import dropped, healthy, look
from tests.views.test_digest import text

LONG = "a" * 300
ODD = {
    "one": daily([5.0]),
    "two": daily([5.0, 4.0]),
    "twenty": daily([5.0] * 20),
    "equal": daily([5.0] * 60),
    "equal and then less": daily([5.0] * 60 + [3.5] * 12),
    "ties": daily([5.0, 6.0] * 50 + [4.0] * 12),
    "extreme": daily([2.0**30, 2.0**-30] * 20),
    "at one moment": [line(perf_value=value, jobid=job) for job, value in enumerate(healthy(40))],
    "in the future": [*daily(healthy(60)), line(job_completion_time=days_ago(-30))],
    "none": daily([None, None]),
    "markup": daily([1.0], file_system="[red]x[/red] {{ 7 * 7 }} %s", pattern="<b>"),
    "long": daily(dropped(), file_system=LONG),
    "wide": daily(dropped(), file_system="ディスク", pattern="\u202eabc"),
}


@pytest.mark.parametrize("name", ODD)
def test_every_view(tmp_path: Path, name: str) -> None:
    write_perflog(tmp_path / "perflogs", ODD[name])
    site = look(tmp_path)
    (series,) = site.series
    for width in (40, 80, 100):
        assert text(site, width, every=True)
    assert from_json(to_json(site)) == site
    assert series.status.state.value in explanation(site, series, 10_000).splitlines()[0]
    assert (evidence(site, series) is None) == (series.status.runs == 0)
    write_dashboard(site, tmp_path / "dashboard")
    assert (tmp_path / "dashboard" / "index.html").is_file()


def test_reasons_of_other_people_are_cut(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.0]))
    write_report(tmp_path / "perflogs", [case(file_system="x", fail_reason=f"error: {LONG}\n" * 9)])
    rows = text(look(tmp_path)).split("CHECK ")[0].splitlines()
    assert max(map(len, rows)) <= 100


def test_an_endless_name_leaves_room_for_other_alerts_and_rates(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily(dropped(0.5), file_system="x" * 20_000))
    site = look(tmp_path)
    assert len(text(site, 80).splitlines()) <= SCREEN
    front = overview(site, {})
    (alert,) = front["alerts"]
    assert len(alert["subject"]) < 300
    assert len(str(front["headline"])) < 300
    assert len(explanation(site, site.alerts[0], 80)) < 3000
