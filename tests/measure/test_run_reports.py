"""The reader of run reports: what it finds in them, and that damaged ones are reported."""

from __future__ import annotations

import json
import math
import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobands.measure.run_reports import load_report, read_run_reports, totals_of
from tests.factory import NOW, case, write_report


def test_a_case_that_failed_in_setup(tmp_path: Path) -> None:
    write_report(tmp_path, [case(nodes=2.0)])
    (found,) = read_run_reports(tmp_path).runs
    assert found.name == "BenchioFPP %file_system=disk %stripe_count=null"
    assert (found.result, found.phase) == ("fail", "setup")
    assert found.reason == "oserror: no such file system"  # one line
    assert found.when == NOW  # of the session, whole seconds
    assert found.recorded == frozenset()
    assert (found.fields["file_system"], found.fields["nodes"]) == ("disk", 2)
    assert found.fields["stripe_count_asked"] is None


def test_a_case_that_recorded_values(tmp_path: Path) -> None:
    values = {
        "here:local:write_bw": [1.5, 0, None, None, "GiB/s", "pass"],
        "here:local:read_bw": [None, 0, None, None, "GiB/s", None],
    }
    when = datetime(2026, 11, 20, 1, 2, 3, tzinfo=timezone.utc)
    entry = case(
        result="pass",
        fail_phase=None,
        fail_reason=None,
        perfvalues=values,
        job_completion_time_unix=when.timestamp() + 0.9,
        stripe_count_asked="<undefined>",
    )
    write_report(tmp_path, [entry])
    (found,) = read_run_reports(tmp_path).runs
    assert found.recorded == {"write_bw"}
    assert found.when == when
    assert "stripe_count_asked" not in found.fields


def test_reasons_are_reframes_words_without_its_source_lines(tmp_path: Path) -> None:
    said = "bands error: here.yaml: system: missing; add it:\n| bands.py:231\n|     raise error"
    build = {"fail_phase": "compile_wait", "stagedir": "/stage/Build", "build_stderr": "b.err"}
    entries = [
        case(display_name="a", fail_reason=said),
        case(display_name="b", fail_reason="build error: exit code: 1", **build),
        # SIGTERM ended ReFrame before the compiler began.
        case(display_name="c", fail_reason="received signal 15", **{**build, "build_stderr": None}),
        case(display_name="d", result="fail_deps", fail_phase=None, fail_reason=None),
    ]
    write_report(tmp_path, entries)
    assert [found.reason for found in read_run_reports(tmp_path).runs] == [
        "bands error: here.yaml: system: missing; add it",
        "build error: exit code: 1; see /stage/Build/b.err",
        "received signal 15",
        "not run, as a check that it depends on failed",
    ]


def test_a_dry_run_tells_of_nothing(tmp_path: Path) -> None:
    path = write_report(tmp_path, [case(result="pass")])
    report = json.loads(path.read_text())
    report["session_info"]["cmdline"] = "reframe -C config/site.py -c checks -R --dry-run"
    path.write_text(json.dumps(report))
    found = read_run_reports(tmp_path)
    assert (found.runs, found.newest, found.rejected) == ((), None, ())


def test_the_last_of_several_attempts_counts(tmp_path: Path) -> None:
    path = write_report(tmp_path, [case()])
    report = json.loads(path.read_text())
    report["runs"].append({"testcases": [case(result="pass")]})
    path.write_text(json.dumps(report))
    assert [found.result for found in read_run_reports(tmp_path).runs] == ["pass"]
    counts, _ = totals_of(load_report(path))
    assert counts["ran"] == 1


def test_reports_come_in_the_order_of_time(tmp_path: Path) -> None:
    write_report(tmp_path, [case(name="new")], number=9)
    write_report(tmp_path, [case(name="old")], days=2, number=10)
    reports = read_run_reports(tmp_path)
    assert [found.when for found in reports.runs] == [NOW - timedelta(days=2), NOW]
    assert reports.newest == NOW
    assert read_run_reports(tmp_path, "there").runs == ()


def test_only_reports_near_the_newest_are_read(tmp_path: Path) -> None:
    for number in range(6):
        path = write_report(tmp_path, [case()], days=number, number=number)
        end = (NOW - timedelta(days=number)).timestamp()
        os.utime(path, (end, end))
        if number == 5:
            path.write_text("{")  # changed, or copied, since: it may be a new one
    found = read_run_reports(tmp_path, within=timedelta(days=2))
    assert [NOW - run.when for run in found.runs] == [timedelta(days=day) for day in (2, 1, 0)]
    assert [rejected.path for rejected in found.rejected] == [path]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not JSON"),
        (b'{"session_info": {', "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "not an object"),
        (b"{}", "no session_info"),
        (b'{"session_info": {}, "runs": []}', "no time_end_unix"),
        (b'{"session_info": {"time_end_unix": NaN}, "runs": []}', "no time_end_unix"),
        (b'{"session_info": {"time_end_unix": 1e99}, "runs": []}', "no time_end_unix"),
        (b'{"session_info": {"time_end_unix": 1}}', "no runs"),
        (b'{"session_info": {"time_end_unix": 1}, "runs": [1]}', "without testcases"),
        (b'{"session_info": {"time_end_unix": 1}, "runs": [{"testcases": [1]}]}', "not an object"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_damaged_reports_are_reported(tmp_path: Path, content: bytes, reason: str) -> None:
    good = write_report(tmp_path, [case()])
    bad = good.with_name("run-report-7.json")
    bad.write_bytes(content)
    reports = read_run_reports(tmp_path)
    assert len(reports.runs) == 1
    (rejected,) = reports.rejected
    assert rejected.path == bad
    assert reason in rejected.reason
    assert "\n" not in rejected.reason
    with pytest.raises(ValueError, match="not"):
        totals_of(load_report(bad))


def test_where_the_time_of_a_session_went(tmp_path: Path) -> None:
    measured = {"time_total": 4.0, "seconds_program": 3.0, "seconds_io": 1.25}
    cases = [
        case(display_name="Build", time_compile=20.5, time_total=60.0, seconds_io=None),
        case(**measured),
        case(**measured, time_compile=0.5, pattern="ssf"),
        case(**{**measured, "time_total": math.nan}, pattern="fpn"),  # nonsense counts as 0
        case(**{**measured, "seconds_io": None}, pattern="serial"),  # failed
    ]
    path = write_report(tmp_path, cases)
    document = json.loads(path.read_text())
    document["session_info"]["time_elapsed"] = 40.0
    path.write_text(json.dumps(document))
    _, seconds = totals_of(load_report(path))
    assert seconds == {**{"total": 40.0, "build": 21.0, "checks": 8.0, "program": 9.0, "io": 3.75}}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(fields=st.dictionaries(st.sampled_from(sorted(case())), JSON))
def test_any_test_case_is_read(tmp_path: Path, fields: dict[str, object]) -> None:
    write_report(tmp_path, [case(**fields)])
    reports = read_run_reports(tmp_path)
    assert (len(reports.runs), reports.rejected) == (1, ())


def test_why_a_case_did_not_run_is_found_through_any_dependencies(tmp_path: Path) -> None:
    """In a long chain, each case depends on two others, which depend on the next two or one."""

    def needing(name: str, *others: str) -> dict[str, object]:
        needed = [[other, "here:local", "builtin"] for other in others]
        said = {"result": "fail_deps", "fail_phase": None, "fail_reason": None}
        return case(unique_name=name, display_name=name, dependencies_actual=needed, **said)

    wide = [needing(f"{side}{n}", f"a{n + 1}", f"b{n + 1}") for n in range(40) for side in "ab"]
    # more than Python nests calls
    deep = [needing(f"c{n}", f"c{n + 1}") for n in range(1100)]
    unfit = case(
        unique_name="c1100", display_name="probe", result="fail", examines="file system",
        file_system="disk", fail_reason="sanity error: not mounted",
    )  # fmt: skip
    write_report(tmp_path, [*wide, *deep, unfit])
    found = {each.name: each for each in read_run_reports(tmp_path).runs}
    assert found["a0"].lacks is None
    assert (found["c0"].lacks, found["c0"].reason) == ("disk", "not mounted")


def test_a_long_reason_and_a_blank_name_are_read(tmp_path: Path) -> None:
    reason = "command '" * 20_000 + " exit code 1:" * 20_000 + "--- stderr ---\n" * 20_000
    write_report(tmp_path, [case(name=" ", display_name=" ", fail_reason=reason)])
    (found,) = read_run_reports(tmp_path).runs
    assert found.name == "unnamed"


def test_a_report_without_end_is_not_read(tmp_path: Path) -> None:
    path = write_report(tmp_path, [case()])
    os.truncate(path, 2**36)
    (rejected,) = read_run_reports(tmp_path).rejected
    assert "File too large" in rejected.reason


def test_a_damaged_report_of_later_was_not_damaged_then(tmp_path: Path) -> None:
    path = write_report(tmp_path, [case()])
    path.write_text(path.read_text(encoding="utf-8")[:40], encoding="utf-8")  # cut off
    os.utime(path, (NOW.timestamp(), NOW.timestamp()))
    day = timedelta(days=1)
    for until, as_of, rejected in (
        (NOW + day, True, [path]),
        (NOW - day, True, []),
        (NOW - day, False, [path]),  # a clock may be wrong
    ):
        found = read_run_reports(tmp_path, until=until, as_of=as_of)
        assert [each.path for each in found.rejected] == rejected
