"""Obstacles that keep checks from running: one alert with the reason, and none for the series."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobands.snapshot import Obstacle, Severity, State
from tests.factory import NOW, ROW, case, daily, write_report
from tests.sites import DAY, SiteFiles

PROBE = ["EnvProbe_1", "here:local", "builtin"]
COMPILER = ["EnvCompiler_1", "here:local", "builtin"]
MPI = ["EnvMpi_1", "here:local", "builtin"]
FULL = "full: 0 GiB are free, 1 are needed"


def env_check(
    name: str, examines: str, result: str, reason: str | None = None, **fields: object
) -> dict[str, object]:
    """Return a run report's entry of a preflight check."""
    fields = {"file_system": None, "unique_name": name, "dependencies_actual": [], **fields}
    fields |= {"display_name": name, "name": name, "examines": examines, "result": result}
    return case(fail_phase="sanity", fail_reason=reason and f"sanity error: {reason}", **fields)


def file_system(name: str, result: str, reason: str | None = None) -> dict[str, object]:
    unique = f"EnvFileSystem %file_system={name}"
    return env_check(unique, "file system", result, reason, file_system=name)


def skipped(name: str, file_system: str, reason: str) -> dict[str, object]:
    """Return the entry of a check that was skipped because its file system is unfit."""
    fields = {"display_name": name, "file_system": file_system, "not_run": reason}
    return case(result="skip", fail_phase=None, fail_reason=None, **fields)


def not_run(name: str, needed: list[object], **fields: object) -> dict[str, object]:
    """Return the entry of a check that ReFrame did not run because a dependency failed."""
    fields = {"display_name": name, "unique_name": name, "dependencies_actual": needed, **fields}
    return case(result="fail_deps", fail_phase=None, fail_reason=None, **fields)


@pytest.fixture
def files(tmp_path: Path) -> SiteFiles:
    return SiteFiles(tmp_path).write(daily([1.5, 1.5]))


def only(files: SiteFiles) -> Obstacle:
    (obstacle,) = files.read().obstacles
    return obstacle


def test_a_file_system_is_one_alert_for_all_that_it_stopped(files: SiteFiles) -> None:
    files.write(daily([1.5, 1.5]) + daily([1.4], file_system="fine", display_name="Other"))
    reason = "not mounted on n1 as lustre: there is ext4, mounted at /"
    entries = [
        file_system("disk", "fail", reason),
        file_system("fine", "pass"),
        skipped(ROW["display_name"], "disk", "not mounted on n1 as lustre"),
        skipped("Ior %file_system=disk", "disk", "not mounted on n1 as lustre"),
    ]
    write_report(files.perflogs, entries)
    site = files.read()
    (obstacle,) = site.obstacles
    assert (obstacle.subject, obstacle.why) == ("disk", reason)
    assert obstacle.checks == (ROW["display_name"], "Ior %file_system=disk")
    by_name = {series.key.file_system: series for series in site.series}
    assert obstacle.keys == {by_name["disk"].key}
    assert by_name["disk"].status.state is State.NO_DATA
    assert by_name["fine"].status.state is State.CALIBRATING
    # the series has no alert of its own
    (alert,) = site.alerts
    assert (alert.severity, alert.subject, alert.members) == (Severity.UNFIT, "disk", ())
    assert site.exit_status == 3


@pytest.mark.parametrize("failed", [COMPILER, MPI])
def test_an_environment_is_found_through_what_depends_on_it(
    files: SiteFiles, failed: list[str]
) -> None:
    why = "module: Unable to locate a modulefile for 'gcc/0'"
    is_compiler = failed is COMPILER
    entries = [
        env_check(
            "EnvCompiler",
            "environment",
            "fail" if is_compiler else "pass",
            why if is_compiler else None,
            unique_name=COMPILER[0],
            fixture=True,
        ),
        env_check(
            "EnvMpi",
            "environment",
            "fail_deps" if is_compiler else "fail",
            None if is_compiler else why,
            unique_name=MPI[0],
            fixture=True,
            dependencies_actual=[COMPILER],
        ),
        not_run("BuildBenchio", [MPI], fixture=True),
        not_run(ROW["display_name"], [PROBE, ["BuildBenchio", "here:local", "builtin"]]),
    ]
    write_report(files.perflogs, entries)
    obstacle = only(files)
    assert (obstacle.subject, obstacle.why) == ("builtin", why)
    assert obstacle.checks == (ROW["display_name"],)
    assert files.read().exit_status == 3


def test_a_series_that_is_degraded_stays_so(files: SiteFiles) -> None:
    values = [1.5 + 0.01 * (n % 7) for n in range(60)] + [0.5 + 0.01 * (n % 7) for n in range(30)]
    files.write(daily(values))
    write_report(files.perflogs, [skipped(ROW["display_name"], "disk", FULL)])
    site = files.read()
    assert [alert.severity for alert in site.alerts] == [Severity.DEGRADED, Severity.UNFIT]
    assert site.series[0].status.missing is not None
    assert site.exit_status == 2


def test_what_is_fit_again_stops_nothing(files: SiteFiles) -> None:
    stopped = skipped("Weekly", "disk", FULL)
    write_report(files.perflogs, [file_system("disk", "fail", FULL), stopped], days=0.5)
    assert only(files).checks == ("Weekly",)
    write_report(files.perflogs, [file_system("disk", "pass")], days=0.1, number=1)
    site = files.read()
    assert (site.obstacles, site.alerts, site.exit_status) == ((), (), 0)


def test_it_is_unfit_since_the_first_session_that_found_it_so(files: SiteFiles) -> None:
    weekly = skipped("Weekly", "disk", FULL)
    write_report(files.perflogs, [file_system("disk", "fail", FULL), weekly], days=9, number=9)
    write_report(files.perflogs, [file_system("disk", "pass")], days=8, number=8)
    for days in range(7):
        entries = [file_system("disk", "fail", FULL), skipped("Daily", "disk", FULL)]
        entries += [] if days != 2 else [weekly]
        write_report(files.perflogs, entries, days=days, number=days)
    site = files.read()
    assert [alert.since.date() for alert in site.alerts if alert.since] == [(NOW - 6 * DAY).date()]
    assert site.obstacles[0].checks == ("Daily", "Weekly")


def test_a_stopped_check_says_since_when_where_nothing_examines(files: SiteFiles) -> None:
    for days, result in ((4, "pass"), (3, "skip"), (2, "skip")):
        entry = skipped("Daily", "disk", FULL) | {"result": result}
        entry |= {"not_run": None} if result == "pass" else {}
        write_report(files.perflogs, [entry], days=days, number=days)
    assert only(files).when.date() == (NOW - 3 * DAY).date()


def test_what_nobody_looked_at_again_is_dropped_once_it_is_overdue(files: SiteFiles) -> None:
    write_report(files.perflogs, [file_system("disk", "fail", FULL)], days=4)
    assert only(files).when.date() == (NOW - 4 * DAY).date()
    write_report(files.perflogs, [], number=1)
    assert files.read().obstacles == ()


def test_a_clock_that_is_off_stops_nothing_and_is_said(files: SiteFiles) -> None:
    why = "clock off: n2 is 7.0 s ahead of n1; 1 s are allowed"
    passed = case(result="pass", perfvalues={"here:local:write_bw": [1.5]})
    entries = [env_check("EnvNodes", "environment", "fail", why), passed]
    write_report(files.perflogs, entries)
    obstacle = only(files)
    assert (obstacle.subject, obstacle.why, obstacle.checks) == ("builtin", why, ())
    assert files.read().series[0].status.state is State.CALIBRATING


def test_a_file_system_is_one_alert_for_all_partitions(files: SiteFiles) -> None:
    def said() -> list[tuple[str, str]]:
        return [(alert.subject, alert.reason) for alert in files.read().alerts]

    def on_gpu(why: str) -> list[dict[str, object]]:
        failed = {**file_system("disk", "fail", why), "partition": "gpu"}
        missed = {**skipped("A", "disk", why), "partition": "gpu"}
        return [file_system("disk", "fail", FULL), failed, missed]

    write_report(files.perflogs, [file_system("disk", "fail", FULL)])
    assert said() == [("disk", FULL)]
    files.write(daily([1.5]) + daily([1.5], partition="gpu"))
    assert said() == [("disk", f"on local: {FULL}")]
    write_report(files.perflogs, on_gpu(FULL))
    assert said() == [("disk", f"on gpu, local: {FULL}; 1 check not run")]
    write_report(files.perflogs, on_gpu("not mounted"))
    reason = f"on gpu: not mounted; 1 check not run; on local: {FULL}"
    assert said() == [("disk", reason)]


def test_a_damaged_report_that_goes_in_circles(files: SiteFiles) -> None:
    around = [["a", "here:local", "builtin"], ["b", "here:local", "builtin"], 3, [[]]]
    write_report(files.write([]).perflogs, [not_run("a", around), not_run("b", around)])
    assert {alert.severity for alert in files.read().alerts} == {Severity.FAILED}


def _refused(files: SiteFiles, said: str, program: str = "sbatch") -> tuple[str, str]:
    """Return why a file system is unfit and why a check failed, if a program said that to both."""
    error = (
        f"spawned process error: command '{program} rfm_job.sh' failed with exit code 1:\n"
        f"--- stdout ---\n--- stdout ---\n--- stderr ---\n{said}\n\n--- stderr ---"
    )
    write_report(files.perflogs, [file_system("disk", "fail", error), case(fail_reason=error)])
    return only(files).why, files.read().alerts[-1].reason


def test_a_wrong_account_is_in_the_words_of_sbatch(files: SiteFiles) -> None:
    said = "sbatch: error: Batch job submission failed: Invalid account specified"
    for why in _refused(files, said):
        assert "sbatch: Batch job submission failed: Invalid account specified; set account" in why


def test_a_wrong_queue_is_in_the_words_of_qsub(files: SiteFiles) -> None:
    for why in _refused(files, "qsub: Unknown queue", "qsub"):  # OpenPBS 23.06
        assert why.endswith("qsub: Unknown queue") and "qsub: qsub" not in why


def test_a_limit_of_the_qos_is_no_wrong_account(files: SiteFiles) -> None:
    said = (  # Slurm 26.05.3
        "sbatch: error: QOSMaxSubmitJobPerUserLimit\n"
        "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job "
        "submit limit, user's size and/or time limits)"
    )
    for why in _refused(files, said):
        assert why.endswith(
            "sbatch: QOSMaxSubmitJobPerUserLimit; Batch job submission failed: Job violates "
            "accounting/QOS policy (job submit limit, user's size and/or time limits)"
        )
