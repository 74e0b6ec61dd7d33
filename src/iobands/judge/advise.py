"""Advice: which settings are best for a pattern, and the rates that users can expect of them.

Series that differ in one setting are compared by samples at most a day apart. All such comparisons
of a site share an error of 5 % (Bonferroni), so that the best of many is not best by chance. If
there are enough pairs, the newer half decides: advice that only the older half supports is
withdrawn.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iobands.judge.detect import correlation_of, interval
from iobands.snapshot import (
    COMPARABLE,
    CONFIDENCE,
    FILE_SYSTEM,
    HOLDS,
    MARGIN,
    MOST_MORE,
    QUANTILES,
    RATIO_UNIT,
    RECOVERED,
    SETTINGS,
    Advice,
    Advised,
    Array,
    CaseAdvice,
    Changed,
    Comparison,
    Conclusion,
    History,
    PairedEvidence,
    Rates,
    Recommended,
    Series,
    SeriesKey,
    Snapshot,
    Times,
    distinctions,
    exact_moment,
    grouped_by,
    in_utc,
    moment,
    paired_ratio,
    value_of,
)
from iobands.source.site_file import SiteFile, commands, read_site_file

#: The case that sweeps the stripe count, for several sizes of a file.
SWEEP: Final = "bulk-lustre-stripe-counts"
_RATIOS: Final = frozenset({"write_ratio", "read_ratio", "list_ratio"})


def advise(histories: Mapping[SeriesKey, History]) -> tuple[list[Advised], list[CaseAdvice]]:
    """Return the advice for each pattern and variable, and for each case that measures a ratio."""
    histories = {key: each.routine for key, each in histories.items()}
    groups: defaultdict[SeriesKey, list[SeriesKey]] = defaultdict(list)
    for key in sorted(histories, key=SeriesKey.sort_key):
        if key.case in {None, SWEEP} and key.unit != RATIO_UNIT and len(histories[key]):
            groups[_without(key, FILE_SYSTEM, *SETTINGS)].append(key)
    cases = [key for key in histories if key.variable in _RATIOS and len(histories[key])]
    number = sum(_comparisons(group) for group in groups.values()) + len(cases)
    if not number:
        return [], []
    # each comparison tests two halves and the whole, which share its error
    confidence = 1 - (1 - CONFIDENCE) / (3 * number)
    found = [_advised(group, histories, confidence) for group in groups.values()]
    of_cases = [_of_case(key, histories[key], confidence) for key in cases]
    return [each for each in found if each.advice], of_cases


def fewest_pairs(confidence: float) -> int:
    """Return the fewest pairs n that give an interval of the median: 2 / 2**n <= 1 - confidence."""
    return math.ceil(math.log2(2 / (1 - confidence)))


def _without(key: SeriesKey, *settings: str) -> SeriesKey:
    names = {*settings, *(name for each in settings for name in COMPARABLE[each])}
    free: dict[str, Any] = dict.fromkeys(names)
    return replace(key, **free)


def _differ_in(one: SeriesKey, other: SeriesKey) -> str | None:
    """Return the one setting that two series of a file system differ in, or None."""
    differing = [name for name in SETTINGS if getattr(one, name) != getattr(other, name)]
    return differing[0] if len(differing) == 1 else None


def _comparisons(group: Sequence[SeriesKey]) -> int:
    """Return how many comparisons a group allows: of settings, and of file systems."""
    places = grouped_by(group, lambda key: key.file_system)
    pairs = (pair for keys in places.values() for pair in combinations(keys, 2))
    return sum(_differ_in(*pair) is not None for pair in pairs) + math.comb(len(places), 2)


def _advised(
    group: Sequence[SeriesKey], histories: Mapping[SeriesKey, History], confidence: float
) -> Advised:
    enough, places = fewest_pairs(confidence), grouped_by(group, lambda key: key.file_system)
    values = {key: histories[key].values for key in group}
    medians = {key: float(np.median(each[len(each) // 2 :])) for key, each in values.items()}

    def rank(key: SeriesKey) -> tuple[bool, float]:
        return (len(values[key]) >= enough, medians[key])

    best = sorted((max(keys, key=rank) for keys in places.values()), key=rank, reverse=True)
    pairs = [(FILE_SYSTEM, best[0], other) for other in best[1:]]
    for leader in best:
        others = places[leader.file_system]
        pairs += [(name, leader, each) for each in others if (name := _differ_in(leader, each))]
    found = (_compared(setting, one, other, histories, confidence) for setting, one, other in pairs)
    return Advised(tuple(best), medians, tuple(each for each in found if each))


def _compared(  # noqa: PLR0911 (one a finding)
    setting: str,
    key: SeriesKey,
    other: SeriesKey,
    histories: Mapping[SeriesKey, History],
    confidence: float,
) -> Advice | None:
    """Return the outcome of a comparison; None if no samples are near each other in time."""
    one, two = histories[key], histories[other]
    mine, theirs = paired(one, two)
    if not len(mine):
        return None
    ratios, times = one.values[mine] / two.values[theirs], one.times[mine]
    half, fewest = len(ratios) // 2, fewest_pairs(confidence)
    whole = newer = _evidence(ratios, times, confidence)
    older = None
    if half >= 2 * fewest:
        halves = slice(half), slice(half, None)
        older, newer = (_evidence(ratios[each], times[each], confidence) for each in halves)
    pair = (key, other)
    if newer.ratio < 1:  # the other is better lately, whatever the medians say
        pair, whole, newer = (other, key), _inverse(whole), _inverse(newer)
        older = older and _inverse(older)
    if newer.is_better:
        return Advice(setting, *pair, Conclusion.BETTER, newer)
    if newer.makes_no_difference or not whole.is_better:
        if older and older.is_better:
            return Advice(setting, *pair, Conclusion.WITHDRAWN, newer, before=older)
        if older and _inverse(older).is_better:
            newer, older = _inverse(newer), _inverse(older)
            return Advice(setting, *pair[::-1], Conclusion.WITHDRAWN, newer, before=older)
    elif older:
        return Advice(setting, *pair, Conclusion.BETTER, whole)
    if newer.makes_no_difference:
        return Advice(setting, *pair, Conclusion.NO_DIFFERENCE, newer)
    return Advice(setting, *pair, Conclusion.TOO_FEW, newer, more=_more(newer, fewest))


def _of_case(key: SeriesKey, history: History, confidence: float) -> CaseAdvice:
    found, more = _evidence(history.values, history.times, confidence), None
    if found.is_better:
        finding = Conclusion.BETTER
    elif _inverse(found).is_better:
        finding = Conclusion.WORSE
    elif found.makes_no_difference:
        finding = Conclusion.NO_DIFFERENCE
    else:
        finding, more = Conclusion.TOO_FEW, _more(found, fewest_pairs(confidence))
    return CaseAdvice(key, finding, found, more)


def _more(evidence: PairedEvidence, fewest: int) -> int:
    """Return about how many more pairs would show a difference, or show that there is none.

    The interval narrows with the square root of the number of pairs.
    """
    if evidence.interval is None:
        return max(1, fewest - evidence.pairs)
    log = abs(math.log(evidence.ratio))
    width = math.log(evidence.interval[1] / evidence.interval[0]) / 2
    wanted = max(log, math.log(MARGIN) - log)
    needed = evidence.pairs * (width / wanted) ** 2 - evidence.pairs
    return min(MOST_MORE, max(1, math.ceil(needed)))


def _evidence(ratios: Array, times: Times, confidence: float) -> PairedEvidence:
    """Return the median of `ratios` and its interval, widened for their serial correlation."""
    found = interval(ratios, 0.5, confidence=confidence, correlation=correlation_of(ratios))
    median = float(np.exp(np.median(np.log(ratios))))
    first, last = map(exact_moment, times[[0, -1]])
    return PairedEvidence(median, found, len(ratios), first, last)


def _inverse(evidence: PairedEvidence) -> PairedEvidence:
    low, high = evidence.interval or (None, None)
    interval = (1 / high, 1 / low) if low and high else None
    return replace(evidence, ratio=1 / evidence.ratio, interval=interval)


_WITHIN: Final = np.timedelta64(1, "D")


def compare(
    samples: Mapping[SeriesKey, History], field: str, *, against: str | None = None
) -> Iterator[Comparison]:
    """Yield comparisons of series that differ only in `field` and the fields that follow from it.

    Each is compared with the series whose value is `against`, or else the first value in order.
    """
    rates = (key for key in samples if key.unit != RATIO_UNIT)
    alike = grouped_by(rates, lambda key: _without(key, field))
    for common in sorted(alike, key=SeriesKey.sort_key):
        group = sorted(alike[common], key=lambda key: _order(key, field))
        base = next((key for key in group if against in {None, value_of(key, field)}), None)
        if base is None:
            continue
        for key in group:
            if getattr(key, field) != getattr(base, field):
                mine, theirs = paired(samples[key], samples[base])
                values = samples[key].values[mine], samples[base].values[theirs]
                pairs = list(zip(*(each.tolist() for each in values), strict=True))
                yield Comparison(key, base, paired_ratio(pairs) if pairs else None)


def paired(one: History, other: History) -> NDArray[np.int_]:
    """Return pairs of samples nearest in time, at most a day apart; no sample is in two pairs.

    The shape is (2, pairs): places in `one` and in `other`, in the order of time of `one`.
    """
    if not len(one) or not len(other):
        return np.empty((2, 0), dtype=int)
    # the nearest sample of `other` is the last one before or the first one after
    after = np.searchsorted(other.times, one.times).clip(1, max(1, len(other) - 1))
    candidates = np.stack([after - 1, np.minimum(after, len(other) - 1)])
    distances = np.abs(other.times[candidates] - one.times)
    nearest = candidates[distances.argmin(axis=0), np.arange(len(one))]
    distance = distances.min(axis=0)
    of_other: dict[int, int] = {}
    for at in np.argsort(distance, kind="stable"):
        if distance[at] <= _WITHIN:
            of_other.setdefault(int(nearest[at]), int(at))
    found = sorted((at, place) for place, at in of_other.items())
    return np.array(found, dtype=int).reshape(-1, 2).T


def _order(key: SeriesKey, field: str) -> tuple[int, float, str]:
    value, text = getattr(key, field), value_of(key, field)
    number = isinstance(value, float | int) and text != "all"
    return (0, float(value), "") if number else (1, 0.0, text)


def published_of(
    site: Snapshot, systems: Path, holds: timedelta = HOLDS
) -> tuple[dict[str, list[Recommended]], tuple[Advised, ...]]:
    """Return what to publish for each system, and the advice."""
    advised, _ = advise({each.key: each.history for each in site.series})
    mine = grouped_by(site.series, lambda each: each.key.system)
    found = {
        name: published(part, read_site_file(systems, name), advised, holds)
        for name, part in sorted(mine.items())
    }
    return found, tuple(advised)


def published(
    series: Sequence[Series],
    site_file: SiteFile,
    advised: Sequence[Advised],
    holds: timedelta = HOLDS,
) -> list[Recommended]:
    """Return what to publish about one system: the settings that its site file recommends.

    If it recommends none, the best settings of each pattern: for writing if that is measured.
    """
    usable = [each for each in series if _is_usable(each)]
    chosen = [each for each in usable if site_file.recommends(each.key)]
    is_asked = bool(chosen)
    if not is_asked:
        best = _best(usable, advised)
        chosen = [each for each in usable if _settings(each) in best]
    groups = grouped_by(chosen, _settings)
    words, found = distinctions(groups), []
    for settings, members in groups.items():
        name = " ".join([str(settings.pattern), *words[settings]])
        newest: dict[str, History] = {}
        by_row: defaultdict[tuple[str, str], list[Series]] = defaultdict(list)
        places: defaultdict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
        for each in members:
            fields = each.history.newest
            where = _known(each.key.file_system)
            by_row[_known(fields.get("medium")), each.key.variable].append(each)
            places[tuple(commands(site_file, each.key, fields))][where] = None
            if where not in newest or newest[where].last < each.history.last:
                newest[where] = each.history
        lines_of = {tuple(names): lines for lines, names in places.items() if lines}
        rates = tuple(_rates(name, each, holds) for each in by_row.values())
        samples = {where: each.newest for where, each in newest.items()}
        found.append(Recommended(members[0].key, samples, lines_of, rates, is_asked))
    return sorted(found, key=lambda each: str(each.key.pattern))


def _known(value: object) -> str:
    """Return the value of a field as text, `unknown` if results of other tools lack it."""
    return str(value or "unknown")


def _is_usable(series: Series) -> bool:
    key, evidence = series.key, series.status.evidence
    is_measured = evidence is not None and len(evidence.rows) > 0
    return is_measured and key.case is None and key.unit != RATIO_UNIT


def _settings(series: Series) -> SeriesKey:
    """Return a key that all file systems and variables of a recommendation have in common."""
    return replace(series.key, file_system=None, variable="")


def _best(usable: Sequence[Series], advised: Sequence[Advised]) -> set[SeriesKey]:
    """Return the best settings of each pattern by the advice, or those compared with no others."""
    leading = {each.best[0] for each in advised}
    compared = {key for each in advised for key in each.medians}
    found: dict[tuple[object, ...], SeriesKey] = {}
    for series in sorted(usable, key=lambda each: each.key.variable == "write_bw", reverse=True):
        if (key := series.key) in leading or key not in compared:
            scale = (key.partition, key.tool, key.pattern, key.interface, key.nodes, key.tasks)
            found.setdefault(scale, _settings(series))
    return set(found.values())


def _rates(name: str, members: Sequence[Series], holds: timedelta) -> Rates:
    """Return the rates of `members`, which differ only in the file system, as those of `name`."""
    times, values, changed = [], [], []
    for series in members:
        evidence = series.status.evidence
        assert evidence is not None  # _is_usable
        of_runs, rates = series.judged
        begins = [in_utc(each.began) for each in evidence.changes]
        onsets = np.searchsorted(of_runs, np.array(begins, of_runs.dtype)).tolist()
        change, begin = evidence.open_change, 0
        end = (onsets[-1] if change else 0) or len(rates)
        counted = ~series.history.asked[evidence.rows]
        for onset, each in zip(onsets, evidence.changes, strict=True):
            if each.end == RECOVERED and each.ended:
                counted[onset : np.searchsorted(of_runs, in_utc(each.ended))] = False
            elif each.end and onset < end:
                begin = max(begin, onset)
        level = slice(begin, end)
        learned = counted[level] if counted[level].any() else ~counted[level]
        times.append(of_runs[level][learned])
        values.append(rates[level][learned])
        if change:
            changed.append(Changed(_known(series.key.file_system), change))
    all_times = np.concatenate(times)
    ordered = np.concatenate(values)[np.argsort(all_times, kind="stable")]
    correlation = correlation_of(ordered)
    one, first, last = members[0], moment(all_times.min()), moment(all_times.max())
    caches = {_known(e.key.file_system): _known(e.history.newest.get("cache")) for e in members}
    return Rates(
        pattern=name,
        medium=_known(one.history.newest.get("medium")),
        file_systems=tuple(caches),
        variable=one.key.variable,
        unit=one.key.unit,
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
        # a series that is no longer measured may be in an older epoch
        epoch=", ".join(dict.fromkeys(each.epoch.name for each in members if each.epoch)),
        holds=min([last + holds, *(each.change.began for each in changed)]),
        changed=tuple(changed),
        caches=tuple(caches.values()),
    )
