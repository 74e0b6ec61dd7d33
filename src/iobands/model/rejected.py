"""Input that could not be used, and why."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

# Rejected lines that are kept with their reasons; of more there is a count for each file.
_MOST_KEPT: Final = 1000
# What is no file of ours, or is gone again: whatever it is, no sample was in it.
_NO_FILE: Final = (errno.ENOENT, errno.EISDIR)


@dataclass(frozen=True)
class Rejected:
    """A line that was not read; `line` counts from 1 and is 0 where it is the whole file.

    `lines` is how many it stands for.
    """

    path: Path
    line: int
    reason: str
    lines: int = 1

    def __str__(self) -> str:
        """Return `file:line: reason`."""
        return f"{self.path}{f':{self.line}' if self.line else ''}: {self.reason}"


@dataclass(frozen=True)
class Unread(Rejected):
    """A file or a directory that the system does not let us read: what is in it is not known."""


@dataclass
class Rejections:
    """Where lines were rejected and why, by the number of their file: a thousand at most."""

    _found: list[tuple[int, int, str]] = field(default_factory=list)
    _more: Counter[int] = field(default_factory=Counter)

    @property
    def is_full(self) -> bool:
        """Whether more lines are only counted, without a reason."""
        return len(self._found) >= _MOST_KEPT

    def add(self, file: int, line: int, reason: str) -> None:
        """Reject a line."""
        if self.is_full:
            self._more[file] += 1
        else:
            self._found.append((file, line, reason))

    def of(self, paths: list[Path]) -> Iterator[Rejected]:
        """Yield them in their order, then how many more there are of each file."""
        for file, line, reason in sorted(self._found):
            yield Rejected(paths[file], line, reason)
        for file, lines in sorted(self._more.items()):
            yield Rejected(paths[file], 0, f"{lines} more lines cannot be used", lines)


def not_read(path: Path, error: OSError) -> Rejected:
    """Return what `error` means for the file or directory at `path`."""
    is_ours = error.errno is not None and error.errno not in _NO_FILE
    kind = Unread if is_ours else Rejected
    return kind(path, 0, f"cannot be read: {error.strerror or error}")


def entries(directory: Path, rejected: list[Rejected]) -> list[Path]:
    """Return what is in `directory`, if it is one; `rejected` takes why it cannot be listed."""
    try:
        return sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        rejected.append(not_read(directory, error))
        return []


class Unusable(ValueError):
    """Why a line or a file cannot be used."""
