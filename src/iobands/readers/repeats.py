"""Samples that are there twice: a line that was written twice, or a file and its copy.

Two rows are one run's when time, job, value and all series fields are the same. Runs that differ
in any of these are two, however near they are. May know: tables of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from iobands.readers.fields import TIME
from iobands.readers.table import FILE, LINE, arrow, numbers, plain, there
from iobands.vocabulary import SERIES_FIELDS

#: What makes two rows one run's.
_SAME: Final = (TIME, "perf_value", "jobid", "result", *SERIES_FIELDS, "perf_var")


@dataclass(frozen=True)
class Repeats:
    """The places of rows that repeat an earlier one; (file, line) of each and of the first."""

    rows: np.ndarray
    told: tuple[tuple[int, int, int, int], ...]


def find_repeats(table: pa.Table) -> Repeats:
    """Find the repeats in `table`, which is in order."""
    alike = np.flatnonzero(_alike(table))
    if not len(alike):
        return Repeats(alike, ())
    chosen = table.select([*_SAME, FILE, LINE]).take(arrow(alike))
    first: dict[tuple[object, ...], tuple[int, int]] = {}
    found, told = [], []
    columns = [chosen.column(name).to_pylist() for name in chosen.column_names]
    for place, (*fields, file, line) in zip(alike, zip(*columns, strict=True), strict=True):
        key = tuple(fields)
        if key in first:
            found.append(int(place))
            told.append((file, line, *first[key]))
        else:
            first[key] = (file, line)
    return Repeats(np.array(found, np.int64), tuple(told))


def _alike(table: pa.Table) -> np.ndarray:
    """Tell which rows may share time and value with another: few, and all that do."""
    column = table.column("perf_value").combine_chunks()
    values = np.where(there(column), plain(column), -1.0).view(np.uint64)
    times = numbers(table, TIME).astype(np.uint64)
    # sorting numbers is several times as fast as hashing pairs
    mixed = times * np.uint64(0x9E3779B97F4A7C15) ^ values * np.uint64(0xC2B2AE3D27D4EB4F)
    ordered = np.sort(mixed)
    same = ordered[1:][ordered[1:] == ordered[:-1]]
    return np.isin(mixed, same) if len(same) else np.zeros(len(mixed), bool)
