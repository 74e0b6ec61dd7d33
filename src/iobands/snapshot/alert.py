"""An alert: what a person acts on, its severity, its certainty and its exit status."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import cached_property
from statistics import median
from typing import Final

from iobands.model import CRITICAL, OK, UNKNOWN, WARNING, PeerName, SeriesKey
from iobands.snapshot.history import Ratio, State
from iobands.snapshot.series import Action, Series


@dataclass(frozen=True)
class Acknowledgement:
    """The action that acknowledged an alert."""

    action: Action


class Severity(str, Enum):
    """How an alert ranks, the worst first."""

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
        """The exit status of a monitoring plug-in for an alert without acknowledgement."""
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
    """How certain a change is, by today's evidence; docs/glossary.md defines the words."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


@dataclass(frozen=True)
class Member:
    """A series of an alert; `ratio` is its level since the change over its baseline.

    `baseline` is in the unit of the series, None if it is not known.
    """

    series: Series
    ratio: Ratio | None = None
    baseline: float | None = None

    @property
    def unit(self) -> str:
        """The unit of the series, as texts have it."""
        return self.series.key.symbol


@dataclass(frozen=True)
class SlowPeer:
    """A slow target or node: `ratio` is its speed relative to the others.

    It is the worst of `ratios`, which are by variable. `own` has its levels before, where known.
    A past alert has the values of its time.
    """

    name: PeerName
    ratio: Ratio
    ratios: Mapping[str, Ratio]
    own: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_slow(self) -> bool:
        """Whether it still is, or was until the alert was over; if not, the ratio is NaN."""
        return math.isfinite(self.ratio.value)


class CauseKind(str, Enum):
    """What may cause an alert. `TARGET`, `NODE`: it is slow; `TARGET_OUT`: out of service."""

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
    """What began with an alert, in its series and in no other; judge/causes.py finds it.

    `what` says it in a few words, such as `OST 7 out of service (1 of 12)`, and holds since
    `since`. `odds` are to one, against a change that has nothing to do with the alert.
    """

    kind: CauseKind
    what: str
    since: datetime
    odds: float


#: What happens to an alert. `FELL`: its members lost a second time.
#: `TURNED`: by later runs, what happened to a member is something else. `CAUSED`: its cause is
#: known, or no longer certain.
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
    """What happened to the alert `number` at `when`; contract 7 defines the fields.

    `names` are the series that it is about, by their names in files, or a target or node.
    `state` is what happened to them if their level did not just change.
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
        """Whether it makes an acknowledged alert loud again."""
        return self.kind == FELL or (self.kind == TURNED and self.state is State.DEGRADED)


@dataclass(frozen=True)
class Alert:
    """An alert, on which a person acts.

    `number` identifies it permanently in its `system`; alerts of the day, such as missing samples,
    have none. `subject` names a series, or the value that the members share, such as `scratch
    writes`; `shared` has the value with its field. `members` begin with the worst. `events` are
    what happened to the alert. A past alert has `ended`, and `end` says how.

    A change began between `since_low` and `since_high` (UTC), most likely at `since`, and was
    `raised` after `delay` runs; `score` is its evidence today, in nats. `reason` says why there is
    no sample, what is unfit, or how a check failed. If a `peer` is slow, `members` are the series
    that fell with it. `cause` is None while it is unknown; `candidates` are what may be the cause,
    the likeliest first.
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
        """What a command takes: its number, or else its subject."""
        return self.subject if self.number is None else str(self.number)

    @property
    def has_level(self) -> bool:
        """Whether its subject is a level, so that it has no reason."""
        return self.severity.exit_status in (OK, CRITICAL)

    @property
    def is_quiet(self) -> bool:
        """Whether the alert is acknowledged and has not become worse."""
        known = self.acknowledgement
        return known is not None and self.worse_since(known.action.when) is None

    def worse_since(self, when: datetime) -> AlertEvent | None:
        """Return the first event after a time with which it became worse, or None."""
        return next((each for each in self.events if each.is_worse and each.when > when), None)

    @property
    def identity(self) -> tuple[str, int | None, str, datetime | None]:
        """What it has in common with its entry in the ledger: a system has its own numbers."""
        return self.system, self.number, self.subject, self.since

    @property
    def ratio(self) -> float | None:
        """The level since over the baseline, the median of its members; None if not known.

        Without unstable ones, whose level has not moved.
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
    def exit_status(self) -> int:
        """The exit status of a monitoring plug-in for this alert."""
        status = self.severity.exit_status
        return WARNING if self.is_quiet and status == CRITICAL else status


def ordered(alerts: Iterable[Alert]) -> tuple[Alert, ...]:
    """Return `alerts` with the worst first: by severity, then by evidence."""
    rank = [*Severity].index
    return tuple(sorted(alerts, key=lambda each: (rank(each.severity), -each.score)))


@dataclass(frozen=True)
class Incident:
    """Most runs of one variable on a file system were under their floors.

    It lasted from `since` to `until` (UTC), the times of its first and last bad day. `raised` is
    the time of the day that opened it, and `closed` is when it was known to be over. `ratios` has
    the low series, the lowest first: the median of their low runs over the median of their band.
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
        """What it is of, such as `scratch write_bw`."""
        return f"{self.file_system} {self.variable}"

    @property
    def is_open(self) -> bool:
        """Whether it lasts."""
        return self.closed is None


@dataclass(frozen=True)
class LedgerEntry:
    """An alert of the past or the present; `raised` and `ended` are None if not known.

    `subject` names it, `ratio` is the level since over the baseline, and `end` says how it ended,
    empty while it is open. If a person ended it, `who` and `reason` are set. `delay` is the number
    of runs from the onset of a change to its alert. `kind` is set for a target or a node. What
    was resolved before there was a log of alerts has no `number`, which a `system` has of its own.
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
        """What identifies its alert."""
        return self.system, self.number, self.subject, self.since

    @property
    def ending(self) -> str:
        """How it ended, and by whom and why if a person ended it; `open` while it is open."""
        by = f" by {self.who}: {self.reason}" if self.who else ""
        return f"{self.end}{by}" or "open"


@dataclass(frozen=True)
class Ledger:
    """Entries, the newest first, and the site's own figures.

    `real` and `false` count people's verdicts. `delay` is the median number of runs from the onset
    of a drop to its alert, including open ones, None without any.
    """

    entries: tuple[LedgerEntry, ...]
    real: int
    false: int
    delay: float | None


#: What series may share, the most specific first: series field, and its form in a name.
SHARED: Final = {
    "file_system": "{}",
    "partition": "partition {}",
    "transport": "transport {}",
    "pattern": "pattern {}",
    "medium": "medium {}",
}


def ratio_of(member: Member) -> float:
    """Return the ratio of a member, 1 where it is not known."""
    return member.ratio.value if member.ratio else 1.0
