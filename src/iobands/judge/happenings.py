"""Collects what alerts are made of: changes, group drops, incidents, slow peers, flaky checks.

docs/glossary.md defines incidents and flaky checks; this module finds them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from math import comb
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.bands import Bands
from iobands.judge.detect import Months
from iobands.judge.fold import Flaky, Happening
from iobands.judge.groups import GroupDrop
from iobands.judge.normal import TransientRuns
from iobands.snapshot import (
    DOWN,
    FLAKY,
    Array,
    Flags,
    Incident,
    PeerName,
    PeerState,
    Place,
    Series,
    SeriesKey,
    Times,
    days_of,
    grouped_by,
    in_utc,
    moment,
    slug,
)

# The evidence, in nats, with which a series joins an alert that began at the same time. On any
# evening 1.3 % of the healthy series have as much, but few of them since exactly that time.
_JOINS: Final = 4.0
# Why an alert about a peer ends although the peer was slow when it was last compared.
_ENDS: Final = {PeerState.UNUSED: "no longer used", PeerState.UNKNOWN: "no longer compared"}
_AS_FAST: Final = "again as fast as the others"


def happenings_of(
    series: Sequence[Series], several: Iterable[GroupDrop | Incident], places: Iterable[Place]
) -> list[Happening]:
    """Return all happenings of one system, past ones included."""
    known = {each.key: each for each in series}
    return [
        *(found for each in series for found in _of_series(each)),
        *(_of_several(each, known) for each in several),
        *(peer for place in places for peer in _of_place(place)),
    ]


def _of_series(series: Series) -> Iterator[Happening]:
    """Yield the changes of a series, their further falls, and possible drops."""
    evidence, names = series.status.evidence, (slug(series.key),)
    if evidence is None:
        return
    for each in evidence.changes:
        yield (
            whole := Happening(
                each,
                each.direction,
                names,
                since=each.since,
                low=each.since_low,
                high=each.since_high,
                raised=each.raised,
                over=each.closed,
                ended=each.ended,
                end=each.end or "",
                delay=each.delay,
                turns=each.turns,
                after=_before(series, each.since_low),
            )
        )
        for fall in each.falls:
            since, after = fall.since, _before(series, fall.since)
            again = replace(whole, since=since, low=since, high=since, raised=fall.raised)
            yield replace(again, turns=(), after=after)
    if series.shares_causes:
        yield from _possible_drops(series, evidence.down)


def _possible_drops(series: Series, down: Array) -> Iterator[Happening]:
    """Yield what may join an alert but opens none, while there is the evidence `down` for it."""
    times, _ = series.judged
    steps = np.diff(down, prepend=0.0)
    reached = np.flatnonzero(down >= _JOINS)
    zeros = np.concatenate(([-1], np.flatnonzero(down <= 0), [len(times)]))
    for zero in np.unique(np.searchsorted(zeros, reached)).tolist():
        begin, end = zeros[zero - 1] + 1, zeros[zero]
        total = down[begin:end]
        largest_step = np.maximum.accumulate(steps[begin:end])
        # the evidence of a single bad run does not suffice
        found = np.flatnonzero((total >= _JOINS) & (total > largest_step))
        if found.size:
            first, raised = moment(times[begin]), moment(times[begin + found[0]])
            yield Happening(
                series,
                DOWN,
                (slug(series.key),),
                since=first,
                low=first,
                high=first,
                raised=raised,
                over=moment(times[end]) if end < len(times) else None,
                certain=False,
                after=_before(series, first),
            )


def _before(series: Series, when: datetime) -> datetime | None:
    """Return the time of the last judged run of a series before `when`, or None."""
    times, _ = series.judged
    place = int(np.searchsorted(times, in_utc(when)))
    return moment(times[place - 1]) if place else None


def _over(drop: GroupDrop, known: Mapping[SeriesKey, Series]) -> datetime | None:
    """Return when a group drop was over: when it ended, or once each of its series recovered."""
    ended = [drop.ended] if drop.ended else []
    every = [each.changes if (each := known[key].status.evidence) else () for key in drop.ratios]
    ends = [[c for e in of if e.is_drop and (c := e.closed) and c > drop.raised] for of in every]
    return min([*ended, max(map(min, ends))] if all(ends) else ended, default=None)


def _of_several(source: GroupDrop | Incident, known: Mapping[SeriesKey, Series]) -> Happening:
    names = tuple(slug(key) for key in source.ratios)
    before = (_before(known[key], source.since) for key in source.ratios if key in known)
    return Happening(
        source,
        DOWN,
        names,
        since=source.since,
        low=source.since,
        high=source.since,
        raised=source.raised,
        over=_over(source, known) if isinstance(source, GroupDrop) else source.closed,
        ended=source.until if isinstance(source, Incident) else None,
        delay=source.delay if isinstance(source, GroupDrop) else None,
        after=max(filter(None, before), default=None),
    )


def _of_place(place: Place) -> Iterator[Happening]:
    """Yield each time that a target or node was slow, for each variable by itself."""
    for name, found in place.peers().items():
        source = PeerName(place.kind, place.system, place.where, name)
        for peer in found.values():
            for (raised, ended), (low, since) in zip(peer.alarms, peer.began, strict=True):
                is_slow = ended is None and peer.state is PeerState.SLOW
                # `last` does not count pinned runs, and one of these may have raised the alarm
                yield Happening(
                    source,
                    DOWN,
                    (place.name_of(name),),
                    since=since,
                    low=low,
                    high=since,
                    raised=raised,
                    over=None if is_slow else ended or max(raised, peer.last),
                    end=_AS_FAST if ended else _ENDS.get(peer.state, _AS_FAST),
                )


_WINDOW: Final = 3
_BAD: Final = 2
_SEVERAL: Final = 2
_WEEK: Final = 7


def incidents_of(runs: Mapping[SeriesKey, TransientRuns], now: datetime) -> tuple[Incident, ...]:
    """Return all incidents in the order of time, including those still open at `now`."""
    groups = grouped_by(runs, lambda key: (key.system, key.file_system, key.variable))
    found = []
    for (system, file_system, variable), keys in groups.items():
        if file_system is None or len(keys) < _SEVERAL:
            continue
        mine = [runs[key] for key in keys]
        of_series = np.repeat(np.arange(len(keys)), [len(each.times) for each in mine])
        times, low, ratios = (
            np.concatenate(parts)
            for parts in zip(*((e.times, e.low, e.ratios) for e in mine), strict=True)
        )
        of_day = days_of(times)
        for begun, opened, last, closing in _spans(of_day, low):
            until, week = moment(times[of_day == last].max()), timedelta(days=_WEEK)
            ends_at = [until + week] if now - until >= week else []
            if closing is not None:
                ends_at.append(moment(times[of_day == closing].max()))
            is_low = (begun <= of_day) & (of_day <= last) & low
            medians = {
                keys[each]: float(np.median(ratios[is_low & (of_series == each)]))
                for each in np.unique(of_series[is_low])
            }
            incident = Incident(
                system,
                file_system,
                variable,
                since=moment(times[of_day == begun].min()),
                raised=moment(times[of_day == opened].max()),
                until=until,
                ratios=dict(sorted(medians.items(), key=lambda item: item[1])),
                closed=min(ends_at, default=None),
            )
            found.append(incident)
    return tuple(sorted(found, key=lambda each: each.since))


def _spans(of_day: NDArray[np.int_], lows: Flags) -> Iterator[tuple[int, int, int, int | None]]:
    """Yield four days of each incident: first bad, raised, last bad, closed (None if open)."""
    first = of_day.min(initial=0)
    ran = np.bincount(of_day - first)
    low = np.bincount(of_day - first, lows)
    judged = np.flatnonzero(ran >= _SEVERAL)
    days, bad = first + judged, (2 * low > ran)[judged]
    begun: int | None = None
    raised = last = 0
    for place in range(_WINDOW - 1, len(bad)):
        if begun is None and not bad[place] and place >= _WINDOW:
            continue  # nothing can open, and nothing is open
        window = slice(place - _WINDOW + 1, place + 1)
        over = days[place] - days[last] >= _WEEK or not bad[window].any()
        if begun is not None and over:
            yield days[begun], days[raised], days[last], days[place]
            begun = None
        recent = bad[window] & (days[window] > days[place] - _WEEK)
        if begun is None and recent.sum() >= _BAD:
            begun, raised = window.start + int(np.argmax(recent)), place
        last = max([last, *(window.start + np.flatnonzero(bad[window]))])
    if begun is not None:
        yield days[begun], days[raised], days[last], None


#: The sessions in which failures are counted. After as many good ones a check is not flaky.
SESSIONS: Final = 40
# The share of the false-alarm budget for flaky checks, and the fewest failures of a flaky check.
_SHARE: Final = 0.1
_LEAST: Final = 3
# Without history, one session in this many is assumed to fail.
_USUAL: Final = 200
# If a larger share of a day's checks fails, no single check is to blame.
_TOGETHER: Final = 0.25


@dataclass
class _Check:
    """The sessions of one check; arrays are of shape (sessions,).

    `names` are its series. `counted` failures follow no other failure, on days on which few checks
    failed. `said` has the message of each failure by time. Failures that a person `answered` raise
    no alert, but count in failure rates.
    """

    names: tuple[str, ...]
    times: Times
    failed: NDArray[np.bool_]
    counted: NDArray[np.bool_]
    answered: NDArray[np.bool_]
    said: dict[np.datetime64, str]

    def before(self, begins: Times) -> NDArray[np.int_]:
        """Return the numbers of counted failures and of sessions before each of `begins`."""
        failures = self.times[self.counted]
        return np.array([np.searchsorted(failures, begins), np.searchsorted(self.times, begins)])


def flaky_of(
    series: Collection[tuple[Series, Bands]], months: Mapping[str, Months]
) -> list[Happening]:
    """Return when checks were flaky, by the failure rate of a system's other checks until then."""
    found: list[Happening] = []
    for system, known in months.items():
        checks = _checks([each for each in series if each[0].key.system == system])
        totals = sum((check.before(known.since) for check in checks), np.int_(0))
        for check in checks:
            if check.counted.sum() >= _LEAST:
                failed, runs = totals - check.before(known.since)
                found += _flaky_spans(check, known, (1 + failed) / (_USUAL + runs))
    return found


def enough(runs_a_year: float, rate: float) -> int:
    """Return the least number of failures in `SESSIONS` that chance causes at most once a year.

    `runs_a_year` sessions, of all checks together, each fail with the probability `rate`. Only a
    failed session can raise an alarm, so only the sessions before it are left to chance.
    """
    others = SESSIONS - 1
    chances = [comb(others, n) * rate**n * (1 - rate) ** (others - n) for n in range(SESSIONS)]
    least = _LEAST
    while least < SESSIONS and runs_a_year * rate * sum(chances[least - 1 :]) > 1:
        least += 1
    return least


def _checks(series: Collection[tuple[Series, Bands]]) -> list[_Check]:
    together = grouped_by(series, lambda each: replace(each[0].key, variable=""))
    checks = []
    for mine in together.values():
        said = {
            in_utc(miss.when): (miss.what, any(miss.when in each for each in bands.left_out))
            for each, bands in mine
            for miss in each.missing
            if miss.is_failure
        }
        failures = np.array([*said], "datetime64[ns]")
        runs = [each.history.times for each, _ in mine]
        times = np.sort(np.concatenate([*runs, failures]), kind="stable")  # of ordered parts
        times = times[np.append(True, times[1:] != times[:-1])[: len(times)]]
        failed = np.isin(times, failures)
        counted = failed & ~np.concatenate(([False], failed[:-1]))
        names = tuple(slug(each.key) for each, _ in mine)
        left = np.array([when for when, (_, is_left) in said.items() if is_left], "datetime64[ns]")
        whys = {when: why for when, (why, _) in said.items()}
        checks.append(_Check(names, times, failed, counted, np.isin(times, left), whys))
    if checks:
        _leave_out_bad_days(checks)
    return checks


def _leave_out_bad_days(checks: Sequence[_Check]) -> None:
    """Do not count failures on days on which many checks failed, as they have one cause."""
    every = days_of(np.concatenate([each.times for each in checks]))
    every -= every.min(initial=0)
    days = np.split(every, np.cumsum([len(each.times) for each in checks])[:-1])

    def numbers(of_each: Iterable[NDArray[np.int_]]) -> NDArray[np.int_]:
        once = [mine[np.diff(mine, prepend=-1) > 0] for mine in of_each]
        return np.bincount(np.concatenate(once), minlength=1 + every.max(initial=0))

    failed = numbers(mine[each.failed] for mine, each in zip(days, checks, strict=True))
    is_bad = (failed > 1) & (failed > _TOGETHER * numbers(days))
    for mine, each in zip(days, checks, strict=True):
        each.counted[is_bad[mine]] = False


def _flaky_spans(check: _Check, months: Months, rates: NDArray[np.float64]) -> Iterator[Happening]:
    """Yield each span in which a check was flaky, from its first failure to its last.

    `rates`, of shape (months,), are the failure rates of the system's other checks.
    """

    @cache
    def limit(month: int) -> int:
        budget = months.budgets[month]
        a_year = budget.runs_a_year / (budget.false_alarms_a_year * _SHARE)
        return enough(a_year, float(rates[month]))

    places = np.flatnonzero(check.counted & ~check.answered)
    month_of = np.maximum(np.searchsorted(months.since, check.times, "right") - 1, 0)
    failed, over = check.failed & ~check.answered, -1
    for place in places:
        window = places[(places > place - SESSIONS) & (places <= place)]
        if place <= over or len(window) < limit(int(month_of[place])):
            continue
        last = place
        while len(later := places[(places > last) & (places <= last + SESSIONS)]):
            last = later[-1]
        over = last + SESSIONS
        end = check.times[over] if over < len(check.times) else None
        until = len(check.times) - 1 if end is None else last
        begin = max(0, until + 1 - SESSIONS)
        # the message counts every failure, also in a row and on bad days, as people do
        failures = check.times[begin : until + 1][failed[begin : until + 1]]
        often = f"failed in {len(failures)} of the last {until + 1 - begin} sessions"
        newest, (_, _, how) = moment(failures[-1]), check.said[failures[-1]].partition(" failed")
        if how and not how.startswith(":"):
            how = f": failed{how}"
        since = moment(check.times[window[0]])
        yield Happening(
            Flaky(len(failures), f"{often}; the last on {newest.day} {newest:%b}{how}"),
            FLAKY,
            check.names,
            since=since,
            low=since,
            high=since,
            raised=moment(check.times[place]),
            over=None if end is None else moment(end),
            ended=moment(check.times[last]),
        )
