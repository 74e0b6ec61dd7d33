"""ReFrame's run reports, which also have the runs without a line in a perflog.

The form is the one of ReFrame 4.10 (data version 4).
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from iobands.model import (
    PATH_PART,
    SCHEDULED,
    SERIES_FIELDS,
    CheckRun,
    Rejected,
    RunReports,
    Unusable,
    canonical,
    entries,
    from_unix,
    interval_of,
    not_read,
)

_VALUE: Final = 0  # of a performance tuple: value, reference, lower, upper, unit, result
_NOT_RUN: Final = frozenset({"skip", "fail_deps"})
#: Where an entry has the name of what it examines, by what kind of thing that is.
_NAMED_IN: Final = {
    "file system": "file_system",
    "environment": "environ",
    "partition": "partition",
}

# As SpawnedProcessError of ReFrame 4.10 has it.
_QUOTED: Final = re.compile(
    r"command '(?P<command>[^']*)'.*? exit code \d+:.*?"
    r"--- stderr ---\n(?P<said>.*?)\n?--- stderr ---",
    re.DOTALL,
)
#: The entries of a site file that a scheduler may refuse, with their variables.
_REFUSED: Final = {
    "account": "IOBANDS_ACCOUNT",
    "reservation": "IOBANDS_RESERVATION",
    "qos": "IOBANDS_QOS",
}
#: The parts of a report that are read here, beside the fields of a series.
# fmt: off
_READ: Final = frozenset({
    "build_stderr", "dependencies_actual", "display_name", "examines", "fail_phase",
    "fail_reason", "file_system", "fixture", "interval_days", "job_completion_time_unix", "name",
    "nodes", "not_run", "perfvalues", "purpose", "result", "session", "size_gib", "skip_reason",
    "stagedir", "time_limit", "unique_name",
})
# fmt: on
#: A test case in a report, or another part of it.
Part = Mapping[str, Any]
_Key = tuple[str, ...]  # name, system with partition, and environment


def read_run_reports(
    directory: Path,
    system: str | None = None,
    within: timedelta = timedelta.max,
    until: datetime | None = None,
) -> RunReports:
    """Read the `<system>/reports/*.json` below `directory` of sessions `within` the newest one.

    If a series is overdue after `within`, older reports say nothing new. A session is never newer
    than the file of its report, so the newest files are read until one is too old. Sessions that
    ended after `until` are left out. Of several runs of a check in one report, as with retries, the
    last one counts. Damaged reports are rejected.
    """
    runs: list[CheckRun] = []
    newest: datetime | None = None
    rejected: list[Rejected] = []
    files = report_files(directory, system, rejected)
    for changed, path in sorted(_changes(files), reverse=True):
        if newest and newest.timestamp() - changed > within.total_seconds():
            break
        try:
            found = read_report(path)
        except Unusable as reason:
            if isinstance(reason.__cause__, OSError):
                rejected.append(not_read(path, reason.__cause__))
            else:
                rejected.append(Rejected(path, 0, str(reason)))
        else:
            if found and (until is None or found[0] <= until):
                end, of_report = found
                newest = max(newest or end, end)
                runs += of_report
    runs.sort(key=lambda run: (run.when, run.report))
    return RunReports(tuple(runs), newest, tuple(sorted(rejected, key=lambda each: each.path)))


def read_report(path: Path) -> tuple[datetime, list[CheckRun]] | None:
    """Return when the session ended and its runs, or None for a dry run.

    Raises:
        Unusable: the report cannot be read.
    """
    report = load_report(path)
    session = session_of(report)
    end = from_unix(number_of(session, "time_end_unix"))
    if end is None:
        raise Unusable("not a run report: no time_end_unix")
    if "--dry-run" in str(session.get("cmdline")).split():
        return None
    entries = list(entries_of(report))
    by_key = {_key(entry): entry for entry in entries}
    runs = (_run(entry, end, path, by_key) for entry in entries)
    return end, list({run.identity: run for run in runs}.values())


def _changes(paths: Iterable[Path]) -> Iterator[tuple[float, Path]]:
    """Yield the time of the last change with each file."""
    for path in paths:
        try:
            yield path.stat().st_mtime, path
        except OSError:
            yield math.inf, path  # reading it gives the reason


def _run(entry: Part, end: datetime, path: Path, entries: Mapping[_Key, Part]) -> CheckRun:
    def text(name: str) -> str:
        value = entry.get(name)
        return value if isinstance(value, str) else ""

    def place(name: str) -> str:
        return text(name) if re.fullmatch(PATH_PART, text(name)) else "unnamed"

    fields = {
        name: canonical(value)
        for name in SERIES_FIELDS
        if isinstance(value := entry.get(name), str | int | float | None)
        if name in entry and value != "<undefined>"
    }
    lacks, why = _lacks(entry, entries) or (None, None)
    return CheckRun(
        name=text("display_name") or text("name"),
        system=place("system"),
        partition=place("partition"),
        environ=text("environ"),
        fields=fields,
        fixture=entry.get("fixture") is True,
        result=text("result"),
        phase=text("fail_phase") or None,
        reason=(why if lacks else _reason(text("fail_reason"), entry)) or None,
        recorded=_recorded(entry.get("perfvalues")),
        when=from_unix(number_of(entry, "job_completion_time_unix")) or end,
        report=path,
        examines=_examined(entry),
        lacks=lacks,
        size_gib=number_of(entry, "size_gib"),
        interval=interval_of(number_of(entry, "interval_days")),
        session=text("session") or f"{path.parent.parent.name}/{path.name}",
        node_hours=(number_of(entry, "nodes") or 0) * (number_of(entry, "time_limit") or 0) / 3600,
        purpose=text("purpose") or SCHEDULED,
        scheduler=text("scheduler"),
    )


def _reason(said: str, entry: Part) -> str:
    """Return why a check failed in one line, without the source lines that ReFrame quotes."""
    if entry.get("result") == "fail_deps":
        return "not run, as a check that it depends on failed"
    if entry.get("result") == "skip":
        # ReFrame does not report its own; the checks have it in a variable
        said = str(canonical(entry.get("skip_reason")) or "")
    if words := _words_of_command(said):
        return words
    lines = [line for line in said.splitlines() if not line.startswith("|")]
    reason = " ".join(" ".join(lines).split()).removesuffix(":")
    if entry.get("fail_phase") == "compile_wait" and entry.get("build_stderr"):
        # The compiler's messages are in a file that ReFrame does not quote; no compiler ran where
        # the session was ended before.
        reason += f"; see {entry.get('stagedir')}/{entry['build_stderr']}"
    return reason


def _words_of_command(reason: str) -> str | None:
    """Return what a failed command, such as `sbatch`, said and which entry to set, if one failed.

    The words come first, as the digest cuts long reasons off.
    """
    found = _QUOTED.search(reason)
    if found is None:
        return None
    said = " ".join(found["said"].split()) or "it said nothing"
    entry = next((name for name in _REFUSED if name in said.lower()), None)
    remedy = f"; set {entry} in the site file, or {_REFUSED[entry]}" if entry else ""
    program = found["command"].partition(" ")[0]
    return f"{program}: {said.removeprefix(f'{program}: error: ')}{remedy}"


def _examined(entry: Part) -> str | None:
    """Return the name that a preflight check examines, None for other checks."""
    name = entry.get(_NAMED_IN.get(str(entry.get("examines")), ""))
    return name if isinstance(name, str) else None


def _lacks(
    entry: Part, entries: Mapping[_Key, Part], seen: frozenset[_Key] = frozenset()
) -> tuple[str, str] | None:
    """Return what a failed preflight check found unfit, or kept a check from running, and why.

    ReFrame says only that a dependency failed. `seen` are the cases that led here: a damaged report
    may have a cycle.
    """
    subject, not_run = _examined(entry), entry.get("not_run")
    result = str(entry.get("result"))
    if subject and result == "fail":
        reason = str(entry.get("fail_reason"))
        first = (reason.splitlines() or [""])[0].removeprefix("sanity error: ")
        return subject, _words_of_command(reason) or first
    if result not in _NOT_RUN:
        return None
    if isinstance(not_run, str) and isinstance(entry.get("file_system"), str):
        return entry["file_system"], not_run
    needed = entry.get("dependencies_actual")
    for names in needed if isinstance(needed, list) else ():
        key = tuple(map(str, names)) if isinstance(names, list) else ()
        if key in entries and key not in seen:
            lack = _lacks(entries[key], entries, seen | {key})
            if lack:
                return lack
    return None


def _key(entry: Part) -> _Key:
    where = f"{entry.get('system')}:{entry.get('partition')}"
    return str(entry.get("unique_name")), where, str(entry.get("environ"))


def _recorded(values: object) -> frozenset[str]:
    """Return the variables with a value; ReFrame's keys are `system:partition:variable`."""
    if not isinstance(values, dict):
        return frozenset()
    return frozenset(
        key.rsplit(":", 1)[-1]
        for key, figures in values.items()
        if isinstance(figures, list) and figures and isinstance(canonical(figures[_VALUE]), float)
    )


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


def reduced_report(path: Path) -> bytes:
    """Return a run report without what is not read here, some thirtieth of it.

    Raises:
        Unusable: it cannot be read, or is no run report.
    """
    report = load_report(path)
    wanted = _READ | {*SERIES_FIELDS}
    cases = [{k: v for k, v in each.items() if k in wanted} for each in entries_of(report)]
    said = {k: v for k, v in session_of(report).items() if k in {"time_end_unix", "cmdline"}}
    return json.dumps({"session_info": said, "runs": [{"testcases": cases}]}).encode()


def load_report(path: Path) -> Part:
    """Return the content of a run report.

    Raises:
        Unusable: it cannot be read, or is no JSON object; of the first, the cause is an OSError.
    """
    try:
        if path.is_fifo() or path.is_char_device():  # reading one waits for a writer, or never ends
            raise Unusable("cannot be read: not a regular file")
        report = json.loads(path.read_bytes())
    except OSError as error:
        raise Unusable(not_read(path, error).reason) from error
    except (ValueError, RecursionError) as error:  # not JSON, or not UTF-8
        raise Unusable(f"not JSON: {error}".splitlines()[0]) from error
    if not isinstance(report, dict):
        raise Unusable("not a run report: not an object")
    return report


def entries_of(report: Part) -> Iterator[Part]:
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


def session_of(report: Part) -> Part:
    """Return what a report says of its session.

    Raises:
        Unusable: the report says nothing of it.
    """
    value = report.get("session_info")
    if not isinstance(value, dict):
        raise Unusable("not a run report: no session_info")
    return value


def number_of(table: Part, name: str) -> float | None:
    """Return a finite number in a part of a report, or None."""
    value = table.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= sys.float_info.max else None


def totals_of(report: Part) -> tuple[dict[str, int], dict[str, float]]:
    """Return how many test cases a session had, and where its time went, in seconds.

    The cases that `ran`, and of these `failed`, were `aborted` or `skipped`. The `total` time; of
    it `build` and `checks`, those that measured; of these `program`, and of that `io`, which was
    measured. The rest of `program` starts MPI, makes data and verifies it.

    Raises:
        Unusable: the report is not one of ReFrame's.
    """
    said = session_of(report)
    names = {"ran": "cases", "failed": "failures", "aborted": "aborted", "skipped": "skipped"}
    counts = {name: number_of(said, f"num_{key}") for name, key in names.items()}
    if counts["ran"] is None:
        raise Unusable("not a run report: no num_cases")
    spent = dict.fromkeys(("total", "build", "checks", "program", "io"), 0.0)
    spent["total"] = number_of(said, "time_elapsed") or 0.0
    for entry in entries_of(report):
        spent["build"] += number_of(entry, "time_compile") or 0.0
        if measured := number_of(entry, "seconds_io"):
            spent["checks"] += number_of(entry, "time_total") or 0.0
            spent["program"] += number_of(entry, "seconds_program") or 0.0
            spent["io"] += measured
    return (
        {name: int(count) for name, count in counts.items() if count is not None},
        {name: round(seconds, 2) for name, seconds in spent.items()},
    )
