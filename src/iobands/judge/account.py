"""What the runs of a site say of a maintenance: its series and groups, and what changed beside."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import Any, Final

import numpy as np
import polars as pl

from iobands.bands import Bands, Window
from iobands.judge.before_after import (
    ERROR,
    Ruling,
    Unit,
    Usual,
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
    Array,
    BeforeAfter,
    Beside,
    Flags,
    Series,
    Shift,
    ShiftVerdict,
    Snapshot,
    in_utc,
)

#: The rows of a report share the error: the site and its file systems, their parts, and series.
SHARES: Final = {"site": 0.5, "part": 0.2, "series": 0.3}
#: What became of a claim.
SAID, CONFIRMED, WITHDRAWN = "said", "confirmed", "withdrawn"

# A change of one series within this factor does not count; of a group, within MARGIN.
_OF_A_SERIES: Final = 1.2
_MOST_PAGES: Final = 5
_MOST_BEFORE: Final = 120
_AFTER: Final = timedelta(days=30)
# Runs that a low one asked for are low more often than others.
_BIASED: Final = (REPEAT, SUSPECT, RECOVERY)
# An epoch that somebody begins because of a maintenance may begin with the first changed run.
_BECAUSE: Final = timedelta(days=2)
# On which of the days with runs the verdicts are looked at.
_LOOKS: Final = frozenset({1, 2, 3, 5, 8, 13, 21})
_HOUR: Final = np.timedelta64(3_600_000_000_000, "ns")
_DAY: Final = 24.0
_USUAL_RUNS: Final = 5
_TEXTS: Final = (
    *(each.name for each in FIELDS if each.role == "in_effect"),
    "targets_active",
    "targets_inactive",
)
_NUMBERS: Final = tuple(name for name in COVARIATES if name not in _TEXTS)
# A covariate that is new by less than this share of it does not matter.
_MATTERS: Final = 0.1


@dataclass(frozen=True)
class Held:
    """A maintenance that began: its system, its window, and the name of its report."""

    name: str
    system: str
    window: Window
    begin: datetime
    end: datetime


def maintenances_of(site: Snapshot) -> list[Held]:
    """Return the maintenances that began by now, in the order of time."""
    found = [
        Held(f"{span.begin:%Y-%m-%d}", system, window, span.begin, span.end)
        for system, windows in site.maintenance.items()
        for window in windows
        for span in window.spans(site.now)
    ]
    found.sort(key=lambda each: each.begin)
    days = Counter((each.system, each.name) for each in found)
    return [
        replace(each, name=f"{each.begin:%Y-%m-%dT%H:%M}")
        if days[each.system, each.name] > 1
        else each
        for each in found
    ]


@dataclass(frozen=True)
class _Side:
    """The runs of a series that are compared: their places among its samples, as a unit."""

    series: Series
    unit: Unit
    rounds: Array
    rows: Array


def account_of_maintenance(judged: JudgedSite, held: Held) -> BeforeAfter:
    """Return the account of a maintenance."""
    site = judged.snapshot
    sides, left = _sides(judged, held)
    rows = _Rows.of(sides)
    newest = rows.ruled(None)
    ruled = {hour: rows.ruled(hour) for hour in rows.looks()}
    shifts = [rows.shift(name, one, ruled, held) for name, one in newest.items()]
    return BeforeAfter(
        held.name,
        held.system,
        held.begin,
        held.end,
        held.window.reason,
        held.window.file_systems,
        site.now,
        site.now < held.end,
        tuple(each for each in shifts if each.kind != "series"),
        tuple(each for each in shifts if each.kind == "series"),
        tuple(left),
        tuple(_beside(site, sides)),
        _epochs(judged, held),
    )


def accounts_of(judged: JudgedSite) -> tuple[BeforeAfter, ...]:
    """Return the accounts of the newest maintenances, while runs are added to them."""
    now = judged.snapshot.now
    recent = [
        each
        for each in maintenances_of(judged.snapshot)
        if now - each.end <= _AFTER and not each.window.repeat
    ]
    return tuple(account_of_maintenance(judged, each) for each in recent[-_MOST_PAGES:][::-1])


def forecasts(
    judged: JudgedSite, places: Sequence[str], power: float, ahead: Sequence[int]
) -> list[tuple[str, int, list[float | None]]]:
    """Return the losses a report will show `ahead` days later, of file systems and series."""
    rows = _Rows.of(_upcoming(judged, places))
    total = sum(rows.shares.values())
    found = []
    single: list[list[float | None]] = []
    for name, unit in rows.units.items():
        error = ERROR * rows.shares[name] / total
        if rows.kinds[name] == "part":
            continue
        losses = [forecast(unit, error, _USUAL_RUNS, days, power) for days in ahead]
        if rows.kinds[name] == "site":
            found.append((name, len(rows.members[name]), losses))
        else:
            single.append(losses)
    single = [each for each in single if each[-1]]
    if single:
        middle = sorted(single, key=lambda each: each[-1] or 1.0)[len(single) // 2]
        found.append(("one series (median)", 1, middle))
    return [each for each in found if each[-1][-1]]


def runs_that_help(judged: JudgedSite, places: Sequence[str], allowed: tuple[int, int]) -> int:
    """Return how many runs in a row say nearly as much as any number of them.

    Beyond it a further run lowers the error by less than a twentieth: the rest is what differs
    from day to day.
    """
    least, most = allowed
    found = []
    for side in _upcoming(judged, places):
        usual = side.unit.usual
        if usual:
            errors = [step_error(side.unit, usual, runs, 0) for runs in range(least, most + 1)]
            enough = [n for n, each in enumerate(errors) if each <= 1.05 * errors[-1]]
            found.append(least + enough[0])
    return int(np.median(found)) if found else _USUAL_RUNS


def _upcoming(judged: JudgedSite, places: Sequence[str]) -> list[_Side]:
    """Return the runs before a maintenance that begins now."""
    now = judged.snapshot.now + timedelta(seconds=1)
    names = {each.key.system for each in judged.snapshot.series}
    sides: list[_Side] = []
    for name in sorted(names):
        window = Window(now, now, "", file_systems=tuple(places))
        sides += _sides(judged, Held("", name, window, now, now), both=False)[0]
    return sides


def _sides(
    judged: JudgedSite, held: Held, *, both: bool = True
) -> tuple[list[_Side], list[tuple[str, str]]]:
    """Return the series with runs on both sides, and why others have none."""
    sides, left = [], []
    for each in judged.judged.values():
        series = each.series
        key = series.key
        if key.system != held.system or not held.window.is_of(key.file_system):
            continue
        if not len(series.history):
            continue
        before, after, why = _compared(judged.snapshot, series, each.bands, held)
        if both and not (before.any() and after.any()):
            if why:
                left.append((series.label, why))
            continue
        places = np.concatenate([np.flatnonzero(before)[-_MOST_BEFORE:], np.flatnonzero(after)])
        hours = (series.history.times[places] - in_utc(held.begin)) / _HOUR
        known = [month.prior.new for month in each.detection.basis.months] if each.detection else []
        unit = Unit(
            np.asarray(hours, dtype=float),
            np.log(series.history.values[places]),
            after[places],
            share=known[-1] if known else Unit.share,
            margin=_OF_A_SERIES,
        )
        sides.append(_Side(series, unit, series.history.sessions[places], places))
    return sides, left


def _compared(site: Snapshot, series: Series, bands: Bands, held: Held) -> tuple[Flags, Flags, str]:
    """Return which samples of a series are before and after, and why one side has none."""
    history = series.history
    begin, end = in_utc(held.begin), in_utc(held.end)
    purposes = site.samples["purpose"].cast(pl.String).to_numpy()[series.rows]
    usable = (history.passed | history.too_slow) & (history.values > 0)
    usable &= ~np.isin(purposes, _BIASED) & ~left_out(history, bands)
    since, until = _epoch_of(series, bands, held)
    times = history.times
    before, after = (times < begin) & usable, (times >= end) & usable
    had = before.any() and after.any()
    before &= (times >= since) & history.alike
    after &= (times < until) & history.alike
    if before.any() and not after.any():
        return before, after, "no run after it"
    if after.any() and not before.any():
        changed = "the tool or its settings changed, so that runs do not compare"
        return before, after, changed if had else "no run before it"
    return before, after, "" if not had else "no runs that compare"


def _epoch_of(series: Series, bands: Bands, held: Held) -> tuple[np.datetime64, np.datetime64]:
    """Return since when and until when runs are compared: by epochs, and by known changes."""
    breaks = [each.since for each in bands.epochs if not each.continues]
    starts = [in_utc(each) for each in breaks if each <= held.begin]
    evidence = series.status.evidence
    for change in evidence.changes if evidence else ():
        moved = [change.since, *([change.ended] if change.ended else [])]
        starts += [in_utc(each) for each in moved if change.raised < held.begin > each]
    ends = [each for each in breaks if each > held.end + _BECAUSE]
    end = min([*ends, held.end + _AFTER])
    return max(starts, default=np.datetime64(0, "ns")), in_utc(end)


@dataclass(frozen=True)
class _Rows:
    """The rows of a report: units by name, with their kind, share of the error, and members."""

    units: Mapping[str, Unit]
    kinds: Mapping[str, str]
    members: Mapping[str, Sequence[_Side]]

    @classmethod
    def of(cls, sides: Sequence[_Side]) -> _Rows:
        units: dict[str, Unit] = {}
        kinds: dict[str, str] = {}
        members: dict[str, Sequence[_Side]] = {}
        for kind, name, group in _groups(sides):
            unit = grouped([each.unit for each in group], [each.rounds for each in group])
            if unit:
                units[name], kinds[name], members[name] = unit, kind, group
        for each in sides:
            name = each.series.label
            units[name], kinds[name], members[name] = each.unit, "series", [each]
        return cls(units, kinds, members)

    @cached_property
    def usual(self) -> dict[str, Usual]:
        return usual_of(self.units)

    @cached_property
    def shares(self) -> dict[str, float]:
        many = Counter(self.kinds.values())
        return {name: SHARES[kind] / many[kind] for name, kind in self.kinds.items()}

    def looks(self) -> list[float]:
        """Return the ends of the days with runs after, in hours; of many days some."""
        hours = [each.hours[each.is_after] for each in self.units.values()]
        found = np.unique(np.floor(np.concatenate([*hours, np.empty(0)]) / _DAY))
        ends = [float(each + 1) * _DAY for each in found]
        # looked at each day, a site would see more by chance
        return [end for place, end in enumerate(ends, 1) if place in _LOOKS or end == ends[-1]]

    def ruled(self, hour: float | None) -> dict[str, Ruling]:
        """Return the rulings by the runs until then."""
        units = self.units if hour is None else {k: u.until(hour) for k, u in self.units.items()}
        return rule(units, self.shares, self.usual)

    def shift(
        self,
        name: str,
        one: Ruling,
        ruled: Mapping[float, Mapping[str, Ruling]],
        held: Held,
    ) -> Shift:
        """Return the row of a unit."""
        before, after = one.unit.counts
        undecided = one.outcome is ShiftVerdict.UNDECIDED
        return Shift(
            self.kinds[name],
            name,
            len(self.members[name]),
            one.outcome,
            one.ratio,
            one.bound,
            one.visible,
            one.more() if undecided else None,
            before,
            after,
            tuple(self._story(name, ruled, held)),
        )

    def _story(
        self, name: str, ruled: Mapping[float, Mapping[str, Ruling]], held: Held
    ) -> Iterator[tuple[date, str, int]]:
        """Yield what became of a claim, as it would have been said on each day."""
        claimed: ShiftVerdict | None = None
        first, confirmed = 0.0, False
        unit = self.units[name]
        for hour, rulings in ruled.items():
            one = rulings.get(name)
            if one is None:
                continue
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
                if since_alone(unit.until(hour), first, one.fit.usual, float(way)):
                    confirmed = True
                    yield when, CONFIRMED, runs


def _groups(sides: Sequence[_Side]) -> Iterator[tuple[str, str, list[_Side]]]:
    """Yield kind, name and members: all, file systems, and their patterns and variables."""
    found: defaultdict[tuple[str, str], list[_Side]] = defaultdict(list)
    for each in sides:
        key = each.series.key
        where = str(key.file_system)
        found["site", "all"].append(each)
        found["site", where].append(each)
        found["part", f"{where} {key.pattern}"].append(each)
        found["part", f"{where} {key.variable}"].append(each)
    seen: set[frozenset[SeriesKey]] = set()
    # a site with one file system is called by it
    kept = []
    for (kind, name), group in sorted(found.items(), key=lambda each: each[0][1] == "all"):
        keys = frozenset(each.series.key for each in group)
        if len(keys) > 1 and keys not in seen:
            seen.add(keys)
            kept.append((kind, name, group))
    yield from sorted(kept, key=lambda each: (each[1] != "all", each[1]))


def _epochs(judged: JudgedSite, held: Held) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for each in judged.judged.values():
        if each.series.key.system == held.system:
            for epoch in each.bands.epochs:
                if held.begin < epoch.since <= held.end + _BECAUSE:
                    found[f"{epoch.name}, {epoch.since:%d %b %H:%M} UTC"] = None
    return tuple(found)


def _beside(site: Snapshot, sides: Sequence[_Side]) -> Iterator[Beside]:
    """Yield what differs on the two sides, by the samples' own columns."""
    changed: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    for side in sides:
        frame = site.samples_of(side.series)[side.rows]
        is_after = side.unit.is_after
        for name, one, other in _differing(frame, is_after):
            changed[name, one, other] += 1
    number: Counter[str] = Counter()
    for (name, one, other), series in sorted(changed.items(), key=lambda each: -each[1]):
        number[name] += 1
        if number[name] <= 3:  # noqa: PLR2004 (more of them are no summary)
            yield Beside(name, one, other, series, len(sides))


def _differing(frame: pl.DataFrame, is_after: Flags) -> Iterator[tuple[str, str, str]]:
    for name in _TEXTS:
        cells = frame[name].cast(pl.String).to_numpy()
        one, other = ({*map(str, cells[side][-10:])} for side in (~is_after, is_after))
        if one and other and not one & other and {"None"} not in (one, other):
            yield name, _common(cells[~is_after]), _common(cells[is_after])
    for name in _NUMBERS:
        numbers = frame[name].cast(pl.Float64).to_numpy()
        old, new = (_finite(numbers[side]) for side in (~is_after, is_after))
        if len(old) and len(new):
            middle = float(np.median(new))
            margin = _MATTERS * float(np.median(np.abs(old)))
            if not old.min() - margin <= middle <= old.max() + margin:
                low, high = f"{old.min():.3g}", f"{old.max():.3g}"
                yield name, low if low == high else f"{low} to {high}", f"{middle:.3g}"


def _finite(numbers: Array) -> Array:
    return numbers[np.isfinite(numbers)]


def _common(cells: Iterable[Any]) -> str:
    return Counter(map(str, cells)).most_common(1)[0][0]
