"""The log of actions: appended entries are read again, and no bad line affects the others."""

from __future__ import annotations

import json
import math
import multiprocessing
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iobands.model import Unusable
from iobands.snapshot import (
    ACKNOWLEDGE,
    BEGIN,
    DISCARD,
    END,
    REBASELINE,
    RESOLVE,
    RETIRE,
    UNDO,
    Action,
)
from iobands.source.action_log import ACTION_LOG, append, log_path, read_log
from tests.factory import NOW
from tests.judge.keys import KEY

GOOD = {
    "schema": 4,
    "action": "acknowledge",
    "when": "2026-11-20T09:12:00Z",
    "who": "jane",
    "reason": "OST 12 rebuilds",
    "series": [{"file_system": "a", "variable": "write_bw"}],
    "since": "2026-11-07T01:29:12Z",
    "until": "2026-11-20T09:12:00Z",
    "direction": "down",
    "ratio": 0.71,
}

TEXTS = st.text(min_size=1)
TIMES = st.datetimes(datetime(1990, 1, 1), datetime(2026, 11, 20), timezones=st.just(timezone.utc))
MATCHES = st.dictionaries(
    st.sampled_from(["file_system", "pattern", "variable", "nodes", "stripe_count_asked"]),
    st.none() | st.text() | st.integers(-5, 100) | st.floats(0, 1e6),
    min_size=1,
)


@st.composite
def actions(draw: st.DrawFn) -> Action:
    kind = draw(st.sampled_from([*ACTION_LOG.needs]))
    is_change = kind in (ACKNOWLEDGE, RESOLVE, DISCARD, END)
    places = st.fixed_dictionaries({"file_system": TEXTS})
    return Action(
        kind,
        draw(TIMES),
        draw(TEXTS),
        draw(TEXTS),
        tuple(draw(st.lists(places if kind == BEGIN else MATCHES, min_size=1, max_size=3))),
        since=None if kind in (UNDO, RETIRE, BEGIN) else draw(TIMES),
        until=draw(TIMES) if is_change else None,
        direction=draw(st.sampled_from(["down", "up"])) if kind == ACKNOWLEDGE else None,
        ratio=draw(st.none() | st.floats(0, 10)) if is_change else None,
        of=draw(TIMES) if kind in (UNDO, END) else None,
    )


def log(directory: Path, content: bytes) -> Path:
    path = log_path(directory, "here")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def line(**fields: object) -> bytes:
    """Return GOOD with `fields` replaced; None leaves a field out."""
    found = {name: value for name, value in {**GOOD, **fields}.items() if value is not None}
    return json.dumps(found).encode()


def parse(content: bytes) -> Action:
    return ACTION_LOG.parse(content)[0]


def test_no_file_is_an_empty_log(tmp_path: Path) -> None:
    assert read_log(tmp_path, "here", NOW).actions == ()


@settings(max_examples=40)
@given(st.lists(st.lists(actions(), max_size=4), max_size=2))
def test_what_is_appended_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, every: list[list[Action]]
) -> None:
    directory = tmp_path_factory.mktemp("log")
    for several in every:
        append(directory, "here", several)
    found = read_log(directory, "here", NOW)
    assert found.actions == tuple(chain.from_iterable(every))
    assert found.rejected == ()


@settings(max_examples=150)
@given(
    st.binary(max_size=60)
    | st.text().map(str.encode)
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode())
    | st.builds(
        lambda name, value: json.dumps({**GOOD, name: value}).encode(),
        st.sampled_from([*GOOD, "of", "kind", "more"]),
        st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.just([{}]),
    )
)
def test_any_line_is_an_action_or_a_reject(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    directory = tmp_path_factory.mktemp("log")
    log(directory, b"\n".join([line(), content, line(reason="later")]) + b"\n")
    found = read_log(directory, "here", NOW)
    reasons = [action.reason for action in found.actions]
    # whatever the line is, the lines around it are in force
    assert (reasons[0], reasons[-1]) == ("OST 12 rebuilds", "later")
    filled = [each for each in content.splitlines() if each.strip()]
    assert len(found.actions) + len(found.rejected) == 2 + len(filled)
    for rejected in found.rejected:
        assert 2 <= rejected.line <= 1 + max(1, len(content.splitlines()))
        assert rejected.reason


@pytest.mark.parametrize(
    "fields",
    [
        {"schema": 100},
        {"schema": True},
        {"schema": None},
        {"action": "close"},
        {"action": ["acknowledge"]},
        {"action": None},
        {"when": "yesterday"},
        {"when": "2026-11-20T09:12:00"},  # no offset
        {"when": 5},
        {"since": None},
        {"until": ""},
        {"direction": None},
        {"direction": "sideways"},
        {"who": 5},
        {"who": ""},
        {"reason": None},
        {"series": []},
        {"series": {}},
        {"series": [{}]},
        {"series": [{"colour": "red"}]},
        {"series": [{"system": "here"}]},
        {"series": [{"nodes": [1, 2]}]},
        {"ratio": "0.7"},
        {"ratio": True},
        {"ratio": math.nan},
        {"colour": "red"},
        {"kind": "acknowledge"},
        {"action": "undo"},  # without `of`
        {"when": "2026-11-21T03:00:00Z"},  # 90 minutes ahead
    ],
)
def test_what_is_no_action_is_rejected_with_its_line(
    tmp_path: Path, fields: dict[str, object]
) -> None:
    log(tmp_path, line(**fields) + b"\n\n" + line())
    found = read_log(tmp_path, "here", NOW)
    assert [action.who for action in found.actions] == ["jane"]
    (rejected,) = found.rejected
    assert (rejected.path, rejected.line) == (log_path(tmp_path, "here"), 1)


def test_clocks_may_differ_by_an_hour(tmp_path: Path) -> None:
    log(tmp_path, line(when=(NOW + timedelta(minutes=59)).isoformat()))
    assert len(read_log(tmp_path, "here", NOW).actions) == 1


@pytest.mark.parametrize(
    "content", [b"{", b"null", b"[]", b"\xff\xfe", b'"text"', b"NaN", b"{}", 10**5 * b"["]
)
def test_what_is_no_object_is_no_action(content: bytes) -> None:
    with pytest.raises(Unusable):
        parse(content)


@pytest.mark.parametrize("cut", [1, 40, -1])
def test_a_last_line_that_was_cut_off_costs_only_itself(tmp_path: Path, cut: int) -> None:
    path = log(tmp_path, line() + b"\n" + line(reason="cut")[:cut])
    action = parse(line(reason="new"))
    append(tmp_path, "here", [action])
    found = read_log(tmp_path, "here", NOW)
    assert [each.reason for each in found.actions] == ["OST 12 rebuilds", "new"]
    assert [each.line for each in found.rejected] == [2]
    assert path.read_bytes().count(b"\n") == 3


def test_a_last_line_without_an_end_gets_one(tmp_path: Path) -> None:
    path = log(tmp_path, line())
    append(tmp_path, "here", [parse(line(reason="new"))])
    assert (
        path.read_bytes()
        == line() + b"\n" + ACTION_LOG.line(parse(line(reason="new"))).encode() + b"\n"
    )


def test_what_was_there_is_not_touched(tmp_path: Path) -> None:
    before = b"\n  " + line() + b"  \r\n# what people write\n"
    path = log(tmp_path, before)
    path.chmod(0o640)
    append(tmp_path, "here", [parse(line(reason="new"))])
    assert path.read_bytes().startswith(before)
    assert path.stat().st_mode & 0o777 == 0o640


def test_times_are_written_in_utc_and_may_be_read_in_any_offset() -> None:
    action = parse(line(when="2026-11-20T10:12:00+01:00"))
    assert f"{action.when:%H:%M}" == "09:12"  # as it is shown
    assert action.when == datetime(2026, 11, 20, 9, 12, tzinfo=timezone.utc)
    assert json.loads(ACTION_LOG.line(action)) == GOOD


def test_a_line_has_no_line_break_in_it() -> None:
    assert "\n" not in ACTION_LOG.line(parse(line(reason="two\nlines\u2028and\x85more")))


def test_what_no_terminal_can_have_sent_is_written_nevertheless(tmp_path: Path) -> None:
    # the form in which Python gets arguments that are not UTF-8
    append(tmp_path, "here", [replace(parse(line()), reason="caf\udce9")])
    (action,) = read_log(tmp_path, "here", NOW).actions
    assert action.reason == "caf?"


def test_actions_of_a_series(tmp_path: Path) -> None:
    series = [{"file_system": "a", "nodes": "1"}, {"pattern": "ssf"}]
    append(tmp_path, "here", [parse(line(series=series))])
    found = read_log(tmp_path, "here", NOW)
    # "1" in the log is the number 1 of the series
    assert len(found.of(KEY)) == 1
    assert len(read_log(tmp_path, "there", NOW).of(KEY)) == 0
    append(tmp_path, "here", [parse(line(series=[{"file_system": "b"}]))])
    assert len(read_log(tmp_path, "here", NOW).of(KEY)) == 1


def append_some(directory: Path, who: str) -> None:
    for number in range(20):
        append(directory, "here", [parse(line(who=who, reason=f"{number}"))])


def test_nobody_s_action_is_lost(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    people = ["jane", "joe", "ann"]
    at_once = [context.Process(target=append_some, args=(tmp_path, who)) for who in people]
    for process in at_once:
        process.start()
    for process in at_once:
        process.join(60)
    found = read_log(tmp_path, "here", NOW)
    assert found.rejected == ()
    for who in people:
        mine = [action.reason for action in found.actions if action.who == who]
        assert mine == [str(number) for number in range(20)]


def test_each_kind_has_its_fields() -> None:
    undo = {"action": UNDO, "of": GOOD["when"], "since": None, "until": None, "direction": None}
    assert parse(line(**undo)).of == datetime(2026, 11, 20, 9, 12, tzinfo=timezone.utc)
    assert parse(line(action=RESOLVE)).kind == RESOLVE
    assert parse(line(action=REBASELINE, until=None, direction=None)).until is None


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"series": [{"pattern": "fpp"}]}, "fields other than file_system"),
        ({"since": "2026-11-20T11:00:00Z", "until": None}, "after its line was written"),
        ({"until": "2026-11-07T01:00:00Z"}, "ends before it begins"),
    ],
)
def test_a_maintenance_that_cannot_be(fields: dict[str, object], why: str) -> None:
    begin = {"action": "begin maintenance", "series": [{"file_system": "a"}]}
    bare = {"direction": None, "ratio": None}
    with pytest.raises(Unusable, match=why):
        parse(line(**{**begin, **bare, **fields}))
