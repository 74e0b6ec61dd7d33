"""Verdicts of samples and states of series.

A verdict is of one sample: where it lies in its band. A state is of a series: whether somebody
has to look. Pure functions over tables and bands; may know neither files nor views.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from iobands.alerts.acknowledged import Acknowledged
from iobands.alerts.nodes import nodes_of
from iobands.bands import NO_BAND, Band, Bands, log_fence
from iobands.cases import Miss
from iobands.history import History
from iobands.series import SeriesKey
from iobands.status.following import (
    Budget,
    Change,
    Draw,
    Following,
    drawn,
    follow_series,
    in_utc,
    is_drop,
)

if TYPE_CHECKING:
    import pandas as pd

#: From how many runs of its own a series may learn a band.
ENOUGH_RUNS: Final = 20
#: How far a clock may be ahead of ours.
_AHEAD: Final = timedelta(days=1)
#: What a learnt band says of its source.
OWN_HISTORY: Final = "own history, provisional"

# What a band may ask for beside the fields of the series.
_OF_BANDS: Final = ("medium", "file_system_type")

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
    history: History,
    misses: Sequence[Miss],
    bands: Bands | None,
    *,
    now: datetime,
    overdue: timedelta,
    budget: Budget = Budget(),  # noqa: B008 (frozen)
    draw: Draw = drawn,
) -> Status:
    """Return the status of a series from its history and its misses."""
    if not len(history):
        newest_miss = max(misses, key=lambda miss: miss.when, default=None)
        why = newest_miss.what if newest_miss else "no sample"
        return Status(State.NO_DATA, why, None, None, NO_BAND, None, False, 0, 0)
    value, when = float(history.values[-1]), history.last
    published = band_in_force(key, history.newest, when, bands)
    compares = _comparing(history, bands)
    judged = _judged(history, compares)
    least = bands.least_change if bands else None
    following = follow_series(history, judged, published, budget, draw, least)
    usable = comparable(history, bands)
    healthy = usable.copy()
    healthy[following.rows[~following.healthy]] = False  # an open alarm must not become normal
    band = published or learnt_band(key, history.values[healthy])
    state, why = _state(following)
    is_closed = bool(left_out(history, bands)[-1])
    if is_closed and not why:
        why = "its alarm was closed, and there was no run since"
    if band is None:
        state = State.CALIBRATING
        why = f"{np.count_nonzero(usable) + history.passed[-1]} of {ENOUGH_RUNS} runs"
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
        runs=len(history),
        usable=int(np.count_nonzero(usable)),
        following=following,
        missing=missing,
        is_closed=is_closed,
    )


def state_of(change: Change) -> State:
    """Return the state of what has changed so for good."""
    return State.DEGRADED if is_drop(change) else State.IMPROVED


def _state(following: Following) -> tuple[State, str]:
    """Return what the chart says, and why."""
    change, suspicion = following.open_change, following.suspicion
    if change:
        return state_of(change), change.text()
    if suspicion:
        return State.WATCH, suspicion.text()
    return State.HEALTHY, ""


def published_band(key: SeriesKey, sample: pd.Series, bands: Bands | None) -> Band | None:
    """Return the band of the bands file that was in force for `sample` when it was taken."""
    import pandas as pd  # noqa: PLC0415 (takes its time)

    said = {name: None if pd.isna(cell) else cell for name, cell in sample[[*_OF_BANDS]].items()}
    return band_in_force(key, said, sample["job_completion_time"].to_pydatetime(), bands)


def band_in_force(
    key: SeriesKey, said: Mapping[str, object], when: datetime, bands: Bands | None
) -> Band | None:
    """Return the band of the bands file at the time `when` for what a sample has `said`."""
    if bands is None:
        return None
    return bands.band_for({**key.fields(), **{name: said[name] for name in _OF_BANDS}}, when)


def comparable(history: History, bands: Bands | None) -> NDArray[np.bool_]:
    """Return which earlier samples the newest one compares with.

    They passed, were measured in the same way (`alike`), and are of the same epoch.
    """
    chosen = _comparing(history, bands) & history.passed
    chosen[-1] = False  # it must not be judged by itself
    return chosen


def _judged(history: History, compares: NDArray[np.bool_]) -> NDArray[np.int_]:
    """Return the places of the samples that the chart judges, the newest one among them.

    They compare with the newest one. Those count too that were measured and failed for being
    slow: without them a file system that collapses would have a spotless record.
    """
    return np.flatnonzero(compares & (history.passed | history.too_slow))


def _comparing(history: History, bands: Bands | None) -> NDArray[np.bool_]:
    """Return which samples compare with the newest: measured alike, in epochs that compare."""
    if bands is None:
        return history.alike
    since = bands.compares_since(history.last)
    chosen = history.alike & ~left_out(history, bands)
    return chosen if since is None else chosen & (history.times >= in_utc(since))


def left_out(history: History, bands: Bands | None) -> NDArray[np.bool_]:
    """Return which samples compare with nothing, as their alarm was closed."""
    found = np.zeros(len(history), dtype=bool)
    for span in bands.left_out if bands else ():
        within = (history.times >= in_utc(span.begin)) & (history.times <= in_utc(span.end))
        found |= within & _touched(history, span.nodes) if span.nodes else within
    return found


def _touched(history: History, nodes: Sequence[str]) -> NDArray[np.bool_]:
    """Return which samples ran on one of `nodes`."""
    known = np.unique(history.nodes)
    hit = [n >= 0 and not set(nodes).isdisjoint(nodes_of(history.lists[n].as_py())) for n in known]
    return np.array(hit, dtype=bool)[np.searchsorted(known, history.nodes)]


def learnt_band(key: SeriesKey, values: NDArray[np.float64]) -> Band | None:
    """Return a band from earlier `values`, or None when there are too few.

    The quartiles interpolate linearly between order statistics, as type 7 of Hyndman and Fan,
    "Sample quantiles in statistical packages", The American Statistician 50 (1996).
    """
    if len(values) < ENOUGH_RUNS:
        return None
    lower, median, upper = (float(q) for q in np.quantile(values, (0.25, 0.5, 0.75)))
    return Band(
        match={},
        unit=key.unit,
        lower_quartile=lower,
        median=median,
        upper_quartile=upper,
        maximum=float(values.max()),
        floor=log_fence(lower, upper),
        runs=len(values),
        epoch="",
        source=OWN_HISTORY,
    )


def verdicts(
    key: SeriesKey, samples: pd.DataFrame, bands: Bands | None, status: Status
) -> list[str]:
    """Return the verdict of every sample, for a figure.

    A sample with no published band is held against the learnt one where it is comparable with
    what that was learnt from.
    """
    learnt = status.band if status.provisional else None
    covered = set(samples.index[comparable(History.of(samples), bands)]) if learnt else set()
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
