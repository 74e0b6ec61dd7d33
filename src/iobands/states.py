"""Verdicts of samples and states of series.

A verdict is of one sample: where it lies in its band. A state is of a series: whether somebody
has to look. Pure functions over tables and bands; may know neither files nor views.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

import numpy as np
import pandas as pd

from iobands.acknowledged import Acknowledged
from iobands.alike import comparable, comparing, earlier, judged, left_out, says
from iobands.bands import NO_BAND, Band, Bands
from iobands.bands_in_force import ENOUGH_RUNS, learnt_band, published_band
from iobands.following import Budget, Change, Draw, Following, drawn, follow_series, is_drop
from iobands.series import SeriesKey

#: How far a clock may be ahead of ours.
_AHEAD: Final = timedelta(days=1)

OK, WARNING, CRITICAL, UNKNOWN = range(4)
_WORST_FIRST: Final = (CRITICAL, UNKNOWN, WARNING, OK)


class State(str, Enum):
    """The state of a series."""

    CALIBRATING = "calibrating"
    HEALTHY = "healthy"
    WATCH = "watch"
    DEGRADED = "degraded"
    IMPROVED = "improved"
    NO_DATA = "no data"

    @property
    def exit_status(self) -> int:
        """The exit status of a monitoring plugin: 0 OK, 1 warning, 2 critical, 3 unknown."""
        return _EXIT_STATUS.get(self, OK)


_EXIT_STATUS: Final = {
    State.WATCH: WARNING,
    State.DEGRADED: CRITICAL,
    State.NO_DATA: UNKNOWN,
}


def worst(statuses: Iterable[int]) -> int:
    """Return the exit status for all of `statuses`: 2 goes before 3, and 3 before 1; else 0.

    A degradation is known to be bad, and a missing sample elsewhere must not hide it. A missing
    sample may be as bad as that, while `watch` is a suspicion that the next runs will settle.
    """
    found = set(statuses)
    return next((status for status in _WORST_FIRST if status in found), OK)


@dataclass(frozen=True)
class Miss:
    """A run that should have given a sample of a series and gave none."""

    when: datetime
    what: str


@dataclass(frozen=True)
class Status:
    """What is to be said of one series; values are in the series' unit.

    `value`, `when` and `verdict` are of the newest sample. `band` is the published one, or one
    learnt from the series' own history when `provisional`. `runs` is how many samples there are,
    and `usable` how many earlier ones a band may be learnt from. `why` explains the state.
    `following` has the chart that the state comes from, None where there is no sample.
    `missing` tells why the newest sample is not the one that is expected, if it is not.
    `acknowledged` is who knows of the lasting change, if anybody does. `is_closed` tells whether
    the newest sample is of an alarm that was closed.
    """

    state: State
    why: str
    value: float | None
    when: datetime | None
    verdict: str
    band: Band | None
    provisional: bool
    runs: int
    usable: int
    following: Following | None = None
    missing: str | None = None
    acknowledged: Acknowledged | None = None
    is_closed: bool = False

    @property
    def is_quiet(self) -> bool:
        """Whether the state is a lasting change that was acknowledged, and no worse since."""
        known = self.acknowledged is not None and self.acknowledged.holds
        return known and self.state in {State.DEGRADED, State.IMPROVED}

    @property
    def change(self) -> Change | None:
        """The lasting change that is going on, or None."""
        return self.following.open_change if self.following else None

    @property
    def exit_status(self) -> int:
        """The exit status of a monitoring plugin for this series."""
        if self.is_quiet and self.state is State.DEGRADED:
            return UNKNOWN if self.missing else WARNING
        return self.state.exit_status


def assess(
    key: SeriesKey,
    samples: pd.DataFrame,
    misses: Sequence[Miss],
    bands: Bands | None,
    *,
    now: datetime,
    overdue: timedelta,
    budget: Budget = Budget(),  # noqa: B008 (frozen)
    draw: Draw = drawn,
) -> Status:
    """Return the status of a series from its samples, in the order of time, and its misses."""
    if samples.empty:
        newest_miss = max(misses, key=lambda miss: miss.when, default=None)
        why = newest_miss.what if newest_miss else "no sample"
        return Status(State.NO_DATA, why, None, None, NO_BAND, None, False, 0, 0)
    values = samples["perf_value"].to_numpy(dtype=float)
    value = float(values[-1])
    when = samples["job_completion_time"].iloc[-1].to_pydatetime()
    published = published_band(key, samples.iloc[-1], bands) if bands else None
    compares = comparing(samples, bands)
    passed = says(samples["result"], "pass")
    least = bands.least_change if bands else None
    rows = judged(samples, compares)
    following = follow_series(samples, rows, published, budget, draw, least)
    usable = earlier(passed & compares)
    history = usable.copy()
    history[following.rows[~following.healthy]] = False  # an open alarm must not become normal
    band = published or learnt_band(key, values[history])
    state, why = _state(following)
    is_closed = bool(left_out(samples.iloc[-1:], bands)[0])
    if is_closed and not why:
        why = "its alarm was closed, and there was no run since"
    if band is None:
        state = State.CALIBRATING
        why = f"{np.count_nonzero(usable) + passed[-1]} of {ENOUGH_RUNS} runs"
    missing = _missing(when, misses, now, overdue)
    if missing and state is State.DEGRADED:
        # what is known to be bad is not better for having no news
        why = f"{why}; and {missing}"
    elif missing:
        state, why = State.NO_DATA, missing
    return Status(
        state=state,
        why=why,
        value=value,
        when=when,
        verdict=band.verdict(value) if band else NO_BAND,
        band=band,
        provisional=band is not None and published is None,
        runs=len(samples),
        usable=int(np.count_nonzero(usable)),
        following=following,
        missing=missing,
        is_closed=is_closed,
    )


def _state(following: Following) -> tuple[State, str]:
    """Return what the chart says, and why."""
    change, suspicion = following.open_change, following.suspicion
    if change:
        return (State.DEGRADED if is_drop(change) else State.IMPROVED), change.text()
    if suspicion:
        return State.WATCH, suspicion.text()
    return State.HEALTHY, ""


def verdicts(
    key: SeriesKey, samples: pd.DataFrame, bands: Bands | None, status: Status
) -> list[str]:
    """Return the verdict of every sample, for a figure.

    A sample with no published band is held against the learnt one where it is comparable with
    what that was learnt from.
    """
    learnt = status.band if status.provisional else None
    covered = set(comparable(samples, bands).index) if learnt else set()
    if not status.is_closed:
        covered.add(samples.index[-1])
    found = []
    for index, sample in samples.iterrows():
        band = published_band(key, sample, bands) or (learnt if index in covered else None)
        found.append(band.verdict(float(sample["perf_value"])) if band else NO_BAND)
    return found


def _missing(
    newest: datetime, misses: Sequence[Miss], now: datetime, overdue: timedelta
) -> str | None:
    """Return why the newest sample is not the one that is expected, or None."""
    later = [miss for miss in misses if miss.when > newest]
    if later:
        return max(later, key=lambda miss: miss.when).what
    if newest - now > _AHEAD:
        return f"the newest sample is of {newest:%Y-%m-%d}, which is yet to come: a clock is wrong"
    if now - newest > overdue:
        age = (now - newest) / timedelta(days=1)
        return f"the newest sample is {age:.0f} days old"
    return None
