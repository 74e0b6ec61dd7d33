"""What is known besides samples: the newest session, and what runs left behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

#: How a session ended.
RUNNING: Final = "running"
COMPLETED: Final = "completed"
LIMIT: Final = "limit"
INTERRUPTED: Final = "interrupted"
FAILED: Final = "failed"
KILLED: Final = "killed"


@dataclass(frozen=True)
class LastSession:
    """The newest session that `iobands run` began.

    `ended` is None while it runs, and if it was killed. `counts` has how many test cases were
    `expected` and `ran`, and how many of the latter `failed`, were `aborted` or `skipped`.
    `seconds` has the `total` time, its parts `build` and `checks`, the part of the checks in the
    `program`, and the part of the program in `io`. `reason` says why it did not complete, or what
    else is wrong.
    """

    session: str
    tag: str
    system: str | None
    host: str
    began: datetime
    ended: datetime | None = None
    how: str = RUNNING
    counts: Mapping[str, int] = field(default_factory=dict)
    reason: str | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def timestamp(self) -> float:
        """When it ended, or else began, in seconds since 1970, for a dead man's switch."""
        return (self.ended or self.began).timestamp()


@dataclass(frozen=True)
class Leftover:
    """A directory that could not be removed, or a note that cannot be read.

    It may stand for all notes of a system: `is_closed` if only other users may list them.
    """

    system: str
    path: Path
    why: str
    since: str | None = None
    bytes: int | None = None
    is_closed: bool = False
