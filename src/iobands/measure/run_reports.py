"""Reads ReFrame's run reports, which also list runs without a line in a perflog.

The format is the one of ReFrame 4.10 (data version 4).
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from iobands import model
from iobands.model import CheckRun, Rejected, RunReports, Unusable, canonical

_Type = TypeVar("_Type")
#: The reason of a job that was given up because Slurm does not report its state.
SILENT: Final = "Slurm does not say whether job"
_NOT_RUN: Final = frozenset({"skip", "fail_deps"})
#: The field with the name of what a preflight check examines, by the kind of thing.
_NAMES: Final = {"file system": "file_system", "environment": "environ", "partition": "partition"}

# The line before and after a command's stderr in SpawnedProcessError of ReFrame 4.10.
_STDERR_MARK: Final = "--- stderr ---"
#: The largest report that is read, in bytes: a session of 3,000 cases needs a tenth of it.
_LARGEST: Final = 2**28
#: An entry of a site file that a scheduler refuses; a limit of an account or a QOS is no such case.
_REFUSED: Final = re.compile(r"\b(account|reservation|qos)(?=\b|_)(?! policy)", re.IGNORECASE)
#: The fields of a test case that are read here, besides the series fields.
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


class Report(NamedTuple):
    """A run report: what it says about its session, and its test cases."""

    session: Part
    cases: Sequence[Part]


def read_run_reports(
    directory: Path,
    system: str | None = None,
    within: timedelta = timedelta.max,
    until: datetime | None = None,
    *,
    as_of: bool = False,
) -> RunReports:
    """Read `<system>/reports/*.json` below `directory`, back to `within` before the newest session.

    If a series is overdue after `within`, older reports say nothing new. A session is never newer
    than the file of its report, so files are read from the newest until one is too old. Sessions
    that ended after `until` are left out. Of several runs of a check in one report, as after
    retries, the last one counts. Damaged reports are rejected; with `as_of`, only up to `until`.
    """
    runs: list[CheckRun] = []
    newest: datetime | None = None
    rejected: list[Rejected] = []
    for changed, path in reversed(by_age(report_files(directory, system, rejected))):
        if newest and newest.timestamp() - changed > within.total_seconds():
            break
        try:
            end, of_report = read_report(path)
        except Unusable as reason:
            why = reason.__cause__
            unread = model.not_read(path, why) if isinstance(why, OSError) else None
            if unread or not (as_of and until) or changed <= until.timestamp():
                rejected.append(unread or Rejected(path, 0, str(reason)))
        else:
            if end and (until is None or end <= until):
                newest = max(newest or end, end)
                runs += of_report
    runs.sort(key=lambda run: (run.when, run.report))
    return RunReports(tuple(runs), newest, tuple(sorted(rejected, key=lambda each: each.path)))


def by_age(paths: Iterable[Path]) -> list[tuple[float, Path]]:
    """Return the files with their times of change, oldest first; inaccessible ones come last."""

    def changed(path: Path) -> float:
        try:
            return path.stat().st_mtime
        except OSError:
            return math.inf  # reading it gives the reason

    return sorted((changed(path), path) for path in paths)


def read_report(path: Path) -> tuple[datetime | None, list[CheckRun]]:
    """Return the end of the session and its runs, None and [] for a dry run, or raise Unusable."""
    session, cases = load_report(path)
    if (end := model.from_unix(_number(session, "time_end_unix"))) is None:
        raise Unusable("not a run report: no time_end_unix")
    if "--dry-run" in str(session.get("cmdline")).split():
        return None, []
    by_key = {_key(case): case for case in cases}
    runs = (_run(case, end, path, by_key) for case in cases)
    return end, list({run.identity: run for run in runs}.values())


def _run(case: Part, end: datetime, path: Path, cases: Mapping[_Key, Part]) -> CheckRun:
    def text(name: str) -> str:
        value = case.get(name)
        return value if isinstance(value, str) else ""

    def place(name: str) -> str:
        return text(name) if re.fullmatch(model.PATH_PART, text(name)) else "unnamed"

    fields = {
        name: canonical(value)
        for name in model.SERIES_FIELDS
        if isinstance(value := case.get(name, "<undefined>"), str | int | float | None)
        if value != "<undefined>"
    }
    lacks, why = _lacks(case, cases) or (None, None)
    seconds = (_number(case, "nodes") or 0) * (_number(case, "time_limit") or 0)
    values = case.get("perfvalues")
    return CheckRun(
        name=model.check_name(text("display_name")).strip() or text("name").strip() or "unnamed",
        system=place("system"),
        partition=place("partition"),
        environ=text("environ"),
        fields=fields,
        fixture=case.get("fixture") is True,
        result=text("result"),
        phase=text("fail_phase") or None,
        reason=(why if lacks else _reason(text("fail_reason"), case)) or None,
        # ReFrame's keys are `system:partition:variable`
        recorded=frozenset(
            key.rsplit(":", 1)[-1]
            for key, figures in (values.items() if isinstance(values, dict) else ())
            if isinstance(figures, list) and isinstance(canonical([*figures, None][0]), float)
        ),
        when=model.from_unix(_number(case, "job_completion_time_unix")) or end,
        report=path,
        examines=_examined(case),
        lacks=lacks,
        size_gib=_number(case, "size_gib"),
        interval=model.interval_of(_number(case, "interval_days")),
        session=text("session") or f"{path.parent.parent.name}/{path.name}",
        node_hours=seconds / 3600,
        purpose=text("purpose") or model.SCHEDULED,
        scheduler=text("scheduler"),
    )


def _reason(said: str, case: Part) -> str:
    """Return why a check failed in one line, without the source lines that ReFrame quotes."""
    if case.get("result") == "fail_deps":
        return "not run, as a check that it depends on failed"
    if case.get("result") == "skip":
        # ReFrame does not report why it skipped a check; the checks keep it in a variable
        said = str(canonical(case.get("skip_reason")) or "")
    if words := _words_of_command(said):
        return words
    lines = [line for line in said.splitlines() if not line.startswith("|")]
    reason = " ".join(" ".join(lines).split()).removesuffix(":")
    if case.get("fail_phase") == "compile_wait" and case.get("build_stderr"):
        # ReFrame does not quote the file with the compiler's messages. Its name is empty if the
        # session ended before a compiler ran.
        reason += f"; see {case.get('stagedir')}/{case['build_stderr']}"
    return reason


def _words_of_command(reason: str) -> str | None:
    """Return the message of a failed command, such as `sbatch`, and which entry to set, or None.

    The message comes first, as the digest cuts long reasons off.
    """
    before, _, rest = reason.partition(f"{_STDERR_MARK}\n")
    words, is_quoted, _ = rest.partition(_STDERR_MARK)
    command, _, ended = before.partition("command '")[2].partition("'")
    if not (is_quoted and re.search(r" exit code \d+:", ended)):
        return None
    program = command.partition(" ")[0]
    said = re.sub(rf"(\A|\s){re.escape(program)}: (error: )?", "; ", words).removeprefix("; ")
    said = " ".join(said.split()) or "it said nothing"
    remedy = ""
    if refused := _REFUSED.search(said):
        entry = refused[1].lower()
        remedy = f"; set {entry} in the site file, or IOBANDS_{entry.upper()}"
    return f"{program}: {said}{remedy}"


def _examined(case: Part) -> str | None:
    """Return the name of what a preflight check examines, None for other checks."""
    name = case.get(_NAMES.get(str(case.get("examines")), ""))
    return name if isinstance(name, str) else None


def _lacks(case: Part, cases: Mapping[_Key, Part]) -> tuple[str, str] | None:
    """Return what is unfit, and why, if that failed a preflight check or kept a check from running.

    ReFrame says only that a dependency failed, which may have depended on another one.
    """
    waiting, seen = [case], set[_Key]()
    while waiting:
        each = waiting.pop()
        subject, result, not_run = _examined(each), str(each.get("result")), each.get("not_run")
        if subject and result == "fail":
            reason = str(each.get("fail_reason"))
            first = (reason.splitlines() or [""])[0].removeprefix("sanity error: ")
            return subject, _words_of_command(reason) or first
        if result not in _NOT_RUN:
            continue
        if isinstance(not_run, str) and isinstance(each.get("file_system"), str):
            return each["file_system"], not_run
        needed = each.get("dependencies_actual")
        for names in reversed(needed) if isinstance(needed, list) else ():
            key = tuple(map(str, names)) if isinstance(names, list) else ()
            if key in cases and key not in seen:
                seen.add(key)
                waiting.append(cases[key])
    return None


_Key = tuple[str, ...]  # name, system with partition, and environment


def _key(case: Part) -> _Key:
    where = f"{case.get('system')}:{case.get('partition')}"
    return str(case.get("unique_name")), where, str(case.get("environ"))


def report_files(
    perflogs: Path, system: str | None = None, rejected: list[Rejected] | None = None
) -> list[Path]:
    """Return the reports of a system or all; `rejected` gets directories that cannot be listed."""
    failed = [] if rejected is None else rejected
    return [
        path
        for place in model.entries(perflogs, failed)
        if system in {None, place.name}
        for path in model.entries(place / "reports", failed)
        if path.suffix == ".json"
    ]


def reduced_report(path: Path) -> bytes:
    """Return a report with only the fields that are read here, a thirtieth; or raise Unusable."""
    session, found = load_report(path)
    wanted = _READ | {*model.SERIES_FIELDS}
    cases = [{k: v for k, v in each.items() if k in wanted} for each in found]
    said = {k: v for k, v in session.items() if k in {"time_end_unix", "cmdline"}}
    return json.dumps({"session_info": said, "runs": [{"testcases": cases}]}).encode()


def load_report(path: Path) -> Report:
    """Return the content of a run report.

    Raises Unusable if it cannot be read (the cause is an OSError), or is not a run report.
    """
    try:
        # a store keeps an empty file as a line break
        report = json.loads(model.read_small(path, _LARGEST).strip())
    except OSError as error:
        raise Unusable(model.not_read(path, error).reason) from error
    except (ValueError, RecursionError) as error:  # not JSON, or not UTF-8
        raise Unusable(f"not JSON: {error}".splitlines()[0]) from error
    if not isinstance(report, dict):
        raise Unusable("not a run report: not an object")
    session = _of_type(dict, report, "session_info")
    runs = _of_type(list, report, "runs")
    cases = [each for run in runs for each in _of_type(list, run, "testcases", "a run without")]
    if not all(isinstance(each, dict) for each in cases):
        raise Unusable("not a run report: a test case that is not an object")
    return Report(session, cases)


def _of_type(type_: type[_Type], part: object, name: str, lacks: str = "no") -> _Type:
    value = part.get(name) if isinstance(part, dict) else None
    if not isinstance(value, type_):
        raise Unusable(f"not a run report: {lacks} {name}")
    return value


def _number(table: Part, name: str) -> float | None:
    value = table.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= sys.float_info.max else None


def totals_of(report: Report) -> tuple[dict[str, int], dict[str, float]]:
    """Return the numbers of test cases of a session, and its times in seconds.

    Numbers: the cases that `ran`, and how many of them `failed`, were `aborted` or `skipped`.
    Times: `total`, with the parts `build` and `checks`, those that measured; `checks` contains
    `program`, and that the measured `io`. Its rest starts MPI, makes data and verifies it. Raises
    Unusable if the report is not one of ReFrame's.
    """
    names = {"ran": "cases", "failed": "failures", "aborted": "aborted", "skipped": "skipped"}
    counts = {name: _number(report.session, f"num_{key}") for name, key in names.items()}
    if counts["ran"] is None:
        raise Unusable("not a run report: no num_cases")
    measured = [case for case in report.cases if _number(case, "seconds_io")]
    spent = {"total": _number(report.session, "time_elapsed") or 0.0}
    for name, cases, key in (
        ("build", report.cases, "time_compile"),
        ("checks", measured, "time_total"),
        ("program", measured, "seconds_program"),
        ("io", measured, "seconds_io"),
    ):
        spent[name] = sum(_number(case, key) or 0.0 for case in cases)
    return (
        {name: int(count) for name, count in counts.items() if count is not None},
        {name: round(seconds, 2) for name, seconds in spent.items()},
    )
