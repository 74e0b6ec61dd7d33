"""The perflog reader: what it reads, and that it loses nothing in silence."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobands.results.perflog import Perflogs, read_perflogs
from tests.package.factory import COLUMNS, ROW, daily, line, write_perflog

DATA = Path(__file__).with_name("data")
#: A directory for each example would cost more than the example: the file is overwritten.


def read_bytes(directory: Path, content: bytes) -> Perflogs:
    path = directory / "here" / "local" / "X.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return read_perflogs(directory)


def reasons(logs: Perflogs) -> list[tuple[int, str]]:
    return [(rejected.line, rejected.reason) for rejected in logs.rejected]


def test_golden_perflog_as_reframe_wrote_it() -> None:
    logs = read_perflogs(DATA / "perflogs")
    assert logs.rejected == ()
    assert logs.samples["perf_value"].tolist() == [1.5, 0.25]
    good, collapsed = logs.samples.to_dict("records")
    assert good["job_completion_time"] == datetime(2026, 11, 21, 1, 29, 12, tzinfo=timezone.utc)
    assert good["display_name"] == "Good"
    assert (good["nodes"], good["tasks"], good["gib"]) == (1, 4, 0.5)
    assert pd.isna(good["stripe_count_asked"])
    assert (collapsed["result"], collapsed["fail_phase"]) == ("fail", "performance")
    (miss,) = logs.misses.to_dict("records")
    assert (miss["display_name"], miss["fail_phase"]) == ("Unproven", "sanity")
    assert pd.isna(miss["perf_value"])


def test_types_do_not_depend_on_the_rows(tmp_path: Path) -> None:
    empty = read_bytes(tmp_path, b"").samples
    full = read_bytes(tmp_path, f"{COLUMNS}\n{line()}\n".encode()).samples
    assert [str(kind) for kind in empty.dtypes] == [str(kind) for kind in full.dtypes]
    assert str(full["job_completion_time"].dt.tz) == "UTC"
    assert str(full["stripe_count_asked"].dtype) == "Int64"
    assert str(full["perf_value"].dtype) == "float64"


# What a line says, and why it is rejected.
WRONG = {
    "1.5x": ({"perf_value": "1.5x"}, "perf_value: '1.5x' is not a finite number"),
    "nan": ({"perf_value": "nan"}, "perf_value: 'nan' is not a finite number"),
    "inf": ({"perf_value": "inf"}, "perf_value: 'inf' is not a finite number"),
    "overflow": ({"perf_value": "1e999"}, "perf_value: '1e999' is not a finite number"),
    "underscore": ({"perf_value": "1_5"}, "perf_value: '1_5' is not a finite number"),
    "zero": ({"perf_value": "0.0"}, "perf_value: '0.0' is not above 0"),
    "half a node": ({"nodes": "1.5"}, "nodes: '1.5' is not a whole number"),
    "huge": ({"tasks": "1e300"}, "tasks: '1e300' is not a whole number"),
    "no offset": (
        {"job_completion_time": "2026-11-20T01:29:12"},
        "job_completion_time: '2026-11-20T01:29:12' is not a time with UTC offset",
    ),
    "no time": (
        {"job_completion_time": "yesterday"},
        "job_completion_time: 'yesterday' is not a time with UTC offset",
    ),
    "month 13": (
        {"job_completion_time": "2026-13-20T01:29:12+00:00"},
        "job_completion_time: '2026-13-20T01:29:12+00:00' is not a time",
    ),
    "year 1": (
        {"job_completion_time": "0001-01-01T00:00:00+14:00"},
        "job_completion_time: '0001-01-01T00:00:00+14:00' is not a time",
    ),
    "missing time": ({"job_completion_time": "null"}, "job_completion_time: missing"),
    "missing system": ({"system": ""}, "system: missing"),
    "missing variable": ({"perf_var": "None"}, "perf_var: missing"),
    "unknown variable": ({"perf_var": "speed"}, "perf_var: unknown variable 'speed'"),
    "GB/s": ({"perf_unit": "GB/s"}, "perf_unit: 'GB/s'; the variable's unit is GiB/s"),
    "missing unit": ({"perf_unit": "null"}, "perf_unit: 'null'; the variable's unit is GiB/s"),
    "one column more": ({"hints": "a|b"}, "48 columns instead of 47"),
    "NUL": ({"hints": "\0"}, "NUL bytes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_damaged_line_costs_that_line_alone(tmp_path: Path, name: str) -> None:
    fields, reason = WRONG[name]
    path = write_perflog(tmp_path, [line(perf_value=1), line(**fields), line(perf_value=2)])
    logs = read_perflogs(tmp_path)
    assert logs.samples["perf_value"].tolist() == [1, 2]
    assert [str(rejected) for rejected in logs.rejected] == [f"{path}:3: {reason}"]


def test_a_check_that_measures_nothing_is_neither_sample_nor_damage(tmp_path: Path) -> None:
    build = line(perf_var="null", perf_value="null", perf_unit="null", pattern="null", tasks="null")
    write_perflog(tmp_path, [build, line()])
    logs = read_perflogs(tmp_path)
    assert (len(logs.samples), len(logs.misses), logs.others, logs.rejected) == (1, 0, 1, ())


def test_a_dry_run_is_neither_sample_nor_miss(tmp_path: Path) -> None:
    write_perflog(
        tmp_path, [line(perf_value="null"), line(), line(result="fail", perf_value="null")]
    )
    logs = read_perflogs(tmp_path)
    assert (len(logs.samples), len(logs.misses), logs.others, logs.rejected) == (1, 1, 1, ())


def test_damaged_files(tmp_path: Path) -> None:
    head, good = f"{COLUMNS}\n".encode(), f"{line()}\n".encode()
    other = f"{line(jobid=2)}\n".encode()
    cases = [
        (b"", [(0, "empty file")], 0),
        (head, [(1, "a header line only")], 0),
        (COLUMNS.encode(), [(1, "cut off: the line has no end")], 0),
        (good, [(1, "no header line before it")], 0),
        (head + good + head + other, [(3, "another header line amid the file")], 2),
        (head + good + good[:-1], [(3, "cut off: the line has no end")], 1),
        (head + b"\n" + good, [(2, "empty line")], 1),
        (head + b"\xff\xfe\n" + good, [(2, "bytes that are not UTF-8")], 1),
        (head + good[:40] + good + good, [(2, "50 columns instead of 47")], 1),
        (b"\0" * 4096, [(1, "cut off: the line has no end")], 0),
        (head.replace(b"|gib", b""), [(1, "columns are missing: gib")], 0),
    ]
    for content, expected, samples in cases:
        logs = read_bytes(tmp_path, content)
        assert reasons(logs) == expected
        assert len(logs.samples) == samples


def test_windows_ends_and_added_columns(tmp_path: Path) -> None:
    header, row = f"new|{COLUMNS}|more", f"x|{line(perf_value=3)}|y"
    logs = read_bytes(tmp_path, f"{header}\r\n{row}\r\n".encode())
    assert logs.rejected == ()
    assert logs.samples["perf_value"].tolist() == [3]


def test_columns_change_amid_a_file(tmp_path: Path) -> None:
    content = f"{COLUMNS}\n{line()}\nmore|{COLUMNS}\nx|{line(perf_value=7)}\n"
    logs = read_bytes(tmp_path, content.encode())
    assert reasons(logs) == [(3, "another header line amid the file")]
    assert logs.samples["perf_value"].tolist() == [1.5, 7]


def test_rotated_files_are_read_and_others_are_not(tmp_path: Path) -> None:
    write_perflog(tmp_path, daily([1.0, 2.0]))
    write_perflog(tmp_path, daily([3.0], last=9), name="BenchioFPP.log.h0")
    write_perflog(tmp_path, daily([4.0]), name="BenchioFPP.log.bak")
    write_perflog(tmp_path, daily([5.0], system="there"), system="there")
    (tmp_path / "here" / "reports").mkdir()
    (tmp_path / "here" / "reports" / "x.log").write_text("no perflog")
    assert read_perflogs(tmp_path).samples["perf_value"].tolist() == [3, 1, 2, 5]
    assert read_perflogs(tmp_path, "here").samples["perf_value"].tolist() == [3, 1, 2]
    assert read_perflogs(tmp_path).rejected == ()


def test_unreadable_places(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such directory"):
        read_perflogs(tmp_path / "nowhere")
    (tmp_path / "here" / "local" / "Dir.log").mkdir(parents=True)
    (tmp_path / "here" / "local" / "Gone.log").symlink_to("nowhere")
    if os.geteuid():
        write_perflog(tmp_path, []).chmod(0)
    found = {rejected.path.name: rejected.reason for rejected in read_perflogs(tmp_path).rejected}
    assert found["Dir.log"] == "cannot be read: Is a directory"
    assert found["Gone.log"] == "cannot be read: No such file or directory"
    if os.geteuid():
        assert found["BenchioFPP.log"] == "cannot be read: Permission denied"


@given(content=st.binary(max_size=400))
def test_random_bytes_never_raise(tmp_path: Path, content: bytes) -> None:
    logs = read_bytes(tmp_path, content)
    assert len(logs.samples) == 0
    assert logs.rejected


@given(content=st.lists(st.sampled_from([line(), COLUMNS, "|", "", "\r", "null", line()[:99]])))
def test_every_line_is_accounted_for(tmp_path: Path, content: list[str]) -> None:
    logs = read_bytes(tmp_path, "".join(f"{text}\n" for text in content).encode())
    first_header = 1 if COLUMNS in content else 0
    found = len(logs.samples) + len(logs.misses) + len(logs.rejected) + first_header
    # a file that is empty or has only a header is reported besides
    assert found == max(1, len(content)) + (content == [COLUMNS])


VALUES = st.floats(min_value=1e-9, max_value=1e9)
TIMES = st.datetimes(
    datetime(1971, 1, 1), datetime(2199, 1, 1), timezones=st.just(timezone.utc)
).map(lambda when: when.replace(microsecond=0))


@given(
    rows=st.lists(
        st.tuples(TIMES, VALUES, st.integers(1, 10**6)), min_size=1, max_size=20, unique=True
    )
)
def test_what_is_written_reads_back_equal(
    tmp_path: Path, rows: list[tuple[datetime, float, int]]
) -> None:
    lines = [
        line(job_completion_time=when.isoformat(), perf_value=repr(value), tasks=tasks)
        for when, value, tasks in rows
    ]
    logs = read_bytes(tmp_path, "".join(f"{text}\n" for text in (COLUMNS, *lines)).encode())
    assert logs.rejected == ()
    columns = ["job_completion_time", "perf_value", "tasks"]
    found = [tuple(row) for row in logs.samples[columns].itertuples(index=False)]
    assert found == sorted(rows, key=lambda row: row[0])
    for name in ("display_name", "hints", "tool_version", "environ", "jobid"):
        assert set(logs.samples[name]) == {ROW[name]}


@given(cut=st.integers(min_value=0))
def test_a_truncated_file_keeps_all_lines_before(tmp_path: Path, cut: int) -> None:
    lines = [f"{text}\n" for text in (COLUMNS, *daily([1.0, 2.0, 3.0, 4.0]))]
    content = "".join(lines).encode()
    cut %= len(content) + 1
    whole = content[:cut].count(b"\n")
    logs = read_bytes(tmp_path, content[:cut])
    assert logs.samples["perf_value"].tolist() == [1.0, 2.0, 3.0, 4.0][: max(0, whole - 1)]
    begun = cut > sum(len(text) for text in lines[:whole])
    assert len(logs.rejected) == int(begun or whole <= 1)
