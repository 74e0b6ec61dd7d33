"""A series: its samples as arrays, and what is known of it now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iobands.bands.band import ABOVE, BELOW, COLLAPSED, NO_BAND, WITHIN, Band, Epoch, Limit
from iobands.model import RATIO_UNIT, SeriesKey, slug
from iobands.snapshot.action import Action
from iobands.snapshot.history import Change, Evidence, History, State, Times

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
    """Layout, transport and hints of one sample; None if there are none, or no evidence.

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
        if self.transport is not None:
            words.append(self.transport)
        if self.hints is not None:
            number = self.hints.count(",") + 1
            words.append(f"{number} hint{'s' if number > 1 else ''}")
        return " ".join(words)


def in_effect(sample: Mapping[str, Any]) -> InEffect:
    """Return what was in effect in a sample, by its columns."""
    return InEffect(
        sample.get("stripe_count"),
        sample.get("stripe_size"),
        sample.get("transport_in_effect"),
        sample.get("hints_in_effect"),
        sample.get("cache"),
    )


@dataclass(frozen=True)
class Obstacle:
    """A file system, an environment or a partition that is unfit, or has stopped checks.

    `checks` are the names of the stopped checks, and `keys` the series that they would give.
    """

    subject: str
    system: str
    partition: str
    why: str
    when: datetime
    checks: tuple[str, ...]
    keys: frozenset[SeriesKey]


#: How many runs a series needs to learn a band, and how many of the newest are used.
ENOUGH_RUNS: Final = 20


@dataclass(frozen=True)
class Status:
    """What is known of one series now; values are in the unit of the series.

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
    def change(self) -> Change | None:
        """The change that lasts, or None."""
        return self.evidence.open_change if self.evidence else None


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
    """A series with its samples and what is known of it now.

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

    @property
    def judged(self) -> tuple[Times, NDArray[np.float64]]:
        """The times and the values of the runs that the evidence is of."""
        rows = self.status.evidence.rows if self.status.evidence else np.empty(0, int)
        return self.history.times[rows], self.history.values[rows]

    @cached_property
    def logarithms(self) -> tuple[NDArray[np.int_], NDArray[np.int_], NDArray[np.float64]]:
        """The places, sessions and logarithms of the judged runs above 0; of all if none is."""
        evidence, values = self.status.evidence, self.history.values
        rows = np.arange(len(values)) if evidence is None else evidence.rows
        rows = rows[values[rows] > 0]
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
