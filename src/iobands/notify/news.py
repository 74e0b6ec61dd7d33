"""News: a cause to report, what happened to it, and the message about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from iobands.snapshot import Alert

BEGAN: Final = "began"

WORSE: Final = "worse"

ENDED: Final = "recovered"

OPEN: Final = "still open"

NEW_NAME: Final = "renamed"


@dataclass(frozen=True)
class Cause:
    """A cause that was sent. `members` are series, or other subjects of the alerts.

    `severity`, `number` (of members) and the interval `low` to `high` of the worst level over its
    baseline are as last sent. `sent` is false for a cause that was acknowledged before the first
    message. `events` counts the messages, `falls` how often its alerts fell again.
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


@dataclass(frozen=True)
class Event:
    """A change of a cause, to be sent; `alerts` are its current alerts, empty if it is over."""

    kind: str
    cause: Cause
    alerts: tuple[Alert, ...] = ()

    @property
    def id(self) -> str:
        """The name of the event; it never changes."""
        return f"{self.cause.id}-{self.cause.events}"


@dataclass(frozen=True)
class Message:
    """The text about an event, the same in every channel.

    `id` identifies the event, so that a receiver can recognise a repetition. `cause` identifies the
    cause. `when` is the time of writing, ISO 8601.
    """

    id: str
    cause: str
    kind: str
    severity: str
    title: str
    text: str
    when: str
    page: str = ""
