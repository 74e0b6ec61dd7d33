"""Perflogs that cannot be written are refused before anything is measured."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from iobands.measure import Selection, SessionError, Workplace, measure
from iobands.measure.lock import refusal
from iobands.measure.perflogs import end_lines, open_to_all, reconcile, require_writable
from iobands.source.perflog import read_perflogs
from tests.factory import ROW, daily, write_perflog
from tests.mounts import in_memory


@pytest.fixture
def perflog(tmp_path: Path) -> Path:
    path = tmp_path / "here" / "node" / "Check.log"
    path.parent.mkdir(parents=True)
    path.write_text("header\nline\n")
    return path


def refused(perflogs: Path) -> str:
    with pytest.raises(SessionError) as error:
        require_writable(perflogs, "here")
    return str(error.value)


def test_what_can_be_written_is_left_as_it_is(perflog: Path, tmp_path: Path) -> None:
    require_writable(tmp_path, "here")
    assert perflog.read_text() == "header\nline\n"
    assert {path.name for path in tmp_path.rglob("*")} == {"here", "node", "Check.log", "reports"}


def test_no_regular_file(perflog: Path, tmp_path: Path) -> None:
    perflog.unlink()
    os.mkfifo(perflog)
    assert refused(tmp_path) == f"{perflog}: is not a regular file; remove it"
    perflog.unlink()
    perflog.symlink_to("/dev/full")
    assert refused(tmp_path) == f"{perflog}: is not a regular file; remove it"


def test_a_file_where_a_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("")
    assert str(tmp_path / "here") in refused(tmp_path)


@pytest.mark.needs("other users")
def test_of_another_user(perflog: Path, tmp_path: Path) -> None:
    os.chown(perflog, 1, 1)
    assert refused(tmp_path).startswith(f"{perflog} belongs to daemon")
    denied = PermissionError(errno.EACCES, "Permission denied")
    assert f"it belongs to daemon; as root: chown -R root {perflog}" in str(
        refusal(denied, perflog)
    )
    # the whole site belongs to another user, whose sessions would fail if we took over the file
    os.chown(perflog.parent, 1, 1)
    assert str(refusal(denied, perflog)).endswith(
        "it belongs to daemon; run iobands as daemon: sudo -u daemon"
    )


@pytest.mark.needs("other users")
@pytest.mark.parametrize("system", [None, "here"])
def test_root_records_no_session_in_the_site_of_another_user(
    system: str | None, tmp_path: Path
) -> None:
    perflogs = tmp_path / "perflogs"
    path = perflogs / "here" / "node" / "Check.log"
    path.parent.mkdir(parents=True)
    path.touch()
    os.chown(path, 1, 1)
    with pytest.raises(SessionError, match=r"belongs to daemon, .* run it as daemon: sudo -u"):
        measure(Workplace(tmp_path, lambda _: {}), Selection("daily", system), 60)
    assert [each.name for each in perflogs.iterdir()] == ["here"]


@pytest.mark.machine
@pytest.mark.needs("mounts")
def test_a_full_file_system(tmp_path: Path) -> None:
    with in_memory(tmp_path, "size=64k"):
        assert "No space left on device" in refused(tmp_path)
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_line_that_was_cut_off_gets_its_end(perflog: Path, tmp_path: Path) -> None:
    empty = perflog.with_name("Empty.log")
    empty.touch()
    perflog.write_text("header\nli")
    for _ in range(2):
        end_lines(tmp_path, "here")
    assert (perflog.read_text(), empty.read_text()) == ("header\nli\n", "")


def test_what_all_users_may_write_is_named(perflog: Path, tmp_path: Path) -> None:
    assert open_to_all(tmp_path) == []
    perflog.chmod(0o666)
    remedy = f"all users may write there: chmod -R o-w {tmp_path}"
    assert open_to_all(tmp_path) == [f"{perflog}: {remedy}"]
    tmp_path.chmod(0o777)
    perflog.parent.chmod(0o777)
    assert open_to_all(tmp_path) == [f"{tmp_path} and 2 more: {remedy}"]
    perflog.parent.chmod(0o755)
    perflog.chmod(0o664)
    tmp_path.chmod(0o1777)
    assert open_to_all(tmp_path) == []


def test_a_value_of_an_odd_case_is_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RFM_PERFLOG_DIR", "/elsewhere")  # sessions do not pass it to ReFrame
    good = {"system": "here", "partition": "p", "name": "A %x", "display_name": "A %x"}
    values = {"here:p:write_bw": [1.5, 0, None, None, "GiB/s"]}
    said = {"job_completion_time": "2026-11-20T01:29:12+00:00", "jobid": "1"}
    odd = [
        {**said, "perfvalues": values},
        {**said, **good, "system": "../x", "perfvalues": values},
        {**said, **good, "name": " ", "perfvalues": values},
        {**said, **good, "name": 3, "perfvalues": [1]},
        {**said, **good, "perfvalues": {"a": [], "b": 3, "c": [None]}},
        {**said, **good, "perfvalues": values},
    ]
    report = tmp_path / "report.json"
    runs = [{"testcases": odd}]
    report.write_text(json.dumps({"session_info": {"time_end_unix": 1}, "runs": runs}))
    notes, lost = reconcile([report], tmp_path / "perflogs")
    assert lost == []
    assert notes == ["A %x write_bw 1.5 GiB/s: missing in its perflog, written from the report"]
    assert [path.name for path in (tmp_path / "perflogs").rglob("*.log")] == ["A.log"]


@pytest.mark.parametrize("left", ["", "\n"])
def test_a_perflog_that_was_rotated_meanwhile_has_no_header(
    left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RFM_PERFLOG_DIR", raising=False)
    path = write_perflog(tmp_path, daily([1.5]))
    rows = path.read_text().splitlines()[1:]
    path.write_text("\n".join(rows) + left)  # the rows of a session after the rotation
    case = {
        **ROW,
        "name": "BenchioFPP",
        "perfvalues": {"x:write_bw": [1.5, 0, None, None, "GiB/s"]},
    }
    case["job_completion_time"] = rows[0].split("|")[0]
    report = tmp_path / "report.json"
    runs = [{"testcases": [case]}]
    report.write_text(json.dumps({"session_info": {"time_end_unix": 1}, "runs": runs}))
    notes, lost = reconcile([report], tmp_path)
    assert (len(notes), lost) == (1, [])
    found = read_perflogs(tmp_path)
    assert found.measured["perf_value"].to_list() == [1.5]
    assert len(found.rejected) == 1
    assert reconcile([report], tmp_path) == ([], [])


def test_a_file_that_vanishes_is_not_open_to_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    monkeypatch.setattr(Path, "glob", lambda _self, _pattern: [gone])
    assert open_to_all(tmp_path) == []


def test_only_what_the_perflog_lacks_is_lost_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the samples in a month of reports, those that the perflog has are not called lost."""
    reports = [tmp_path / f"report-{day}.json" for day in (20, 21)]
    for day, report in enumerate(reports, 20):
        case = {
            **{"system": "here", "partition": "p", "name": "A", "display_name": "A", "jobid": day},
            "job_completion_time": f"2026-11-{day}T01:29:12+00:00",
            "perfvalues": {"here:p:write_bw": [1.5, 0, None, None, "GiB/s"]},
        }
        runs = [{"testcases": [case]}]
        report.write_text(json.dumps({"session_info": {"time_end_unix": 1}, "runs": runs}))
    perflogs = tmp_path / "perflogs"
    assert len(reconcile(reports[:1], perflogs)[0]) == 1
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(full))
    lost = f"{perflogs}/here/p/A.log: A write_bw 1.5 GiB/s could not be recorded: {full.strerror}"
    assert reconcile(reports, perflogs) == ([], [lost])
