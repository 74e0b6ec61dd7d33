"""The replay of a real year: what `iobands status` would have said on the evening of each day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from benchmarks.alarms.tokio import write_reduced
from iobands.judge.normal import TransientRuns
from iobands.judge.site import judge
from iobands.model import SeriesKey
from iobands.snapshot import Alert, AlertEvent, Incident, Series, Severity, Snapshot
from iobands.source.convert import convert, read_mapping
from iobands.source.known import Known, read_known
from iobands.views.alert_lines import counted_members, details, subject
from iobands.views.writing import worst_member

#: What each column of the table means.
MAPPING: Final = Path(__file__).resolve().parents[1] / "templates" / "real-data-mapping.yaml"
#: The alerts that are followed; a single collapsed run is no alert.
FOLLOWED: Final = (Severity.INCIDENT, Severity.DEGRADED, Severity.WATCH, Severity.IMPROVED)
# An alert that was away for this many days and comes back is the same one.
_AWAY: Final = timedelta(days=7)


@dataclass(frozen=True)
class Said:
    """An alert as it stood on the evening of a day; `ratio` is the deepest of its members.

    `happened` lists its events so far; a suspicion has no `number`.
    """

    day: date
    severity: str
    subject: str
    keys: frozenset[SeriesKey]
    since: date
    ratio: float
    certainty: str
    line: str
    direction: str | None = None
    number: int | None = None
    happened: tuple[AlertEvent, ...] = ()


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
    """The events of a year, and the series, incidents and threshold of the site at its end.

    `said` lists all alerts of all evenings, including `no data`; `statuses` the exit statuses of
    the evenings; and `transient` the runs by which incidents are judged.
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


def replay(table: Path) -> Replay:
    """Replay each day of the year in the published `table`."""
    with TemporaryDirectory() as temporary:
        perflogs, source = Path(temporary) / "perflogs", Path(temporary) / "source"
        source.mkdir()
        write_reduced(table, source / "year.csv")
        convert(source, read_mapping(MAPPING), perflogs)
        far = datetime(9999, 1, 1, tzinfo=timezone.utc)
        judged = judge(_known(perflogs, far))
        site = judged.snapshot
        times = np.concatenate([each.history.times for each in site.series])
        begin, end = (each.astype("datetime64[D]").item() for each in (times.min(), times.max()))
        days = [begin + timedelta(days=n) for n in range((end - begin).days + 1)]
        evenings = [*_evenings(perflogs, days)]
    statuses = tuple(status for status, _ in evenings)
    said = tuple(said for _, alerts in evenings for said in alerts)
    events = events_of([each for each in said if each.severity != Severity.NO_DATA.value])
    runs = {
        each.key: judged.judged[each.key].transient for each in site.series if each.shares_causes
    }
    return Replay(tuple(events), site.series, site.incidents, site.threshold, said, statuses, runs)


def events_of(found: Sequence[Said], away: timedelta = _AWAY) -> list[Event]:
    """Group the alerts `found`, in order of time, into events.

    An alert that comes back after being away for longer than `away` is another event.
    """
    events: list[Event] = []
    for said in found:
        same = [event for event in events if _is_same(event.last, said, away)]
        if not same:
            same = [Event()]
            events += same
        same[0].days.append(said)
    return events


def _is_same(before: Said, said: Said, away: timedelta) -> bool:
    if before.number or said.number:
        return before.number == said.number
    is_alike = before.severity == said.severity and bool(before.keys & said.keys)
    return is_alike and said.day - before.day <= away


def _evenings(perflogs: Path, days: Sequence[date]) -> Iterator[tuple[int, list[Said]]]:
    """Yield the exit status and all alerts on the evenings of `days`.

    The log of alerts is continued from evening to evening, as by daily sessions.
    """
    log: dict[str, tuple[AlertEvent, ...]] = {}
    for day in days:
        midnight = datetime.combine(day + timedelta(days=1), time(), timezone.utc)
        known = replace(_known(perflogs, midnight), alert_log=log)
        judged = judge(known, with_power=False)
        log |= {name: (*log.get(name, ()), *news) for name, news in judged.news.items()}
        yield judged.snapshot.exit_status, [*_alerts(judged.snapshot, day)]


def _known(perflogs: Path, now: datetime) -> Known:
    nothing = perflogs.parent / "nothing"
    return read_known(perflogs, nothing, nothing, now=now, as_of=True)


def _alerts(site: Snapshot, day: date) -> Iterator[Said]:
    for alert in site.alerts:
        if alert.severity in (*FOLLOWED, Severity.NO_DATA):
            assert alert.since is not None
            member = worst_member(alert)
            yield Said(
                day,
                alert.severity.value,
                alert.subject,
                alert.keys,
                alert.since.date(),
                member.ratio.value if member and member.ratio else float("nan"),
                alert.certainty.value if alert.certainty else "",
                line_of(alert, site),
                alert.direction,
                alert.number,
                alert.events,
            )


def line_of(alert: Alert, site: Snapshot) -> str:
    """Return the line of an alert in the digest."""
    count = counted_members(alert, site)
    parts = [alert.severity.value, subject(alert) + (f" ({count})" if count else "")]
    return "  ".join(filter(None, [*parts, *details(alert, site)]))
