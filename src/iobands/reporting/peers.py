"""The table of targets or nodes as text, the slow ones first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from iobands.alerts.alert import SlowPeer
from iobands.detection.peers import Peer, PeerState
from iobands.model.fields import VARIABLE_UNITS
from iobands.reporting.format import day_text, printable, ratio_text
from iobands.site.site import Site
from iobands.status.peers import NODE, TARGET, Place

#: How many peers are shown without being asked: the slow ones and the next.
MOST: Final = 30
_WORST_FIRST: Final = tuple(PeerState)
_GAP: Final = "  "


def peers_text(site: Site, kind: str, *, every: bool = False) -> str:
    """Return the tables of all targets or of all nodes, and what to do about slow ones."""
    places = [each for each in site.places if each.kind == kind]
    places.sort(key=lambda each: not each.slow())
    lines = [line for place in places for line in _place(place, site, every)]
    return "\n".join(printable(line) for line in lines or [_nothing(kind)]) + "\n"


def _nothing(kind: str) -> str:
    what = {
        TARGET: "targets: that needs a file per process and a layout that names its targets "
        "(Lustre, BeeGFS)",
        NODE: "nodes: that needs a file per process on two nodes or more",
    }
    return f"No run of the last 200 days compares {what[kind]}."


def _place(place: Place, site: Site, every: bool) -> Iterator[str]:
    variables = sorted(place.found, key=list(VARIABLE_UNITS).index)
    peers = place.peers()
    yield f"{place.name}: speed over that of the median one, by the times of ranks"
    names = sorted(peers, key=lambda name: _rank(peers[name]))
    shown = names if every else names[:MOST]
    rows = [(place.noun.upper(), "RUNS", *map(str.upper, variables), "STATE", "SINCE")]
    rows += [_row(name, peers[name], variables, site) for name in shown]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        yield f"{_GAP}{_GAP.join(cells)}".rstrip()
    if len(names) > len(shown):
        yield f"{_GAP}and {len(names) - len(shown)} more: --all"
    states = {each.state for found in peers.values() for each in found.values()}
    if PeerState.UNKNOWN in states:
        yield f"{_GAP}Unknown: of fewer than three {place.noun}s a run, none is the slow one."
    if PeerState.UNUSED in states:
        yield (
            f"{_GAP}Not used: drained, no longer in the pool, or renumbered; after renumbering, "
            "begin an epoch."
        )
    yield from confirmation(place)
    yield ""


def _rank(found: dict[str, Peer]) -> tuple[int, float]:
    state = min(_WORST_FIRST.index(each.state) for each in found.values())
    return state, min(each.ratio.value for each in found.values())


def _row(name: str, found: dict[str, Peer], variables: Sequence[str], site: Site) -> tuple:
    worst = min(found.values(), key=lambda each: _WORST_FIRST.index(each.state))
    since = worst.since or (worst.last if worst.state is PeerState.UNUSED else None)
    return (
        name,
        str(max(each.runs for each in found.values())),
        *(ratio_text(found[each].ratio) if each in found else "" for each in variables),
        worst.state.value,
        day_text(since, site.now) if since else "",
    )


def of_peer(site: Site, peer: SlowPeer) -> Iterator[str]:
    """Yield how fast a slow peer is, and what to do about it."""
    name = peer.name
    ratios = [f"{variable} {ratio_text(each)}" for variable, each in sorted(peer.ratios.items())]
    yield f"Its speed over that of the others: {', '.join(ratios)}"
    for place in site.places:
        if (place.kind, place.system, place.where) == (name.kind, name.system, name.where):
            yield f"All {place.name}: iobands targets{' --nodes' if name.kind == NODE else ''}"
            yield from confirmation(place, name.name)


def confirmation(place: Place, named: str | None = None) -> Iterator[str]:
    """Yield the commands that confirm a slow target, where users can choose the target."""
    slow = [named] if named else list(place.slow())
    if not slow or place.kind != TARGET or place.file_system_type != "lustre":
        return
    peers = [each for found in place.found.values() for each in found]
    healthy = [each for each in peers if each.state is PeerState.HEALTHY and each.name not in slow]
    usual = sorted(healthy, key=lambda each: abs(math.log(each.ratio.value)))
    yield f"{_GAP}Confirm it beside a healthy one, then compare the rates:"
    for target in [slow[0], *(each.name for each in usual[:1])]:
        yield (
            f"{_GAP * 2}reframe -C config/site.py -c checks -R -r --system={place.system} "
            f"-n BenchioFPP -E \"file_system == '{place.where}'\" "
            f"-S BenchioFPP.target={target}"
        )
