"""Simulations of series that are measured again while something is suspected.

Rates vary by an Ornstein-Uhlenbeck process and by noise that is independent in each run; trouble
comes and ends by itself. The detector and its reasons to measure again are the real ones. The
planner is simplified: in addition to the daily run, one every four hours while there is a reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.alarms.charts import follow
from benchmarks.alarms.figures import NEVER, Delays
from benchmarks.alarms.simulate import LARGE, YEAR, threshold_of
from benchmarks.alarms.worlds import WORLDS, Array, Random
from iobands.judge.detect.chart import Chart, doubtful
from iobands.judge.detect.prior import Measured, Month, Prior, priors_of
from iobands.judge.detect.spacing import Spacing
from iobands.snapshot import DOWN

#: The most runs per day, including the daily one.
A_DAY: Final = 6
_PAST: Final = 200
_FURTHER: Final = 20 * A_DAY
_QUIET: Final = 20
_LONGEST: Final = 100
_LEARNED_FROM: Final = 60
# the share of runs that are low enough to be measured again
_FAR: Final = 0.05
# The share of the variance that is independent in each run, by the correlation from day to day;
# and the time constant, in hours, of the rest if that correlation is 0.
_NEW: Final = {0.0: 0.4, 0.3: 0.4, 0.6: 0.2}
_FADES: Final = 2.0
# Trouble lasts from one to twelve hours, and leaves this share of the rate.
_LASTS: Final = (1.0, 12.0)
_LEAVES: Final = (0.25, 0.75)
STEADY: Final = "spread of 1 %"
_WORLDS: Final = {**WORLDS, STEADY: lambda normal: 0.01 * normal}


@dataclass(frozen=True)
class Weather:
    """The logarithms of the rates that series would measure at `A_DAY` times per day."""

    values: Array

    @classmethod
    def drawn(
        cls, random: Random, world: str, correlation: float, trouble: float, series: int, days: int
    ) -> Weather:
        """Draw healthy series that are in trouble for a share `trouble` of the time."""
        step, size = 24 / A_DAY, days * A_DAY
        share = _NEW[correlation]
        day = correlation / (1 - share) or math.exp(-24 / _FADES)
        kept = day ** (step / 24)
        lasting = random.standard_normal((series, size))
        for at in range(1, size):
            fresh = math.sqrt(1 - kept**2) * lasting[:, at]
            lasting[:, at] = kept * lasting[:, at - 1] + fresh
        new = random.standard_normal((series, size))
        normal = math.sqrt(1 - share) * lasting + math.sqrt(share) * new
        values = _WORLDS[world](normal)
        rate = trouble / np.mean(_LASTS) * days * 24
        for one in range(series):
            for begun in random.uniform(0, days * 24, random.poisson(rate)):
                until = begun + random.uniform(*_LASTS)
                low = slice(math.ceil(begun / step), math.ceil(until / step))
                values[one, low] += math.log(random.uniform(*_LEAVES))
        return cls(values)


def _followed(
    values: Array, past: Array, threshold: float, prior: Prior, *, again: bool, stop: bool
) -> tuple[Chart, Array]:
    """Return the chart of a series, and the indices of its runs on the grid.

    With `again` it is measured again while there is a reason; with `stop` its runs end at an alarm.
    """
    known = (Month(0, threshold, prior),)
    every, until = np.arange(0, len(values), A_DAY), len(values)
    while True:
        places = every[every < until]
        chart = follow(
            np.exp(values[places]), history=np.exp(past), months=known, spacing=_spacing(places)
        )
        raised = next((each.raised for each in chart.changes if each.direction == DOWN), None)
        if stop and raised is not None:
            until = int(places[raised]) + 1
        elif until < len(values):  # the additional runs delayed the alarm
            until = min(until + _FURTHER, len(values))
            continue
        wanted = places[_doubted(chart)] + 1
        wanted = np.setdiff1d(wanted[wanted < until], places)
        if not again or not len(wanted):
            return chart, places
        # whether a run is wanted depends on those shortly before: add the first of each group
        first = np.append(True, np.diff(wanted) > 3 * A_DAY)
        every = np.union1d(every, wanted[first])


def _spacing(places: Array) -> Spacing:
    """Return the spacing of these runs, of a series that has long been measured every day."""
    spacing = Spacing(places * 24.0 / A_DAY, places % A_DAY > 0)
    spacing.__dict__["usual"] = np.full(len(places), 24.0)
    return spacing


def _doubted(chart: Chart) -> Array:
    """Mark the runs after which another one is wanted, as `Detection.doubt` does for the newest."""
    found = doubtful(chart)
    for change in chart.changes:
        if change.direction == DOWN:
            closed = chart.runs if change.closed is None else change.closed
            found[change.raised : closed] = True
    return found


def prior_for(world: str, correlation: float, trouble: float, random: Random) -> Prior:
    """Return the prior learned from `_LEARNED_FROM` series of a file system in `_PAST` days."""
    weather = Weather.drawn(random, world, correlation, trouble, _LEARNED_FROM, _PAST)
    grid = np.arange(_PAST * A_DAY)
    times = np.datetime64("2026-01-01", "ns") + grid * np.timedelta64(24 // A_DAY, "h")
    series = []
    for values in weather.values:
        # a low run is measured again, until a run is not low
        low, kept = values < np.quantile(values, _FAR), grid % A_DAY == 0
        for place in np.flatnonzero(low[:-1]):
            kept[place + 1] |= kept[place]
        series.append(Measured(times[kept], values[kept], grid[kept] % A_DAY > 0))
    return priors_of(series, times[-1:] + np.timedelta64(1, "D"))[0]


def delays(
    world: str, correlation: float, trouble: float, factor: float, number: int, seed: int
) -> tuple[Delays, Delays]:
    """Return the days from a loss to its alarm: with daily runs only, and when measured again."""
    random = np.random.default_rng(seed)
    prior = prior_for(world, correlation, trouble, random)
    days = _PAST + _QUIET + _LONGEST
    weather = Weather.drawn(random, world, correlation, trouble, number, days)
    found: tuple[list[float], list[float]] = ([], [])
    for every in weather.values:
        onset = (_QUIET + random.uniform()) * A_DAY
        past, values = every[: _PAST * A_DAY : A_DAY], every[_PAST * A_DAY :].copy()
        values[math.ceil(onset) :] += math.log(factor)
        for again, into in enumerate(found):
            chart, places = _followed(
                values, past, threshold_of(LARGE), prior, again=bool(again), stop=True
            )
            drops = [each for each in chart.changes if each.direction == DOWN]
            if drops and places[drops[0].raised] < onset:
                continue  # a false alarm
            raised = (places[drops[0].raised] - onset) / A_DAY if drops else NEVER
            into.append(float(raised))
    return Delays(tuple(found[0]), _LONGEST), Delays(tuple(found[1]), _LONGEST)


def year(
    world: str, correlation: float, trouble: float, number: int, seed: int
) -> tuple[int, int, float, int]:
    """Simulate a year of healthy series, with daily runs only and measured again.

    Return the false drops of either, the share of additional runs, and the number of series.
    """
    random = np.random.default_rng(seed)
    prior = prior_for(world, correlation, trouble, random)
    weather = Weather.drawn(random, world, correlation, trouble, number, _PAST + YEAR)
    false, runs = [0, 0], [0, 0]
    for every in weather.values:
        past, values = every[: _PAST * A_DAY : A_DAY], every[_PAST * A_DAY :]
        for again in (0, 1):
            chart, places = _followed(
                values, past, threshold_of(LARGE), prior, again=bool(again), stop=False
            )
            false[again] += sum(each.direction == DOWN for each in chart.changes)
            runs[again] += len(places)
    return false[0], false[1], runs[1] / runs[0] - 1, number


def recoveries(
    world: str, correlation: float, factor: float, number: int, seed: int
) -> tuple[Delays, Delays]:
    """Return the days from repair to the end of a 20-day-old alert, daily and measured again."""
    random = np.random.default_rng(seed)
    prior = prior_for(world, correlation, 0.0, random)
    known = (Month(0, threshold_of(LARGE), prior),)
    weather = Weather.drawn(random, world, correlation, 0.0, number, _PAST + 3 * _QUIET)
    found: tuple[list[float], list[float]] = ([], [])
    for every in weather.values:
        past, values = every[: _PAST * A_DAY : A_DAY], every[_PAST * A_DAY :].copy()
        repaired = (_QUIET + random.uniform()) * A_DAY
        values[: math.ceil(repaired)] += math.log(factor)
        for again, into in enumerate(found):
            places = np.arange(0, _QUIET * A_DAY + 1, A_DAY)
            ended = NEVER
            while places[-1] < len(values) - A_DAY:
                spacing = _spacing(places)
                measured = np.exp(values[places])
                chart = follow(measured, history=np.exp(past), months=known, spacing=spacing)
                if not chart.changes or chart.changes[-1].direction != DOWN:
                    break  # never found
                if chart.open_change is None:
                    ended = float(places[-1] - repaired) / A_DAY
                    break
                step = 1 if again and chart.back > 0 else A_DAY - places[-1] % A_DAY
                places = np.append(places, places[-1] + step)
            if chart.changes:
                into.append(ended)
    return Delays(tuple(found[0]), 2 * _QUIET), Delays(tuple(found[1]), 2 * _QUIET)
