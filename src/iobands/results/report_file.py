"""A run report of ReFrame as a file: its parts, before anybody asks what they mean."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from iobands.model.rejected import Unusable

#: A test case in a report, or another part of it.
Entry = Mapping[str, Any]


def load(path: Path) -> Entry:
    """Return the content of a run report.

    Raises:
        Unusable: it cannot be read, or is no JSON object.
    """
    try:
        if path.is_fifo() or path.is_char_device():  # reading one waits for a writer, or never ends
            raise Unusable("cannot be read: no regular file")
        report = json.loads(path.read_bytes())
    except OSError as error:
        raise Unusable(f"cannot be read: {error.strerror or error}") from error
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


def table_of(report: Entry, key: str) -> Entry:
    """Return a part of a report that has parts itself.

    Raises:
        Unusable: the report has no such part.
    """
    value = report.get(key)
    if not isinstance(value, dict):
        raise Unusable(f"not a run report: no {key}")
    return value
