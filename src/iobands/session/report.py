"""A run report of ReFrame as a file, and what it says of a whole session."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from iobands.model.rejected import Rejected, Unusable, entries, not_read

#: A test case in a report, or another part of it.
Entry = Mapping[str, Any]


def report_files(
    perflogs: Path, system: str | None = None, rejected: list[Rejected] | None = None
) -> list[Path]:
    """Return the run reports of `system`, or of all systems, in the order of their names.

    `rejected` takes what cannot be listed.
    """
    failed = [] if rejected is None else rejected
    return [
        path
        for place in entries(perflogs, failed)
        if system in {None, place.name}
        for path in entries(place / "reports", failed)
        if path.suffix == ".json"
    ]


def load(path: Path) -> Entry:
    """Return the content of a run report.

    Raises:
        Unusable: it cannot be read, or is no JSON object; of the first, the cause is an OSError.
    """
    try:
        if path.is_fifo() or path.is_char_device():  # reading one waits for a writer, or never ends
            raise Unusable("cannot be read: no regular file")
        report = json.loads(path.read_bytes())
    except OSError as error:
        raise Unusable(not_read(path, error).reason) from error
    except (ValueError, RecursionError) as error:  # not JSON, or not UTF-8
        raise Unusable(f"not JSON: {error}".splitlines()[0]) from error
    if not isinstance(report, dict):
        raise Unusable("not a run report: not an object")
    return report


def entries_of(report: Entry) -> Iterator[Entry]:
    """Yield the test cases of a report.

    Raises:
        Unusable: the report has none.
    """
    runs = report.get("runs")
    if not isinstance(runs, list):
        raise Unusable("not a run report: no runs")
    for run in runs:
        entries = run.get("testcases") if isinstance(run, dict) else None
        if not isinstance(entries, list):
            raise Unusable("not a run report: a run without testcases")
        for entry in entries:
            if not isinstance(entry, dict):
                raise Unusable("not a run report: a test case that is not an object")
            yield entry


def session_of(report: Entry) -> Entry:
    """Return what a report says of its session.

    Raises:
        Unusable: the report says nothing of it.
    """
    value = report.get("session_info")
    if not isinstance(value, dict):
        raise Unusable("not a run report: no session_info")
    return value


def number_of(table: Entry, name: str) -> float | None:
    """Return a finite number in a part of a report, None if there is none of that name."""
    value = table.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= sys.float_info.max else None


def case_counts(report: Entry) -> dict[str, int]:
    """Return how many test cases of the report `ran`, `failed`, were `aborted` and `skipped`.

    Raises:
        Unusable: the report is not one of ReFrame's.
    """
    said = session_of(report)
    names = {"ran": "cases", "failed": "failures", "aborted": "aborted", "skipped": "skipped"}
    counts = {name: number_of(said, f"num_{key}") for name, key in names.items()}
    if counts["ran"] is None:
        raise Unusable("not a run report: no num_cases")
    return {name: int(count) for name, count in counts.items() if count is not None}


def seconds_spent(report: Entry) -> dict[str, float]:
    """Return where the time of a session went, as far as the report says so, in seconds.

    `total`; of it `build` and `checks`, those that measured; of these `program`, and of that `io`,
    which was measured. The rest of `program` starts MPI, makes data and verifies it.

    Raises:
        Unusable: the report is not one of ReFrame's.
    """
    found = dict.fromkeys(("total", "build", "checks", "program", "io"), 0.0)
    found["total"] = number_of(session_of(report), "time_elapsed") or 0.0
    for entry in entries_of(report):
        found["build"] += number_of(entry, "time_compile") or 0.0
        if measured := number_of(entry, "seconds_io"):
            found["checks"] += number_of(entry, "time_total") or 0.0
            found["program"] += number_of(entry, "seconds_program") or 0.0
            found["io"] += measured
    return {name: round(seconds, 2) for name, seconds in found.items()}
