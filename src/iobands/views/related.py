"""What moved with a series and what did not, and how targets and nodes compare, as lines."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from iobands.snapshot import (
    DOWN,
    NODE,
    REBASELINE,
    RESOLVE,
    TARGET,
    UP,
    VARIABLE_UNITS,
    Action,
    Change,
    Peer,
    PeerState,
    Place,
    Ratio,
    Series,
    Snapshot,
    in_force,
    in_utc,
    level_ratio,
)
from iobands.views.document import MAIL_WIDTH, folded, printable
from iobands.views.format import action_text, day_text, listed, plural, ratio_text

#: Runs before a change, as many as the largest baseline has, and runs since. Later runs may have
#: moved for another reason.
BEFORE: Final = 200
NEXT: Final = 30
_LEAST_BEFORE: Final = 20
_LEAST_SINCE: Final = 3
_LEANS: Final = 0.97  # or its inverse: a level that differs by less has not moved
_NEAR: Final = timedelta(days=3)
#: The fields that one series may share with another, and their names in a sentence.
SHARED_FIELDS: Final = {
    "file_system": "file system",
    "pattern": "pattern",
    "variable": "variable",
    "transport": "transport",
    "environ": "environment",
    "partition": "partition",
}


@dataclass(frozen=True)
class Related:
    """Another series of the same system, and the fields that both share.

    `change` is its own change at that time. Without one, `leaning` is the level of its next `runs`
    runs over the level before, if they clearly differ. `action` is the action that ended a change
    of that time.
    """

    series: Series
    shared: tuple[str, ...]
    change: Change | None = None
    leaning: Ratio | None = None
    runs: int = 0
    action: Action | None = None

    @property
    def direction(self) -> str | None:
        """The direction in which it moved, None if it did not."""
        if self.change:
            return self.change.direction
        if self.action:
            return self.action.direction
        return None if self.leaning is None else DOWN if self.leaning.value < 1 else UP


@dataclass(frozen=True)
class OnsetTime:
    """When a change began: most likely at `since`, between `low` and `high`."""

    since: datetime
    low: datetime
    high: datetime


def onset_time_of(series: Series) -> OnsetTime | None:
    """Return when the open change of a series, or the suspicion behind `watch`, began."""
    evidence = series.status.evidence
    if evidence is None:
        return None
    if change := evidence.open_change:
        return OnsetTime(change.since, change.since_low, change.since_high)
    suspicion = evidence.suspicion
    return OnsetTime(suspicion.since, suspicion.since, suspicion.since) if suspicion else None


def relations_of(site: Snapshot, series: Series, onset: OnsetTime | None) -> list[Related]:
    """Return the other series of its system, first the ones that share the most with `series`."""
    found = []
    for other in site.series:
        if other is not series and other.key.system == series.key.system:
            values = ((name, series.trait(name), other.trait(name)) for name in SHARED_FIELDS)
            shared = tuple(name for name, one, another in values if one and one == another)
            found.append(_moved(site, other, shared, onset) if onset else Related(other, shared))
    return sorted(found, key=lambda each: -len(each.shared))


def leaning(series: Series, since: datetime) -> tuple[Ratio, int] | None:
    """Return the level of the next runs over the one before, if its interval leaves no doubt."""
    times, values = series.judged
    start, logarithms = int(np.searchsorted(times, in_utc(since))), np.log(values)
    before, after = logarithms[max(0, start - BEFORE) : start], logarithms[start : start + NEXT]
    if len(before) < _LEAST_BEFORE or len(after) < _LEAST_SINCE:
        return None
    ratio = level_ratio(before, after)
    return (ratio, len(after)) if ratio.high < _LEANS or ratio.low > 1 / _LEANS else None


def _moved(site: Snapshot, other: Series, shared: tuple[str, ...], onset: OnsetTime) -> Related:
    evidence = other.status.evidence
    low, high = onset.low - _NEAR, onset.high + _NEAR
    for change in reversed(evidence.changes if evidence else ()):
        if change.since_low <= high and change.since_high >= low:
            return Related(other, shared, change)
    for action in reversed(in_force(other.actions, site.now)):
        is_end = action.kind in {RESOLVE, REBASELINE} and action.direction
        if is_end and action.since and low <= action.since <= high:
            return Related(other, shared, action=action)
    # A change at another time, in the series or in one of its groups, does not count here.
    elsewhere = other.status.change is not None or any(
        alert.certainty and alert.since and not low <= alert.since <= high
        for alert in site.alerts_on(other.key)
    )
    leans = None if elsewhere else leaning(other, onset.since)
    return Related(other, shared, None, *leans) if leans else Related(other, shared)


def section(heading: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines under a heading."""
    yield from ("", heading, *(f"  {line}" for line in list(lines) or ["nothing recorded"]))


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows of a table, indented, with each column as wide as its longest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()


def move(site: Snapshot, each: Related) -> str:
    """Return how another series moved."""
    shared = (
        f" (same {listed([SHARED_FIELDS[name] for name in each.shared])})" if each.shared else ""
    )
    if change := each.change:
        until = f" to {day_text(change.ended, site.now)}" if change.ended else ""
        since = f"{change.direction} since {day_text(change.since, site.now)}{until}"
        return f"{since}, {ratio_text(change.ratio)}{shared}"
    if each.action:
        ratio = f", {each.action.ratio:.2f} ×" if each.action.ratio else ""
        return f"{each.action.direction}{ratio}; {action_text(each.action)}{shared}"
    assert each.leaning is not None
    others = [alert.subject for alert in site.alerts_on(each.series.key) if alert.certainty]
    where = f"part of '{others[0]}'" if others else "without an alert"
    runs = plural(each.runs, "run")
    return f"{ratio_text(each.leaning)} in its next {runs}, {where}{shared}"


#: How many peers (targets or nodes) are shown by default: the slow ones and the next.
_SHOWN: Final = 30
WORST_FIRST: Final = tuple(PeerState)
_GAP: Final = "  "
_NOTHING: Final = {
    TARGET: "targets; this needs a file per process and a layout that names its targets "
    "(Lustre, BeeGFS)",
    NODE: "nodes; this needs a file per process on two nodes or more",
}
_WHY: Final = {
    PeerState.UNKNOWN: "no new run separates it from two other {noun}s, or from its share of files",
    PeerState.UNUSED: "missing from the newest sessions, as after a drain; SINCE is its last run",
}


def peers_text(site: Snapshot, kind: str, *, every: bool = False) -> str:
    """Return the tables of all targets or of all nodes, and the next step for slow ones."""
    places = [each for each in site.places if each.kind == kind]
    places.sort(key=lambda each: not each.slow())
    nothing = f"No run of the last 200 days compares {_NOTHING[kind]}."
    lines = [
        [part for line in _place(each, site, every) for part in folded(printable(line), MAIL_WIDTH)]
        for each in places
    ]
    return "\n\n".join(["\n".join(each) for each in lines] or [nothing]) + "\n"


def _place(place: Place, site: Snapshot, every: bool) -> Iterator[str]:
    variables = sorted(place.found, key=list(VARIABLE_UNITS).index)
    yield f"{place.name}: speed over the median {place.noun}, by the times of the ranks"
    peers = sorted(with_worst(place), key=lambda each: _badness(each[2]))
    shown = peers if every else peers[:_SHOWN]
    rows = [(place.noun.upper(), "RUNS", "LEVEL", *map(str.upper, variables), "STATE", "SINCE")]
    for name, found, worst in shown:
        since = worst.since or (worst.last if worst.state is PeerState.UNUSED else None)
        known = {} if worst.state is PeerState.UNKNOWN else found
        ratios = (_ratio(known[each].ratio) if each in known else "-" for each in variables)
        runs = str(max(each.runs for each in found.values()))
        own = f"{worst.own:.2f}" if worst.own else "-"
        state = worst.state.value
        rows.append((name, runs, own, *ratios, state, day_text(since, site.now) if since else ""))
    table = [*aligned(rows)]
    if max(map(len, table)) > MAIL_WIDTH:
        table = [*aligned([[cell.partition(" (")[0] for cell in row] for row in rows])]
    yield from table
    if len(peers) > len(shown):
        yield f"{_GAP}and {len(peers) - len(shown)} more; list them with --all"
    yield f"{_GAP}LEVEL: its own speed over the others, from its first sessions"
    states = {worst.state for *_, worst in peers}
    yield from (
        f"{_GAP}{state.value}: {why.format(noun=place.noun)}"
        for state, why in _WHY.items()
        if state in states
    )
    yield from confirmation(place)


def _ratio(ratio: Ratio) -> str:
    return ratio_text(ratio).replace(" ×", "")


def with_worst(place: Place) -> list[tuple[str, dict[str, Peer], Peer]]:
    """Return each peer, what is known of it by variable, and the worst of that."""
    every = place.peers().items()
    return [(name, known, min(known.values(), key=_badness)) for name, known in every]


def _badness(peer: Peer) -> tuple[int, float]:
    return WORST_FIRST.index(peer.state), peer.ratio.value


def confirmation(place: Place, named: str | None = None) -> Iterator[str]:
    """Yield the commands that confirm a slow target, if users can choose the target."""
    slow = [named] if named else list(place.slow())
    if not slow or place.kind != TARGET or place.file_system_type != "lustre":
        return
    yield f"{_GAP}To confirm, measure it and a healthy one, and compare the rates:"
    for target in [slow[0], *place.healthy()[:1]]:
        where = f"file_system == {json.dumps(place.where)}"  # Python, which ReFrame evaluates
        command = ["iobands", "reframe", "--", "-r"]
        command += [f"--system={place.system}", "-n", "BenchioFPP", "-E", where]
        yield f"{_GAP * 2}{shlex.join([*command, '-S', f'BenchioFPP.target={target}'])}"
