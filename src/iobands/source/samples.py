"""The samples of a site: one frame, the part of it that is each series, and its exports."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from iobands.model.fields import TIME, VALUE, VARIABLE
from iobands.model.history import COMPARED, PERFORMANCE, History
from iobands.model.rejected import Rejected
from iobands.model.replaced import replace_file
from iobands.model.series import SeriesKey, path_part
from iobands.source.speeds import no_speeds

#: What makes a series, by the names of columns and in the order of `SeriesKey`.
KEY: Final = tuple(
    VARIABLE if name == "variable" else name for name in SeriesKey.__dataclass_fields__
)

# What a spreadsheet runs as a formula where a cell begins with it.
_FORMULA: Final = r"^([=+\-@\t\r])"


@dataclass(frozen=True)
class Samples:
    """The content of perflogs as frames, in the order of time.

    `measured` has one row a value, `missed` one a run that proved nothing. `speeds` is what
    `speeds_of` returns.
    """

    measured: pl.DataFrame
    missed: pl.DataFrame
    rejected: tuple[Rejected, ...]
    speeds: pl.DataFrame = field(default_factory=no_speeds)

    @cached_property
    def rows(self) -> Mapping[SeriesKey, NDArray[np.uint32]]:
        """The rows in `measured` of each series, in the order in which series come up first."""
        keys = self.measured.lazy().select(KEY).with_row_index("row")
        groups = keys.group_by(KEY, maintain_order=True).agg("row").collect()
        names = groups.select(KEY).iter_rows()
        return {
            SeriesKey(*name): rows.to_numpy()
            for name, rows in zip(names, groups["row"], strict=True)
        }

    def until(self, when: datetime) -> Samples:
        """Return the samples that were known at `when`."""
        known = pl.col(TIME) <= when
        return replace(
            self,
            measured=self.measured.filter(known),
            missed=self.missed.filter(known),
            speeds=self.speeds.filter(known),
        )

    def of(self, key: SeriesKey) -> pl.DataFrame:
        """Return the rows of a series, in the order of time."""
        return self.measured[self.rows.get(key, [])]

    def histories(self) -> dict[SeriesKey, History]:
        """Return the history of each series that has a sample."""
        if not self.rows:
            return {}
        wanted = (TIME, VALUE, "result", "fail_phase", *COMPARED)
        frame = self.measured.select(wanted)[np.concatenate([*self.rows.values()])]
        ends = np.cumsum([len(rows) for rows in self.rows.values()])
        times = frame[TIME].cast(pl.Datetime("ns")).to_numpy()
        values = frame[VALUE].to_numpy()
        passed = _says(frame["result"], "pass")
        too_slow = _says(frame["fail_phase"], PERFORMANCE)
        manner = [_codes(frame[name]) for name in COMPARED]
        newest = self.measured[[rows[-1] for rows in self.rows.values()]].to_dicts()
        found = {}
        for key, begin, end, fields in zip(self.rows, [0, *ends], ends, newest, strict=False):
            mine = slice(begin, end)
            found[key] = History(
                times[mine],
                values[mine],
                passed[mine],
                too_slow[mine],
                np.all([codes[mine] == codes[end - 1] for codes in manner], axis=0),
                fields,
            )
        return found


def samples_csv(samples: Samples) -> str:
    """Return the samples as CSV with a header; times are RFC 3339, what is missing is empty.

    A text that a spreadsheet would take for a formula has a ' before it. Numbers stay numbers.
    """
    texts = pl.selectors.by_dtype(pl.String, pl.Categorical).cast(pl.String)
    safe = texts.str.replace(_FORMULA, "'$1")
    return samples.measured.with_columns(_rfc_3339()).with_columns(safe).write_csv()


def samples_json(samples: Samples) -> str:
    """Return the samples as a JSON array of objects; what is missing is null."""
    return samples.measured.with_columns(_rfc_3339()).write_json()


def write_parquet(samples: Samples, directory: Path) -> Iterator[Path]:
    """Write a file for each system and month (UTC), and yield those that have changed.

    `DIR/SYSTEM/2026-11.parquet` has a column for each field of contract 2, with its type.

    Raises:
        OSError: the directory cannot be written.
    """
    texts = samples.measured.with_columns(pl.col(pl.Categorical).cast(pl.String))
    by_month = texts.group_by("system", pl.col(TIME).dt.strftime("%Y-%m"), maintain_order=True)
    for (system, month), rows in by_month:
        path = directory / path_part(str(system)) / f"{month}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = io.BytesIO()
        rows.write_parquet(stream, compression="zstd")
        if replace_file(path, stream.getvalue()):
            yield path


def _says(column: pl.Series, text: str) -> NDArray[np.bool_]:
    return (column == text).fill_null(value=False).to_numpy()


def _codes(column: pl.Series) -> NDArray[np.int64]:
    """Return a number for each cell, the same for those that compare; -1 if it is missing."""
    if column.name == "suite_version":  # only its major version
        column = column.cast(pl.String).str.extract(r"^([^.]*)").cast(pl.Categorical)
    return column.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()


def _rfc_3339() -> pl.Expr:
    return pl.col(TIME).dt.strftime("%Y-%m-%dT%H:%M:%S%.f+00:00")
