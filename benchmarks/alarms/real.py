"""The replay of a real year: what `iobands status` would have said on the evening of each day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from benchmarks.alarms.tokio import write_reduced
from iobands.judge.site import JudgedSite, judge
from iobands.judge.verdicts import TransientRuns
from iobands.model import SeriesKey
from iobands.snapshot import Alert, Incident, Series, Severity, Snapshot
from iobands.source.convert import convert, read_mapping
from iobands.source.known import read_known
from iobands.views.digest import counted_members, details, subject
from iobands.views.format import worst_member

#: What the columns of the table are.
MAPPING: Final = Path(__file__).resolve().parents[1] / "templates" / "real-data-mapping.yaml"
#: The alerts that are followed; a single collapsed run is none.
FOLLOWED: Final = (Severity.INCIDENT, Severity.DEGRADED, Severity.WATCH, Severity.IMPROVED)
# An alert that was away for so many days and comes back is the same one.
_AWAY: Final = timedelta(days=7)


@dataclass(frozen=True)
class Said:
    """An alert as it stood on the evening of a day; `ratio` is that of its deepest member."""

    day: date
    severity: str
    subject: str
    keys: frozenset[SeriesKey]
    since: date
    ratio: float
    certainty: str
    line: str
    direction: str | None = None


@dataclass
class Event:
    """The same alert on several days: one severity, and series in common from day to day."""

    days: list[Said] = field(default_factory=list)

    @property
    def first(self) -> Said:
        """The alert on the day on which it was raised."""
        return self.days[0]

    @property
    def last(self) -> Said:
        """The alert on the last day on which it stood."""
        return self.days[-1]

    @property
    def keys(self) -> frozenset[SeriesKey]:
        """All series that it was ever about."""
        return frozenset().union(*(said.keys for said in self.days))

    @property
    def name(self) -> str:
        """What the event is known by: severity, subject and day of raising."""
        return f"{self.first.severity} {self.first.subject} {self.first.day}"


@dataclass(frozen=True)
class Replay:
    """The events of a year; series, incidents and the site's threshold as they are at its end.

    `said` has all alerts of all evenings, `no data` among them, `statuses` their exit statuses.
    `transient` are the runs by which incidents are judged.
    """

    events: tuple[Event, ...]
    series: tuple[Series, ...]
    incidents: tuple[Incident, ...]
    threshold: float
    said: tuple[Said, ...]
    statuses: tuple[int, ...]
    transient: Mapping[SeriesKey, TransientRuns]

    @property
    def years(self) -> float:
        """How many years of series there are."""
        return sum(
            float(each.history.times[-1] - each.history.times[0]) for each in self.series
        ) / (365.25 * 86400e9)

    def sessions(self, event: Event) -> int:
        """Return how many runs a series had from the beginning of an event to its raising."""
        first, raised = (np.datetime64(day) for day in (event.first.since, event.first.day))
        times = [
            each.history.times.astype("datetime64[D]")
            for each in self.series
            if each.key in event.first.keys
        ]
        return max(int(np.count_nonzero((each >= first) & (each <= raised))) for each in times)


def replay(table: Path, pool: Executor, parts: int) -> Replay:
    """Return what was said on each day of the year in the published `table`."""
    with TemporaryDirectory() as temporary:
        perflogs, source = Path(temporary) / "perflogs", Path(temporary) / "source"
        source.mkdir()
        write_reduced(table, source / "year.csv")
        convert(source, read_mapping(MAPPING), perflogs)
        far = datetime(9999, 1, 1, tzinfo=timezone.utc)
        judged = _judged(perflogs, far, as_of=False)
        site = judged.snapshot
        times = np.concatenate([each.history.times for each in site.series])
        begin, end = (each.astype("datetime64[D]").item() for each in (times.min(), times.max()))
        days = [begin + timedelta(days=n) for n in range((end - begin).days + 1)]
        # the last days take the longest: each part has some of them
        chunks = [days[n::parts] for n in range(parts)]
        evenings = {
            day: evening
            for part in pool.map(_evenings, [perflogs] * parts, chunks)
            for day, evening in part.items()
        }
    statuses = tuple(evenings[day][0] for day in days)
    said = tuple(said for day in days for said in evenings[day][1])
    events = events_of([each for each in said if each.severity != Severity.NO_DATA.value])
    runs = {
        each.key: judged.judged[each.key].transient for each in site.series if each.shares_causes
    }
    return Replay(tuple(events), site.series, site.incidents, site.threshold, said, statuses, runs)


def events_of(found: Sequence[Said], away: timedelta = _AWAY) -> list[Event]:
    """Return the events that the alerts `found`, in the order of time, are of.

    What was `away` for longer and comes back is another event.
    """
    events: list[Event] = []
    for said in found:
        same = [
            event
            for event in events
            if event.first.severity == said.severity
            and event.last.keys & said.keys
            and said.day - event.last.day <= away
        ]
        if not same:
            same = [Event()]
            events += same
        same[0].days.append(said)
    return events


def _evenings(perflogs: Path, days: Sequence[date]) -> dict[date, tuple[int, list[Said]]]:
    """Return the exit status and all alerts on the evenings of `days`."""
    found = {}
    for day in days:
        midnight = datetime.combine(day + timedelta(days=1), time(), timezone.utc)
        site = _judged(perflogs, midnight, as_of=True).snapshot
        found[day] = (site.exit_status, [*_alerts(site, day)])
    return found


def _judged(perflogs: Path, now: datetime, *, as_of: bool) -> JudgedSite:
    nothing = perflogs.parent / "nothing"
    return judge(read_known(perflogs, nothing, nothing, now=now, as_of=as_of))


def _alerts(site: Snapshot, day: date) -> Iterator[Said]:
    for alert in site.alerts:
        if alert.severity in (*FOLLOWED, Severity.NO_DATA):
            assert alert.since is not None
            member = worst_member(alert)
            yield Said(
                day,
                alert.severity.value,
                subject(alert),
                alert.keys,
                alert.since.date(),
                member.ratio.value if member and member.ratio else float("nan"),
                alert.certainty.value if alert.certainty else "",
                line_of(alert, site),
                alert.direction,
            )


def line_of(alert: Alert, site: Snapshot) -> str:
    """Return the line of an alert in the digest."""
    count = counted_members(alert, site)
    parts = [alert.severity.value, subject(alert) + (f" ({count})" if count else "")]
    return "  ".join(filter(None, [*parts, *details(alert, site)]))
