"""The causes of alerts: what changed at the onset in all members, and in no series that stayed.

The odds of a cause compare it with a coincidence, by how often the same thing changed by itself in
the past of these series. docs/decisions/0021 has the rule.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import islice
from typing import Final

import numpy as np
import polars as pl
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from iobands.judge.fold import Happening, Story
from iobands.judge.onset import Onset, Runs
from iobands.snapshot import (
    CAUSED,
    CHECK,
    DOWN,
    FELL,
    GREW,
    NODE,
    OPENED,
    TARGET,
    TIME,
    AlertEvent,
    Array,
    Cause,
    CauseKind,
    Columns,
    PeerName,
    Place,
    figure,
    in_utc,
    is_constant,
    moment,
)

# The odds of each kind before any evidence, against causes that no column records, and the columns
# that may show it: by another value (0), or by a larger (1) or smaller number (-1).
_OF_KIND: Final[dict[CauseKind, tuple[float, dict[str, int]]]] = {
    CauseKind.TARGET_OUT: (0.3, {"targets_inactive": 1, "targets_active": -1}),
    CauseKind.TARGET: (0.3, {}),
    CauseKind.NODE: (0.3, {}),
    CauseKind.TRANSPORT: (0.1, {"transport_in_effect": 0}),
    CauseKind.HINTS: (0.1, {"hints_in_effect": 0, "movers": 0, "cache": 0}),
    CauseKind.VERSION: (0.1, {"suite_version": 0, "tool_version": 0, "version": 0}),
    CauseKind.LAYOUT: (
        0.08,
        {"stripe_count": 0, "stripe_size": 0, "placement": 0, "busiest_target": 1},
    ),
    CauseKind.FULLNESS: (0.08, {"fullness_percent": 1, "fullest_target_percent": 1}),
    CauseKind.LOAD: (
        0.2,
        {"load_per_node": 1, "other_jobs": 1, "client_written_gib": 1, "client_read_gib": 1},
    ),
    CauseKind.NODES: (0.03, {"job_nodelist": 0}),
    # low odds, as whatever slows opens also shows in another column
    CauseKind.METADATA: (0.02, {"open_close_percent": 1}),
}
_PRIOR: Final = {kind: odds for kind, (odds, _) in _OF_KIND.items()}
_COLUMNS: Final = {
    name: (kind, sign) for kind, (_, columns) in _OF_KIND.items() for name, sign in columns.items()
}
_CALLED: Final = {
    "version": "ReFrame",
    "job_nodelist": "nodes",
    "busiest_target": "files on the busiest target, × its round-robin share:",
    "open_close_percent": "% of the time in opens and closes",
}
# A cause is named from odds of `_NAMED` on, if they are `_CLEARLY` times those of any other.
_NAMED: Final = 10.0
_CLEARLY: Final = 3.0
_WORTH_A_LOOK: Final = 0.1
# Up to `_BEFORE` runs, and at least `_FEWEST`, are compared with up to `_SINCE` runs since.
_BEFORE: Final = 20
_FEWEST: Final = 10
_SINCE: Final = 10
_MOST: Final = 0.8  # of the runs, or of the series, have to agree
# A fuller file system is slower only if it is nearly full: percent used, and points gained.
_FULL: Final = 80.0
_FULLER: Final = 5.0
# The factor on the odds for each series with the same change that did not move.
_REFUTES: Final = 1 / 3
# How many series give the base rate of a change, and how few may stand for a partition.
_RATED: Final = 5
_FEW: Final = 2
# The factor on the odds of a partition for each series of others that stayed; how many count.
_STAYED: Final = 3.0
_MOST_STAYED: Final = 6
# What surrounds the names of targets in a text; older logs have their number before `out`.
_AROUND_NAMES: Final = re.compile(r"s\b| (of|out) .*")
# The cause is looked for when an alert opens or grows, and again this long after it opened.
_AGAIN: Final = (timedelta(days=3), timedelta(days=7), timedelta(days=14))


@dataclass(frozen=True)
class Records:
    """All samples and speeds of a site, and the targets and nodes that are compared."""

    samples: Columns
    speeds: pl.DataFrame
    places: Sequence[Place]

    @cached_property
    def columns(self) -> dict[str, Array]:
        """The columns that may show a cause and are not constant, with texts as codes."""
        found = {}
        for name in _COLUMNS:
            column = self.samples[name]
            if not is_constant(column):
                found[name] = column.to_physical().cast(pl.Float64).to_numpy()
        return found

    def of(self, runs: Runs, name: str) -> tuple[Array, NDArray[np.int_], NDArray[np.int_]]:
        """Return the known values of a column, the places of their runs, and their sessions."""
        values = self.columns[name][runs.series.rows[: runs.number]]
        shown = np.flatnonzero(~np.isnan(values))
        return values[shown], shown, runs.sessions[shown]


def tell_causes(
    story: Story,
    now: datetime,
    ends: Callable[[datetime], datetime],
    find: Callable[[Story, datetime, AlertEvent | None], tuple[Cause, ...] | None],
) -> None:
    """Add events to an alert: its cause became known, changed, or is no longer certain.

    `ends` returns the end of the session at a time, as all its runs count, and `find` the possible
    causes by then. Logged events stay. The cause of a further fall names the series that fell.
    """
    last = max((e.when for e in story.events[: story.logged] if e.kind == CAUSED), default=None)
    grown = [e for e in story.events[story.logged :] if e.kind in (OPENED, GREW)]
    for fall in (None, *[each for each in story.events if each.kind == FELL]):
        begun = fall.when if fall else story.opened
        times = {ends(each.when) for each in ([fall] if fall else grown)}
        times |= {begun + each for each in _AGAIN}
        about = fall.names if fall else ()
        mine = [each for each in story.events if each.kind == CAUSED and each.names == about]
        latest = mine[-1].cause if mine else None
        for when in sorted(each for each in times if each <= min(now, story.closed or now)):
            is_new = (last is None or when > last) and not (fall and latest)
            likely = find(story, when, fall) if is_new else None
            if likely is None:
                continue
            found = clear_cause(likely)
            if found and (latest is None or not _is_same(found, latest)):
                story.record(when, CAUSED, names=about, cause=found)
                latest = found
            elif latest and not any(_is_same(each, latest) for each in likely):
                story.record(when, CAUSED)
                latest = None
    story.events[story.logged :] = sorted(story.events[story.logged :], key=lambda e: e.when)


def _is_same(one: Cause, other: Cause) -> bool:
    """Return whether both are the same cause; figures in a text may change with each run."""
    by_name = one.kind in (CauseKind.TARGET_OUT, CauseKind.TARGET, CauseKind.NODE)
    if one.kind is other.kind is CauseKind.TARGET_OUT:
        return _AROUND_NAMES.sub("", one.what) == _AROUND_NAMES.sub("", other.what)
    return one.kind == other.kind and (one.what == other.what or not by_name)


def clear_cause(likely: Sequence[Cause]) -> Cause | None:
    """Return the first of `likely` if its odds are good, and much better than the second's."""
    first, second = (*likely, None, None)[:2]
    is_clear = first and (second is None or first.odds >= _CLEARLY * second.odds)
    return first if first and is_clear and first.odds >= _NAMED else None


def candidates(onset: Onset, records: Records, slow: Sequence[Happening]) -> tuple[Cause, ...]:
    """Return the best candidate of each kind of cause, the likeliest first.

    `slow` are the targets and nodes that were slow. The partition of the members is a candidate
    only if nothing else is likely.
    """
    found = [*_of_columns(onset, records), *_of_peers(onset, records, slow)]
    if not any(each.odds >= 1 for each in found):
        found += _of_partition(onset)
    best = {each.kind: each for each in sorted(found, key=lambda each: each.odds)}
    likely = [each for each in best.values() if each.odds >= _WORTH_A_LOOK]
    return tuple(sorted(likely, key=lambda each: -each.odds))


def _cause(kind: CauseKind, what: str, since: datetime, odds: float) -> Cause:
    return Cause(kind, what, since, float(f"{odds:.2g}"))


def _of_columns(onset: Onset, records: Records) -> Iterator[Cause]:
    for name in records.columns:
        kind, up = _COLUMNS[name]
        column = _Column(name, kind, up if onset.direction == DOWN else -up, records, onset)
        if not (moved := _changed_in(onset.members, column)):
            continue
        most = int((1 - _MOST) * len(moved))
        unmoved = filter(onset.has_stayed, onset.others)
        contrary = (runs for runs in unmoved if (column.changed(runs) or 0) > 0)
        if (against := len([*islice(contrary, most + 1)])) > most:
            continue
        odds = _PRIOR[kind] / column.chance([runs for runs, _ in moved]) * _REFUTES**against
        since = min(moment(runs.series.history.times[place]) for runs, place in moved)
        yield _cause(kind, column.text(*moved[0]), since, odds)


def _changed_in(members: Sequence[Runs], column: _Column) -> list[tuple[Runs, int]]:
    """Return the members in which a column changed, with the first run since; [] if too few."""
    moved, stayed = [], 0
    for runs in members:
        place = column.changed(runs)
        if place and place > 0:
            moved.append((runs, place))
        elif place is not None:
            stayed += 1
        if stayed > len(members) - _MOST * len(members):
            return []
    shown = len(moved) + stayed
    return moved if len(moved) >= _MOST * shown and 2 * shown >= len(members) else []


@dataclass(frozen=True)
class _Column:
    """A column that may show why an alert began; `sign` is the bad direction, 0 for any change."""

    name: str
    kind: CauseKind
    sign: int
    records: Records
    onset: Onset

    def changed(self, runs: Runs) -> int | None:
        """Return the first run after a change at the onset, −1 without one, None if unknown."""
        values, shown, sessions = self.records.of(runs, self.name)
        begin, end = np.searchsorted(sessions, (self.onset.first, self.onset.last + 2)).tolist()
        if begin < _FEWEST or begin == len(values):
            return None
        near = values[max(0, begin - _BEFORE) : end + _SINCE]
        for place in range(begin, end) if (near != near[0]).any() else ():
            before, since = values[max(0, place - _BEFORE) : place], values[place:][:_SINCE]
            if self._differs(before[None], since[None])[0]:
                return int(shown[place])
        return -1

    def _differs(self, before: Array, since: Array) -> NDArray[np.bool_]:
        """Return for each row of runs whether those `since` differ from those `before`."""
        if self.sign == 0:
            new = since[:, :1]
            is_new = (before == new).mean(1) <= (1 - _MOST) / 2
            return np.asarray(is_new & ((since == new).mean(1) >= _MOST))
        ordered = np.sort(self.sign * before, axis=1)
        out = len(before[0]) // _BEFORE  # of twenty runs, one may be odd
        low, high = ordered[:, out], ordered[:, -1 - out]
        # a slow trend always leaves the earlier range a little
        edge = high + (high - low) / 2
        found = (self.sign * since > edge[:, None]).mean(1) >= _MOST
        if self.kind is CauseKind.FULLNESS:
            now = np.median(since, axis=1)
            found &= np.maximum(now, before[:, -1]) >= _FULL
            found &= self.sign * now - edge >= _FULLER
        return np.asarray(found)

    def chance(self, members: Sequence[Runs]) -> float:
        """Return the probability that such a change falls on the onset by chance.

        It comes from earlier spans as long as the onset, with half a change more than was seen.
        Changes do not count if another drop began with them or if unmoved series share them.
        """
        mine = [self._hits(runs) for runs in members[:_RATED]]
        others = [self._hits(runs) for runs in self.onset.unmoved[: 2 * _RATED]]
        known = np.any(np.isfinite(mine), axis=0)
        hits = np.nan_to_num(mine).sum(0) > np.isfinite(mine).sum(0) / 2
        if others:
            hits &= np.nan_to_num(others).mean(0) <= 1 - _MOST
        width = min(self.onset.width, int(known.sum()))
        if not width:
            return 1.0
        windows = sliding_window_view(hits[known], width).any(axis=1)
        return float((np.sum(windows) + width / 2) / (np.size(windows) + width))

    def _hits(self, runs: Runs) -> Array:
        """Return for each session before the onset 1 if it changed then, else 0, NaN if unknown."""
        first = self.onset.first
        found = np.full(first, np.nan)
        values, _, sessions = self.records.of(runs, self.name)
        since = min(_SINCE, max(1, int((sessions >= first).sum())))
        values, sessions = values[sessions < first], sessions[sessions < first]
        if len(values) < _BEFORE + since:
            return found
        before = sliding_window_view(values[: len(values) - since], _BEFORE)
        places = sessions[_BEFORE : _BEFORE + len(before)]
        found[places] = self._differs(before, sliding_window_view(values[_BEFORE:], since))
        evidence = runs.series.status.evidence
        for each in evidence.changes if evidence else ():
            begun = runs.session_at(each.since)
            if begun is not None and each.direction == self.onset.direction:
                found[places[np.abs(places - begun) <= self.onset.width]] = 0.0
        return found

    def text(self, runs: Runs, place: int) -> str:
        """Return in a few words what changed with the run at `place`."""
        rows = runs.series.rows[: runs.number]
        sample = self.records.samples.rows([int(rows[place])]).row(0, named=True)
        if self.kind is CauseKind.TARGET_OUT:
            return _targets_text(self.onset, self.records, sample)
        cells = self.records.samples[self.name][rows]
        parts = cells[:place].drop_nulls().tail(_BEFORE), cells[place:].drop_nulls().head(_SINCE)
        if self.sign:
            old, new = (figure(float(np.median(each.to_numpy()))) for each in parts)
        else:
            # of equally frequent values the newest; Series.mode() gives them in any order
            counts = (Counter(reversed(each.to_list())).most_common(1) for each in parts)
            old, new = (str(value) for ((value, _),) in counts)
        if self.kind is CauseKind.FULLNESS:
            is_target = self.name == "fullest_target_percent"
            what = sample["fullest_target"] if is_target else sample["file_system"]
            return f"{what or 'a target'} {new} % full, was {old} %"
        if "=" in old + new:  # of a list, only what differs
            both = [set(each.split(",")) for each in (old, new)]
            old, new = (",".join(sorted(a - b)) for a, b in (both, both[::-1]))
            return f"{new or 'nothing'}, was {old or 'nothing'}"
        called = _CALLED.get(self.name, self.name.removesuffix("_in_effect").replace("_", " "))
        return f"{called} {new}, was {old}"


def _targets_text(onset: Onset, records: Records, sample: Mapping[str, object]) -> str:
    """Return how many targets are out of service, with names if runs used all the others."""
    active, out = (int(str(sample[each] or 0)) for each in ("targets_active", "targets_inactive"))
    every = f"{active + out}" if active else "all"
    if onset.direction != DOWN:
        return f"{active} of {every} targets in service"
    where = (TARGET, sample["system"], sample["file_system"])
    for place in (each for each in records.places if (each.kind, each.system, each.where) == where):
        for speeds in place.speeds.values():
            known, since = speeds.times <= in_utc(onset.when), speeds.times > in_utc(onset.since)
            before = speeds.used[speeds.times < in_utc(onset.since)][-_BEFORE:]
            if len(before) < _FEW or not (known & since).any():
                continue
            used = speeds.used[known & since].any(0)
            gone = np.flatnonzero((before.mean(0) >= _MOST) & ~used)
            if 0 < len(gone) == out:
                names = ", ".join(speeds.peers[each] for each in gone)
                number = f" ({out} of {every})" if active else ""
                return f"{place.noun}{'s' * (out > 1)} {names} out of service{number}"
    return f"{out} of {every} targets out of service"


def _of_peers(onset: Onset, records: Records, slow: Sequence[Happening]) -> Iterator[Cause]:
    """Yield the targets and nodes that became slow at the onset and that the members used."""
    lead = onset.members[0]
    low, high = lead.time_of(onset.first - 1), lead.time_of(onset.last + 1) or onset.when
    patterns = {runs.series.key.pattern for runs in onset.members}
    for each in slow:
        name = each.source
        if not isinstance(name, PeerName) or each.low > high or (low and each.since < low):
            continue
        use = [_uses(runs, records, name, onset) for runs in onset.members]
        uses = [is_used for is_used in use if is_used is not None]
        if not any(uses) or sum(uses) < _MOST * len(uses):
            continue
        # other patterns may wait for something slower than the slow target
        alike = [runs for runs in onset.unmoved if runs.series.key.pattern in patterns]
        against = sum(_uses(runs, records, name, onset) is True for runs in alike)
        if against > (1 - _MOST) * sum(uses):
            continue
        number = len({other.names for other in slow}) - 1
        chance = onset.width * (number + 0.5) / len(np.unique(lead.sessions))
        kind = CauseKind.NODE if name.kind == NODE else CauseKind.TARGET
        odds = _PRIOR[kind] / min(1.0, chance) * _REFUTES**against
        yield _cause(kind, f"{each.names[0]} is slow", each.since, odds)


def _uses(runs: Runs, records: Records, name: PeerName, onset: Onset) -> bool | None:
    """Return whether most runs since the onset used a target or a node, None if not known."""
    key, newest = runs.series.key, runs.series.history.newest
    where = key.file_system if name.kind == TARGET else key.partition
    if (key.system, where) != (name.system, name.where):
        return False
    if name.kind == TARGET and key.stripe_count_asked == -1:
        return True
    rows = records.speeds.filter(
        pl.col(TIME).is_between(onset.since, onset.when),
        pl.col("kind") == name.kind,
        *(pl.col(each) == newest[each] for each in CHECK),
    )
    used = rows.filter(pl.col("peer") == name.name)[TIME].n_unique()
    return None if rows.is_empty() else 2 * used > rows[TIME].n_unique()


def _of_partition(onset: Onset) -> Iterator[Cause]:
    """Yield the partition of the members, if series of others on the same file systems stayed."""
    partitions = {runs.series.key.partition for runs in onset.members}
    if len(partitions) > 1 or len(onset.members) < _FEW:
        return
    places = {runs.series.key.file_system for runs in onset.members}
    near = [runs for runs in onset.others if runs.series.key.file_system in places]
    here = [runs for runs in near if runs.series.key.partition in partitions]
    others = [runs for runs in near if runs.series.key.partition not in partitions]
    if len(others) < _FEW or any(map(onset.has_stayed, here)):
        return
    if (number := sum(map(onset.has_stayed, others))) >= _FEW:
        what = f"only partition {partitions.pop()}; {number} series of others did not move"
        odds = _STAYED ** min(number, _MOST_STAYED)
        yield _cause(CauseKind.PARTITION, what, onset.since, odds)
