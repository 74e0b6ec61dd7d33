"""Samples that are there twice, out of order, in other zones and in other units."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from iobands.results.perflog import read_perflogs
from iobands.model.series import split
from tests.package.factory import COLUMNS, daily, line, write_perflog


def reasons(directory: Path) -> list[str]:
    return [str(rejected) for rejected in read_perflogs(directory).rejected]


def test_a_line_that_is_there_twice_counts_once_and_is_told(tmp_path: Path) -> None:
    rows = daily([1.0, 2.0])
    path = write_perflog(tmp_path, [*rows, rows[0], *rows])
    assert read_perflogs(tmp_path).samples["perf_value"].tolist() == [1, 2]
    assert reasons(tmp_path) == [
        f"{path}:4: repeats {path}:2",
        f"{path}:5: repeats {path}:2",
        f"{path}:6: repeats {path}:3",
    ]


def test_a_copy_of_a_file_counts_once_and_is_told(tmp_path: Path) -> None:
    rows = daily([1.0, None, 3.0])
    path = write_perflog(tmp_path, rows)
    copy = path.with_name("BenchioFPP.log.h0")
    # rotated because a column came, and copied: the same runs under another header
    copy.write_text(f"new|{COLUMNS}\n" + "".join(f"x|{text}\n" for text in rows))
    logs = read_perflogs(tmp_path)
    assert (len(logs.samples), len(logs.misses)) == (2, 1)
    assert reasons(tmp_path) == [f"{copy}:{n}: repeats {path}:{n}" for n in (2, 3, 4)]


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
    assert (len(logs.samples), logs.rejected) == (7, ())


def test_the_same_moment_in_two_time_zones_is_one(tmp_path: Path) -> None:
    times = ["2026-11-20T01:29:12+00:00", "2026-11-20T02:29:12+01:00", "2026-11-19T20:29:12-05:00"]
    write_perflog(tmp_path, [line(job_completion_time=time) for time in times])
    logs = read_perflogs(tmp_path)
    (when,) = logs.samples["job_completion_time"]
    assert when == datetime(2026, 11, 20, 1, 29, 12, tzinfo=timezone.utc)
    assert [rejected.line for rejected in logs.rejected] == [3, 4]


def test_zones_are_sorted_by_the_moment_and_not_by_the_text(tmp_path: Path) -> None:
    times = ["2026-11-20T03:00:00+05:00", "2026-11-20T01:00:00+00:00", "2026-11-19T23:00:00-04:00"]
    rows = [
        line(job_completion_time=time, perf_value=number) for number, time in enumerate(times, 1)
    ]
    write_perflog(tmp_path, rows)
    # 22:00 of the day before, 01:00 and 03:00 UTC
    assert read_perflogs(tmp_path).samples["perf_value"].tolist() == [1, 2, 3]
    write_perflog(tmp_path, reversed(rows))
    assert read_perflogs(tmp_path).samples["perf_value"].tolist() == [1, 2, 3]


def test_values_of_one_moment_stay_in_the_order_of_the_lines(tmp_path: Path) -> None:
    write_perflog(tmp_path, [line(perf_value=value) for value in (3, 1, 2)])
    assert read_perflogs(tmp_path).samples["perf_value"].tolist() == [3, 1, 2]


def test_a_series_that_changes_unit_keeps_the_samples_of_its_own(tmp_path: Path) -> None:
    path = write_perflog(
        tmp_path,
        [*daily([1.0], last=2), *daily([1000.0], last=1, perf_unit="MB/s"), *daily([2.0])],
    )
    ((_, rows),) = split(read_perflogs(tmp_path).samples)
    assert rows["perf_value"].tolist() == [1, 2]
    assert reasons(tmp_path) == [f"{path}:3: perf_unit: 'MB/s'; the variable's unit is GiB/s"]


def test_values_that_are_no_rates_are_rejected_each_with_its_line(tmp_path: Path) -> None:
    bad = ["nan", "-nan", "inf", "-inf", "0", "-0.0", "-1.5", "1e-999"]
    # among so many good ones that the fast reader reads them
    rows = [line(perf_value=value, jobid=number) for number, value in enumerate(bad)]
    write_perflog(tmp_path, [*(line(jobid=number) for number in range(100, 200)), *rows])
    logs = read_perflogs(tmp_path)
    assert len(logs.samples) == 100
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
    assert logs.samples["perf_value"].tolist() == [1.0] * 60 + [2.0]
    assert logs.samples["cache"].isna().tolist() == [True] * 60 + [False]
    assert len(list(split(logs.samples))) == 1
