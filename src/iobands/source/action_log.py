"""The log of actions, `config/alerts/<system>.jsonl`: JSON objects, one a line, only appended."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from iobands.model import (
    SERIES_FIELDS,
    PeerName,
    Rejected,
    SeriesKey,
    Unusable,
    is_of_this_age,
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
    DISCARD,
    DOWN,
    REBASELINE,
    RESOLVE,
    RETIRE,
    UNDO,
    UP,
    Action,
    is_future,
)

#: The version of contract 5 that is written.
ACTIONS_SCHEMA: Final = 3

_FIELDS: Final = tuple(field.name for field in fields(Action) if field.name != "kind")
_TIMES: Final = ("when", "since", "until", "of")
_NEEDED: Final = {
    ACKNOWLEDGE: ("since", "until", "direction"),
    RESOLVE: ("since", "until"),
    REBASELINE: ("since",),
    UNDO: ("of",),
    RETIRE: (),
    DISCARD: ("since", "until"),
}
# The actions of version 1; its lines stay valid.
_FIRST: Final = (ACKNOWLEDGE, RESOLVE, REBASELINE, UNDO)
_MATCHES: Final = frozenset((*SERIES_FIELDS, "variable")) - {"system"}
_LARGEST_RATIO: Final = 2.0**60
_LOCK_SECONDS: Final = 10


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
    path = log_path(directory, system)
    if not path.exists():
        return Log()
    actions, rejected = [], []
    for number, line in enumerate(read_small(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            action = parse(line)
            if as_of and action.when > now:
                continue
            if is_future(action, now):
                raise Unusable(f"{action.when.isoformat()} is in the future and does not count yet")
            actions.append(action)
        except Unusable as error:
            rejected.append(Rejected(path, number, str(error)))
    return Log(tuple(actions), tuple(rejected))


def append(directory: Path, system: str, actions: Sequence[Action]) -> Path:
    """Append `actions` to the log of `system` and return its path.

    Raises:
        OSError: the file cannot be written, and is unchanged.
    """
    from filelock import FileLock  # noqa: PLC0415 (slow to load, and only writing needs it)

    path = log_path(directory, system)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f"{path}.lock", timeout=_LOCK_SECONDS)
    lines = "".join(f"{as_line(action)}\n" for action in actions)
    with naming(path), lock, path.open("a+b", buffering=0) as stream:
        size = stream.seek(0, os.SEEK_END)
        rest = lines.encode(errors="replace")  # of arguments that are not UTF-8
        if size:
            stream.seek(size - 1)
            if stream.read(1) != b"\n":  # saved so by an editor, or a torn line
                rest = b"\n" + rest
        try:
            while rest:
                rest = rest[stream.write(rest) :]
            os.fsync(stream.fileno())
        except OSError:
            stream.truncate(size)  # an action that was not logged must not count
            raise
    return path


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
    try:
        said = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"not JSON: {error}") from None
    if not isinstance(said, dict):
        raise Unusable("not an object")
    schema = said.get("schema")
    if schema not in range(1, ACTIONS_SCHEMA + 1) or isinstance(schema, bool):
        raise Unusable(f"schema is {schema!r}; this version reads 1 to {ACTIONS_SCHEMA}")
    kind, kinds = said.get("action"), _FIRST if schema == 1 else ACTIONS
    if not isinstance(kind, str) or kind not in kinds:
        raise Unusable(f"action is {kind!r}; one of {', '.join(kinds)}")
    unknown = sorted(said.keys() - {"schema", "action", *_FIELDS})
    if unknown:
        raise Unusable(f"unknown field {unknown[0]!r}")
    times = {name: _time(said, name) for name in _TIMES if name in said}
    for name in ("when", "who", "reason", "series", *_NEEDED[kind]):
        if not said.get(name):
            raise Unusable(f"{name} is missing")
    for name in ("who", "reason", "subject", "target", "node"):
        if not isinstance(said.get(name, ""), str):
            raise Unusable(f"{name} is {said[name]!r}, not a text")
    if said.get("direction") not in (None, DOWN, UP):
        raise Unusable(f"direction is {said['direction']!r}; one of {DOWN}, {UP}")
    if said.get("verdict") not in (None, *ANSWERS):
        raise Unusable(f"verdict is {said['verdict']!r}; one of {', '.join(ANSWERS)}")
    ratio = said.get("ratio", 1)
    if type(ratio) not in (int, float, type(None)) or not 0 < (ratio or 1) < _LARGEST_RATIO:
        raise Unusable(f"ratio is {shown(ratio)}, not a possible ratio")
    given = {name: said[name] for name in _FIELDS if name in said}
    return Action(kind, **{**given, **times, "series": _matches(said["series"])})


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _time(fields: Mapping[str, Any], name: str) -> datetime:
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
