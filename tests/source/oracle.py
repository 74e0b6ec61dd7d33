"""A second reader of a perflog, by lines and cells, to compare with the reader of iobands."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from iobands.model import FIELD, NULLS, READ, REQUIRED, SPEEDS, VARIABLE_UNITS, number

Row = dict[str, object]


class Bad(Exception):
    """The line cannot be used."""


def read(content: bytes) -> tuple[list[Row], set[int]]:
    """Return the rows of a perflog in the order of lines, and the numbers of rejected lines."""
    *lines, unfinished = content.replace(b"\r\n", b"\n").split(b"\n")
    columns: list[str] | None = None
    rows, rejected = [], set()
    for place, line in enumerate(lines, 1):
        cells = line.decode(errors="replace").split("|")
        if "job_completion_time" in cells and "perf_value" in cells:
            if columns is not None or not usable(cells):
                rejected.add(place)
            columns = cells
            continue
        try:
            rows.append(row(line, columns))
        except Bad:
            rejected.add(place)
    if unfinished:
        rejected.add(len(lines) + 1)
    elif len(lines) <= 1 and not rejected and not rows:
        rejected.add(len(lines))
    return rows, rejected


def usable(columns: list[str]) -> bool:
    return set(REQUIRED) <= set(columns) and all(
        columns.count(name) <= 1 for name in (*READ, *SPEEDS)
    )


def row(line: bytes, columns: list[str] | None) -> Row:
    if columns is None or not usable(columns) or any(byte < 32 for byte in line):
        raise Bad
    try:
        cells = line.decode().split("|")
    except UnicodeDecodeError:
        raise Bad from None
    if len(cells) != len(columns):
        raise Bad
    said = dict(zip(columns, cells, strict=True))
    found = {name: value(name, said.get(name, "")) for name in READ}
    found["purpose"] = found["purpose"] or "scheduled"
    never_null = ("job_completion_time", "system", "partition", "result")
    if any(found[name] is None for name in never_null):
        raise Bad
    places = (str(found[name]) for name in ("system", "partition"))
    if not all(re.fullmatch(r"[^/. -][^/\x7f]{0,199}", each) for each in places):
        raise Bad
    variable, rate = found["perf_var"], found["perf_value"]
    if variable is None and rate is not None:
        raise Bad
    if variable is not None and VARIABLE_UNITS.get(variable, 0) != found["perf_unit"]:
        raise Bad
    if rate is not None and not 2.0**-30 <= rate <= 2.0**30:
        raise Bad
    return found


def value(name: str, cell: str) -> object:
    if cell in NULLS:
        return None
    kind = FIELD[name].type
    if kind == "text":
        return cell
    if kind == "time":
        return time(cell)
    found = number(cell) if cell == cell.strip() else None
    if found is None:
        raise Bad
    if name in ("nodes", "tasks", "gib") and not 0 <= found <= 2**40:
        raise Bad
    if kind == "number":
        return found
    if found != int(found) or abs(found) >= 2**53:
        raise Bad
    return int(found)


def time(cell: str) -> datetime:
    match = re.fullmatch(
        r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", cell, re.ASCII
    )
    if not match:
        raise Bad
    day, clock, second, fraction, offset = match.groups()
    offset = "+00:00" if offset in "Zz" else offset
    try:
        # a leap second is in RFC 3339 and not in Python
        moment = datetime.fromisoformat(f"{day}T{clock}:{min(int(second), 59):02}{offset}")
        moment = moment.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise Bad from None
    # Python 3.14 takes 24:00 for the next day
    if clock > "23:59" or int(second) > 60 or not 1970 <= moment.year < 2200:
        raise Bad
    micros = int((fraction or ".")[1:7].ljust(6, "0")) + 1_000_000 * (int(second) == 60)
    return moment + timedelta(microseconds=micros)
