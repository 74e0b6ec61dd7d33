"""A series followed by its chart: runs in, and what the chart says of them in words of time out.

May know: the charts, bands, and the columns of samples; nothing of files or of how it is shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from iobands.bands import Band
from iobands.detection import (
    DEGRADED,
    DOWN,
    LEAST,
    Alarm,
    Chart,
    Ratio,
    follow,
    limit_for,
    power,
    runs_between_false_alarms,
)
from iobands.history import History, Times

if TYPE_CHECKING:
    import pandas as pd

#: The drop that the power of a series is told for.
TOLD_DROP: Final = 0.7
#: How often a series is taken to run while it is too young to tell.
DAILY: Final = 365.0
_YEAR: Final = np.timedelta64(365, "D")
_ENOUGH_TIME: Final = np.timedelta64(30, "D")
_QUARTERS: Final = 4

#: What gives the chart of a series from its values, its band, the limit and the least change.
Draw = Callable[[NDArray[np.float64], Band | None, float, float], Chart]


def drawn(
    values: NDArray[np.float64], band: Band | None, limit: float, least: float = LEAST
) -> Chart:
    """Return the chart of a series, drawn from the first run to the last."""
    return follow(values, band, limit=limit, least=least)


@dataclass(frozen=True)
class Budget:
    """How many false alarms a year a site allows, and how many runs a year it judges.

    `runs_a_year` is of all series and of all pooled charts together.
    """

    false_alarms_a_year: float = 1.0
    runs_a_year: float = DAILY

    @cached_property
    def limit(self) -> float:
        """The evidence for an alarm, in nats, rounded up to a quarter, and `DEGRADED` at the least.

        At least, because a site of few series would else have alarms where others have `watch`.
        Rounded, because the number of runs a year is an estimate that changes every day, and an
        alarm must not come and go with it.
        """
        exact = limit_for(self.false_alarms_a_year, 1, max(self.runs_a_year, 1.0))
        return max(DEGRADED, math.ceil(exact * _QUARTERS) / _QUARTERS)

    def years_to_false_alarm(self, score: float) -> float:
        """Return the mean number of years in which the site has one false alarm of `score`."""
        return runs_between_false_alarms(score) / max(self.runs_a_year, 1.0)


@dataclass(frozen=True)
class Change:
    """A lasting change in terms of time; times are in UTC.

    It began at `since`, most likely between `since_low` and `since_high`, and the alarm came with
    the run at `raised`. `ratio` is the level since over the level before. `score` is the evidence
    at the alarm and `limit` what it needed, in nats; false alarms of such a score come once in
    `years` on the whole site. `ended` is the first run that was no longer part of it, or None.
    """

    direction: str
    since: datetime
    since_low: datetime
    since_high: datetime
    raised: datetime
    ratio: Ratio
    score: float
    limit: float
    years: float
    ended: datetime | None = None
    end: str | None = None

    def text(self) -> str:
        """Return it in words that can be read aloud."""
        return (
            f"since {span_text(self.since, self.since_low, self.since_high)}: "
            f"{ratio_text(self.ratio)} its former level; a false alarm as strong comes "
            f"once in {years_text(self.years)} on this site"
        )


@dataclass(frozen=True)
class Suspicion:
    """Evidence for a drop that is over the watch limit, and not yet enough for an alarm."""

    since: datetime
    ratio: Ratio
    score: float
    limit: float

    def text(self) -> str:
        """Return it in words that can be read aloud."""
        return (
            f"since about {self.since:%Y-%m-%d}: {ratio_text(self.ratio)} its former level; "
            f"evidence {self.score:.1f} of the {self.limit:g} that an alarm needs"
        )


@dataclass(frozen=True)
class Following:
    """A series' chart and the runs that it saw.

    `rows` are the places of these runs among the samples, `times` their times (UTC) and `values`
    their values, as the chart got them.
    """

    rows: NDArray[np.int_]
    times: Times
    values: NDArray[np.float64]
    chart: Chart
    budget: Budget

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """All lasting changes, in the order in which they were found."""
        return tuple(change_of(alarm, self.times, self.budget) for alarm in self.chart.alarms)

    @cached_property
    def settled(self) -> tuple[Change, ...]:
        """All lasting changes that were too small to matter, in the order of their finding."""
        return tuple(change_of(alarm, self.times, self.budget) for alarm in self.chart.settled)

    @cached_property
    def open_change(self) -> Change | None:
        """The change that lasts, or None."""
        alarm = self.chart.open_alarm
        return change_of(alarm, self.times, self.budget) if alarm else None

    @cached_property
    def suspicion(self) -> Suspicion | None:
        """What `watch` is about, or None."""
        suspected = self.chart.suspicion
        if suspected is None:
            return None
        since, ratio = suspected
        score = float(self.chart.down[-1])
        return Suspicion(moment(self.times[since]), ratio, score, self.chart.limit)

    @cached_property
    def power(self) -> float:
        """How many runs it takes on average to see a drop of 30 %; infinite if it is not seen."""
        return power(self.chart, TOLD_DROP)

    def power_text(self) -> str:
        """Return the power in words."""
        lost = f"a drop of {100 * (1 - TOLD_DROP):.0f} %"
        if not self.chart.can_judge:
            return f"{lost} cannot be seen yet"
        if not math.isfinite(self.power):
            return f"{lost} would not be seen on this series"
        return f"{lost} would be seen after about {math.ceil(self.power)} runs"

    @cached_property
    def healthy(self) -> NDArray[np.bool_]:
        """Which runs may teach a band: those in no alarm."""
        found = np.ones(len(self.rows), dtype=bool)
        for alarm in self.chart.alarms:
            found[alarm.onset : alarm.ended] = False
        return found


def follow_series(
    history: History,
    rows: NDArray[np.int_],
    band: Band | None,
    budget: Budget,
    draw: Draw = drawn,
    least: float | None = None,
) -> Following:
    """Return the chart of the samples at `rows`, which are in the order of time.

    `least` is by which share the level must be off for an alarm, `LEAST` unless told otherwise.
    """
    values, times = history.values[rows], history.times[rows]
    fine = np.isfinite(values) & (values > 0)
    if not fine.all():
        rows, values, times = rows[fine], values[fine], times[fine]
    chart = draw(values, band, budget.limit, LEAST if least is None else least)
    return Following(rows, times, values, chart, budget)


def change_of(alarm: Alarm, times: Times, budget: Budget) -> Change:
    """Return `alarm` in terms of `times`, one a run of its chart."""
    return Change(
        direction=alarm.direction,
        since=moment(times[alarm.onset]),
        since_low=moment(times[alarm.onset_low]),
        since_high=moment(times[alarm.onset_high]),
        raised=moment(times[alarm.raised]),
        ratio=alarm.ratio,
        score=alarm.score,
        limit=alarm.limit,
        years=budget.years_to_false_alarm(alarm.score),
        ended=None if alarm.ended is None else moment(times[min(alarm.ended, len(times) - 1)]),
        end=alarm.end,
    )


def runs_a_year(times: Times) -> float:
    """Return how often a series with runs at `times`, in their order, runs in a year.

    Reckoned from its newest year by the usual gap between days with runs, so that a time without
    runs does not change it: a limit that falls during a gap would raise alarms about the past. A
    series younger than a month is taken to run daily.
    """
    if len(times) < 2 or times[-1] - times[0] < _ENOUGH_TIME:  # noqa: PLR2004
        return DAILY
    recent = times[np.searchsorted(times, times[-1] - _YEAR) :]
    days = np.unique(recent.astype("datetime64[D]"))
    if days[-1] - days[0] < _ENOUGH_TIME:
        return DAILY
    gap = np.median(np.diff(days).astype(float))
    return DAILY * max(1, round(len(recent) / len(days))) / float(gap)


def utc(samples: pd.DataFrame) -> Times:
    """Return the times of `samples` in UTC, of shape (samples,)."""
    return samples["job_completion_time"].to_numpy(dtype="datetime64[ns]")


def in_utc(when: datetime) -> np.datetime64:
    """Return `when`, which has an offset, as the times of samples are told."""
    return np.datetime64(when.astimezone(timezone.utc).replace(tzinfo=None), "ns")


def moment(time: np.datetime64) -> datetime:
    """Return `time`, which is in UTC, to the second."""
    seconds = int(time.astype("datetime64[s]").astype(np.int64))
    return datetime.fromtimestamp(seconds, tz=timezone.utc)


def ratio_text(ratio: Ratio) -> str:
    """Return a ratio with its interval, such as `0.71 × (0.66–0.77)`."""
    if math.isnan(ratio.value):
        return "no run to compare"
    if not (math.isfinite(ratio.high) and ratio.low > 0):
        return f"{ratio.value:.2f} × (too few runs to say how sure)"
    return f"{ratio.value:.2f} × ({ratio.low:.2f}–{ratio.high:.2f})"


def span_text(when: datetime, low: datetime, high: datetime) -> str:
    """Return a day with the days between which it may lie, such as `2026-11-03 (11-01 to 11-05)`.

    Within one day the times are told instead.
    """
    if low == high:
        return f"{when:%Y-%m-%d}"
    if low.date() == high.date():
        return f"{when:%Y-%m-%d %H:%M} ({low:%H:%M} to {high:%H:%M})"
    form = "%m-%d" if low.year == high.year == when.year else "%Y-%m-%d"
    return f"{when:%Y-%m-%d} ({low.strftime(form)} to {high.strftime(form)})"


def is_drop(change: Change | None) -> bool:
    """Tell whether `change` is one for the worse."""
    return change is not None and change.direction == DOWN


def years_text(years: float) -> str:
    """Return a number of years in words."""
    many = 1000
    if years >= many:
        return "more than 1000 years"
    if years >= 2:  # noqa: PLR2004
        return f"{years:.0f} years"
    return "a year" if years >= 0.95 else f"{max(1, round(years * 12))} months"  # noqa: PLR2004
