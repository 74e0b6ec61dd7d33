"""The samples of a series as plain Python values: the one place here that knows their table."""

from __future__ import annotations

from iobands.status.series import Series


def cells(series: Series, begin: int, end: int | None = None) -> dict[str, list[object]]:
    """Return the columns of the samples from place `begin` to before `end`, None for missing."""
    table = series.samples.iloc[begin:end]
    cells = table.astype("object").where(table.notna(), None)
    return {str(name): column.tolist() for name, column in cells.items()}


def newest_sample(series: Series) -> dict[str, object]:
    """Return every column of the newest sample; empty where there is none."""
    return {name: column[-1] for name, column in cells(series, -1).items() if column}
