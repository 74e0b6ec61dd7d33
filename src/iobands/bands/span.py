"""A span of time whose samples are left out, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True)
class Span:
    """The time from `begin` to `end`, both included; `why` its samples are left out."""

    begin: datetime
    end: datetime
    why: str = ""

    def __contains__(self, when: datetime) -> bool:
        """Return whether `when` is in it."""
        return self.begin <= when <= self.end


def covered(spans: Iterable[Span], begin: datetime, end: datetime) -> timedelta:
    """Return how much of the time from `begin` to `end` is in `spans`, overlaps counted once."""
    found = timedelta()
    reached = begin
    for span in sorted(spans, key=lambda each: each.begin):
        start = max(span.begin, reached)
        stop = min(span.end, end)
        if stop > start:
            found += stop - start
            reached = stop
    return found
