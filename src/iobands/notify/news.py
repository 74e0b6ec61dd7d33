"""News: a cause to report, what happened to it, and the message about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from iobands.snapshot import Alert, AlertEvent

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
    false until it was told that its alerts are certain.
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
