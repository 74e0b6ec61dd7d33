"""The logs of actions and of alerts: files with a JSON object per line, which only grow."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timezone
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Final, Generic, TypeVar

from msgspec import Meta, ValidationError, convert

from iobands import snapshot
from iobands.model import (
    SERIES_FIELDS,
    FileError,
    PeerName,
    Rejected,
    SeriesKey,
    Unusable,
    held,
    is_newer,
    naming,
    parse_time,
    path_part,
    read_small,
    replace_file,
    shown,
    utc_text,
)
from iobands.snapshot import Action, AlertEvent, Cause

_LOCK_SECONDS: Final = 10
_NOT_JSON: Final = "not JSON"
_DECISION_SECONDS: Final = 60  # enough to judge a site with years of runs
_MATCHES: Final = frozenset((*SERIES_FIELDS, "variable")) - {"system"}
_Match = Annotated[dict[str, bool | float | str | None], Meta(min_length=1)]
_Item = TypeVar("_Item", Action, AlertEvent)
#: The function that reads the value of a field, and what the value must be, for messages.
_Value = tuple[Callable[[Any], Any], str]


def _of(type_: Any, what: str) -> _Value:  # noqa: ANN401 (as msgspec calls it)
    return partial(convert, type=type_), what


def _one_of(*words: str) -> _Value:
    return {word: word for word in words}.__getitem__, f"one of {', '.join(words)}"


def _series(value: Any) -> tuple[Mapping[str, object], ...]:  # noqa: ANN401
    for match in convert(value, list[_Match]):
        if unknown := sorted(match.keys() - _MATCHES):
            raise Unusable(f"series names the unknown field {unknown[0]!r}")
    return tuple(value)


def _moment(value: Any) -> datetime:  # noqa: ANN401
    return parse_time(value).astimezone(timezone.utc)  # the zone in which times are shown


def _cause(value: Any) -> Cause:  # noqa: ANN401
    cause = convert({**value, "since": _moment(value["since"])}, Cause)
    if cause.odds <= 0:
        raise ValueError
    return cause


_TEXT: Final = _of(str, "a string")
_ALERT: Final = _of(Annotated[int, Meta(gt=0, lt=10**9)], "the number of an alert")
_VALUES: Final[Mapping[str, _Value]] = {
    **dict.fromkeys(("when", "since", "until", "of"), (_moment, "a time with a UTC offset")),
    **dict.fromkeys(("who", "reason", "ticket", "owner", "subject", "end"), _TEXT),
    **dict.fromkeys(("target", "node"), _TEXT),
    **dict.fromkeys(("alert", "number", "into"), _ALERT),
    "direction": _one_of(snapshot.DOWN, snapshot.UP, snapshot.FLAKY),
    "verdict": _one_of(snapshot.REAL, snapshot.FALSE),
    "ratio": _of(Annotated[float, Meta(ge=0, lt=2.0**60)], "a possible ratio"),
    "state": (snapshot.State, "the state of a series"),
    "names": _of(tuple[str, ...], "a list of strings"),
    "series": (_series, "a list of objects that name series fields"),
    "cause": (_cause, "a cause"),
}


class OutdatedError(Exception):
    """Another process has appended to a log after a judgement read it."""


@contextmanager
def deciding(perflogs: Path) -> Iterator[None]:
    """Lock other processes out while this one decides on an action and logs it.

    Raises:
        TimeoutError: another process has held the lock for a minute.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(held(perflogs / ".deciding.lock", _DECISION_SECONDS))
        except TimeoutError:
            raise
        except OSError:
            pass  # without write access there, one may still write to the log of actions
        yield


@dataclass(frozen=True)
class LogForm(Generic[_Item]):
    """The form of a log: its newest `schema`, and the class `item` that `make` builds from a line.

    `kind` names the field that says what happened; `needs` lists the fields each kind requires.
    """

    schema: int
    kind: str
    item: type[_Item]
    make: Callable[..., _Item]
    needs: Mapping[str, Sequence[str]]

    def line(self, item: _Item) -> str:
        """Return an item as JSON on one line, without fields that have their default value."""
        said: dict[str, object] = {"schema": self.schema}
        for field in fields(item):
            if (value := getattr(item, field.name)) != field.default:
                said[self.kind if field.name == "kind" else field.name] = value
        return json.dumps(said, ensure_ascii=False, default=_to_json)

    def parse(self, line: bytes) -> tuple[_Item, str]:
        """Return the item on a line, and a sentence about fields of a newer version, or "".

        Raises:
            Unusable: the line is not an item; the message says why.
        """
        try:
            said = json.loads(line, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise Unusable(f"{_NOT_JSON}: {error}") from None
        if not isinstance(said, dict):
            raise Unusable("not an object")
        known = {self.kind, *(each.name for each in fields(self.item))} - {"kind"}
        newer, schema, left = is_newer(said, self.schema), said.pop("schema", None), ""
        unknown = sorted(said.keys() - known)
        if newer and unknown:
            left = f"schema {schema} is newer than {self.schema}; left out: {str(unknown)[1:-1]}"
            said = {name: value for name, value in said.items() if name in known}
        elif not newer and (schema not in range(1, self.schema + 1) or schema is True):
            raise Unusable(f"schema is {schema!r}, not a number from 1")
        elif unknown:
            raise Unusable(f"unknown field {unknown[0]!r}")
        kind = _read(self.kind, said.pop(self.kind, None), _one_of(*self.needs))
        if missing := [name for name in self.needs[kind] if not said.get(name)]:
            raise Unusable(f"{missing[0]} is missing")
        given = {name: value for name, value in said.items() if value is not None}
        read = {name: _read(name, value, _VALUES[name]) for name, value in given.items()}
        return self.make(kind=kind, **read), left

    def read(self, path: Path) -> tuple[list[tuple[int, _Item]], list[Rejected]]:
        """Return the items in a file with their line numbers, and what was rejected or left out.

        Raises:
            OSError: the file cannot be read.
        """
        items, rejected = [], []
        is_there = path.exists() or path.is_symlink()  # a link to nothing is no empty log
        lines = read_small(path).splitlines() if is_there else []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                item, left = self.parse(line)
                items.append((number, item))
            except Unusable as error:
                left = str(error)
            rejected += [Rejected(path, number, left)] if left else []
        return items, rejected

    def append(
        self, path: Path, items: Sequence[_Item], known: Sequence[_Item] | None = None
    ) -> Path:
        """Append `items` to a file and return its path.

        Raises:
            OutdatedError: the file has items that are not `known`; None omits this check.
            OSError: the file cannot be written, and is unchanged.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = held(path.with_name(f"{path.name}.lock"), _LOCK_SECONDS)
        with naming(path), lock, path.open("a+b", buffering=0) as stream:
            if known is not None:
                before = {self.line(item) for item in known}
                if any(self.line(item) not in before for _, item in self.read(path)[0]):
                    raise OutdatedError
            size = stream.seek(0, os.SEEK_END)
            rest = "".join(f"{self.line(item)}\n" for item in items).encode(errors="replace")
            if size:
                stream.seek(size - 1)
                if stream.read(1) != b"\n":  # from an editor, or a torn line
                    rest = b"\n" + rest
            try:
                while rest:
                    rest = rest[stream.write(rest) :]
                os.fsync(stream.fileno())
            except OSError:
                stream.truncate(size)  # what was not logged must not count
                raise
        return path

    def rewrite(self, path: Path, items: Sequence[_Item]) -> Path:
        """Replace the items of a file; its old content is kept beside it, with the ending `.old`.

        Raises:
            OSError: either file cannot be written; the log is unchanged.
        """
        with held(path.with_name(f"{path.name}.lock"), _LOCK_SECONDS):
            if path.exists():
                replace_file(path.with_suffix(".old"), read_small(path))
            replace_file(path, "".join(f"{self.line(item)}\n" for item in items).encode())
        return path


def _to_json(value: Any) -> object:  # noqa: ANN401
    return asdict(value) if isinstance(value, Cause) else utc_text(value)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")


def _read(name: str, value: object, way: _Value) -> Any:  # noqa: ANN401
    read, what = way
    try:
        return read(value)
    except Unusable:
        raise
    except (ValidationError, ValueError, TypeError, KeyError):
        raise Unusable(f"{name} is {shown(value)}, not {what}") from None


def _action(kind: str, **said: Any) -> Action:  # noqa: ANN401
    action = Action(kind, **{"series": (), **said})
    if kind == snapshot.BEGIN:
        begin = action.since or action.when
        if not all(each.keys() == {"file_system"} for each in action.series):
            raise Unusable("series of a maintenance has fields other than file_system")
        if action.until and action.until <= begin:
            raise Unusable("the maintenance ends before it begins")
        if begin > action.when + snapshot.CLOCKS:
            raise Unusable("the maintenance begins after its line was written")
    return action


_ACTION_NEEDS: Final = ("when", "who", "reason")
#: The log of actions, contract 5.
ACTION_LOG: Final = LogForm(
    4,
    "action",
    Action,
    _action,
    {
        snapshot.ACKNOWLEDGE: (*_ACTION_NEEDS, "series", "since", "until", "direction"),
        snapshot.RESOLVE: (*_ACTION_NEEDS, "series", "since", "until"),
        snapshot.REBASELINE: (*_ACTION_NEEDS, "series", "since"),
        snapshot.UNDO: (*_ACTION_NEEDS, "series", "of"),
        snapshot.RETIRE: (*_ACTION_NEEDS, "series"),
        snapshot.DISCARD: (*_ACTION_NEEDS, "series", "since", "until"),
        snapshot.BEGIN: _ACTION_NEEDS,
        snapshot.END: (*_ACTION_NEEDS, "of", "until"),
    },
)
_EVENT_NEEDS: Final = ("when", "number")
#: The log of alerts, contract 7.
ALERT_LOG: Final = LogForm(
    2,
    "event",
    AlertEvent,
    AlertEvent,
    {
        snapshot.OPENED: (*_EVENT_NEEDS, "subject", "direction", "since", "names"),
        snapshot.GREW: (*_EVENT_NEEDS, "names"),
        snapshot.RENAMED: (*_EVENT_NEEDS, "subject"),
        snapshot.FELL: (*_EVENT_NEEDS, "names"),
        snapshot.MERGED: (*_EVENT_NEEDS, "into"),
        snapshot.CLOSED: (*_EVENT_NEEDS, "end"),
        snapshot.REOPENED: _EVENT_NEEDS,
        snapshot.CAUSED: _EVENT_NEEDS,
        snapshot.TURNED: (*_EVENT_NEEDS, "state", "names"),
    },
)


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
    found, rejected = ACTION_LOG.read(path)
    latest = now if as_of else now + snapshot.CLOCKS
    for number, action in found:
        if action.when > latest and not as_of:
            why = (
                f"{action.when.isoformat()} is in the future and does not count yet; if a clock "
                "was wrong, delete this line"
            )
            rejected.append(Rejected(path, number, why))
    actions = tuple(each for _, each in found if each.when <= latest)
    return Log(actions, tuple(sorted(rejected, key=lambda each: each.line)))


def append(directory: Path, system: str, actions: Sequence[Action]) -> Path:
    """Append `actions` to the log of `system` and return its path; see `LogForm.append`."""
    return ACTION_LOG.append(log_path(directory, system), actions)


def alert_log(perflogs: Path, system: str) -> Path:
    """Return the log of alerts of a system."""
    return perflogs / path_part(system) / "alerts.jsonl"


def read_alert_log(
    perflogs: Path, system: str, until: datetime, actions: Sequence[Action] = ()
) -> tuple[tuple[AlertEvent, ...], tuple[Rejected, ...]]:
    """Return the events of alerts up to `until`, and the rejected lines.

    Raises:
        OSError: the file cannot be read.
        FileError: the line that opened an alert is damaged, or there is no file though `actions`
            name alerts by their numbers: alerts would get other numbers.
    """
    path = alert_log(perflogs, system)
    events, rejected = ALERT_LOG.read(path)
    if not path.exists() and any(each.alert for each in actions):
        raise FileError(
            "there is no such file, but actions name alerts by its numbers; restore it, or write "
            "it anew with: iobands alerts --rebuild"
        )
    damaged = next((each.line for each in rejected if each.reason.startswith(_NOT_JSON)), None)
    opened = {each.number for _, each in events if each.kind == snapshot.OPENED}
    lost = next(number for number in count(1) if number not in opened)
    if damaged and lost <= max((each.number for _, each in events), default=0):
        raise FileError(
            f"line {damaged} is damaged, so the beginning of alert {lost} is lost; restore "
            "the log, or write it anew with: iobands alerts --rebuild"
        )
    return tuple(each for _, each in events if each.when <= until), tuple(rejected)
