"""The rates that users can expect, for each pattern, medium and direction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np

from iobands.judge.advise import advise
from iobands.judge.propose import correlation_of, interval
from iobands.snapshot import (
    CONFIDENCE,
    HOLDS,
    QUANTILES,
    RATIO_UNIT,
    RECOVERED,
    Advised,
    Changed,
    Rates,
    Recommended,
    Series,
    Snapshot,
    in_utc,
    moment,
)
from iobands.source.site_file import SiteFile, commands, read_site_file


def published_of(
    site: Snapshot, systems: Path, holds: timedelta = HOLDS
) -> tuple[dict[str, list[Recommended]], tuple[Advised, ...]]:
    """Return what to publish for each system, and the advice."""
    advised, _ = advise({each.key: each.history for each in site.series})
    found = {}
    for name in sorted({each.key.system for each in site.series}):
        site_file = read_site_file(systems, name)
        part = [each for each in site.series if each.key.system == name]
        found[name] = published(part, site_file, advised, holds)
    return found, tuple(advised)


def published(
    series: Sequence[Series],
    site_file: SiteFile,
    advised: Sequence[Advised],
    holds: timedelta = HOLDS,
) -> list[Recommended]:
    """Return what to publish about one system: the settings that its site file recommends.

    Without any, the best settings of each pattern for writing, or for what else it measures.
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
    """Return what the media and the directions of a recommendation have in common."""
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
    """Return the rates of series that differ only in the file system."""
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
        learned = ~series.history.asked[evidence.rows[level]]
        learned |= not learned.any()
        times.append(of_runs[level][learned])
        values.append(rates[level][learned])
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
