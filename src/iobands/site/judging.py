"""One thing at a time: what cannot be read or judged is an alert, and all else goes on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from iobands.alerts.alert import Alert, Severity
from iobands.model.rejected import Rejected, Unread
from iobands.model.schema import FileError

_T = TypeVar("_T")
_U = TypeVar("_U")


@dataclass
class Judging:
    """What was asked for piece by piece; `alerts` has the pieces that failed, and why."""

    alerts: list[Alert] = field(default_factory=list)

    def of(self, subject: object, work: Callable[[], _T], otherwise: _U) -> _T | _U:
        """Return what `work` returns, or `otherwise` and an alert of `subject` if it fails."""
        try:
            return work()
        except Exception as error:
            self.alerts.append(Alert(Severity.FAILED, str(subject), reason=why(error)))
            return otherwise


def why(error: Exception) -> str:
    """Return why something could not be judged."""
    if isinstance(error, FileError):
        return str(error)
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    return f"cannot be judged: {type(error).__name__}: {error}; report this"


def of_unread(rejected: Iterable[Rejected]) -> list[Alert]:
    """Return an alert for each directory of which something could not be read."""
    found: defaultdict[tuple[Path, str], list[Path]] = defaultdict(list)
    for each in rejected:
        if isinstance(each, Unread):
            found[each.path.parent, each.reason].append(each.path)
    return [
        Alert(
            Severity.FAILED,
            str(paths[0]) if len(paths) == 1 else f"{len(paths)} files in {directory}",
            reason=f"{reason}; what it has is not judged",
        )
        for (directory, reason), paths in found.items()
    ]
