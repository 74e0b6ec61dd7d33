"""Simulations of maintenances: false claims where nothing changed, and blind upgrades.

Part of the variation lasts from day to day, as in `asking_again`, and a third of that is common to
a file system. On a bad day a series is at 0.2 to 0.7 of its rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.alarms.simulate import LARGE
from benchmarks.alarms.worlds import WORLDS, Array, Random
from iobands.judge.account import SHARES
from iobands.judge.before_after import ERROR, Ruling, Unit, forecast, grouped, rule, usual_of
from iobands.snapshot import ShiftVerdict

#: Days of daily runs before a maintenance, and runs in a row right before and right after it.
BEFORE: Final = 60
EVENING: Final = 5
#: The days after the maintenance on which a report is made.
REPORTS: Final = (0, 3, 7, 14)
#: The loss that a report should show; `begin` says after how many days it will.
WANTED: Final = 0.05
_DAYS: Final = (0, 1, 2, 3, 5, 7, 10, 14, 21, 30)
_NEW: Final = 0.4
_FADES: Final = 2.0
_COMMON: Final = 1 / 3
_BAD: Final = 0.01
#: The spreads of a site's series, as in the real year, relative to the spread of a world.
_SPREADS: Final = (0.15, 0.3, 0.6, 1.0)
_FILE_SYSTEMS: Final = 3


@dataclass(frozen=True)
class Blind:
    """Reports on upgrades: how many upgrades were real, decided, and wrongly so; the mean days."""

    real: int
    upgrades: int
    decided: int
    wrong: int
    days: float


def shams(world: str, correlation: float, seed: int) -> list[bool]:
    """Return for each report on a sham upgrade of a large site whether it makes a false claim."""
    random = np.random.default_rng(seed)
    site = _site(random, world, correlation, LARGE, max(REPORTS))
    found = []
    for days in REPORTS:
        end = 24.0 * (BEFORE + days) + 1
        rulings = _ruled([each.until(end) for each in site])
        found.append(any(_claims(each) for each in rulings.values()))
    return found


def blind(world: str, correlation: float, number: int, seed: int) -> Blind:
    """Return how reports ruled on a number of upgrades of small sites, half of them sham.

    The others change one file system by 5 to 30 %, up or down. They are judged when `begin` says
    that a loss of 5 % will show, or after 30 days.
    """
    random = np.random.default_rng(seed)
    real = decided = wrong = 0
    days_of = []
    for one in range(number):
        size = random.uniform(0.05, 0.3)
        factor = 1.0 if one % 2 else 1 + size * random.choice((-1, 1))
        real += factor != 1
        site = _site(random, world, correlation, 24, max(_DAYS), factor)
        before = [each.until(24.0 * (BEFORE - 0.45)) for each in site]
        members = before[::_FILE_SYSTEMS]
        group = grouped(members, [np.arange(len(each.hours)) for each in members])
        assert group is not None
        error = ERROR * SHARES["site"] / (_FILE_SYSTEMS + 1)
        losses = {days: forecast(group, error, EVENING, days) for days in _DAYS}
        days = next((d for d, loss in losses.items() if loss and loss <= WANTED), max(_DAYS))
        rulings = _ruled([each.until(24.0 * (BEFORE + days) + 1) for each in site])
        ruling = rulings["file system 0"]
        days_of.append(days)
        decided += ruling.outcome is not ShiftVerdict.UNDECIDED
        wrong += _is_wrong(ruling, factor)
    return Blind(real, number, decided, wrong, float(np.mean(days_of)))


def _is_wrong(ruling: Ruling, factor: float) -> bool:
    if _claims(ruling):
        return (ruling.outcome is ShiftVerdict.SLOWER) != (factor < 1) or factor == 1
    is_none = ruling.outcome is ShiftVerdict.NO_CHANGE
    return is_none and abs(math.log(factor)) > math.log1p(ruling.bound)


def _claims(ruling: Ruling) -> bool:
    return ruling.outcome in {ShiftVerdict.SLOWER, ShiftVerdict.FASTER}


def _ruled(site: Sequence[Unit]) -> Mapping[str, Ruling]:
    """Return the rulings of a report on series, file systems and all."""
    units: dict[str, Unit] = {f"series {n}": each for n, each in enumerate(site)}
    groups = {"all": site} | {
        f"file system {n}": site[n::_FILE_SYSTEMS] for n in range(_FILE_SYSTEMS)
    }
    shares = dict.fromkeys(units, SHARES["series"] / len(units))
    for name, members in groups.items():
        unit = grouped(members, [np.arange(len(each.hours)) for each in members])
        if unit:
            units[name], shares[name] = unit, SHARES["site"] / len(groups)
    return rule(units, shares, usual_of(units))


def _site(
    random: Random, world: str, correlation: float, series: int, days: int, factor: float = 1.0
) -> list[Unit]:
    """Return the series of a site, with the first file system's changing by `factor`."""
    evening = np.arange(EVENING) / 10
    noon = 24.0 * BEFORE
    hours = np.concatenate(
        [24.0 * np.arange(BEFORE), noon - 10 + evening, noon + evening, noon + 24.0 * _after(days)]
    )
    is_after = hours >= noon
    day = correlation / (1 - _NEW) or math.exp(-24 / _FADES)
    root = np.linalg.cholesky(
        day ** (np.abs(hours[:, None] - hours) / 24) + 1e-9 * np.eye(len(hours))
    )
    common = [root @ random.standard_normal(len(hours)) for _ in range(_FILE_SYSTEMS)]
    number = np.floor(hours / 24).astype(int)
    found = []
    for one in range(series):
        own = root @ random.standard_normal(len(hours))
        place = one % _FILE_SYSTEMS
        lasting = math.sqrt(_COMMON) * common[place] + math.sqrt(1 - _COMMON) * own
        new = random.standard_normal(len(hours))
        normal = math.sqrt(1 - _NEW) * lasting + math.sqrt(_NEW) * new
        logs = random.choice(_SPREADS) * WORLDS[world](normal[None])[0]
        bad = random.random(number[-1] + 1) < _BAD
        depth = np.log(random.uniform(0.2, 0.7, number[-1] + 1))
        logs = logs + np.where(bad, depth, 0.0)[number]
        logs += math.log(factor) * (is_after & (place == 0))
        found.append(Unit(hours, logs, is_after))
    return found


def _after(days: int) -> Array:
    return np.arange(1, days + 1, dtype=float)
