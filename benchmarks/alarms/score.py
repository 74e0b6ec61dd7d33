"""How well the alerts of the real year match its marks."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np

from benchmarks.alarms.figures import table, verdict
from benchmarks.alarms.marked import LATE, Mark, name_of
from benchmarks.alarms.real import Event, Replay, Said, events_of
from iobands.snapshot import FELL, Severity

_DAY: Final = timedelta(days=1)
_NEVER: Final = date.min
_SESSIONS, _RUNS, _RENAMED = 3, 12, 3


@dataclass(frozen=True)
class Answer:
    """How a mark was first found; `runs` counts each series' runs until an alert included it."""

    mark: Mark
    words: str
    sessions: int | None
    runs: Mapping[str, int | None]

    @classmethod
    def of(cls, mark: Mark, said: Sequence[Said], replay: Replay) -> Answer:
        """Return how a mark was found by `said`, the alerts about it in order of time."""
        days = {
            name_of(each.key): np.unique(each.history.times.astype("datetime64[D]"))
            for each in replay.series
            if each.key.file_system == mark.file_system and name_of(each.key) in mark.series
        }
        attached: dict[str, date] = {}
        for each in said:
            for key in mark.tells(each):
                attached.setdefault(name_of(key), each.day)

        def until(names: Sequence[str], day: date | None) -> int | None:
            every = np.unique(np.concatenate([days[name] for name in names]))
            within = (every >= np.datetime64(mark.first)) & (every <= np.datetime64(day))
            return int(np.count_nonzero(within)) if day else None

        runs = {name: until([name], attached.get(name)) for name in sorted(days)}
        if not said:
            return cls(mark, "nothing", None, runs)
        return cls(mark, f"`{said[0].line}`", until([*days], said[0].day), runs)


@dataclass(frozen=True)
class Score:
    """The alerts of a year, compared with its marks."""

    replay: Replay
    marks: Sequence[Mark]

    @cached_property
    def events(self) -> list[Event]:
        """The alerts, each as long as it stood without a break."""
        gaps = Severity.NO_DATA.value
        return events_of([each for each in self.replay.said if each.severity != gaps], away=_DAY)

    @cached_property
    def alarms(self) -> list[Event]:
        """The alerts that are more than a suspicion."""
        return [each for each in self.events if each.first.severity != Severity.WATCH.value]

    def unexplained(self, events: Sequence[Event], *, by_must: bool = False) -> list[Event]:
        """Return the alerts that, as first raised, no mark explains."""
        return [each for each in events if not self._explains(each.first, by_must=by_must)]

    def _explains(self, said: Said, *, by_must: bool = False) -> bool:
        marks = [each for each in self.marks if each.is_change and (each.is_must or not by_must)]
        return any(mark.explains(said) for mark in marks)

    def by_chance(self, direction: str) -> float:
        """Return the share of all runs at which a mark would explain an alert raised by chance."""
        alerts = [
            replace(self.replay.said[0], day=day, since=day, keys=keys, direction=direction)
            for each in self.replay.series
            for keys in (frozenset([each.key]),)
            for day in each.history.times.astype("datetime64[D]").tolist()
        ]
        return float(np.mean([self._explains(each) for each in alerts]))

    @cached_property
    def answers(self) -> list[Answer]:
        """How each change that needs an alert was found."""
        changes = [mark for mark in self.marks if mark.is_must and mark.is_change]
        return [Answer.of(mark, self._about(mark), self.replay) for mark in changes]

    def _about(self, mark: Mark) -> list[Said]:
        found = [
            said
            for event in self.alarms
            for said in event.days
            if mark.first <= said.day <= mark.last + LATE and mark.tells(said)
        ]
        return sorted(found, key=lambda said: said.day)

    @property
    def stopped(self) -> list[int | None]:
        """The days until each stopped test that needs an alert got one; None if it never did."""
        said = [each for each in self.replay.said if each.severity == Severity.NO_DATA.value]
        days = [
            [each.day for each in said if mark.first <= each.day <= mark.last and mark.of(each)]
            + [mark.first - _DAY]
            for mark in self.marks
            if mark.is_must and mark.kind == "gap"
        ]
        return [(each[0] - each[-1]).days or None for each in days]

    @property
    def reopened(self) -> list[Event]:
        """The alerts that came back after an evening away, or date a change before one closed.

        The one that closed has a series in common and the same direction.
        """
        return [
            event
            for event in self.alarms
            if any(after.day > before.day + _DAY for before, after in pairwise(event.days))
            or any(
                each.first.direction == event.first.direction
                and each.last.keys & event.first.keys
                and event.first.since <= each.last.day < event.first.day - _DAY
                for each in self.alarms
            )
        ]

    @property
    def fell(self) -> list[bool]:
        """For each further fall of an alert, whether a mark confirms it."""
        return [
            any(mark.tells(said) for mark in self.marks if mark.is_change)
            for event in self.alarms
            for each in event.last.happened
            if each.kind == FELL
            for said in [replace(event.last, since=_NEVER, happened=(each,))]
        ]

    @property
    def renamed(self) -> list[tuple[Said, Said]]:
        """The alerts that changed their subject, on the evenings before and after."""
        pairs = [pair for event in self.events for pair in pairwise(event.days)]
        return [(before, after) for before, after in pairs if before.subject != after.subject]


def summary(score: Score) -> str:
    """Return the table of all figures and their aims."""
    found = [each for each in score.answers if each.sessions]
    fallen = [runs for each in found for runs in each.runs.values()]
    sessions, runs = _known(each.sessions for each in found), _known(fallen)
    false, again = score.unexplained(score.alarms), len(score.reopened)
    renamed = {after.day for _, after in score.renamed}
    same = {after.day for before, after in score.renamed if before.keys == after.keys}
    watches = [each for each in score.events if each not in score.alarms]
    missing = score.unexplained(score.alarms, by_must=True)
    real = [each for each in score.alarms if each not in missing]
    chances = ", ".join(f"{score.by_chance(each):.0%}" for each in ("down", "up"))
    denied = [each for each in false if any(mark.denies(each.first) for mark in score.marks)]
    fell = score.fell.count(False)
    gaps, stopped = len(score.stopped), _known(score.stopped)
    statuses = [str(score.replay.statuses.count(each)) for each in range(4)]
    late, most = statistics.median(sessions or [math.inf]), max(runs, default=0)
    every, is_all = len(found) == len(score.answers), len(stopped) == gaps
    rows: list[tuple[object, ...]] = [
        ("changes that need an alert: found", _share(found, score.answers), "all", every),
        (
            "sessions until the alert: median, most",
            _middle(sessions),
            "median ≤ 3",
            late <= _SESSIONS,
        ),
        ("their series in an alert", _share(runs, fallen), "all", len(runs) == len(fallen)),
        ("runs until in it: median, most", _middle(runs), "≤ 12", most <= _RUNS),
        ("tests that stopped: found", f"{len(stopped)} of {gaps}", "all", is_all),
        ("days until the alert: median, most", _middle(stopped), "", ""),
        ("alerts that match no mark", _share(false, score.alarms), "≤ 1", len(false) <= 1),
        ("of these in a healthy stretch", len(denied), "", ""),
        ("alerts that match a change that needs one", _share(real, score.alarms), "", ""),
        ("a fall, a rise of any run would match a mark", chances, "", ""),
        ("times that an alert fell again, without a mark", f"{fell} of {len(score.fell)}", "", ""),
        ("`watch` that matches no mark", _share(score.unexplained(watches), watches), "", ""),
        ("alerts opened again without new evidence", again, "0", not again),
        ("evenings with a changed subject", len(renamed), "≤ 3", len(renamed) <= _RENAMED),
        ("of these over the same series", len(same), "0", not same),
        ("evenings with exit status 0, 1, 2, 3", ", ".join(statuses), "", ""),
    ]
    cells = [(*row[:3], verdict(bool(row[3])) if row[2] else "") for row in rows]
    return table(["", "found", "aim", ""], cells)


def must_tell(score: Score) -> str:
    """Return the table of the changes that need an alert."""
    rows = []
    for answer in score.answers:
        mark, runs = answer.mark, _known(answer.runs.values())
        what = f"{mark.file_system} {mark.kind}, {mark.first} to {mark.last}"
        within = _share(runs, answer.runs) + (f", {max(runs)}" if runs else "")
        rows.append(
            [what, ", ".join(answer.runs), answer.sessions or "never", within, answer.words]
        )
    head = ["marked", "series", "sessions", "series in an alert, most runs", "reported as"]
    return table(head, rows)


def unexplained(score: Score) -> str:
    """Return the table of the alerts that match no mark, and of those that opened again."""
    false = score.unexplained(score.alarms)
    rows = [
        [f"`{event.first.line}`", event.first.since, event.first.day, event.last.day, why]
        for events, why in ((false, "matches no mark"), (score.reopened, "opened again"))
        for event in events
    ]
    return table(["first reported", "began", "raised", "last reported", ""], rows)


def _known(found: Iterable[int | None]) -> list[int]:
    return [each for each in found if each is not None]


def _middle(found: Sequence[int]) -> str:
    return f"{statistics.median(found):g}, {max(found)}" if found else "–"


def _share(some: Sized, every: Sized) -> str:
    return f"{len(some)} of {len(every)}"
