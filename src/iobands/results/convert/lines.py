"""The lines of foreign results as text, by the names of contract 2's columns.

Perflogs as ReFrame 3 and 4 and EPCC's configuration write them, and CSV tables with a header.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from iobands.model.fields import NULLS, TIME, UNIT, VALUE, VARIABLE, number
from iobands.model.rejected import Unusable
from iobands.model.times import from_unix
from iobands.results.perflog import perflog_files

_UNIX: Final = "job_completion_time_unix"
_ENDING: Final = "_value"
_IN_ONE: Final = "perf_value perf_unit"
#: EPCC's columns, which its earlier perflogs do not name.
_EPCC: Final = ("display_name", "result", TIME, VARIABLE, _IN_ONE, "reference", "")
#: What ReFrame calls fields of ours; its `name` has the parameters, which `unique_name` may lack.
_REFRAME: Final = {"num_tasks": "tasks", "num_nodes": "nodes", "name": "display_name"}
# What a check says of itself: "on system:partition using environment" up to ReFrame 3, then
# "/hash @system:partition+environment".
_INFO: Final = re.compile(
    r"(?P<display_name>.+?)(?: /(?P<hashcode>[0-9a-f]+))?"
    r"(?: on | @)(?P<system>[^:+\s]+):(?P<partition>[^+\s]+)(?: using |\+)(?P<environ>\S+)"
)
_REFRAME_3: Final = re.compile(
    r"(?P<job_completion_time>[^|]+)\|reframe (?P<version>[^|\s]*)[^|]*\|(?P<info>[^|]*)"
    r"\|jobid=(?P<jobid>[^|]*)(?:\|num_tasks=(?P<tasks>[^|]*))?"
    r"\|(?P<perf_var>[^|=]+)=(?P<perf_value>[^|]*)\|\s*ref=[^|]*\|(?P<perf_unit>[^|]*)\|?"
)

Said = dict[str, str]


def source_files(source: Path) -> tuple[list[Path], list[OSError]]:
    """Return the files below `source` that can be converted, and what cannot be listed."""
    failed: list[OSError] = []
    tables = [
        Path(where, name)
        for where, _, names in os.walk(source, onerror=failed.append)
        for name in names
        if name.endswith(".csv")
    ]
    return sorted([*perflog_files(source), *tables]), failed


def read_file(path: Path, called: Mapping[str, str]) -> Iterator[list[Said] | Unusable]:
    """Yield the samples of each line, or why it cannot be used; a header line has none.

    `called` has the column of a field in tables that call it otherwise.

    Raises:
        OSError: the file cannot be read.
    """
    fields = {**_REFRAME, **{theirs: ours for ours, theirs in called.items()}}
    is_table = path.suffix == ".csv"
    columns: Sequence[str] = () if is_table else _EPCC
    text = path.read_text(encoding="utf-8", errors="replace")
    for line in text.removesuffix("\n").split("\n"):
        try:
            if "\ufffd" in line:
                raise Unusable("bytes that are not UTF-8")
            cells = _csv_cells(line) if is_table else line.split("|")
            names = [fields.get(cell.strip(), cell.strip()) for cell in cells]
            of_reframe_3 = _REFRAME_3.fullmatch(line.strip())
            if not {TIME, _UNIX}.isdisjoint(names):
                missing = [theirs for ours, theirs in called.items() if ours not in names]
                if is_table and missing:
                    raise Unusable(f"columns are missing: {', '.join(missing)}")
                columns = names
                yield []
            elif of_reframe_3:
                yield [_complete(of_reframe_3.groupdict(""), path)]
            elif len(cells) != len(columns):
                here = f"{len(cells)} columns instead of {len(columns)}"
                raise Unusable(here if columns else "no header line before it")
            else:
                said = dict(zip(columns, (cell.strip() for cell in cells), strict=True))
                yield [_complete(sample, path) for sample in _samples(said)]
        except Unusable as reason:
            yield reason


def parameters_of(display_name: str) -> Said:
    """Return the parameters that ReFrame writes into a name, as `%name=value`."""
    return dict(re.findall(r"%(?:\w+\.)*(\w+)=(\S*)", display_name))


def _csv_cells(line: str) -> list[str]:
    try:
        (cells,) = csv.reader([line], strict=True)
    except (csv.Error, ValueError) as error:
        raise Unusable(f"not CSV: {error}") from None
    return cells


def _samples(said: Said) -> Iterator[Said]:
    """Yield the samples of a line: of its variable, or of all variables that have a column."""
    if VARIABLE in said and _IN_ONE in said:
        value, _, unit = said[_IN_ONE].partition(" ")
        yield {**said, VALUE: value, UNIT: unit}
    elif VALUE in said:
        yield said
    else:
        for name, value in said.items():
            if name.endswith(_ENDING):
                variable = name.removesuffix(_ENDING)
                unit = said.get(f"{variable}_unit", "")
                yield {**said, VARIABLE: variable, VALUE: value, UNIT: unit}


def _complete(said: Said, path: Path) -> Said:
    """Return a sample with what its path and its description of the check say too."""
    found = {"display_name": path.name.split(".")[0]}
    if path.suffix != ".csv":
        found |= {"system": path.parent.parent.name, "partition": path.parent.name}
    if "info" in said:
        info = _INFO.fullmatch(said["info"].strip())
        if not info:
            raise Unusable(f"{said['info']!r} does not name check, system and partition")
        found |= {name: value for name, value in info.groupdict().items() if value}
    found |= {name: value.strip() for name, value in said.items() if value.strip() not in NULLS}
    when = from_unix(number(found.get(_UNIX) or found.get(TIME, "")) or None)
    return {**found, TIME: when.isoformat()} if when else found
