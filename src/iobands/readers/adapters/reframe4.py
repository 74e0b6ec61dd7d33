"""ReFrame 4's own perflogs: a header, then a line a run with all its variables.

Each variable has columns of its own, `<variable>_value` and `<variable>_unit` among them. Where a
site asked for a line a variable (`perflog_multiline`), there are `perf_var`, `perf_value` and
`perf_unit` instead. Times have no offset, but `job_completion_time_unix` needs none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from iobands.readers.adapters.foreign import from_unix, info_of, place_of, sample
from iobands.readers.adapters.options import Options
from iobands.readers.fields import FIELDS, TIME
from iobands.readers.lines import same_number
from iobands.readers.rejected import Unusable
from iobands.vocabulary import NULLS

_VALUE: Final = "_value"
_UNIX: Final = "job_completion_time_unix"
#: What ReFrame calls fields of ours.
_NAMES: Final = {"num_tasks": "tasks", "num_nodes": "nodes", "unique_name": "display_name"}
_VARIABLE_COLUMNS: Final = ("perf_var", "perf_value", "perf_unit")


@dataclass(frozen=True)
class ReFrame4:
    """How ReFrame 4 writes a perflog without being told otherwise."""

    options: Options
    name: ClassVar[str] = "reframe4"
    headless: ClassVar[bool] = False

    def cells(self, text: str) -> list[str]:
        """Return the cells, which `|` separates."""
        return [cell.strip() for cell in text.split("|")]

    def is_header(self, cells: Sequence[str]) -> bool:
        """Tell a header by the names of the time and of a value."""
        return not {TIME, _UNIX}.isdisjoint(cells) and any(
            cell.endswith(_VALUE) or cell == "perf_value perf_unit" for cell in cells
        )

    def missing(self, columns: Sequence[str]) -> list[str]:
        """Return nothing: a header that is one has a time and a value."""
        del columns
        return []

    def records(
        self, cells: Sequence[str], columns: Sequence[str], path: Path
    ) -> Iterator[Mapping[str, str]]:
        """Yield a sample for each variable of a line."""
        for said in samples_of(cells, columns, path):
            yield sample(said, self.options)


def samples_of(
    cells: Sequence[str], columns: Sequence[str], path: Path
) -> Iterator[dict[str, str]]:
    """Yield what a line says of each variable, by the columns of contract 2.

    Raises:
        Unusable: the line has not the columns of its header.
    """
    same_number(cells, columns)
    text = dict(zip(columns, cells, strict=True))
    common = place_of(path)
    for name, cell in text.items():
        field = _NAMES.get(name, name)
        if name == "info":
            common.update(info_of(cell))
        elif field in FIELDS and name not in _VARIABLE_COLUMNS and cell not in NULLS:
            common[field] = cell
    # ReFrame's own "name" has its parameters; "unique_name" may be an identifier
    if text.get("display_name", "") not in NULLS:
        common["display_name"] = text["display_name"]
    elif text.get("name", "") not in NULLS:
        common["display_name"] = text["name"]
    exact = from_unix(text.get(_UNIX, ""))
    if exact:
        common[TIME] = exact
    if "perf_var" in text:
        value, unit = text.get("perf_value", ""), text.get("perf_unit", "")
        if "perf_value perf_unit" in text:  # in one column, as in EPCC's configuration
            value, _, unit = text["perf_value perf_unit"].partition(" ")
        yield {**common, "perf_var": text["perf_var"], "perf_value": value, "perf_unit": unit}
        return
    variables = [name[: -len(_VALUE)] for name in text if name.endswith(_VALUE)]
    if not variables:
        raise Unusable("no column of a value")
    for variable in variables:
        yield {
            **common,
            "perf_var": variable,
            "perf_value": text[variable + _VALUE],
            "perf_unit": text.get(f"{variable}_unit", ""),
        }
