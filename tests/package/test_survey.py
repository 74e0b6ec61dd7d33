"""Verdicts and states, from files to statuses, with figures worked out by hand."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from iobands.status.states import OWN_HISTORY, State, verdicts, worst
from iobands.status.survey import Survey, take_survey

from tests.package.factory import (
    NOW,
    ROW,
    case,
    daily,
    days_ago,
    line,
    write_bands,
    write_perflog,
    write_report,
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path


def survey(site: Path, **options: object) -> Survey:
    return take_survey(site / "perflogs", site / "bands", now=NOW, **options)


def log(site: Path, lines: list[str], name: str = "BenchioFPP.log") -> None:
    write_perflog(site / "perflogs", lines, name)


def only(found: Survey):
    (series,) = found.series
    return series


#: 1 to 20: quartiles 5.75, 10.5, 15.25 (type 7: 1 + 19 q), floor 5.75 (5.75 / 15.25)^1.5 = 1.3313
HISTORY = [float(value) for value in range(1, 21)]


@pytest.mark.parametrize(
    ("newest", "verdict"),
    [(1.3, "collapsed"), (1.4, "below"), (5.75, "within"), (15.25, "within"), (15.3, "above")],
)
def test_a_band_is_learnt_from_twenty_earlier_runs(site: Path, newest: float, verdict: str) -> None:
    log(site, daily([*HISTORY, newest]))
    status = only(survey(site)).status
    band = status.band
    assert (band.lower_quartile, band.median, band.upper_quartile) == (5.75, 10.5, 15.25)
    assert band.floor == pytest.approx(1.3313, abs=5e-5)
    assert (band.maximum, band.runs, band.source) == (20, 20, OWN_HISTORY)
    assert (status.verdict, status.provisional) == (verdict, True)
    assert status.state is State.HEALTHY  # whatever the verdict


def test_the_newest_run_is_not_in_its_own_band(site: Path) -> None:
    log(site, daily(HISTORY))
    status = only(survey(site)).status
    assert (status.state, status.verdict, status.band) == (State.CALIBRATING, "no band", None)
    assert (status.why, status.usable, status.runs) == ("20 of 20 runs", 19, 20)


def test_other_versions_and_failed_runs_teach_nothing(site: Path) -> None:
    rows = daily(HISTORY[:10], last=40, tool_version="0.9")
    rows += daily(HISTORY[:10], last=20, result="fail")
    rows += daily([5.0, 5.0, 5.0])
    log(site, rows)
    status = only(survey(site)).status
    assert (status.why, status.runs) == ("3 of 20 runs", 23)


def test_a_published_band_goes_before_the_series_own(site: Path) -> None:
    log(site, daily([*HISTORY, 6]))
    write_bands(site / "bands", (5, 11, 15))
    status = only(survey(site)).status
    assert (status.band.median, status.provisional, status.verdict) == (11, False, "within")
    assert (status.state, status.why) == (State.HEALTHY, "")


def test_runs_from_before_the_epoch_teach_nothing(site: Path) -> None:
    log(site, daily([*HISTORY, 1.9]))
    write_bands(site / "bands", since="2026-11-18", variable="read_bw")
    assert only(survey(site)).status.why == "3 of 20 runs"  # of 18, 19 and 20 November


def test_a_band_by_medium(site: Path) -> None:
    log(site, [*daily([1.2]), *daily([1.2], file_system="fast", medium="nvme")])
    write_bands(site / "bands", variable="write_bw", medium="nvme")
    found = {s.label: s.status.verdict for s in survey(site).series}
    assert found == {"disk fpp write_bw": "no band", "fast fpp write_bw": "within"}


def test_a_collapsed_run_is_a_sample(site: Path) -> None:
    log(site, daily([1.5, 0.1], result="fail", fail_phase="performance"))
    write_bands(site / "bands")
    values = {"here:local:write_bw": [0.1, 1.5, -0.9, None, "GiB/s", "fail"]}
    end = (NOW - timedelta(days=0.25)).timestamp() + 0.9
    write_report(
        site / "perflogs",
        [case(fail_phase="performance", perfvalues=values, job_completion_time_unix=end)],
    )
    found = survey(site)
    status = only(found).status
    assert (status.state, status.verdict, status.value) == (State.HEALTHY, "collapsed", 0.1)
    assert (found.exit_status, found.findings) == (0, ())


def test_a_newest_run_without_a_value_is_no_data(site: Path) -> None:
    log(site, daily([1.5, 1.6, None]))
    found = survey(site)
    status = only(found).status
    assert (status.state, status.value, status.runs) == (State.NO_DATA, 1.6, 2)
    assert status.why == "the run of 2026-11-20 19:30 failed in sanity"
    assert found.exit_status == 3


def test_an_earlier_run_without_a_value_is_past(site: Path) -> None:
    log(site, daily([1.5, None, 1.6]))
    assert only(survey(site)).status.state is State.CALIBRATING


def test_a_run_that_left_no_line_is_no_data(site: Path) -> None:
    log(site, [*daily([1.5]), *daily([2.5], perf_var="read_bw")])
    write_report(site / "perflogs", [case(perfvalues={"here:local:read_bw": [2.5]})])
    found = {s.label: s.status for s in survey(site).series}
    assert found["disk fpp read_bw"].state is State.CALIBRATING
    assert found["disk fpp write_bw"].why == (
        "the run of 2026-11-21 01:30 failed in setup: oserror: no such file system"
    )


def test_a_report_from_before_the_newest_sample_is_past(site: Path) -> None:
    log(site, daily([1.5]))
    write_report(site / "perflogs", [case()], days=1)
    assert only(survey(site)).status.state is State.CALIBRATING


def test_a_renamed_check_is_tied_by_its_fields(site: Path) -> None:
    log(site, daily([1.5]))
    write_report(site / "perflogs", [case(display_name="BenchioFPP %new=1")])
    found = survey(site)
    assert only(found).status.state is State.NO_DATA
    assert found.findings == ()


def test_a_pass_without_a_value_is_no_data(site: Path) -> None:
    log(site, daily([1.5]))
    write_report(site / "perflogs", [case(result="pass", fail_phase=None, fail_reason=None)])
    assert only(survey(site)).status.why == "the run of 2026-11-21 01:30 recorded no value"


@pytest.mark.parametrize(
    ("days", "overdue", "state"),
    [
        (3, 3, State.CALIBRATING),
        (3.01, 3, State.NO_DATA),
        (3.01, 4, State.CALIBRATING),
    ],
)
def test_an_overdue_sample(site: Path, days: float, overdue: int, state: State) -> None:
    log(site, daily([1.5], last=days))
    assert only(survey(site, overdue=timedelta(days=overdue))).status.state is state


def test_a_case_is_never_overdue(site: Path) -> None:
    log(site, daily([1.0], last=400, case="csc-aggregators 2"), "CscAggregators.log")
    assert only(survey(site, overdue=timedelta(days=3))).status.state is State.CALIBRATING


def test_a_check_that_somebody_stopped_has_not_failed(site: Path) -> None:
    log(site, daily([1.5]))
    stopped = {"result": "abort", "fail_phase": "startup", "fail_reason": "aborted"}
    write_report(site / "perflogs", [case(display_name="Ior", file_system="x", **stopped)])
    assert survey(site).findings == ()


def test_a_check_that_never_gave_a_series_is_a_finding(site: Path) -> None:
    log(site, daily([1.5]))
    entry = case(display_name="Ior", file_system="fast")
    write_report(site / "perflogs", [entry], days=1, number=0)
    found = survey(site)
    (finding,) = found.findings
    assert (finding.name, finding.phase, finding.system) == ("Ior", "setup", "here")
    assert finding.reason == "oserror: no such file system"
    assert found.exit_status == 3
    write_report(site / "perflogs", [{**entry, "result": "pass"}], number=1)
    assert survey(site).findings == ()


def test_a_finding_of_a_check_that_left_the_suite_ends(site: Path) -> None:
    log(site, daily([1.5]))
    write_report(site / "perflogs", [case(display_name="Ior", file_system="x")], days=4, number=0)
    assert len(survey(site).findings) == 1
    write_report(site / "perflogs", [], number=1)
    assert survey(site).findings == ()


def test_a_failed_build_is_a_finding_and_not_the_series(site: Path) -> None:
    log(site, daily([1.5]))
    write_report(
        site / "perflogs", [case(display_name="Build", fixture=True, fail_phase="compile")]
    )
    found = survey(site)
    assert [finding.phase for finding in found.findings] == ["compile"]
    assert only(found).status.state is State.CALIBRATING


def test_a_series_of_another_scale_is_superseded(site: Path) -> None:
    rows = daily([1.5], last=30, gib=1) + daily([1.5], last=20, gib=1, pattern="ssf")
    log(site, rows + daily([2.5], gib=2))
    found = survey(site)
    assert found.superseded == ("disk fpp gib=1 write_bw",)
    # another pattern is no other scale, and is missed
    assert {s.label: s.status.state for s in found.series} == {
        "disk fpp write_bw": State.CALIBRATING,
        "disk ssf write_bw": State.NO_DATA,
    }


def test_verdicts_of_all_points(site: Path) -> None:
    log(site, daily([0.5, 1.5, 0.2, 1.0, 3.0], last=0.25))
    write_bands(site / "bands", since=days_ago(3.5))
    series = only(survey(site))
    found = verdicts(series.key, series.samples, series.bands, series.status)
    # floor 1 (1/2)^1.5 = 0.354
    assert found == ["no band", "within", "collapsed", "within", "above"]


def test_no_series_is_unknown(site: Path) -> None:
    log(site, [])
    assert survey(site).exit_status == 3


def test_systems_are_kept_apart(site: Path) -> None:
    log(site, daily([1.5]))
    write_perflog(site / "perflogs", daily([2.5], system="there"), system="there")
    assert [s.label for s in survey(site).series] == [
        "disk fpp system=here write_bw",
        "disk fpp system=there write_bw",
    ]
    assert only(survey(site, system="there")).label == "disk fpp write_bw"


def test_the_order_of_exit_statuses() -> None:
    assert worst([]) == 0
    assert worst([0, 1]) == 1
    assert worst([0, 1, 3]) == 3
    assert worst([0, 1, 3, 2]) == 2
    assert {state.value: state.exit_status for state in State} == {
        "calibrating": 0,
        "healthy": 0,
        "improved": 0,
        "watch": 1,
        "degraded": 2,
        "no data": 3,
    }


def test_rejected_lines_of_all_readers_are_there(site: Path) -> None:
    log(site, [*daily([1.5]), line(perf_value="x"), "y"])
    (write_report(site / "perflogs", [])).write_text("{")
    assert [r.line for r in survey(site).rejected] == [3, 4, 0]
    assert ROW["perf_value"] == "1.5"
