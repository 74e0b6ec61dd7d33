"""Alerts, which people act on: severity, certainty, cause, events and exit status."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import cached_property
from statistics import median
from typing import Final

from iobands.model import CRITICAL, OK, UNKNOWN, WARNING, PeerName, SeriesKey
from iobands.snapshot.history import UP, Ratio, State, how_ended
from iobands.snapshot.series import Action, Series


@dataclass(frozen=True)
class Acknowledgement:
    """The action that acknowledged an alert."""

    action: Action


class Severity(str, Enum):
    """The kind and rank of an alert, the worst first."""

    INCIDENT = "incident"
    DEGRADED = "degraded"
    MODE_LOST = "mode lost"
    SLIDING = "sliding"
    UNSTABLE = "unstable"
    NO_DATA = "no data"
    UNFIT = "unfit"
    FAILED = "failed"
    FLAKY = "flaky"
    WATCH = "watch"
    COLLAPSED = "collapsed"
    IMPROVED = "improved"

    @property
    def exit_status(self) -> int:
        """The plug-in exit status of an alert that nobody has acknowledged."""
        return _EXIT_STATUS.get(self, OK)


#: The severities of a change for the worse.
LASTING: Final = (Severity.DEGRADED, Severity.MODE_LOST, Severity.SLIDING, Severity.UNSTABLE)
_EXIT_STATUS: Final = {
    Severity.INCIDENT: CRITICAL,
    **dict.fromkeys(LASTING, CRITICAL),
    Severity.NO_DATA: UNKNOWN,
    Severity.UNFIT: UNKNOWN,
    Severity.FAILED: UNKNOWN,
    Severity.FLAKY: WARNING,
}


class Certainty(str, Enum):
    """How certain a change is by today's evidence; docs/glossary.md gives the odds."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


@dataclass(frozen=True)
class Member:
    """A series of an alert; `ratio` is its level since the change over its baseline.

    `baseline` is the level before, in the unit of the series, None if unknown.
    """

    series: Series
    ratio: Ratio | None = None
    baseline: float | None = None

    @property
    def unit(self) -> str:
        """The unit of the series as texts show it."""
        return self.series.key.symbol


@dataclass(frozen=True)
class SlowPeer:
    """A slow target or node; `ratio` is its speed relative to its peers, in its worst variable.

    `ratios` gives its speed by variable, and `own` its own level before, where known. In a past
    alert, these are the values of that time.
    """

    name: PeerName
    ratio: Ratio
    ratios: Mapping[str, Ratio]
    own: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_slow(self) -> bool:
        """Whether it is slow, or was until the alert ended; otherwise `ratio` is NaN."""
        return math.isfinite(self.ratio.value)


class CauseKind(str, Enum):
    """What may cause an alert: a slow `TARGET` or `NODE`, a `TARGET_OUT` of service, and so on."""

    TARGET_OUT = "target out"
    TARGET = "target"
    NODE = "node"
    VERSION = "version"
    TRANSPORT = "transport"
    HINTS = "hints"
    LAYOUT = "layout"
    FULLNESS = "fullness"
    LOAD = "load"
    NODES = "nodes"
    METADATA = "metadata"
    PARTITION = "partition"


@dataclass(frozen=True)
class Cause:
    """What changed when an alert began, in its series and in no others; see judge/causes.py.

    `what` describes the state since `since`, such as `OST 7 out of service (1 of 12)`. `odds` are
    the odds to one against a coincidence.
    """

    kind: CauseKind
    what: str
    since: datetime
    odds: float


#: The kinds of events. `FELL`: a member fell further. `TURNED`: later runs show that the change of
#: a member is of another kind. `CAUSED`: the cause became known, or is no longer certain.
OPENED: Final = "opened"
GREW: Final = "grew"
RENAMED: Final = "renamed"
FELL: Final = "fell"
TURNED: Final = "turned"
MERGED: Final = "merged"
CLOSED: Final = "closed"
REOPENED: Final = "reopened"
CAUSED: Final = "caused"


@dataclass(frozen=True)
class AlertEvent:
    """An event in the life of the alert `number`, at `when`; contract 7 defines the fields.

    `names` are the names in files of the series concerned, or the name of a target or node. `state`
    is the kind of their change, None for a plain change of level.
    """

    when: datetime
    number: int
    kind: str
    subject: str | None = None
    direction: str | None = None
    since: datetime | None = None
    names: tuple[str, ...] = ()
    into: int | None = None
    end: str | None = None
    state: State | None = None
    cause: Cause | None = None

    @property
    def is_worse(self) -> bool:
        """Whether an acknowledged alert needs attention again after this event."""
        return self.kind == FELL or (self.kind == TURNED and self.state is State.DEGRADED)


@dataclass(frozen=True)
class Alert:
    """Something that a person acts on: a change, an incident, a failed check or the like.

    `number` identifies an alert permanently within its `system`; alerts of the day, such as missing
    samples, have no number. `subject` is a series, or what the members have in common, such as
    `scratch writes`; `shared` is the common field with its value. `members` begin with the worst.
    `events` is the history of the alert. `ended` and `end` say when and how a past alert ended.

    The change began between `since_low` and `since_high` (UTC), most likely at `since`, and was
    `raised` after `delay` runs; `score` is its evidence today, in nats. `reason` says why there is
    no sample, what is unfit, or how a check failed. If a `peer` is slow, `members` are the series
    that fell with it. `cause` is None while unknown; `candidates` begin with the likeliest.
    """

    severity: Severity
    subject: str
    members: tuple[Member, ...] = ()
    since: datetime | None = None
    since_low: datetime | None = None
    since_high: datetime | None = None
    direction: str | None = None
    score: float = 0.0
    certainty: Certainty | None = None
    reason: str = ""
    acknowledgement: Acknowledgement | None = None
    raised: datetime | None = None
    delay: int | None = None
    peer: SlowPeer | None = None
    number: int | None = None
    system: str = ""
    shared: tuple[str, str] | None = None
    events: tuple[AlertEvent, ...] = ()
    ended: datetime | None = None
    end: str = ""
    cause: Cause | None = None
    candidates: tuple[Cause, ...] = ()

    @property
    def name(self) -> str:
        """What commands call it: its number, or its subject if it has none."""
        return self.subject if self.number is None else str(self.number)

    @property
    def has_level(self) -> bool:
        """Whether it is about a level, not about missing samples, unfitness or failures."""
        return self.severity.exit_status in (OK, CRITICAL)

    @property
    def is_quiet(self) -> bool:
        """Whether it is acknowledged and has not become worse since."""
        known = self.acknowledgement
        return known is not None and self.worse_since(known.action.when) is None

    def worse_since(self, when: datetime) -> AlertEvent | None:
        """Return the first event after `when` that made it worse, or None."""
        return next((each for each in self.events if each.is_worse and each.when > when), None)

    @property
    def identity(self) -> tuple[str, int | None, str, datetime | None]:
        """A key that it shares with its ledger entry; numbers are unique only in a system."""
        return self.system, self.number, self.subject, self.since

    @property
    def ratio(self) -> float | None:
        """The median of its members' ratios, level since over baseline; None if unknown.

        Unstable members do not count: their level has not moved.
        """
        if self.severity is Severity.UNSTABLE:
            return None
        now = (each for each in self.members if each.series.status.state is not State.UNSTABLE)
        moved = self.members if self.ended else now
        found = [r.value for each in moved if (r := each.ratio) and math.isfinite(r.value)]
        return median(found) if found else None

    @cached_property
    def keys(self) -> frozenset[SeriesKey]:
        """The series of the members."""
        return frozenset(member.series.key for member in self.members)

    @property
    def failure(self) -> tuple[str, str]:
        """Where a check failed, and what failed: equal for checks that failed alike."""
        where, _, why = self.reason.partition(": ")
        return where, what_failed(why)

    @property
    def exit_status(self) -> int:
        """The exit status of a monitoring plug-in for this alert."""
        status = self.severity.exit_status
        return WARNING if self.is_quiet and status == CRITICAL else status


def ordered(alerts: Iterable[Alert]) -> tuple[Alert, ...]:
    """Return `alerts`, the worst first: by severity, then by evidence."""
    rank = [*Severity].index
    return tuple(sorted(alerts, key=lambda each: (rank(each.severity), -each.score)))


@dataclass(frozen=True)
class Incident:
    """A time in which most runs of one variable on a file system were under their floors.

    It lasted from its first bad day `since` to its last one `until` (UTC). `raised` is the last run
    of the day that opened it, and `closed` the time at which it was known to be over. `ratios` has
    the low series, the lowest first, each with the median of its low runs over its band's median.
    """

    system: str
    file_system: str
    variable: str
    since: datetime
    raised: datetime
    until: datetime
    ratios: Mapping[SeriesKey, float]
    closed: datetime | None = None

    @property
    def name(self) -> str:
        """The file system and the variable, such as `scratch write_bw`."""
        return f"{self.file_system} {self.variable}"

    @property
    def is_open(self) -> bool:
        """Whether it is not known to be over."""
        return self.closed is None


@dataclass(frozen=True)
class LedgerEntry:
    """A past or present alert in the ledger; `raised` and `ended` are None if unknown.

    `ratio` is the level since over the baseline, and `delay` the number of runs from the onset to
    the alert. `end` says how it ended and is empty while it is open; `who` and `reason` are set if
    a person ended it. `kind` is set for a target or node. `number` is unique in `system`, and None
    for what was resolved before there was a log of alerts.
    """

    subject: str
    since: datetime
    raised: datetime | None = None
    ended: datetime | None = None
    ratio: float | None = None
    end: str = ""
    delay: int | None = None
    who: str = ""
    reason: str = ""
    kind: str | None = None
    number: int | None = None
    cause: Cause | None = None
    system: str = ""

    @property
    def identity(self) -> tuple[str, int | None, str, datetime | None]:
        """A key that it shares with its alert."""
        return self.system, self.number, self.subject, self.since

    @property
    def ending(self) -> str:
        """How it ended, with who ended it and why if a person did; `open` while it is open."""
        by = f" by {self.who}: {self.reason}" if self.who else ""
        end = how_ended(self.end, UP if self.ratio and self.ratio > 1 else None)
        return f"{end}{by}" or "open"


@dataclass(frozen=True)
class Ledger:
    """All alerts, the newest first, and how well they served this site.

    `real` and `false` count the verdicts of people. `delay` is the median number of runs from the
    onset of a drop, open or over, to its alert; None without drops.
    """

    entries: tuple[LedgerEntry, ...]
    real: int
    false: int
    delay: float | None


#: The fields that the series of an alert may share, the most specific first, each as in a subject.
SHARED: Final = {
    "file_system": "{}",
    "partition": "partition {}",
    "transport": "transport {}",
    "pattern": "pattern {}",
    "medium": "medium {}",
}


def ratio_of(member: Member) -> float:
    """Return the ratio of a member, 1 if unknown."""
    return member.ratio.value if member.ratio else 1.0


_WHEN: Final = re.compile(r"the (?:run|check) of \d+ \w+ \d+ \d+:\d+ ")
# The end of a word from where it may be of one run: a path, or a number as in the name of a host.
_OF_ONE_RUN: Final = re.compile(r"(?:\d|(?<!\w)/).*")


def what_failed(reason: str) -> str:
    """Return the part of `reason` that is the same in all runs that failed alike.

    It lacks the time, paths and numbers. A reason without a failure is returned unchanged.
    """
    said = _WHEN.sub("", reason)
    _, failed, why = said.rpartition("failed: ")
    if not failed and said == reason:
        return reason
    return " ".join(_OF_ONE_RUN.sub("", word) for word in why.split())
