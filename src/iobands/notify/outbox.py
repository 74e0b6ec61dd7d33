"""The settings of messages, their content, and the outbox that keeps them until they are sent.

`config/notify.yaml` names the receivers, and where their secrets are.

The outbox has a JSON file for each message and channel. Topics and messages are written before
anything is sent, so a message is lost only with its file. It is sent twice, with the same id, only
if the process ends after sending and before recording it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote, urlsplit

import msgspec
from msgspec.structs import replace

from iobands import model
from iobands.model import FileError, parse_time
from iobands.snapshot import LASTING, Severity

_SETTINGS_SCHEMA: Final = Path(__file__).with_name("notify.schema.yaml")
#: The severities of messages by default: all with an exit status other than 0.
NOTIFIED: Final = frozenset(each.value for each in Severity if each.exit_status != model.OK)
#: The usual ports of mail servers, by their security.
PORTS: Final = {"none": 25, "starttls": 587, "tls": 465}
#: The addresses of issue trackers, unless a channel has another one.
TRACKERS: Final = {"gitlab": "https://gitlab.com", "github": "https://api.github.com"}
_MOST_BYTES: Final = 4096  # of a secret
# The forms in which libraries may print a secret.
_secrets: set[str] = set()


class SendError(Exception):
    """A message could not be sent; the text says why."""


class PartlySentError(SendError):
    """A message could not be sent to some people, and was sent to the others."""


@dataclass(frozen=True)
class Channel:
    """A way to send messages; `options` are the ones of its type."""

    name: str
    type: str
    options: Mapping[str, Any]
    severities: frozenset[str] = NOTIFIED


@dataclass(frozen=True)
class Settings:
    """The receivers. `monitors` get each state of the site, `ping` each session's start and end."""

    channels: tuple[Channel, ...] = ()
    monitors: tuple[Channel, ...] = ()
    page: str = ""
    ping: str | Mapping[str, str] | None = None
    severities: frozenset[str] = NOTIFIED


def read_settings(path: Path) -> Settings:
    """Return the settings in the file at `path`, or raise FileError."""
    if not path.exists():
        raise FileError(f"{path}: no such file; write one that names channels, or give --site DIR")
    document = model.parse_yaml(model.read_content(path), path)
    document.check(model.load_schema(_SETTINGS_SCHEMA))
    said = document.value
    every = _severities(said.get("severities", NOTIFIED))
    channels, monitors = (
        tuple(
            Channel(name, own["type"], own, _severities(own.get("severities", every)))
            for name, own in said.get(kind, {}).items()
        )
        for kind in ("channels", "monitors")
    )
    every = every.union(*(each.severities for each in channels))
    return Settings(channels, monitors, said.get("page", ""), said.get("ping"), every)


def _severities(names: Iterable[str]) -> frozenset[str]:
    """Return severities; `degraded` stands for every lasting change for the worse."""
    found = frozenset(names)
    return found | {each.value for each in LASTING} if Severity.DEGRADED.value in found else found


def secret(where: str | Mapping[str, str]) -> str:
    """Return a secret from the environment or a file that only its owner can read.

    `scrubbed` removes it from texts from now on. Raises SendError if it is missing, others could
    read it, or it is not one line of ASCII.
    """
    if isinstance(where, str):
        return _registered(where)
    if "env" in where:
        # a token that was pasted there may look like a name, but hardly like the usual ones
        named = where["env"] if where["env"].isupper() else "that `env` names"
        name, found = f"the variable {named}", os.environ.get(where["env"], "").strip()
    else:
        name = where["file"]
        try:
            mode = stat.S_IMODE(Path(name).stat().st_mode)
            # does not block on a pipe or a device
            found = model.read_small(Path(name), _MOST_BYTES).decode(errors="replace").strip()
        except OSError as error:
            raise SendError(f"{name}: {error.strerror or error}") from None
        if mode not in (0o600, 0o400):
            problem = f"{name} has mode {mode:04o}, so others could read it"
            raise SendError(f"{problem}; run chmod 600 {name}")
    if not found:
        raise SendError(f"{name} is empty or not set")
    if not (found.isascii() and found.isprintable()):
        raise SendError(f"{name} must hold only the secret: one line, ASCII, no control character")
    return _registered(found)


def _registered(found: str) -> str:
    _secrets.update({found, repr(found)[1:-1], quote(found)})
    if "://" in found:  # an address: libraries print its parts
        parts = urlsplit(found)
        forms = {parts.path, f"{parts.path}?{parts.query}", parts.password or ""}
        _secrets.update(forms - {"", "/", "?"})
    return found


def scrubbed(text: str) -> str:
    """Return `text` without the secrets that were used."""
    for each in sorted(_secrets, key=len, reverse=True):
        text = text.replace(each, "…")
    return text


#: The kind of the message that a topic is over.
ENDED: Final = "recovered"
#: A text that can be part of a file's name.
_Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]+\Z")]
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Time = Annotated[datetime, msgspec.Meta(tz=True)]
_Known = Annotated[str, msgspec.Meta(pattern=rf"^({'|'.join(each.value for each in Severity)})\Z")]


class Topic(msgspec.Struct, frozen=True):
    """What messages are about: one alert, or several that belong together.

    It is recognised by its `members`, series or other subjects, as the name of an alert changes.
    `severity`, `number` (of members) and the interval `low` to `high` of the worst level over its
    baseline are as last sent. `sent` is false for a topic that was acknowledged before the first
    message. `events` counts the messages, `falls` how often its alerts fell again. `certain` is
    false until a message has said that its alerts are certain.
    """

    id: _Name
    kind: str
    title: str
    severity: _Known
    members: tuple[str, ...]
    number: _Count
    began: _Time
    low: float | None = None
    high: float | None = None
    sent: bool = True
    quiet: bool = False
    reminded: bool = False
    events: _Count = 0
    falls: _Count = 0
    #: How often the cause of its alerts was found or withdrawn; None in an older file.
    found: _Count | None = None
    certain: bool = True
    #: Why samples were missing or checks failed, as far as messages said; None in an older file.
    reasons: tuple[str, ...] | None = None
    #: Empty if it concerns several systems, or none.
    system: str = ""
    #: The severities of earlier messages; a channel that got one gets all that follow.
    severities: tuple[_Known, ...] = ()


class Message(msgspec.Struct, frozen=True):
    """What is sent about an event, the same in every channel; contract 9 defines the fields.

    `id` identifies the event, so that a receiver can recognise a repetition, and `cause` its
    topic. Times are ISO 8601. `found` says what may have caused the alert.
    """

    id: _Name
    cause: _Name
    kind: str
    severity: str
    title: str
    text: str
    when: str
    page: str = ""
    schema: str = "iobands-message/1"
    system: str = ""
    alert: int | None = None
    subject: str = ""
    found: str = ""
    since: str = ""
    certainty: str = ""
    ratio: float | None = None
    series: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse an invalid time."""
        parse_time(self.when)


class Delivery(msgspec.Struct, frozen=True):
    """A message for a channel, in a file; `sent` is the time of sending, None before."""

    path: Path
    channel: _Name
    message: Message
    attempts: _Count
    error: str
    sent: _Time | None
    schema: Literal[1] = 1


class OutboxState(msgspec.Struct, frozen=True):
    """The open topics, and messages with channels that have no file yet.

    `judged` is the time of the judgement that the topics come from.
    """

    causes: tuple[Topic, ...]
    pending: tuple[tuple[Message, tuple[_Name, ...]], ...]
    schema: int = 1
    judged: _Time | None = None


_STATE: Final = "causes.json"
_KEPT: Final = timedelta(days=90)
_LOCK_SECONDS: Final = 60
# before version 0.21 of msgspec, its errors are no ValueErrors
_UNREADABLE: Final = (OSError, ValueError, RecursionError, msgspec.MsgspecError)


@dataclass(frozen=True)
class Outbox:
    """The outbox in a directory, which is made if missing."""

    directory: Path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the outbox, as only one process may send at a time, or raise FileError."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with model.held(self.directory / ".lock", _LOCK_SECONDS):
                yield
        except TimeoutError:
            raise FileError(f"{self.directory}: another process is sending; try later") from None
        except OSError as error:
            where = error.filename or self.directory
            raise FileError(f"{where}: {error.strerror or error}") from error

    def state(self) -> OutboxState:
        """Return the last recorded state, or an empty one the first time, or raise FileError."""
        path = self.directory / _STATE
        try:
            return msgspec.json.decode(model.read_small(path), type=OutboxState)
        except FileNotFoundError:
            return OutboxState((), ())
        except _UNREADABLE as error:
            remedy = "move it away, and open alerts are sent again"
            raise FileError(f"{path}: cannot be read ({error}); {remedy}") from error

    def note(self, state: OutboxState) -> None:
        """Record `state`, and write a file for each pending message and channel."""
        self.write(state)
        for message, channels in state.pending:
            for channel in channels:
                path = self.directory / f"{message.id}.{channel}.json"
                if not path.exists():
                    self.write(Delivery(path, channel, message, 0, "", None))
        self.write(replace(state, pending=()))

    def entries(self) -> tuple[list[Delivery], list[str]]:
        """Return all messages in the order of time, and the unreadable files with reasons.

        Messages of the same time are in the order of their alerts' numbers.
        """
        found, problems = [], []
        for path in sorted(self.directory.glob("*.*.json")):
            try:
                said = msgspec.json.decode(model.read_small(path), type=dict)
                found.append(msgspec.convert({**said, "path": path}, Delivery))
            except _UNREADABLE as error:
                why = getattr(error, "strerror", None) or error
                problems.append(f"{path}: cannot be read: {why}")
        found.sort(key=lambda each: (each.message.when, each.message.alert or 0, each.message.id))
        return found, problems

    def write(self, what: OutboxState | Delivery) -> None:
        """Write the state of the outbox, or of one message."""
        path = what.path if isinstance(what, Delivery) else self.directory / _STATE
        said = msgspec.to_builtins(what, builtin_types=(datetime,), enc_hook=str)
        said.pop("path", None)
        text = json.dumps(said, ensure_ascii=False, indent=1, default=datetime.isoformat)
        model.replace_file(path, text.encode("utf-8", "replace"), durable=True)

    def prune(self, entries: Sequence[Delivery], now: datetime) -> None:
        """Remove messages that were sent long ago."""
        for entry in entries:
            if entry.sent and abs(now - entry.sent) > _KEPT:
                entry.path.unlink(missing_ok=True)
