"""The fault table: what the tests with the marker `fault` observed, written as docs/faults.md.

`@pytest.mark.fault(area, fault, expected)` makes a test a row of the table, or several rows. The
test injects the fault for real and passes the outcome to the fixture `observed`, with the name of
the fault if it has several. Several tests may share a row. A row without an observation by a test
that passed fails `make test-faults`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

#: The areas in the order of the table, and the program whose exit status is shown.
AREAS = {
    "kernel": "The kernel: `benchio`",
    "checks": "Checks: `reframe -r`",
    "session": "Sessions: `iobands run` and `reframe -r`",
    "directories": "Run directories: `iobands clean`",
    "perflogs": "Perflogs and run reports: `iobands status`",
    "reports": "Dashboards and figures: `iobands report`",
    "monitor": "The monitor's surroundings: any command",
    "people": "What people write: bands, actions, notifications",
}


def unwrapped(text: str) -> str:
    """Undo the wrapping of a digest's lines."""
    return re.sub(r"\n {4,}(?=\S)", " ", text)


_PREAMBLE = """\
# Faults

`make test-faults` wrote this table from what its tests observed: each fault was injected for \
real. In every row no rate is recorded that was not measured, no measured sample is lost silently, \
and what stays behind is named. "Next run" is the same command after the fault was removed.

A message is shortened: `…` stands for the directories of the test, `HOST` for the machine. \
`TIME`, `PID`, `RANDOM` and `N` stand for a time, a process, a part of a name and a number that \
differ from run to run.
"""
_CELLS = ("message", "exit_status", "left", "next_run")
_LONGEST = 220  # characters of a message

#: The type of the fixture `observed`.
Observed = Callable[..., None]


@pytest.fixture
def observed(
    record_property: Callable[[str, object], None], request: pytest.FixtureRequest
) -> Observed:
    """Record the outcome of a fault: the message, the return code and the files `left` behind."""

    rows = [marker.args[1] for marker in request.node.iter_markers("fault")]

    def observe(
        fault: str = "",
        *,
        message: str,
        exit_status: int,
        left: Iterable[object],
        next_run: bool,
    ) -> None:
        name = fault or rows[0]
        assert name in rows
        assert next_run, "the run after the fault is not right"
        names = ", ".join(sorted({shortened(Path(str(each)).name) for each in left}))
        status = 128 - exit_status if exit_status < 0 else exit_status  # as a shell reports it
        cells = (shortened(message), str(status), names or "nothing", "right")
        record_property("fault observed", (name, dict(zip(_CELLS, cells, strict=True))))

    return observe


def shortened(message: str) -> str:
    """Return the first line of a message with placeholders for what differs from run to run."""
    text = unwrapped(message.strip()).partition("\n")[0]
    for pattern, replacement in (
        (r"(?<![\w.…])(?:/[^/\s:,;'\"]+)+/(?=[^/\s:,;'\"]+)", "…/"),
        (re.escape(os.uname().nodename), "HOST"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[+-]\d\d:\d\d|Z)?", "TIME"),
        (r"\b\d\d [A-Z][a-z]{2} \d\d:\d\d", "TIME"),
        (r"(?<=process )\d+|(?<=pid )\d+(?:, \d+)*|(?<=jobid=)\d+|(?<=HOST\.)\d+", "PID"),
        (r"(?<=JOB )\d+|(?<=STEP )\d+\.\d+", "N"),
        (r"(?<=newest run )(?:\d+ \w+ ago|just now)", "… ago"),
        (r"(?<=iobands-)(\w+)-\w{10}\b", r"\1-RANDOM"),
        (r"\b[0-9a-f]{32}\b", "RANDOM"),
        (r"(?<=127\.0\.0\.1:)\d+|(?<=\(char )\d+", "N"),
        (r"\d+(?= bytes free)|(?<=, repeat )\d+", "N"),
        (r"\d+ of \d+(?= test cases)", "N of N"),
        (r"\d+\.\d+(?= ?s \()|(?<=timed out \()\d+\.\d+", "N"),
    ):
        text = re.sub(pattern, replacement, text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


@dataclass
class _Row:
    area: str
    fault: str
    expected: str
    order: float
    observed: list[dict[str, str]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def cell(self, name: str) -> str:
        texts = list(dict.fromkeys(each[name] for each in self.observed))
        if name == "message":
            text = next(filter(None, texts), "")
            return (f"`` {text} ``" if "`" in text else f"`{text}`") if text else "none"
        return ", ".join(texts)


class FaultTable:
    """Collects the rows from the reports of all workers, and writes the table."""

    def __init__(self, path: Path) -> None:
        """Write it to `path`."""
        self._path = path
        self._missing: list[str] = []
        self._rows: dict[tuple[str, str], _Row] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect a test's observations, if it passed."""
        observed: list[Any] = [
            value for name, value in report.user_properties if name == "fault observed"
        ]
        for name, value in report.user_properties:
            if name != "fault":
                continue
            area, fault, expected, order = value
            row = self._rows.setdefault((area, fault), _Row(area, fault, expected, order))
            row.order = min(row.order, order)
            if report.outcome != "passed":
                row.missing.append(f"{report.nodeid}: {report.outcome} in {report.when}")
            elif report.when == "call":
                found = [cells for of, cells in observed if of == fault]
                row.observed += found
                if not found:
                    row.missing.append(f"{report.nodeid}: observed nothing of {fault}")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the table if no cell of it is empty."""
        self._missing = [text for row in self._rows.values() for text in row.missing]
        if self._missing or not self._rows:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        else:
            self._path.write_text(self.text(), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say where the table is, or why it was not written."""
        for text in self._missing:
            terminalreporter.write_line(f"empty cells: {text}")
        if not self._missing:
            terminalreporter.write_line(f"{len(self._rows)} faults: {self._path}")

    def text(self) -> str:
        """Return the table as Markdown."""
        lines, number = [_PREAMBLE], 0
        for area, title in AREAS.items():
            rows = sorted(
                (row for row in self._rows.values() if row.area == area), key=lambda row: row.order
            )
            if rows:
                lines += [
                    f"## {title}\n",
                    "| # | Fault | Expected | Message | Exit status | Left behind | Next run |",
                    "|---|---|---|---|---|---|---|",
                ]
            for row in rows:
                number += 1
                cells = [str(number), row.fault, row.expected, *map(row.cell, _CELLS)]
                lines.append(
                    f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
                )
            if rows:
                lines.append("")
        return "\n".join(lines).rstrip() + "\n"


def mark_rows(items: list[pytest.Item]) -> None:
    """Note the row of each test in its report.

    Raises:
        UsageError: a marker does not have the form above, or its test does not use `observed`.
    """
    for order, item in enumerate(items):
        for number, marker in enumerate(reversed(list(item.iter_markers("fault")))):
            area, fault, expected = marker.args
            if area not in AREAS or "observed" not in getattr(item, "fixturenames", ()):
                raise pytest.UsageError(f"{item.nodeid}: fault({area!r}, ...)")
            item.user_properties.append(("fault", (area, fault, expected, order + number / 100)))
