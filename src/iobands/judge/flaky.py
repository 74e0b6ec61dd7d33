"""Checks that fail now and then, and more often than the other checks of the site."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from math import comb
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.bands import Bands
from iobands.judge.fold import Happening
from iobands.judge.prior import Months
from iobands.snapshot import FLAKY, Series, SeriesKey, Times, in_utc, moment, slug

#: A check is flaky by its failures in this many sessions, until as many in a row are good.
SESSIONS: Final = 40
# The share of the budget of false alarms, and the fewest failures that are a habit.
_SHARE: Final = 0.1
_LEAST: Final = 3
# On a site without history, one session in this many fails.
_USUAL: Final = 200
# If a larger share of the checks of a day fails, the day is to blame and not a check.
_TOGETHER: Final = 0.25


@dataclass(frozen=True)
class Flaky:
    """A check failed in `failed` of its last `sessions`, and last at `last`, with the text `what`.

    The last sessions are those before now or, of a check that is flaky no more, before it was
    known.
    """

    failed: int
    sessions: int
    last: datetime
    what: str


@dataclass
class _Check:
    """The sessions of a check at `times`; those `counted` failed, and not as the one before.

    `names` are its series. `said` tells by time how a session failed.
    """

    names: tuple[str, ...]
    times: Times
    failed: NDArray[np.bool_]
    counted: NDArray[np.bool_]
    said: dict[np.datetime64, str]

    def before(self, begins: Times) -> NDArray[np.int_]:
        """Return how many sessions failed, and how many there were, before each of `begins`."""
        failures = self.times[self.counted]
        return np.array([np.searchsorted(failures, begins), np.searchsorted(self.times, begins)])


def flaky_of(series: Collection[tuple[Series, Bands]], months: Months) -> list[Happening]:
    """Return when checks were flaky, by what was known of all checks in each month."""
    checks = _checks(series)
    totals = sum((check.before(months.since) for check in checks), np.zeros((2, len(months.since))))
    found: list[Happening] = []
    for check in checks:
        if check.counted.sum() < _LEAST:
            continue
        failed, runs = totals - check.before(months.since)
        limits: dict[int, int] = {}

        def limit(
            when: np.datetime64,
            limits: dict[int, int] = limits,
            rates: NDArray[np.float64] = (1 + failed) / (_USUAL + runs),
        ) -> int:
            month = max(0, int(np.searchsorted(months.since, when, "right")) - 1)
            if month not in limits:
                budget = months.budgets[month]
                a_year = budget.runs_a_year / (budget.false_alarms_a_year * _SHARE)
                limits[month] = enough(a_year, float(rates[month]))
            return limits[month]

        found += _spans(check, limit)
    return found


def enough(runs_a_year: float, rate: float) -> int:
    """Return the least number of failures in `SESSIONS` that chance gives less than once a year.

    Each session fails with the probability `rate`, and there are `runs_a_year` of them over all
    checks. Only a session that fails can raise an alarm.
    """
    others = SESSIONS - 1
    chances = [comb(others, n) * rate**n * (1 - rate) ** (others - n) for n in range(SESSIONS)]
    least = _LEAST
    while least < SESSIONS and runs_a_year * rate * sum(chances[least - 1 :]) > 1:
        least += 1
    return least


def _checks(series: Collection[tuple[Series, Bands]]) -> list[_Check]:
    together: defaultdict[SeriesKey, list[tuple[Series, Bands]]] = defaultdict(list)
    for each, bands in series:
        together[replace(each.key, variable="")].append((each, bands))
    checks = []
    for mine in together.values():
        said = {
            in_utc(miss.when): miss.what
            for each, bands in mine
            for miss in each.missing
            if miss.is_failure and not any(miss.when in span for span in bands.left_out)
        }
        failures = np.array([*said], "datetime64[ns]")
        runs = [each.history.times for each, _ in mine]
        times = np.unique(np.concatenate([*runs, failures]))
        failed = np.isin(times, failures)
        counted = failed & ~np.concatenate(([False], failed[:-1]))
        names = tuple(slug(each.key) for each, _ in mine)
        checks.append(_Check(names, times, failed, counted, said))
    for day in _bad_days(checks):
        for check in checks:
            check.counted[check.times.astype("datetime64[D]") == day] = False
    return checks


def _bad_days(checks: Collection[_Check]) -> Iterator[np.datetime64]:
    """Yield the days on which many checks failed, which is one cause."""
    failed = [np.unique(each.times[each.failed].astype("datetime64[D]")) for each in checks]
    every = np.concatenate([*failed, np.array([], "datetime64[D]")])
    days, numbers = np.unique(every, return_counts=True)
    for day, number in zip(days, numbers, strict=True):
        if number > 1:
            span = np.array([day, day + 1]).astype("datetime64[ns]")
            ran = sum(bool(np.diff(np.searchsorted(each.times, span))[0]) for each in checks)
            if number > _TOGETHER * ran:
                yield day


def _spans(check: _Check, limit: Callable[[np.datetime64], int]) -> Iterator[Happening]:
    """Yield each time in which a check was flaky, from its first failure to its last."""
    places = np.flatnonzero(check.counted)
    over = -1
    for place in places:
        window = places[(places > place - SESSIONS) & (places <= place)]
        if place <= over or len(window) < limit(check.times[place]):
            continue
        last = place
        while len(later := places[(places > last) & (places <= last + SESSIONS)]):
            last = later[-1]
        over = last + SESSIONS
        end = check.times[over] if over < len(check.times) else None
        until = min(over, len(check.times) - 1) if end is None else last
        begin = max(0, until + 1 - SESSIONS)
        seen = places[(places >= begin) & (places <= until)]
        when = check.times[last]
        source = Flaky(len(seen), until + 1 - begin, moment(when), check.said[when])
        since = moment(check.times[window[0]])
        yield Happening(
            source,
            FLAKY,
            check.names,
            *(since, since, since, moment(check.times[place])),
            None if end is None else moment(when),
            None if end is None else moment(end),
        )
