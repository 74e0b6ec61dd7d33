"""Maintenance windows: times in which samples are kept and not judged, and none is missed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from iobands.bands.span import Span

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
