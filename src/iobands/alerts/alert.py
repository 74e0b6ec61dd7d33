"""An alert: what a person acts on, its severity, its certainty and its exit status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from iobands.alerts.acknowledgement import Acknowledgement
from iobands.detection.change_point import Ratio
from iobands.detection.series import Budget
from iobands.model.series import SeriesKey
from iobands.status.peers import PeerName
from iobands.status.series import Series

#: Exit statuses of a monitoring plug-in.
OK, WARNING, CRITICAL, UNKNOWN = range(4)
_WORST_FIRST: Final = (CRITICAL, UNKNOWN, WARNING, OK)


class Severity(str, Enum):
    """How an alert ranks, the worst first."""

    INCIDENT = "incident"
    DEGRADED = "degraded"
    NO_DATA = "no data"
    UNFIT = "unfit"
    FAILED = "failed"
    WATCH = "watch"
    COLLAPSED = "collapsed"
    IMPROVED = "improved"

    @property
    def exit_status(self) -> int:
        """The exit status of a monitoring plug-in for an alert that nobody acknowledged."""
        return _EXIT_STATUS.get(self, OK)


_ORDER: Final = {severity: place for place, severity in enumerate(Severity)}
_EXIT_STATUS: Final = {
    Severity.INCIDENT: CRITICAL,
    Severity.DEGRADED: CRITICAL,
    Severity.NO_DATA: UNKNOWN,
    Severity.UNFIT: UNKNOWN,
    Severity.FAILED: UNKNOWN,
    Severity.WATCH: WARNING,
}


class Certainty(str, Enum):
    """How sure a change is, by today's evidence; docs/glossary.md defines the words."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


# The odds that a change is real, if one real change a year is expected on the site.
_CERTAIN_ODDS: Final = 1000.0
_LIKELY_ODDS: Final = 10.0


@dataclass(frozen=True)
class Member:
    """A series of an alert; `ratio` is its level since the change over its baseline.

    `baseline` is that level in the unit of the series, None where it is not known.
    """

    series: Series
    ratio: Ratio | None = None
    baseline: float | None = None


@dataclass(frozen=True)
class SlowPeer:
    """A target or a node that is slow: `ratio` is its speed over that of the others.

    It is the worst of `ratios`, which are by variable.
    """

    name: PeerName
    ratio: Ratio
    ratios: Mapping[str, Ratio]


@dataclass(frozen=True)
class Alert:
    """What a person acts on.

    `subject` names it: a series, or what the members share, such as `all scratch`. `members` are
    the worst first. A change began between `since_low` and `since_high` (UTC), most likely at
    `since`, and was `raised` after `delay` runs; `score` is its evidence today in nats. `reason`
    says why there is no sample, what is unfit or how a check failed. Of a `peer` that is slow,
    `members` are the series that fell with it.
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

    @property
    def is_quiet(self) -> bool:
        """Whether a person knows of the alert, and it is no worse since."""
        return self.acknowledgement is not None and self.acknowledgement.holds

    @property
    def keys(self) -> frozenset[SeriesKey]:
        """The series of the members."""
        return frozenset(member.series.key for member in self.members)

    @property
    def exit_status(self) -> int:
        """The exit status of a monitoring plug-in for this alert."""
        status = self.severity.exit_status
        return WARNING if self.is_quiet and status == CRITICAL else status


def worst(statuses: Iterable[int]) -> int:
    """Return the exit status for all of `statuses`: 2 before 3 before 1 before 0.

    A known loss must not be hidden by a missing sample elsewhere, and a missing sample may be as
    bad, while `watch` is a suspicion that the next runs settle.
    """
    found = set(statuses)
    return next((status for status in _WORST_FIRST if status in found), OK)


def ordered(alerts: Iterable[Alert]) -> tuple[Alert, ...]:
    """Return `alerts` with the worst first: by severity, then by evidence."""
    return tuple(sorted(alerts, key=lambda each: (_ORDER[each.severity], -each.score)))


def certainty(score: float, budget: Budget) -> Certainty:
    """Return how sure a change with the evidence `score` is on a site with this budget.

    The odds are those of one real change a year against the false alarms of such a score.
    """
    odds = budget.years_to_false_alarm(score)
    if odds >= _CERTAIN_ODDS:
        return Certainty.CERTAIN
    return Certainty.LIKELY if odds >= _LIKELY_ODDS else Certainty.POSSIBLE
