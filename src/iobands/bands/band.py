"""Quartile bands, the verdict on a value, and which band holds at a time (contract 3)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, Final, Literal, TypeVar
from zoneinfo import ZoneInfo

from iobands.model.fields import VARIABLE_UNITS, canonical

ABOVE: Final = "above"
WITHIN: Final = "within"
BELOW: Final = "below"
COLLAPSED: Final = "collapsed"
NO_BAND: Final = "no band"

#: The states of a learned band: it may still move, it holds, or no further run changes it.
PROVISIONAL: Final = "provisional"
ACTIVE: Final = "active"
FROZEN: Final = "frozen"

#: The floor is at least a tenth below the lower quartile. If values hardly differ, the fence is at
#: the quartile, and on the steadiest file systems a fall by a percent would be `collapsed`.
_LEAST_FALL: Final = 0.9


def log_fence(lower_quartile: float, upper_quartile: float, runs: int | None = None) -> float:
    """Return the lower fence of a band on the logarithmic scale, at most 0.9 LQ, in its unit.

    The fence is exp(ln LQ - 1.5 (ln UQ - ln LQ)) = LQ (LQ / UQ)**1.5: Tukey's inner fence
    (Exploratory Data Analysis, 1977, chapter 2) of the logarithms, as in contract 3. If quartiles
    were learned from `runs` (20 or more), it is lower, as they are uncertain: a prediction limit.
    """
    # 0.35 % of normal values are below the fence of many others. The added term gives the fence of
    # n values the same share, to 0.05 percentage points, by simulation for n from 20 to 200.
    ranges = 1.5 + (14 / (runs - 4) if runs else 0)
    return lower_quartile * min((lower_quartile / upper_quartile) ** ranges, _LEAST_FALL)


@dataclass(frozen=True, kw_only=True)
class Judgement(ABC):
    """Judges the values of the series whose fields equal all entries of `match`.

    All figures are in `unit`; `epoch` and `source` say where they come from. `runs` is the number
    of runs behind them, None if not known.
    """

    match: Mapping[str, object] = field(default_factory=dict)
    unit: str = ""
    runs: int | None
    epoch: str = ""
    source: str

    @cached_property
    def wanted(self) -> Mapping[str, float | str | None]:
        """The fields of `match` in the form in which they are compared."""
        return {name: canonical(value) for name, value in self.match.items()}

    @property
    @abstractmethod
    def _ends(self) -> tuple[float, float, float]:
        """The floor, and the least and the largest value that is `within`."""

    def verdict(self, value: float) -> str:
        """Return `above`, `within`, `below` or `collapsed` for `value`, which is in `unit`.

        Quartiles and limits themselves are `within`, and the floor itself is `below`. Raises
        ValueError for NaN.
        """
        if math.isnan(value):
            raise ValueError("NaN has no verdict: a run without a value is not a sample")
        floor, least, largest = self._ends
        if value < floor:
            return COLLAPSED
        return BELOW if value < least else ABOVE if value > largest else WITHIN


@dataclass(frozen=True, kw_only=True)
class Limit(Judgement):
    """A single published figure: the maximum, the minimum or the approximate healthy value.

    It does not say how far healthy values differ. So it makes no value `collapsed`, and a series
    still learns its own band.
    """

    kind: Literal["at_most", "at_least", "about"]
    value: float

    @property
    def _ends(self) -> tuple[float, float, float]:
        # everything from half to double of an `about` figure is within
        least = {"at_least": self.value, "about": self.value / 2}.get(self.kind, -math.inf)
        largest = {"at_most": self.value, "about": self.value * 2}.get(self.kind, math.inf)
        return -math.inf, least, largest

    def reference(self) -> tuple[float, None, None, str]:
        """Return ReFrame's reference, by which no run fails."""
        return (self.value, None, None, self.unit)


@dataclass(frozen=True, kw_only=True)
class Band(Judgement):
    """The quartiles of healthy values of some series; all figures are in `unit`.

    `floor` is always a number: the one in the file, else `log_fence`. `state` is `PROVISIONAL`,
    `ACTIVE` or `FROZEN` for a learned band, None for a published one. `intervals` maps the name of
    a figure to its 95 % interval (low, high).
    """

    lower_quartile: float
    median: float
    upper_quartile: float
    maximum: float | None
    floor: float
    state: str | None = None
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def is_own(self) -> bool:
        """Whether it was learned from the series' own runs and is not in a bands file."""
        return not self.epoch

    @property
    def _ends(self) -> tuple[float, float, float]:
        return self.floor, self.lower_quartile, self.upper_quartile

    def reference(self) -> tuple[float, float, None, str]:
        """Return ReFrame's reference, by which only a collapsed run fails.

        It is (median, floor / median - 1, None, unit), so that median * (1 + lower) is the floor
        to within rounding.
        """
        return (self.median, self.floor / self.median - 1, None, self.unit)


_Names = tuple[str, ...]
_Values = tuple[float | str | None, ...]
_Of = TypeVar("_Of", Band, Limit)


@dataclass(frozen=True)
class Epoch:
    """A span of time, from `since` to the next epoch, in which samples can be compared.

    With `continues` only the bands are new: its samples can also be compared with earlier ones.
    `runs_since` is the time of the first run that its bands were learned from. `limits` are single
    figures; if a band applies too, only the band judges.
    """

    name: str
    since: datetime
    source: str
    bands: tuple[Band, ...]
    reason: str = ""
    continues: bool = False
    runs_since: datetime | None = None
    limits: tuple[Limit, ...] = ()

    def is_void(self, others: Iterable[Epoch]) -> bool:
        """Return whether one of `others` began between runs that its bands were learned from."""
        return self.runs_since is not None and any(
            not each.continues and self.runs_since < each.since < self.since for each in others
        )

    def best(self, kind: type[_Of], fields: Mapping[str, object]) -> _Of | None:
        """Return the band or limit for `fields` that names the most of them, or None.

        All entries of its `match` must equal `fields`. A sample of a case needs one that names the
        case, as no other field may distinguish such a sample from others.
        """
        known = {name: canonical(value) for name, value in fields.items()}
        variable, is_of_case = known.get("variable"), known.get("case") is not None
        applying = [
            each
            for names, by_values in self._index.items()
            for each in by_values.get(tuple(known.get(name) for name in names), ())
            if isinstance(each, kind)
            if variable is None or each.unit == VARIABLE_UNITS.get(str(variable))
            if "case" in each.match or not is_of_case
        ]
        return max(applying, key=lambda each: len(each.match), default=None)

    @cached_property
    def _index(self) -> Mapping[_Names, Mapping[_Values, Sequence[Judgement]]]:
        """Bands and limits by the names and values in `match`: each series may have its own."""
        found: dict[_Names, dict[_Values, list[Judgement]]] = {}
        for each in (*self.bands, *self.limits):
            names = tuple(sorted(each.wanted))
            values = tuple(each.wanted[name] for name in names)
            found.setdefault(names, {}).setdefault(values, []).append(each)
        return found


@dataclass(frozen=True)
class Bands:
    """The bands of one system, its epochs in the order of time.

    Samples in the spans `left_out` are kept but not judged. `maintenance` are the windows in the
    file; the judge adds them to the spans of a series. `least_change` is the smallest change that
    raises an alert, as a share of the level before, None if the file does not set it. `warnings`
    name entries of the files that are probably not intended.
    """

    system: str
    epochs: tuple[Epoch, ...]
    left_out: tuple[Spans, ...] = ()
    least_change: float | None = None
    maintenance: tuple[Window, ...] = ()
    warnings: tuple[str, ...] = ()

    def leaving_out(self, spans: Spans) -> Bands:
        """Return the bands with further spans that are not judged."""
        return replace(self, left_out=(*self.left_out, spans))

    def epoch_at(self, when: datetime) -> Epoch | None:
        """Return the epoch in force at `when`: the last that began by then, or None."""
        return next((epoch for epoch in reversed(self.epochs) if epoch.since <= when), None)

    def compares_since(self, when: datetime) -> datetime | None:
        """Return the time from which samples are comparable with one taken at `when`; None for all.

        This is the beginning of the last epoch by then that does not continue the one before.
        """
        breaks = [e.since for e in self.epochs if e.since <= when and not e.continues]
        return max(breaks, default=None)

    def band_for(self, fields: Mapping[str, object], when: datetime) -> Band | None:
        """Return the band for a sample taken at `when`, or None if there is no band.

        `fields` are series fields, `variable`, `medium` and `file_system_type`. Their types do not
        matter: the text "64" of a perflog equals the number 64 of a bands file.
        """
        return self._best(Band, fields, when)

    def limit_for(self, fields: Mapping[str, object], when: datetime) -> Limit | None:
        """Return the limit for a sample; see `band_for`."""
        return self._best(Limit, fields, when)

    def _best(self, kind: type[_Of], fields: Mapping[str, object], when: datetime) -> _Of | None:
        epoch = self.epoch_at(when)
        is_of_system = canonical(fields.get("system", self.system)) == canonical(self.system)
        return epoch.best(kind, fields) if epoch and is_of_system else None


@dataclass(frozen=True)
class Window:
    """A maintenance from `begin` to `end`, of some `file_systems` or, if empty, of all.

    `repeat` is a recurrence rule of RFC 5545, such as `FREQ=MONTHLY;BYDAY=1WE`. Its occurrences
    begin and end at the wall-clock times of `begin` and `end` in the time `zone`, or at the UTC
    offset of `begin`.
    """

    begin: datetime
    end: datetime
    reason: str
    repeat: str = ""
    zone: str = ""
    file_systems: tuple[str, ...] = ()

    def is_of(self, file_system: object) -> bool:
        """Return whether the maintenance includes the file system."""
        return not self.file_systems or file_system in self.file_systems

    def spans(self, until: datetime) -> tuple[Span, ...]:
        """Return the occurrences that began by `until`, in the order of time."""
        return _around(self, until)[0]

    def following(self, now: datetime) -> Span | None:
        """Return the first occurrence that begins after `now`, or None."""
        return _around(self, now)[1]

    def begins(self, until: datetime) -> Iterator[datetime]:
        """Yield the times at which its occurrences begin, in order, up to `until`.

        Raises ValueError if `repeat` is not a rule.
        """
        if not self.repeat:
            yield self.begin
            return
        # imported here, as the checks need no windows and a site's own ReFrame may lack it
        from dateutil.rrule import rrulestr  # noqa: PLC0415

        start = self.begin.astimezone(ZoneInfo(self.zone)) if self.zone else self.begin
        rule: Any = rrulestr(self.repeat, dtstart=start)
        # dateutil looks for a day that never comes until the year 9999: begin near it, as the
        # calendar repeats itself every 400 years
        late = start.replace(tzinfo=None, year=start.year + (9989 - start.year) // 400 * 400)
        if next(iter(rule.replace(dtstart=late, until=None, count=None)), None) is None:
            return
        if rule._count is not None and rule._count < 1:  # dateutil accepts it
            raise ValueError("COUNT is not above 0")
        ends = [each for each in (rule._until, max(until, start)) if each]
        yield from islice(rule.replace(until=min(ends), count=None), rule._count)


#: How far ahead the next occurrence is looked for.
_AHEAD: Final = timedelta(days=3653)


@lru_cache(256)  # years of a daily window take a while, and each series asks for them
def _around(window: Window, when: datetime) -> tuple[tuple[Span, ...], Span | None]:
    """Return the occurrences that began by `when`, and the next one, if any."""
    found: list[Span] = []
    for each in window.begins(when + _AHEAD):
        # with times of one zone, Python adds and subtracts what a clock on the wall shows
        start, end = (time.astimezone(each.tzinfo) for time in (window.begin, window.end))
        begin, until = (time.astimezone(timezone.utc) for time in (each, each + (end - start)))
        span = Span(begin, max(begin, until), f"maintenance: {window.reason}")
        if begin > when:
            return tuple(found), span
        found.append(span)
    return tuple(found), None


@dataclass(frozen=True)
class Span:
    """The time from `begin` to `end`, both included; `why` says why samples in it do not count."""

    begin: datetime
    end: datetime
    why: str = ""

    def __contains__(self, when: datetime) -> bool:
        """Return whether `when` is in it."""
        return self.begin <= when <= self.end


@dataclass(frozen=True, eq=False)
class Spans:
    """Spans that may overlap; a binary search finds a time even in years of a daily window."""

    every: tuple[Span, ...] = ()

    @cached_property
    def edges(self) -> tuple[list[datetime], list[datetime]]:
        """The begins and the ends of the spans, in order; overlapping ones are joined."""
        begins: list[datetime] = []
        ends: list[datetime] = []
        for span in sorted(self.every, key=lambda each: each.begin):
            if ends and span.begin <= ends[-1]:
                ends[-1] = max(span.end, ends[-1])
            else:
                begins.append(span.begin)
                ends.append(span.end)
        return begins, ends

    def __contains__(self, when: datetime) -> bool:
        """Return whether `when` is in one of them."""
        begins, ends = self.edges
        place = bisect_right(begins, when)
        return place > 0 and when <= ends[place - 1]

    def why(self, when: datetime) -> str:
        """Return why a sample taken at `when` is left out; empty if it is not."""
        return next((each.why for each in self.every if when in each), "") if when in self else ""

    def covered(self, begin: datetime, end: datetime) -> timedelta:
        """Return how much of the time from `begin` to `end` is in the spans."""
        begins, ends = self.edges
        near = slice(bisect_left(ends, begin), bisect_right(begins, end))
        inside = zip(begins[near], ends[near], strict=True)
        parts = (max(min(last, end) - max(first, begin), timedelta()) for first, last in inside)
        return sum(parts, timedelta())
