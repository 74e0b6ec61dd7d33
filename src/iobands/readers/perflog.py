"""Reading perflogs (contract 2): every line becomes a sample, a miss or a rejected line.

Perflogs lie on shared file systems and are written by jobs that get killed, so any line may be
damaged. A damaged line costs that line alone, and is reported. May know: pandas, the contracts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Final

import pandas as pd

from iobands.readers.rejected import Rejected
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

_INTEGERS: Final = (
    "stripe_count_asked",
    "stripe_count",
    "stripe_size",
    "nodes",
    "tasks",
    "targets_active",
    "targets_inactive",
    "other_jobs",
)
_FLOATS: Final = (
    "gib",
    "fullness_percent",
    "load_per_node",
    "client_written_gib",
    "client_read_gib",
    "perf_value",
)
_NEVER_NULL: Final = ("system", "partition", "result")
_EXACT_BELOW: Final = 2**53  # the integers that a double holds exactly
_YEARS: Final = range(1970, 2200)  # within what nanosecond timestamps can hold

_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


class _Unusable(ValueError):
    """Why a line cannot be used."""


@dataclass(frozen=True)
class Perflogs:
    """What perflogs hold.

    `samples` has one row a value, in the order of time; `misses` has the lines of runs that
    proved nothing, whose `perf_value` is missing. Both have the columns of the contract, with
    `job_completion_time` in UTC and `perf_value` in `perf_unit`. `others` counts the lines of
    checks that measure nothing, such as builds, and of dry runs.
    """

    samples: pd.DataFrame
    misses: pd.DataFrame
    others: int
    rejected: tuple[Rejected, ...]


def read_perflogs(directory: Path, system: str | None = None) -> Perflogs:
    """Read all perflogs below `directory`, or only those of `system`.

    Rotated files (`*.log.h0`, ...), which ReFrame leaves when the columns change, are read too.

    Raises:
        FileNotFoundError: there is no such directory. Bad content never raises.
    """
    if not directory.is_dir():
        raise FileNotFoundError(f"{directory}: no such directory")
    rows: list[dict[str, object]] = []
    rejected: list[Rejected] = []
    for path in perflog_files(directory, system):
        for line in read_lines(path):
            if isinstance(line, Rejected):
                rejected.append(line)
            else:
                rows.append(line)
    table = as_table(rows)
    measures, has_value = table["perf_var"].notna(), table["perf_value"].notna()
    # a run that passes has values, or was not run at all
    is_dry = measures & ~has_value & (table["result"] == "pass")
    return Perflogs(
        samples=table[measures & has_value].reset_index(drop=True),
        misses=table[measures & ~has_value & ~is_dry].reset_index(drop=True),
        others=int((~measures | is_dry).sum()),
        rejected=tuple(rejected),
    )


def perflog_files(directory: Path, system: str | None = None) -> list[Path]:
    """Return the perflogs below `directory`, rotated ones included, in the order of their names."""
    found = (*directory.glob("*/*/*.log"), *directory.glob("*/*/*.log.h[0-9]*"))
    return sorted(
        path
        for path in found
        if system is None or path.relative_to(directory).parts[0] == system
        if path.parent.name != "reports"
    )


def as_table(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Return `rows` as a table with the columns and types of the contract, ordered by time."""
    table = pd.DataFrame(list(rows), columns=[*REQUIRED, *OPTIONAL])
    for column in table.columns:
        if column == "job_completion_time":
            # one resolution for all versions of pandas, which differ in what they infer
            table[column] = pd.to_datetime(table[column], utc=True).astype("datetime64[us, UTC]")
        elif column in _INTEGERS:
            table[column] = table[column].astype("Int64")
        elif column in _FLOATS:
            table[column] = table[column].astype("float64")
        else:
            table[column] = table[column].astype("string")
    return table.sort_values("job_completion_time", kind="stable", ignore_index=True)


def read_lines(path: Path) -> Iterator[dict[str, object] | Rejected]:
    """Yield the typed fields of each line of the perflog at `path`, or why it was rejected."""
    try:
        content = path.read_bytes()
    except OSError as error:
        yield Rejected(path, 0, f"cannot be read: {error.strerror or error}")
        return
    if not content:
        yield Rejected(path, 0, "empty file")
        return
    lines = content.split(b"\n")
    unfinished = lines.pop()
    columns: tuple[str, ...] = ()
    missing: list[str] = []
    index = 0
    for index, line in enumerate(lines, 1):
        try:
            cells = _cells(line)
            if _is_header(cells):
                repeated, columns = bool(columns), tuple(cells)
                missing = [name for name in REQUIRED if name not in columns]
                if repeated:
                    raise _Unusable("another header line amid the file")
                if missing:
                    raise _Unusable(f"columns are missing: {', '.join(missing)}")
            elif not columns:
                raise _Unusable("no header line before it")
            elif missing:
                raise _Unusable("under a header that lacks columns")
            else:
                yield _typed(cells, columns)
        except _Unusable as reason:
            yield Rejected(path, index, str(reason))
    if unfinished:
        # it may look whole and yet lack the last digits of a number
        yield Rejected(path, index + 1, "cut off: the line has no end")
    elif index == 1 and columns and not missing:
        yield Rejected(path, 1, "a header line only")


def _cells(line: bytes) -> list[str]:
    if not line.strip():
        raise _Unusable("empty line")
    if b"\0" in line:
        raise _Unusable("NUL bytes")
    try:
        return [cell.strip() for cell in line.decode("utf-8").split("|")]
    except UnicodeDecodeError:
        raise _Unusable("bytes that are not UTF-8") from None


def _is_header(cells: Sequence[str]) -> bool:
    return "job_completion_time" in cells and "perf_value" in cells


def _typed(cells: Sequence[str], columns: Sequence[str]) -> dict[str, object]:
    if len(cells) != len(columns):
        raise _Unusable(f"{len(cells)} columns instead of {len(columns)}")
    text = dict(zip(columns, cells, strict=True))
    fields: dict[str, object] = {}
    for name in (*REQUIRED, *OPTIONAL):
        cell = text.get(name, "")
        parse = _PARSERS.get(name, str)
        try:
            fields[name] = None if cell in NULLS else parse(cell)
        except _Unusable as reason:
            raise _Unusable(f"{name}: {reason}") from None
    for name in ("job_completion_time", *_NEVER_NULL):
        if fields[name] is None:
            raise _Unusable(f"{name}: missing")
    _check_variable(fields)
    return fields


def _check_variable(fields: Mapping[str, object]) -> None:
    variable, unit = fields["perf_var"], fields["perf_unit"]
    if variable is None:
        if fields["perf_value"] is not None:
            raise _Unusable("perf_var: missing")
        return  # a build, or another check that measures nothing
    wanted = VARIABLE_UNITS.get(str(variable))
    if wanted is None:
        raise _Unusable(f"perf_var: unknown variable {variable!r}")
    if unit != wanted:
        raise _Unusable(f"perf_unit: {unit or 'null'!r}; the variable's unit is {wanted}")


def _time(cell: str) -> datetime:
    match = _TIME.fullmatch(cell)
    if not match:
        raise _Unusable(f"{cell!r} is not a time with UTC offset")
    day, clock, fraction, offset = match.groups()
    offset = "+00:00" if offset in "Zz" else offset
    try:
        when = datetime.fromisoformat(f"{day}T{clock}{offset}").astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise _Unusable(f"{cell!r} is not a time") from None
    if when.year not in _YEARS:
        raise _Unusable(f"{cell!r} is not a time of this age")
    return when + timedelta(microseconds=int((fraction or "0").ljust(6, "0")[:6]))


def _float(cell: str) -> float:
    value = number(cell)
    if value is None:
        raise _Unusable(f"{cell!r} is not a finite number")
    return value


def _integer(cell: str) -> int:
    value = _float(cell)
    if value != int(value) or abs(value) >= _EXACT_BELOW:
        raise _Unusable(f"{cell!r} is not a whole number")
    return int(value)


def _positive(cell: str) -> float:
    value = _float(cell)
    if value <= 0:
        raise _Unusable(f"{cell!r} is not above 0")
    return value


_PARSERS: Final[Mapping[str, Callable[[str], object]]] = {
    "job_completion_time": _time,
    **dict.fromkeys(_INTEGERS, _integer),
    **dict.fromkeys(_FLOATS, _float),
    "perf_value": _positive,
}
