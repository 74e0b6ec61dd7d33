"""A table that decodes a column only when it is needed: most columns of old samples never are."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

# Rows in each row group of a Parquet file; to read one row, its whole group is decoded.
_ROWS_TOGETHER: Final = 2**16

_Places = Sequence[int] | NDArray[np.int_] | NDArray[np.uint32]


def is_constant(column: pl.Series) -> bool:
    """Return whether all cells are equal; null equals null and nothing else."""
    missing = column.null_count()
    return missing == len(column) or (not missing and (column == column[0]).all())


@dataclass(frozen=True)
class Source:
    """A table that has not been read yet."""

    frame: pl.LazyFrame

    @classmethod
    def of(cls, parquet: bytes) -> Source:
        """Return the table in a Parquet file, such as `Columns.parquet` makes."""
        return cls(pl.scan_parquet(io.BytesIO(parquet)))

    @cached_property
    def height(self) -> int:
        """The number of rows."""
        height: int = self.frame.select(pl.len()).collect().item()
        return height


class Columns:
    """An immutable table that reads its columns one by one and keeps those that `select` read.

    Its columns are those of `schema`, and its rows the concatenated rows of `sources`: all, or the
    ones with the indices `places`, in that order. `instead` overrides columns of the sources.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        schema: Mapping[str, pl.DataType],
        places: NDArray[np.int_] | None = None,
        instead: Mapping[str, pl.Series] | None = None,
    ) -> None:
        """Keep the sources; no column is read yet."""
        self.schema = dict(schema)
        self.sources, self._places = sources, places
        self._height = sum(each.height for each in sources)
        self._known = {name: each for name, each in (instead or {}).items() if name in schema}

    @classmethod
    def of(cls, frame: pl.DataFrame) -> Columns:
        """Return a frame in this form."""
        return cls([Source(frame.lazy())], frame.schema)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._height if self._places is None else len(self._places)

    def __getitem__(self, name: str) -> pl.Series:
        """Return a column."""
        return self.select(name)[name]

    @property
    def frame(self) -> pl.DataFrame:
        """The whole table; columns that it has to read are not kept in memory."""
        return self._read([*self.schema])

    @property
    def parquet(self) -> bytes:
        """The whole table as a Parquet file."""
        stream = io.BytesIO()
        self.frame.write_parquet(stream, row_group_size=_ROWS_TOGETHER)
        return stream.getvalue()

    def select(self, *names: str) -> pl.DataFrame:
        """Return the named columns, and keep them in memory."""
        self._known |= {each.name: each.rechunk() for each in self._read(names)}
        return pl.DataFrame([self._known[name] for name in names])

    def _read(self, names: Sequence[str]) -> pl.DataFrame:
        known = self._known
        if new := [name for name in names if name not in known]:
            found = pl.concat([each.frame for each in self.sources]).select(new).collect()
            # one by one: a copy of all columns at once would double the memory
            known = known | {each.name: self._shown(each) for each in found.iter_columns()}
        return pl.DataFrame([known[name] for name in names])

    def _shown(self, column: pl.Series) -> pl.Series:
        return column if self._places is None else column.rechunk()[self._places]

    def rows(self, places: _Places) -> pl.DataFrame:
        """Return the rows at `places`, in that order, with all columns."""
        wanted = np.asarray(places, dtype=np.int64)
        at = wanted if self._places is None else self._places[wanted]
        starts = np.cumsum([0, *(each.height for each in self.sources)])
        source_of = np.searchsorted(starts, at, "right") - 1
        within = at - starts[source_of]
        groups = source_of + len(starts) * (within // _ROWS_TOGETHER)
        groups, group_of = np.unique(groups, return_inverse=True)
        if 2 * len(groups) * _ROWS_TOGETHER >= self._height or self._known.keys() >= {*self.schema}:
            return self.select(*self.schema)[wanted]
        new = {name: each for name, each in self.schema.items() if name not in self._known}
        found, begins = [pl.DataFrame(schema=new)], [0]
        for group, source in zip(*divmod(groups, len(starts)), strict=True):
            few = self.sources[source].frame.slice(int(group) * _ROWS_TOGETHER, _ROWS_TOGETHER)
            found.append(few.select(*new).collect())
            begins.append(begins[-1] + len(found[-1]))
        rows = pl.concat(found)[np.array(begins)[group_of] + within % _ROWS_TOGETHER]
        known = (each[wanted].alias(name) for name, each in self._known.items())
        return rows.with_columns(known).select(*self.schema)

    def at(self, places: NDArray[np.int_]) -> Columns:
        """Return the rows at `places`, in that order; the same object if nothing changes."""
        if len(places) == len(self) and (places == np.arange(len(self))).all():
            return self
        within = places if self._places is None else self._places[places]
        known = {name: each[places] for name, each in self._known.items()}
        return Columns(self.sources, self.schema, within, known)

    def filter(self, chosen: pl.Series) -> Columns:
        """Return the rows where `chosen` is true, not null; the same object if all are."""
        return self.at(chosen.arg_true().to_numpy().astype(np.int64))

    def with_columns(self, *columns: pl.Series) -> Columns:
        """Return the table with `columns` added, or replaced where the name exists."""
        schema = self.schema | {each.name: each.dtype for each in columns}
        known = self._known | {each.name: each for each in columns}
        return Columns(self.sources, schema, self._places, known)

    def drop(self, *names: str) -> Columns:
        """Return the table without the named columns."""
        schema = {name: each for name, each in self.schema.items() if name not in names}
        return Columns(self.sources, schema, self._places, self._known)
