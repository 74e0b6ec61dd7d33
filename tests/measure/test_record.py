"""The record of the newest session, and how the site interprets it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from iobands.judge.conditions import of_session
from iobands.measure import Selection, Workplace, session
from iobands.measure.lock import (
    RECORD_NAME,
    acquire,
    begin_record,
    new_holder,
    read_last_session,
    release,
    write_record,
)
from iobands.measure.processes import Process
from iobands.measure.session import open_session
from iobands.model import COMPLETED, FAILED, KILLED, LIMIT, RUNNING, UNKNOWN, LastSession
from tests.factory import NOW, daily, write_session
from tests.sites import DAY, SiteFiles


def read(perflogs: Path) -> LastSession:
    last = read_last_session(perflogs)
    assert last is not None
    return last


def test_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    assert read_last_session(tmp_path) is None
    holder = new_holder("iobands run")
    acquire(tmp_path, holder)
    begun = begin_record(tmp_path, holder, "daily", None)
    assert read(tmp_path) == begun
    assert (begun.how, begun.began.isoformat()) == (RUNNING, holder.began)
    ended = replace(begun, ended=begun.began, how=COMPLETED, counts={"ran": 3})
    write_record(tmp_path, ended)
    release(tmp_path, holder.session)
    last = read(tmp_path)
    assert last == ended
    assert of_session(last) == []


def test_one_that_was_killed_is_an_alert(tmp_path: Path) -> None:
    before = replace(Process.this(), boot="before the machine restarted")
    holder = replace(new_holder("iobands run"), processes=(before,))
    acquire(tmp_path, holder)
    begin_record(tmp_path, holder, "daily", None)
    last = read(tmp_path)
    assert last.how == KILLED
    (alert,) = of_session(last)
    assert (alert.subject, alert.exit_status) == ("last session", UNKNOWN)
    assert "or perflogs could not be written" in alert.reason


def test_one_that_was_killed_stays_so_when_another_takes_its_lock(tmp_path: Path) -> None:
    """As `reframe -r` and a call that selects no check do: they leave no record."""
    before = replace(Process.this(), boot="before the machine restarted")
    killed = replace(new_holder("iobands run"), processes=(before,), session="killed")
    acquire(tmp_path, killed)
    begin_record(tmp_path, killed, "daily", None)
    was = read(tmp_path)
    with open_session(tmp_path, "reframe -r") as (holder, notes):
        assert notes[0].startswith("a session was killed: `iobands run`")
        assert read(tmp_path) == was
        begin_record(tmp_path, holder, "dayly", None)
        write_record(tmp_path, was)
    assert read(tmp_path) == was
    assert (was.how, was.session) == (KILLED, killed.session)


def test_one_that_was_ended_is_an_alert_with_its_reason(tmp_path: Path) -> None:
    begun = begin_record(tmp_path, new_holder("iobands run"), "daily", "here")
    why = "its limit of 4 h"
    write_record(tmp_path, replace(begun, ended=begun.began, how=LIMIT, reason=why))
    (alert,) = of_session(read(tmp_path))
    assert "its limit of 4 h" in alert.reason


WINDOW = """\
schema: 5
system: here
epochs: []
maintenance:
  - {from: 2026-11-18T12:00:00Z, to: 2026-11-20T12:00:00Z, reason: new disks}
"""


@pytest.mark.parametrize(
    ("session", "sample", "interval", "is_missed"),
    [
        (1.9, 1.9, 1, False),
        (2.1, 2.1, 1, True),
        (2.1, 1.9, 1, False),  # later by hand, which leaves no record
        (13.9, 13.9, 7, False),
        (14.1, 14.1, 7, True),
        (30, 30, None, False),  # nobody declared how often
        (-1, 0, 1, False),  # a clock is ahead
    ],
)
def test_a_missed_schedule_is_an_alert(
    files: SiteFiles, session: float, sample: float, interval: int | None, is_missed: bool
) -> None:
    write_rows(files, sample, interval)
    write_session(files.perflogs, NOW - session * DAY)
    found = [each for each in files.read().alerts if each.subject == "last session"]
    assert bool(found) == is_missed
    if found:
        assert found[0].exit_status == UNKNOWN
        assert f"(scheduled every {24 * (interval or 0)} h); the last completed" in found[0].reason


def test_a_maintenance_does_not_count_as_missed(files: SiteFiles) -> None:
    write_rows(files, 3.9, 1)
    write_session(files.perflogs, NOW - 3.9 * DAY)
    assert "last session" in {each.subject for each in files.read().alerts}
    files.bands.mkdir()
    (files.bands / "here.yaml").write_text(WINDOW)
    assert files.read().alerts == ()


@pytest.fixture
def files(tmp_path: Path) -> SiteFiles:
    return SiteFiles(tmp_path)


def write_rows(files: SiteFiles, age: float, interval: int | None) -> None:
    files.write(daily([1.5] * 3, last=age, interval_days=interval or "null"))


@pytest.mark.parametrize("content", [b"", b"[]", b'{"schema": 1}', b'{"schema": 9}', b"\xff"])
def test_a_damaged_record_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / RECORD_NAME).write_bytes(content)
    assert read_last_session(tmp_path) is None


def test_an_end_that_could_not_be_recorded_is_no_kill(tmp_path: Path) -> None:
    holder = new_holder("iobands run")
    acquire(tmp_path, holder)
    begin_record(tmp_path, holder, "daily", None)
    release(tmp_path, holder.session)
    last = read(tmp_path)
    assert (last.how, last.ended) == (FAILED, None)
    assert last.reason is not None
    assert last.reason.startswith("its end could not be recorded")


@pytest.mark.parametrize(
    ("error", "said"),
    [(KeyboardInterrupt(), ("interrupted", "by Ctrl-C")), (ValueError("odd"), ("failed", "odd"))],
)
def test_a_session_that_ends_before_reframe_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, said: tuple[str, str]
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(session.plan, "over_budget", fails)
    at = Workplace(tmp_path, lambda _: SimpleNamespace(partitions={}))
    with pytest.raises(type(error)):
        session.measure(at, Selection("daily"), 60)
    last = read(tmp_path / "perflogs")
    assert (last.how, last.reason) == said
