"""The logs of actions and of alerts: JSON objects, one a line, only appended."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from iobands.model import (
    SERIES_FIELDS,
    PeerName,
    Rejected,
    SeriesKey,
    Unusable,
    held,
    is_of_this_age,
    leave_out,
    naming,
    path_part,
    read_small,
    shown,
    utc_text,
)
from iobands.snapshot import (
    ACKNOWLEDGE,
    ACTIONS,
    ANSWERS,
    BEGIN,
    CAUSED,
    CLOCKS,
    CLOSED,
    DISCARD,
    DOWN,
    END,
    FELL,
    FLAKY,
    GREW,
    MERGED,
    OPENED,
    REBASELINE,
    RENAMED,
    REOPENED,
    RESOLVE,
    RETIRE,
    TURNED,
    UNDO,
    UP,
    Action,
    AlertEvent,
    Cause,
    CauseKind,
    State,
    is_future,
)

_LOCK_SECONDS: Final = 10
_Item = TypeVar("_Item")


def read_lines(
    path: Path, newest: int, known: Collection[str], item_of: Callable[[dict[str, Any]], _Item]
) -> tuple[list[_Item], list[Rejected]]:
    """Return the items of a log, and the lines that are rejected or lack what is not known here.

    `item_of` makes an item of an object, or raises `Unusable`; a newer object has its `known`
    fields alone.

    Raises:
        OSError: the file cannot be read.
    """
    items, rejected = [], []
    lines = read_small(path).splitlines() if path.exists() else []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            said, left = object_of(line, newest, known)
            items.append(item_of(said))
            rejected += [Rejected(path, number, left)] if left else []
        except Unusable as error:
            rejected.append(Rejected(path, number, str(error)))
    return items, rejected


def object_of(line: bytes, newest: int, known: Collection[str]) -> tuple[dict[str, Any], str]:
    """Return the object on a line, with a `schema` from 1 to `newest`, and what was left out of it.

    Of a newer object, only the `known` fields are left.

    Raises:
        Unusable: the line is not such an object; the message says why.
    """
    try:
        said = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"not JSON: {error}") from None
    if not isinstance(said, dict):
        raise Unusable("not an object")
    left = leave_out(said, newest, known)
    schema = said.get("schema")
    if schema not in range(1, newest + 1) or isinstance(schema, bool):
        raise Unusable(f"schema is {schema!r}, not a number from 1")
    unknown = sorted(said.keys() - set(known))
    if unknown:
        raise Unusable(f"unknown field {unknown[0]!r}")
    return said, left


def time_in(fields: Mapping[str, Any], name: str) -> datetime:
    """Return the time in a field.

    Raises:
        Unusable: it is not a time with an offset, of this age.
    """
    text = fields[name]
    try:
        found = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        raise Unusable(f"{name} is {text!r}, not a time") from None
    if not is_of_this_age(found):
        raise Unusable(f"{name} is in the year {found.year}, which is impossible")
    if found.utcoffset() is None:
        raise Unusable(f"{name} {text!r} has no UTC offset")
    return found


def append_lines(path: Path, lines: Sequence[str]) -> Path:
    """Append `lines` to a log and return its path.

    Raises:
        OSError: the file cannot be written, and is unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = held(path.with_name(f"{path.name}.lock"), _LOCK_SECONDS)
    with naming(path), lock, path.open("a+b", buffering=0) as stream:
        size = stream.seek(0, os.SEEK_END)
        rest = "".join(f"{line}\n" for line in lines).encode(errors="replace")
        if size:
            stream.seek(size - 1)
            if stream.read(1) != b"\n":  # saved so by an editor, or a torn line
                rest = b"\n" + rest
        try:
            while rest:
                rest = rest[stream.write(rest) :]
            os.fsync(stream.fileno())
        except OSError:
            stream.truncate(size)  # what was not logged must not count
            raise
    return path


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")


#: The version of contract 5 that is written.
ACTIONS_SCHEMA: Final = 4

_FIELDS: Final = tuple(field.name for field in fields(Action) if field.name != "kind")
_KEYS: Final = {"schema", "action", *_FIELDS}
_TIMES: Final = ("when", "since", "until", "of")
_NEEDED: Final = {
    ACKNOWLEDGE: ("since", "until", "direction"),
    RESOLVE: ("since", "until"),
    REBASELINE: ("since",),
    UNDO: ("of",),
    RETIRE: (),
    DISCARD: ("since", "until"),
    BEGIN: (),
    END: ("of", "until"),
}
# The actions of version 1; its lines stay valid.
_FIRST: Final = (ACKNOWLEDGE, RESOLVE, REBASELINE, UNDO)
_MATCHES: Final = frozenset((*SERIES_FIELDS, "variable")) - {"system"}
_LARGEST_RATIO: Final = 2.0**60


@dataclass(frozen=True)
class Log:
    """All actions of one system in the order of the file, and the rejected lines."""

    actions: tuple[Action, ...] = ()
    rejected: tuple[Rejected, ...] = ()

    def of(self, key: SeriesKey | PeerName) -> tuple[Action, ...]:
        """Return the actions about a series, a target or a node, undone ones included."""
        return tuple(action for action in self.actions if action.names(key))


def log_path(directory: Path, system: str) -> Path:
    """Return the log of a system."""
    return directory / f"{path_part(system)}.jsonl"


def read_log(directory: Path, system: str, now: datetime, *, as_of: bool = False) -> Log:
    """Return the log of `system`, which is empty without a file.

    A line that is not an action, or is dated in the future, is rejected and the others count. With
    `as_of`, later actions are left out.

    Raises:
        OSError: the file cannot be read.
    """

    def action_in(said: dict[str, Any]) -> Action:
        action = _action(said)
        if is_future(action, now) and not as_of:
            raise Unusable(f"{action.when.isoformat()} is in the future and does not count yet")
        return action

    path = log_path(directory, system)
    actions, rejected = read_lines(path, ACTIONS_SCHEMA, _KEYS, action_in)
    known = (each for each in actions if not (as_of and each.when > now))
    return Log(tuple(known), tuple(rejected))


def append(directory: Path, system: str, actions: Sequence[Action]) -> Path:
    """Append `actions` to the log of `system` and return its path.

    Raises:
        OSError: the file cannot be written, and is unchanged.
    """
    return append_lines(log_path(directory, system), [*map(as_line, actions)])


def as_line(action: Action) -> str:
    """Return an action as JSON on one line."""
    said: dict[str, object] = {"schema": ACTIONS_SCHEMA, "action": action.kind}
    for name in _FIELDS:
        value = getattr(action, name)
        if isinstance(value, datetime):
            value = utc_text(value)
        if value is not None:
            said[name] = value
    return json.dumps(said, ensure_ascii=False)


def parse(line: bytes) -> Action:
    """Return the action on a line.

    Raises:
        Unusable: the line is not an action; the message says why.
    """
    return _action(object_of(line, ACTIONS_SCHEMA, _KEYS)[0])


def _action(said: dict[str, Any]) -> Action:
    kind, kinds = said.get("action"), _FIRST if said["schema"] == 1 else ACTIONS
    if not isinstance(kind, str) or kind not in kinds:
        raise Unusable(f"action is {kind!r}; one of {', '.join(kinds)}")
    times: dict[str, Any] = {name: time_in(said, name) for name in _TIMES if name in said}
    of_series = () if kind in {BEGIN, END} else ("series",)
    for name in ("when", "who", "reason", *of_series, *_NEEDED[kind]):
        if not said.get(name):
            raise Unusable(f"{name} is missing")
    for name in ("who", "reason", "subject", "target", "node", "ticket", "owner"):
        if not isinstance(said.get(name, ""), str):
            raise Unusable(f"{name} is {said[name]!r}, not a text")
    if said.get("direction") not in (None, DOWN, UP, FLAKY):
        raise Unusable(f"direction is {said['direction']!r}; one of {DOWN}, {UP}, {FLAKY}")
    if said.get("verdict") not in (None, *ANSWERS):
        raise Unusable(f"verdict is {said['verdict']!r}; one of {', '.join(ANSWERS)}")
    if type(said.get("alert", 1)) is not int:
        raise Unusable(f"alert is {shown(said['alert'])}, not the number of an alert")
    ratio = said.get("ratio", 1)
    if type(ratio) not in (int, float, type(None)) or not 0 < (ratio or 1) < _LARGEST_RATIO:
        raise Unusable(f"ratio is {shown(ratio)}, not a possible ratio")
    given = {name: said[name] for name in _FIELDS if name in said}
    given |= {**times, "series": _matches(said.get("series", []))}
    found = Action(kind, **given)
    if kind == BEGIN:
        _check_maintenance(found)
    return found


def _check_maintenance(action: Action) -> None:
    begin = action.since or action.when
    if not all(each.keys() == {"file_system"} for each in action.series):
        raise Unusable("series of a maintenance names more or less than file systems")
    if action.until and action.until <= begin:
        raise Unusable("the maintenance ends before it begins")
    if begin > action.when + CLOCKS:
        raise Unusable("the maintenance begins after its line was written")


def _matches(series: object) -> tuple[Mapping[str, object], ...]:
    if not isinstance(series, list) or not all(isinstance(each, dict) and each for each in series):
        raise Unusable("series is not a list of objects that name series fields")
    for match in series:
        unknown = sorted(match.keys() - _MATCHES)
        if unknown:
            raise Unusable(f"series names the unknown field {unknown[0]!r}")
        if any(isinstance(value, dict | list) for value in match.values()):
            raise Unusable("a field of series is not a plain value")
    return tuple(series)


#: The version of contract 7.
ALERT_SCHEMA: Final = 2

_EVENT_NEEDS: Final = {
    OPENED: ("subject", "direction", "since", "names"),
    GREW: ("names",),
    RENAMED: ("subject",),
    FELL: ("names",),
    MERGED: ("into",),
    CLOSED: ("end",),
    REOPENED: (),
    CAUSED: (),
    TURNED: ("state", "names"),
}
_EVENT_KEYS: Final = {"schema", "event", *(each.name for each in fields(AlertEvent))} - {"kind"}
_EVENT_TIMES: Final = ("when", "since")
_TEXTS: Final = ("subject", "end")


def alert_log(perflogs: Path, system: str) -> Path:
    """Return the log of alerts of a system."""
    return perflogs / path_part(system) / "alerts.jsonl"


def read_alert_log(
    perflogs: Path, system: str, now: datetime
) -> tuple[tuple[AlertEvent, ...], tuple[Rejected, ...]]:
    """Return what happened to alerts up to `now`, and the lines that are rejected.

    Raises:
        OSError: the file cannot be read.
    """
    path = alert_log(perflogs, system)
    events, rejected = read_lines(path, ALERT_SCHEMA, _EVENT_KEYS, _event)
    return tuple(each for each in events if each.when <= now), tuple(rejected)


def append_events(perflogs: Path, system: str, events: Sequence[AlertEvent]) -> Path:
    """Append `events` to the log of a system and return its path.

    Raises:
        OSError: the file cannot be written; it is as it was.
    """
    return append_lines(alert_log(perflogs, system), [*map(event_line, events)])


def event_line(event: AlertEvent) -> str:
    """Return an event as JSON on one line."""
    said: dict[str, object] = {"schema": ALERT_SCHEMA}
    for each in fields(event):
        value = getattr(event, each.name)
        if isinstance(value, Cause):
            value = {**asdict(value), "since": utc_text(value.since)}
        if isinstance(value, datetime):
            value = utc_text(value)
        if value not in (None, ()):
            said["event" if each.name == "kind" else each.name] = value
    return json.dumps(said, ensure_ascii=False)


def event_in(line: bytes) -> AlertEvent:
    """Return the event on a line.

    Raises:
        Unusable: the line is not an event; the message says why.
    """
    return _event(object_of(line, ALERT_SCHEMA, _EVENT_KEYS)[0])


def _event(said: dict[str, Any]) -> AlertEvent:
    kind = said.pop("event", None)
    if not isinstance(kind, str) or kind not in _EVENT_NEEDS:
        raise Unusable(f"event is {shown(kind)}; one of {', '.join(_EVENT_NEEDS)}")
    del said["schema"]
    for name in ("when", "number", *_EVENT_NEEDS[kind]):
        if not said.get(name):
            raise Unusable(f"{name} is missing")
    for name in ("number", "into"):
        if type(said.get(name, 1)) is not int or not 0 < said.get(name, 1) < _MOST:
            raise Unusable(f"{name} is {shown(said[name])}, not the number of an alert")
    for name in _TEXTS:
        if not isinstance(said.get(name, ""), str):
            raise Unusable(f"{name} is {shown(said[name])}, not a text")
    if said.get("direction", DOWN) not in (DOWN, UP, FLAKY):
        raise Unusable(f"direction is {shown(said['direction'])}; one of {DOWN}, {UP}, {FLAKY}")
    if said.get("state", State.DEGRADED) not in {*State}:
        raise Unusable(f"state is {shown(said['state'])}, not the state of a series")
    times: dict[str, Any] = {name: time_in(said, name) for name in _EVENT_TIMES if name in said}
    if "state" in said:
        said["state"] = State(said["state"])
    said |= {"kind": kind, **times, "names": _names(said), "cause": _cause(said.get("cause"))}
    return AlertEvent(**said)


_MOST: Final = 10**9


def _cause(said: Any) -> Cause | None:  # noqa: ANN401
    """Return the cause in an event, which may be missing."""
    if said is None:
        return None
    try:
        kind, what, odds = CauseKind(said["kind"]), str(said["what"]), float(said["odds"])
        return Cause(kind, what, time_in(said, "since"), odds)
    except (KeyError, TypeError, ValueError):
        raise Unusable(f"cause is {shown(said)}, which is not a cause") from None


def _names(said: dict[str, Any]) -> tuple[str, ...]:
    names = said.get("names", [])
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise Unusable("names is not a list of texts")
    return tuple(names)
