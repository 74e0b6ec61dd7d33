"""Why an alert: what changed when its series did, in all of them and in no series that did not.

Sessions count as time, as all series of a session see the same site. `odds` compare a cause with a
coincidence: how often what changed also changes by itself, in the past of the same series.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from iobands.judge.fold import Happening, Story
from iobands.model import FIELD, TARGET, TIME, PeerName
from iobands.snapshot import (
    CAUSED,
    DOWN,
    GREW,
    OPENED,
    Cause,
    CauseKind,
    Place,
    Series,
    in_utc,
    moment,
)
from iobands.source.samples import CHECK

Array = NDArray[np.float64]

# The odds, before the evidence, that this is the cause and not something that no column records.
_PRIOR: Final = {
    CauseKind.TARGET_OUT: 0.3,
    CauseKind.TARGET: 0.3,
    CauseKind.NODE: 0.3,
    CauseKind.TRANSPORT: 0.1,
    CauseKind.HINTS: 0.1,
    CauseKind.VERSION: 0.1,
    CauseKind.LAYOUT: 0.08,
    CauseKind.FULLNESS: 0.08,
    CauseKind.LOAD: 0.2,
    CauseKind.NODES: 0.03,
}
# The columns that may tell a cause: any other value, or a larger (1) or smaller (-1) number.
_COLUMNS: Final = {
    "targets_inactive": (CauseKind.TARGET_OUT, 1),
    "targets_active": (CauseKind.TARGET_OUT, -1),
    "transport_in_effect": (CauseKind.TRANSPORT, 0),
    "hints_in_effect": (CauseKind.HINTS, 0),
    "movers": (CauseKind.HINTS, 0),
    "cache": (CauseKind.HINTS, 0),
    "suite_version": (CauseKind.VERSION, 0),
    "tool_version": (CauseKind.VERSION, 0),
    "version": (CauseKind.VERSION, 0),
    "stripe_count": (CauseKind.LAYOUT, 0),
    "stripe_size": (CauseKind.LAYOUT, 0),
    "placement": (CauseKind.LAYOUT, 0),
    "busiest_target": (CauseKind.LAYOUT, 1),
    "fullness_percent": (CauseKind.FULLNESS, 1),
    "fullest_target_percent": (CauseKind.FULLNESS, 1),
    "load_per_node": (CauseKind.LOAD, 1),
    "other_jobs": (CauseKind.LOAD, 1),
    "client_written_gib": (CauseKind.LOAD, 1),
    "client_read_gib": (CauseKind.LOAD, 1),
    "job_nodelist": (CauseKind.NODES, 0),
}
_NAMES: Final = {"version": "ReFrame", "job_nodelist": "nodes", "other_jobs": "other jobs"}
# A file system that is less full, or not much fuller than before, is not slow for that; in percent.
_FULL: Final = 80.0
_FULLER: Final = 5.0
# A cause is named from these odds on, if no other kind comes within this factor of them.
_NAMED: Final = 20.0
_CLEARLY: Final = 3.0
# What a change is compared with: so many runs before, and at most so many since.
_BEFORE: Final = 20
_SINCE: Final = 10
_SAME: Final = 0.8  # share of the runs since that have the new value
_SELDOM: Final = 0.1  # share of the runs before that may have had it
_MOST: Final = 0.8  # share of the members that a cause must explain
_LEVEL: Final = 50  # runs that give the level before
_NATS: Final = 3.0  # onsets that are less likely by this are left out
_CLIP: Final = 4.0  # nats that one run adds at most
_SHARED: Final = 0.3  # of the noise is the same in all series of a session
_LEAST_NOISE: Final = 0.01
_REFUTES: Final = 1 / 3  # what a series with the change that did not move does to the odds
_RATED: Final = 5  # members that give the base rate
_FEW: Final = 2
# An alert's cause is looked for when it opens and grows, and this long after it opened.
_AGAIN: Final = (timedelta(days=3), timedelta(days=7), timedelta(days=14))


@dataclass(frozen=True)
class Records:
    """All samples and speeds of a site."""

    samples: pl.DataFrame
    speeds: pl.DataFrame
    _columns: dict[str, Array] = field(default_factory=dict)

    def of(self, name: str) -> Array:
        """Return a column as numbers; a text is its code, a missing value is NaN."""
        if name not in self._columns:
            column = self.samples[name]
            if FIELD[name].type == "text":
                column = column.cast(pl.Categorical).to_physical()
            self._columns[name] = column.cast(pl.Float64).to_numpy()
        return self._columns[name]


@dataclass(frozen=True)
class Runs:
    """The runs of a series up to a time: all of them, and the judged ones with their levels."""

    series: Series
    number: int
    when: datetime

    @cached_property
    def sessions(self) -> NDArray[np.int_]:
        """The session of each run."""
        return self.series.history.sessions[: self.number]

    @cached_property
    def judged(self) -> tuple[NDArray[np.int_], Array]:
        """The sessions and logarithms of the judged runs."""
        evidence = self.series.status.evidence
        rows = np.arange(self.number) if evidence is None else evidence.rows
        rows = rows[rows < self.number]
        values = self.series.history.values[rows]
        measured = values > 0
        return self.series.history.sessions[rows[measured]], np.log(values[measured])

    def level(self, until: int) -> tuple[float, float] | None:
        """Return median and spread of the judged runs before a session, None of too few."""
        sessions, values = self.judged
        before = values[sessions < until][-_LEVEL:]
        if len(before) < _BEFORE // 2:
            return None
        middle = float(np.median(before))
        return middle, max(1.4826 * float(np.median(np.abs(before - middle))), _LEAST_NOISE)


@dataclass(frozen=True)
class Scene:
    """An alert at a time: its members, and the series of the same variables that did not move.

    The drop began in a session from `first` to `last`, with the run at `since`.
    """

    members: tuple[Runs, ...]
    unmoved: tuple[Runs, ...]
    first: int
    last: int
    since: datetime
    when: datetime
    direction: str

    @property
    def width(self) -> int:
        """The number of sessions in which a change meets the onset, one later included."""
        return self.last - self.first + 2


def scene_of(
    series: Sequence[Series], others: Sequence[Series], lead: Happening, when: datetime
) -> Scene | None:
    """Return what is known of an alert of `series` at `when`; `lead` is its first part."""
    members = [each for each in (_runs(each, when) for each in series) if each.number]
    begin = _session_at(members, lead.low)
    if begin is None:
        return None
    gains: dict[int, float] = {}
    drops = []
    for each in members:
        level, (sessions, values) = each.level(begin), each.judged
        since = values[sessions >= (_session_at(members, lead.since) or begin)]
        if level is None or not len(since):
            continue
        drop = float(np.median(since)) - level[0]
        if drop == 0 or (drop < 0) != (lead.direction == DOWN):
            continue
        drops.append(drop)
        near = sessions >= begin - 5
        found = np.clip(drop * (values[near] - level[0] - drop / 2) / level[1] ** 2, -_CLIP, _CLIP)
        for session, gain in zip(sessions[near].tolist(), found.tolist(), strict=True):
            gains[session] = gains.get(session, 0.0) + gain
    if not gains:
        return None
    known = sorted(gains)
    total = np.cumsum([gains[each] for each in reversed(known)])[::-1]
    total /= max(1.0, _SHARED * len(drops))
    likely = np.flatnonzero(total >= total.max() - _NATS)
    first, last = known[likely[0]], known[likely[-1]]
    depth = float(np.median(drops))
    # a series may have joined by chance
    members = [each for each in members if not _is_unmoved(each, first, last, depth)]
    if not members:
        return None
    variables = {each.series.key.variable for each in members}
    alike = [_runs(each, when) for each in others if each.key.variable in variables]
    still = [each for each in alike if _is_unmoved(each, first, last, depth)]
    likeliest = known[int(total.argmax())]
    onset = min(_time_of(each, likeliest) for each in members)
    return Scene(tuple(members), tuple(still), first, last, onset, when, lead.direction)


def _runs(series: Series, when: datetime) -> Runs:
    number = int(np.searchsorted(series.history.times, in_utc(when), side="right"))
    return Runs(series, number, when)


def _session_at(members: Sequence[Runs], when: datetime) -> int | None:
    """Return the first session of any of them from a time on."""
    found = []
    for each in members:
        place = int(np.searchsorted(each.series.history.times[: each.number], in_utc(when)))
        found += each.sessions[place : place + 1].tolist()
    return min(found, default=None)


def _time_of(runs: Runs, session: int) -> datetime:
    place = int(np.searchsorted(runs.sessions, session))
    return moment(runs.series.history.times[place]) if place < runs.number else runs.when


def _is_unmoved(runs: Runs, first: int, last: int, drop: float) -> bool:
    """Return whether the level since the onset is surely nearer to the old one than to a drop."""
    level, (sessions, values) = runs.level(first), runs.judged
    since = values[sessions > last]
    if level is None or not len(since):
        return False
    middle, error = float(np.median(since)) - level[0], level[1] / math.sqrt(len(since))
    return drop * (middle - drop / 2) / error**2 < -1


def candidates(
    scene: Scene, records: Records, places: Sequence[Place], slow: Sequence[Happening]
) -> tuple[Cause, ...]:
    """Return what may be the cause, the best of each kind, the likeliest first."""
    found = [*_of_columns(scene, records, places), *_of_peers(scene, records, slow)]
    best: dict[CauseKind, Cause] = {}
    for each in sorted(found, key=lambda each: each.odds):
        best[each.kind] = each
    likely = sorted((each for each in best.values() if each.odds >= 1), key=lambda c: -c.odds)
    return tuple(likely) or tuple(_of_partition(scene))


def named(likely: Sequence[Cause]) -> Cause | None:
    """Return the cause if its odds are good, and no other candidate is nearly as good."""
    if not likely or likely[0].odds < _NAMED:
        return None
    second = likely[1].odds if len(likely) > 1 else 0.0
    return likely[0] if likely[0].odds >= _CLEARLY * second else None


def tell_causes(
    story: Story, now: datetime, find: Callable[[Story, datetime], tuple[Cause, ...] | None]
) -> None:
    """Add to an alert when its cause became known, was another, or no longer certain."""
    fresh = [each for each in story.events[story.logged :] if each.kind in (OPENED, GREW)]
    again = [story.opened + each for each in _AGAIN]
    if story.closed is not None:
        again = [each for each in again if each < story.closed]
    known = next((e.cause for e in reversed(story.events) if e.kind == CAUSED), None)
    for when in sorted({*(each.when for each in fresh), *again}):
        told = [each for each in story.events if each.kind == CAUSED and each.when <= when]
        later = any(each.kind == CAUSED and each.when > when for each in story.events)
        likely = None if when > now or later else find(story, when)
        if likely is None:
            continue
        known = told[-1].cause if told else None
        cause = named(likely)
        if cause and (known is None or not _is_same(cause, known)):
            story.tell(when, CAUSED, cause=cause)
        elif known and not any(_is_same(each, known) for each in likely):
            story.tell(when, CAUSED)
    story.events[story.logged :] = sorted(story.events[story.logged :], key=lambda each: each.when)


def _is_same(one: Cause, other: Cause) -> bool:
    exact = one.kind in (CauseKind.TARGET_OUT, CauseKind.TARGET, CauseKind.NODE)
    return one.kind == other.kind and (not exact or one.what == other.what)


def _of_columns(scene: Scene, records: Records, places: Sequence[Place]) -> Iterator[Cause]:
    sign = 1 if scene.direction == DOWN else -1
    for name, (kind, up) in _COLUMNS.items():
        column = records.of(name)
        found = [(each, _changed(each, column, up * sign, kind, scene)) for each in scene.members]
        known = [(runs, place) for runs, place in found if place is not None]
        moved = [(runs, place) for runs, place in known if place >= 0]
        if not moved or len(moved) < _MOST * len(known) or 2 * len(known) < len(found):
            continue
        against = sum(
            (_changed(each, column, up * sign, kind, scene) or -1) >= 0 for each in scene.unmoved
        )
        if against > (1 - _MOST) * len(moved):
            continue
        chance = _chance([runs for runs, _ in moved], column, up * sign, kind, scene)
        odds = _PRIOR[kind] / chance * _REFUTES**against
        runs, place = moved[0]
        what = _what(runs, place, name, kind, records, scene, places)
        times = [moment(runs.series.history.times[place]) for runs, place in moved]
        yield Cause(kind, what, min(times), float(f"{odds:.2g}"))


def _changed(runs: Runs, column: Array, sign: int, kind: CauseKind, scene: Scene) -> int | None:
    """Return the place of the first run since a column changed at the onset, -1 if it did not.

    None if it cannot be told.
    """
    values = column[runs.series.rows[: runs.number]]
    shown = np.flatnonzero(~np.isnan(values))
    values, sessions = values[shown], runs.sessions[shown]
    begin, end = np.searchsorted(sessions, (scene.first, scene.last + 2))
    since = min(_SINCE, len(values) - begin)
    if begin < _BEFORE // 2 or since < 1:
        return None
    for place in range(begin, end):
        few = values[max(0, place - _BEFORE) : place], values[place : place + _SINCE]
        if _differs(few[0][None], few[1][None], sign, kind)[0]:
            return int(shown[place])
    return -1


def _differs(before: Array, since: Array, sign: int, kind: CauseKind) -> NDArray[np.bool_]:
    """Return for each row of runs `before` and `since` whether they differ."""
    if sign == 0:
        new = since[:, :1]
        same = (since == new).mean(1) >= _SAME
        return np.asarray(same & ((before == new).mean(1) <= _SELDOM))
    low, high = np.quantile(before, (0.05, 0.95), axis=1)
    now = np.median(since, axis=1)
    edge = high + (high - low) / 2 if sign > 0 else low - (high - low) / 2
    beyond = sign * (now - edge) > 0
    # one odd value does not make a median of two
    beyond &= (sign * (since - edge[:, None]) > 0).mean(1) >= _SAME
    if kind is CauseKind.FULLNESS:
        beyond &= (np.maximum(now, high) >= _FULL) & (sign * (now - edge) >= _FULLER)
    return np.asarray(beyond)


def _chance(
    members: Sequence[Runs], column: Array, sign: int, kind: CauseKind, scene: Scene
) -> float:
    """Return how likely such a change meets the onset by itself, from the sessions before.

    Past changes do not count if another drop began with them, or if series changed that did not
    move now. Half a change more than were seen is assumed.
    """
    mine = [_hits(runs, column, sign, kind, scene) for runs in members[:_RATED]]
    others = [_hits(runs, column, sign, kind, scene) for runs in scene.unmoved[: 2 * _RATED]]
    known = np.mean([np.isfinite(each) for each in mine], axis=0) > 0
    hits = np.nan_to_num(np.nanmean([np.where(known, each, 0) for each in mine], axis=0)) > 1 / 2
    if others:
        elsewhere = [np.nan_to_num(each) for each in others]
        hits &= np.mean(elsewhere, axis=0) <= 1 - _MOST
    hits = hits[known]
    width = min(scene.width, len(hits))
    if not width:
        return 1.0
    windows = np.asarray(sliding_window_view(hits, width).any(1))
    return float((windows.sum() + width / 2) / (len(windows) + width))


def _hits(runs: Runs, column: Array, sign: int, kind: CauseKind, scene: Scene) -> Array:
    """Return for each session before the onset whether a column changed, NaN if not known."""
    found = np.full(scene.first, np.nan)
    values = column[runs.series.rows[: runs.number]]
    shown = ~np.isnan(values)
    values, sessions = values[shown], runs.sessions[shown]
    since = max(1, min(_SINCE, int((sessions >= scene.first).sum())))
    values, sessions = values[sessions < scene.first], sessions[sessions < scene.first]
    if len(values) < _BEFORE + since:
        return found
    before = sliding_window_view(values[: len(values) - since], _BEFORE)
    after = sliding_window_view(values[_BEFORE:], since)
    places = sessions[_BEFORE : _BEFORE + len(before)]
    found[places] = _differs(before, after, sign, kind)
    for each in _changes_before(runs, scene):
        found[places[np.abs(places - each) <= scene.width]] = 0.0
    return found


def _changes_before(runs: Runs, scene: Scene) -> Iterator[int]:
    evidence = runs.series.status.evidence
    for each in evidence.changes if evidence else ():
        place = int(np.searchsorted(runs.series.history.times, in_utc(each.since)))
        if each.direction == scene.direction and place < runs.number:
            yield int(runs.sessions[place])


def _what(
    runs: Runs,
    place: int,
    name: str,
    kind: CauseKind,
    records: Records,
    scene: Scene,
    places: Sequence[Place],
) -> str:
    """Return in a few words what changed."""
    cells = records.samples[name][runs.series.rows[: runs.number]]
    sample = records.samples.row(int(runs.series.rows[place]), named=True)
    before = cells[:place].drop_nulls().tail(_BEFORE)
    since = cells[place : place + _SINCE].drop_nulls()
    if kind is CauseKind.TARGET_OUT:
        return _targets_text(sample, scene, places)
    called = _NAMES.get(name, name.removesuffix("_in_effect").replace("_", " "))
    if FIELD[name].type == "text" or kind is CauseKind.LAYOUT:
        old, new = str(before.mode()[0]), str(since.mode()[0])
        if "=" in old + new:  # of a list, what is not in both
            called, parts = "", [set(each.split(",")) for each in (old, new)]
            old, new = (",".join(sorted(a - b)) for a, b in (parts, parts[::-1]))
        return f"{called} {new or 'none'}, was {old or 'none'}".strip()
    old, new = (f"{float(np.median(each.to_numpy())):.3g}" for each in (before, since))
    if kind is CauseKind.FULLNESS:
        what = sample["fullest_target"] if name != "fullness_percent" else None
        return f"{what or runs.series.key.file_system} {new} % full, was {old} %"
    return f"{called} {new}, was {old}"


def _targets_text(sample: Mapping[str, object], scene: Scene, places: Sequence[Place]) -> str:
    """Return how many targets are out of service, and which, if the runs used all others."""
    active, out = (int(str(sample[each] or 0)) for each in ("targets_active", "targets_inactive"))
    every = f"{out} of {active + out}" if active else f"{out}"
    if scene.direction != DOWN:
        return f"{active} of {active + out} targets in service"
    for place in places:
        if (place.kind, place.where) != (TARGET, sample["file_system"]):
            continue
        for speeds in place.speeds.values():
            used = speeds.used[speeds.times <= in_utc(scene.when)]
            times = speeds.times[: len(used)]
            before = used[times < in_utc(scene.since)][-_BEFORE:]
            since = used[times > in_utc(scene.since)]
            if len(before) < _FEW or len(since) < 1:
                continue
            gone = np.flatnonzero((before.mean(0) >= _MOST) & ~since.any(0))
            if 0 < len(gone) == out:
                names = ", ".join(speeds.peers[each] for each in gone)
                return f"{place.noun} {names} out of service ({every})"
    return f"{every} targets out of service"


def _of_peers(scene: Scene, records: Records, slow: Sequence[Happening]) -> Iterator[Cause]:
    """Yield the slow targets and nodes that the members used."""
    low, high = _times_of(scene)
    for each in slow:
        name = each.source
        if not isinstance(name, PeerName) or each.low > high or each.since < low:
            continue
        users = [_uses(runs, records, name, scene) for runs in scene.members]
        told = [use for use in users if use is not None]
        # what other patterns wait for may be slower than a slow target
        patterns = {runs.series.key.pattern for runs in scene.members}
        near = [runs for runs in scene.unmoved if runs.series.key.pattern in patterns]
        against = sum(_uses(runs, records, name, scene) is True for runs in near)
        if not any(told) or sum(told) < _MOST * len(told) or against > (1 - _MOST) * sum(told):
            continue
        number = len({other.names for other in slow}) - 1
        sessions = len(np.unique(scene.members[0].sessions))
        chance = min(1.0, scene.width * (number + 0.5) / sessions)
        kind = CauseKind.TARGET if name.kind == TARGET else CauseKind.NODE
        odds = _PRIOR[kind] / chance * _REFUTES**against
        yield Cause(kind, f"{each.names[0]} is slow", each.since, float(f"{odds:.2g}"))


def _times_of(scene: Scene) -> tuple[datetime, datetime]:
    """Return from when to when the alert may have begun, with a session before and after."""
    runs = scene.members[0]
    begin, end = np.searchsorted(runs.sessions, (scene.first - 1, scene.last + 1))
    times = runs.series.history.times[: runs.number]
    return moment(times[max(begin, 0)]), moment(times[min(end, runs.number - 1)])


def _uses(runs: Runs, records: Records, name: PeerName, scene: Scene) -> bool | None:
    """Return whether most runs since the onset used a target or a node, None if not known."""
    key, newest = runs.series.key, runs.series.history.newest
    where = key.file_system if name.kind == TARGET else key.partition
    if (key.system, where) != (name.system, name.where):
        return False
    if name.kind == TARGET and key.stripe_count_asked == -1:
        return True
    rows = records.speeds.filter(
        pl.col(TIME).is_between(scene.since, scene.when),
        pl.col("kind") == name.kind,
        *(pl.col(each) == newest[each] for each in CHECK),
    )
    if rows.is_empty():
        return None
    used = rows.filter(pl.col("peer") == name.name)[TIME].n_unique()
    return 2 * used > rows[TIME].n_unique()


def _of_partition(scene: Scene) -> Iterator[Cause]:
    """Yield the partition of the members, if the series of the others did not move."""
    partitions = {runs.series.key.partition for runs in scene.members}
    places = {runs.series.key.file_system for runs in scene.members}
    near = [runs.series.key for runs in scene.unmoved if runs.series.key.file_system in places]
    others = [key for key in near if key.partition not in partitions]
    if len(partitions) > 1 or len(scene.members) < _FEW or len(others) < _FEW:
        return
    if len(others) == len(near):
        what = f"only partition {partitions.pop()}; {len(others)} series of others did not move"
        yield Cause(CauseKind.PARTITION, what, scene.since, 3.0 ** min(len(others), 6))
