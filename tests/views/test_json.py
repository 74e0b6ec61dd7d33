"""The data of `iobands status --format json`."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from iobands.snapshot import Snapshot
from iobands.views.json import as_json, plain
from tests.factory import ROW, daily, write_perflog
from tests.views.sites import everything, look


@pytest.fixture
def site(tmp_path: Path) -> Snapshot:
    return everything(tmp_path)


def as_data(site: Snapshot) -> dict:
    return json.loads(json.dumps(as_json(site), allow_nan=False))


def test_the_site(site: Snapshot) -> None:
    found = as_data(site)
    assert (found["schema"], found["status"]) == ("iobands-status/3", 2)
    assert found["summary"].startswith("IOBANDS CRITICAL: 1 degraded, 1 degraded (acknowledged)")
    assert len(found["rejected"]) == 7
    assert found["rejected"][0]["line"] > 1
    assert found["skipped"][0]["reason"] == "not installed: ior: find it"
    outliers = {each["file_system"]: each for each in found["outliers"]}
    # three series of 120, of which the first 20 have no band; two fell 15 runs ago
    assert outliers["scratch"]["runs"] == 270


def test_alerts_have_their_members(site: Snapshot) -> None:
    alerts = {alert["subject"]: alert for alert in as_data(site)["alerts"]}
    scratch = alerts["all scratch"]
    assert (scratch["severity"], scratch["direction"]) == ("degraded", "down")
    assert scratch["certainty"] == "certain"
    members = {member["series"]: member for member in scratch["members"]}
    assert set(members) == {"scratch fpp write_bw", "scratch ssf write_bw"}
    ratio = members["scratch fpp write_bw"]["ratio"]
    assert ratio["low"] < 0.4 < ratio["high"]
    assert members["scratch fpp write_bw"]["baseline"] == pytest.approx(1.5, rel=0.05)
    home = alerts["home fpp write_bw"]
    assert home["is_quiet"]
    assert home["acknowledgement"]["action"]["who"] == "jane"


def test_series(site: Snapshot) -> None:
    by_label = {series["label"]: series for series in as_data(site)["series"]}
    disk = by_label["disk fpp write_bw"]
    assert (disk["value"], disk["unit"], disk["verdict"]) == (1.5, "GiB/s", "within")
    assert (disk["system"], disk["nodes"], disk["gib"]) == ("here", 1, 0.5)
    assert disk["band"]["floor"] == pytest.approx(0.353553, abs=1e-6)  # 1 (1/2)^1.5
    assert disk["when"] == "2026-11-20T19:30:00+00:00"
    assert by_label["disk fpp read_bw"]["state"] == "no data"
    scratch = by_label["scratch fpp write_bw"]
    assert scratch["alerts"] == ["all scratch"]
    assert [change["direction"] for change in scratch["changes"]] == ["down"]
    assert scratch["evidence"]["down"] > scratch["evidence"]["threshold"]


def test_every_column_of_the_newest_sample_is_there(tmp_path: Path) -> None:
    fields = {
        name: {"null": "7"}.get(value, value)
        for name, value in ROW.items()
        if name not in {"job_completion_time", "perf_value", "fail_phase", "case"}
    }
    write_perflog(tmp_path / "perflogs", daily([1.0, 2.5], **fields))
    (series,) = as_data(look(tmp_path))["series"]
    newest = series["newest"]
    assert newest["perf_value"] == 2.5
    read = {name for name in fields if name in newest}
    assert all(newest[name] is not None for name in read)
    assert read >= {"fullness_percent", "client_read_gib", "job_nodelist", "stripe_size", "version"}


def test_what_is_no_number_is_null() -> None:
    assert plain({"a": math.inf, "b": (math.nan, 1.5)}) == {"a": None, "b": [None, 1.5]}
