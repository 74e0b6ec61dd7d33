"""Moments as files have them, and after what time something is overdue."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from typing import Final

from iobands.model.schema import shown

_WANTED: Final = "write a date, 2023-10-09, or a time with UTC offset, 2023-10-09T06:00:00+01:00"
_MOST_DAYS: Final = 10_000
_YEARS: Final = range(1900, 2200)
#: One missed run is no news yet: another may be on its way.
_INTERVALS: Final = 2
_GRACE: Final = timedelta(days=1)


def interval_of(days: object) -> timedelta | None:
    """Return the interval that a check declares in `days`; None where there is none."""
    if isinstance(days, int | float) and 0 < days < _MOST_DAYS:
        return timedelta(days=days)
    return None


def overdue(interval: timedelta) -> timedelta:
    """Return the age at which what is measured at `interval` is overdue."""
    return _INTERVALS * interval + _GRACE


def from_unix(seconds: float | None) -> datetime | None:
    """Return the moment of so many seconds since 1970, whole ones; None where there is none."""
    try:
        found = None if seconds is None else datetime.fromtimestamp(seconds // 1, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None
    return found if found and is_of_this_age(found) else None


def utc_text(when: datetime) -> str:
    """Return a moment as ISO 8601 in UTC, with the suffix Z."""
    return when.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def is_of_this_age(day: date) -> bool:
    """Tell whether `day` has a year that fits in every time zone, and in nanoseconds."""
    return day.year in _YEARS


def parse_time(value: object) -> datetime:
    """Return the moment that YAML or JSON has as `value`; a date alone is 00:00 UTC.

    Raises:
        ValueError: it is none; the message is the rest of a sentence: what it is, what to write.
    """
    problem = ValueError(f"is {shown(value)}; {_WANTED}")
    if isinstance(value, str):
        text = value.strip()
        try:  # Python 3.10 does not know the suffix Z
            parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError:
            raise problem from None
        value = parsed.date() if len(text) == len("2023-10-09") else parsed
    if not isinstance(value, date):  # which a datetime is too
        raise problem
    if not is_of_this_age(value):
        raise ValueError(f"is of the year {value.year}; write one in which runs were made")
    if not isinstance(value, datetime):
        return datetime.combine(value, time(), timezone.utc)
    if value.utcoffset() is None:
        raise ValueError(f"is {shown(value)}, which has no UTC offset; {_WANTED}")
    return value
