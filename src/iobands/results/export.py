"""The samples in formats that other programs read: CSV, JSON and Parquet."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import polars as pl

from iobands.model.fields import TIME
from iobands.model.replaced import replace_file
from iobands.model.series import path_part
from iobands.results.samples import Samples

# What a spreadsheet runs as a formula where a cell begins with it.
_FORMULA: Final = r"^([=+\-@\t\r])"


def csv_text(samples: Samples) -> str:
    """Return the samples as CSV with a header; times are RFC 3339, what is missing is empty.

    A text that a spreadsheet would take for a formula has a ' before it. Numbers stay numbers.
    """
    texts = pl.selectors.by_dtype(pl.String, pl.Categorical).cast(pl.String)
    safe = texts.str.replace(_FORMULA, "'$1")
    return samples.measured.with_columns(_rfc_3339()).with_columns(safe).write_csv()


def json_text(samples: Samples) -> str:
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


def _rfc_3339() -> pl.Expr:
    return pl.col(TIME).dt.strftime("%Y-%m-%dT%H:%M:%S%.f+00:00")
