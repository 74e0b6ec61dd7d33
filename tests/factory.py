"""Perflogs, run reports and bands as text, in the form of contracts 2 and 3."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from iobands.measure.lock import begin_record, new_holder, write_record
from iobands.model import COMPLETED

#: The header of a perflog according to contract 2.
COLUMNS = (
    (Path(__file__).parent / "contracts" / "golden" / "perflog-header.txt")
    .read_text(encoding="utf-8")
    .strip()
)

#: A run on a local disk, as ReFrame writes it.
ROW = dict.fromkeys(COLUMNS.split("|"), "null") | {
    "job_completion_time": "2026-11-20T01:29:12+00:00",
    "result": "pass",
    "display_name": "BenchioFPP %file_system=disk %stripe_count=null",
    "hashcode": "c939327c",
    "system": "here",
    "partition": "local",
    "environ": "builtin",
    "jobid": "5649",
    "job_nodelist": "vm",
    "version": "4.10.4",
    "suite_version": "0.1.0",
    "tool": "benchio",
    "tool_version": "1.0",
    "pattern": "fpp",
    "interface": "posix",
    "file_system": "disk",
    "medium": "hdd",
    "file_system_type": "posix",
    "transport": "default",
    "hints": "default",
    "fsync": "true",
    "cache": "dropped",
    "nodes": "1",
    "tasks": "4",
    "gib": "0.5",
    "fullness_percent": "12.5",
    "load_per_node": "0.5",
    "other_jobs": "0",
    "band_verdict": "write_bw=no band",
    "perf_var": "write_bw",
    "perf_value": "1.5",
    "perf_unit": "GiB/s",
    "perf_ref": "0",
    "perf_result": "pass",
}

NOW = datetime(2026, 11, 21, 1, 30, tzinfo=timezone.utc)


def days_ago(days: float) -> str:
    """Return the time this many days before NOW in the format of a perflog."""
    return (NOW - timedelta(days=days)).isoformat()


def line(**fields: object) -> str:
    """Return one line of a perflog without its newline: ROW with `fields` replaced."""
    row = {**ROW, **{name: str(value) for name, value in fields.items()}}
    return "|".join(row[name] for name in COLUMNS.split("|"))


def daily(values: Iterable[float | None], *, last: float = 0.25, **fields: object) -> list[str]:
    """Return a line for each value, a day apart, the last one `last` days before NOW."""
    values = list(values)
    return [
        line(
            job_completion_time=days_ago(last + len(values) - 1 - index),
            perf_value="null" if value is None else value,
            **({"result": "fail", "fail_phase": "sanity"} if value is None else {}),
            **fields,
        )
        for index, value in enumerate(values)
    ]


def write_perflog(
    perflogs: Path, lines: Iterable[str], name: str = "BenchioFPP.log", system: str = "here"
) -> Path:
    """Write a perflog with its header below `perflogs`, and return its path."""
    path = perflogs / system / "local" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{text}\n" for text in (COLUMNS, *lines)), encoding="utf-8")
    return path


def case(**fields: object) -> dict[str, Any]:
    """Return a test case of a run report that failed in setup, with `fields` replaced."""
    names = ("tool", "pattern", "interface", "file_system", "transport", "hints")
    return {
        "name": "BenchioFPP",
        "display_name": ROW["display_name"],
        "system": "here",
        "partition": "local",
        "environ": "builtin",
        "fixture": False,
        "result": "fail",
        "fail_phase": "setup",
        "fail_reason": "oserror: no such\nfile system",
        "job_completion_time_unix": None,
        "perfvalues": {},
        **{name: ROW[name] for name in names},
        "stripe_count_asked": None,
        "nodes": 1,
        "tasks": 4,
        "gib": 0.5,
        **fields,
    }


def write_report(
    perflogs: Path,
    cases: Iterable[Mapping[str, Any]],
    *,
    days: float = 0,
    number: int = 0,
    system: str = "here",
) -> Path:
    """Write a report of a run that ended `days` before NOW below `perflogs`; return its path."""
    cases = list(cases)
    path = perflogs / system / "reports" / f"run-report-{number}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    end = (NOW - timedelta(days=days)).timestamp() + 0.73
    report = {
        "session_info": {"time_end_unix": end, "num_cases": len(cases)},
        "runs": [{"num_cases": len(cases), "num_failures": 0, "testcases": cases}],
        "restored_cases": [],
    }
    path.write_text(json.dumps(report), encoding="utf-8")
    return path


def write_session(perflogs: Path, began: datetime) -> None:
    """Record a session that began at `began` and is completed."""
    holder = replace(new_holder("iobands run"), began=began.isoformat())
    begun = begin_record(perflogs, holder, "daily", None)
    write_record(perflogs, replace(begun, ended=datetime.now(timezone.utc), how=COMPLETED))


def write_bands(
    directory: Path,
    quartiles: tuple[float, float, float] = (1, 1.5, 2),
    since: str = "2026-01-01",
    **match: object,
) -> Path:
    """Write the bands of the system `here`: one band, for `match` or else for all its writes."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "here.yaml"
    lower, median, upper = quartiles
    band = {
        "match": match or {"variable": "write_bw"},
        "unit": "GiB/s",
        "lower_quartile": lower,
        "median": median,
        "upper_quartile": upper,
    }
    epoch = {"name": "first", "since": since, "source": "a test", "bands": [band]}
    # JSON is YAML
    path.write_text(json.dumps({"schema": 1, "system": "here", "epochs": [epoch]}))
    return path
