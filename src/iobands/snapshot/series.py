"""A series: its samples as arrays, its status, and the actions of people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iobands.bands.band import ABOVE, BELOW, COLLAPSED, NO_BAND, WITHIN, Band, Epoch, Limit, Window
from iobands.model.fields import RATIO_UNIT, canonical
from iobands.model.series import FIELD_OF, PeerName, SeriesKey, slug
from iobands.snapshot.history import Change, Evidence, History, State, Times

ACKNOWLEDGE: Final = "acknowledge"
RESOLVE: Final = "resolve"
REBASELINE: Final = "rebaseline"
UNDO: Final = "undo"
RETIRE: Final = "retire"
DISCARD: Final = "discard"
BEGIN: Final = "begin maintenance"
END: Final = "end maintenance"

#: A person's verdict on a resolved alert.
REAL: Final = "real"
FALSE: Final = "false"

#: The largest accepted difference between the clocks of machines.
CLOCKS: Final = timedelta(hours=1)

#: After this time a maintenance ends by itself, unless it was begun with an end.
LONGEST_MAINTENANCE: Final = timedelta(hours=12)


@dataclass(frozen=True)
class Action:
    """What `who` did at `when`, and why; contract 5 defines the fields."""

    kind: str
    when: datetime
    who: str
    reason: str
    series: tuple[Mapping[str, object], ...]
    since: datetime | None = None
    until: datetime | None = None
    direction: str | None = None
    ratio: float | None = None
    of: datetime | None = None
    verdict: str | None = None
    subject: str | None = None
    target: str | None = None
    node: str | None = None
    alert: int | None = None
    ticket: str | None = None
    owner: str | None = None

    def names(self, key: SeriesKey | PeerName) -> bool:
        """Return whether the action is about the series `key`, or the target or node."""
        if isinstance(key, PeerName):
            own = getattr(self, key.kind) == key.name
            return own and any(each.get(FIELD_OF[key.kind]) == key.where for each in self.series)
        if self.target or self.node or self.kind in {BEGIN, END}:
            return False
        fields = _fields(key)
        return any(
            tuple(fields.get(name) for name in names) in values for names, values in self._wanted
        )

    @cached_property
    def _wanted(self) -> list[tuple[tuple[str, ...], set[tuple[object, ...]]]]:
        """The matches by the fields that they name, which are mostly the same for many series."""
        found: dict[tuple[str, ...], set[tuple[object, ...]]] = {}
        for match in self.series:
            names = tuple(sorted(match))
            found.setdefault(names, set()).add(tuple(canonical(match[name]) for name in names))
        return list(found.items())


@lru_cache(maxsize=10_000)
def _fields(key: SeriesKey) -> dict[str, object]:
    return {name: canonical(value) for name, value in key.fields().items()}


def in_force(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Return the actions, in the order of the log, that were not undone.

    An undo withdraws only earlier lines, so an action repeated in the same second counts.
    """
    found: list[Action] = []
    for action in actions:
        if action.kind == UNDO:
            found = [each for each in found if each.when != action.of]
        else:
            found.append(action)
    return tuple(found)


@dataclass(frozen=True)
class BegunMaintenance:
    """A maintenance that somebody began: its window, and when it was ended, None if not yet."""

    action: Action
    window: Window
    ended: datetime | None

    def is_open(self, now: datetime) -> bool:
        """Return whether it lasts."""
        return self.ended is None and now < self.window.end

    def is_forgotten(self, now: datetime) -> bool:
        """Return whether it had to end by itself."""
        return self.ended is None and self.action.until is None and now >= self.window.end


def begun(actions: Iterable[Action]) -> tuple[BegunMaintenance, ...]:
    """Return the maintenances that people began, by the log of actions, in the order of the log."""
    every = [*actions]
    ends = {each.of: each.until for each in every if each.kind == END}
    found = []
    for each in every:
        if each.kind != BEGIN:
            continue
        last = ends.get(each.when)
        begin = each.since or each.when
        end = last or each.until or begin + LONGEST_MAINTENANCE
        places = tuple(str(match["file_system"]) for match in each.series)
        window = Window(begin, max(begin, end), each.reason, file_systems=places)
        found.append(BegunMaintenance(each, window, last))
    return tuple(found)


#: The verdicts by their codes, from good to bad.
VERDICTS: Final = (NO_BAND, WITHIN, ABOVE, BELOW, COLLAPSED)


@dataclass(frozen=True)
class MissingRun:
    """A run that should have given a sample of a series but gave none.

    `session` is the one that it names, None where it names none. `is_failure` if it ran and failed.
    """

    when: datetime
    what: str
    session: str | None = None
    is_failure: bool = False


@dataclass(frozen=True)
class Finding:
    """A check that never gave a series, and failed or was skipped in its newest run."""

    name: str
    system: str
    partition: str
    phase: str | None
    reason: str
    when: datetime


@dataclass(frozen=True)
class Outliers:
    """How many of `runs` were outliers, and when the newest of them was taken (UTC)."""

    runs: int = 0
    outliers: int = 0
    newest: datetime | None = None

    def __add__(self, other: Outliers) -> Outliers:
        """Return the count of both."""
        times = [each.newest for each in (self, other) if each.newest]
        return Outliers(
            self.runs + other.runs, self.outliers + other.outliers, max(times, default=None)
        )


_MIB = 2**20


@dataclass(frozen=True)
class InEffect:
    """Layout, transport and hints of one sample; None without evidence.

    `stripe_size` is in bytes; `hints` are written as `name=value,...`; `cache` is the state of the
    page cache before reads, as in contract 1.
    """

    stripe_count: int | None = None
    stripe_size: int | None = None
    transport: str | None = None
    hints: str | None = None
    cache: str | None = None

    def brief(self) -> str:
        """Return it in a few words, such as `4×1 MiB ucx 2 hints`; empty if nothing is known."""
        words = []
        if self.stripe_count is not None:
            size = "" if self.stripe_size is None else f"×{self.stripe_size / _MIB:g} MiB"
            words.append(f"{self.stripe_count}{size}")
        words += [] if self.transport is None else [self.transport]
        if self.hints is not None:
            number = self.hints.count(",") + 1
            words.append(f"{number} hint{'s' if number > 1 else ''}")
        return " ".join(words)

    def full(self) -> str:
        """Return it in words, such as `4 stripes of 1 MiB, transport ucx, hints a=1,b=2`."""
        words = []
        if self.stripe_count is not None:
            size = "" if self.stripe_size is None else f" of {self.stripe_size / _MIB:g} MiB"
            words.append(f"{self.stripe_count} stripe{'s' * (self.stripe_count != 1)}{size}")
        words += [] if self.transport is None else [f"transport {self.transport}"]
        words += [] if self.hints is None else [f"hints {self.hints}"]
        return ", ".join(words)


def in_effect(sample: Mapping[str, Any]) -> InEffect:
    """Return what was in effect in a sample, by its columns."""
    proved = ("stripe_count", "stripe_size", "transport_in_effect", "hints_in_effect", "cache")
    return InEffect(*map(sample.get, proved))


@dataclass(frozen=True)
class Obstacle:
    """A file system, an environment or a partition that is unfit, or has stopped checks.

    It is so since `when`. `checks` are the names of the stopped checks, and `keys` the series that
    they would give.
    """

    subject: str
    system: str
    partition: str
    why: str
    when: datetime
    checks: tuple[str, ...]
    keys: frozenset[SeriesKey]


#: How many runs a series needs to learn a band.
ENOUGH_RUNS: Final = 20


@dataclass(frozen=True)
class Status:
    """The state of one series now, and the reasons; values are in the unit of the series.

    `value`, `when` and `verdict` belong to the newest sample. `band` is the published one or, if
    `provisional`, one learned from the series' own history. `runs` counts the samples, `usable` the
    earlier ones that a band may be learned from. `why` says why a series is calibrating, `missing`
    why the newest sample is not the expected one. `evidence` is None without a sample. `left_out`
    says why the newest sample is not judged, and is empty if it is. `limit` is the single published
    figure of the series; until a band is learned, its verdict counts.
    """

    state: State
    why: str
    value: float | None
    when: datetime | None
    verdict: str
    band: Band | None
    provisional: bool
    runs: int
    usable: int
    evidence: Evidence | None = None
    missing: str | None = None
    left_out: str = ""
    limit: Limit | None = None

    @property
    def change(self) -> Change[datetime] | None:
        """The change that lasts, or None."""
        return self.evidence.open_change if self.evidence else None

    @property
    def is_low_once(self) -> bool:
        """Whether its newest run collapsed, and that is all."""
        is_low = self.verdict == COLLAPSED and not self.left_out
        return is_low and self.state is State.HEALTHY


@dataclass(frozen=True)
class Verdicts:
    """For each sample its time in seconds since 1970 and the code of its verdict.

    Both are of shape (samples,). `segments` has the time from which each band holds, and its place
    in `bands`, -1 for none.
    """

    times: NDArray[np.int64] = field(repr=False, compare=False)
    codes: NDArray[np.int64] = field(repr=False, compare=False)
    bands: tuple[Band, ...]
    segments: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Series:
    """A series with its samples and its status.

    `rows`, of shape (samples,), are the places of its samples in the frame of the snapshot, which
    has all columns. `epochs` are the epochs of its system, without their bands; `epoch` is the one
    of the newest sample. `missing` are the runs without a sample, in the order of time; `actions`
    has all actions on the series, including undone ones.
    """

    key: SeriesKey
    label: str
    history: History
    rows: NDArray[np.uint32] = field(repr=False, compare=False)
    status: Status
    outliers: Outliers
    verdicts: Verdicts
    epoch: Epoch | None = None
    epochs: tuple[Epoch, ...] = ()
    missing: tuple[MissingRun, ...] = ()
    actions: tuple[Action, ...] = ()

    @property
    def name(self) -> str:
        """Its name in files, which does not depend on other series."""
        return slug(self.key)

    @cached_property
    def judged(self) -> tuple[Times, NDArray[np.float64]]:
        """The times and the values of the runs that the evidence is of."""
        rows = self.status.evidence.rows if self.status.evidence else np.empty(0, int)
        return self.history.times[rows], self.history.values[rows]

    @cached_property
    def logarithms(self) -> tuple[NDArray[np.int_], NDArray[np.int_], NDArray[np.float64]]:
        """The places, sessions and logarithms of the judged runs; else of all runs."""
        evidence, values = self.status.evidence, self.history.values
        rows = np.arange(len(values)) if evidence is None else evidence.rows
        return rows, self.history.sessions[rows], np.log(values[rows])

    @property
    def is_on_demand(self) -> bool:
        """Whether it is a case without a tag with an interval in the site file."""
        return self.key.case is not None and not self.history.is_scheduled

    @property
    def shares_causes(self) -> bool:
        """Whether it may share an alert with others."""
        return may_share(self.key, self.history)

    def trait(self, field: str) -> str | None:
        """Return the value of a field that series may have in common, None where it has none."""
        of_sample = field == "medium"
        value = self.history.newest.get(field) if of_sample else getattr(self.key, field)
        return None if value is None else str(value)

    @cached_property
    def in_effect(self) -> InEffect:
        """What was in effect in the newest sample."""
        return in_effect(self.history.newest)


def may_share(key: SeriesKey, history: History) -> bool:
    """Return whether a series may share a cause: not a case on demand, nor the ratio of one."""
    return key.case is None or (history.is_scheduled and key.unit != RATIO_UNIT)
