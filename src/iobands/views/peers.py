"""Tables that compare targets or nodes with each other, and commands to confirm a slow one."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from typing import Final

from iobands.snapshot import NODE, TARGET, VARIABLE_UNITS, Peer, PeerState, Place, Snapshot
from iobands.views.writing import GAP, at_system, blocks, day_text, fitted, output_width, ratio_text

WORST_FIRST: Final = tuple(PeerState)
# The number of peers (targets or nodes) that are shown by default, the worst first.
_SHOWN: Final = 30
_NOTHING: Final = {
    TARGET: "targets; this needs a file per process and a layout that names its targets "
    "(Lustre, BeeGFS)",
    NODE: "nodes; this needs a file per process on two nodes or more",
}
_WHY: Final = {
    PeerState.UNKNOWN: "its newest runs always used it together with the same {noun}s, or its "
    "share of files explains its speed",
    PeerState.UNUSED: "missing from the newest sessions, as after a drain; {since} is its last run",
}


def peers_text(site: Snapshot, kind: str, *, every: bool = False) -> str:
    """Return the tables of all targets or all nodes, with how to confirm slow ones."""
    places = [each for each in site.places if each.kind == kind]
    places.sort(key=lambda each: not each.slow())
    width = output_width()
    tables = [fitted(_place(each, site, every, width), width) for each in places]
    none = f"No run of the last 200 days compares {_NOTHING[kind]}."
    return "\n".join(tables) or fitted([none], width)


def _place(place: Place, site: Snapshot, every: bool, width: int) -> Iterator[str]:
    variables = sorted(place.found, key=list(VARIABLE_UNITS).index)
    peers = sorted(with_worst(place), key=lambda each: _badness(each[2]))
    called = at_system(place.name[:1].upper() + place.name[1:], place.system, site)
    if not peers:
        yield f"{called}: no run since the epoch began compares them"
        return
    yield f"{called}: speed over the median {place.noun}, by the times of the ranks"
    shown = peers if every else peers[:_SHOWN]
    rows = [[place.noun.upper(), "RUNS", "LEVEL", *map(str.upper, variables), "STATE", "SINCE"]]
    for name, found, worst in shown:
        runs = max(each.runs for each in found.values())
        own = f"{worst.own:.2f}" if worst.own else "-"
        known = {} if worst.state is PeerState.UNKNOWN else found
        ratios = {each: ratio_text(peer.ratio).replace(" ×", "") for each, peer in known.items()}
        of_each = (ratios.get(each, "-") for each in variables)
        since = since_of(worst)
        day = day_text(since, site.now) if since else ""
        rows.append([name, str(runs), own, *of_each, worst.state.value, day])
    table = [*chain(*blocks(rows, 1000))]  # wide enough that no cell is wrapped
    if max(map(len, table)) > width:  # without intervals
        without = [[cell.partition(" (")[0] for cell in row] for row in rows]
        table = [*chain(*blocks(without, width))]
    yield from table
    if len(peers) > len(shown):
        yield f"{GAP}and {len(peers) - len(shown)} more; list them with --all"
    yield f"{GAP}LEVEL: usual speed relative to the other {place.noun}s, from the first sessions"
    yield from (f"{GAP}{each}" for each in meanings(place, "SINCE"))
    yield from confirmation(place)


def meanings(place: Place, since: str) -> list[str]:
    """Return a line for each state there whose name does not explain itself.

    `since` is the heading of the column with the days of `since_of`.
    """
    states = {worst.state for *_, worst in with_worst(place)}
    found = ((each, why.format(noun=place.noun, since=since)) for each, why in _WHY.items())
    return [f"{state.value}: {why}" for state, why in found if state in states]


def since_of(peer: Peer) -> datetime | None:
    """Return since when a target or node is slow, or the last run of one that is not used."""
    return peer.since or (peer.last if peer.state is PeerState.UNUSED else None)


def with_worst(place: Place) -> list[tuple[str, dict[str, Peer], Peer]]:
    """Return each peer with its findings by variable and the worst finding."""
    every = place.peers().items()
    return [(name, known, min(known.values(), key=_badness)) for name, known in every]


def _badness(peer: Peer) -> tuple[int, float]:
    return WORST_FIRST.index(peer.state), peer.ratio.value


def confirmation(place: Place, named: str | None = None) -> Iterator[str]:
    """Yield the commands that confirm a slow target on Lustre, where runs can choose a target."""
    slow = [named] if named else list(place.slow())
    if not slow or place.kind != TARGET or place.file_system_type != "lustre":
        return
    yield f"{GAP}To confirm, measure it and a healthy one, and compare the rates:"
    for target in [slow[0], *place.healthy()[:1]]:
        where = f"file_system == {json.dumps(place.where)}"  # Python, which ReFrame evaluates
        command = ["iobands", "reframe", "--", "-r"]
        command += [f"--system={place.system}", "-n", "BenchioFPP", "-E", where]
        yield f"{GAP * 2}{shlex.join([*command, '-S', f'BenchioFPP.target={target}'])}"
