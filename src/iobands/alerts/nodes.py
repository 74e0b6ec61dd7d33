"""Which nodes ran what: lists of nodes as schedulers write them, and nodes that go together.

May know: nothing but text and numbers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

_PIECES: Final = re.compile(r"[^,\[\]]*(?:\[[^\]]*\][^,\[\]]*)*")
_RANGES: Final = re.compile(r"\[([^\]]*)\]")
_NUMBERED: Final = re.compile(r"(.*?)(\d+)$", re.DOTALL)
_MOST: Final = 100_000  # nodes of one run: more is no list of nodes
_NAMED: Final = 60  # characters


def nodes_of(text: str) -> tuple[str, ...]:
    """Return the nodes of a list such as `n1,n2` or `nid[001-003,007],vm`, each of them once.

    What cannot be read as a range is taken as it stands: it names the same nodes each time.
    """
    if "[" not in text:
        found: Iterator[str] = iter(text.split(","))
    else:
        found = (node for piece in _PIECES.findall(text) for node in _expanded(piece))
    return tuple(dict.fromkeys(node.strip() for node in found if node.strip()))


def folded(nodes: Sequence[str]) -> str:
    """Return `nodes` as a short list such as `nid[001-003,007],vm`."""
    numbers: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    others = []
    for node in nodes:
        match = _NUMBERED.match(node)
        if match:
            numbers[match[1], len(match[2])].append(int(match[2]))
        else:
            others.append(node)
    parts = []
    for (prefix, width), found in sorted(numbers.items()):
        spans = [f"{a:0{width}}" + (f"-{b:0{width}}" if b > a else "") for a, b in _spans(found)]
        several = len(spans) > 1 or "-" in spans[0]
        parts.append(f"{prefix}[{','.join(spans)}]" if several else f"{prefix}{spans[0]}")
    text = ",".join([*parts, *sorted(others)])
    return text if len(text) <= _NAMED else f"{min(nodes)} and {len(nodes) - 1} more"


def node_sets(lists: Sequence[str]) -> Mapping[tuple[str, ...], NDArray[np.int_]]:
    """Return which of `lists` each set of nodes is in, by their places.

    Nodes that are always in the same lists go together: fixed test nodes are one set, while each
    node that a scheduler picks afresh is one of its own.
    """
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, text in enumerate(lists):
        for node in nodes_of(text):
            places[node].append(place)
    together: defaultdict[bytes, list[str]] = defaultdict(list)
    arrays = {}
    for node, found in places.items():
        array = np.array(found)
        together[array.tobytes()].append(node)
        arrays[array.tobytes()] = array
    return {tuple(sorted(nodes)): arrays[key] for key, nodes in together.items()}


def _expanded(piece: str) -> list[str]:
    match = _RANGES.search(piece)
    if match is None:
        return [piece]
    found: list[str] = []
    for span in match[1].split(","):
        low, dash, high = span.strip().partition("-")
        if not dash:
            found.append(low)
        elif low.isdecimal() and high.isdecimal() and 0 <= int(high) - int(low) < _MOST:
            found += [f"{number:0{len(low)}}" for number in range(int(low), int(high) + 1)]
        else:
            return [piece]
    before, rest = piece[: match.start()], _expanded(piece[match.end() :])
    return [f"{before}{number}{after}" for number in found for after in rest][:_MOST]


def _spans(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return the runs of consecutive `numbers`, each as its first and last."""
    spans: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1] = spans[-1][0], number
        else:
            spans.append((number, number))
    return spans
