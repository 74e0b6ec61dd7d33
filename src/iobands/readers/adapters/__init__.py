"""Adapters: perflogs and tables that something else wrote, read as if by contract 2.

An adapter says how the lines of a file are laid out and which series they belong to. It is chosen
by name, or in `adapter.yaml` beside the perflogs. May know: the fields and the exact reader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from iobands.readers.adapters.csv_table import CsvTable
from iobands.readers.adapters.epcc import Epcc
from iobands.readers.adapters.options import FILE_NAME, AdapterError, Options, load_options
from iobands.readers.adapters.reframe3 import ReFrame3
from iobands.readers.adapters.reframe4 import ReFrame4
from iobands.readers.lines import Contract, Format

__all__ = ["ADAPTERS", "FILE_NAME", "AdapterError", "Options", "format_of"]

#: The adapters by the names that users give.
ADAPTERS: Final[Mapping[str, Callable[[Options], Format]]] = {
    Contract.name: lambda _: Contract(),
    Epcc.name: Epcc,
    ReFrame3.name: ReFrame3,
    ReFrame4.name: ReFrame4,
    CsvTable.name: CsvTable,
}


def format_of(directory: Path, name: str | None = None) -> Format:
    """Return how the perflogs in `directory` are laid out.

    `name` goes before what `adapter.yaml` there says; without either it is contract 2.

    Raises:
        AdapterError: there is no such adapter, or `adapter.yaml` cannot be used.
    """
    said, options = load_options(directory / FILE_NAME)
    chosen = name or said or Contract.name
    if chosen not in ADAPTERS:
        raise AdapterError(f"there is no adapter {chosen!r}; there are {', '.join(ADAPTERS)}")
    return ADAPTERS[chosen](options)
