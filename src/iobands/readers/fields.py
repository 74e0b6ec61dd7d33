"""The fields of a sample: their types, and how the text of a cell becomes one.

Whatever wrote a result, its fields end up here. May know: the contracts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Final

from iobands.readers.rejected import Unusable
from iobands.vocabulary import NULLS, SERIES_FIELDS, VARIABLE_UNITS, number

#: Columns without which a line cannot be placed.
REQUIRED: Final = (
    "job_completion_time",
    "result",
    "display_name",
    *SERIES_FIELDS,
    "tool_version",
    "medium",
    "file_system_type",
    "perf_var",
    "perf_value",
    "perf_unit",
)
#: Columns that are taken along where they are there.
OPTIONAL: Final = (
    "fail_phase",
    "hashcode",
    "jobid",
    "job_nodelist",
    "version",
    "suite_version",
    "stripe_count",
    "stripe_size",
    "transport_in_effect",
    "hints_in_effect",
    "fsync",
    "cache",
    "fullness_percent",
    "targets_active",
    "targets_inactive",
    "load_per_node",
    "other_jobs",
    "client_written_gib",
    "client_read_gib",
    "band_verdict",
)
FIELDS: Final = (*REQUIRED, *OPTIONAL)

TIME: Final = "job_completion_time"
INTEGERS: Final = (
    "stripe_count_asked",
    "stripe_count",
    "stripe_size",
    "nodes",
    "tasks",
    "targets_active",
    "targets_inactive",
    "other_jobs",
)
FLOATS: Final = (
    "gib",
    "fullness_percent",
    "load_per_node",
    "client_written_gib",
    "client_read_gib",
    "perf_value",
)
TEXTS: Final = tuple(
    name for name in FIELDS if name != TIME and name not in INTEGERS and name not in FLOATS
)
NEVER_NULL: Final = ("system", "partition", "result")
#: Rates that a file system can have, in GiB/s: from a byte a second to 2**60 of them.
RATES: Final = (2.0**-30, 2.0**30)
EXACT_BELOW: Final = 2**53  # the integers that a double holds exactly

_YEARS: Final = range(1970, 2200)  # within what nanosecond timestamps can hold
_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def typed(text: Mapping[str, str]) -> dict[str, object]:
    """Return the fields that a line says as `text`; what it does not name is missing.

    Raises:
        Unusable: a field is not what it has to be. The message names it.
    """
    fields: dict[str, object] = {}
    for name in FIELDS:
        cell = text.get(name, "")
        parse = _PARSERS.get(name, str)
        try:
            fields[name] = None if cell in NULLS else parse(cell)
        except Unusable as reason:
            raise Unusable(f"{name}: {reason}") from None
    for name in (TIME, *NEVER_NULL):
        if fields[name] is None:
            raise Unusable(f"{name}: missing")
    _check_variable(fields)
    return fields


def _check_variable(fields: Mapping[str, object]) -> None:
    variable, unit = fields["perf_var"], fields["perf_unit"]
    if variable is None:
        if fields["perf_value"] is not None:
            raise Unusable("perf_var: missing")
        return  # a build, or another check that measures nothing
    wanted = VARIABLE_UNITS.get(str(variable))
    if wanted is None:
        raise Unusable(f"perf_var: unknown variable {variable!r}")
    if unit != wanted:
        raise Unusable(f"perf_unit: {unit or 'null'!r}; the variable's unit is {wanted}")


def _time(cell: str) -> datetime:
    match = _TIME.fullmatch(cell)
    if not match:
        raise Unusable(f"{cell!r} is not a time with UTC offset")
    day, clock, fraction, offset = match.groups()
    offset = "+00:00" if offset in "Zz" else offset
    try:
        when = datetime.fromisoformat(f"{day}T{clock}{offset}").astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise Unusable(f"{cell!r} is not a time") from None
    if when.year not in _YEARS:
        raise Unusable(f"{cell!r} is not a time of this age")
    return when + timedelta(microseconds=int((fraction or "0").ljust(6, "0")[:6]))


def _float(cell: str) -> float:
    value = number(cell)
    if value is None:
        raise Unusable(f"{cell!r} is not a finite number")
    return value


def _integer(cell: str) -> int:
    value = _float(cell)
    if value != int(value) or abs(value) >= EXACT_BELOW:
        raise Unusable(f"{cell!r} is not a whole number")
    return int(value)


def _positive(cell: str) -> float:
    value = _float(cell)
    if value <= 0:
        raise Unusable(f"{cell!r} is not above 0")
    if not RATES[0] <= value <= RATES[1]:
        raise Unusable(f"{cell!r} is no rate that a file system can have")
    return value


_PARSERS: Final[Mapping[str, Callable[[str], object]]] = {
    TIME: _time,
    **dict.fromkeys(INTEGERS, _integer),
    **dict.fromkeys(FLOATS, _float),
    "perf_value": _positive,
}
