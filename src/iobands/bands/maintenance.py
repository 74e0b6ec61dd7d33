"""Maintenance windows: times in which samples are kept and not judged, and none is missed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from dateutil.rrule import rrule, rruleset


@dataclass(frozen=True)
class Window:
    """A maintenance from `begin` to `end`, of some `file_systems` or, with none, of all.

    `repeat` is a recurrence rule of RFC 5545, such as `FREQ=MONTHLY;BYDAY=1WE`. Its occurrences
    begin at the wall-clock time of `begin` in the time `zone`, or at its UTC offset.
    """

    begin: datetime
    end: datetime
    reason: str
    repeat: str = ""
    zone: str = ""
    file_systems: tuple[str, ...] = ()

    def is_of(self, file_system: object) -> bool:
        """Return whether it is a maintenance of the file system."""
        return not self.file_systems or file_system in self.file_systems

    def spans(self, until: datetime) -> tuple[Span, ...]:
        """Return the occurrences that began by `until`, in the order of time."""
        if self.repeat:
            begins = self._rule().between(self.begin, until, inc=True)
        else:
            begins = [self.begin] if self.begin <= until else []
        return tuple(map(self._span, begins))

    def following(self, now: datetime) -> Span | None:
        """Return the first occurrence that begins after `now`, or None."""
        begin = self._rule().after(now) if self.repeat else self.begin
        return self._span(begin) if begin and begin > now else None

    def _span(self, begin: datetime) -> Span:
        begin = begin.astimezone(timezone.utc)
        return Span(begin, begin + (self.end - self.begin), f"maintenance: {self.reason}")

    def _rule(self) -> rrule | rruleset:
        """Return the rule.

        Raises:
            ValueError: `repeat` is none.
        """
        # imported here: the checks need no windows, and a site's own ReFrame may lack it
        from dateutil.rrule import rrulestr  # noqa: PLC0415

        start = self.begin.astimezone(ZoneInfo(self.zone)) if self.zone else self.begin
        return rrulestr(self.repeat, dtstart=start)


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
