"""Tables of samples: one Arrow schema for all readers, and its form in pandas.

Texts are dictionary-encoded, because a column of a perflog has few distinct ones: ten years of a
site's runs take some hundred megabytes instead of several gigabytes. May know: the fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from iobands.readers.fields import FIELDS, INTEGERS, TEXTS, TIME

if TYPE_CHECKING:
    import pandas as pd

#: The number of the file and of the line in it that a row comes from.
FILE: Final = "_file"
LINE: Final = "_line"

_WORKERS: Final = 2

TEXT: Final = pa.dictionary(pa.int32(), pa.string())
TIMESTAMP: Final = pa.timestamp("us", tz="UTC")


def type_of(name: str) -> pa.DataType:
    """Return the type of a field in a table."""
    if name == TIME:
        return TIMESTAMP
    if name in TEXTS:
        return TEXT
    return pa.int64() if name in INTEGERS else pa.float64()


SCHEMA: Final = pa.schema(
    [
        *((name, type_of(name)) for name in FIELDS),
        (FILE, pa.int32()),
        (LINE, pa.int64()),
    ]
)


def from_rows(rows: Sequence[Mapping[str, object]], numbers: Sequence[int]) -> pa.Table:
    """Return typed rows and the numbers of their lines as a table; the file is left at 0."""
    columns = [pa.array([row[name] for row in rows], type_of(name)) for name in FIELDS]
    columns += [pa.array(np.zeros(len(rows), np.int32)), pa.array(numbers, pa.int64())]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    """Return one table of all rows, each column in a single piece."""
    return joined(list(tables), None)


def joined(tables: list[pa.Table], order: str | None) -> pa.Table:
    """Return one table of all rows in the stable order of a column; `tables` is emptied.

    Column by column, so that no more than two of them are in memory twice.
    """
    if not tables:
        return SCHEMA.empty_table()
    schema = tables[0].schema
    chunks = {
        name: [chunk for table in tables for chunk in table.column(name).chunks]
        for name in schema.names
    }
    tables.clear()
    indices = None
    if order is not None:
        indices = _order(_integers(_one(chunks[order], schema.field(order).type)))

    def column(name: str) -> pa.Array:
        whole = _one(chunks.pop(name), schema.field(name).type)
        return whole if indices is None else whole.take(indices)

    with ThreadPoolExecutor(_WORKERS) as workers:
        return pa.Table.from_arrays(list(workers.map(column, schema.names)), schema=schema)


def _one(chunks: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    if len(chunks) == 1:
        return chunks[0]
    whole = pa.chunked_array(chunks, kind)
    if pa.types.is_dictionary(kind):
        whole = whole.unify_dictionaries()
    found = whole.combine_chunks()
    return pa.array([], kind) if isinstance(found, pa.ChunkedArray) else found


def _order(keys: np.ndarray) -> pa.Array | None:
    """Return the stable order of rows by `keys`, or None where they have it already."""
    if (keys[1:] >= keys[:-1]).all():
        return None
    return arrow(np.argsort(keys, kind="stable"))


def arrow(array: np.ndarray, missing: np.ndarray | None = None) -> pa.Array:
    """Return numbers or truths in Arrow; `pyarrow.array` would import all of pandas for that.

    The same is true of its ways back, for which `plain`, `flags` and `places` are here.
    """
    cells = np.ascontiguousarray(array)
    known = None if missing is None else _bits(~missing)
    data = _bits(cells) if cells.dtype == bool else pa.py_buffer(cells)
    return pa.Array.from_buffers(pa.from_numpy_dtype(cells.dtype), len(cells), [known, data])


def plain(array: pa.Array) -> np.ndarray:
    """Return numbers in numpy, and anything where one is missing."""
    kind = np.dtype(array.type.to_pandas_dtype())
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), kind)
    return np.frombuffer(data, kind, len(array), array.offset * kind.itemsize)


def flags(array: pa.BooleanArray) -> np.ndarray:
    """Return truths in numpy; none of them is missing."""
    return _of_bits(array.buffers()[1], array)


def there(array: pa.Array) -> np.ndarray:
    """Return which cells are not missing."""
    known = array.buffers()[0]
    if pa.types.is_null(array.type) or not array.null_count or known is None:
        return np.full(len(array), array.null_count == 0)
    return _of_bits(known, array)


def places(array: pa.DictionaryArray) -> np.ndarray:
    """Return for each text its place in the dictionary, -1 where it is missing."""
    indices = array.indices
    found = plain(indices)
    return np.where(there(indices), found, np.int32(-1)) if indices.null_count else found


def _bits(truths: np.ndarray) -> pa.Buffer:
    return pa.py_buffer(np.packbits(truths, bitorder="little"))


def _of_bits(bits: pa.Buffer | None, array: pa.Array) -> np.ndarray:
    if bits is None or not len(array):
        return np.zeros(len(array), bool)
    whole = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    return whole[array.offset : array.offset + len(array)].astype(bool)


def numbers(table: pa.Table, name: str) -> np.ndarray:
    """Return a column of numbers or times, none of which is missing, in numpy."""
    return _integers(table.column(name))


def _integers(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # of no chunk at all
        return np.empty(0, np.int64)
    return plain(array.cast(pa.int64()) if pa.types.is_timestamp(array.type) else array)


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Return the fields of `table` in pandas: texts as categories, integers as Int64."""
    import pandas as pd  # noqa: PLC0415 (takes its time)

    fields = [name for name in FIELDS if name in table.column_names]
    with ThreadPoolExecutor(_WORKERS) as workers:
        columns = workers.map(lambda name: _series(table.column(name)), fields)
        return pd.DataFrame(dict(zip(fields, columns, strict=True)), copy=False)


def _series(column: pa.ChunkedArray) -> object:
    import pandas as pd  # noqa: PLC0415

    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(array, pa.ChunkedArray):  # of no chunk at all
        array = pa.array([], column.type)
    if pa.types.is_dictionary(array.type):
        codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        categories = pd.Index(array.dictionary.to_pylist(), dtype="object").astype("str")
        return pd.Categorical.from_codes(codes, categories=categories, validate=False)
    if pa.types.is_int64(array.type):
        missing = array.is_null().to_numpy(zero_copy_only=False)
        return pd.arrays.IntegerArray(array.fill_null(0).to_numpy(), missing)
    if pa.types.is_timestamp(array.type):
        moments = array.cast(pa.int64()).to_numpy().view("datetime64[us]")
        return pd.DatetimeIndex(moments).tz_localize("UTC")
    return array.to_numpy(zero_copy_only=False)
