"""What is measured again out of turn, and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

#: A due time further ahead than the longest interval was written by a clock that was wrong.
_FARTHEST: Final = timedelta(days=8)


@dataclass(frozen=True)
class Ask:
    """A check of one partition and environment that is measured again, for a `purpose`.

    `series` are the names in files of the series that it is for, and `measured` is when the newest
    sample of them was taken. It costs `node_hours` at most. It is `due` from a time on, `until`
    the next maintenance begins. With a `target` or a `node`, the run is pinned to it.
    """

    system: str
    partition: str
    environ: str
    check: str
    file_system: str | None
    purpose: str
    why: str
    series: tuple[str, ...]
    measured: datetime
    node_hours: float = 0.0
    due: datetime | None = None
    until: datetime | None = None
    target: str = ""
    node: str = ""

    @property
    def place(self) -> str:
        """Its partition, as ReFrame writes it."""
        return f"{self.system}:{self.partition}"

    @property
    def of_check(self) -> tuple[str, str, str, str]:
        """What identifies its check in all runs."""
        return self.system, self.partition, self.environ, self.check

    @property
    def identity(self) -> tuple[str, ...]:
        """What identifies the measurement; it begins with the place."""
        return self.place, self.environ, self.check, self.target, self.node

    def is_due(self, now: datetime) -> bool:
        """Whether it is time to measure it."""
        if self.due is None or (self.until is not None and self.until <= now):
            return False
        return self.due <= now or self.due - now > _FARTHEST
