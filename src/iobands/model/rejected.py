"""Input that could not be used, and why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Rejected:
    """A line that was not read; `line` counts from 1 and is 0 where it is the whole file."""

    path: Path
    line: int
    reason: str

    def __str__(self) -> str:
        """Return `file:line: reason`."""
        return f"{self.path}{f':{self.line}' if self.line else ''}: {self.reason}"


class Unusable(ValueError):
    """Why a line or a file cannot be used."""
