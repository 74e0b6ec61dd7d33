"""Who gets messages, what a message says of a cause, and the outbox that keeps it until it is sent.

`config/notify.yaml` names the receivers, and where their secrets are.

The outbox has a JSON file for each message and channel. Causes and messages are written before
anything is sent, so a message is lost only with its file. It is sent twice, with the same id, only
if the process ends after sending and before recording it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from iobands.model import (
    OK,
    Document,
    FileError,
    held,
    load_schema,
    parse_time,
    parse_yaml,
    read_content,
    read_small,
    replace_file,
)
from iobands.snapshot import LASTING, Alert, AlertEvent, Severity

_SETTINGS_SCHEMA: Final = Path(__file__).with_name("notify.schema.yaml")
#: The default subjects of messages: alerts with another exit status than 0.
NOTIFIED: Final = frozenset(each.value for each in Severity if each.exit_status != OK)
_MOST_BYTES: Final = 4096  # of a secret
# The forms in which libraries may print a secret.
_secrets: set[str] = set()


class SendError(Exception):
    """A message could not be sent; the text says why."""


@dataclass(frozen=True)
class Channel:
    """A way to send messages; `options` are the ones of its type."""

    name: str
    type: str
    options: Mapping[str, Any]
    severities: frozenset[str] = NOTIFIED


@dataclass(frozen=True)
class Settings:
    """The receivers. `monitors` get the state of the site each time, `ping` each session's."""

    channels: tuple[Channel, ...] = ()
    monitors: tuple[Channel, ...] = ()
    page: str = ""
    ping: str | Mapping[str, str] | None = None
    severities: frozenset[str] = NOTIFIED


def read_settings(path: Path) -> Settings:
    """Read the file at `path`.

    Raises:
        FileError: the file cannot be read, or breaks the schema.
    """
    if not path.exists():
        raise FileError(f"{path}: there is no such file; it names who gets messages")
    document = parse_yaml(read_content(path), path)
    document.check(load_schema(_SETTINGS_SCHEMA))
    said = document.value
    every = _severities(said.get("severities", NOTIFIED))
    channels = []
    for name, options in said.get("channels", {}).items():
        own = _severities(options.get("severities", every))
        channels.append(Channel(name, options["type"], options, own))
        every |= own
    monitors = tuple(
        Channel(name, options["type"], options)
        for name, options in said.get("monitors", {}).items()
    )
    return Settings(tuple(channels), monitors, said.get("page", ""), said.get("ping"), every)


def _severities(names: Iterable[str]) -> frozenset[str]:
    """Return severities; `degraded` stands for every lasting change for the worse."""
    found = frozenset(names)
    return found | {each.value for each in LASTING} if Severity.DEGRADED.value in found else found


def secret(where: str | Mapping[str, str]) -> str:
    """Return a secret from the environment or a file that only its owner can read.

    `scrubbed` removes it from texts from now on.

    Raises:
        SendError: it is missing, others could read it, or it is not one line of ASCII.
    """
    if isinstance(where, str):
        return _noted(where)
    if "env" in where:
        name = f"the variable {where['env']}"
        found = os.environ.get(where["env"], "").strip()
    else:
        name = where["file"]
        found = _content(Path(name)).decode(errors="replace").strip()
    if not found:
        raise SendError(f"{name} is empty or not set")
    if not (found.isascii() and found.isprintable()):
        raise SendError(f"{name} must hold only the secret: one line, ASCII, no control character")
    return _noted(found)


def scrubbed(text: str) -> str:
    """Return `text` without the secrets that were used."""
    for each in sorted(_secrets, key=len, reverse=True):
        text = text.replace(each, "…")
    return text


def _noted(found: str) -> str:
    forms = {found, repr(found)[1:-1], quote(found)}
    _secrets.update(forms)
    if "://" in found:  # an address: libraries print its parts
        parts = urlsplit(found)
        _secrets.update(
            {parts.path, f"{parts.path}?{parts.query}", parts.password or ""} - {"", "/"}
        )
    return found


def _content(path: Path) -> bytes:
    """Return the content of a secret's file, without waiting for a pipe or a device."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        content = read_small(path, _MOST_BYTES)
    except OSError as error:
        raise SendError(f"{path}: {error.strerror or error}") from None
    if mode not in (0o600, 0o400):
        raise SendError(
            f"{path} has mode {mode:04o}, so others could read it; run chmod 600 {path}"
        )
    return content


#: The version of contract 9.
MESSAGE_SCHEMA: Final = "iobands-message/1"
BEGAN: Final = "began"
WORSE: Final = "worse"
CONFIRMED: Final = "confirmed"
ENDED: Final = "recovered"
OPEN: Final = "still open"
NEW_NAME: Final = "renamed"
NEW_CAUSE: Final = "cause"

#: A member of a cause that is an alert: its system, a colon and its number are behind this.
ALERT: Final = "alert:"


@dataclass(frozen=True)
class Topic:
    """A cause that was sent. `members` are series, or other subjects of the alerts.

    `severity`, `number` (of members) and the interval `low` to `high` of the worst level over its
    baseline are as last sent. `sent` is false for a cause that was acknowledged before the first
    message. `events` counts the messages, `falls` how often its alerts fell again. `certain` is
    false until a message has said that its alerts are certain.
    """

    id: str
    kind: str
    title: str
    severity: str
    members: tuple[str, ...]
    number: int
    began: datetime
    low: float | None = None
    high: float | None = None
    sent: bool = True
    quiet: bool = False
    reminded: bool = False
    events: int = 0
    falls: int = 0
    found: int | None = None
    certain: bool = True


@dataclass(frozen=True)
class Event:
    """A change of a cause, to be sent; `alerts` are its current alerts, empty if it is over.

    `news` are the further falls of alerts, and what became known of causes, since the last message.
    """

    kind: str
    cause: Topic
    alerts: tuple[Alert, ...] = ()
    news: tuple[AlertEvent, ...] = ()

    @property
    def id(self) -> str:
        """The name of the event; it never changes."""
        return f"{self.cause.id}-{self.cause.events}"


@dataclass(frozen=True)
class Message:
    """What is sent about an event, the same in every channel; contract 9 defines the fields.

    `id` identifies the event, so that a receiver can recognise a repetition, and `cause` what it is
    about. Times are ISO 8601. `found` says what may have caused the alert.
    """

    id: str
    cause: str
    kind: str
    severity: str
    title: str
    text: str
    when: str
    page: str = ""
    schema: str = MESSAGE_SCHEMA
    system: str = ""
    alert: int | None = None
    subject: str = ""
    found: str = ""
    since: str = ""
    certainty: str = ""
    ratio: float | None = None
    series: list[str] = field(default_factory=list)


_SCHEMA: Final = 1
_SCHEMA_FILE: Final = Path(__file__).with_name("outbox.schema.yaml")
_STATE: Final = "causes.json"
_KEPT: Final = timedelta(days=90)
_LOCK_SECONDS: Final = 60


@dataclass(frozen=True)
class Delivery:
    """A message for a channel; `sent` is the time of sending, None before."""

    path: Path
    channel: str
    message: Message
    attempts: int = 0
    error: str = ""
    sent: str | None = None


@dataclass(frozen=True)
class OutboxState:
    """The open causes, and messages with channels that have no file yet."""

    causes: tuple[Topic, ...] = ()
    pending: tuple[tuple[Message, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class Outbox:
    """The outbox in a directory, which is made if missing."""

    directory: Path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the outbox, as only one process may send at a time.

        Raises:
            FileError: another process is sending, or the directory cannot be written.
        """
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with ExitStack() as stack:
                try:
                    stack.enter_context(held(self.directory / ".lock", _LOCK_SECONDS))
                except TimeoutError:
                    said = f"{self.directory}: another process is sending; try again later"
                    raise FileError(said) from None
                yield
        except OSError as error:
            raise FileError(
                f"{error.filename or self.directory}: {error.strerror or error}"
            ) from error

    def state(self) -> OutboxState:
        """Return the last recorded state, or an empty one the first time.

        Raises:
            FileError: the record cannot be read.
        """
        path = self.directory / _STATE
        try:
            said = _read(path, "state")
            causes = [
                Topic(
                    **{**each, "began": parse_time(each["began"]), "members": (*each["members"],)}
                )
                for each in said["causes"]
            ]
            pending = [(Message(**each), tuple(names)) for each, names in said["pending"]]
        except FileNotFoundError:
            return OutboxState()
        except (OSError, ValueError) as error:
            raise FileError(
                f"{path}: cannot be read ({error}); move it away, and open alerts are sent again"
            ) from error
        return OutboxState(tuple(causes), tuple(pending))

    def note(self, state: OutboxState) -> None:
        """Record `state`, and write a file for each pending message and channel."""
        self._write_state(state)
        for message, channels in state.pending:
            for channel in channels:
                path = self.directory / f"{message.id}.{channel}.json"
                if not path.exists():
                    self.write(Delivery(path, channel, message))
        if state.pending:
            self._write_state(replace(state, pending=()))

    def entries(self) -> tuple[list[Delivery], list[str]]:
        """Return all messages in the order of time, and the unreadable files with reasons."""
        found, problems = [], []
        for path in sorted(self.directory.glob("*.*.json")):
            try:
                said = _read(path, "entry")
                message = Message(**said["message"])
                for moment in filter(None, (message.when, said["sent"])):
                    parse_time(moment)
                rest = {name: said[name] for name in ("channel", "attempts", "error", "sent")}
                found.append(Delivery(path, message=message, **rest))
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or error
                problems.append(f"{path}: cannot be read: {why}")
        found.sort(key=lambda each: (each.message.when, each.message.id))
        return found, problems

    def write(self, entry: Delivery) -> None:
        """Write a message in its current state."""
        said = {"schema": _SCHEMA, **asdict(entry)}
        del said["path"]
        _replace(entry.path, said)

    def prune(self, entries: Sequence[Delivery], now: datetime) -> None:
        """Remove messages that were sent long ago."""
        for entry in entries:
            if entry.sent and abs(now - parse_time(entry.sent)) > _KEPT:
                entry.path.unlink(missing_ok=True)

    def _write_state(self, state: OutboxState) -> None:
        causes = [{**asdict(each), "began": each.began.isoformat()} for each in state.causes]
        pending = [[asdict(message), names] for message, names in state.pending]
        _replace(self.directory / _STATE, {"schema": _SCHEMA, "causes": causes, "pending": pending})


def _read(path: Path, kind: str) -> dict[str, Any]:
    """Return the JSON of one of our files, which is a `kind` of the schema.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is damaged.
    """
    try:
        said = json.loads(read_small(path))
    except RecursionError as error:
        raise ValueError(str(error)) from None
    schema = load_schema(_SCHEMA_FILE)
    Document(kind, said).check({**schema, **schema["$defs"][kind]})
    return dict(said)


def _replace(path: Path, said: Mapping[str, Any]) -> None:
    text = json.dumps(said, ensure_ascii=False, indent=1)
    replace_file(path, text.encode("utf-8", "replace"), durable=True)
