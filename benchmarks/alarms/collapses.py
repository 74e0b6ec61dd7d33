"""How often a rise of the rate of collapses is told that is none, and how soon one that is.

File systems that run daily are looked at after each round, as `iobands status` does. May know:
numpy, the worlds, and what is measured: `iobands.alerts.collapses`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final

import numpy as np
from iobands.alerts.collapses import EARLIER, ENDING, LEAST_EARLIER, RECENT, compare, level_for
from iobands.alerts.file_systems import FALSE_RISES

from benchmarks.alarms.worlds import BANDS, Array, world
from iobands.bands import log_fence

#: How many file systems a site has.
SITES: Final = (1, 3, 10)
#: The share of rounds in which a collapse begins, and what it rises by.
SHARES: Final = (0.02, 0.05, 0.1)
RISES: Final = (2.0, 3.0, 5.0)
#: After how many rounds a rise shall have been told.
WITHIN: Final = (60, 150)
#: How many rounds a file system is followed for that does not change.
ROUNDS: Final = 1500
_DAILY: Final = 365.0
_TOLD_FOR: Final = 3  # file systems, where only one number of them is shown
_QUIET: Final = 30  # rounds without it, and the next rise counts as another one
_LEARNT_EVERY: Final = 5  # rounds, because it takes longer than the look
_KEPT: Final = RECENT + EARLIER + ENDING


@dataclass(frozen=True)
class Quiet:
    """File systems whose rate does not change: `series` each, with a floor `learnt` or not."""

    band: str
    tail: str
    correlation: float
    series: int = 1
    learnt: bool = False


@dataclass(frozen=True)
class FalseRises:
    """What was told in so many `looks`; `told` are the rises by the number of file systems."""

    case: Quiet
    file_systems: int
    looks: int
    rounds: int
    collapsed: int
    told: Mapping[int, int]

    def a_year(self, file_systems: int) -> float:
        """Return how many false rises a site has in a year."""
        return self.told[file_systems] / self.looks * _DAILY * file_systems

    def error(self, file_systems: int) -> float:
        """Return the standard error of `a_year`; of none, as if there were one."""
        return self.a_year(file_systems) / max(self.told[file_systems], 1) ** 0.5 or (
            _DAILY * file_systems / self.looks
        )


@dataclass(frozen=True)
class Found:
    """After how many rounds a rise was told, of each file system; infinite where it was not."""

    share: float
    rise: float
    delays: Array

    def within(self, rounds: int) -> float:
        """Return the share of file systems of which it was told within so many rounds."""
        return float(np.mean(self.delays <= rounds))


@dataclass(frozen=True)
class Results:
    """What was found."""

    quiet: tuple[FalseRises, ...]
    risen: tuple[Found, ...]


def level(file_systems: int) -> float:
    """Return the level of a site with so many file systems that run daily."""
    return level_for(FALSE_RISES, file_systems * _DAILY)


def quiet_cases() -> Iterator[Quiet]:
    """Yield what is measured; the floor of FPP HDD is so low that nothing falls under it."""
    for band in ("NVMe FPP", "SSF NVMe", "SSF HDD"):
        for correlation in (0.0, 0.3, 0.6):
            yield Quiet(band, "heavy", correlation)
            yield Quiet(band, "collapse", correlation)
        for correlation in (0.0, 0.6):
            yield Quiet(band, "collapse", correlation, learnt=True)
            yield Quiet(band, "collapse", correlation, series=6)


def false_rises(case: Quiet, file_systems: int, rounds: int, seed: int = 1) -> FalseRises:
    """Return what is told of so many file systems without a change, of so many rounds each."""
    random = np.random.default_rng(seed)
    made = world(case.band, case.tail, case.correlation)
    band = BANDS[case.band]
    floor = np.log(log_fence(band.lower_quartile, band.upper_quartile))
    told = dict.fromkeys(SITES, 0)
    looks = collapsed = 0
    for _ in range(file_systems):
        values = made.draw(random, case.series, rounds)
        hit = (values < floor).any(axis=0)
        chances = np.ones(rounds)
        for now in range(RECENT + LEAST_EARLIER, rounds + 1):
            if case.learnt and now % _LEARNT_EVERY == 0:
                lower, upper = np.quantile(values[0, :now], (0.25, 0.75))
                hit = values[0] < np.log(log_fence(np.exp(lower), np.exp(upper)))
            compared = compare(hit[max(0, now - _KEPT) : now], 1.0)
            if compared.is_possible:
                chances[now - 1] = compared.chance_of_more
            looks += 1
        collapsed += int(hit.sum())
        for number in SITES:
            told[number] += _begun(chances <= level(number))
    return FalseRises(case, file_systems, looks, file_systems * rounds, collapsed, told)


def _begun(risen: np.ndarray) -> int:
    """Return how often it began to be told of one file system."""
    places = np.flatnonzero(risen)
    return int(len(places) > 0) + int(np.count_nonzero(np.diff(places) > _QUIET))


def found(share: float, rise: float, file_systems: int, seed: int = 1) -> Found:
    """Return how soon a rise is told after a year, on a site with three file systems."""
    random = np.random.default_rng(seed)
    longest = max(WITHIN)
    chances = np.full(EARLIER + longest, share)
    chances[EARLIER:] *= rise
    delays = np.full(file_systems, np.inf)
    for each in range(file_systems):
        hit = random.random(len(chances)) < chances
        for delay in range(1, longest + 1):
            now = EARLIER + delay
            if hit[now - 1] and compare(hit[:now], level(_TOLD_FOR)).outcome == "risen":
                delays[each] = delay
                break
    return Found(share, rise, delays)


def run(file_systems: int, rounds: int, pool: Executor) -> Results:
    """Measure all cases with so many file systems each."""
    cases = list(quiet_cases())
    number = len(cases)
    quiet = pool.map(false_rises, cases, [file_systems] * number, [rounds] * number, range(number))
    pairs = [(share, rise) for share in SHARES for rise in RISES]
    shares, rises = zip(*pairs, strict=True)
    risen = pool.map(found, shares, rises, [file_systems * 3] * len(pairs), range(len(pairs)))
    return Results(tuple(quiet), tuple(risen))
