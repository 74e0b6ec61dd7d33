"""News: a cause that people hear of, what happened to it, and the message about that."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from iobands.snapshot import Alert

BEGAN: Final = "began"

WORSE: Final = "worse"

RECOVERED: Final = "recovered"

OPEN: Final = "still open"


@dataclass(frozen=True)
class Cause:
    """A cause that was sent. `members` are series, or what else the alerts are about.

    `severity`, `number` (of members) and the interval `low` to `high` of the worst level over its
    baseline are as last sent. A cause that was acknowledged before it was seen is not `sent`.
    `events` counts the messages.
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


@dataclass(frozen=True)
class Event:
    """A change of a cause, to be sent; `alerts` are those of the cause now, none of them left."""

    kind: str
    cause: Cause
    alerts: tuple[Alert, ...] = ()

    @property
    def id(self) -> str:
        """The name of the event; it never changes."""
        return f"{self.cause.id}-{self.cause.events}"


@dataclass(frozen=True)
class Message:
    """What is said of an event, the same in every channel.

    `id` is that of the event, by which a receiver can tell a repetition, and `cause` that of what
    its messages are about. `when` is when it was written, ISO 8601.
    """

    id: str
    cause: str
    kind: str
    severity: str
    title: str
    text: str
    when: str
    page: str = ""
