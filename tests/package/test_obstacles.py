"""What keeps checks from being run is said once, with the reason, and blamed on no series."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from iobands.reporting.concerns import concerns
from iobands.reporting.digest_json import as_json
from iobands.status.states import State
from iobands.status.survey import Survey, take_survey

from iobands.reporting.format import summary
from tests.package.factory import NOW, ROW, case, daily, write_perflog, write_report

PROBE = ["EnvProbe_1", "here:local", "builtin"]
COMPILER = ["EnvCompiler_1", "here:local", "builtin"]
MPI = ["EnvMpi_1", "here:local", "builtin"]


def survey(site: Path) -> Survey:
    return take_survey(site / "perflogs", site / "bands", now=NOW)


def said(site: Path) -> list[str]:
    """Each concern as the digest has it."""
    found = concerns(survey(site))
    return [f"{each.who}: {each.word}{each.joint}{each.why}" for each in found]


def env_check(name: str, examines: str, result: str, reason: str | None = None, **fields):
    """An entry of a check of the environment."""
    fields = {"file_system": None, "unique_name": name, "dependencies_actual": [], **fields}
    fields |= {"display_name": name, "name": name, "examines": examines, "result": result}
    return case(fail_phase="sanity", fail_reason=reason and f"sanity error: {reason}", **fields)


def file_system(name: str, result: str, reason: str | None = None, **fields):
    return env_check(
        f"EnvFileSystem %file_system={name}", "file system", result, reason, file_system=name
    )


def skipped(name: str, file_system: str, reason: str, **fields):
    """A check that was skipped, as its file system is not fit."""
    fields = {"display_name": name, "file_system": file_system, "not_run": reason, **fields}
    return case(result="skip", fail_phase=None, fail_reason=None, **fields)


def not_run(name: str, needed: list[list[str]], **fields):
    """A check that ReFrame did not run, as something failed that it depends on."""
    fields = {"display_name": name, "unique_name": name, "dependencies_actual": needed, **fields}
    return case(result="fail_deps", fail_phase=None, fail_reason=None, **fields)


def test_a_file_system_is_one_line_for_all_that_it_stopped(tmp_path: Path) -> None:
    rows = daily([1.5, 1.5]) + daily([1.4], file_system="fine", display_name="Other")
    write_perflog(tmp_path / "perflogs", rows)
    entries = [
        file_system("disk", "fail", "not mounted on n1 as lustre: there is ext4, mounted at /"),
        file_system("fine", "pass"),
        skipped(ROW["display_name"], "disk", "not mounted on n1 as lustre: there is ext4"),
        skipped("Ior %file_system=disk", "disk", "not mounted on n1 as lustre: there is ext4"),
    ]
    write_report(tmp_path / "perflogs", entries)
    assert said(tmp_path) == [
        "disk: unfit: not mounted on n1 as lustre: there is ext4, mounted at /; 2 checks not run"
    ]
    found = survey(tmp_path)
    assert found.exit_status == 3
    assert summary(found).endswith("unfit: disk; 2 checks not run")
    states = {series.key.file_system: series.status for series in found.series}
    assert states["disk"].state is State.NO_DATA
    assert "was not run: disk: not mounted on n1" in states["disk"].why
    assert states["fine"].state is State.CALIBRATING
    (obstacle,) = as_json(found)["obstacles"]
    assert obstacle["checks"] == [ROW["display_name"], "Ior %file_system=disk"]


@pytest.mark.parametrize("failed", [COMPILER, MPI])
def test_an_environment_is_found_through_what_depends_on_it(tmp_path: Path, failed) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.5]))
    compiler_fails = failed is COMPILER
    why = "module: Unable to locate a modulefile for 'gcc/0'"
    entries = [
        env_check(
            "EnvCompiler",
            "environment",
            "fail" if compiler_fails else "pass",
            why if compiler_fails else None,
            unique_name=COMPILER[0],
            fixture=True,
        ),
        env_check(
            "EnvMpi",
            "environment",
            "fail_deps" if compiler_fails else "fail",
            None if compiler_fails else why,
            unique_name=MPI[0],
            fixture=True,
            dependencies_actual=[COMPILER],
        ),
        not_run("BuildBenchio", [MPI], fixture=True),
        not_run(ROW["display_name"], [PROBE, ["BuildBenchio", "here:local", "builtin"]]),
    ]
    write_report(tmp_path / "perflogs", entries)
    assert said(tmp_path) == [f"builtin: unfit: {why}; 1 check not run"]
    assert survey(tmp_path).exit_status == 3


def test_a_series_that_is_degraded_stays_so_and_has_the_reason(tmp_path: Path) -> None:
    values = [1.5 + 0.01 * (n % 7) for n in range(60)] + [0.5 + 0.01 * (n % 7) for n in range(30)]
    write_perflog(tmp_path / "perflogs", daily(values))
    write_report(
        tmp_path / "perflogs",
        [skipped(ROW["display_name"], "disk", "full: 0 GiB are free, 1 are needed")],
    )
    found = survey(tmp_path)
    assert found.series[0].status.state is State.DEGRADED
    assert "was not run: disk: full" in found.series[0].status.why
    assert found.exit_status == 2
    degraded, unfit = said(tmp_path)
    assert degraded.startswith("disk fpp write_bw: degraded since")
    assert unfit == "disk: unfit: full: 0 GiB are free, 1 are needed; 1 check not run"


def test_what_is_fit_again_stands_in_no_way(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.5, 1.5]))
    reason = "full: 0 GiB are free, 1 are needed"
    stopped = skipped("Weekly", "disk", reason)
    write_report(tmp_path / "perflogs", [file_system("disk", "fail", reason), stopped], days=0.5)
    assert len(said(tmp_path)) == 1
    write_report(tmp_path / "perflogs", [file_system("disk", "pass")], days=0.1, number=1)
    assert said(tmp_path) == []
    assert survey(tmp_path).exit_status == 0


def test_a_clock_that_is_off_stops_nothing_and_is_said(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.5]))
    why = "clock off: that of n2 is 7.0 s ahead of that of n1; 1 s are allowed"
    passed = case(result="pass", perfvalues={"here:local:write_bw": [1.5]})
    write_report(tmp_path / "perflogs", [env_check("EnvNodes", "environment", "fail", why), passed])
    assert said(tmp_path) == [f"builtin: unfit: {why}"]


def test_a_damaged_report_that_goes_in_circles(tmp_path: Path) -> None:
    around = [["a", "here:local", "builtin"], ["b", "here:local", "builtin"], 3, [[]]]
    entries = [not_run("a", around), not_run("b", around)]
    path = write_report(tmp_path / "perflogs", entries)
    assert json.loads(path.read_text(encoding="utf-8"))
    assert {line.split(":")[1].strip() for line in said(tmp_path)} == {"failed"}
