"""Results of other tools as a table: CSV with a header, a line a sample.

`columns` in `adapter.yaml` says what each field is called in the table; a column with the name of a
field is that field. `fields` says what the table does not.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from iobands.readers.adapters.foreign import from_unix, sample
from iobands.readers.adapters.options import Options
from iobands.readers.fields import FIELDS, TIME
from iobands.readers.lines import same_number
from iobands.readers.rejected import Unusable

#: What must be known of every sample, from a column or from `fields`.
_NEEDED: Final = (TIME, "system", "partition", "perf_var", "perf_value", "perf_unit")


@dataclass(frozen=True)
class CsvTable:
    """How a table is laid out whose columns the user names."""

    options: Options
    name: ClassVar[str] = "csv"
    headless: ClassVar[bool] = False
    #: Where the tables are, below the directory that the user gives.
    glob: ClassVar[str] = "**/*.csv"

    def cells(self, text: str) -> list[str]:
        """Return the cells of a line; a comma within quotes separates none."""
        try:
            (cells,) = csv.reader([text.rstrip("\r")], strict=True)
        except (csv.Error, ValueError) as error:
            raise Unusable(f"not CSV: {error}") from None
        return [cell.strip() for cell in cells]

    def is_header(self, cells: Sequence[str]) -> bool:
        """Tell a header by the names of the time and the value."""
        return {self._called(TIME), self._called("perf_value")} <= set(cells)

    def missing(self, columns: Sequence[str]) -> list[str]:
        """Return the columns that the mapping names and the table has not, and needed fields."""
        said = [name for _, name in self.options.columns if name not in columns]
        given = dict(self.options.fields)
        needed = [
            name for name in _NEEDED if name not in given and self._called(name) not in columns
        ]
        return list(dict.fromkeys([*said, *needed]))

    def records(
        self, cells: Sequence[str], columns: Sequence[str], path: Path
    ) -> Iterator[Mapping[str, str]]:
        """Yield the one sample of a line."""
        same_number(cells, columns)
        text = dict(zip(columns, cells, strict=True))
        said = {name: text[self._called(name)] for name in FIELDS if self._called(name) in text}
        given = dict(self.options.fields)
        said = {**{name: given[name] for name in _NEEDED if name in given}, **said}
        said[TIME] = from_unix(said[TIME]) or said[TIME]
        said.setdefault("display_name", path.stem)
        yield sample(said, self.options)

    def _called(self, field: str) -> str:
        return dict(self.options.columns).get(field, field)
