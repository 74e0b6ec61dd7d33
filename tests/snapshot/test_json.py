"""The typed part of a snapshot as JSON, as `iobands status --format json` prints it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from numpy.typing import NDArray

from iobands.judge.site import read_site
from iobands.model import VARIABLE_UNITS, SeriesKey
from iobands.snapshot import Alert, Columns, Incident, Snapshot, public
from iobands.snapshot.stored import to_json
from tests.factory import NOW, ROW, daily, write_perflog
from tests.sites import NOTHING_KNOWN, whole_demo
from tests.snapshot.read_back import from_json, hints_of, without_none
from tests.snapshot.schema import schema
from tests.snapshot.test_stored import SITES
from tests.views.sites import everything, look

VALIDATOR = Draft202012Validator(schema(), format_checker=Draft202012Validator.FORMAT_CHECKER)


def demo(root: Path) -> Snapshot:
    whole_demo(root, NOW)
    return read_site(root / "perflogs", root / "config/bands", root / "config/alerts", now=NOW)


def as_data(site: Snapshot) -> dict:
    return json.loads(to_json(site), parse_constant=pytest.fail)


def problems(site: Snapshot) -> list[str]:
    """Return the paths at which the JSON violates the schema."""
    return [error.json_path for error in VALIDATOR.iter_errors(as_data(site))]


@pytest.mark.parametrize("make", [demo, *SITES])
def test_what_is_read_equals_what_was_written(make, tmp_path: Path) -> None:
    site = make(tmp_path)
    for each in (site, public(site)):
        assert from_json(to_json(each)) == each
        assert to_json(from_json(to_json(each))) == to_json(each)
        assert problems(each) == []
    changed = replace(site, series=site.series[1:])
    assert from_json(to_json(changed)) != site


TEXTS = st.text(max_size=5)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
SIMPLE = {
    bool: st.booleans(),
    int: st.integers(-(2**53), 2**53),
    float: st.floats(allow_nan=False),
    str: TEXTS,
    Path: TEXTS.map(Path),
    datetime: st.datetimes(timezones=st.just(timezone.utc)),
    Any: TEXTS | FINITE | st.none(),
    object: TEXTS | FINITE | st.none(),
    Columns: st.just(NOTHING_KNOWN.samples),
    pl.DataFrame: st.just(NOTHING_KNOWN.speeds),
}
#: Fields for which not every value of the type makes sense, such as references to a series.
FIELDS = {
    (SeriesKey, "variable"): st.sampled_from(sorted(VARIABLE_UNITS)),
    (Alert, "members"): st.just(()),
    (Incident, "ratios"): st.just({}),
    (Snapshot, "retired"): st.just(()),
}


def any_of(hint: Any) -> st.SearchStrategy:  # noqa: PLR0911 (one a type)
    """Return values of a type."""
    kind = without_none(hint)
    if kind is not hint:
        return st.none() | any_of(kind)
    if kind in SIMPLE:
        return SIMPLE[kind]
    origin, parts = get_origin(kind), get_args(kind)
    if origin is get_origin(NDArray[np.float64]):
        return st.just(np.empty(0))
    if origin is Literal:
        return st.sampled_from(parts)
    if origin is Mapping:
        return st.dictionaries(TEXTS, any_of(parts[1]), max_size=1)
    if origin is frozenset or (origin is tuple and parts[-1] is ...):
        return st.lists(any_of(parts[0]), max_size=1).map(origin)
    if origin is tuple:
        return st.tuples(*map(any_of, parts))
    kind = origin or kind
    if issubclass(kind, Enum):
        return st.sampled_from(kind)
    hints = hints_of(kind)
    names = [each.name for each in fields(kind)]
    return st.builds(
        kind,
        **{
            name: FIELDS[kind, name] if (kind, name) in FIELDS else any_of(hints[name])
            for name in names
        },
    )


@given(any_of(Snapshot))
def test_whatever_the_values_are(site: Snapshot) -> None:
    text = to_json(site)
    assert from_json(text) == site
    assert to_json(from_json(text)) == text
    assert problems(site) == []


def test_what_is_no_number_in_json_is_a_word() -> None:
    site = replace(NOTHING_KNOWN, threshold=math.inf, false_alarms_a_year=math.nan)
    found = as_data(site)
    assert (found["threshold"], found["false_alarms_a_year"]) == ("Infinity", "NaN")
    assert problems(site) == []
    read = from_json(to_json(site))
    assert read.threshold == math.inf
    assert math.isnan(read.false_alarms_a_year)


@pytest.fixture
def site(tmp_path: Path) -> Snapshot:
    return everything(tmp_path)


def test_the_site(site: Snapshot) -> None:
    found = as_data(site)
    assert (found["schema"], found["exit_status"]) == ("iobands-status/5", 2)
    assert len(found["rejected"]) == found["rejected_lines"] == 7
    assert found["rejected"][0]["line"] > 1
    assert found["skipped"][0]["reason"] == "not installed: ior: find it"
    file_systems = {each["name"]: each for each in found["file_systems"]}
    # three series of 120 samples; the first 20 have no band; two fell 15 runs ago
    assert file_systems["scratch"]["outliers"]["runs"] == 270


def test_alerts_have_their_members(site: Snapshot) -> None:
    alerts = {alert["subject"]: alert for alert in as_data(site)["alerts"]}
    scratch = alerts["scratch writes"]
    assert (scratch["severity"], scratch["direction"]) == ("degraded", "down")
    assert (scratch["certainty"], scratch["exit_status"]) == ("certain", 2)
    members = {member["series"]: member for member in scratch["members"]}
    assert set(members) == {"scratch fpp write_bw", "scratch ssf write_bw"}
    member = members["scratch fpp write_bw"]
    assert member["ratio"]["low"] < 0.4 < member["ratio"]["high"]
    assert member["baseline"] == pytest.approx(1.5, rel=0.05)
    assert member["unit"] == "GiB/s"
    home = alerts["home fpp write_bw"]
    assert (home["is_quiet"], home["exit_status"]) == (True, 1)
    assert home["acknowledgement"]["action"]["who"] == "jane"


def test_series(site: Snapshot) -> None:
    by_label = {series["label"]: series for series in as_data(site)["series"]}
    disk = by_label["disk fpp write_bw"]
    status = disk["status"]
    assert (status["value"], disk["key"]["unit"], status["verdict"]) == (1.5, "GiB/s", "within")
    assert (disk["key"]["system"], disk["key"]["nodes"], disk["key"]["gib"]) == ("here", 1, 0.5)
    assert status["band"]["floor"] == pytest.approx(0.353553, abs=1e-6)  # 1 (1/2)^1.5
    assert status["when"] == "2026-11-20T19:30:00+00:00"
    assert by_label["disk fpp read_bw"]["status"]["state"] == "no data"
    evidence = by_label["scratch fpp write_bw"]["status"]["evidence"]
    assert [change["direction"] for change in evidence["changes"]] == ["down"]
    assert evidence["today"] > evidence["threshold"]


def test_every_column_of_the_newest_sample_is_there(tmp_path: Path) -> None:
    fields = {
        name: {"null": "7"}.get(value, value)
        for name, value in ROW.items()
        if name not in {"job_completion_time", "perf_value", "fail_phase", "case"}
    }
    write_perflog(tmp_path / "perflogs", daily([1.0, 2.5], **fields))
    (series,) = as_data(look(tmp_path))["series"]
    newest = series["history"]["newest"]
    assert newest["perf_value"] == 2.5
    read = {name for name in fields if name in newest}
    assert all(newest[name] is not None for name in read)
    assert read >= {"fullness_percent", "client_read_gib", "job_nodelist", "stripe_size", "version"}


def test_a_field_that_an_older_text_lacks_has_its_default() -> None:
    typed = as_data(NOTHING_KNOWN)
    del typed["clock"], typed["alerts"]
    assert from_json(json.dumps(typed | {"later": 1})) == NOTHING_KNOWN
