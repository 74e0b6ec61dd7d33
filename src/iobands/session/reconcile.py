"""Reconciling: each value of a run report is in the perflogs, or is written there from the report.

ReFrame writes a perflog line when a check has measured, and goes on where it cannot.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from iobands.model.fields import FIELDS, NULLS, TIME, VALUE, VARIABLE
from iobands.model.rejected import Unusable
from iobands.model.series import path_part
from iobands.session.report import entries_of, load, session_of

#: What tells the line of a sample from all others.
_IDENTITY: Final = (TIME, "jobid", "display_name", "environ", VARIABLE, VALUE)
#: The performance tuple of a run report, in the names of the columns.
_FIGURES: Final = (
    VALUE,
    "perf_ref",
    "perf_lower_thres",
    "perf_upper_thres",
    "perf_unit",
    "perf_result",
)
_UNDEFINED: Final = "<undefined>"
#: With these options the perflogs are elsewhere, or nothing was measured.
_ELSEWHERE: Final = ("--perflogdir", "--dry-run")

_Cells = Mapping[str, str]


@dataclass(frozen=True)
class Reconciled:
    """The number of values, notes on those that were written from the report, and those lost."""

    values: int
    notes: tuple[str, ...]
    lost: tuple[str, ...]


def reconcile(report: Path, perflogs: Path) -> Reconciled:
    """Look for each value of `report` in `perflogs`, and append the lines that are missing.

    A report that cannot be read has no values: what it says is for others to judge.
    """
    missing: dict[Path, list[_Cells]] = {}
    number = 0
    for path, cells in _samples(report, perflogs):
        number += 1
        missing.setdefault(path, []).append(cells)
    notes: list[str] = []
    lost: list[str] = []
    for path, samples in missing.items():
        try:
            added = _append(path, samples)
            notes += [f"{each}: missing in its perflog, written from the report" for each in added]
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            lost += [f"{path}: {_name(cells)} could not be recorded: {why}" for cells in samples]
    return Reconciled(number, tuple(notes), tuple(lost))


def _samples(report: Path, perflogs: Path) -> Iterator[tuple[Path, _Cells]]:
    """Yield each value of a report as the cells of its line, after the perflog of it."""
    try:
        content = load(report)
        session, cases = session_of(content), list(entries_of(content))
    except Unusable:
        return
    command = str(session.get("cmdline")).split()
    if "RFM_PERFLOG_DIR" in os.environ or any(word.startswith(_ELSEWHERE) for word in command):
        return
    for case in cases:
        for key, figures in (case.get("perfvalues") or {}).items():
            if figures[0] is None or not case.get(TIME):
                continue
            values: dict[str, Any] = {**case, "version": session.get("version")}
            values |= dict(zip(_FIGURES, figures, strict=False))
            values[VARIABLE] = key.rpartition(":")[2]
            places = (case["system"], case["partition"], f"{case['name'].split()[0]}.log")
            path = perflogs.joinpath(*map(path_part, places))
            yield path, {name: _text(value) for name, value in values.items()}


def _append(path: Path, samples: Sequence[_Cells]) -> list[str]:
    """Append the lines of the samples that the perflog lacks, and return what these are."""
    if path.exists() and not path.is_file():
        raise ValueError("is no regular file")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as stream:
        stream.seek(0)
        content = stream.read()
        if content:
            first, *lines = content.decode(errors="replace").split("\n")
            columns, new = first.split("|"), "" if content.endswith(b"\n") else "\n"
        else:
            columns, lines = [field.name for field in FIELDS], []
            new = "|".join(columns) + "\n"
        if not {*_IDENTITY} <= {*columns}:
            raise ValueError("has other columns")
        there = {
            _identity(dict(zip(columns, cells, strict=True))) for cells in _rows(lines, columns)
        }
        missing = [cells for cells in samples if _identity(cells) not in there]
        if missing:
            rows = ("|".join(cells.get(name, "null") for name in columns) for cells in missing)
            stream.write((new + "".join(f"{row}\n" for row in rows)).encode())
            stream.flush()
            os.fsync(stream.fileno())
    return [_name(cells) for cells in missing]


def _rows(lines: Sequence[str], columns: Sequence[str]) -> Iterator[list[str]]:
    """Yield the cells of whole lines; the last of `lines` has no end."""
    for line in lines[:-1]:
        cells = line.split("|")
        if len(cells) == len(columns):
            yield cells


def _identity(cells: _Cells) -> tuple[str, ...]:
    return tuple("" if cells.get(name, "") in NULLS else cells[name] for name in _IDENTITY)


def _name(cells: _Cells) -> str:
    return f"{cells.get('display_name')} {cells[VARIABLE]} {cells[VALUE]} {cells.get('perf_unit')}"


def _text(value: object) -> str:
    """Return a value as ReFrame writes it into a cell, without what would break the line."""
    if value is None or value == _UNDEFINED:
        return "null"
    if isinstance(value, list):
        return ",".join(_text(each) for each in value)
    text = value if isinstance(value, str) else json.dumps(value)
    return " ".join(text.replace("|", " ").split()) if {"|", "\n", "\r"} & {*text} else text
