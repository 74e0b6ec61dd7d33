"""Sessions: their checks, how they ended, left-overs and what is measured again; exit statuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from iobands.model.fields import SCHEDULED
from iobands.model.files import Rejected

#: One missed run is not reported yet, as the next one may be under way.
_INTERVALS: Final = 2
_GRACE: Final = timedelta(days=1)


#: The environment variable with the identifier of the session.
SESSION_ENV: Final = "IOBANDS_SESSION"
#: What sacct prints without slurmdbd; then only squeue knows the state of a job.
NO_ACCOUNTS: Final = "accounting storage is disabled"


class SessionError(Exception):
    """A session measured nothing or was cut short; the message says why and what to do."""


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

    `ended` is None while it runs, and if it was killed. `counts` has the numbers of test cases that
    were `expected` and that `ran`; of the latter, how many `failed`, were `aborted` or `skipped`.
    `seconds` has the `total` time and its parts `build` and `checks`; `program` is a part of
    `checks`, and `io` a part of `program`. `reason` says why it did not complete, or what else is
    wrong.
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


@dataclass(frozen=True)
class Leftover:
    """A directory that could not be removed, or a note that cannot be read.

    It may also be a system's directory of notes, if it cannot be listed. `is_closed` means that
    this user has no access to it.
    """

    system: str
    path: Path
    why: str
    since: str | None = None
    bytes: int | None = None
    is_closed: bool = False


@dataclass(frozen=True)
class Ask:
    """A check, on one partition with one environment, that is to be measured again.

    `series` are the file names (`slug`) of the series that it is for, and `measured` is the time of
    their newest sample. It costs at most `node_hours`. It is due from `due` on, until `until`, when
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
        return self.due is not None and self.due <= now and (not self.until or self.until > now)


#: Exit statuses of a monitoring plug-in.
OK, WARNING, CRITICAL, UNKNOWN = range(4)

#: Exit statuses, the worst first. A missing sample may hide a loss, but must not hide a known one;
#: a warning, such as `watch`, may be settled by the next runs.
WORST_STATUS_FIRST: Final = (CRITICAL, UNKNOWN, WARNING, OK)


def worst(statuses: Iterable[int]) -> int:
    """Return the worst of `statuses`: 2 before 3 before 1 before 0."""
    return min(statuses, key=WORST_STATUS_FIRST.index, default=OK)


@dataclass(frozen=True)
class CheckRun:
    """A check in a run report, on one partition with one environment.

    `fields` are the series fields that the check has set, and `recorded` the variables with a
    value. `when` is when its job completed or, without a job, when ReFrame ended, in whole seconds
    as in perflogs. `reason` is a single line. `interval` is the one that the site's schedule
    declares, if any. `session` is the one that the run names, or else its report. `examines` names
    the file system, environment or partition that a preflight check examines; `lacks` names the
    unfit one that made a check fail or stopped it. `size_gib` is the size of an examined file
    system, None if unknown. It costs at most `node_hours`. `scheduler` is ReFrame's name for the
    scheduler.
    """

    name: str
    system: str
    partition: str
    environ: str
    fields: Mapping[str, float | str | None]
    fixture: bool
    result: str
    phase: str | None
    reason: str | None
    recorded: frozenset[str]
    when: datetime
    report: Path
    examines: str | None = None
    lacks: str | None = None
    size_gib: float | None = None
    interval: timedelta | None = None
    session: str = ""
    node_hours: float = 0.0
    purpose: str = SCHEDULED
    scheduler: str = ""

    @property
    def overdue(self) -> timedelta | None:
        """The age at which it is overdue; None if no interval is declared."""
        return overdue(self.interval) if self.interval else None

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What identifies a check in all its runs."""
        return (self.system, self.partition, self.environ, self.name)


@dataclass(frozen=True)
class RunReports:
    """The runs of all reports, in the order of time, and the reports that could not be read.

    `newest` is when the last session ended.
    """

    runs: tuple[CheckRun, ...]
    newest: datetime | None
    rejected: tuple[Rejected, ...]


def overdue(interval: timedelta) -> timedelta:
    """Return the age at which a series measured at `interval` is overdue."""
    return _INTERVALS * interval + _GRACE
