"""One series through the detector: its samples in, changes in terms of time out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.bands import Band
from iobands.detection.change_point import ChangePoint
from iobands.detection.chart import Chart
from iobands.detection.detector import DEGRADED, LEAST, follow
from iobands.detection.prior import Prior
from iobands.detection.threshold import power, runs_between_false_alarms, threshold_for
from iobands.model.history import History, Times
from iobands.snapshot.change import DOWN, LARGE_DROP, Change, Evidence, Suspicion

#: The drops, as ratios, that the power of a series is given for.
POWER_DROPS: Final = (0.8, LARGE_DROP)
#: How often a series runs in a year while it is too young to know.
DAILY: Final = 365.0
_YEAR: Final = np.timedelta64(365, "D")
_ENOUGH_TIME: Final = np.timedelta64(30, "D")
_QUARTERS: Final = 4


@dataclass(frozen=True)
class Budget:
    """The false-alarm budget of a site; `runs_a_year` is of all series and groups together."""

    false_alarms_a_year: float = 1.0
    runs_a_year: float = DAILY

    @cached_property
    def threshold(self) -> float:
        """The evidence for an alert, in nats, rounded up to a quarter, `DEGRADED` at the least.

        Rounded, because the runs a year are an estimate that changes every day, and an alert must
        not come and go with it.
        """
        exact = threshold_for(self.false_alarms_a_year, 1, max(self.runs_a_year, 1.0))
        return max(DEGRADED, math.ceil(exact * _QUARTERS) / _QUARTERS)

    def years_to_false_alarm(self, score: float) -> float:
        """Return the mean number of years between false alarms of `score` on this site."""
        return runs_between_false_alarms(score) / max(self.runs_a_year, 1.0)


@dataclass(frozen=True)
class Detection:
    """The chart of a series and the runs that it saw.

    `rows` are the places of these runs among the samples, `times` are in UTC, `values` in the
    unit of the series.
    """

    rows: NDArray[np.int_]
    times: Times
    values: NDArray[np.float64]
    chart: Chart

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """All lasting changes in the order of time; the last may be open."""
        return tuple(change_of(point, self.times) for point in self.chart.changes)

    @property
    def open_change(self) -> Change | None:
        """The change that lasts, or None."""
        return self.changes[-1] if self.chart.open_change else None

    @cached_property
    def suspicion(self) -> Suspicion | None:
        """What `watch` is about, or None."""
        suspected = self.chart.suspicion
        if suspected is None:
            return None
        since, ratio = suspected
        return Suspicion(
            moment(self.times[since]),
            ratio,
            float(np.exp(np.median(self.chart.baseline.level()))),
            float(self.chart.down[-1]),
            self.chart.threshold,
        )

    def evidence(self, *, with_power: bool) -> Evidence:
        """Return what there is to say of it; `with_power` takes its time."""
        chart = self.chart
        level = chart.baseline.level()
        delays = {f"{drop:g}": power(chart, drop) for drop in POWER_DROPS} if with_power else {}
        return Evidence(
            self.rows,
            chart.down,
            chart.up,
            self.changes,
            self.suspicion,
            chart.watch,
            chart.threshold,
            chart.can_judge,
            float(np.exp(np.median(level))) if chart.can_judge else None,
            len(chart.baseline.runs),
            chart.baseline.correlation,
            chart.scale,
            {drop: runs if math.isfinite(runs) else None for drop, runs in delays.items()},
        )

    @cached_property
    def healthy(self) -> NDArray[np.bool_]:
        """Which runs are in no drop and in no open change: a band may be learned from them."""
        found = np.ones(len(self.rows), dtype=bool)
        for point in self.chart.changes:
            if point.is_open or point.direction == DOWN:
                found[point.onset : point.ended] = False
        return found


def detect(
    history: History,
    rows: NDArray[np.int_],
    band: Band | None,
    budget: Budget,
    prior: Prior = Prior(),  # noqa: B008 (frozen)
    least: float | None = None,
) -> Detection:
    """Return the detection on the samples at `rows`, which are in the order of time.

    `prior` is what all series of the file system say about one of them, `least` the smallest
    change of level that counts, `LEAST` unless given.
    """
    values, times = history.values[rows], history.times[rows]
    measured = np.isfinite(values) & (values > 0)
    if not measured.all():
        rows, values, times = rows[measured], values[measured], times[measured]
    least = LEAST if least is None else least
    chart = follow(values, band, threshold=budget.threshold, least=least, prior=prior)
    return Detection(rows, times, values, chart)


def change_of(point: ChangePoint, times: Times) -> Change:
    """Return `point` in terms of `times`, one a run of its chart."""
    return Change(
        direction=point.direction,
        since=moment(times[point.onset]),
        since_low=moment(times[point.onset_low]),
        since_high=moment(times[point.onset_high]),
        raised=moment(times[point.raised]),
        ratio=point.ratio,
        baseline=math.exp(point.baseline),
        score=point.score,
        threshold=point.threshold,
        ended=None if point.ended is None else moment(times[min(point.ended, len(times) - 1)]),
        end=point.end,
        delay=point.raised - point.onset + 1,
    )


def runs_a_year(times: Times) -> float:
    """Return how often a series with runs at the ordered `times` runs in a year.

    From its newest year by the usual gap between days with runs, so that a pause does not change
    it: a threshold that falls during a pause would raise alerts about the past. A series younger
    than a month counts as daily.
    """
    if len(times) < 2 or times[-1] - times[0] < _ENOUGH_TIME:  # noqa: PLR2004
        return DAILY
    recent = times[np.searchsorted(times, times[-1] - _YEAR) :]
    days = np.unique(recent.astype("datetime64[D]"))
    if days[-1] - days[0] < _ENOUGH_TIME:
        return DAILY
    gap = np.median(np.diff(days).astype(float))
    return DAILY * max(1, round(len(recent) / len(days))) / float(gap)


def in_utc(when: datetime) -> np.datetime64:
    """Return `when`, which has an offset, as numpy time in UTC."""
    return np.datetime64(when.astimezone(timezone.utc).replace(tzinfo=None), "ns")


def moment(time: np.datetime64) -> datetime:
    """Return `time`, which is in UTC, to the second."""
    seconds = int(time.astype("datetime64[s]").astype(np.int64))
    return datetime.fromtimestamp(seconds, tz=timezone.utc)
