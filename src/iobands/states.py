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
from numpy.typing import NDArray

from iobands.acknowledged import Acknowledged
from iobands.bands import NO_BAND, Band, Bands, log_fence
from iobands.following import (
    PERFORMANCE,
    Budget,
    Change,
    Draw,
    Following,
    drawn,
    follow_series,
    is_drop,
)
from iobands.nodes import nodes_of
from iobands.series import SeriesKey

#: From how many runs of its own a series may learn a band.
ENOUGH_RUNS: Final = 20
#: How far a clock may be ahead of ours.
_AHEAD: Final = timedelta(days=1)
#: What a learnt band says of its source.
OWN_HISTORY: Final = "own history, provisional"

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
    compares = _comparing(samples, bands)
    passed = _says(samples["result"], "pass")
    following = follow_series(samples, _judged(samples, compares), published, budget, draw)
    usable = _earlier(passed & compares)
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
    if bands is None:
        return None
    fields = {
        **key.fields(),
        "medium": sample["medium"],
        "file_system_type": sample["file_system_type"],
    }
    present = {name: None if pd.isna(cell) else cell for name, cell in fields.items()}
    return bands.band_for(present, sample["job_completion_time"].to_pydatetime())


def comparable(samples: pd.DataFrame, bands: Bands | None) -> pd.DataFrame:
    """Return time and value of the earlier samples that the newest one compares with.

    They passed, were measured in the same way (`alike`), and are of the same epoch.
    """
    chosen = _earlier(_comparing(samples, bands) & _says(samples["result"], "pass"))
    # of few columns, because a selection costs by the column
    return samples[["job_completion_time", "perf_value"]].iloc[np.flatnonzero(chosen)]


def _earlier(chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return `chosen` without the newest sample, which must not be judged by itself."""
    chosen[-1] = False
    return chosen


def _judged(samples: pd.DataFrame, compares: NDArray[np.bool_]) -> NDArray[np.int_]:
    """Return the places of the samples that the chart judges, the newest one among them.

    They compare with the newest one. Those count too that were measured and failed for being
    slow: without them a file system that collapses would have a spotless record.
    """
    measured = _says(samples["result"], "pass")
    return np.flatnonzero(compares & (measured | _says(samples["fail_phase"], PERFORMANCE)))


def _says(cells: pd.Series, text: str) -> NDArray[np.bool_]:
    """Return which of `cells` say `text`; one that is missing says nothing."""
    codes, kinds = _kinds(cells)
    return np.array([*(str(kind) == text for kind in kinds), False])[codes]


def _kinds(cells: pd.Series) -> tuple[NDArray[np.int_], Sequence[object]]:
    """Return for each cell the place of what it says among all kinds, and these; -1 if missing."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        # which has done this already, and takes much longer to do it over
        return cells.array.codes, cells.array.categories
    return pd.factorize(cells)


def _comparing(samples: pd.DataFrame, bands: Bands | None) -> NDArray[np.bool_]:
    """Return which samples compare with the newest: measured alike, in epochs that compare."""
    times = samples["job_completion_time"]
    chosen = alike(samples)
    if bands is None:
        return chosen
    since = bands.compares_since(times.iloc[-1].to_pydatetime())
    if since is not None:
        chosen = chosen & (times >= since).to_numpy()
    return chosen & ~left_out(samples, bands)


def left_out(samples: pd.DataFrame, bands: Bands | None) -> NDArray[np.bool_]:
    """Return which of `samples` compare with nothing, as their alarm was closed."""
    times = samples["job_completion_time"]
    found = np.zeros(len(times), dtype=bool)
    for span in bands.left_out if bands else ():
        within = ((times >= span.begin) & (times <= span.end)).to_numpy()
        found |= within & _touched(samples, span.nodes) if span.nodes else within
    return found


def _touched(samples: pd.DataFrame, nodes: Sequence[str]) -> NDArray[np.bool_]:
    """Return which of `samples` ran on one of `nodes`."""
    if "job_nodelist" not in samples:
        return np.zeros(len(samples), dtype=bool)
    codes, lists = _kinds(samples["job_nodelist"])
    hit = [not set(nodes).isdisjoint(nodes_of(str(each))) for each in lists]
    return np.array([*hit, False])[codes]


def alike(samples: pd.DataFrame) -> np.ndarray:
    """Return which of `samples` were measured as the newest one was, of shape (samples,).

    They agree in the version of the tool, in `fsync` and in the first number of the version of the
    suite, as far as the table has these columns. What is missing agrees with what is missing only.
    """
    same = np.ones(len(samples), dtype=bool)
    for name in ("tool_version", "fsync", "suite_version"):
        if name in samples:
            codes, kinds = _kinds(samples[name])
            kinds = [_major(kind) if name == "suite_version" else str(kind) for kind in kinds]
            newest = kinds[codes[-1]] if codes[-1] >= 0 else None
            wanted = [kind == newest for kind in kinds]
            # the last place, which the code -1 of a missing value points at, is for those
            same &= np.array([*wanted, codes[-1] < 0])[codes]
    return same


def _major(version: object) -> str:
    return str(version).split(".", maxsplit=1)[0]


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
