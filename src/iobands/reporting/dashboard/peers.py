"""The heat maps of targets and nodes: the speed of each in each of the last sessions."""

from __future__ import annotations

from typing import Final

import numpy as np

from iobands.detection.peers import Peer, PeerState
from iobands.detection.series import moment
from iobands.reporting.dashboard.heat_map import MOST_SESSIONS
from iobands.reporting.dashboard.names import seconds
from iobands.reporting.format import ratio_text
from iobands.site.site import Site
from iobands.status.peers import Place

#: How many rows a map has at the most; the slow ones come first.
MOST_ROWS: Final = 400
_WORST_FIRST: Final = tuple(PeerState)


def peer_maps(site: Site) -> list[dict[str, object]]:
    """Return a map for the targets of each file system and for the nodes of each partition."""
    return [_map(each) for each in site.places]


def _map(place: Place) -> dict[str, object]:
    every = [each.times for each in place.speeds.values()]
    days = [each.astype("datetime64[D]") for each in every]
    columns = np.unique(np.concatenate(days))[-MOST_SESSIONS:] if days else []
    # the slowest of the day and of all variables, in percent of the others' speed
    least: dict[str, dict[int, float]] = {}
    for speeds, of_day in zip(place.speeds.values(), days, strict=True):
        for row, column in enumerate(np.searchsorted(columns, of_day)):
            if len(columns) and of_day[row] >= columns[0]:
                for at in np.flatnonzero(np.isfinite(speeds.values[row])):
                    cells = least.setdefault(speeds.peers[at], {})
                    value = float(np.exp(speeds.values[row, at]))
                    cells[int(column)] = min(cells.get(int(column), value), value)
    peers = sorted(
        place.peers().items(), key=lambda item: _WORST_FIRST.index(_worst(item[1]).state)
    )
    begins = np.sort(np.concatenate(every)) if every else np.empty(0)
    firsts = begins[np.searchsorted(begins.astype("datetime64[D]"), columns)] if days else []
    return {
        "title": place.name,
        "noun": place.noun,
        "sessions": [seconds(moment(time)) for time in firsts],
        "rows": [
            _row(name, found, least.get(name, {}), len(columns))
            for name, found in peers[:MOST_ROWS]
        ],
    }


def _worst(found: dict[str, Peer]) -> Peer:
    return min(found.values(), key=lambda each: _WORST_FIRST.index(each.state))


def _row(name: str, found: dict[str, Peer], cells: dict[int, float], columns: int) -> dict:
    worst = _worst(found)
    return {
        "name": name,
        "state": worst.state.value,
        "since": worst.since and seconds(worst.since),
        "runs": max(each.runs for each in found.values()),
        "speeds": {variable: ratio_text(each.ratio) for variable, each in found.items()},
        "percent": [round(100 * cells[c]) if c in cells else None for c in range(columns)],
    }
