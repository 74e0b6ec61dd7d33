"""The cells of perflogs as typed columns, and what is wrong with those that have no value."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Final

import polars as pl

from iobands.model.fields import FIELD, TIME, UNIT, VALUE, VARIABLE, VARIABLE_UNITS, Type
from iobands.model.series import PATH_PART

#: The rates that a file system can have, in GiB/s: from a byte a second to 2**60 of them.
RATES: Final = (2.0**-30, 2.0**30)
_NEVER_NULL: Final = frozenset({TIME, "system", "partition", "result"})
_PLACE: Final = frozenset({"system", "partition"})  # of which files are named
_EXACT_BELOW: Final = 2**53  # the integers that a double holds exactly
# `%+` of polars takes more, such as an hour of one digit.
_RFC_3339: Final = (
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?"
    "([Zz]|[+-][0-9]{2}:[0-9]{2})$"
)
# Within what nanosecond timestamps can hold.
_TIMES: Final = tuple(datetime(year, 1, 1, tzinfo=timezone.utc) for year in (1970, 2200))
_TYPES: Final[Mapping[Type, pl.DataType]] = {
    "time": pl.Datetime("us", "UTC"),
    "text": pl.Categorical(),
    "integer": pl.Int64(),
    "number": pl.Float64(),
}
_EXPECTED: Final[Mapping[Type, str]] = {
    "time": "a time with UTC offset",
    "integer": "a whole number",
    "number": "a finite number",
}


def type_of(name: str) -> pl.DataType:
    """Return the type of a field in a frame."""
    return _TYPES[FIELD[name].type]


def typed(text: pl.DataFrame) -> tuple[pl.DataFrame, dict[int, str]]:
    """Return columns of text in their types, and by row why its line cannot be used."""
    names = text.columns
    # in two steps: an expression that is used twice is worked out twice
    values = text.select(_parsed(name) for name in names)
    values = values.select(_possible(name) for name in names)
    wrong: dict[int, str] = {}
    for name in names:
        cells, found = text[name], values[name]
        if name in _NEVER_NULL:
            for row in cells.is_null().arg_true():
                wrong.setdefault(row, f"{name}: missing")
        if found.null_count() > cells.null_count():
            expected = "a name" if name in _PLACE else _EXPECTED[FIELD[name].type]
            for row in (found.is_null() & cells.is_not_null()).arg_true():
                wrong.setdefault(row, f"{name}: {cells[row]!r} is not {expected}")
    if VALUE in names:
        rates = values[VALUE]
        for row in (~rates.is_between(*RATES)).arg_true():
            why = "not above 0" if rates[row] <= 0 else "no rate that a file system can have"
            wrong.setdefault(row, f"{VALUE}: {text[VALUE][row]!r} is {why}")
    return values, wrong


def _parsed(name: str) -> pl.Expr:
    cell, type_ = pl.col(name), FIELD[name].type
    if type_ == "text":
        return cell.cast(pl.Categorical)
    if type_ == "time":
        time = cell.str.to_datetime("%+", time_unit="us", time_zone="UTC", strict=False)
        return pl.when(cell.str.contains(_RFC_3339)).then(time)
    return cell.cast(pl.Float64, strict=False)


def _possible(name: str) -> pl.Expr:
    """Return the value of a cell, None where it spells none that there can be."""
    value, type_ = pl.col(name), FIELD[name].type
    if name in _PLACE:
        return pl.when(value.cast(pl.String).str.contains(PATH_PART)).then(value)
    if type_ == "text":
        return value
    if type_ == "time":
        return pl.when((value >= _TIMES[0]) & (value < _TIMES[1])).then(value)
    if type_ == "number":
        return pl.when(value.is_finite()).then(value)
    whole = (value == value.floor()) & (value.abs() < _EXACT_BELOW)
    return pl.when(whole).then(value).cast(pl.Int64)


def contradictions(rows: pl.DataFrame) -> dict[int, str]:
    """Return by row what is wrong with its variable, value and unit taken together."""
    measured = pl.col(VALUE).is_not_null().alias(VALUE)
    said = rows.select(VARIABLE, UNIT, measured)
    wrong: dict[int, str] = {}
    for variable, unit, has_value in said.unique().iter_rows():
        if variable is None:
            why = f"{VARIABLE}: missing" if has_value else None
        elif variable not in VARIABLE_UNITS:
            why = f"{VARIABLE}: unknown variable {variable!r}"
        elif unit != VARIABLE_UNITS[variable]:
            wanted = VARIABLE_UNITS[variable]
            why = f"{UNIT}: {unit or 'null'!r}; the variable's unit is {wanted}"
        else:
            why = None
        if why:
            alike = said.select(
                pl.col(VARIABLE).eq_missing(pl.lit(variable, pl.String))
                & pl.col(UNIT).eq_missing(pl.lit(unit, pl.String))
                & (pl.col(VALUE) == has_value)
            ).to_series()
            wrong.update(dict.fromkeys(alike.arg_true(), why))
    return wrong
