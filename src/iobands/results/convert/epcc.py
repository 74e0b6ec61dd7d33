"""EPCC's benchio checks on ARCHER2 and their series, as the public epcc-reframe has them.

Their perflogs lack the series fields: these follow from the check's class, its parameter and the
variable, as the checks define them.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

from iobands.model.fields import VARIABLE
from iobands.results.convert.lines import Said, parameters_of

_VARIABLE: Final = re.compile(
    r"(?:extract_)?(?P<stripes>unstriped|striped|fullstriped)_(?P<layer>file|mpiio|hdf5)"
    r"(?P<kind>_bw|_time)?"
)
_STRIPES: Final = {"unstriped": "1", "striped": "4", "fullstriped": "-1"}
_LAYERS: Final = {
    "file": ("fpp", "posix"),
    "mpiio": ("ssf", "mpiio"),
    "hdf5": ("ssf", "hdf5"),
}
_NODES: Final = re.compile(r"(\d+)Nodes?$")
# Of a check by its nodes: its tasks, and the length of the array's edge, of 8-byte elements.
_FPP_EDGES: Final = {"16": (2048, 2048), "32": (2048, 8192)}
_SSF_EDGES: Final = {"16": (2048, 2048), "32": (4096, 4096)}
_SMALL_EDGE: Final = 1260
_TASKS_PER_NODE: Final = 128
_FILE_SYSTEM: Final = re.compile(r"a2fs-(\w+)")


def is_epcc(variable: str) -> bool:
    """Return whether a variable is one of EPCC's benchio checks."""
    return _VARIABLE.fullmatch(variable) is not None


def epcc_fields(variable: str, display_name: str) -> Said | None:
    """Return the fields of such a variable of a check; None for a time, which is no rate."""
    match = _VARIABLE.fullmatch(variable)
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
        # its environment settings are those that the User Guide recommends for one shared file
        "hints": "archer2-ssf" if "Opt" in name else "default",
    }
    nodes = _NODES.search(name)
    edges = _FPP_EDGES if pattern == "fpp" else _SSF_EDGES
    if nodes and nodes[1] in edges:
        tasks, edge = edges[nodes[1]]
        fields |= {"nodes": nodes[1], "tasks": str(tasks), "gib": _gib(edge)}
    elif small and parameters.get("num_nodes", "").isdigit():
        number = parameters["num_nodes"]
        tasks = _TASKS_PER_NODE * int(number)
        fields |= {"nodes": number, "tasks": str(tasks), "gib": _gib(_SMALL_EDGE)}
    return fields | _file_system(parameters.get("write_dir_prefix", ""))


def _gib(edge: int) -> str:
    return repr(8 * edge**3 / 2**30)


def _file_system(directory: str) -> Said:
    found = _FILE_SYSTEM.search(directory)
    if found:
        medium = "nvme" if found[1] == "nvme" else "hdd"
        return {"file_system": found[1], "medium": medium, "file_system_type": "lustre"}
    # elsewhere: the directory, which is at least another one
    return {"file_system": str(PurePosixPath(directory))} if directory else {}
