"""Simulations of series together: groups, and incidents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timezone
from typing import Final

import numpy as np

from benchmarks.alarms.charts import follow
from benchmarks.alarms.figures import NEVER, Delays, Rate
from benchmarks.alarms.simulate import LARGE, YEAR, prior_of, threshold_of
from benchmarks.alarms.worlds import Array, shared, with_outliers
from iobands.judge.detect.chart import Chart
from iobands.judge.detect.prior import Month, Prior
from iobands.judge.groups import GroupChange, GroupMember, group_changes
from iobands.judge.happenings import incidents_of
from iobands.judge.normal import TransientRuns
from iobands.model import SERIES_FIELDS, SeriesKey
from iobands.snapshot import DOWN

#: How many groups a site of some hundred series has.
GROUPS: Final = 30
SERIES: Final = 10
#: What its series have in common: a share of the variance, and its correlation from day to day.
SHARED: Final = {"nothing": (0.0, 0.0), "the day": (0.3, 0.0), "lasting days": (0.3, 0.6)}
_MATURE: Final = 200
_EVERY: Final = 10
_LONGEST: Final = 30
_NOW: Final = datetime(9999, 1, 1, tzinfo=timezone.utc)


def false_drops(what: str, outliers: float, seed: int) -> int:
    """Return how often the healthy groups of a site raise a drop in a year."""
    random = np.random.default_rng(seed)
    return sum(_false(random, what, outliers) for _ in range(GROUPS))


def _false(random: np.random.Generator, what: str, outliers: float) -> int:
    size, threshold = _MATURE + YEAR, threshold_of(LARGE)
    values = with_outliers(random, shared(random, SERIES, size, *SHARED[what]), outliers)
    charts = _charts(values, threshold)
    raised = set()
    for end in range(_MATURE + _EVERY, size + 1, _EVERY):
        found = _lasting([_until(chart, end) for chart in charts], threshold)
        if found and found.raised >= _MATURE:
            raised.add(found.raised)
    return len(raised)


def delays(what: str, fallen: int, factor: float, number: int, seed: int) -> tuple[Delays, Delays]:
    """Return the sessions until a group is found, and until the first of its series alone is."""
    random, threshold = np.random.default_rng(seed), threshold_of(LARGE)
    change = _MATURE + _LONGEST
    group, alone = [], []
    for _ in range(number):
        values = shared(random, SERIES, change + _LONGEST, *SHARED[what])
        values[:fallen, change:] += np.log(factor)
        charts = _charts(values, threshold)
        found = _lasting([_until(chart, chart.runs) for chart in charts], threshold)
        group.append(_delay([found.raised] if found else [], change))
        own = [p.raised for c in charts[:fallen] for p in c.changes if p.direction == DOWN]
        alone.append(_delay(own, change))
    return Delays(tuple(group), _LONGEST), Delays(tuple(alone), _LONGEST)


def _charts(values: Array, threshold: float) -> list[Chart]:
    prior = prior_of(values)
    return [follow(np.exp(each), threshold=threshold, prior=prior) for each in values]


def _lasting(members: list[GroupMember], threshold: float) -> GroupChange | None:
    found = group_changes(members, _months(members, threshold))
    return next((each for each in found if each.ended is None), None)


def _months(members: list[GroupMember], threshold: float) -> list[Month]:
    """Return months of 30 sessions."""
    size = max(each.chart.runs for each in members)
    return [Month(first, threshold, Prior()) for first in range(0, size, 30)]


def _until(chart: Chart, end: int) -> GroupMember:
    """Return a series as its group saw it after `end` runs."""
    known = tuple(
        replace(point, ended=None) if point.closed is not None and point.closed >= end else point
        for point in chart.changes
        if point.raised < end
    )
    cut = replace(
        chart, logarithms=chart.logarithms[:end], increments=chart.increments[:end], changes=known
    )
    return GroupMember(cut, np.arange(end))


def _delay(raised: list[int], change: int) -> float:
    return min((float(run - change + 1) for run in raised if run >= change), default=NEVER)


def false_incidents(rate: float, number: int, seed: int) -> Rate:
    """Return the incidents in a year of `number` sites whose outliers are all independent.

    A site has three file systems, with four series that write and four that read on each.
    """
    random = np.random.default_rng(seed)
    days = np.arange(YEAR).astype("datetime64[D]").astype("datetime64[ns]")
    found = 0
    for _ in range(number):
        runs = {}
        for place in range(24):
            fields = dict.fromkeys(SERIES_FIELDS) | {"system": "site", "partition": "compute"}
            fields |= {"file_system": f"scratch{place // 8}", "tool": f"tool{place}"}
            key = SeriesKey(**fields, variable="write_bw" if place % 2 else "read_bw")
            low = random.random(YEAR) < rate
            runs[key] = TransientRuns(days, np.where(low, 0.3, 1.0), low)
        found += len(incidents_of(runs, _NOW))
    return Rate(found, number)


def shuffled_incidents(
    runs: Mapping[SeriesKey, TransientRuns],
    left_out: Sequence[tuple[str, str, date, date]],
    number: int,
    seed: int,
) -> Rate:
    """Return the rate of incidents in `number` copies of a real year with its days shuffled.

    A day keeps all of its runs. `left_out` lists the spans of real trouble: file system, variable,
    first and last day.
    """
    random = np.random.default_rng(seed)
    left: dict[SeriesKey, TransientRuns] = {}
    for key, each in runs.items():
        days = each.times.astype("datetime64[D]")
        kept = np.ones(len(days), dtype=bool)
        for file_system, variable, first, last in left_out:
            if (key.file_system, key.variable) == (file_system, variable):
                kept &= (days < np.datetime64(first)) | (days > np.datetime64(last))
        left[key] = TransientRuns(each.times[kept], each.ratios[kept], each.low[kept])
    found = 0
    for _ in range(number):
        found += len(incidents_of(_shuffled(left, random), _NOW))
    return Rate(found, number)


def _shuffled(
    runs: Mapping[SeriesKey, TransientRuns], random: np.random.Generator
) -> dict[SeriesKey, TransientRuns]:
    found = {}
    every = np.unique(
        np.concatenate([each.times.astype("datetime64[D]") for each in runs.values()])
    )
    to = random.permutation(every)
    for key, each in runs.items():
        days = each.times.astype("datetime64[D]")
        moved = to[np.searchsorted(every, days)] + (each.times - days)
        order = np.argsort(moved, kind="stable")
        found[key] = TransientRuns(moved[order], each.ratios[order], each.low[order])
    return found
