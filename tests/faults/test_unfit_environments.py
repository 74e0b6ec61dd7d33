"""Unfit environments: the checks that need them are skipped, and the others go on.

One ReFrame session runs a check in environments that lack different things.
"""

import json
import subprocess
import sys

import pytest

from tests.checks.fabrics import _LOCAL_VARIABLES
from tests.site_copy import BENCHIO, copy_suite

# Why each environment is unfit; the launchers are stand-ins that do the wrong thing.
REASONS = {
    "compiler": "compiler of Fortran not found: nosuchftn",
    "module": "module: command not found; start it from a login shell, as the line of "
    "`iobands schedule` does, or define the command in prepare_cmds of the partition: "
    "docs/howto/run-every-night.md, Modules",
    "launcher": "the launcher started 0 of 1 processes: mpirun: cannot reach the daemon",
    "mpi": "MPI does not start: UCX ERROR no network",
    "hung": "the launcher started 0 of 1 processes within 25 s: mpirun: no such file as the proxy, "
    "an error",
}

FAULTS = {
    "compiler": "compiler missing",
    "module": "module missing",
    "launcher": "launcher cannot start a process",
    "mpi": "MPI does not start",
    "hung": "launcher hangs after an error",
}

# In the preflight check, the process starts but MPI does not, and the process's message about it is
# lost, as launchers lose the last output of processes that they end.
NO_MPI = """
case "$*" in
*node.sh*) sh node.sh sh -c "echo 'UCX ERROR no network' >&2; exit 1" 2>/dev/null; exit 1 ;;
esac"""

LAUNCHERS = {
    "launcher": "echo 'mpirun: cannot reach the daemon' >&2; exit 1",
    "mpi": NO_MPI,
    # as MPICH's does
    "hung": "echo 'mpirun: no such file as the proxy, an error' >&2; exec sleep 600",
    # A node whose clock is ahead of the job script's, by a fake `date`. mpirun puts its own
    # directory before all others.
    "clock": 'shift 2; exec {mpirun} -np 1 env PATH="${0%/*}/late:$PATH" "$@"',
}
CMAKE = "echo 'benchio.f90:1: Error: no such module' >&2; exit 1"


def healthy(name):
    variables = {**_LOCAL_VARIABLES, "CMAKE_BUILD_TYPE": "Debug"}
    return {
        "name": name,
        "cc": "mpicc",
        "cxx": "",
        "ftn": "mpifort",
        "env_vars": [list(item) for item in variables.items()],
    }


def environment(name, root, mpirun):
    variables = {**_LOCAL_VARIABLES, "CMAKE_BUILD_TYPE": "Debug"}
    if name in LAUNCHERS:
        programs = root / name
        (programs / "late").mkdir(parents=True)
        program(programs / "mpirun", LAUNCHERS[name].replace("{mpirun}", mpirun))
        program(programs / "late" / "date", "exec /bin/date -d '+90 seconds' \"$@\"")
    if name == "build":
        programs = root / name
        programs.mkdir()
        program(programs / "cmake", CMAKE)
    if name in {*LAUNCHERS, "build"}:
        variables["PATH"] = f"{programs}:$PATH"
    return {
        **healthy(name),
        "ftn": "nosuchftn" if name == "compiler" else "mpifort",
        "prepare_cmds": ["unset -f module; module load gcc"] if name == "module" else [],
        "env_vars": [list(item) for item in variables.items()],
    }


def program(path, script):
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    return tmp_path_factory.mktemp("disk")


@pytest.fixture(scope="module")
def session(tmp_path_factory, disk):
    """The site after the session."""
    root = tmp_path_factory.mktemp("programs")
    site = copy_suite(tmp_path_factory.mktemp("site"), *BENCHIO)
    found = subprocess.run(["which", "mpirun"], capture_output=True, text=True, check=True)
    names = [*REASONS, "build", "clock"]
    run = measure(site, disk, [environment(name, root, found.stdout.strip()) for name in names])
    assert run.returncode == 1, run.stdout + run.stderr
    return site


def measure(site, disk, environments):
    site.add_local_system(
        "unfit",
        {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 1, "mib_per_task": 1},
        environments,
    )
    return site.reframe(
        *("--system=unfit", "-r", "--exec-policy=serial", "-n", "BenchioSerial|EnvNodes"),
        *("-S", "EnvMpi.time_limit=25s"),
    )


def result(cases, check, environment):
    (case,) = [
        case
        for case in cases
        if case["display_name"].startswith(check) and case["environ"] == environment
    ]
    return case["result"], case["fail_reason"]


@pytest.fixture(scope="module")
def cases(session):
    """The test cases of the session."""
    return session.test_cases("unfit")


@pytest.fixture(scope="module")
def lifted(session, disk, cases, alerts):
    """Whether the checks pass when the environments are as they should be."""
    run = measure(session, disk, [healthy(name) for name in (*REASONS, "build")])
    cases = session.test_cases("unfit")
    return {
        name: (run.returncode, result(cases, "BenchioSerial", name)[0]) == (0, "pass")
        for name in (*REASONS, "build")
    }


def of_fault(name):
    return pytest.param(
        name, marks=pytest.mark.fault("checks", FAULTS[name], "unfit, and why; not measured")
    )


@pytest.mark.parametrize("name", map(of_fault, REASONS))
def test_what_needs_it_is_not_run(cases, disk, lifted, observed, name):
    failing = "EnvCompiler" if name in ("compiler", "module") else "EnvMpi"
    outcome, reason = result(cases, failing, name)
    assert (outcome, reason) == ("fail", f"sanity error: {REASONS[name]}")
    assert result(cases, "BuildBenchio", name)[0] in ("skip", "fail_deps")
    assert result(cases, "BenchioSerial", name)[0] in ("skip", "fail_deps")
    observed(message=reason, exit_status=1, left=disk.iterdir(), next_run=lifted[name])


@pytest.mark.fault("checks", "build fails", "not measured, and why")
def test_what_is_not_built_is_not_run(cases, disk, lifted, observed):
    outcome, reason = result(cases, "BuildBenchio", "build")
    assert (outcome, "Error: no such module" in reason) == ("fail", True), reason
    assert result(cases, "BenchioSerial", "build")[0] in ("skip", "fail_deps")
    observed(message=reason, exit_status=1, left=disk.iterdir(), next_run=lifted["build"])


def test_a_clock_that_is_off_is_reported_and_the_check_is_run(cases):
    outcome, reason = result(cases, "EnvNodes", "clock")
    assert outcome == "fail"
    assert "clock off: " in reason
    assert result(cases, "BenchioSerial", "clock")[0] == "pass"


@pytest.fixture(scope="module")
def alerts(session):
    """The alerts after the session."""
    said = subprocess.run(
        [
            *(sys.executable, "-m", "iobands", "status", "--format", "json"),
            *("--perflogs", session.root / "perflogs"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 3
    return json.loads(said.stdout)["alerts"]


def test_each_is_an_alert(alerts):
    unfit = {each["subject"]: each["reason"] for each in alerts if each["severity"] == "unfit"}
    assert unfit.keys() == {*REASONS, "clock"}
    for name, reason in REASONS.items():
        assert unfit[name] == f"{reason}; 1 check not run"
    assert unfit["clock"].startswith("clock off: ")
