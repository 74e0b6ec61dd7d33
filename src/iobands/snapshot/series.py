"""A series with its status, its missing runs, and the actions of people on it."""

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

#: The largest difference between the clocks of machines that is accepted.
CLOCKS: Final = timedelta(hours=1)

#: A maintenance that was begun without an end ends by itself after this time.
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
        """Return whether the action is about `key`, a series or a target or node."""
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
        """The values in `series` by the names of their fields, which are mostly the same."""
        found: dict[tuple[str, ...], set[tuple[object, ...]]] = {}
        for match in self.series:
            names = tuple(sorted(match))
            found.setdefault(names, set()).add(tuple(canonical(match[name]) for name in names))
        return list(found.items())


@lru_cache(maxsize=10_000)
def _fields(key: SeriesKey) -> dict[str, object]:
    return {name: canonical(value) for name, value in key.fields().items()}


def in_force(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Return the actions that were not undone, in the order of the log.

    An undo withdraws only lines above it, so an action repeated in the same second counts.
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
    """A maintenance that a person began; `ended` is None until a person ends it."""

    action: Action
    window: Window
    ended: datetime | None

    def is_open(self, now: datetime) -> bool:
        """Return whether it has not ended yet."""
        return self.ended is None and now < self.window.end

    def is_forgotten(self, now: datetime) -> bool:
        """Return whether it ended by itself because nobody ended it."""
        return self.ended is None and self.action.until is None and now >= self.window.end


def begun(actions: Iterable[Action]) -> tuple[BegunMaintenance, ...]:
    """Return the maintenances that people began, in the order of the log of actions."""
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


#: The verdicts; the index is the code. From good to bad.
VERDICTS: Final = (NO_BAND, WITHIN, ABOVE, BELOW, COLLAPSED)


@dataclass(frozen=True)
class MissingRun:
    """A run that should have given a sample of a series but gave none, and `what` happened to it.

    `session` is the session that it names, if any. `is_failure` means that it ran and failed.
    """

    when: datetime
    what: str
    session: str | None = None
    is_failure: bool = False


@dataclass(frozen=True)
class Finding:
    """A check that has never given a sample, and whose newest run failed or was skipped."""

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
        """Return the counts of both together."""
        times = [each.newest for each in (self, other) if each.newest]
        return Outliers(
            self.runs + other.runs, self.outliers + other.outliers, max(times, default=None)
        )


_MIB = 2**20


@dataclass(frozen=True)
class InEffect:
    """The layout, transport, hints and cache of one sample, as read back; None if not proven.

    `stripe_size` is in bytes; `hints` has the form `name=value,...`; `cache` is the state of the
    page cache before reads, as in contract 1.
    """

    stripe_count: int | None = None
    stripe_size: int | None = None
    transport: str | None = None
    hints: str | None = None
    cache: str | None = None

    def text(self) -> str:
        """Return a summary such as `4 stripes of 1 MiB, transport ucx, 2 hints`; may be empty."""
        words = []
        if self.stripe_count is not None:
            size = "" if self.stripe_size is None else f" of {self.stripe_size / _MIB:g} MiB"
            words.append(f"{self.stripe_count} stripe{'s' * (self.stripe_count != 1)}{size}")
        words += [] if self.transport is None else [f"transport {self.transport}"]
        if self.hints is not None:
            number = self.hints.count(",") + 1
            words.append(f"{number} hint{'s' * (number > 1)}")
        return ", ".join(words)


def in_effect(sample: Mapping[str, Any]) -> InEffect:
    """Return what was in effect, from the columns of a sample."""
    proved = ("stripe_count", "stripe_size", "transport_in_effect", "hints_in_effect", "cache")
    return InEffect(*map(sample.get, proved))


@dataclass(frozen=True)
class Obstacle:
    """A file system, environment or partition that has been unfit since `when`, or stopped checks.

    `checks` are the names of the stopped checks, and `keys` the series that they would measure.
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
    """The current state of a series, with its reasons; values are in the unit of the series.

    `value`, `when` and `verdict` are of the newest sample. `band` is the published one or, if
    `provisional`, one learned from the series' own runs. `runs` counts the samples, and `usable`
    those before the newest that a band may be learned from. `why` says why a series is calibrating,
    and `missing` why the newest expected sample is missing. `evidence` is None without a sample.
    `left_out` says why the newest sample is not judged, and is empty if it is. `limit` is a single
    published figure, which gives the verdict until a band is learned.
    """

    state: State
    why: str
    value: float | None
    when: datetime | None
    verdict: str = NO_BAND
    band: Band | None = None
    provisional: bool = False
    runs: int = 0
    usable: int = 0
    evidence: Evidence | None = None
    missing: str | None = None
    left_out: str = ""
    limit: Limit | None = None

    @property
    def change(self) -> Change[datetime] | None:
        """The open change, or None."""
        return self.evidence.open_change if self.evidence else None

    @property
    def is_low_once(self) -> bool:
        """Whether its newest run collapsed and the series is healthy otherwise."""
        is_low = self.verdict == COLLAPSED and not self.left_out
        return is_low and self.state is State.HEALTHY


@dataclass(frozen=True)
class Verdicts:
    """The time of each sample, in seconds since 1970, and the code of its verdict.

    Both have the shape (samples,). `segments` lists when the band changes: the time of the first
    sample, and the index in `bands` from then on, -1 for no band.
    """

    times: NDArray[np.int64] = field(repr=False, compare=False)
    codes: NDArray[np.int64] = field(repr=False, compare=False)
    bands: tuple[Band, ...]
    segments: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Series:
    """A series with its samples and its status.

    `rows`, of shape (samples,), are the indices of its samples in `Snapshot.samples`, which has all
    columns. `epochs` are the epochs of its system, without bands, and `epoch` is the one of the
    newest sample. `missing` are the runs that gave no sample, in the order of time. `actions` are
    all actions on the series, including undone ones.
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
        """Its name in files, which is independent of other series."""
        return slug(self.key)

    @cached_property
    def judged(self) -> tuple[Times, NDArray[np.float64]]:
        """The times and values of the runs that were judged, which are `rows` of the evidence."""
        rows = self.status.evidence.rows if self.status.evidence else np.empty(0, int)
        return self.history.times[rows], self.history.values[rows]

    @cached_property
    def logarithms(self) -> tuple[NDArray[np.int_], NDArray[np.int_], NDArray[np.float64]]:
        """Indices, sessions and logarithms of the judged runs; of all if there is no evidence."""
        evidence, values = self.status.evidence, self.history.values
        rows = np.arange(len(values)) if evidence is None else evidence.rows
        return rows, self.history.sessions[rows], np.log(values[rows])

    @property
    def is_on_demand(self) -> bool:
        """Whether it is a case that runs only on demand: no tag of it has an interval."""
        return self.key.case is not None and not self.history.is_scheduled

    @property
    def shares_causes(self) -> bool:
        """Whether it may share an alert with other series."""
        return may_share(self.key, self.history)

    def trait(self, field: str) -> str | None:
        """Return the value of a series field, or of `medium`, as text; None if it has none."""
        of_sample = field == "medium"
        value = self.history.newest.get(field) if of_sample else getattr(self.key, field)
        return None if value is None else str(value)

    @cached_property
    def in_effect(self) -> InEffect:
        """What was in effect in the newest sample."""
        return in_effect(self.history.newest)


def may_share(key: SeriesKey, history: History) -> bool:
    """Return whether a series may share an alert: not cases on demand, nor the ratios of cases."""
    return key.case is None or (history.is_scheduled and key.unit != RATIO_UNIT)
