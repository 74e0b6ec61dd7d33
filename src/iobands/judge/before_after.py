"""Before and after a change: the shift of a level, its interval, and which shifts are claimed.

The runs of a series are a level, what lasts from run to run, and what is new in each run, as in
`spacing.py`. Generalized least squares with these covariances give the step between the two sides.
So a burst of runs says little more than its day, and an evening no more than days differ. Values
far from their side's level are drawn in to three standard deviations. A group is measured as a
series of its own: the mean of its members, session by session, whatever they have in common.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.judge.detect import DAY, FADES, NEW, correlation_of
from iobands.snapshot import MARGIN, Array, Flags, Ratio, ShiftVerdict

#: At most one report in twenty makes a false claim, all of its rows together.
ERROR: Final = 0.05
#: The power of the losses that are called visible.
POWER: Final = 0.9

_FEWEST_DAYS: Final = 5
_CLIP: Final = 3.0
_LEAST_SPREAD: Final = 0.003
# The correlation of a series with fewer runs is mostly taken from the others.
_ASSUMED_RUNS: Final = 20
_CORRELATION: Final = 0.3
_MOST: Final = 0.95
_SAID: Final = 4
_LEAST_NEW: Final = 0.02
_UNSURE: Final = 1.1
# How many of the newest runs before count for the step.
_NEAREST: Final = 60
# few degrees of freedom, as the tails are heavier than a normal distribution's
_FREEDOM: Final = (3.0, 15.0)
# A bad day: beyond three standard deviations, and half the shift. One in 200 is assumed where none
# was seen, and three in ten are followed by another, or as many as what lasts is the same then.
_BAD_DAYS: Final = (0.5, 100.0)
_AGAIN: Final = 0.3
_FUTURE: Final = (1, 2, 3, 4, 5, 6, 7, 10, 14, 21, 30, 45, 60)
_NORMAL: Final = NormalDist()


@dataclass(frozen=True)
class Unit:
    """The runs of a series or a group: `hours` since any time, in order, and `logs` of values.

    A `share` of a series' variance is new in each run; the mean of `members` series has that much
    less. A change within a factor `margin` does not count.
    """

    hours: Array
    logs: Array
    is_after: Flags
    share: float = NEW
    members: int = 1
    margin: float = MARGIN

    @property
    def new(self) -> float:
        """The largest share of what varies that is new in each run."""
        return max(self.share / self.members, _LEAST_NEW)

    def only(self, kept: Flags) -> Unit:
        """Return the runs that are `kept`."""
        hours, logs, is_after = self.hours[kept], self.logs[kept], self.is_after[kept]
        return replace(self, hours=hours, logs=logs, is_after=is_after)

    def until(self, hour: float) -> Unit:
        """Return the runs by then."""
        return self.only(self.hours <= hour)

    @cached_property
    def usual(self) -> Usual | None:
        """How it varied before, if nothing is known of other series."""
        return Usual.of(self)

    @property
    def counts(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """How many runs and days each side has."""
        before, after = self.hours[~self.is_after], self.hours[self.is_after]
        return (len(before), len(_days(before))), (len(after), len(_days(after)))


def _days(hours: Array) -> Array:
    """Return the hour of the first run of each day."""
    return hours[np.diff(_day_of(hours), prepend=-1) > 0]


def _day_of(hours: Array) -> NDArray[np.int_]:
    """Return the number of the day of each run.

    A day begins after 12 hours without a run, or 24 after the first.
    """
    apart = np.diff(hours, prepend=-np.inf) > DAY / 2
    first = hours[np.maximum.accumulate(np.where(apart, np.arange(len(hours)), 0))]
    begins = apart | (np.diff((hours - first) // DAY, prepend=0.0) > 0)
    return np.cumsum(begins) - 1


def _levels(hours: Array, logs: Array) -> tuple[Array, float, int]:
    """Return the median of each day, and the squares of the runs around their day's mean.

    Also the degrees of freedom of these squares.
    """
    of_day = _day_of(hours)
    ordered = logs[np.lexsort((logs, of_day))]
    counts = np.bincount(of_day)
    first = np.cumsum(counts) - counts
    medians = (ordered[first + (counts - 1) // 2] + ordered[first + counts // 2]) / 2
    means = np.bincount(of_day, logs) / counts
    squares = float(np.sum((logs - means[of_day]) ** 2))
    return medians, squares, len(logs) - len(counts)


@dataclass(frozen=True)
class Usual:
    """How a unit varied before: its `level`, `spread`, serial `correlation`, and days.

    `new` is the share of the variance that is new in each run, and `residuals` are of days.
    """

    level: float
    spread: float
    correlation: float
    new: float
    gap: float
    residuals: Array

    @classmethod
    def of(cls, unit: Unit, correlation: float = _CORRELATION) -> Usual | None:
        """Return how it varied; None with too few days. `correlation` is known from others."""
        correlation *= (1 - unit.new) / (1 - unit.share)
        hours, logs = unit.hours[~unit.is_after], unit.logs[~unit.is_after]
        first = _days(hours)
        if (number := len(first)) < _FEWEST_DAYS:
            return None
        days, squares, freedom = _levels(hours, logs)
        level = float(np.median(days))
        residuals = days - level
        rough = max(1.4826 * float(np.median(np.abs(residuals))), _LEAST_SPREAD)
        drawn = np.clip(logs - level, -_CLIP * rough, _CLIP * rough)
        of_day = _day_of(hours)
        each = np.bincount(of_day, drawn**2) / np.bincount(of_day)
        spread = max(float(np.sqrt(np.mean(each))), _LEAST_SPREAD)
        own = correlation_of(residuals)
        shared = (number * own + _ASSUMED_RUNS * correlation) / (number + _ASSUMED_RUNS)
        if unit.is_after.any():
            _, more, further = _levels(unit.hours[unit.is_after], unit.logs[unit.is_after])
            squares, freedom = squares + more, freedom + further
        # as if some more runs had said the usual
        new = (squares / spread**2 + _SAID * unit.new) / (freedom + _SAID)
        new = min(max(new, _LEAST_NEW), unit.new)
        gap = max(float(np.median(np.diff(first))), 1.0)
        found = cls(level, spread, shared, new, gap, residuals)
        # the level comes from the same days, and the more so the longer a day's level lasts
        hidden = float(np.mean(found.covariance(first))) / spread**2
        return replace(found, spread=spread / math.sqrt(max(1 - hidden, 0.2)))

    @cached_property
    def kept(self) -> float:
        """The correlation of what lasts, at the usual gap."""
        known = self.correlation / (1 - self.new)
        return min(max(known, math.exp(-self.gap / FADES)), _MOST)

    @property
    def again(self) -> float:
        """How often a bad day is followed by another."""
        return max(_AGAIN, self.kept)

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the spread."""
        worth = len(self.residuals) * (1 - self.correlation) / (1 + self.correlation)
        return min(max(worth - 1, _FREEDOM[0]), _FREEDOM[1])

    def covariance(self, hours: Array) -> Array:
        """Return the covariances of runs at `hours`."""
        lasting = np.exp(math.log(self.kept) / self.gap * np.abs(hours[:, None] - hours))
        found: Array = self.spread**2 * ((1 - self.new) * lasting + self.new * np.eye(len(hours)))
        return found

    def mistaken(self, shift: float, days: int) -> float:
        """Return how often most of so many `days` are as bad, or as good, as a shift by chance."""
        depth = max(_CLIP * self.spread, abs(shift) / 2)
        seen = np.count_nonzero(np.sign(shift) * self.residuals >= depth)
        bad = float((seen + _BAD_DAYS[0]) / (len(self.residuals) + _BAD_DAYS[1]))
        return bad * self.again ** (days // 2)


@dataclass(frozen=True)
class Fit:
    """The step of a unit, as logarithm, and its standard error; `days` are those after it."""

    usual: Usual
    step: float
    error: float
    days: int

    @cached_property
    def p(self) -> float:
        """How often chance gives such a step, if nothing changed: by noise, or by bad days."""
        noise = 2 * _NORMAL.cdf(-_as_normal(abs(self.step) / self.error, self.usual.freedom))
        return min(1.0, noise + self.mistaken)

    @property
    def mistaken(self) -> float:
        """How often most of the days after are as bad as the step by chance."""
        return self.usual.mistaken(self.step, self.days)

    def half_width(self, error: float) -> float:
        """Return the half-width of the interval that is wrong with probability `error`."""
        return _quantile(error, self.usual.freedom) * self.error


def _as_normal(t: float, freedom: float) -> float:
    """Return the normal deviate of Student's t (Wallace, Ann. Math. Statist. 30, 1959)."""
    factor = (8 * freedom + 1) / (8 * freedom + 3)
    return factor * math.sqrt(freedom * math.log1p(t * t / freedom))


def _quantile(error: float, freedom: float) -> float:
    """Return the two-sided quantile of Student's t, the inverse of `_as_normal`."""
    normal = -_NORMAL.inv_cdf(max(error, 1e-12) / 2) * (8 * freedom + 3) / (8 * freedom + 1)
    return math.sqrt(freedom * math.expm1(min(normal * normal / freedom, 700.0)))


def fit(unit: Unit, usual: Usual) -> Fit:
    """Return the step of a unit that has runs after."""
    days = _levels(unit.hours[unit.is_after], unit.logs[unit.is_after])[0]
    # of the middle days the one nearer to the level before: one bad day of two is no level
    nearest = sorted(days, key=lambda each: abs(each - usual.level))
    centre = nearest[0] if len(days) == 2 else float(np.median(days))  # noqa: PLR2004
    reach = _CLIP * usual.spread
    level = np.where(unit.is_after, centre, usual.level)
    logs = np.clip(unit.logs, level - reach, level + reach)
    step, error = _solved(usual, unit.hours, unit.is_after, logs - usual.level)
    return Fit(usual, step, error, len(days))


def _solved(usual: Usual, hours: Array, is_after: Flags, logs: Array) -> tuple[float, float]:
    kept = slice(max(int(np.count_nonzero(~is_after)) - _NEAREST, 0), None)
    hours, is_after, logs = hours[kept], is_after[kept], logs[kept]
    design = np.stack([np.ones(len(hours)), is_after.astype(float)], axis=1)
    # the error is raised for what the correlation may be off by
    solved = np.linalg.solve(_UNSURE**2 * usual.covariance(hours), np.column_stack([design, logs]))
    inverse = np.linalg.inv(design.T @ solved[:, :2])
    return float((inverse @ (design.T @ solved[:, 2]))[1]), float(math.sqrt(inverse[1, 1]))


@dataclass(frozen=True)
class Ruling:
    """What is said of a unit; its row may be wrong with probability `error`."""

    unit: Unit
    fit: Fit
    error: float
    outcome: ShiftVerdict

    @property
    def ratio(self) -> Ratio:
        """After over before, with an interval that holds for this row alone."""
        wide = self.fit.half_width(ERROR)
        return Ratio(*(math.exp(self.fit.step + each) for each in (0, -wide, wide)))

    @property
    def bound(self) -> float:
        """The largest change that is left open, as a share."""
        return math.expm1(abs(self.fit.step) + self.fit.half_width(self.error))

    @property
    def visible(self) -> float | None:
        """The smallest loss that these runs show with a power of `POWER`, as a share."""
        return _visible(self.fit.usual, self.fit.error, self.fit.days, self.error)

    def more(self) -> int | None:
        """Return how many more days with a run decide; None if sixty do not."""
        step = abs(self.fit.step)
        usual, margin = self.fit.usual, math.log(self.unit.margin)
        for days in _FUTURE:
            later = self.unit.hours[-1] + DAY * np.arange(1, days + 1)
            wide = _quantile(self.error, usual.freedom) * _error_with(self.unit, usual, later)
            known = usual.mistaken(self.fit.step, self.fit.days + days)
            if step + wide <= margin or (step > wide and known < self.error / 2):
                return days
        return None


def usual_of(units: Mapping[str, Unit]) -> dict[str, Usual]:
    """Return how the units varied before, those with enough days."""
    known = [each.usual.correlation for each in units.values() if each.usual]
    typical = float(np.median(known)) if known else _CORRELATION
    found = {name: Usual.of(each, typical) for name, each in units.items()}
    return {name: each for name, each in found.items() if each}


def rule(
    units: Mapping[str, Unit], shares: Mapping[str, float], usual: Mapping[str, Usual]
) -> dict[str, Ruling]:
    """Return the rulings on all units of a report, whose claims share the error of it.

    A unit has the share of the error in `shares`, relative to the others, and of a claim the error
    goes to the rest (Holm, "A simple sequentially rejective multiple test procedure", Scand. J.
    Statist. 6, 1979, with weights). Units without enough days before, or a run after, have none.
    """
    ready = [name for name in usual if units[name].is_after.any()]
    found = {name: fit(units[name], usual[name]) for name in ready}
    left = sum(shares[name] for name in found)
    rulings, claims = {}, True
    for name in sorted(found, key=lambda each: found[each].p / shares[each]):
        one, error = found[name], ERROR * shares[name] / left
        claims = claims and one.p <= error
        if claims:
            outcome = ShiftVerdict.SLOWER if one.step < 0 else ShiftVerdict.FASTER
            left -= shares[name]
        else:
            small = abs(one.step) + one.half_width(error) <= math.log(units[name].margin)
            outcome = ShiftVerdict.NO_CHANGE if small else ShiftVerdict.UNDECIDED
        rulings[name] = Ruling(units[name], one, error, outcome)
    return {name: rulings[name] for name in units if name in rulings}


def since_alone(unit: Unit, hour: float, usual: Usual, direction: float) -> bool:
    """Return whether the runs after `hour` alone show a step in a direction, with error 2.5 %."""
    later = unit.only(~unit.is_after | (unit.hours > hour))
    if not later.is_after.any():
        return False
    alone = fit(later, usual)
    return direction * alone.step > alone.half_width(ERROR)


def forecast(unit: Unit, error: float, runs: int, days: int) -> float | None:
    """Return the smallest loss that would be seen, as a share; None if none.

    After the change come `runs` within twelve hours, and then one run on each of `days` from the
    next day on. `unit` has the runs before.
    """
    if (usual := unit.usual) is None:
        return None
    return _visible(usual, step_error(unit, usual, runs, days), days + (runs > 0), error)


def step_error(unit: Unit, usual: Usual, runs: int, days: int) -> float:
    """Return the standard error of the step to come; see `forecast`."""
    begin = unit.hours[-1] + DAY / 2
    later = [begin + np.arange(runs) / 10, begin + DAY * np.arange(1, days + 1)]
    return _error_with(unit, usual, np.concatenate(later))


def _error_with(unit: Unit, usual: Usual, later: Array) -> float:
    """Return the standard error of the step with further runs after it, at the hours `later`."""
    hours = np.append(unit.hours, later)
    is_after = np.append(unit.is_after, np.ones(len(later), bool))
    return _solved(usual, hours, is_after, np.zeros(len(hours)))[1]


def _visible(usual: Usual, wrong: float, days: int, error: float) -> float | None:
    loss = 0.0
    for _ in range(3):  # rarer bad days are as bad as a larger loss
        rest = error - usual.mistaken(-loss or -1e-9, days)
        if rest <= error / 10:
            if loss:
                return None
            rest = error / 10
        loss = (_quantile(rest, usual.freedom) + _NORMAL.inv_cdf(POWER)) * wrong
    return -math.expm1(-loss)


def grouped(units: Sequence[Unit], rounds: Sequence[Array]) -> Unit | None:
    """Return a group as a unit: the weighted mean of its members in each round.

    `rounds` has the number of the round of each run. A round counts if half of the members are in
    it. The steadier a member, the more it counts; its level before is its zero.
    """
    several = [(u, r, k) for u, r in zip(units, rounds, strict=True) if (k := u.usual)]
    with_after = [each for each in several if each[0].is_after.any()]
    several = with_after or several
    if len(several) < 2:  # noqa: PLR2004
        return None
    typical = float(np.median([known.spread for _, _, known in several])) ** 2
    # what most members do: one that has a bad day is drawn in
    steps = [
        float(np.median(unit.logs[unit.is_after])) - known.level for unit, _, known in with_after
    ]
    common = float(np.median(steps)) if steps else 0.0
    parts = []
    for unit, numbers, known in several:
        reach, moved = _CLIP * known.spread, np.where(unit.is_after, common, 0.0)
        drawn = np.clip(unit.logs - known.level - moved, -reach, reach) + moved
        weight = np.full(len(drawn), 1 / (known.spread**2 + typical))
        parts.append(np.stack([numbers, unit.hours, drawn, unit.is_after, weight]))
    number, hours, logs, is_after, weights = np.concatenate(parts, axis=1)
    sides = 2 * number + is_after
    rounds_of, place, counts = np.unique(sides, return_inverse=True, return_counts=True)
    total = np.bincount(place, weights)
    when = np.bincount(place, hours) / counts
    mean = np.bincount(place, weights * logs) / total
    order = np.argsort(when, kind="stable")
    order = order[counts[order] >= len(several) / 2]
    share = float(np.mean([unit.share for unit, _, _ in several]))
    return Unit(when[order], mean[order], rounds_of[order] % 2 == 1, share, len(several))
