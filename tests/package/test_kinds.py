"""Rows by their kinds, and the way between Arrow and numpy: what comes back is what went in."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from iobands.history import History, histories
from iobands.readers.fields import FIELDS
from iobands.readers.kinds import KIND, Rows, combined, factored
from iobands.readers.table import (
    arrow,
    concatenated,
    flags,
    from_rows,
    places,
    plain,
    there,
    to_pandas,
)
from iobands.series import grouping, grouping_of
from tests.package.factory import NOW

MISSING = np.array([False, True, False, False, True])


def table(*rows: dict[str, object]) -> pa.Table:
    whole = [{**dict.fromkeys(FIELDS), "job_completion_time": NOW, **row} for row in rows]
    return concatenated([from_rows(whole, range(len(whole)))])


FIRST = table(
    {"tool": "a", "nodes": 1, "gib": 0.5, "perf_var": "write_bw", "perf_value": 1.0, "jobid": "7"},
    {"tool": "b", "nodes": None, "perf_var": "write_bw", "perf_value": 2.0},
    {"tool": "a", "nodes": 1, "gib": 0.5, "perf_var": "write_bw", "perf_value": 3.0},
    {"tool": None, "nodes": 1, "gib": 0.5, "perf_var": "write_bw", "job_nodelist": "n1"},
)
SECOND = table(
    {"tool": "c", "suite_version": "0.2", "perf_var": "read_bw", "perf_value": 4.0},
    {"tool": "b", "nodes": None, "perf_var": "write_bw", "perf_value": 5.0},
)


def test_rows_come_back_whole() -> None:
    rows, kinds = factored(FIRST)
    assert rows.column(KIND).to_pylist() == [0, 1, 0, 2]
    found = Rows(rows, kinds)
    pd.testing.assert_frame_equal(found.frame(), to_pandas(FIRST), check_categorical=False)
    some = found.only(np.array([True, False, False, True]))
    expected = to_pandas(FIRST).iloc[[0, 3]].reset_index(drop=True)
    pd.testing.assert_frame_equal(some.frame(), expected, check_categorical=False)


def test_what_is_added_goes_with_the_kinds_that_are_known() -> None:
    rows, kinds = factored(FIRST)
    more, every = factored(SECOND, kinds)
    assert more.column(KIND).to_pylist() == [3, 1]
    assert len(every) == 4
    whole = Rows(concatenated([rows, more]), every)
    expected = to_pandas(concatenated([FIRST, SECOND]))
    pd.testing.assert_frame_equal(whole.frame(), expected, check_categorical=False)


def test_histories_are_those_of_the_tables() -> None:
    every = Rows(*factored(concatenated([FIRST, SECOND])))
    whole = every.only(there(every.table.column("perf_value").combine_chunks()))
    series = grouping_of(whole.kinds)
    frame = whole.frame()
    expected = {key: History.of(rows) for key, rows in grouping(frame).split(frame)}
    found = dict(histories(whole, series))
    assert found.keys() == expected.keys()
    for key, history in found.items():
        other = expected[key]
        for name in ("times", "values", "passed", "too_slow", "alike"):
            np.testing.assert_array_equal(getattr(history, name), getattr(other, name))
        assert [None if n < 0 else history.lists[n].as_py() for n in history.nodes] == [
            None if n < 0 else other.lists[n].as_py() for n in other.nodes
        ]
        assert history.newest == {name: other.newest[name] for name in history.newest}


def test_no_rows_and_no_kinds() -> None:
    rows, kinds = factored(FIRST.slice(0, 0))
    assert (len(rows), len(kinds)) == (0, 0)
    assert Rows(rows, kinds).frame().empty
    assert [each.tolist() for each in combined([])] == [[], []]


@pytest.mark.parametrize("kind", ["int32", "int64", "float64"])
def test_numbers_to_arrow_and_back(kind: str) -> None:
    values = np.arange(5, dtype=kind)
    assert arrow(values).equals(pa.array(values))
    assert arrow(values, MISSING).equals(pa.array(values, mask=MISSING))
    for part in (arrow(values, MISSING), arrow(values, MISSING).slice(1, 3), arrow(values[:0])):
        known = there(part)
        assert known.tolist() == part.is_valid().to_pylist()
        assert plain(part)[known].tolist() == [
            each for each in part.to_pylist() if each is not None
        ]


def test_truths_and_texts_to_numpy() -> None:
    assert arrow(MISSING).equals(pa.array(MISSING))
    assert flags(pa.array(MISSING).slice(1, 3)).tolist() == [True, False, False]
    texts = pa.array(["x", None, "y", "x"]).dictionary_encode()
    assert places(texts).tolist() == [0, -1, 1, 0]
    assert places(texts.slice(1)).tolist() == [-1, 1, 0]
    assert there(pa.nulls(2)).tolist() == [False, False]


def test_the_command_line_does_not_wait_for_pandas() -> None:
    code = "import sys, iobands.commands.main; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
