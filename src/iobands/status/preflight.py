"""What keeps checks from being run: a file system, an environment or a partition that is not fit.

Said once for all the checks that it stopped, and never laid to the performance. May know: the
cases of run reports, and series.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from iobands.readers.run_report import RunCase
from iobands.series import SeriesKey

_Identity = tuple[str, str, str, str]  # of a case
_Place = tuple[str, str, str]  # system, partition and subject


@dataclass(frozen=True)
class Obstacle:
    """A file system, an environment or a partition that was found unfit, or has stopped checks.

    `checks` are the names of those that it stopped, and `keys` the series that they would give.
    """

    subject: str
    system: str
    partition: str
    why: str
    when: datetime
    checks: tuple[str, ...]
    keys: frozenset[SeriesKey]

    def as_json(self) -> dict[str, object]:
        """Return it as plain data, without the series, which have the reason themselves."""
        told = {name: value for name, value in vars(self).items() if name != "keys"}
        return {**told, "when": self.when.isoformat(), "checks": list(self.checks)}


def obstacles(
    tied: Mapping[SeriesKey | None, Sequence[RunCase]], newest: datetime | None, overdue: timedelta
) -> tuple[Obstacle, ...]:
    """Return what stands in the way now, by the newest run of each case.

    `tied` are the cases of each series, in the order of time, and `newest` is when the last
    session ended. What was not looked at again for the time `overdue` is dropped.
    """
    cases: dict[_Identity, RunCase] = {}
    keys: defaultdict[_Identity, set[SeriesKey]] = defaultdict(set)
    for key, group in tied.items():
        for case in group:
            known = cases.setdefault(case.identity, case)
            cases[case.identity] = max(known, case, key=lambda each: each.when)
            keys[case.identity] |= {key} if key else set()
    fit = _last_fit(cases.values())
    found: defaultdict[_Place, list[RunCase]] = defaultdict(list)
    for case in cases.values():
        if case.lacks is None or (newest and newest - case.when > overdue):
            continue
        place = (case.system, case.partition, case.lacks)
        # A check that was stopped stays so until it is run, though all may be well by now.
        if case.examines or place not in fit or case.when >= fit[place]:
            found[place].append(case)
    return tuple(_obstacle(place, found[place], keys) for place in sorted(found))


def _last_fit(cases: Iterable[RunCase]) -> dict[_Place, datetime]:
    """Return when each file system, environment and partition was last seen to be fit."""
    fit: dict[_Place, datetime] = {}
    for case in cases:
        if case.result != "pass":
            continue
        file_system = case.fields.get("file_system")
        subjects = [case.examines] if case.examines else [file_system, case.environ, case.partition]
        for subject in subjects:
            place = (case.system, case.partition, str(subject))
            fit[place] = max(case.when, fit.get(place, case.when))
    return fit


def _obstacle(
    place: _Place, cases: Sequence[RunCase], keys: Mapping[_Identity, set[SeriesKey]]
) -> Obstacle:
    system, partition, subject = place
    newest = max(cases, key=lambda case: case.when)
    # Those that examine it say all that is wrong, if they were run in the same session.
    said = [case for case in cases if case.examines and case.report == newest.report]
    why = "; ".join(dict.fromkeys(case.reason or case.result for case in said or [newest]))
    stopped = [case for case in cases if not case.examines and not case.fixture]
    return Obstacle(
        subject=subject,
        system=system,
        partition=partition,
        why=why,
        when=newest.when,
        checks=tuple(sorted(case.name for case in stopped)),
        keys=frozenset(key for case in stopped for key in keys[case.identity]),
    )
