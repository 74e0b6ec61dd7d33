"""What single series bring into a pool, and how much their runs depend on each other.

May know: numpy and the charts of single series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from iobands.detection.chart import LARGEST_REFERENCE, WATCH, Chart
from iobands.detection.correlation import correlation_between, scale_for, serial_correlation
from iobands.detection.scores import DESIGNS, Array
from iobands.detection.sums import SIDES

#: What series of one session have in common at the least, as a correlation, and what is taken
#: for it until there are enough sessions to measure it.
LEAST_SHARED: Final = 0.1
UNKNOWN_SHARED: Final = 0.5
MOST_SHARED: Final = 0.9

_MANY_GAPS: Final = 16


@dataclass(frozen=True)
class Part:
    """What one series brings into a pool, run by run, in the order of `sessions`.

    `sessions`, whole numbers of shape (runs,), rise strictly: runs of several series that have
    the same one belong together. `increments` is of shape (runs, designs), and `judged` tells which
    runs have any, as those that a reference was first learnt from have none. `speaks` tells which
    count: a series speaks until its own alarm is raised, and again when that is over, so
    that one series alone can never raise a common alarm. `residuals` are logarithms over the
    usual level, NaN where that is not known. `scale` is what the increments were divided by for
    serial correlation, and `penalty`, of shape (designs,), what each is less by for the error of
    the reference.
    """

    sessions: NDArray[np.int_]
    increments: NDArray[np.float32]
    judged: NDArray[np.bool_]
    speaks: NDArray[np.bool_]
    residuals: Array
    scale: float
    penalty: Array

    @classmethod
    def of(cls, chart: Chart, sessions: ArrayLike) -> Part:
        """Return what the series of `chart` brings, whose runs belong to `sessions`.

        Raises:
            ValueError: there are not as many sessions as runs, or they do not rise.
        """
        places = np.asarray(sessions, dtype=np.int64)
        if places.shape != (chart.runs,) or (np.diff(places) <= 0).any():
            raise ValueError(f"{len(places)} sessions, not rising ones for {chart.runs} runs")
        judged = chart.increments.any(axis=1)
        speaks = judged.copy()
        for alarm in chart.alarms:
            speaks[alarm.raised + 1 : alarm.ended] = False
        usual = float(np.median(chart.level())) if chart.can_judge else np.nan
        penalty = chart.scores.penalty / chart.scale if chart.scores else np.zeros(len(DESIGNS))
        residuals = chart.logarithms - usual
        return cls(places, chart.increments, judged, speaks, residuals, chart.scale, penalty)

    def only(self, runs: NDArray[np.bool_]) -> Part:
        """Return the part that `runs`, of shape (runs,), marks."""
        if runs.all():
            return self
        return replace(
            self,
            sessions=self.sessions[runs],
            increments=self.increments[runs],
            judged=self.judged[runs],
            speaks=self.speaks[runs],
            residuals=self.residuals[runs],
        )

    def sums(self, since: int, until: int | None, direction: str) -> Array:
        """Return the evidence of the sessions from `since` to before `until`, in nats.

        It is of shape (designs,), for the designs of `direction`.
        """
        span = within(self.sessions, since, until)
        return self.increments[span, SIDES[direction]].sum(axis=0, dtype=float)


@dataclass(frozen=True)
class Dependence:
    """How much the runs of a pool depend on each other.

    `shared` is the correlation between the series of a session. The scores of a pool are divided
    by `scale`, 1 or more: what the series share may last from one session to the next while each
    of them, whose own noise hides that, reckons with less.
    """

    shared: float
    scale: float


def dependence(parts: Sequence[Part], sessions: int, limit: float) -> Dependence:
    """Return what the first sessions that have runs of several series tell."""
    count = np.zeros(sessions, dtype=int)
    for part in parts:
        count[indexed(part.sessions)] += 1
    early = np.flatnonzero(count > 1)[:LARGEST_REFERENCE]
    row_of = np.full(sessions, -1)
    row_of[early] = np.arange(len(early))
    end = int(early[-1]) + 1 if early.size else 0
    table = np.full((len(early), len(parts)), np.nan)
    for column, part in enumerate(parts):
        span = within(part.sessions, 0, end)
        rows = row_of[part.sessions[span]]
        table[rows[rows >= 0], column] = part.residuals[span][rows >= 0]
    found = correlation_between(table)
    if found is None:
        return Dependence(UNKNOWN_SHARED, 1.0)
    known = ~np.isnan(table)
    together = np.where(known, table, 0.0).sum(axis=1)[known.any(axis=1)]
    together /= known.sum(axis=1)[known.any(axis=1)]
    needed = scale_for(serial_correlation(together), limit, WATCH)
    usual = float(np.mean([part.scale for part in parts]))
    return Dependence(float(np.clip(found, LEAST_SHARED, MOST_SHARED)), max(1.0, needed / usual))


def every_session(lists: Sequence[NDArray[np.int_]]) -> NDArray[np.int_]:
    """Return all numbers that occur, in their order; the lists rise and lie close together."""
    first = min((int(each[0]) for each in lists if each.size), default=0)
    last = max((int(each[-1]) for each in lists if each.size), default=-1)
    found = np.zeros(last - first + 1, dtype=bool)
    for each in lists:
        found[each - first] = True
    return first + np.flatnonzero(found)


def placed(parts: Sequence[Part], sessions: NDArray[np.int_]) -> list[Part]:
    """Return `parts` with the places of their sessions among all `sessions`, which rise."""
    has_gaps = len(sessions) and sessions[-1] - sessions[0] >= len(sessions)
    return [
        replace(
            part,
            sessions=np.searchsorted(sessions, part.sessions)
            if has_gaps
            else part.sessions - sessions[:1],
        )
        for part in parts
    ]


def indexed(rising: NDArray[np.int_]) -> slice | NDArray[np.int_]:
    """Return `rising` as an index: a slice where it has no gap, which is several times as fast."""
    if rising.size and rising[-1] - rising[0] == len(rising) - 1:
        return slice(int(rising[0]), int(rising[-1]) + 1)
    return rising


def stretches(places: NDArray[np.int_], rows: NDArray[np.int_]) -> list[tuple[slice, slice]] | None:
    """Return where neither the rising `places` nor the rising `rows` have a gap, as slices.

    None where there are so many gaps that numbers are faster.
    """
    if not rows.size:
        return []
    ends = np.flatnonzero((np.diff(rows) > 1) | (np.diff(places) > 1)) + 1
    if len(ends) >= _MANY_GAPS:
        return None
    found = []
    for begin, end in pairwise([0, *ends.tolist(), len(rows)]):
        place, row, length = int(places[begin]), int(rows[begin]), end - begin
        found.append((slice(place, place + length), slice(row, row + length)))
    return found


def within(sessions: NDArray[np.int_], first: int, last: int | None) -> slice:
    """Return which of the rising `sessions` lie from `first` to before `last`."""
    stop = len(sessions) if last is None else int(np.searchsorted(sessions, last))
    return slice(int(np.searchsorted(sessions, first)), stop)
