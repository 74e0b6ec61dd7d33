"""The perflog reader: what it reads, and that it loses nothing silently."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobands.model import READ
from iobands.source import perflog
from iobands.source.perflog import read_perflogs
from iobands.source.samples import Samples
from tests.factory import COLUMNS, ROW, daily, line, write_perflog

DATA = Path(__file__).with_name("perflogs")
WIDTH = len(ROW)


def read_bytes(directory: Path, content: bytes) -> Samples:
    path = directory / "here" / "local" / "X.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return read_perflogs(directory)


def reasons(logs: Samples) -> list[tuple[int, str]]:
    return [(rejected.line, rejected.reason) for rejected in logs.rejected]


def test_golden_perflog_as_reframe_wrote_it() -> None:
    logs = read_perflogs(DATA)
    assert logs.rejected == ()
    assert logs.measured["perf_value"].to_list() == [1.5, 0.25]
    good, collapsed = logs.measured.to_dicts()
    assert good["job_completion_time"] == datetime(2026, 11, 21, 1, 29, 12, tzinfo=timezone.utc)
    assert good["display_name"] == "Good"
    assert (good["nodes"], good["tasks"], good["gib"]) == (1, 4, 0.5)
    assert good["stripe_count_asked"] is None
    assert (collapsed["result"], collapsed["fail_phase"]) == ("fail", "performance")
    (miss,) = logs.missed.to_dicts()
    assert (miss["display_name"], miss["fail_phase"]) == ("Unproven", "sanity")
    assert miss["perf_value"] is None


def test_types_do_not_depend_on_the_rows(tmp_path: Path) -> None:
    empty = read_bytes(tmp_path, b"").measured
    full = read_bytes(tmp_path, f"{COLUMNS}\n{line()}\n".encode()).measured
    assert empty.schema == full.schema
    assert tuple(full.columns) == READ
    assert str(full["job_completion_time"].dtype) == "Datetime(time_unit='us', time_zone='UTC')"


# Fields of bad lines, and why these are rejected.
WRONG = {
    "1.5x": ({"perf_value": "1.5x"}, "perf_value: '1.5x' is not a finite number"),
    "nan": ({"perf_value": "nan"}, "perf_value: 'nan' is not a finite number"),
    "inf": ({"perf_value": "inf"}, "perf_value: 'inf' is not a finite number"),
    "overflow": ({"perf_value": "1e999"}, "perf_value: '1e999' is not a finite number"),
    "underscore": ({"perf_value": "1_5"}, "perf_value: '1_5' is not a finite number"),
    "zero": ({"perf_value": "0.0"}, "perf_value: '0.0' is not above 0"),
    "half a node": ({"nodes": "1.5"}, "nodes: '1.5' is not a whole number"),
    "huge": ({"tasks": "1e300"}, "tasks: '1e300' is not a possible size"),
    "less than nothing": ({"gib": "-1"}, "gib: '-1' is not a possible size"),
    "more than all disks": ({"gib": "1e308"}, "gib: '1e308' is not a possible size"),
    "no offset": (
        {"job_completion_time": "2026-11-20T01:29:12"},
        "job_completion_time: '2026-11-20T01:29:12' is not a time with a UTC offset",
    ),
    "no time": (
        {"job_completion_time": "yesterday"},
        "job_completion_time: 'yesterday' is not a time with a UTC offset",
    ),
    "month 13": (
        {"job_completion_time": "2026-13-20T01:29:12+00:00"},
        "job_completion_time: '2026-13-20T01:29:12+00:00' is not a time with a UTC offset",
    ),
    "year 1": (
        {"job_completion_time": "0001-01-01T00:00:00+14:00"},
        "job_completion_time: '0001-01-01T00:00:00+14:00' is not a time with a UTC offset",
    ),
    "missing time": ({"job_completion_time": "null"}, "job_completion_time: missing"),
    "missing system": ({"system": ""}, "system: missing"),
    "missing variable": ({"perf_var": "None"}, "perf_var: missing"),
    "unknown variable": ({"perf_var": "speed"}, "perf_var: unknown variable 'speed'"),
    "GB/s": ({"perf_unit": "GB/s"}, "perf_unit: 'GB/s'; the variable's unit is GiB/s"),
    "missing unit": ({"perf_unit": "null"}, "perf_unit: 'null'; the variable's unit is GiB/s"),
    "one column more": ({"hints": "a|b"}, f"{WIDTH + 1} columns instead of {WIDTH}"),
    "NUL": ({"hints": "\0"}, "control characters"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_damaged_line_costs_that_line_alone(tmp_path: Path, name: str) -> None:
    fields, reason = WRONG[name]
    path = write_perflog(tmp_path, [line(perf_value=1), line(**fields), line(perf_value=2)])
    logs = read_perflogs(tmp_path)
    assert logs.measured["perf_value"].to_list() == [1, 2]
    assert [str(rejected) for rejected in logs.rejected] == [f"{path}:3: {reason}"]


def test_a_check_that_measures_nothing_is_neither_sample_nor_damage(tmp_path: Path) -> None:
    build = line(perf_var="null", perf_value="null", perf_unit="null", pattern="null", tasks="null")
    write_perflog(tmp_path, [build, line()])
    logs = read_perflogs(tmp_path)
    assert (len(logs.measured), len(logs.missed), logs.rejected) == (1, 0, ())


def test_a_dry_run_is_neither_sample_nor_miss(tmp_path: Path) -> None:
    write_perflog(
        tmp_path, [line(perf_value="null"), line(), line(result="fail", perf_value="null")]
    )
    logs = read_perflogs(tmp_path)
    assert (len(logs.measured), len(logs.missed), logs.rejected) == (1, 1, ())


def test_damaged_files(tmp_path: Path) -> None:
    head, good = f"{COLUMNS}\n".encode(), f"{line()}\n".encode()
    other = f"{line(jobid=2)}\n".encode()
    cases = [
        (b"", [(0, "empty file")], 0),
        (head, [(1, "only a header line")], 0),
        (COLUMNS.encode(), [(1, "the line is cut off: it has no line break")], 0),
        (good, [(1, "no header line before it")], 0),
        (head + good + head + other, [(3, "another header line in the middle of the file")], 2),
        (head + good + good[:-1], [(3, "the line is cut off: it has no line break")], 1),
        (head + b"\n" + good, [(2, "empty line")], 1),
        (head + b"\xff\xfe\n" + good, [(2, "bytes that are not UTF-8")], 1),
        (head + good[:40] + good + good, [(2, f"{WIDTH + 3} columns instead of {WIDTH}")], 1),
        (b"\0" * 4096, [(1, "the line is cut off: it has no line break")], 0),
        (head.replace(b"|gib", b""), [(1, "columns are missing: gib")], 0),
        (b"targets|" + head, [(1, "columns appear twice: targets")], 0),
        (
            b"targets|" + head + good,
            [(1, "columns appear twice: targets"), (2, "under a header that cannot be used")],
            0,
        ),
    ]
    for content, expected, samples in cases:
        logs = read_bytes(tmp_path, content)
        assert reasons(logs) == expected
        assert len(logs.measured) == samples


@pytest.mark.parametrize("bad", [{"perf_unit": "GB/s"}, {"hints": "a|b"}], ids=["cell", "columns"])
def test_of_thousands_of_bad_lines_a_thousand_are_named(
    tmp_path: Path, bad: dict[str, str]
) -> None:
    path = write_perflog(tmp_path, [*[line(**bad)] * 2500, line()])
    logs = read_perflogs(tmp_path)
    *named, last = logs.rejected
    assert [each.line for each in named] == list(range(2, 1002))
    assert (str(last), last.lines) == (f"{path}: 1500 more lines cannot be used", 1500)
    assert len(logs.measured) == 1


def test_windows_ends_and_added_columns(tmp_path: Path) -> None:
    header, row = f"new|{COLUMNS}|more", f"x|{line(perf_value=3)}|y"
    logs = read_bytes(tmp_path, f"{header}\r\n{row}\r\n".encode())
    assert logs.rejected == ()
    assert logs.measured["perf_value"].to_list() == [3]


def test_columns_change_amid_a_file(tmp_path: Path) -> None:
    content = f"{COLUMNS}\n{line()}\nmore|{COLUMNS}\nx|{line(perf_value=7)}\n"
    logs = read_bytes(tmp_path, content.encode())
    assert reasons(logs) == [(3, "another header line in the middle of the file")]
    assert logs.measured["perf_value"].to_list() == [1.5, 7]


def test_rotated_files_are_read_and_others_are_not(tmp_path: Path) -> None:
    write_perflog(tmp_path, daily([1.0, 2.0]))
    write_perflog(tmp_path, daily([3.0], last=9), name="BenchioFPP.log.h0")
    write_perflog(tmp_path, daily([4.0]), name="BenchioFPP.log.bak")
    write_perflog(tmp_path, daily([5.0], system="there"), system="there")
    (tmp_path / "here" / "reports").mkdir()
    (tmp_path / "here" / "reports" / "x.log").write_text("no perflog")
    assert read_perflogs(tmp_path).measured["perf_value"].to_list() == [3, 1, 2, 5]
    assert read_perflogs(tmp_path, "here").measured["perf_value"].to_list() == [3, 1, 2]
    assert read_perflogs(tmp_path).rejected == ()


def test_a_system_has_its_lines_whatever_directory_they_are_in(tmp_path: Path) -> None:
    rows = [*daily([1.0]), *daily([2.0], system="there"), "cut off"]
    write_perflog(tmp_path, rows)
    write_perflog(tmp_path, ["cut off"], system="there")
    assert read_perflogs(tmp_path, "here").measured["perf_value"].to_list() == [1]
    there = read_perflogs(tmp_path, "there")
    assert there.measured["perf_value"].to_list() == [2]
    assert [each.path.parts[-3] for each in there.rejected] == ["there"]


def test_unreadable_places(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there are no perflogs"):
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
    assert len(logs.measured) == 0
    assert logs.rejected


@given(content=st.lists(st.sampled_from([line(), COLUMNS, "|", "", "\r", "null", line()[:99]])))
def test_every_line_is_accounted_for(tmp_path: Path, content: list[str]) -> None:
    logs = read_bytes(tmp_path, "".join(f"{text}\n" for text in content).encode())
    first_header = 1 if COLUMNS in content else 0
    found = len(logs.measured) + len(logs.missed) + len(logs.rejected) + first_header
    # a file that is empty or has only a header is reported as well
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
    found = logs.measured.select(columns).rows()
    assert found == sorted(rows, key=lambda row: row[0])
    for name in ("display_name", "hints", "tool_version", "environ", "jobid"):
        assert set(logs.measured[name]) == {ROW[name]}


@given(cut=st.integers(min_value=0))
def test_a_truncated_file_keeps_all_lines_before(tmp_path: Path, cut: int) -> None:
    lines = [f"{text}\n" for text in (COLUMNS, *daily([1.0, 2.0, 3.0, 4.0]))]
    content = "".join(lines).encode()
    cut %= len(content) + 1
    whole = content[:cut].count(b"\n")
    logs = read_bytes(tmp_path, content[:cut])
    assert logs.measured["perf_value"].to_list() == [1.0, 2.0, 3.0, 4.0][: max(0, whole - 1)]
    begun = cut > sum(len(text) for text in lines[:whole])
    assert len(logs.rejected) == int(begun or whole <= 1)


def rejections(directory: Path) -> list[str]:
    return [str(rejected) for rejected in read_perflogs(directory).rejected]


def test_a_line_that_is_there_twice_counts_once_and_is_reported(tmp_path: Path) -> None:
    rows = daily([1.0, 2.0])
    path = write_perflog(tmp_path, [*rows, rows[0], *rows])
    assert read_perflogs(tmp_path).measured["perf_value"].to_list() == [1, 2]
    assert rejections(tmp_path) == [
        f"{path}:4: repeats {path}:2",
        f"{path}:5: repeats {path}:2",
        f"{path}:6: repeats {path}:3",
    ]


def test_a_copy_of_a_file_counts_once_and_is_reported(tmp_path: Path) -> None:
    rows = daily([1.0, None, 3.0])
    path = write_perflog(tmp_path, rows)
    copy = path.with_name("BenchioFPP.log.h0")
    # rotated because of a new column, and copied: the same runs under another header
    copy.write_text(f"new|{COLUMNS}\n" + "".join(f"x|{text}\n" for text in rows))
    logs = read_perflogs(tmp_path)
    assert (len(logs.measured), len(logs.missed)) == (2, 1)
    assert rejections(tmp_path) == [f"{copy}:{n}: repeats {path}:{n}" for n in (2, 3, 4)]


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        *((f"B.log{end}", True) for end in ("", ".1", ".h0", "-20261122", "-2026-11-22.1")),
        *((f"B.log{end}", True) for end in ("-2026112213", "-1795305600", "_2026-11-22_13")),
        *((f"B.log{end}", False) for end in (".bak", "~", "-", ".1.swp", "-new", ".hx")),
    ],
)
def test_a_perflog_is_known_by_its_name(name: str, is_one: bool, tmp_path: Path) -> None:
    """Such as the names that logrotate makes, also hourly or with `dateformat`."""
    write_perflog(tmp_path, daily([2.0]), name)
    assert len(read_perflogs(tmp_path).values) == is_one
    write_perflog(tmp_path, daily([2.0]), f"{name}.lz4")
    assert ("files are not supported; unpack it" in str(rejections(tmp_path))) == is_one


@pytest.mark.parametrize("is_truncated", [True, False])
def test_no_line_is_missed_while_a_perflog_is_rotated(
    is_truncated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_perflog(tmp_path, daily([2.0], pattern="ssf"), "A.log")
    log, real, old = write_perflog(tmp_path, daily([1.0] * 9), "B.log"), perflog._read, []

    def read(*given: object) -> object:
        if not old:
            old.append(log.with_name("B.log.1"))
            old[0].write_bytes(log.read_bytes()) if is_truncated else log.rename(old[0])
            write_perflog(tmp_path, [], "B.log")
        return real(*given)

    monkeypatch.setattr(perflog, "_read", read)
    assert len(read_perflogs(tmp_path).values) == 10


def test_runs_that_differ_in_anything_are_two(tmp_path: Path) -> None:
    others = [
        {"jobid": "7"},
        {"perf_value": "1.6"},
        {"job_completion_time": "2026-11-20T01:29:13+00:00"},
        {"pattern": "ssf"},
        {"perf_var": "read_bw"},
        {"result": "fail"},
    ]
    write_perflog(tmp_path, [line(), *(line(**fields) for fields in others)])
    logs = read_perflogs(tmp_path)
    assert (len(logs.measured), logs.rejected) == (7, ())


def test_the_same_moment_in_two_time_zones_is_one(tmp_path: Path) -> None:
    times = ["2026-11-20T01:29:12+00:00", "2026-11-20T02:29:12+01:00", "2026-11-19T20:29:12-05:00"]
    write_perflog(tmp_path, [line(job_completion_time=time) for time in times])
    logs = read_perflogs(tmp_path)
    (when,) = logs.measured["job_completion_time"]
    assert when == datetime(2026, 11, 20, 1, 29, 12, tzinfo=timezone.utc)
    assert [rejected.line for rejected in logs.rejected] == [3, 4]


def test_zones_are_sorted_by_the_moment_and_not_by_the_text(tmp_path: Path) -> None:
    times = ["2026-11-20T03:00:00+05:00", "2026-11-20T01:00:00+00:00", "2026-11-19T23:00:00-04:00"]
    rows = [
        line(job_completion_time=time, perf_value=number) for number, time in enumerate(times, 1)
    ]
    write_perflog(tmp_path, rows)
    # 22:00 of the day before, 01:00 and 03:00 UTC
    assert read_perflogs(tmp_path).measured["perf_value"].to_list() == [1, 2, 3]
    write_perflog(tmp_path, reversed(rows))
    assert read_perflogs(tmp_path).measured["perf_value"].to_list() == [1, 2, 3]


def test_values_of_one_moment_stay_in_the_order_of_the_lines(tmp_path: Path) -> None:
    write_perflog(tmp_path, [line(perf_value=value) for value in (3, 1, 2)])
    assert read_perflogs(tmp_path).measured["perf_value"].to_list() == [3, 1, 2]


def test_a_series_that_changes_unit_keeps_the_samples_of_its_own(tmp_path: Path) -> None:
    path = write_perflog(
        tmp_path,
        [*daily([1.0], last=2), *daily([1000.0], last=1, perf_unit="MB/s"), *daily([2.0])],
    )
    (history,) = read_perflogs(tmp_path).histories.values()
    assert history.values.tolist() == [1, 2]
    assert rejections(tmp_path) == [f"{path}:3: perf_unit: 'MB/s'; the variable's unit is GiB/s"]


def test_values_that_are_no_rates_are_rejected_each_with_its_line(tmp_path: Path) -> None:
    bad = ["nan", "-nan", "inf", "-inf", "0", "-0.0", "-1.5", "1e-999"]
    rows = [line(perf_value=value, jobid=number) for number, value in enumerate(bad)]
    write_perflog(tmp_path, [*(line(jobid=number) for number in range(100, 200)), *rows])
    logs = read_perflogs(tmp_path)
    assert len(logs.measured) == 100
    assert [(item.line, item.reason) for item in logs.rejected] == [
        (102, "perf_value: 'nan' is not a finite number"),
        (103, "perf_value: '-nan' is not a finite number"),
        (104, "perf_value: 'inf' is not a finite number"),
        (105, "perf_value: '-inf' is not a finite number"),
        (106, "perf_value: '0' is not above 0"),
        (107, "perf_value: '-0.0' is not above 0"),
        (108, "perf_value: '-1.5' is not above 0"),
        (109, "perf_value: '1e-999' is not above 0"),
    ]


def test_older_column_sets_are_read(tmp_path: Path) -> None:
    late = {
        "fsync", "cache", "transport_in_effect", "hints_in_effect", "fullness_percent",
        "targets_active", "targets_inactive", "load_per_node", "other_jobs",
        "client_written_gib", "client_read_gib", "band_verdict",
    }  # fmt: skip
    names = COLUMNS.split("|")
    kept = [index for index, name in enumerate(names) if name not in late]
    old = [
        "|".join(text.split("|")[index] for index in kept) for text in (COLUMNS, *daily([1.0] * 60))
    ]
    path = write_perflog(tmp_path, daily([2.0], last=0.1))
    path.with_name("BenchioFPP.log.h0").write_text("".join(f"{text}\n" for text in old))
    logs = read_perflogs(tmp_path)
    assert logs.rejected == ()
    assert logs.measured["perf_value"].to_list() == [1.0] * 60 + [2.0]
    assert logs.measured["cache"].is_null().to_list() == [True] * 60 + [False]
    assert len(logs.rows) == 1


def test_a_line_without_an_end_does_not_keep_a_reader_busy(tmp_path: Path) -> None:
    path = write_perflog(tmp_path, [line(), line(perf_value="2")])
    with path.open("r+b") as file:
        file.truncate(2**42)  # a hole, which takes no room
    found = read_perflogs(tmp_path)
    (history,) = found.histories.values()
    assert len(history.values) == 2
    assert [str(each) for each in found.rejected if each.is_unread] == [
        f"{path}: cannot be read: has a line of more than 256 MiB"
    ]
