"""The judgement of the output of compilers, modules, MPI and clocks, and of quotas."""

from pathlib import Path

import pytest

from checks.preflight import clocks, mpi, toolchain
from checks.preflight.clocks import Span
from checks.preflight.quota import Quota, quotas
from tests.checks.captures import each_captured

TWO = "iobands-before 100.0\niobands-node n1 100.5\niobands-node n2 {second}\n"
MET = "iobands-mpi 2 processes on {nodes} nodes\n"
AFTER = "iobands-after n1 101.0\n"


@pytest.mark.parametrize(
    ("time", "off"), [(99.0, -1.0), (100.0, 0.0), (100.5, 0.0), (101.0, 0.0), (103.5, 2.5)]
)
def test_a_time_is_off_by_what_it_lies_outside(time, off):
    assert Span(100.0, 101.0).off(time) == off


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("100.9", []),
        # 0.9 s behind the beginning, or 1 s ahead of the end: within the second that is allowed.
        ("99.1", []),
        ("102.0", []),
        ("108.0", ["clock off: n2 is 7.0 s ahead of n1; 1 s are allowed"]),
        ("40.0", ["clock off: n2 is 60.0 s behind n1; 1 s are allowed"]),
    ],
)
def test_the_clocks_of_nodes(second, said):
    assert mpi.clock_problems(TWO.format(second=second) + AFTER, 1.0) == said


def test_the_allowed_skew_is_the_sites():
    assert clocks.allowed_skew({}) == 1.0
    assert clocks.allowed_skew({"max_clock_skew_seconds": 5}) == 5


def test_mpi_on_both_nodes():
    said = TWO.format(second="100.9") + MET.format(nodes=2)
    assert mpi.problem(said, 2, has_program=True) is None


def test_nodes_that_are_one_host_for_mpi():
    said = TWO.format(second="100.9") + MET.format(nodes=2)
    assert not mpi.have_one_name(said)
    assert mpi.have_one_name(f"{said}iobands-mpi nodes of one name\n")


@pytest.mark.parametrize(
    ("said", "has_program", "problem"),
    [
        ("", True, "the launcher started 0 of 2 processes"),
        (TWO.format(second="1.0"), True, "MPI does not start"),
        (TWO.format(second="1.0"), False, None),
        (
            TWO.format(second="1.0") + MET.format(nodes=1),
            True,
            "MPI spans 1 of 2 nodes, with 2 of 2 processes",
        ),
        # Processes that do not know of each other: a launcher of another MPI library.
        (
            TWO.format(second="1.0") + 2 * "iobands-mpi 1 processes on 1 nodes\n",
            True,
            "each process runs alone: the launcher and the MPI library do not agree on PMI",
        ),
    ],
)
def test_mpi_that_is_not_fit(said, has_program, problem):
    assert mpi.problem(said, 2, has_program) == problem


LMOD = """Lmod has detected the following error: The following module(s) are unknown:
"nosuch/1.0"

Please check the spelling or version number."""


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (
            "ERROR: Unable to locate a modulefile for 'gcc/0'",
            "Unable to locate a modulefile for 'gcc/0'",
        ),
        (LMOD, "nosuch/1.0"),
        (
            "==> Error: Spec 'openmpi@9' matches no installed packages.",
            "Spec 'openmpi@9' matches no installed packages",
        ),
    ],
)
def test_a_module_that_is_missing(said, problem):
    assert toolchain.problems(said) == [f"module: {problem}"]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("rfm_job.sh: line 3: module: command not found", "module: command not found"),
        ("sh: 3: ml: not found", "ml: not found"),
    ],
)
def test_a_shell_without_modules(said, problem):
    (found,) = toolchain.problems(said)
    assert found.startswith(f"{problem}; start it from a login shell")
    page, heading = found.rpartition(": ")[2].split(", ")
    assert f"\n## {heading}\n" in Path(page).read_text()


def test_compilers():
    said = (
        "iobands-compiler C 127 nosuchcc: bash: line 1: nosuchcc: command not found\n"
        "iobands-compiler Fortran 1 ftn: no licence\n"
    )
    assert toolchain.problems(said) == [
        "compiler of C not found: nosuchcc",
        "compiler of Fortran fails: ftn: no licence",
    ]
    assert toolchain.problems("iobands-compiler C 0 cc: \n") == []
    assert len(toolchain.commands({"C": "", "Fortran": ""}, "b")) == 1


def test_quotas():
    # Over its limit; a number that some servers did not report is in brackets.
    lustre = "     /mnt/lustre [2048]*  1024  4096  6d23h   7     0     0       -\n"
    assert quotas(lustre) == [Quota(2048 * 1024, 1024 * 1024, "bytes")]
    # In the form that its source prints if some servers do not answer.
    unsure = "/mnt/x [2048]* [1024] [0] 6d23h59m57s     [7]     [0]     [0]       -\n"
    assert quotas(f" {unsure}{unsure.replace(']*', ']**')}") == 2 * quotas(lustre)
    ceph = "quota-of bytes 1000 990\nquota-of files 0 12\n"
    assert quotas(ceph) == [Quota(990, 1000, "bytes")]
    assert [quota.percent for quota in quotas(ceph)] == [99.0]
    # No limit at all is known; a command that says nothing leaves it unknown.
    assert quotas("     /mnt/x 2048  0  0  -   7     0     0       -\n") == []
    assert quotas("") is None


@pytest.mark.parametrize("device", ["/dev/ubda", "/dev/ubdb"])
def test_quotas_of_ext4_and_xfs(device):
    def nearly_used(said):
        found = quotas("\n".join(line for line in said.splitlines() if f" {device} " in line))
        return [str(quota) for quota in found if quota.percent >= 95]

    half, nearly, more, files, without_limits, _ = each_captured(
        "quota -v -w -p -u -g", "quota-4.06.txt"
    )
    # Of the soft limit, 20480 KiB or 100 files: 10240; 20070 or 20072; 22528; 96 files.
    assert nearly_used(half) == []
    assert nearly_used(nearly) == ["98 % of 0.0195 GiB"]
    assert nearly_used(more) == ["110 % of 0.0195 GiB"]
    assert nearly_used(files) == ["96 % of 100 files"]
    assert nearly_used(without_limits) == []
