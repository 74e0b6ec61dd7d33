"""The shift of a level from before to after a change, its interval, and which shifts are claimed.

A run is modelled as a level, a part that persists from run to run, and a part that is new in each
run, as in `spacing.py`. Generalized least squares with these covariances estimate the step between
the two sides, so a burst of runs tells little more than one run of its day. Values are clipped to
three standard deviations around the level of their side. A group is treated as one series, the
mean of its members session by session, so correlations between members need not be known.
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

#: At most this share of the reports makes a false claim in any of its rows.
ERROR: Final = 0.05
#: A loss is called visible if the runs show it with this probability.
POWER: Final = 0.9

_FEWEST_DAYS: Final = 5
_CLIP: Final = 3.0
_LEAST_SPREAD: Final = 0.003
# The correlation of a series with fewer days than this comes mostly from the other series.
_ASSUMED_DAYS: Final = 20
_CORRELATION: Final = 0.3
_MOST_KEPT: Final = 0.95
_ASSUMED_FREEDOM: Final = 4
_LEAST_NEW: Final = 0.02
_UNSURE: Final = 1.1
# For the step, the level before comes from this many of the newest runs before.
_NEAREST: Final = 60
# The fewest and most degrees of freedom: few, as tails are heavier than a normal distribution's.
_FREEDOM: Final = (3.0, 15.0)
# A day is bad beyond three standard deviations and half the shift. Half a bad day in 100 is added
# to those seen. Three in ten are followed by another one, or more where levels last (`kept`).
_BAD_DAYS: Final = (0.5, 100.0)
_AGAIN: Final = 0.3
_FUTURE: Final = (1, 2, 3, 4, 5, 6, 7, 10, 14, 21, 30, 45, 60)
_NORMAL: Final = NormalDist()


@dataclass(frozen=True)
class Unit:
    """The runs of a series or a group: ascending `hours` from any origin, and `logs` of the values.

    In each run, a `share` of the variance of one series is new; for the mean of `members` series it
    is divided by their number. A change within the factor `margin` does not count.
    """

    hours: Array
    logs: Array
    is_after: Flags
    share: float = NEW
    members: int = 1
    margin: float = MARGIN

    @property
    def new(self) -> float:
        """The largest share of the variance that may be new in each run."""
        return max(self.share / self.members, _LEAST_NEW)

    def only(self, kept: Flags) -> Unit:
        """Return the runs that are `kept`."""
        hours, logs, is_after = self.hours[kept], self.logs[kept], self.is_after[kept]
        return replace(self, hours=hours, logs=logs, is_after=is_after)

    @cached_property
    def usual(self) -> Usual | None:
        """How it varied before, without knowledge of other series; None with too few days."""
        return Usual.of(self)

    @property
    def counts(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The numbers of runs and of days, before and after."""
        before, after = self.hours[~self.is_after], self.hours[self.is_after]
        return (len(before), len(_days(before))), (len(after), len(_days(after)))


def _days(hours: Array) -> Array:
    """Return the hour of the first run of each day."""
    return hours[np.diff(_day_of(hours), prepend=-1) > 0]


def _day_of(hours: Array) -> NDArray[np.int_]:
    """Return the day of each run, numbered from 0.

    A day begins with a run after 12 hours without one, and every 24 hours from there on.
    """
    apart = np.diff(hours, prepend=-np.inf) > DAY / 2
    first = hours[np.maximum.accumulate(np.where(apart, np.arange(len(hours)), 0))]
    begins = apart | (np.diff((hours - first) // DAY, prepend=0.0) > 0)
    return np.cumsum(begins) - 1


def _levels(hours: Array, logs: Array) -> tuple[Array, float, int]:
    """Return day medians, the sum of squares around the day means, and its degrees of freedom."""
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
    """How a unit varied before: its `level`, `spread` and serial `correlation`, of logarithms.

    `new` is the share of the variance that is new in each run, `gap` the usual one between days, in
    hours, and `residuals` are the medians of the days less the level.
    """

    level: float
    spread: float
    correlation: float
    new: float
    gap: float
    residuals: Array

    @classmethod
    def of(cls, unit: Unit, correlation: float = _CORRELATION) -> Usual | None:
        """Return how a unit varied, None with too few days; `correlation` is known from others."""
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
        shared = (number * own + _ASSUMED_DAYS * correlation) / (number + _ASSUMED_DAYS)
        if unit.is_after.any():
            _, more, further = _levels(unit.hours[unit.is_after], unit.logs[unit.is_after])
            squares, freedom = squares + more, freedom + further
        # the usual share counts like some degrees of freedom
        new = (squares / spread**2 + _ASSUMED_FREEDOM * unit.new) / (freedom + _ASSUMED_FREEDOM)
        new = min(max(new, _LEAST_NEW), unit.new)
        gap = max(float(np.median(np.diff(first))), 1.0)
        found = cls(level, spread, shared, new, gap, residuals)
        # residuals are from the days' own level, which takes its variance out of the spread
        hidden = float(np.mean(found.covariance(first))) / spread**2
        return replace(found, spread=spread / math.sqrt(max(1 - hidden, 0.2)))

    @cached_property
    def kept(self) -> float:
        """The correlation of the persistent part over the usual gap."""
        known = self.correlation / (1 - self.new)
        return min(max(known, math.exp(-self.gap / FADES)), _MOST_KEPT)

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the spread."""
        worth = len(self.residuals) * (1 - self.correlation) / (1 + self.correlation)
        return min(max(worth - 1, _FREEDOM[0]), _FREEDOM[1])

    def covariance(self, hours: Array) -> Array:
        """Return the covariances of runs at `hours`, of shape (runs, runs)."""
        lasting = np.exp(math.log(self.kept) / self.gap * np.abs(hours[:, None] - hours))
        found: Array = self.spread**2 * ((1 - self.new) * lasting + self.new * np.eye(len(hours)))
        return found

    def mistaken(self, shift: float, days: int) -> float:
        """Return the probability that most of `days` days are as far off as `shift` by chance."""
        depth = max(_CLIP * self.spread, abs(shift) / 2)
        seen = np.count_nonzero(np.sign(shift) * self.residuals >= depth)
        bad = float((seen + _BAD_DAYS[0]) / (len(self.residuals) + _BAD_DAYS[1]))
        again = max(_AGAIN, self.kept)  # the probability that a bad day is followed by another
        return bad * again ** (days // 2)


@dataclass(frozen=True)
class Fit:
    """The step of a unit and its standard error, as logarithms; `days` is the number after it."""

    usual: Usual
    step: float
    error: float
    days: int

    @cached_property
    def p(self) -> float:
        """The probability of such a step by noise or by bad days, if nothing changed."""
        noise = 2 * _NORMAL.cdf(-_as_normal(abs(self.step) / self.error, self.usual.freedom))
        return min(1.0, noise + self.mistaken)

    @property
    def mistaken(self) -> float:
        """The probability that most days after it are as bad as the step by chance."""
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
    """Return the step of a unit, which must have runs after."""
    days = _levels(unit.hours[unit.is_after], unit.logs[unit.is_after])[0]
    # of two days the one nearer to the level before: a single bad day is no level
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
    # covariances are raised, as the correlation is only estimated
    solved = np.linalg.solve(_UNSURE**2 * usual.covariance(hours), np.column_stack([design, logs]))
    inverse = np.linalg.inv(design.T @ solved[:, :2])
    return float((inverse @ (design.T @ solved[:, 2]))[1]), float(math.sqrt(inverse[1, 1]))


@dataclass(frozen=True)
class Ruling:
    """The verdict on a unit; its row in a report may be wrong with probability `error`."""

    unit: Unit
    fit: Fit
    error: float
    outcome: ShiftVerdict

    @property
    def ratio(self) -> Ratio:
        """The level after over the level before; the interval holds for this row alone."""
        wide = self.fit.half_width(ERROR)
        return Ratio(*(math.exp(self.fit.step + each) for each in (0, -wide, wide)))

    @property
    def bound(self) -> float:
        """The largest change that is not ruled out, as a share."""
        return math.expm1(abs(self.fit.step) + self.fit.half_width(self.error))

    @property
    def visible(self) -> float | None:
        """The smallest loss that these runs show with a power of `POWER`, as a share."""
        return _visible(self.fit.usual, self.fit.error, self.fit.days, self.error)

    def more(self) -> int | None:
        """Return how many more days with one run each would decide, None if sixty would not."""
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
    """Return how each unit varied before, without those that have too few days."""
    known = [each.usual.correlation for each in units.values() if each.usual]
    typical = float(np.median(known)) if known else _CORRELATION
    found = {name: Usual.of(each, typical) for name, each in units.items()}
    return {name: each for name, each in found.items() if each}


def rule(
    units: Mapping[str, Unit], shares: Mapping[str, float], usual: Mapping[str, Usual]
) -> dict[str, Ruling]:
    """Return the rulings on the units of a report; all claims of the report share its error.

    `shares` are relative. The share of a unit that is claimed passes to the rest (Holm, "A simple
    sequentially rejective multiple test procedure", Scand. J. Statist. 6, 1979, with weights).
    Units with too few days before, or no run after, get no ruling.
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
    """Return the smallest loss that would be visible, as a share, or None.

    `unit` has the runs before. Twelve hours after its last one, `runs` in a row are assumed, and
    then one run on each of `days` days.
    """
    if (usual := unit.usual) is None:
        return None
    return _visible(usual, step_error(unit, usual, runs, days), days + (runs > 0), error)


def step_error(unit: Unit, usual: Usual, runs: int, days: int) -> float:
    """Return the standard error of the step with the runs that `forecast` assumes."""
    begin = unit.hours[-1] + DAY / 2
    later = [begin + np.arange(runs) / 10, begin + DAY * np.arange(1, days + 1)]
    return _error_with(unit, usual, np.concatenate(later))


def _error_with(unit: Unit, usual: Usual, later: Array) -> float:
    """Return the standard error of the step with further runs at the hours `later`."""
    hours = np.append(unit.hours, later)
    is_after = np.append(unit.is_after, np.ones(len(later), bool))
    return _solved(usual, hours, is_after, np.zeros(len(hours)))[1]


def _visible(usual: Usual, deviation: float, days: int, error: float) -> float | None:
    loss = 0.0
    for _ in range(3):  # the larger the loss, the rarer are days as bad as it
        rest = error - usual.mistaken(-loss or -1e-9, days)
        if rest <= error / 10:
            if loss:
                return None
            rest = error / 10
        loss = (_quantile(rest, usual.freedom) + _NORMAL.inv_cdf(POWER)) * deviation
    return -math.expm1(-loss)


def grouped(units: Sequence[Unit], rounds: Sequence[Array]) -> Unit | None:
    """Return a group as one unit: the weighted mean of its members in each session, or None.

    `rounds` are the sessions of each member's runs. A session counts if half of the members ran in
    it. Members count relative to their level before, and the steadier ones count more.
    """
    several = [(u, r, k) for u, r in zip(units, rounds, strict=True) if (k := u.usual)]
    with_after = [each for each in several if each[0].is_after.any()]
    several = with_after or several
    if len(several) < 2:  # noqa: PLR2004
        return None
    typical = float(np.median([known.spread for _, _, known in several])) ** 2
    # the median step of the members: values far from it, as on a bad day, are clipped
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
