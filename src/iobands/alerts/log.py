"""The log of actions, `config/alerts/<system>.jsonl`: one JSON object a line, only appended to."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from iobands.alerts.action import (
    ACKNOWLEDGE,
    DISCARD,
    KINDS,
    REBASELINE,
    RESOLVE,
    RETIRE,
    UNDO,
    VERDICTS,
    Action,
    is_future,
)
from iobands.detection import DOWN, UP
from iobands.model.fields import SERIES_FIELDS
from iobands.model.rejected import Rejected
from iobands.model.series import SeriesKey
from iobands.status.peers import PeerName

#: The version of contract 5 that is written.
SCHEMA: Final = 3

_FIELDS: Final = (
    "when", "who", "reason", "series", "since", "until", "direction", "ratio", "of", "verdict",
    "subject", "target", "node",
)  # fmt: skip
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
_LOCK_SECONDS: Final = 10


class LogError(ValueError):
    """A line is not an action; the message says why."""


@dataclass(frozen=True)
class Log:
    """All actions of one system in the order of the file, and the lines that are none."""

    actions: tuple[Action, ...] = ()
    rejected: tuple[Rejected, ...] = ()

    def of(self, key: SeriesKey | PeerName) -> tuple[Action, ...]:
        """Return the actions about a series, a target or a node, undone ones included."""
        return tuple(action for action in self.actions if action.names(key))


def path_of(directory: Path, system: str) -> Path:
    """Return the log of a system."""
    return directory / f"{system}.jsonl"


def read_log(directory: Path, system: str, now: datetime, *, as_of: bool = False) -> Log:
    """Return the log of `system`, which is empty where there is no file.

    A line that is not an action, or one of the future, is rejected and the others hold. With
    `as_of` later actions had not been taken yet.

    Raises:
        OSError: the file cannot be read.
    """
    path = path_of(directory, system)
    if not path.exists():
        return Log()
    actions, rejected = [], []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if not line.strip():
            continue
        try:
            action = parse(line)
            if as_of and action.when > now:
                continue
            if is_future(action, now):
                raise LogError(f"{action.when.isoformat()} is in the future: it does not hold yet")
            actions.append(action)
        except LogError as error:
            rejected.append(Rejected(path, number, str(error)))
    return Log(tuple(actions), tuple(rejected))


def append(directory: Path, system: str, actions: Sequence[Action]) -> Path:
    """Append `actions` to the log of `system` and return its path.

    Raises:
        OSError: the file cannot be written.
    """
    from filelock import FileLock  # noqa: PLC0415 (slow to load, and only writing needs it)

    path = path_of(directory, system)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock", timeout=_LOCK_SECONDS), path.open("a+b") as stream:
        size = stream.seek(0, os.SEEK_END)
        if size:
            stream.seek(size - 1)
            if stream.read(1) != b"\n":  # somebody's editor, or a line that was cut off
                stream.write(b"\n")
        lines = "".join(f"{as_line(action)}\n" for action in actions)
        stream.write(lines.encode(errors="replace"))  # of arguments that are not UTF-8
        stream.flush()
        os.fsync(stream.fileno())
    return path


def as_line(action: Action) -> str:
    """Return an action as JSON on one line."""
    fields: dict[str, object] = {"schema": SCHEMA, "action": action.kind}
    for name in _FIELDS:
        value = getattr(action, name)
        if isinstance(value, datetime):
            value = value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
        if value is not None:
            fields[name] = value
    return json.dumps(fields, ensure_ascii=False)


def parse(line: bytes) -> Action:
    """Return the action on a line.

    Raises:
        LogError: it is none; the message says why.
    """
    try:
        fields = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise LogError(f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise LogError("not an object")
    schema = fields.get("schema")
    if schema not in range(1, SCHEMA + 1) or isinstance(schema, bool):
        raise LogError(f"schema is {schema!r}; this version reads 1 to {SCHEMA}")
    kind, kinds = fields.get("action"), _FIRST if schema == 1 else KINDS
    if kind not in kinds:
        raise LogError(f"action is {kind!r}; one of {', '.join(kinds)}")
    unknown = sorted(fields.keys() - {"schema", "action", *Action.__dataclass_fields__})
    if unknown or "kind" in fields:
        raise LogError(f"unknown field {[*unknown, 'kind'][0]!r}")
    times = {name: _time(fields, name) for name in _TIMES if name in fields}
    for name in ("when", "who", "reason", "series", *_NEEDED[kind]):
        if not fields.get(name):
            raise LogError(f"{name} is missing")
    for name in ("who", "reason", "subject", "target", "node"):
        if not isinstance(fields.get(name, ""), str):
            raise LogError(f"{name} is {fields[name]!r}, not a text")
    if fields.get("direction") not in (None, DOWN, UP):
        raise LogError(f"direction is {fields['direction']!r}; one of {DOWN}, {UP}")
    if fields.get("verdict") not in (None, *VERDICTS):
        raise LogError(f"verdict is {fields['verdict']!r}; one of {', '.join(VERDICTS)}")
    ratio = fields.get("ratio")
    if ratio is not None and (isinstance(ratio, bool) or not isinstance(ratio, int | float)):
        raise LogError(f"ratio is {ratio!r}, not a number")
    return Action(
        kind=kind,
        who=fields["who"],
        reason=fields["reason"],
        series=_matches(fields["series"]),
        direction=fields.get("direction"),
        ratio=ratio,
        verdict=fields.get("verdict"),
        subject=fields.get("subject"),
        target=fields.get("target"),
        node=fields.get("node"),
        **times,
    )


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _time(fields: Mapping[str, Any], name: str) -> datetime:
    text = fields[name]
    try:
        found = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        raise LogError(f"{name} is {text!r}, not a time") from None
    if found.utcoffset() is None:
        raise LogError(f"{name} {text!r} has no UTC offset")
    return found


def _matches(series: object) -> tuple[Mapping[str, object], ...]:
    if not isinstance(series, list) or not all(isinstance(each, dict) and each for each in series):
        raise LogError("series is not a list of objects that name series fields")
    for match in series:
        unknown = sorted(match.keys() - _MATCHES)
        if unknown:
            raise LogError(f"series names the unknown field {unknown[0]!r}")
        if any(isinstance(value, dict | list) for value in match.values()):
            raise LogError("a field of series is not a plain value")
    return tuple(series)
