"""Reading ReFrame's run reports: the runs that left no line in a perflog are told of here alone.

ReFrame writes no perflog line for a run that failed before its performance stage. May know: the
contracts, and the form of the reports (ReFrame 4.10, data version 4).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from iobands.readers.dependencies import Lacks, examined
from iobands.readers.rejected import Rejected, Unusable
from iobands.vocabulary import SERIES_FIELDS, canonical

_VALUE: Final = 0  # of a performance tuple: value, reference, lower, upper, unit, result


@dataclass(frozen=True)
class RunCase:
    """One test case of a run report.

    `fields` are the series fields that the check had set by the end; `recorded` are the variables
    for which it recorded a value. `when` is when its job completed, or when ReFrame ended where
    there was no job, in whole seconds as in perflogs. `reason` is a single line.
    `examines` names the file system, environment or partition that a check of the environment
    looks at, and `lacks` the one that it found unfit, or without which another was not run.
    """

    name: str
    system: str
    partition: str
    environ: str
    fields: Mapping[str, float | str | None]
    fixture: bool
    result: str
    phase: str | None
    reason: str | None
    recorded: frozenset[str]
    when: datetime
    report: Path
    examines: str | None = None
    lacks: str | None = None

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What is the same in every run of one case."""
        return (self.system, self.partition, self.environ, self.name)


@dataclass(frozen=True)
class RunReports:
    """The cases of all reports, in the order of time, and the reports that could not be read."""

    cases: tuple[RunCase, ...]
    newest: datetime | None
    rejected: tuple[Rejected, ...]


def read_run_reports(directory: Path, system: str | None = None) -> RunReports:
    """Read all `<system>/reports/*.json` below `directory`, or only those of `system`.

    Of a case that ran more than once in one report, as with retries, the last time counts.
    Damaged reports are returned as rejected; bad content never raises.
    """
    cases: list[RunCase] = []
    ends: list[datetime] = []
    rejected: list[Rejected] = []
    for path in report_files(directory, system):
        try:
            found = read_report(path)
        except Unusable as reason:
            rejected.append(Rejected(path, 0, str(reason)))
        else:
            if found:
                ends.append(found[0])
                cases.extend(found[1])
    cases.sort(key=lambda case: case.when)
    return RunReports(tuple(cases), max(ends, default=None), tuple(rejected))


def report_files(directory: Path, system: str | None = None) -> list[Path]:
    """Return the run reports below `directory`, in the order of their names."""
    return sorted(
        path
        for path in directory.glob("*/reports/*.json")
        if system is None or path.relative_to(directory).parts[0] == system
    )


def number_of_cases(path: Path) -> int:
    """Return how many test cases the first run of the report at `path` had.

    Raises:
        ValueError: the report cannot be read.
    """
    count = _table(_load(path), "session_info").get("num_cases")
    if isinstance(count, bool) or not isinstance(count, int):
        raise Unusable("not a run report: no num_cases")
    return count


def read_report(path: Path) -> tuple[datetime, list[RunCase]] | None:
    """Return when the session ended and its cases, or None for a dry run, which ran none.

    Raises:
        Unusable: the report cannot be read.
    """
    report = _load(path)
    session = _table(report, "session_info")
    end = _from_unix(session.get("time_end_unix"))
    if end is None:
        raise Unusable("not a run report: no time_end_unix")
    if "--dry-run" in str(session.get("cmdline")).split():
        return None
    last: dict[tuple[str, str, str, str], RunCase] = {}
    entries = list(_entries(report))
    lacks = Lacks(entries)
    for entry in entries:
        case = _case(entry, end, path, lacks)
        last[case.identity] = case
    return end, list(last.values())


def _load(path: Path) -> Mapping[str, Any]:
    try:
        report = json.loads(path.read_bytes())
    except OSError as error:
        raise Unusable(f"cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:  # not JSON, or not UTF-8
        raise Unusable(f"not JSON: {error}".splitlines()[0]) from error
    if not isinstance(report, dict):
        raise Unusable("not a run report: not an object")
    return report


def _entries(report: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    runs = report.get("runs")
    if not isinstance(runs, list):
        raise Unusable("not a run report: no runs")
    for run in runs:
        testcases = run.get("testcases") if isinstance(run, dict) else None
        if not isinstance(testcases, list):
            raise Unusable("not a run report: a run without testcases")
        for entry in testcases:
            if not isinstance(entry, dict):
                raise Unusable("not a run report: a test case that is not an object")
            yield entry


def _case(entry: Mapping[str, Any], end: datetime, path: Path, lacks: Lacks) -> RunCase:
    def text(name: str) -> str:
        value = entry.get(name)
        return value if isinstance(value, str) else ""

    fields = {
        name: canonical(value)
        for name in SERIES_FIELDS
        if isinstance(value := entry.get(name), str | int | float | None)
        if name in entry and value != "<undefined>"
    }
    lack = lacks.of(entry)
    return RunCase(
        name=text("display_name") or text("name"),
        system=text("system"),
        partition=text("partition"),
        environ=text("environ"),
        fields=fields,
        fixture=entry.get("fixture") is True,
        result=text("result"),
        phase=text("fail_phase") or None,
        reason=lack.why if lack else _reason(text("fail_reason"), entry) or None,
        recorded=_recorded(entry.get("perfvalues")),
        when=_from_unix(entry.get("job_completion_time_unix")) or end,
        report=path,
        examines=examined(entry),
        lacks=lack.subject if lack else None,
    )


def _reason(said: str, entry: Mapping[str, Any]) -> str:
    """Return why a case failed in one line, without the source lines that ReFrame quotes."""
    if entry.get("result") == "fail_deps":
        return "not run, as a check that it depends on failed"
    if entry.get("result") == "skip":
        # ReFrame leaves its own out; the checks say it in a variable.
        said = str(canonical(entry.get("skip_reason")) or "")
    lines = [line for line in said.splitlines() if not line.startswith("|")]
    reason = " ".join(" ".join(lines).split()).removesuffix(":")
    if entry.get("fail_phase") == "compile_wait":
        # what the compiler said is in a file that ReFrame does not quote
        reason += f"; see {entry.get('stagedir')}/{entry.get('build_stderr')}"
    return reason


def _recorded(values: object) -> frozenset[str]:
    """Return the variables with a value; ReFrame's keys are `system:partition:variable`."""
    if not isinstance(values, dict):
        return frozenset()
    return frozenset(
        key.rsplit(":", 1)[-1]
        for key, figures in values.items()
        if isinstance(figures, list) and figures and isinstance(canonical(figures[_VALUE]), float)
    )


def _from_unix(seconds: object) -> datetime | None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(math.floor(seconds), timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None


def _table(report: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = report.get(key)
    if not isinstance(value, dict):
        raise Unusable(f"not a run report: no {key}")
    return value
