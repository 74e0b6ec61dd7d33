"""Samples by series: which samples belong together, and the arrays of each series."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iobands.snapshot import History
from iobands.source.perflog import read_perflogs
from iobands.source.samples import Samples
from tests.factory import NOW, daily, line, write_perflog
from tests.model.test_series import KEY


def read(directory: Path, *rows: str) -> Samples:
    write_perflog(directory, rows)
    samples = read_perflogs(directory)
    assert samples.rejected == ()
    return samples


def only(samples: Samples) -> History:
    (history,) = samples.histories.values()
    return history


def test_series_differ_by_their_fields_alone(tmp_path: Path) -> None:
    samples = read(
        tmp_path,
        *daily([1.0, 2.0]),
        *daily([3.0], last=5, nodes="1.0", jobid="7", version="5.0"),
        *daily([4.0], stripe_count_asked="-1"),
        *daily([5.0], perf_var="read_bw"),
        *daily([6.0], case="csc-aggregators 2"),
    )
    expected = {
        KEY: [3.0, 1.0, 2.0],
        replace(KEY, stripe_count_asked=-1): [4.0],
        replace(KEY, variable="read_bw"): [5.0],
        replace(KEY, case="csc-aggregators 2"): [6.0],
    }
    assert {key: each.values.tolist() for key, each in samples.histories.items()} == expected
    assert {
        key: samples.values.rows(samples.rows[key])["perf_value"].to_list() for key in expected
    } == expected
    assert replace(KEY, hints="none") not in samples.rows


def test_older_perflogs_without_the_column_of_cases_are_of_the_same_series(tmp_path: Path) -> None:
    path = write_perflog(tmp_path, daily([2.0], last=5), name="Older.log")
    rows = [text.split("|") for text in path.read_text().splitlines()]
    at = rows[0].index("case")
    path.write_text("".join("|".join(row[:at] + row[at + 1 :]) + "\n" for row in rows))
    samples = read(tmp_path, *daily([1.0]))
    assert {key: each.values.tolist() for key, each in samples.histories.items()} == {
        KEY: [2.0, 1.0]
    }


def test_arrays_of_a_history(tmp_path: Path) -> None:
    found = only(
        read(
            tmp_path,
            *daily([1.0], last=3),
            *daily([2.0], last=2, result="fail", fail_phase="performance"),
            *daily([3.0], last=1, result="fail", fail_phase="cleanup", hints_in_effect="a=b"),
        )
    )
    assert found.times[-1] - found.times[0] == np.timedelta64(2, "D")
    assert found.times.dtype == np.dtype("datetime64[ns]")
    assert (NOW - found.last).days == 1
    assert found.values.tolist() == [1, 2, 3]
    assert found.passed.tolist() == [True, False, False]
    assert found.too_slow.tolist() == [False, True, False]
    assert (found.newest["hints_in_effect"], found.newest["stripe_count"]) == ("a=b", None)


@pytest.mark.parametrize(
    ("field", "values", "alike"),
    [
        ("tool_version", ["1", "null", "1"], [True, False, True]),
        ("tool_version", ["1", "null"], [False, True]),
        ("tool_version", ["null", "null"], [True, True]),
        ("fsync", ["true", "false", "true"], [True, False, True]),
        ("suite_version", ["1.9.1", "2.0", "2.1", "20.0", "2"], [False, True, True, False, True]),
        ("version", ["4.9", "4.10"], [True, True]),
    ],
)
def test_samples_that_were_measured_as_the_newest(
    tmp_path: Path, field: str, values: list[str], alike: list[bool]
) -> None:
    rows = [daily([1.0], last=9 - day, **{field: value})[0] for day, value in enumerate(values)]
    assert only(read(tmp_path, *rows)).alike.tolist() == alike


def test_no_samples(tmp_path: Path) -> None:
    samples = read(tmp_path, line(perf_var="null", perf_value="null", perf_unit="null"))
    assert (samples.rows, samples.histories) == ({}, {})
