"""A site's results followed day by day: what `iobands status` would have said each evening.

For every day the survey is taken anew from the results up to then, as the command takes it, so
that nothing of a later day can be in what was told. May know: surveys and what they are made of.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from iobands.alerts.collapses import RISEN
from iobands.readers.adapters import FILE_NAME
from iobands.status.following import Change, Following
from iobands.status.states import State
from iobands.status.survey import Survey, take_survey

from iobands.bands import BELOW, COLLAPSED
from iobands.model.series import SeriesKey

#: What a check asks for that fails under 30 % less than the median, as references often do.
REFERENCE: Final = 0.7
_NEVER: Final = timedelta(days=100_000)
_YEAR: Final = timedelta(days=365.25)
_CHUNKS: Final = 4  # for each process, because late days take longer


@dataclass(frozen=True)
class Day:
    """What was told of a series on a day on which it ran.

    `under_quartile` and `under_reference` are what other ways of judging make of the run.
    """

    when: datetime
    state: State
    verdict: str
    under_quartile: bool
    under_reference: bool
    change: Change | None


@dataclass(frozen=True)
class Alarm:
    """A lasting change of a series: as it was told first, on the day `day`, and as in the end."""

    key: SeriesKey
    day: datetime
    first: Change
    last: Change


@dataclass(frozen=True)
class CommonAlarm:
    """A lasting change that several series of a file system share, as it was told first."""

    name: str
    day: datetime
    first: Change
    keys: tuple[SeriesKey, ...]


@dataclass
class Replay:
    """All that was told, and the survey of the last day.

    `rises` has for each file system the days on which it was told to collapse more often.
    """

    survey: Survey
    days: dict[SeriesKey, list[Day]]
    alarms: list[Alarm] = field(default_factory=list)
    common: list[CommonAlarm] = field(default_factory=list)
    limits: set[float] = field(default_factory=set)
    rises: dict[str, list[datetime]] = field(default_factory=dict)

    def years(self, key: SeriesKey) -> float:
        """Return how long a series was followed."""
        days = self.days[key]
        return (days[-1].when - days[0].when) / _YEAR

    @property
    def all_years(self) -> float:
        """How long all series were followed, together."""
        return sum(self.years(key) for key in self.days)

    def watches(self, key: SeriesKey) -> list[tuple[Day, ...]]:
        """Return the stretches of days in which a series was in `watch`."""
        found: list[list[Day]] = []
        before = None
        for day in self.days[key]:
            if day.state is State.WATCH:
                if before is not State.WATCH:
                    found.append([])
                found[-1].append(day)
            before = day.state
        return [tuple(each) for each in found]

    def transients(self, key: SeriesKey) -> list[Day]:
        """Return the runs that were told to have collapsed while the series was not degraded."""
        return [
            day
            for day in self.days[key]
            if day.verdict == COLLAPSED and day.state is not State.DEGRADED
        ]


_Told = tuple[datetime, dict[SeriesKey, Day], list[CommonAlarm], float, list[str]]


def replay(table: Path, adapter: Path, processes: int) -> Replay:
    """Follow the CSV file `table`, which `adapter` says how to read, day by day."""
    header, *lines = table.read_text(encoding="utf-8").splitlines()
    days = [line[:10] for line in lines]
    order = sorted(range(len(lines)), key=days.__getitem__)
    text = [header, *(lines[place] for place in order)]
    # how many lines there are up to the end of each day
    ends = {days[place]: number for number, place in enumerate(order, 2)}
    dates = list(ends)
    size = -(-len(dates) // (processes * _CHUNKS))
    parts = [dates[start : start + size] for start in range(0, len(dates), size)]
    with ProcessPoolExecutor(processes) as pool:
        jobs = [pool.submit(_follow, text, adapter, [(d, ends[d]) for d in part]) for part in parts]
        told = [each for job in jobs for each in job.result()]
    with TemporaryDirectory() as directory:
        survey = _survey(Path(directory), text, adapter, date.fromisoformat(dates[-1]))
    return _gathered(survey, told)


def _follow(text: Sequence[str], adapter: Path, days: Sequence[tuple[str, int]]) -> list[_Told]:
    found = []
    with TemporaryDirectory() as directory:
        for day, end in days:
            survey = _survey(Path(directory), text[:end], adapter, date.fromisoformat(day))
            found.append(_told(survey))
    return found


def _survey(directory: Path, text: Sequence[str], adapter: Path, day: date) -> Survey:
    """Return the survey of `text` at the end of `day`."""
    directory.mkdir(exist_ok=True)
    shutil.copy(adapter, directory / FILE_NAME)
    (directory / "results.csv").write_text("\n".join([*text, ""]), encoding="utf-8")
    end = datetime(day.year, day.month, day.day, tzinfo=timezone.utc) + timedelta(days=1)
    return take_survey(directory, directory, now=end, overdue=_NEVER)


def _told(survey: Survey) -> _Told:
    found = {}
    for series in survey.series:
        status = series.status
        assert status.when is not None and status.value is not None
        if survey.now - status.when > timedelta(days=1):
            continue  # it did not run on this day
        band = status.band
        found[series.key] = Day(
            when=status.when,
            state=status.state,
            verdict=status.verdict,
            under_quartile=status.verdict in {BELOW, COLLAPSED},
            under_reference=band is not None and status.value < REFERENCE * band.median,
            change=status.change,
        )
    common = [CommonAlarm(c.name, survey.now, c.change, c.keys) for c in survey.common]
    systems = survey.collapses.file_systems
    risen = [each.name for each in systems if each.collapses.outcome == RISEN]
    return survey.now, found, common, survey.budget.limit, risen


def _gathered(survey: Survey, told: Sequence[_Told]) -> Replay:
    ran = {series.key: [] for series in survey.series}
    found = Replay(survey, ran)
    ends = {series.key: _changes(series.status.following) for series in survey.series}
    known: set[object] = set()
    for now, days, commons, limit, risen in told:
        found.limits.add(limit)
        for name in risen:
            found.rises.setdefault(name, []).append(now - timedelta(days=1))
        for key, day in days.items():
            if key not in ran:
                continue  # of another scale, superseded since
            ran[key].append(day)
            change = day.change
            if change and (key, change.direction, change.raised) not in known:
                known.add((key, change.direction, change.raised))
                last = ends[key].get((change.direction, change.raised), change)
                found.alarms.append(Alarm(key, now, change, last))
        for common in commons:
            # the day of the raising may move by a run, because the weights of its series do
            mark = (common.name, common.first.direction, common.first.since)
            if mark not in known:
                known.add(mark)
                found.common.append(common)
    order = {series.key: place for place, series in enumerate(survey.series)}
    found.alarms.sort(key=lambda alarm: (order[alarm.key], alarm.day))
    found.common.sort(key=lambda common: (common.name, common.day))
    return found


def _changes(following: Following | None) -> dict[tuple[str, datetime], Change]:
    changes = following.changes if following else ()
    return {(change.direction, change.raised): change for change in changes}
