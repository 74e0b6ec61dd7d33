"""After what time something that is measured at an interval is overdue."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

#: One missed run is no news yet: another may be on its way.
_INTERVALS: Final = 2
_GRACE: Final = timedelta(days=1)


def overdue(interval: timedelta) -> timedelta:
    """Return the age at which what is measured at `interval` is overdue."""
    return _INTERVALS * interval + _GRACE
