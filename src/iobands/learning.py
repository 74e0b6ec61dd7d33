"""From a site's perflogs to new epochs of its bands: what can be learnt, and what cannot and why.

Brings readers, series, states and calibration together; may know nothing of how it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from iobands.alerts.acts import Acts, bands_for, standing
from iobands.alerts.alarms_file import load_acts
from iobands.alerts.shared import Common
from iobands.alerts.under_alarms import UnderCommon, under_common
from iobands.bands import FROZEN, Band, Bands, Epoch
from iobands.bands_file import load_bands
from iobands.bands_writer import added, free_name
from iobands.calibration import Proposal, healthy, propose
from iobands.history import History, alike
from iobands.levels import NoProposal
from iobands.readers.adapters import format_of
from iobands.readers.fields import REQUIRED
from iobands.readers.perflog import read_perflogs
from iobands.series import SeriesKey, grouping, labels
from iobands.status.states import left_out, published_band
from iobands.status.survey import take_survey
from iobands.vocabulary import canonical
from iobands.yaml_change import Change

#: What an epoch that was learnt says of its source.
SOURCE: Final = "own history, by iobands calibrate"
#: What an epoch that a person added says of its source.
BY_HAND: Final = "iobands epoch"


@dataclass(frozen=True)
class Learnt:
    """A series and the band that it shall get; `before` is the one in force, None without one."""

    key: SeriesKey
    label: str
    band: Band
    before: Band | None
    proposal: Proposal
    notes: tuple[str, ...]


@dataclass(frozen=True)
class LeftOut:
    """A series that gets no new band, and why."""

    label: str
    why: str


@dataclass(frozen=True)
class Calibration:
    """What a calibration found; `change` is None where no band would be another."""

    system: str
    learnt: tuple[Learnt, ...]
    left_out: tuple[LeftOut, ...]
    change: Change | None


def calibrate(
    perflogs: Path,
    bands: Path,
    *,
    now: datetime,
    system: str | None = None,
    part: str = "",
    since: datetime | None = None,
    adapter: str | None = None,
    alarms: Path | None = None,
) -> Iterator[Calibration]:
    """Yield for each system what its series with `part` in their label give; writes nothing.

    Samples from before `since` are passed over. `bands` is the directory of the bands files, and
    `alarms` that of what people did about alarms, without which they did nothing.

    Raises:
        AdapterError, FileNotFoundError, FileError: as of `survey.take_survey`.
    """
    survey = take_survey(
        perflogs, bands, now=now, system=system, adapter=adapter, columns=(), alarms=alarms
    )
    followings = {each.key: each.status.following for each in survey.series}
    columns = {*REQUIRED, "fsync", "suite_version", "job_nodelist"}
    table = read_perflogs(perflogs, system, format_of(perflogs, adapter), columns).samples
    histories = dict(grouping(table).split(table))
    names = labels(histories)
    chosen = sorted((k for k in histories if part in names[k]), key=SeriesKey.sort_key)
    for name in sorted({key.system for key in chosen}):
        path = bands / f"{name}.yaml"
        there = load_bands(path) if path.exists() else None
        acts = load_acts(alarms, name) if alarms else Acts(name)
        learnt: list[Learnt] = []
        left_out: list[LeftOut] = []
        for key in (key for key in chosen if key.system == name):
            of_key = bands_for(there, standing(acts.of(key), now), name)
            try:
                following = followings.get(key)  # a superseded series has none
                under = (
                    under_common(key, following, survey.pooled, survey.common)
                    if following
                    else UnderCommon()
                )
                learnt.append(_learn(key, names[key], histories[key], of_key, now, since, under))
            except NoProposal as why:
                left_out.append(LeftOut(names[key], str(why)))
        change = _epoch_of(learnt, path, name, there, now) if learnt else None
        yield Calibration(name, tuple(learnt), tuple(left_out), change)


def _learn(
    key: SeriesKey,
    label: str,
    samples: pd.DataFrame,
    bands: Bands | None,
    now: datetime,
    since: datetime | None,
    under: UnderCommon,
) -> Learnt:
    """Return the band that `samples`, in the order of time, give now.

    `under` tells which of them are under alarms that several series have in common.

    Raises:
        NoProposal: they give none, or the one in force stays.
    """
    is_common = np.isin(np.arange(len(samples)), under.rows)
    passed = (samples["result"] == "pass").to_numpy()
    samples, is_common = samples[passed], is_common[passed]
    if samples.empty:
        raise NoProposal("no run passed")
    # as of a sample that is taken now, to which the new epoch will apply
    in_force = published_band(key, samples.iloc[-1:].assign(job_completion_time=now).iloc[0], bands)
    times = samples["job_completion_time"]
    begin = max(filter(None, [bands and bands.compares_since(now), since]), default=None)
    same = alike(samples)
    notes = []
    if not same.all():
        last = times[~same].iloc[-1]
        notes.append(
            f"{int((~same).sum())} runs of another kernel, suite or fsync, until "
            f"{last:%Y-%m-%d}, are not mixed in"
        )
    early = same & (times < begin).to_numpy() if begin is not None else np.zeros_like(same)
    same &= ~early
    closed = same & left_out(History.of(samples), bands)
    history = samples[same & ~closed]
    is_common = is_common[same & ~closed]
    stale = (
        bool(notes) and in_force is not None and _is_stale(in_force, times[alike(samples)], bands)
    )
    if early.any():
        notes.append(f"{int(early.sum())} runs from before {begin:%Y-%m-%d %H:%M} do not compare")
    if closed.any():
        notes.append(f"{int(closed.sum())} runs under closed alarms left out")
    if in_force is not None and in_force.state == FROZEN and not stale:
        raise NoProposal(
            "frozen; `iobands new-normal` begins anew, or `iobands epoch` for the whole system"
        )
    values = history["perf_value"].to_numpy(dtype=float)
    moments = history["job_completion_time"].to_list()
    least = bands.least_change if bands else None
    free, chart = healthy(values, None if stale else in_force, least)
    alarm = chart.open_alarm
    if alarm is not None:
        raise NoProposal(
            f"under an open alarm ({alarm.direction}, × {alarm.ratio.value:.2f}) since "
            f"{moments[alarm.onset]:%Y-%m-%d}; say with `iobands close` that it was repaired, or "
            "with `iobands new-normal` that it is to stay"
        )
    if under.lasting is not None and is_common.any():
        raise NoProposal(_why_not(under.lasting))
    if chart.is_watched:
        raise NoProposal("watched: the newest runs speak for a drop; wait until they have settled")
    free = free[~is_common[free]]
    if len(free) < len(values):
        which = "alarms, some of them shared," if is_common.any() else "earlier alarms"
        notes.append(f"{len(values) - len(free)} runs under {which} left out")
    try:
        proposal = propose(values[free], [moments[index] for index in free])
    except NoProposal as why:
        raise NoProposal("; ".join([str(why), *notes])) from None
    band = _band(key, proposal)
    if in_force is not None and _says_the_same(band, in_force):
        raise NoProposal("the band in force is the same")
    return Learnt(key, label, band, in_force, proposal, tuple(notes))


def _why_not(common: Common) -> str:
    change = common.change
    return (
        f"under an open alarm that it shares, {common.name} ({change.direction}, "
        f"× {change.ratio.value:.2f}) since {change.since:%Y-%m-%d}; say with `iobands close "
        f"'{common.name}'` that it was repaired, or with `iobands new-normal` that it is to stay"
    )


def _is_stale(band: Band, times: pd.Series, bands: Bands | None) -> bool:
    """Tell whether `band` was learnt from other runs than those like the newest, at `times`.

    It was when fewer of these had been made than it was learnt from, when it first came up.
    """
    if band.state is None or band.runs is None or bands is None:
        return False
    wanted = _canonical(band)
    first = min(
        epoch.since
        for epoch in bands.epochs
        for one in epoch.bands
        if _canonical(one) == wanted and _says_the_same(one, band)
    )
    return int((times < first).sum()) < band.runs


def _band(key: SeriesKey, proposal: Proposal) -> Band:
    match = {name: value for name, value in key.fields().items() if name != "system"}
    return Band(
        match=match,
        unit=key.unit,
        lower_quartile=proposal.lower_quartile,
        median=proposal.median,
        upper_quartile=proposal.upper_quartile,
        maximum=proposal.maximum,
        floor=proposal.floor,
        runs=proposal.runs,
        epoch="",
        source=SOURCE,
        state=proposal.state,
        intervals=proposal.intervals,
    )


def _says_the_same(band: Band, other: Band) -> bool:
    alike_but = replace(other, epoch=band.epoch, source=band.source, match=band.match)
    return band == alike_but and _canonical(band) == _canonical(other)


def _canonical(band: Band) -> dict[str, object]:
    return {name: canonical(value) for name, value in band.match.items()}


def _epoch_of(
    learnt: Sequence[Learnt], path: Path, system: str, there: Bands | None, now: datetime
) -> Change:
    taken = [epoch.name for epoch in there.epochs] if there else []
    epoch = Epoch(
        name=free_name(f"learnt-{now:%Y-%m-%d}", taken),
        since=now,
        source=SOURCE,
        bands=tuple(one.band for one in learnt),
        reason="calibrated: the bands are new, what is measured is not",
        continues=True,
    )
    before = there.epoch_at(now) if there else None
    return added(path, system, epoch, kept=before.bands if before else ())


def runs_by_system(
    perflogs: Path, since: datetime, adapter: str | None = None
) -> dict[str, tuple[int, int]]:
    """Return how many samples each system has before `since` and from then on.

    Raises:
        AdapterError, FileNotFoundError: as of `survey.take_survey`.
    """
    samples = read_perflogs(perflogs, None, format_of(perflogs, adapter), REQUIRED).samples
    late = samples["job_completion_time"] >= since
    found = {}
    for system, of_system in late.groupby(samples["system"].astype(str)):
        found[str(system)] = (int((~of_system).sum()), int(of_system.sum()))
    return found


def epoch_by_hand(
    bands: Path, system: str, name: str, *, reason: str, since: datetime, keep_bands: bool
) -> Change:
    """Return the change that begins an epoch, since which nothing compares with what was before.

    Raises:
        FileError: the bands file cannot be used, or has an epoch of this name or beginning.
    """
    path = bands / f"{system}.yaml"
    there = load_bands(path) if path.exists() else None
    before = there.epoch_at(since) if there else None
    epoch = Epoch(name, since, BY_HAND, (), reason)
    return added(path, system, epoch, kept=before.bands if before and keep_bands else ())
