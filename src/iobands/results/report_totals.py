"""What a run report says of a whole session: its test cases, and where its time went."""

from __future__ import annotations

import math

from iobands.model.rejected import Unusable
from iobands.results.report_file import Entry, entries_of, table_of


def case_counts(report: Entry) -> dict[str, int]:
    """Return how many test cases of the report `ran`, `failed`, were `aborted` and `skipped`.

    Raises:
        Unusable: the report is not one of ReFrame's.
    """
    said = table_of(report, "session_info")
    names = {"ran": "cases", "failed": "failures", "aborted": "aborted", "skipped": "skipped"}
    counts = {name: said.get(f"num_{key}") for name, key in names.items()}
    if isinstance(counts["ran"], bool) or not isinstance(counts["ran"], int):
        raise Unusable("not a run report: no num_cases")
    return {name: count for name, count in counts.items() if isinstance(count, int)}


def seconds_spent(report: Entry) -> dict[str, float]:
    """Return where the time of a session went, as far as the report says so, in seconds.

    `total`; of it `build` and `checks`, those that measured; of these `program`, and of that `io`,
    which was measured. The rest of `program` starts MPI, makes data and verifies it.

    Raises:
        Unusable: the report is not one of ReFrame's.
    """
    found = dict.fromkeys(("total", "build", "checks", "program", "io"), 0.0)
    found["total"] = _seconds(table_of(report, "session_info"), "time_elapsed")
    for entry in entries_of(report):
        found["build"] += _seconds(entry, "time_compile")
        if _seconds(entry, "seconds_io"):
            found["checks"] += _seconds(entry, "time_total")
            found["program"] += _seconds(entry, "seconds_program")
            found["io"] += _seconds(entry, "seconds_io")
    return {name: round(seconds, 2) for name, seconds in found.items()}


def _seconds(table: Entry, name: str) -> float:
    """Return a number of seconds, 0 where there is none."""
    found = table.get(name)
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return float(found) if is_number and math.isfinite(found) else 0.0
