"""What a site tells its users: for each pattern, medium and direction the rates to expect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np

from iobands.detection.series import in_utc, moment
from iobands.model.fields import RATIO_UNIT
from iobands.model.series import SeriesKey
from iobands.site.advise import Advised
from iobands.site.propose import CONFIDENCE, Interval, correlation_of, interval
from iobands.site.site_file import SiteFile, commands
from iobands.snapshot.change import RECOVERED
from iobands.snapshot.series import Series

#: The figures that are published, and the quantile that each is.
QUANTILES: Final = {"upper_quartile": 0.75, "median": 0.5, "lower_quartile": 0.25}
FIGURES: Final = ("maximum", *QUANTILES)
#: For how long after the newest run figures hold.
HOLDS: Final = timedelta(days=92)


@dataclass(frozen=True)
class Changed:
    """A file system whose level has changed since; `ratio` is the level to that before."""

    file_system: str
    since: datetime
    ratio: float


@dataclass(frozen=True)
class Rates:
    """The rates of a pattern on a medium in one direction, which is the variable, in `unit`.

    They are of the runs from `first` to `last`, which compare: one epoch, one level, outliers
    included. `intervals` has the 95 % interval of each quartile, None of too few runs. `holds`
    is until when they hold: the first of `changed`, else some time after the newest run.
    """

    pattern: str
    medium: str
    file_systems: tuple[str, ...]
    variable: str
    unit: str
    figures: Mapping[str, float]
    intervals: Mapping[str, Interval]
    runs: int
    first: datetime
    last: datetime
    epoch: str
    holds: datetime
    changed: tuple[Changed, ...] = ()


@dataclass(frozen=True)
class Recommended:
    """Settings of a pattern, the commands that set them, and what the rates were measured with.

    `newest` has the fields of the newest sample. `commands` are by the file systems that they are
    for. `is_asked` tells that the site file recommends the settings; otherwise they are the best
    that was measured.
    """

    key: SeriesKey
    newest: Mapping[str, Any]
    commands: Mapping[tuple[str, ...], tuple[str, ...]]
    rates: tuple[Rates, ...]
    is_asked: bool


def published(
    series: Sequence[Series],
    site_file: SiteFile,
    advised: Sequence[Advised],
    holds: timedelta = HOLDS,
) -> list[Recommended]:
    """Return what to publish of one system: the settings that its site file recommends.

    Without any, the best of each pattern for writing, or for what else it measures.
    """
    usable = [each for each in series if _is_usable(each)]
    chosen = [each for each in usable if site_file.recommends(each.key)]
    is_asked = bool(chosen)
    if not is_asked:
        best = _best(usable, advised)
        chosen = [each for each in usable if _settings(each) in best]
    groups: defaultdict[tuple[object, ...], list[Series]] = defaultdict(list)
    for each in chosen:
        groups[_settings(each)].append(each)
    found = []
    for members in groups.values():
        newest = max(members, key=lambda each: each.history.last)
        by_row: defaultdict[tuple[str, str], list[Series]] = defaultdict(list)
        places: defaultdict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
        for each in members:
            fields = each.history.newest
            by_row[str(fields.get("medium")), each.key.variable].append(each)
            lines = tuple(commands(site_file, each.key, fields))
            places[lines][str(each.key.file_system)] = None
        found.append(
            Recommended(
                newest.key,
                newest.history.newest,
                {tuple(names): lines for lines, names in places.items() if lines},
                tuple(_rates(each, holds) for each in by_row.values()),
                is_asked,
            )
        )
    return sorted(found, key=lambda each: str(each.key.pattern))


def _is_usable(series: Series) -> bool:
    evidence = series.status.evidence
    return (
        series.key.case is None
        and series.key.unit != RATIO_UNIT
        and evidence is not None
        and len(evidence.rows) > 0
    )


def _settings(series: Series) -> tuple[object, ...]:
    """Return all that is the same for the media and the directions of a recommendation."""
    left_out = {"file_system", "variable"}
    return tuple(value for name, value in series.key.fields().items() if name not in left_out)


def _best(usable: Sequence[Series], advised: Sequence[Advised]) -> set[tuple[object, ...]]:
    """Return the best settings of each pattern: by the advice, or the only ones."""
    leading = {each.best[0] for each in advised}
    compared = {key for each in advised for key in each.medians}
    found: dict[tuple[object, ...], tuple[object, ...]] = {}
    for series in sorted(usable, key=lambda each: each.key.variable == "write_bw", reverse=True):
        if series.key in leading or series.key not in compared:
            key = series.key
            scale = (key.partition, key.tool, key.pattern, key.interface, key.nodes, key.tasks)
            found.setdefault(scale, _settings(series))
    return set(found.values())


def _rates(members: Sequence[Series], holds: timedelta) -> Rates:
    """Return the rates of series that differ in the file system alone."""
    times, values, changed = [], [], []
    for series in members:
        evidence = series.status.evidence
        assert evidence is not None  # _is_usable
        of_runs, rates = series.judged
        begins = [in_utc(each.since) for each in evidence.changes]
        onsets = np.searchsorted(of_runs, np.array(begins, of_runs.dtype)).tolist()
        pairs = list(zip(onsets, evidence.changes, strict=True))
        settled = [onset for onset, each in pairs if each.end not in {None, RECOVERED}]
        change = evidence.open_change
        end = (onsets[-1] if change else 0) or len(rates)
        level = slice(max((onset for onset in settled if onset < end), default=0), end)
        times.append(of_runs[level])
        values.append(rates[level])
        if change:
            place = str(series.key.file_system)
            changed.append(Changed(place, change.since, change.ratio.value))
    all_times, all_values = np.concatenate(times), np.concatenate(values)
    ordered = all_values[np.argsort(all_times, kind="stable")]
    correlation = correlation_of(ordered)
    newest = members[0]
    first, last = moment(all_times.min()), moment(all_times.max())
    return Rates(
        pattern=str(newest.key.pattern),
        medium=str(newest.history.newest.get("medium")),
        file_systems=tuple(dict.fromkeys(str(each.key.file_system) for each in members)),
        variable=newest.key.variable,
        unit=newest.key.unit,
        figures={
            "maximum": float(ordered.max()),
            **{name: float(np.quantile(ordered, share)) for name, share in QUANTILES.items()},
        },
        intervals={
            name: interval(ordered, share, confidence=CONFIDENCE, correlation=correlation)
            for name, share in QUANTILES.items()
        },
        runs=len(ordered),
        first=first,
        last=last,
        epoch=newest.epoch.name if newest.epoch else "",
        holds=min([last + holds, *(each.since for each in changed)]),
        changed=tuple(changed),
    )
