"""Rows whose columns are decoded when they are needed: of years of samples, most never are."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

# A file that is read so has its rows in groups of this size: one row costs its group.
_ROWS_TOGETHER: Final = 2**16

_Places = Sequence[int] | NDArray[np.int_] | NDArray[np.uint32]


def is_constant(column: pl.Series) -> bool:
    """Return whether all cells are equal; a missing one is equal to missing ones."""
    missing = column.null_count()
    return missing == len(column) or (not missing and (column == column[0]).all())


@dataclass(frozen=True)
class Source:
    """Rows that are not read yet."""

    frame: pl.LazyFrame

    @classmethod
    def of(cls, parquet: bytes) -> Source:
        """Return the rows of a Parquet file, see `Columns.parquet`."""
        return cls(pl.scan_parquet(io.BytesIO(parquet)))

    @cached_property
    def height(self) -> int:
        """How many rows there are."""
        height: int = self.frame.select(pl.len()).collect().item()
        return height


class Columns:
    """A frame that is read column by column; what was read stays in memory. It never changes.

    It has the columns of `schema`, and the rows of `sources`, one behind the other; at `places` in
    their order, or all. A column in `instead` takes the place of theirs.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        schema: Mapping[str, pl.DataType],
        places: NDArray[np.int_] | None = None,
        instead: Mapping[str, pl.Series] | None = None,
    ) -> None:
        """Take the sources; nothing of them is read."""
        self.schema = dict(schema)
        self.sources, self._places = sources, places
        self._height = sum(each.height for each in sources)
        self._known = {name: each for name, each in (instead or {}).items() if name in schema}

    @classmethod
    def of(cls, frame: pl.DataFrame) -> Columns:
        """Return the columns of a frame."""
        return cls([Source(frame.lazy())], frame.schema)

    def __len__(self) -> int:
        """Return how many rows there are."""
        return self._height if self._places is None else len(self._places)

    def __getitem__(self, name: str) -> pl.Series:
        """Return a column."""
        return self.select(name)[name]

    @property
    def frame(self) -> pl.DataFrame:
        """All rows and columns; those that were not read do not stay in memory."""
        return self._read([*self.schema])

    @property
    def parquet(self) -> bytes:
        """All rows and columns as a Parquet file."""
        stream = io.BytesIO()
        self.frame.write_parquet(stream, row_group_size=_ROWS_TOGETHER)
        return stream.getvalue()

    def select(self, *names: str) -> pl.DataFrame:
        """Return all rows of some columns."""
        self._known |= {each.name: each.rechunk() for each in self._read(names)}
        return pl.DataFrame([self._known[name] for name in names])

    def _read(self, names: Sequence[str]) -> pl.DataFrame:
        known = self._known
        if new := [name for name in names if name not in known]:
            found = pl.concat([each.frame for each in self.sources]).select(new).collect()
            # one by one, as a copy of all of them takes their memory once more
            known = known | {each.name: self._shown(each) for each in found.iter_columns()}
        return pl.DataFrame([known[name] for name in names])

    def _shown(self, column: pl.Series) -> pl.Series:
        return column if self._places is None else column.rechunk()[self._places]

    def rows(self, places: _Places) -> pl.DataFrame:
        """Return some rows of all columns, in the order of `places`."""
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
        """Return the rows at `places`, in their order; itself if they are all, as they are."""
        if len(places) == len(self) and (places == np.arange(len(self))).all():
            return self
        within = places if self._places is None else self._places[places]
        known = {name: each[places] for name, each in self._known.items()}
        return Columns(self.sources, self.schema, within, known)

    def filter(self, chosen: pl.Series) -> Columns:
        """Return the chosen rows, itself if they are all; null is no."""
        return self.at(chosen.arg_true().to_numpy().astype(np.int64))

    def with_columns(self, *columns: pl.Series) -> Columns:
        """Return it with these columns; one of the same name is replaced."""
        schema = self.schema | {each.name: each.dtype for each in columns}
        known = self._known | {each.name: each for each in columns}
        return Columns(self.sources, schema, self._places, known)

    def drop(self, *names: str) -> Columns:
        """Return it without some columns."""
        schema = {name: each for name, each in self.schema.items() if name not in names}
        return Columns(self.sources, schema, self._places, self._known)
