"""New bands from a site's own runs, and why a series gets none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import numpy as np

from iobands.bands import ACTIVE, FROZEN, PROVISIONAL, Band, Bands, Epoch, log_fence
from iobands.judge.detect import (
    FIRST_BASELINE,
    FULL_BASELINE,
    LARGEST_BASELINE,
    correlation_of,
    interval,
)
from iobands.judge.detection import Detection
from iobands.judge.normal import matched
from iobands.judge.site import JudgedSite
from iobands.snapshot import CONFIDENCE, FLAKY, RECOVERED, Array, Series, figure, in_utc, moment

#: The source of an epoch that was learned, and of one that a person began.
SOURCE: Final = "own history, by iobands calibrate"
BY_HAND: Final = "iobands epoch"
#: Runs below the fence are outliers up to this share; more of them are normal for the series.
MOST_OUTLIERS: Final = 0.15
_DIGITS: Final = 4
# The figures in a bands file lie between this and its inverse.
_LEAST: Final = 1e-12
_UPPER_OUTER_FENCE: Final = 3.0


class NoProposal(ValueError):
    """No band can be proposed; the message says why."""


@dataclass(frozen=True)
class Proposal:
    """A band learned from runs, still without unit and match, and their serial correlation.

    It has the 95 % intervals for which there are enough runs. `notes` say which runs were left out.
    """

    band: Band
    correlation: float
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Learned(Proposal):
    """The new band of a series; `before` is the one in force, None without one."""

    label: str
    before: Band | None
    runs_since: datetime


@dataclass(frozen=True)
class Calibration:
    """The bands learned from a system's runs; `epoch` is None if no band would change.

    `left_out` lists the series that get no new band: label and reason.
    """

    system: str
    learned: tuple[Learned, ...]
    left_out: tuple[tuple[str, str], ...]
    epoch: Epoch | None


def calibrate(
    judgement: JudgedSite, part: str = "", since: datetime | None = None
) -> Iterator[Calibration]:
    """Yield the calibration of each system, for its series with `part` in their label.

    Runs from before `since` do not count.
    """
    site = judgement.snapshot
    chosen = [series for series in site.series if part in series.label]
    for system in sorted({series.key.system for series in chosen}):
        mine = [series for series in chosen if series.key.system == system]
        learned: list[Learned] = []
        left_out: list[tuple[str, str]] = []
        for series in mine:
            try:
                learned.append(_learn(series, judgement, since))
            except NoProposal as why:
                left_out.append((series.label, str(why)))
        epoch = _epoch(learned, judgement.known.bands[system], site.now) if learned else None
        yield Calibration(system, tuple(learned), tuple(left_out), epoch)


def epoch_by_hand(name: str, since: datetime, reason: str, bands: Bands, keep_bands: bool) -> Epoch:
    """Return an epoch that a person begins; with `keep_bands` the bands in force are kept."""
    before = bands.epoch_at(since)
    if before is None or not keep_bands:
        return Epoch(name, since, BY_HAND, (), reason)
    return Epoch(name, since, BY_HAND, before.bands, reason, limits=before.limits)


def _learn(series: Series, judgement: JudgedSite, since: datetime | None) -> Learned:
    """Return the band that the runs of a series give now.

    Raises:
        NoProposal: there is none, or the one in force stays.
    """
    site, judged = judgement.snapshot, judgement.judged[series.key]
    detection, bands = judged.detection, judged.bands
    if detection is None:
        raise NoProposal("no runs")
    for alert in site.alerts_on(series.key):
        if alert.direction not in (None, FLAKY):
            raise NoProposal(
                f"has the open alert {alert.subject!r}; resolve it after the repair, or "
                "rebaseline it if the level stays"
            )
    if detection.suspicion is not None:
        raise NoProposal("the newest runs may be a drop; wait for more runs")
    history, rows = series.history, detection.rows
    in_force = bands.band_for(matched(series.key, history.newest), site.now)
    passed = history.passed[rows]
    notes = []
    others = int(history.passed.sum() - passed.sum())
    if others:
        notes.append(f"runs of another version, fsync or epoch, or resolved, left out: {others}")
    stale = bool(others) and _is_stale(in_force, detection, bands)
    if in_force is not None and in_force.state == FROZEN and not stale:
        raise NoProposal("frozen; start anew with `iobands rebaseline` or `iobands epoch`")
    usable = passed & ~detection.in_drop & ~history.asked[rows]
    # only runs at the level that is the baseline now
    for change in detection.chart.changes:
        if change.end == RECOVERED:
            usable[change.since : change.ended] = False
        elif change.end:
            usable[: change.since] = False
    if since is not None:
        usable &= detection.times >= in_utc(since)
    if hidden := int(np.count_nonzero(passed & ~usable)):
        notes.append(f"repeats, and runs of earlier levels and alerts, left out: {hidden}")
    found = propose(detection.basis.values[usable])
    match = {name: value for name, value in series.key.fields().items() if name != "system"}
    band = replace(found.band, match=match, unit=series.key.unit)
    if in_force is not None and _is_same(band, in_force):
        raise NoProposal("the band in force is unchanged")
    first, notes = moment(detection.times[usable][0]), [*notes, *found.notes]
    return Learned(band, found.correlation, tuple(notes), series.label, in_force, first)


def _is_stale(band: Band | None, detection: Detection, bands: Bands) -> bool:
    """Return whether a learned band comes from runs that cannot be compared with the newest.

    It does if fewer comparable runs existed when it first appeared than it was learned from.
    """
    if band is None or band.state is None or band.runs is None:
        return False
    first = min(
        epoch.since for epoch in bands.epochs if any(_is_same(one, band) for one in epoch.bands)
    )
    return int(np.count_nonzero(detection.times < in_utc(first))) < band.runs


def _is_same(band: Band, other: Band) -> bool:
    alike = replace(other, epoch=band.epoch, source=band.source, match=band.match)
    return band == alike and band.wanted == other.wanted


def _epoch(learned: list[Learned], bands: Bands, now: datetime) -> Epoch:
    """Return the epoch with the new bands, and the bands in force of all other series."""
    names = {epoch.name for epoch in bands.epochs}
    day = f"learned-{now:%Y-%m-%d}"
    numbered = (day if number == 1 else f"{day}-{number}" for number in range(1, len(names) + 2))
    before = bands.epoch_at(now)
    new = [each.band.wanted for each in learned]
    kept = [band for band in (before.bands if before else ()) if band.wanted not in new]
    return Epoch(
        name=next(name for name in numbered if name not in names),
        since=now,
        source=SOURCE,
        bands=(*(each.band for each in learned), *kept),
        reason="calibrated: new bands for unchanged measurements",
        continues=True,
        runs_since=min(each.runs_since for each in learned),
        limits=before.limits if before else (),
    )


def propose(values: Array) -> Proposal:
    """Return the band of `values`, of shape (n,): healthy runs of one level in the order of time.

    The first 200 runs count, so that later ones change nothing.

    Raises:
        NoProposal: there are too few runs, or half of them are equal.
    """
    if len(values) < FIRST_BASELINE:
        raise NoProposal(f"healthy runs: {len(values)}; a band needs {FIRST_BASELINE}")
    window = values[:LARGEST_BASELINE]
    state = PROVISIONAL if len(window) < FULL_BASELINE else ACTIVE
    state = FROZEN if len(window) >= LARGEST_BASELINE else state
    notes = []
    lower, upper = map(float, np.quantile(window, (0.25, 0.75)))
    kept = window[window >= log_fence(lower, upper, len(window))]
    outliers = len(window) - len(kept)
    if outliers > MOST_OUTLIERS * len(window):
        notes.append(f"included: {outliers} runs below the fence, too many to be outliers")
        kept = window
    elif outliers:
        notes.append(f"outliers left out: {outliers}")
    lower, median, upper = map(float, np.quantile(kept, (0.25, 0.5, 0.75)))
    if lower == upper:
        raise NoProposal(
            f"half of {len(kept)} values are equal, {figure(median)}, so the band would have no "
            "width; check that the values are measured"
        )
    top = upper * (upper / lower) ** _UPPER_OUTER_FENCE
    beyond = int(np.count_nonzero(kept > top))
    if beyond:
        notes.append(f"runs far above the others left out of the maximum: {beyond}")
    correlation = correlation_of(window)
    band = Band(
        runs=len(kept),
        source=SOURCE,
        lower_quartile=_rounded(lower),
        median=_rounded(median),
        upper_quartile=_rounded(upper),
        maximum=_rounded(kept[kept <= top].max()),
        floor=_rounded(log_fence(lower, upper, len(kept))),
        state=state,
        intervals=_intervals(kept, correlation),
    )
    return Proposal(band, correlation, tuple(notes))


def _intervals(values: Array, correlation: float) -> dict[str, tuple[float, float]]:
    """Return the 95 % intervals of the quartiles and of the floor.

    The floor rises with the lower quartile and falls with the upper one. Their 97.5 % intervals
    both hold in at least 95 % (Bonferroni), and so does the interval of the floor from them.
    """

    def of(share: float, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
        return interval(values, share, confidence=confidence, correlation=correlation)

    intervals = {"lower_quartile": of(0.25), "median": of(0.5), "upper_quartile": of(0.75)}
    both = 1 - (1 - CONFIDENCE) / 2
    low, high = of(0.25, both), of(0.75, both)
    if low and high:
        # without max(), overlapping intervals would put the fence above the lower quartile
        highest = log_fence(low[1], max(low[1], high[0]), len(values))
        intervals = {"floor": (log_fence(low[0], high[1], len(values)), highest), **intervals}
    return {name: (_rounded(e[0]), _rounded(e[1])) for name, e in intervals.items() if e}


def _rounded(figure: float) -> float:
    # the significant digits of a band; figures keep their order
    return float(f"{min(max(figure, _LEAST), 1 / _LEAST):.{_DIGITS}g}")
