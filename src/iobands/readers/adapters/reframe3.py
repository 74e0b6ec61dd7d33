"""ReFrame 3's own perflogs: a line a variable, without a header.

`TIME|reframe VERSION|CHECK on SYSTEM:PARTITION using ENVIRONMENT|jobid=ID|VARIABLE=VALUE|ref=...
(l=..., u=...)|UNIT`; some sites have `num_tasks=N` after the job. ReFrame 4 writes a header above
it where a site kept that format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from iobands.readers.adapters.foreign import info_of, sample
from iobands.readers.adapters.options import Options
from iobands.readers.rejected import Unusable

_LINE: Final = re.compile(
    r"(?P<time>[^|]+)\|reframe (?P<version>[^|]*)\|(?P<info>[^|]*)\|jobid=(?P<jobid>[^|]*)"
    r"(?:\|num_tasks=(?P<tasks>[^|]*))?"
    r"\|(?P<variable>[^|=]+)=(?P<value>[^|]*)\|\s*ref=[^|]*\|(?P<unit>[^|]*)\|?"
)
_HEADER: Final = "job_completion_time|reframe version|"


@dataclass(frozen=True)
class ReFrame3:
    """How ReFrame 3 writes a perflog without being told otherwise."""

    options: Options
    name: ClassVar[str] = "reframe3"
    headless: ClassVar[bool] = True

    def cells(self, text: str) -> list[str]:
        """Return the line in one piece."""
        return [text.strip()]

    def is_header(self, cells: Sequence[str]) -> bool:
        """Tell the header that ReFrame 4 writes for this format."""
        return cells[0].startswith(_HEADER)

    def missing(self, columns: Sequence[str]) -> list[str]:
        """Return nothing: what a line says does not depend on a header."""
        del columns
        return []

    def records(
        self, cells: Sequence[str], columns: Sequence[str], path: Path
    ) -> Iterator[Mapping[str, str]]:
        """Yield the one sample of a line."""
        del columns, path
        yield sample(line_of(cells[0]), self.options)


def line_of(text: str) -> dict[str, str]:
    """Return what a line of this format says, by the columns of contract 2."""
    match = _LINE.fullmatch(text)
    if not match:
        raise Unusable("not a line of ReFrame 3's perflogs")
    said = {name: (value or "").strip() for name, value in match.groupdict().items()}
    return {
        "job_completion_time": said["time"],
        "version": said["version"].split(" ")[0],
        "jobid": said["jobid"],
        "tasks": said["tasks"],
        "perf_var": said["variable"],
        "perf_value": said["value"],
        "perf_unit": said["unit"],
        **info_of(said["info"]),
    }
