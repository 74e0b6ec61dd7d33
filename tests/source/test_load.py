"""`iobands.load` and `iobands.status`: samples, states and alerts as pandas frames."""

from __future__ import annotations

from pathlib import Path

import pytest

import iobands
from iobands.model import READ
from tests.factory import NOW, case, daily, write_bands, write_perflog, write_report
from tests.views.sites import dropped


def test_load(tmp_path: Path) -> None:
    write_perflog(tmp_path, [*daily([1.0, None, 3.0]), *daily([5.0], last=9, stripe_count=4)])
    frame = iobands.load(tmp_path)
    assert list(frame.columns) == list(READ)
    assert frame["perf_value"].tolist() == [5, 1, 3]
    assert frame.loc[frame["perf_value"] > 2, "stripe_count"].isna().tolist() == [False, True]
    assert (NOW - frame["job_completion_time"].iloc[-1]).total_seconds() == 6 * 3600
    assert frame.groupby("pattern")["perf_value"].count().to_dict() == {"fpp": 3}
    assert frame["hints_in_effect"].isna().all()
    assert frame.attrs["rejected"] == []
    assert len(iobands.load(tmp_path, "there")) == 0


def test_status(tmp_path: Path) -> None:
    factors = {"scratch": 0.6, "home": 1.0}
    rows = [
        row
        for seed, (name, factor) in enumerate(factors.items())
        for row in daily(dropped(factor, seed), file_system=name)
    ]
    write_perflog(tmp_path / "perflogs", rows)
    write_report(tmp_path / "perflogs", [case(display_name="Broken", file_system="x")])
    states, alerts = iobands.status(tmp_path / "perflogs", now=NOW)
    assert states["label"].tolist() == ["home fpp write_bw", "scratch fpp write_bw"]
    assert states["state"].tolist() == ["healthy", "degraded"]
    assert states["file_system"].tolist() == ["home", "scratch"]
    assert states["runs"].tolist() == [120, 120]
    assert states["unit"].unique().tolist() == ["GiB/s"]
    assert (NOW - states["when"].max()).total_seconds() == 6 * 3600
    assert alerts["severity"].tolist() == ["degraded", "failed"]
    assert alerts["name"].tolist() == ["1", "Broken"]
    assert alerts["label"].tolist()[0] == "scratch fpp write_bw"
    assert alerts["label"].isna().tolist() == [False, True]
    assert alerts["ratio"].tolist()[0] == pytest.approx(0.6, rel=0.1)
    assert alerts["baseline"].tolist()[0] == pytest.approx(1.5, rel=0.1)


def test_without_samples_the_frames_have_their_columns(tmp_path: Path) -> None:
    (tmp_path / "perflogs").mkdir()
    nothing = iobands.status(tmp_path / "perflogs", now=NOW)
    write_perflog(tmp_path / "perflogs", daily([1.5] * 30))
    states, alerts = iobands.status(tmp_path / "perflogs", now=NOW)
    assert [list(each.columns) for each in nothing] == [list(states.columns), list(alerts.columns)]
    assert len(iobands.load(tmp_path / "perflogs", "there").columns) == len(READ)


def test_status_by_bands_and_without_alerts(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.5] * 30))
    write_bands(tmp_path / "config" / "bands", variable="write_bw", file_system="disk")
    states, alerts = iobands.status(tmp_path / "perflogs", now=NOW)
    assert states["verdict"].tolist() == ["within"]
    assert states["median"].tolist() == [1.5]
    assert alerts["severity"].tolist() == []
    states, _ = iobands.status(tmp_path / "perflogs", tmp_path / "elsewhere", now=NOW)
    assert states["state"].tolist() == ["healthy"]
