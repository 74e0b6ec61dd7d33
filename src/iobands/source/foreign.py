"""The lines of other tools' results as text, by the names of contract 2's columns.

It reads perflogs as ReFrame 3 and 4 and EPCC's configuration write them, and CSV tables with a
header. EPCC's perflogs lack the series fields. For its benchio checks on ARCHER2 they follow from
the check's class, its parameter and the variable, as the public epcc-reframe defines them.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from iobands.model import NULLS, TIME, UNIT, VALUE, VARIABLE, Unusable, from_unix, number
from iobands.source.perflog import perflog_files

_UNIX: Final = "job_completion_time_unix"
_ENDING: Final = "_value"
_IN_ONE: Final = "perf_value perf_unit"
#: EPCC's columns, which its earlier perflogs have without a header.
_EPCC: Final = ("display_name", "result", TIME, VARIABLE, _IN_ONE, "reference", "")
#: ReFrame's names of our fields; its `name` has the parameters, which `unique_name` may lack.
_REFRAME: Final = {"num_tasks": "tasks", "num_nodes": "nodes", "name": "display_name"}
# ReFrame's description of a check: "on system:partition using environment" up to ReFrame 3, then
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

# EPCC's checks: their names of variables, and the settings that a name stands for.
_EPCC_VARIABLE: Final = re.compile(
    r"(?:extract_)?(?P<stripes>unstriped|striped|fullstriped)_(?P<layer>file|mpiio|hdf5)"
    r"(?P<kind>_bw|_time)?"
)
_STRIPES: Final = {"unstriped": "1", "striped": "4", "fullstriped": "-1"}
_LAYERS: Final = {
    "file": ("fpp", "posix"),
    "mpiio": ("ssf", "mpiio"),
    "hdf5": ("ssf", "hdf5"),
}
_EPCC_NODES: Final = re.compile(r"(\d+)Nodes?$")
# For a check by its nodes: its tasks, and the edge of the array in 8-byte elements.
_FPP_EDGES: Final = {"16": (2048, 2048), "32": (2048, 8192)}
_SSF_EDGES: Final = {"16": (2048, 2048), "32": (4096, 4096)}
_SMALL_EDGE: Final = 1260
_TASKS_PER_NODE: Final = 128
_FILE_SYSTEM: Final = re.compile(r"a2fs-(\w+)")

Said = dict[str, str]


def source_files(source: Path) -> tuple[list[Path], list[OSError]]:
    """Return the files below `source` that can be converted, and the unreadable directories."""
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

    `called` has the column of a field in tables that use another name.

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
    """Yield the samples of a line: for its variable, or for all variables that have a column."""
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
    """Return a sample with the fields from its path and its description of the check."""
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


def is_epcc(variable: str) -> bool:
    """Return whether a variable is one of EPCC's benchio checks."""
    return _EPCC_VARIABLE.fullmatch(variable) is not None


def epcc_fields(variable: str, display_name: str) -> Said | None:
    """Return the fields of such a variable of a check; None for a time, which is not a rate."""
    match = _EPCC_VARIABLE.fullmatch(variable)
    if match is None or match["kind"] == "_time":
        return None
    name, parameters = display_name.split(" ", 1)[0], parameters_of(display_name)
    pattern, interface = _LAYERS[match["layer"]]
    small = name.casefold().startswith("benchiosmall")
    # the small checks call the directory with all stripes "striped"
    stripes = "fullstriped" if small and match["stripes"] == "striped" else match["stripes"]
    fields = {
        VARIABLE: "write_bw",
        "tool": "benchio",
        "pattern": pattern,
        "interface": interface,
        "fsync": "true",
        "stripe_count_asked": _STRIPES[stripes],
        "transport": "ucx" if "UCX" in name else "ofi",
        # its environment has the settings that the User Guide recommends for one shared file
        "hints": "archer2-ssf" if "Opt" in name else "default",
    }
    nodes = _EPCC_NODES.search(name)
    edges = _FPP_EDGES if pattern == "fpp" else _SSF_EDGES
    if nodes and nodes[1] in edges:
        tasks, edge = edges[nodes[1]]
        fields |= {"nodes": nodes[1], "tasks": str(tasks), "gib": _gib(edge)}
    elif small and parameters.get("num_nodes", "").isdigit():
        count = parameters["num_nodes"]
        tasks = _TASKS_PER_NODE * int(count)
        fields |= {"nodes": count, "tasks": str(tasks), "gib": _gib(_SMALL_EDGE)}
    return fields | _file_system(parameters.get("write_dir_prefix", ""))


def _gib(edge: int) -> str:
    return repr(8 * edge**3 / 2**30)


def _file_system(directory: str) -> Said:
    found = _FILE_SYSTEM.search(directory)
    if found:
        medium = "nvme" if found[1] == "nvme" else "hdd"
        return {"file_system": found[1], "medium": medium, "file_system_type": "lustre"}
    # on other systems: the directory, to distinguish it
    return {"file_system": str(PurePosixPath(directory))} if directory else {}
