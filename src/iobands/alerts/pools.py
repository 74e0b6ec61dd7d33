"""Pools: which series, or which of their runs, share something that can fail for all of them.

A pool is of a file system, of a transport, or of nodes: those of a partition, or the nodes that
the same runs touched. May know: series and the columns of their samples; nothing of charts.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from iobands.alerts.nodes import folded, node_sets
from iobands.alerts.sessions import Sessions
from iobands.history import NO_TEXTS, History
from iobands.readers.table import arrow, plain
from iobands.series import SeriesKey

FILE_SYSTEM: Final = "file system"
TRANSPORT: Final = "transport"
PARTITION: Final = "partition"
NODES: Final = "nodes"
#: The kinds in the order in which they are named where the same series make up several.
KINDS: Final = (FILE_SYSTEM, PARTITION, TRANSPORT, NODES)

#: From how many runs of the newest year on some nodes a series counts as one that uses them.
LEAST_RUNS: Final = 5
#: How many sets of nodes are followed at most, those that the most runs touched.
MOST_NODE_SETS: Final = 200
_YEAR: Final = np.timedelta64(365, "D")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_SLUG_LENGTH: Final = 120  # file systems allow 255


@dataclass(frozen=True)
class Pool:
    """Series that share something of a `kind`: all their runs, or those of `rows` alone.

    `keys` are in the order of the site's series; of each variable there are two at least. `rows`
    are places among the samples of each series, and `nodes` what these runs touched.
    """

    kind: str
    name: str
    keys: tuple[SeriesKey, ...]
    rows: Mapping[SeriesKey, NDArray[np.int_]] | None = None
    nodes: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        """A file name, which stays the same whatever else is there."""
        digest = hashlib.sha256(self.name.encode("utf-8", "replace")).hexdigest()
        return f"{_UNSAFE.sub('_', self.name)[:_SLUG_LENGTH]}-{digest[:8]}"

    def by_variable(self) -> Mapping[str, list[SeriesKey]]:
        """Return the series of each variable: writes and reads are never added."""
        found: defaultdict[str, list[SeriesKey]] = defaultdict(list)
        for key in self.keys:
            found[key.variable].append(key)
        return found

    def of(self, key: SeriesKey, rows: NDArray[np.int_]) -> NDArray[np.bool_]:
        """Return which of `rows`, rising places among the samples of `key`, belong to the pool."""
        if self.rows is None:
            return np.ones(len(rows), dtype=bool)
        mine = self.rows[key]
        places = np.minimum(np.searchsorted(rows, mine), len(rows) - 1)
        found = np.zeros(len(rows), dtype=bool)
        if len(rows):
            found[places[rows[places] == mine]] = True
        return found


def pools_of(samples: Mapping[SeriesKey, History]) -> tuple[Pool, ...]:
    """Return the pools of a site; `samples` are their histories.

    Where the same runs make up several pools, as at a site with one file system, only the first in
    the order of `KINDS` is returned: the others would say the same again.
    """
    systems = {key.system for key in samples}
    found: dict[tuple[SeriesKey, ...], Pool] = {}
    for kind in KINDS[:-1]:
        groups: defaultdict[tuple[str, str], list[SeriesKey]] = defaultdict(list)
        for key in samples:
            value = _value(key, kind)
            if value is not None:
                groups[key.system, value].append(key)
        for (system, value), keys in groups.items():
            named = f"all {_heading(system, systems)}{'' if kind == FILE_SYSTEM else f'{kind} '}"
            several = _several(keys)
            if several:
                found.setdefault(several, Pool(kind, named + value, several))
    whole = set(found)
    every = list(found.values())
    for system in sorted(systems):
        of_system = {key: rows for key, rows in samples.items() if key.system == system}
        for pool in _of_nodes(of_system, _heading(system, systems)):
            if pool.rows is not None or pool.keys not in whole:
                every.append(pool)
    return tuple(every)


def charts_a_year(pool: Pool, sessions: Sessions[SeriesKey]) -> float:
    """Return how many sessions a year the charts of `pool`, one a variable, have to judge."""
    total = 0.0
    for keys in pool.by_variable().values():
        numbers = [sessions.numbers[key] for key in keys]
        if pool.rows is None:
            total += sessions.a_year(numbers)
        else:
            touched = [each[pool.rows[key]] for key, each in zip(keys, numbers, strict=True)]
            total += sessions.of_a_year(touched)
    return total


def _value(key: SeriesKey, kind: str) -> str | None:
    if kind == FILE_SYSTEM:
        return key.file_system
    return key.transport if kind == TRANSPORT else key.partition


def _heading(system: str, systems: set[str]) -> str:
    return f"{system} " if len(systems) > 1 else ""


def _several(keys: Sequence[SeriesKey]) -> tuple[SeriesKey, ...]:
    """Return those of `keys` whose variable another one has too."""
    often = Counter(key.variable for key in keys)
    return tuple(key for key in keys if often[key.variable] > 1)


def _of_nodes(samples: Mapping[SeriesKey, History], heading: str) -> Iterator[Pool]:
    """Yield a pool for each set of nodes that runs of the newest year touched.

    Its `rows` are None where it is all runs of all its series. Of very many sets only those with
    the most runs are there: the others hardly have enough to tell anything.
    """
    keys, recent, texts = _recent_lists(samples)
    codes, lists = plain(texts.indices), texts.dictionary.to_pylist()
    order = np.argsort(codes, kind="stable")
    ends = np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=len(lists)))))
    series = np.repeat(np.arange(len(keys)), [len(rows) for rows in recent])
    rows = np.concatenate([*recent, np.empty(0, dtype=np.int64)])
    often_touched = np.diff(ends)
    sets = sorted(
        node_sets(lists).items(),
        key=lambda found: -sum(int(often_touched[place]) for place in found[1]),
    )
    for nodes, places in sets[:MOST_NODE_SETS]:
        runs = np.concatenate([order[ends[place] : ends[place + 1]] for place in places])
        of_runs = series[runs]
        often = np.bincount(of_runs, minlength=len(keys))
        used = np.flatnonzero(often >= LEAST_RUNS)
        several = _several([keys[j] for j in used])
        if not several:
            continue
        what = "node" if len(nodes) == 1 else "nodes"
        name = f"all {heading}{what} {folded(nodes)}"
        kept = set(several)
        chosen = [j for j in used if keys[j] in kept]
        if all(often[j] == len(recent[j]) for j in chosen):
            yield Pool(NODES, name, several)
        else:
            touched = {keys[j]: np.sort(rows[runs[of_runs == j]]) for j in chosen}
            yield Pool(NODES, name, several, touched, nodes)


def _recent_lists(
    samples: Mapping[SeriesKey, History],
) -> tuple[list[SeriesKey], list[NDArray[np.int_]], pa.DictionaryArray]:
    """Return series, the places of their newest year's runs with a node list, and these lists."""
    newest = max((each.times[-1] for each in samples.values() if len(each)), default=None)
    keys, recent, texts = [], [], [NO_TEXTS]
    for key, each in samples.items():
        if newest is not None:
            first = int(np.searchsorted(each.times, newest - _YEAR))
            known = first + np.flatnonzero(each.nodes[first:] >= 0)
            keys.append(key)
            recent.append(known)
            texts.append(each.lists.take(arrow(each.nodes[known])))
    return keys, recent, pa.concat_arrays(texts).dictionary_encode()
