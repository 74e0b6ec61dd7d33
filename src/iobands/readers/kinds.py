"""Kinds of rows: what many runs say alike is kept once, and each row says of which kind it is.

The runs of a series differ in little more than time, value and nodes. Ten years of them are some
columns of numbers and one short table, and a question about what a run was is asked of that table
alone. May know: the fields and tables of samples.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from iobands.readers.fields import FIELDS, TIME
from iobands.readers.table import SCHEMA, arrow, numbers, places, plain, to_pandas

if TYPE_CHECKING:
    import pandas as pd

#: The column with the place of a row's kind.
KIND: Final = "_kind"
#: The fields in which runs of one kind may differ.
_OF_ROWS: Final = frozenset(
    {
        TIME,
        "perf_value",
        "jobid",
        "job_nodelist",
        "fullness_percent",
        "targets_active",
        "targets_inactive",
        "load_per_node",
        "other_jobs",
        "client_written_gib",
        "client_read_gib",
        "band_verdict",
    }
)
#: The fields that a kind has, and the columns of rows.
OF_KINDS: Final = tuple(name for name in FIELDS if name not in _OF_ROWS)
ROWS: Final = pa.schema(
    [*(field for field in SCHEMA if field.name not in OF_KINDS), (KIND, pa.int32())]
)

_MOST: Final = 2**62


@dataclass(frozen=True)
class Rows:
    """Rows in the order of time: the columns that `table` has, and `kinds` for all others."""

    table: pa.Table
    kinds: pa.Table

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.table)

    @cached_property
    def of_kind(self) -> np.ndarray:
        """The place of the kind of each row, of shape (rows,)."""
        return numbers(self.table, KIND)

    def only(self, mask: np.ndarray) -> Rows:
        """Return the rows that `mask`, of shape (rows,), marks."""
        return Rows(self.table.take(arrow(np.flatnonzero(mask))), self.kinds)

    def frame(self) -> pd.DataFrame:
        """Return the rows in pandas, with all columns."""
        import pandas as pd  # noqa: PLC0415 (takes its time)

        found = to_pandas(self.table), to_pandas(self.kinds)
        columns = {
            name: found[0][name].array if name in found[0] else found[1][name].array.take(place)
            for place in [self.of_kind]
            for name in FIELDS
            if name in found[0] or name in found[1]
        }
        return pd.DataFrame(columns, copy=False)


def factored(table: pa.Table, known: pa.Table | None = None) -> tuple[pa.Table, pa.Table]:
    """Return the columns of rows of `table`, and the kinds: those that are `known`, and new ones.

    Each column of `table` is in one piece.
    """
    cells = table.select(OF_KINDS)
    before = len(known) if known else 0
    if known:
        cells = pa.concat_tables([known, cells]).unify_dictionaries().combine_chunks()
    codes, first = combined(coded(cells.column(name)) for name in OF_KINDS)
    kinds = cells.take(arrow(first)).combine_chunks()
    rows = table.select([name for name in ROWS.names if name != KIND])
    return rows.append_column(KIND, arrow(codes[before:].astype(np.int32))), kinds


def combined(columns: Iterable[tuple[np.ndarray, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return a number from 0 for each row, the same for rows that are alike in all `columns`.

    Numbers are given as rows come up first, and with them is returned where that is. A column is
    given as the places of its values among so many, -1 for a missing one.
    """
    codes: np.ndarray | None = None
    kinds = 1
    for found, number in columns:
        if codes is None:
            codes = np.zeros(len(found), np.int64)
        if not number:
            continue
        if kinds * (number + 1) > _MOST:
            codes, kinds = _numbered(codes)
        if number > 1 or found.min(initial=0) < 0:
            codes = codes * (number + 1) + (found + 1)
            kinds *= number + 1
    if codes is None:
        codes = np.empty(0, np.int64)
    codes, kinds = _numbered(codes)
    # of several rows in one place the last one stays, which backwards is the first
    first = np.zeros(kinds, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return codes, first


def coded(column: pa.ChunkedArray) -> tuple[np.ndarray, int]:
    """Return the place of each cell's value among so many, -1 for a missing one."""
    if not column.num_chunks:
        return np.empty(0, np.int64), 0
    cells = column.chunk(0)
    if not pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_encode()
    return places(cells), len(cells.dictionary)


def _numbered(codes: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the numbers of `codes` from 0 as they come up first, and how many there are."""
    found = arrow(codes).dictionary_encode()
    return plain(found.indices), len(found.dictionary)
