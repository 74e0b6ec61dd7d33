"""The heat maps of targets and nodes: the speed of each in each of the last sessions."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import numpy as np

from iobands.detection.series import moment
from iobands.reporting.dashboard.heat_map import MOST_SESSIONS
from iobands.reporting.dashboard.names import seconds
from iobands.reporting.format import ratio_text
from iobands.reporting.peers import WORST_FIRST, with_worst
from iobands.snapshot.peers import PeerState, Place
from iobands.snapshot.site import Snapshot

#: How many rows a map has at the most; the slow ones come first.
MOST_ROWS: Final = 400


def peer_maps(site: Snapshot) -> list[dict[str, object]]:
    """Return a map for the targets of each file system and for the nodes of each partition."""
    return [_map(each) for each in site.places]


def _map(place: Place) -> dict[str, object]:
    none = np.empty(0, "datetime64[ns]")
    every = np.sort(np.concatenate([none, *(each.times for each in place.speeds.values())]))
    days, firsts = np.unique(every.astype("datetime64[D]"), return_index=True)
    days, firsts = days[-MOST_SESSIONS:], firsts[-MOST_SESSIONS:]
    # the slowest of the day and of all variables, in percent of the others' speed
    least: defaultdict[str, list[int | None]] = defaultdict(lambda: [None] * len(days))
    for speeds in place.speeds.values():
        recent = speeds.times >= days[0]
        columns = np.searchsorted(days, speeds.times[recent].astype("datetime64[D]"))
        for column, row in zip(columns, speeds.values[recent], strict=True):
            for at in np.flatnonzero(np.isfinite(row)):
                cells, percent = least[speeds.peers[at]], round(100 * float(np.exp(row[at])))
                cells[column] = min(percent, percent if cells[column] is None else cells[column])
    rows = sorted(with_worst(place), key=lambda each: WORST_FIRST.index(each[2].state))
    return {
        "title": place.name,
        "noun": place.noun,
        "sessions": [seconds(moment(time)) for time in every[firsts]],
        "rows": [
            {
                "name": name,
                "state": worst.state.value,
                "since": worst.since and seconds(worst.since),
                "runs": max(each.runs for each in found.values()),
                "speeds": {
                    variable: ratio_text(each.ratio)
                    for variable, each in found.items()
                    if worst.state is not PeerState.UNKNOWN
                },
                "percent": least[name],
            }
            for name, found, worst in rows[:MOST_ROWS]
        ],
    }
