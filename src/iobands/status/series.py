"""A series with its samples and its status: what alerts are built from and views show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from iobands.bands import Bands, Epoch
from iobands.model.history import History
from iobands.model.series import SeriesKey
from iobands.results.missing_runs import MissingRun
from iobands.status.in_effect import InEffect, in_effect
from iobands.status.outliers import NONE, Outliers, TransientRuns
from iobands.status.state import Status

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Series:
    """A series; `history` is what its status comes from, `samples` has all columns.

    `bands` are those of its system, after what people did about alerts of this series.
    `missing` are the runs that gave no sample, in the order of time.
    """

    key: SeriesKey
    label: str
    history: History
    table: Callable[[], pl.DataFrame] = field(repr=False, compare=False)
    bands: Bands
    status: Status
    transient: TransientRuns = NONE
    missing: tuple[MissingRun, ...] = ()

    @property
    def samples(self) -> pl.DataFrame:
        """The samples with all fields, in the order of time."""
        return self.table()

    @property
    def is_on_demand(self) -> bool:
        """Whether it is a case that no tag of the site file has with an interval."""
        newest = self.history.newest if len(self.history) else {}
        return self.key.case is not None and not newest.get("interval_days")

    @property
    def outliers(self) -> Outliers:
        """How many of the runs were outliers."""
        return self.transient.outliers

    @cached_property
    def in_effect(self) -> InEffect:
        """What was in effect in the newest sample."""
        return in_effect(self.history.newest)

    @property
    def epoch(self) -> Epoch | None:
        """The epoch of the newest sample."""
        when = self.status.when
        return self.bands.epoch_at(when) if when else None
