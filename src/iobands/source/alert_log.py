"""The log of alerts, `perflogs/<system>/alerts.jsonl`: what happened to each, only appended to.

`iobands run` and the commands that log an action write it; nobody else does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from iobands.model import Rejected, Unusable, path_part, shown, utc_text
from iobands.snapshot import (
    CAUSED,
    CLOSED,
    DOWN,
    FELL,
    FLAKY,
    GREW,
    MERGED,
    OPENED,
    RENAMED,
    REOPENED,
    TURNED,
    UP,
    AlertEvent,
    Cause,
    CauseKind,
    State,
)
from iobands.source.json_lines import append_lines, object_of, read_lines, time_in

#: The version of contract 7.
ALERT_SCHEMA: Final = 2

_NEEDED: Final = {
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
_KEYS: Final = {"schema", "event", *(each.name for each in fields(AlertEvent))} - {"kind"}
_TIMES: Final = ("when", "since")
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
    events, rejected = read_lines(path, ALERT_SCHEMA, _KEYS, _event)
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
    return _event(object_of(line, ALERT_SCHEMA, _KEYS)[0])


def _event(said: dict[str, Any]) -> AlertEvent:
    kind = said.pop("event", None)
    if not isinstance(kind, str) or kind not in _NEEDED:
        raise Unusable(f"event is {shown(kind)}; one of {', '.join(_NEEDED)}")
    del said["schema"]
    for name in ("when", "number", *_NEEDED[kind]):
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
    times: dict[str, Any] = {name: time_in(said, name) for name in _TIMES if name in said}
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
