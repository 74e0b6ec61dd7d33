"""EPCC's perflogs of benchio on ARCHER2 and their series, as the public epcc-reframe has them.

A line is `CHECK|RESULT|TIME|VARIABLE|VALUE UNIT|(REFERENCE, LOWER, UPPER)|`, with a header above it
under ReFrame 4; earlier ones are in the format of ReFrame 3. What a run was does not stand in the
line: it follows from the check's class, its parameter and the variable, as the checks define them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import ClassVar, Final

from iobands.readers.adapters.foreign import parameters_of, place_of, sample
from iobands.readers.adapters.options import Options
from iobands.readers.adapters.reframe3 import line_of
from iobands.readers.adapters.reframe4 import samples_of
from iobands.readers.rejected import Unusable

_COLUMNS: Final = (
    "display_name",
    "result",
    "job_completion_time",
    "perf_var",
    "perf_value perf_unit",
    "(perf_ref, perf_lower_thres, perf_upper_thres)",
    "",
)
_NODES: Final = re.compile(r"(\d+)Nodes?$")
_SMALL: Final = re.compile(r"^benchiosmall", re.IGNORECASE)
# Of a check: its tasks, and the length of the array's edge, of 8-byte elements.
_FPP_EDGES: Final = {"16": (2048, 2048), "32": (2048, 8192)}
_SSF_EDGES: Final = {"16": (2048, 2048), "32": (4096, 4096)}
_SMALL_EDGE: Final = 1260
_TASKS_PER_NODE: Final = 128
_LAYERS: Final = {
    "file": ("fpp", "posix"),
    "mpiio": ("ssf", "mpiio"),
    "hdf5": ("ssf", "hdf5"),
}
_VARIABLE: Final = re.compile(
    r"(?:extract_)?(?P<stripes>unstriped|striped|fullstriped)_(?P<layer>file|mpiio|hdf5)"
    r"(?P<kind>_bw|_time)?"
)
_STRIPES: Final = {"unstriped": "1", "striped": "4", "fullstriped": "-1"}
_FILE_SYSTEM: Final = re.compile(r"a2fs-(\w+)")


@dataclass(frozen=True)
class Epcc:
    """How EPCC's configuration writes a perflog, and what its benchio checks are."""

    options: Options
    name: ClassVar[str] = "epcc"
    headless: ClassVar[bool] = True

    def cells(self, text: str) -> list[str]:
        """Return the cells, which `|` separates."""
        return [cell.strip() for cell in text.split("|")]

    def is_header(self, cells: Sequence[str]) -> bool:
        """Tell a header by its names."""
        return "job_completion_time" in cells and (
            "perf_value perf_unit" in cells or "reframe version" in cells
        )

    def missing(self, columns: Sequence[str]) -> list[str]:
        """Return nothing: the columns are known."""
        del columns
        return []

    def records(
        self, cells: Sequence[str], columns: Sequence[str], path: Path
    ) -> Iterator[Mapping[str, str]]:
        """Yield the one sample of a line."""
        if len(cells) > 1 and cells[1].startswith("reframe "):
            said = {**place_of(path), **line_of("|".join(cells))}
        else:
            del columns  # always the same
            (said,) = samples_of(cells, _COLUMNS, path)
        yield sample(said, _with(self.options, said))


def _with(options: Options, said: Mapping[str, str]) -> Options:
    """Return the options with what the checks define, where the user did not say it."""
    variable = said["perf_var"]
    match = _VARIABLE.fullmatch(variable)
    if variable in dict(options.variables):
        return options
    if not match:
        raise Unusable(f"perf_var: {variable!r} is no variable of EPCC's benchio checks")
    if match["kind"] == "_time":
        return replace(options, variables=(*options.variables, (variable, None)))
    fields = {**_of_check(said["display_name"], match["layer"]), **dict(options.fields)}
    fields |= {
        "perf_var": "write_bw",
        "stripe_count_asked": _stripes(match["stripes"], said["display_name"]),
    }
    return replace(options, variables=(*options.variables, (variable, tuple(fields.items()))))


def _stripes(word: str, name: str) -> str:
    # the small checks call the directory with all stripes "striped"
    return _STRIPES["fullstriped" if _SMALL.match(name) and word == "striped" else word]


def _of_check(display_name: str, layer: str) -> dict[str, str]:
    """Return the series fields of a check by its name."""
    name, parameters = display_name.split(" ", 1)[0], parameters_of(display_name)
    pattern, interface = _LAYERS[layer]
    fields = {"tool": "benchio", "pattern": pattern, "interface": interface, "fsync": "true"}
    nodes = _NODES.search(name)
    edges = _FPP_EDGES if pattern == "fpp" else _SSF_EDGES
    if nodes and nodes[1] in edges:
        tasks, edge = edges[nodes[1]]
        fields |= {"nodes": nodes[1], "tasks": str(tasks), "gib": _gib(edge)}
    elif _SMALL.match(name) and parameters.get("num_nodes", "").isdigit():
        number = int(parameters["num_nodes"])
        tasks = _TASKS_PER_NODE * number
        fields |= {"nodes": str(number), "tasks": str(tasks), "gib": _gib(_SMALL_EDGE)}
    fields["transport"] = "ucx" if "UCX" in name else "ofi"
    # its environment settings are those that the User Guide recommends for one shared file
    fields["hints"] = "archer2-ssf" if "Opt" in name else "default"
    return fields | _file_system(parameters.get("write_dir_prefix", ""))


def _gib(edge: int) -> str:
    return repr(8 * edge**3 / 2**30)


def _file_system(directory: str) -> dict[str, str]:
    found = _FILE_SYSTEM.search(directory)
    if found:
        medium = "nvme" if found[1] == "nvme" else "hdd"
        return {"file_system": found[1], "medium": medium, "file_system_type": "lustre"}
    # elsewhere: the directory, which is at least another one
    return {"file_system": str(PurePosixPath(directory))} if directory else {}
