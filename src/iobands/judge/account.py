"""The account of a maintenance: the shifts of series and groups, and what else changed then."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import count
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from iobands.bands import Bands, Window
from iobands.judge.before_after import (
    DAY,
    ERROR,
    Ruling,
    Unit,
    forecast,
    grouped,
    rule,
    since_alone,
    step_error,
    usual_of,
)
from iobands.judge.normal import left_out
from iobands.judge.site import JudgedSite
from iobands.model import COVARIATES, FIELDS, RECOVERY, REPEAT, SUSPECT, SeriesKey
from iobands.snapshot import (
    LONG_AGO,
    Array,
    BeforeAfter,
    Beside,
    Flags,
    Series,
    Shift,
    ShiftVerdict,
    Snapshot,
    day_and_time,
    figure,
    in_utc,
)

#: How a report's error is shared: the site and its file systems, parts of these, and series.
SHARES: Final = {"site": 0.5, "part": 0.2, "series": 0.3}
#: What became of a claim.
SAID, CONFIRMED, WITHDRAWN = "said", "confirmed", "withdrawn"

# A change within this factor does not count for a single series; for a group, MARGIN applies.
_SERIES_MARGIN: Final = 1.2
_MOST_PAGES: Final = 5
_MOST_BEFORE: Final = 120
_AFTER: Final = timedelta(days=30)
# The purposes of runs that an earlier run asked for: they are low more often than others.
_BIASED: Final = (REPEAT, SUSPECT, RECOVERY)
# An epoch begun up to this long after a maintenance belongs to it: both sides are still compared.
_EPOCH_DELAY: Final = timedelta(days=2)
# Verdicts are computed after these numbers of days with runs, and after the newest one.
_LOOKS: Final = frozenset({1, 2, 3, 5, 8, 13, 21})
_HOUR: Final = np.timedelta64(3_600_000_000_000, "ns")
_USUAL_RUNS: Final = 5
_TEXTS: Final = (
    *(each.name for each in FIELDS if each.role == "in_effect"),
    "targets_active",
    "targets_inactive",
)
_NUMBERS: Final = tuple(name for name in COVARIATES if name not in _TEXTS)
# A covariate has changed if it lies outside its earlier range by this share of its earlier median.
_LEAST_CHANGE: Final = 0.1


@dataclass(frozen=True)
class Held:
    """A maintenance that has begun, with its window; `name` is the name of its report."""

    name: str
    system: str
    window: Window
    begin: datetime
    end: datetime


def maintenances_of(site: Snapshot) -> list[Held]:
    """Return the maintenances that have begun, in the order of time."""
    found = [
        Held(f"{span.begin:%Y-%m-%d}", system, window, span.begin, span.end)
        for system, windows in site.maintenance.items()
        for window in windows
        for span in window.spans(site.now)
    ]
    found.sort(key=lambda each: each.begin)
    days = Counter((each.system, each.name) for each in found)
    found = [
        replace(e, name=f"{e.begin:%Y-%m-%dT%H:%M}") if days[e.system, e.name] > 1 else e
        for e in found
    ]
    minutes = Counter((each.system, each.name) for each in found)
    numbers = {key: count(1) for key, several in minutes.items() if several > 1}
    places = (numbers.get((each.system, each.name)) for each in found)
    return [
        replace(each, name=f"{each.name}-{next(place)}") if place else each
        for each, place in zip(found, places, strict=True)
    ]


@dataclass(frozen=True)
class _Comparable:
    """A series with its compared runs: their places among its samples, and their sessions."""

    series: Series
    unit: Unit
    rounds: Array
    rows: NDArray[np.int_]


def account_of_maintenance(judged: JudgedSite, held: Held) -> BeforeAfter:
    """Return the account of a maintenance."""
    site, window = judged.snapshot, held.window
    compared, left = _comparable(judged, held)
    rows = _Rows(compared)
    shifts = rows.shifts(held)
    return BeforeAfter(
        name=held.name,
        system=held.system,
        begin=held.begin,
        end=held.end,
        reason=window.reason,
        file_systems=window.file_systems,
        now=site.now,
        is_open=site.now < held.end,
        groups=tuple(each for each in shifts if each.kind != "series"),
        series=tuple(each for each in shifts if each.kind == "series"),
        left_out=tuple(left),
        beside=tuple(_beside(site, compared)),
        epochs=_epochs(judged, held),
    )


def accounts_of(judged: JudgedSite) -> tuple[BeforeAfter, ...]:
    """Return the accounts of the newest maintenances, up to five, while runs are added to them."""
    now = judged.snapshot.now
    recent = [
        each
        for each in maintenances_of(judged.snapshot)
        if now - each.end <= _AFTER and not each.window.repeat
    ]
    return tuple(account_of_maintenance(judged, each) for each in recent[-_MOST_PAGES:][::-1])


def forecasts(
    judged: JudgedSite, places: Sequence[str], ahead: Sequence[int]
) -> list[tuple[str, int, list[float | None]]]:
    """Return the smallest losses, as shares, that a report will show after each of `ahead` days.

    A row is a name, its number of series, and the losses. `places` are file systems, () for all.
    """
    rows = _Rows(_upcoming(judged, places))
    total = sum(rows.shares.values())
    found, single = [], []
    for name, (kind, members, unit) in rows.of.items():
        if kind == "part":
            continue
        error = ERROR * rows.shares[name] / total
        losses = [forecast(unit, error, _USUAL_RUNS, days) for days in ahead]
        if kind == "site":
            found.append((name, members, losses))
        elif losses[-1]:
            single.append(losses)
    if single:
        middle = sorted(single, key=lambda each: each[-1] or 1.0)[len(single) // 2]
        found.append(("one series (median)", 1, middle))
    return [each for each in found if each[-1][-1]]


def runs_that_help(judged: JudgedSite, places: Sequence[str], allowed: tuple[int, int]) -> int:
    """Return how many runs in a row are worth measuring, from the least to the most `allowed`.

    All further ones would lower the error by less than 5 %: what remains is how days differ.
    """
    least, most = allowed
    found = []
    for one in _upcoming(judged, places):
        usual = one.unit.usual
        if usual:
            errors = [step_error(one.unit, usual, runs, 0) for runs in range(least, most + 1)]
            enough = [n for n, each in enumerate(errors) if each <= 1.05 * errors[-1]]
            found.append(least + enough[0])
    return int(np.median(found)) if found else _USUAL_RUNS


def _upcoming(judged: JudgedSite, places: Sequence[str]) -> list[_Comparable]:
    now = judged.snapshot.now + timedelta(seconds=1)
    window = Window(now, now, "", file_systems=tuple(places))
    systems = sorted({each.key.system for each in judged.snapshot.series})
    held = (Held("", name, window, now, now) for name in systems)
    return [one for each in held for one in _comparable(judged, each, both=False)[0]]


def _comparable(
    judged: JudgedSite, held: Held, *, both: bool = True
) -> tuple[list[_Comparable], list[tuple[str, str]]]:
    """Return the series that can be compared, and label and reason of those that cannot."""
    compared, left = [], []
    for each in judged.judged.values():
        series, history = each.series, each.series.history
        is_in = series.key.system == held.system and held.window.is_of(series.key.file_system)
        if not is_in or not len(history):
            continue
        before, after, why = _split(judged.snapshot, series, each.bands, held)
        if both and not (before.any() and after.any()):
            if why:
                left.append((series.label, why))
            continue
        places = np.concatenate([np.flatnonzero(before)[-_MOST_BEFORE:], np.flatnonzero(after)])
        hours = (history.times[places] - in_utc(held.begin)) / _HOUR
        months = each.detection.basis.months if each.detection else ()
        unit = Unit(
            np.asarray(hours, dtype=float),
            np.log(history.values[places]),
            after[places],
            share=months[-1].prior.new if months else Unit.share,
            margin=_SERIES_MARGIN,
        )
        if unit.usual is None:
            left.append((series.label, "runs on too few days before it"))
            continue
        compared.append(_Comparable(series, unit, history.sessions[places], places))
    return compared, left


def _split(site: Snapshot, series: Series, bands: Bands, held: Held) -> tuple[Flags, Flags, str]:
    """Return which samples count before and which after, and the reason if either has none."""
    history = series.history
    begin, end = in_utc(held.begin), in_utc(held.end)
    purposes = site.samples["purpose"][series.rows].cast(pl.String).to_numpy()
    usable = history.counted & ~np.isin(purposes, _BIASED) & ~left_out(history, bands)
    since, until = _epoch_of(series, bands, held)
    times = history.times
    before, after = (times < begin) & usable, (times >= end) & usable
    had = before.any() and after.any()
    before &= (times >= since) & history.alike
    after &= (times < until) & history.alike
    if before.any():
        why = "no run after it"
    elif after.any():
        changed = "the tool or its settings changed, so that runs cannot be compared"
        why = changed if had else "no run before it"
    else:
        why = "no runs that can be compared" if had else ""
    return before, after, why


def _epoch_of(series: Series, bands: Bands, held: Held) -> tuple[np.datetime64, np.datetime64]:
    """Return the span in which runs can be compared, as limited by epochs and known changes."""
    breaks = [each.since for each in bands.epochs if not each.continues]
    starts = [each for each in breaks if each <= held.begin]
    evidence = series.status.evidence
    for change in evidence.changes if evidence else ():
        if change.raised < held.begin:
            starts += [e for e in (change.since, change.ended) if e and e < held.begin]
    ends = [each for each in breaks if each > held.end + _EPOCH_DELAY]
    return in_utc(max(starts, default=LONG_AGO)), in_utc(min([*ends, held.end + _AFTER]))


class _Rows:
    """The rows of a report; `of` gives the kind, number of members and unit of a row by its name.

    `shares` gives the share of each row in the error of the report.
    """

    def __init__(self, compared: Sequence[_Comparable]) -> None:
        """Make a row for each group and each series."""
        self.of: dict[str, tuple[str, int, Unit]] = {}
        for kind, name, group in _groups(compared):
            unit = grouped([each.unit for each in group], [each.rounds for each in group])
            if unit:
                self.of[name] = kind, len(group), unit
        self.of |= {each.series.label: ("series", 1, each.unit) for each in compared}
        many = Counter(kind for kind, _, _ in self.of.values())
        self.shares = {name: SHARES[kind] / many[kind] for name, (kind, _, _) in self.of.items()}
        self.units = {name: unit for name, (_, _, unit) in self.of.items()}

    def shifts(self, held: Held) -> list[Shift]:
        """Return the shift of each row, with the history of its claims."""
        usual, ruled, found = usual_of(self.units), {}, []
        for hour in self._looks():
            until = {name: each.only(each.hours <= hour) for name, each in self.units.items()}
            ruled[hour] = rule(until, self.shares, usual)
        for name, one in rule(self.units, self.shares, usual).items():
            kind, members, _ = self.of[name]
            before, after = one.unit.counts
            shift = Shift(
                kind,
                name,
                members,
                outcome=one.outcome,
                ratio=one.ratio,
                bound=one.bound,
                visible=one.visible,
                more=one.more() if one.outcome is ShiftVerdict.UNDECIDED else None,
                before=before,
                after=after,
                story=tuple(self._story(name, ruled, held)),
            )
            found.append(shift)
        return found

    def _looks(self) -> list[float]:
        """Return when verdicts are computed, in hours since the maintenance began."""
        hours = [unit.hours[unit.is_after] for unit in self.units.values()]
        found = np.unique(np.floor(np.concatenate([*hours, np.empty(0)]) / DAY))
        ends = [float(each + 1) * DAY for each in found]
        # a look after every day would find more changes by chance
        return [end for place, end in enumerate(ends, 1) if place in _LOOKS or end == ends[-1]]

    def _story(
        self, name: str, ruled: Mapping[float, Mapping[str, Ruling]], held: Held
    ) -> Iterator[tuple[date, str, int]]:
        """Yield day, event and number of runs when a claim was made, confirmed or withdrawn."""
        claimed: ShiftVerdict | None = None
        first, confirmed = 0.0, False
        for hour, one in ((hour, found[name]) for hour, found in ruled.items() if name in found):
            when = (held.begin + timedelta(hours=float(one.unit.hours[-1]))).date()
            runs = one.unit.counts[1][0]
            is_claim = one.outcome in {ShiftVerdict.SLOWER, ShiftVerdict.FASTER}
            if claimed and one.outcome is not claimed:
                yield when, WITHDRAWN, runs
                claimed = None
            if is_claim and claimed is None:
                yield when, f"{SAID} {one.outcome.value}", runs
                claimed, first, confirmed = one.outcome, hour, False
            elif claimed and not confirmed:
                way = np.sign(one.fit.step)
                if since_alone(one.unit, first, one.fit.usual, float(way)):
                    confirmed = True
                    yield when, CONFIRMED, runs


def _groups(compared: Sequence[_Comparable]) -> Iterator[tuple[str, str, list[_Comparable]]]:
    """Yield kind, name and members: all series, file systems, their patterns and variables."""
    found: defaultdict[tuple[str, str], list[_Comparable]] = defaultdict(list)
    for each in compared:
        key = each.series.key
        parts = (f"{key.file_system} {part}" for part in (key.pattern, key.variable) if part)
        names = [("site", key.file_system), *(("part", part) for part in parts)]
        for kind, name in (("site", "all"), *(names if key.file_system else ())):
            found[kind, name].append(each)
    kept: dict[frozenset[SeriesKey], tuple[str, str, list[_Comparable]]] = {}
    # of groups with the same members, the file system names them, and `all` only if nothing else
    for (kind, name), group in sorted(found.items(), key=lambda each: each[0][1] == "all"):
        if len(keys := frozenset(each.series.key for each in group)) > 1:
            kept.setdefault(keys, (kind, name, group))
    yield from sorted(kept.values(), key=lambda each: (each[1] != "all", each[1]))


def _epochs(judged: JudgedSite, held: Held) -> tuple[str, ...]:
    epochs = (
        epoch
        for each in judged.judged.values()
        if each.series.key.system == held.system
        for epoch in each.bands.epochs
        if held.begin < epoch.since <= held.end + _EPOCH_DELAY
    )
    return tuple(dict.fromkeys(f"{each.name}, {day_and_time(each.since)} UTC" for each in epochs))


def _beside(site: Snapshot, compared: Sequence[_Comparable]) -> Iterator[Beside]:
    """Yield the columns of the samples that changed, with at most three changes each."""
    changed: Counter[tuple[str, str, str]] = Counter()
    for each in compared:
        samples = site.samples.rows(each.series.rows[each.rows])
        changed.update(_differing(samples, each.unit.is_after))
    number: Counter[str] = Counter()
    for (name, one, other), series in changed.most_common():
        number[name] += 1
        if number[name] <= 3:  # noqa: PLR2004 (more of them are no summary)
            yield Beside(name, one, other, series, len(compared))


def _differing(frame: pl.DataFrame, is_after: Flags) -> Iterator[tuple[str, str, str]]:
    for name in _TEXTS:
        cells = frame[name].cast(pl.String).to_numpy()
        one, other = ({*map(str, cells[side][-10:])} for side in (~is_after, is_after))
        if one and other and not one & other and {"None"} not in (one, other):
            yield name, _common(cells[~is_after][-10:]), _common(cells[is_after][-10:])
    for name in _NUMBERS:
        numbers = frame[name].cast(pl.Float64).to_numpy()
        old, new = (each[np.isfinite(each)] for each in (numbers[~is_after], numbers[is_after]))
        if len(old) and len(new):
            middle = float(np.median(new))
            margin = _LEAST_CHANGE * float(np.median(np.abs(old)))
            if not old.min() - margin <= middle <= old.max() + margin:
                low, high = figure(old.min()), figure(old.max())
                yield name, low if low == high else f"{low} to {high}", figure(middle)


def _common(cells: Iterable[Any]) -> str:
    return Counter(map(str, cells)).most_common(1)[0][0]
