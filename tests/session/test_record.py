"""The record of the newest session, and what the site makes of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from iobands.alerts.alert import UNKNOWN
from iobands.alerts.causes import of_session
from iobands.session.lock import acquire, new_holder, release
from iobands.session.record import (
    COMPLETED,
    KILLED,
    LIMIT,
    NAME,
    RUNNING,
    LastSession,
    begin_record,
    end_record,
    read_last_session,
)


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
    end_record(tmp_path, begun, COMPLETED, {"ran": 3}, None)
    release(tmp_path, holder.session)
    last = read(tmp_path)
    assert last.ended is not None
    assert last.ended - last.began < timedelta(hours=1)
    assert last.timestamp == last.ended.timestamp()
    assert replace(last, ended=None) == replace(begun, how=COMPLETED, counts={"ran": 3})
    assert of_session(last) == []


def test_one_that_was_killed_is_an_alert(tmp_path: Path) -> None:
    holder = replace(new_holder("iobands run"), boot="before the machine restarted")
    acquire(tmp_path, holder)
    begin_record(tmp_path, holder, "daily", None)
    last = read(tmp_path)
    assert last.how == KILLED
    (alert,) = of_session(last)
    assert (alert.subject, alert.exit_status) == ("last session", UNKNOWN)


def test_one_that_was_ended_is_an_alert_with_its_reason(tmp_path: Path) -> None:
    begun = begin_record(tmp_path, new_holder("iobands run"), "daily", "here")
    end_record(tmp_path, begun, LIMIT, {"ran": 3, "expected": 9}, "its limit of 4 h")
    (alert,) = of_session(read(tmp_path))
    assert "its limit of 4 h" in alert.reason


@pytest.mark.parametrize("content", [b"", b"[]", b'{"schema": 1}', b'{"schema": 9}', b"\xff"])
def test_a_damaged_record_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    assert read_last_session(tmp_path) is None
