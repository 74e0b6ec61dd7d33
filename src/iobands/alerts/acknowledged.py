"""Which alarms a person has acknowledged, and whether they became worse since.

May know: acts, and series followed by their charts; nothing of files or of how it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from iobands.alerts.acts import ACKNOWLEDGE, Act
from iobands.alerts.pools import Pool
from iobands.alerts.shared import Common, common_changes, follow_pools
from iobands.bands import Band
from iobands.detection import DOWN, Quartiles, begin, extend
from iobands.detection.change import level_ratio
from iobands.series import SeriesKey
from iobands.status.following import Budget, Change, Following, in_utc, is_drop


@dataclass(frozen=True)
class Acknowledged:
    """The act by which an alarm was acknowledged; `worse` is what made it loud again, if anything.

    The ratio of `worse` is of the level since then over the one that was acknowledged.
    """

    act: Act
    worse: Change | None

    @property
    def holds(self) -> bool:
        """Whether the alarm is to be quiet."""
        return self.worse is None


def acknowledged(
    following: Following | None, acts: Sequence[Act], budget: Budget
) -> Acknowledged | None:
    """Return how the open alarm of a series was acknowledged by one of `acts`, all in force."""
    change = following.open_change if following else None
    act = _answer(change, acts, ()) if change else None
    if following is None or act is None:
        return None
    later = _since(following, act, budget).open_change
    return Acknowledged(act, later if is_drop(later) else None)


def common_acknowledged(
    common: Common,
    followings: Mapping[SeriesKey, Following],
    acts: Mapping[SeriesKey, Sequence[Act]],
    budget: Budget,
) -> Acknowledged | None:
    """Return how the alarm of several series was acknowledged: for each that speaks for it."""
    nodes = common.pool.nodes
    answers = {key: _answer(common.changes[key.variable], acts[key], nodes) for key in common.keys}
    found = {key: act for key, act in answers.items() if act}
    if len(found) < len(answers):
        return None
    mine = {key: _runs_of(common.pool, key, followings[key]) for key in found}
    later = {key: _since(mine[key], act, budget) for key, act in found.items()}
    pooled = follow_pools([common.pool], later, budget)
    changes = common_changes(pooled, later, budget)
    worse = [each.change for each in changes if is_drop(each.change)]
    newest = max(found.values(), key=lambda act: act.when)
    return Acknowledged(newest, worse[0] if worse else None)


def _runs_of(pool: Pool, key: SeriesKey, following: Following) -> Following:
    """Return the runs that a pool has of a series, on the chart of them all."""
    mine = pool.of(key, following.rows)
    return replace(
        following,
        rows=following.rows[mine],
        times=following.times[mine],
        values=following.values[mine],
    )


def _answer(change: Change, acts: Sequence[Act], nodes: Sequence[str]) -> Act | None:
    """Return the newest act that acknowledged `change`, which is of the runs on `nodes`, or None.

    It did if the change may have begun with the one that the act is about, and had begun when the
    act was done: after a recovery there is another change. An act about some nodes is none about
    what else their series suffer from.
    """
    for act in reversed(acts):
        if (
            act.kind == ACKNOWLEDGE
            and (not act.on_nodes or not {*act.on_nodes}.isdisjoint(nodes))
            and act.direction == change.direction
            and act.since is not None
            and act.until is not None
            and act.since <= change.since_high
            and change.since <= act.until
        ):
            return act
    return None


def _since(following: Following, act: Act, budget: Budget) -> Following:
    """Return the runs after `act` followed by a chart for which the level then is the normal one.

    Of what was seen up to then the low end is taken, so that a level which was not known well is
    not worse for being known better.
    """
    assert act.since is not None and act.until is not None
    begun = int(np.searchsorted(following.times, in_utc(act.since)))
    ended = int(np.searchsorted(following.times, in_utc(act.until), side="right"))
    level = following.chart.level()
    seen = np.log(following.values[begun:ended])
    factor = 1.0
    if act.direction == DOWN and len(seen) and len(level):
        ratio = level_ratio(level, seen)
        factor = min(1.0, ratio.low if ratio.low > 0 else ratio.value)
    if following.chart.level() is following.chart.reference:
        history = factor * np.exp(level)
        normal = begin(history=history, limit=budget.limit, least=following.chart.least)
    else:  # of a published band, while there are too few runs for a reference
        band = _scaled(following.chart.band, factor)
        normal = begin(band, limit=budget.limit, least=following.chart.least)
    chart = extend(normal, following.values[ended:])
    return Following(
        following.rows[ended:], following.times[ended:], following.values[ended:], chart, budget
    )


def _scaled(band: Quartiles | None, factor: float) -> Quartiles | None:
    """Return the figures of a band times `factor`."""
    if not isinstance(band, Band):
        return None
    return replace(
        band,
        lower_quartile=factor * band.lower_quartile,
        median=factor * band.median,
        upper_quartile=factor * band.upper_quartile,
        maximum=None if band.maximum is None else factor * band.maximum,
    )
