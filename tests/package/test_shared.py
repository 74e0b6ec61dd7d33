"""A drop that the series of a file system share is found and told once."""

from __future__ import annotations

from pathlib import Path

from iobands.concerns import concerns
from iobands.digest_json import as_json
from iobands.survey import Survey, take_survey
from tests.package.factory import NOW, daily, write_perflog
from tests.package.test_states import dropped


def survey(tmp_path: Path, factor: float, moving: int) -> Survey:
    rows = []
    for seed, pattern in enumerate(("fpp", "fpn", "ssf", "serial")):
        values = dropped(150, 12, factor if seed < moving else 1.0, seed + 10)
        rows += daily(values, pattern=pattern)
    write_perflog(tmp_path / "perflogs", rows)
    return take_survey(tmp_path / "perflogs", tmp_path / "bands", now=NOW)


def test_a_common_drop_is_one_concern(tmp_path: Path) -> None:
    found = survey(tmp_path, 0.75, 4)
    (common,) = found.common
    assert len(common.keys) == 4
    assert common.change.ratio.low < 0.75 < common.change.ratio.high
    told = [each for each in concerns(found) if each.word == "degraded"]
    assert [each.names for each in told] == [("all disk write_bw",)]
    assert found.exit_status == 2
    (told_as_data,) = as_json(found)["common"]
    assert (told_as_data["name"], len(told_as_data["series"])) == ("all disk write_bw", 4)


def test_one_series_alone_is_no_common_drop(tmp_path: Path) -> None:
    found = survey(tmp_path, 0.6, 1)
    assert found.common == ()
    assert [each.names for each in concerns(found) if each.word == "degraded"] == [
        ("disk fpp write_bw",)
    ]
