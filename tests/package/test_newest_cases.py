"""The newest cases of run reports: what a survey needs, and no report read twice."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from iobands.readers import newest_cases
from iobands.readers.newest_cases import newest_of, read_newest_cases
from iobands.readers.run_report import RunReports, read_run_reports
from tests.package.factory import NOW, case, write_report

BOTH = {"here:local:write_bw": [1.0], "here:local:read_bw": [2.0]}


@pytest.fixture(autouse=True)
def _small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newest_cases, "WORTH_KEEPING", 1)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []
    original = newest_cases.read_report

    def read_report(path):
        seen.append(path.name)
        return original(path)

    monkeypatch.setattr(newest_cases, "read_report", read_report)
    return seen


def expected(directory: Path) -> RunReports:
    """Return what reading all reports anew gives."""
    found = read_run_reports(directory)
    return RunReports(newest_of(found.cases), found.newest, found.rejected)


def test_the_newest_run_and_the_newest_without_each_variable(tmp_path: Path) -> None:
    write_report(tmp_path, [case()], days=4, number=1)
    write_report(tmp_path, [case()], days=3, number=2)
    only_write = {"here:local:write_bw": [1.0]}
    write_report(tmp_path, [case(result="pass", perfvalues=only_write)], days=2, number=3)
    write_report(tmp_path, [case(result="pass", perfvalues=BOTH)], days=1, number=4)
    found = read_newest_cases(tmp_path)
    # the failure three days ago is the last without write_bw, the pass after it without read_bw
    assert [NOW - item.when for item in found.cases] == [timedelta(days=day) for day in (3, 2, 1)]


def test_cases_of_other_fields_or_names_are_others(tmp_path: Path) -> None:
    cases = [case(), case(nodes=2), case(display_name="Other")]
    write_report(tmp_path, cases, days=2, number=1)
    write_report(tmp_path, [case()], days=1, number=2)
    assert len(read_newest_cases(tmp_path).cases) == 3


def test_a_report_is_read_once(tmp_path: Path, reads: list[str], caches: Path) -> None:
    write_report(tmp_path, [case()], days=2, number=1)
    first = write_report(tmp_path, [case(result="pass", perfvalues=BOTH)], days=1, number=2)
    (first.parent / "run-report-0.json").write_text("{")
    whole = expected(tmp_path)
    assert read_newest_cases(tmp_path) == whole
    assert len(reads) == 3
    assert read_newest_cases(tmp_path) == whole
    assert len(reads) == 3
    write_report(tmp_path, [case(display_name="New")], number=3)
    assert read_newest_cases(tmp_path) == expected(tmp_path)
    assert reads[3:] == ["run-report-3.json"]
    assert [path.suffix for path in caches.iterdir()] == [".json"]


def test_old_reports_may_go_and_needed_ones_are_missed(tmp_path: Path, reads: list[str]) -> None:
    for number in range(5):
        write_report(tmp_path, [case()], days=9 - number, number=number)
    reports = tmp_path / "here" / "reports"
    read_newest_cases(tmp_path)
    (reports / "run-report-0.json").unlink()
    assert read_newest_cases(tmp_path) == expected(tmp_path)
    assert len(reads) == 5
    (reports / "run-report-4.json").unlink()
    assert read_newest_cases(tmp_path) == expected(tmp_path)
    assert len(reads) == 5 + 3


def test_a_changed_report_is_read_again(tmp_path: Path) -> None:
    write_report(tmp_path, [case()], number=1)
    read_newest_cases(tmp_path)
    write_report(tmp_path, [case(), case(display_name="More")], number=1)
    assert read_newest_cases(tmp_path) == expected(tmp_path)


def test_a_damaged_cache_is_written_anew(tmp_path: Path, caches: Path) -> None:
    write_report(tmp_path, [case()])
    whole = read_newest_cases(tmp_path)
    (kept,) = caches.iterdir()
    good = kept.read_text()
    said = json.loads(good)
    for damaged in (good[:50], "[]", "{}", json.dumps({**said, "cases": [{}]}), "\0"):
        kept.write_text(damaged)
        assert read_newest_cases(tmp_path) == whole
        assert kept.read_text() == good
