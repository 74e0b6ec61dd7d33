"""The samples of each series as plain arrays: what charts, states and pools are reckoned from.

A table in pandas for each of hundreds of series takes longer to make than all that is reckoned
from it. May know: rows of perflogs, and series; nothing of bands, charts or states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from iobands.readers.fields import TIME
from iobands.readers.kinds import Rows, combined
from iobands.readers.table import arrow, numbers, places
from iobands.series import Grouping, SeriesKey

if TYPE_CHECKING:
    import pandas as pd

#: What a case says that was measured and found to be too slow.
PERFORMANCE: Final = "performance"

_NODES: Final = "job_nodelist"
# What makes samples compare, beside what makes them one series.
_ALIKE: Final = ("tool_version", "fsync", "suite_version")

Times = NDArray[np.datetime64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class History:
    """The samples of a series in the order of time; each array is of shape (samples,).

    `times` are in UTC. `passed` tells which runs did all that was asked of them, `too_slow` which
    failed for their performance, and `alike` which were measured as the newest one was. `nodes`
    has for each run the place of its list of nodes in `lists`, -1 for none. `newest` has what the
    newest sample says, None for what it does not say.
    """

    times: Times
    values: NDArray[np.float64]
    passed: Flags
    too_slow: Flags
    alike: Flags
    nodes: NDArray[np.int_]
    lists: pa.Array
    newest: Mapping[str, object]

    def __len__(self) -> int:
        """Return how many samples there are."""
        return len(self.times)

    @property
    def first(self) -> datetime:
        """When the first sample was taken."""
        return moment_of(self.times[0])

    @property
    def last(self) -> datetime:
        """When the newest sample was taken."""
        return moment_of(self.times[-1])

    @classmethod
    def of(cls, samples: pd.DataFrame) -> History:
        """Return that of a series' samples, one at least, in the order of time."""
        import pandas as pd  # noqa: PLC0415 (takes its time)

        none = pd.Series(pd.NA, samples.index, dtype="object")
        lists = pa.array(samples.get(_NODES, none).astype("object"), pa.string(), from_pandas=True)
        nodes = lists.dictionary_encode()
        said = samples.iloc[-1].to_dict()
        return cls(
            samples[TIME].to_numpy(dtype="datetime64[ns]"),
            samples.get("perf_value", none).to_numpy(dtype=float, na_value=np.nan),
            (samples.get("result", none) == "pass").to_numpy(dtype=bool, na_value=False),
            (samples.get("fail_phase", none) == PERFORMANCE).to_numpy(dtype=bool, na_value=False),
            alike(samples),
            places(nodes),
            nodes.dictionary,
            {name: None if pd.isna(cell) else cell for name, cell in said.items()},
        )


NO_TEXTS: Final = arrow(np.empty(0, np.int64)).cast(pa.string())
NOTHING: Final = History(
    np.empty(0, "datetime64[ns]"),
    np.empty(0),
    np.empty(0, bool),
    np.empty(0, bool),
    np.empty(0, bool),
    np.empty(0, int),
    NO_TEXTS,
    {},
)


def histories(rows: Rows, series: Grouping) -> Iterator[tuple[SeriesKey, History]]:
    """Yield each series that has some of `rows`; `series` is the grouping of their kinds."""
    order, ends = rows_of(rows, series)
    times = times_of(rows)[order]
    values = numbers(rows.table, "perf_value")[order]
    of_kind = rows.of_kind[order]
    passed = _says(rows.kinds, "result", "pass")
    too_slow = _says(rows.kinds, "fail_phase", PERFORMANCE)
    manners = _manners(rows.kinds)
    nodes, lists = _node_lists(rows, order)
    there = np.flatnonzero(np.diff(ends))
    newest = rows.kinds.take(arrow(of_kind[ends[there + 1] - 1])).to_pylist()
    for place, said in zip(there, newest, strict=True):
        mine = slice(ends[place], ends[place + 1])
        kinds = of_kind[mine]
        manner = manners[kinds]
        yield (
            series.keys[place],
            History(
                times[mine],
                values[mine],
                passed[kinds],
                too_slow[kinds],
                manner == manner[-1],
                nodes[mine],
                lists,
                said,
            ),
        )


def rows_of(rows: Rows, series: Grouping) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Return the rows series by series, each in the order of time, and where each series ends.

    The n-th series has those from the n-th end to the next.
    """
    codes = series.codes[rows.of_kind]
    ends = np.cumsum(np.bincount(codes, minlength=len(series.keys)))
    return np.argsort(codes, kind="stable"), np.concatenate(([0], ends))


def alike(samples: pd.DataFrame) -> Flags:
    """Return which of `samples` were measured as the newest one was, of shape (samples,).

    They agree in the version of the tool, in `fsync` and in the first number of the version of the
    suite, as far as the table has these columns. What is missing agrees with what is missing only.
    """
    columns = [samples[name].astype("object") for name in _ALIKE if name in samples]
    cells = [pa.array(each, pa.string(), from_pandas=True).dictionary_encode() for each in columns]
    if not cells:
        return np.ones(len(samples), dtype=bool)
    table = pa.table(cells, names=[name for name in _ALIKE if name in samples])
    manners = _manners(table)
    return manners == manners[-1]


def _manners(table: pa.Table) -> NDArray[np.int_]:
    """Return a number for each row, the same for those that were measured alike."""
    columns = []
    for name in _ALIKE:
        if name in table.column_names:
            found, texts = _places(table, name)
            if name == "suite_version":
                texts = [text.split(".", maxsplit=1)[0] for text in texts]
            known = {text: place for place, text in enumerate(dict.fromkeys(texts))}
            # the last place, which the code -1 of a missing value points at, is for those
            renumbered = np.array([*(known[text] for text in texts), -1])
            columns.append((renumbered[found], len(known)))
    return combined(columns)[0] if columns else np.zeros(len(table), dtype=int)


def _says(table: pa.Table, name: str, text: str) -> Flags:
    """Return which rows say `text` in a column; one that is missing says nothing."""
    if name not in table.column_names:
        return np.zeros(len(table), dtype=bool)
    found, texts = _places(table, name)
    return np.array([*(each == text for each in texts), False])[found]


def _places(table: pa.Table, name: str) -> tuple[NDArray[np.int_], Sequence[str]]:
    """Return for each row the place of its text among all, and these; -1 if it is missing."""
    cells = table.column(name).combine_chunks()
    if isinstance(cells, pa.ChunkedArray):  # of no chunk at all
        return np.empty(0, dtype=int), []
    return places(cells), cells.dictionary.to_pylist()


def _node_lists(rows: Rows, order: NDArray[np.int_]) -> tuple[NDArray[np.int_], pa.Array]:
    if _NODES not in rows.table.column_names:
        return np.full(len(order), -1), NO_TEXTS
    cells = rows.table.column(_NODES).unify_dictionaries().combine_chunks()
    if isinstance(cells, pa.ChunkedArray):
        return np.empty(0, dtype=int), NO_TEXTS
    return places(cells)[order], cells.dictionary


def times_of(rows: Rows) -> Times:
    """Return the times of rows in UTC, of shape (rows,)."""
    return (numbers(rows.table, TIME) * 1000).view("datetime64[ns]")


def moment_of(time: np.datetime64) -> datetime:
    """Return `time`, which is in UTC, to the microsecond."""
    return time.astype("datetime64[us]").item().replace(tzinfo=timezone.utc)
