"""What several series have in common: a change of a whole file system, told once.

May know: series, their charts and statuses; nothing of files or of how it is shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.charts import follow_together
from iobands.following import Budget, Change, Following, Times, change_of
from iobands.series import SeriesKey

#: The bits of the number of a session that tell the runs of a day apart.
RUNS_OF_A_DAY: Final = 20


@dataclass(frozen=True)
class Common:
    """A lasting change that the series `keys` of one file system share, the strongest first."""

    name: str
    change: Change
    keys: tuple[SeriesKey, ...]


def groups(keys: Sequence[SeriesKey]) -> Mapping[str, list[SeriesKey]]:
    """Return the series that are pooled, by name: of one file system and one direction."""
    found: defaultdict[str, list[SeriesKey]] = defaultdict(list)
    systems = {key.system for key in keys}
    for key in keys:
        system = f"{key.system} " if len(systems) > 1 else ""
        found[f"all {system}{key.file_system or 'none'} {key.variable}"].append(key)
    return {name: each for name, each in found.items() if len(each) > 1}


def common_changes(followings: Mapping[SeriesKey, Following], budget: Budget) -> tuple[Common, ...]:
    """Return the changes that last and that at least two series of a group speak for."""
    found = []
    for name, keys in groups(list(followings)).items():
        able = [key for key in keys if followings[key].chart.can_judge]
        if len(able) < 2:  # noqa: PLR2004
            continue
        table, times = _sessions([followings[key] for key in able])
        charts = [followings[key].chart for key in able]
        alarm = follow_together(table, charts, limit=budget.limit).open_alarm
        if alarm and len(alarm.series) > 1:
            change = change_of(alarm.alarm, times, budget)
            found.append(Common(name, change, tuple(able[column] for column in alarm.series)))
    return tuple(found)


def session_numbers(runs: Sequence[Times]) -> list[NDArray[np.int64]]:
    """Return the session of each run of several series, as numbers in the order of time.

    A session is a day, and the n-th run of a day goes with the n-th of the others. The day begins
    at the hour at which the fewest runs are made, so that no night of runs is cut in two.
    """
    hours = np.concatenate(runs).astype("datetime64[h]").astype(np.int64) % 24
    begin = int(np.argmin(np.bincount(hours, minlength=24)))
    found = []
    for times in runs:
        days = (times - np.timedelta64(begin, "h")).astype("datetime64[D]").astype(np.int64)
        nth = np.arange(len(days)) - np.searchsorted(days, days)
        found.append((days << RUNS_OF_A_DAY) + nth)
    return found


def _sessions(followings: Sequence[Following]) -> tuple[NDArray[np.float64], Times]:
    """Return values of shape (sessions, series), and the time of each session."""
    runs = [each.times for each in followings]
    sessions, places = np.unique(np.concatenate(session_numbers(runs)), return_inverse=True)
    table = np.full((len(sessions), len(runs)), np.nan)
    when = np.empty(len(sessions), dtype="datetime64[ns]")
    at = 0
    for column, (times, each) in enumerate(zip(runs, followings, strict=True)):
        rows = places[at : at + len(times)]
        table[rows, column] = each.values
        when[rows] = times
        at += len(times)
    return table, when
