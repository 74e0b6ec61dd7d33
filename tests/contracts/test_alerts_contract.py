"""Contract 7: the golden log of alerts keeps its meaning, and bad lines are rejected."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from iobands.judge.fold import stories_in
from iobands.model import FileError, Unusable
from iobands.snapshot import AlertEvent, Cause, CauseKind, State
from iobands.source.action_log import ALERT_LOG, read_alert_log
from tests.contracts.documented import first_column

GOLDEN = (Path(__file__).parent / "golden" / "alerts.jsonl").read_bytes()
NOW = datetime(2026, 11, 30, tzinfo=timezone.utc)


def event_in(content: bytes) -> AlertEvent:
    return ALERT_LOG.parse(content)[0]


EVENTS = [event_in(line) for line in GOLDEN.splitlines()]


def test_what_the_log_says() -> None:
    first, second = stories_in(EVENTS)
    assert (first.number, first.subject, first.names) == (17, "scratch writes", ["a", "b", "c"])
    assert first.opened == datetime(2026, 11, 15, 4, 19, 37, tzinfo=timezone.utc)
    assert first.low == datetime(2026, 11, 13, 3, 34, 41, tzinfo=timezone.utc)
    assert first.closed is None  # it was reopened
    assert (second.closed, EVENTS[8].into) == (EVENTS[8].when, 17)
    before, _ = stories_in(EVENTS[:-1])
    assert before.closed == EVENTS[9].when


def test_a_cause_is_reported_with_its_odds_and_may_be_withdrawn() -> None:
    known, unknown = (each for each in EVENTS if each.kind == "caused")
    since = datetime(2026, 11, 13, 3, 34, 41, tzinfo=timezone.utc)
    what = "OST 7 out of service (1 of 12)"
    assert known.cause == Cause(CauseKind.TARGET_OUT, what, since, 420.0)
    assert unknown.cause is None


def test_what_turned_into_something_else_is_said_with_its_beginning() -> None:
    (turned,) = (each for each in EVENTS if each.kind == "turned")
    assert (turned.names, turned.state) == (("d",), State.SLIDING)
    assert turned.since == datetime(2026, 10, 2, 4, 19, tzinfo=timezone.utc)
    with pytest.raises(Unusable, match="not the state of a series"):
        event_in(ALERT_LOG.line(turned).replace("sliding", "slipping").encode())


def test_events_are_written_in_the_same_form() -> None:
    assert [ALERT_LOG.line(each) for each in EVENTS] == GOLDEN.decode().splitlines()
    assert ALERT_LOG.schema == 2


def test_documented_fields_and_events() -> None:
    lines = [json.loads(line) for line in GOLDEN.splitlines()]
    assert {name for line in lines for name in line} == set(first_column("## Contract 7", "Field"))
    assert {line["event"] for line in lines} == set(first_column("## Contract 7", "Event"))


def test_events_of_later_are_not_known_yet(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "alerts.jsonl").write_bytes(b"{}\n" + GOLDEN)
    events, rejected = read_alert_log(tmp_path, "x", EVENTS[3].when)
    assert list(events) == EVENTS[:4]
    assert [(each.line, each.reason) for each in rejected] == [
        (1, "schema is None, not a number from 1")
    ]
    assert read_alert_log(tmp_path, "y", NOW) == ((), ())


def test_a_large_number_takes_neither_time_nor_memory(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    only = replace(EVENTS[0], number=999_999_999)
    (tmp_path / "x" / "alerts.jsonl").write_text(ALERT_LOG.line(only))
    assert read_alert_log(tmp_path, "x", NOW) == ((only,), ())


@pytest.mark.parametrize(("damaged", "lost"), [(1, 1), (2, 0), (3, 2), (4, 0), (5, 0)])
def test_an_alert_whose_beginning_is_damaged_gets_no_other_number(
    damaged: int, lost: int, tmp_path: Path
) -> None:
    """Of the fifth line, only a part was written: the next session writes it again."""
    opened, grew = EVENTS[:2]
    every = [replace(e, number=number) for number in (1, 2) for e in (opened, grew)]
    lines = [*map(ALERT_LOG.line, every), ALERT_LOG.line(replace(opened, number=3))]
    lines[damaged - 1] = lines[damaged - 1][:-1]
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "alerts.jsonl").write_text("\n".join(lines))
    if lost:
        with pytest.raises(FileError, match=f"line {damaged} is damaged, .* of alert {lost} is "):
            read_alert_log(tmp_path, "x", NOW)
    else:
        assert len(read_alert_log(tmp_path, "x", NOW)[0]) == 4


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"schema": 0}, "schema is 0, not a number from 1"),
        ({"event": "exploded"}, "event is 'exploded', not one of opened, "),
        ({"number": 0}, "number is missing"),
        ({"number": 10**12}, "not the number of an alert"),
        ({"number": True}, "not the number of an alert"),
        ({"direction": "sideways"}, "direction is 'sideways', not one of down, up"),
        ({"subject": ["x"]}, "not a string"),
        ({"names": [1]}, "not a list of strings"),
        ({"names": "abc"}, "not a list of strings"),
        ({"since": "yesterday"}, "since is 'yesterday', not a time with a UTC offset"),
        ({"when": None}, "when is missing"),
        ({"cause": "rain"}, "cause is 'rain', not a cause"),
        ({"cause": {"kind": "rain"}}, "not a cause"),
        ({"cause": {"kind": "load", "what": "x", "since": NOW.isoformat(), "odds": 0}}, "a cause"),
        ({"colour": "red"}, "unknown field 'colour'"),
    ],
)
def test_what_is_no_event_is_rejected_with_the_reason(fields: dict[str, object], why: str) -> None:
    line = {**json.loads(GOLDEN.splitlines()[0]), **fields}
    with pytest.raises(Unusable, match=why):
        event_in(json.dumps(line).encode())
