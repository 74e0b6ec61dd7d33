"""The table of targets or nodes as text, the slow ones first."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Final

from iobands.model import NODE, TARGET, VARIABLE_UNITS
from iobands.snapshot import Peer, PeerState, Place, Ratio, Snapshot
from iobands.views.format import day_text, printable, ratio_text
from iobands.views.layout import MAIL_WIDTH, folded
from iobands.views.related import aligned

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
    PeerState.UNUSED: "missing from the newest sessions, as after a drain",
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
