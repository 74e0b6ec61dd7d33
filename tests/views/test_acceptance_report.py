"""What the report on an acceptance says about its runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

from iobands.bands.contract import (
    AcceptedLine,
    ContractLine,
    Decision,
    MeasuredBy,
    Outcome,
    Promise,
)
from iobands.views import acceptance


def test_a_job_that_was_not_recorded_is_not_called_none() -> None:
    line = ContractLine("reads", {"variable": "read_bw"}, Promise(1.5, "GiB/s", 5))
    decision = Decision(Outcome.UNDECIDED, 1, 1.0, (0.5,), 3.0, -3.0)
    when = datetime(2026, 11, 20, 1, 30, tzinfo=timezone.utc)
    run = {"job_completion_time": when, "perf_value": 1.5, "jobid": None}
    by = MeasuredBy("BenchioFPP", "local", "builtin")
    said = "\n".join(acceptance._of_line(AcceptedLine(line, by, decision, (run,)), None))
    row = "| 2026-11-20 01:30:00 | not recorded | not recorded | 1.5 | +0.50 |"
    assert row in said


def test_runs_that_do_not_correlate_do_not_count_for_less() -> None:
    promise = Promise(1.5, "GiB/s", 5)
    said = "; correlated runs, over 36 h, count for less"
    assert acceptance._correlated(replace(promise, lasting_hours=36)) == said
    assert acceptance._correlated(replace(promise, lasting_hours=0)) == ""


def test_what_some_runs_did_not_record_has_no_unit() -> None:
    runs = [{"fullness_percent": 60.5}, {"fullness_percent": None}, {}]
    assert acceptance._values(runs, "fullness_percent") == "not recorded in 2; 60.5 % in 1"
    assert acceptance._values(runs[1:], "fullness_percent") == "not recorded"
    many = [{"load_per_node": each / 4} for each in range(9)]
    assert acceptance._values([*many, {}], "load_per_node") == "0 to 2; not recorded in 1"


def test_of_one_run_it_says_does_and_of_several_do() -> None:
    assert [acceptance._count(runs) for runs in (1, 2)] == ["does not count", "do not count"]
