"""mdtest's tables of three versions are read alike, and a run without proof is rejected.

The data was captured from mdtest 3.3.0, 4.0.0 and 4.1.0+dev: two processes with 100 files each, and
the options of the checks.
"""

from pathlib import Path

import pytest

from checks.base.proof import ResultError, rates
from checks.tools.mdtest.result import asked, is_too_old, read_phases, unproven

DATA = Path(__file__).parent / "data" / "ior"


def problems(output, repeats=1, verified=True, **changed):
    """Return what the output fails to prove of what was requested."""
    expected = asked(**{"nodes": 1, "tasks": 2, "files": 200, **changed})
    return unproven(read_phases(output), expected, repeats, verified)


def output(version):
    return (DATA / version / "mdtest.out").read_text(encoding="utf-8")


@pytest.mark.parametrize("version", ["4.0.0", "4.1.0"])
def test_a_whole_run_is_proven(version):
    phases = read_phases(output(version))
    assert problems(output(version)) == []
    assert phases[0].fields["version"].removesuffix("+dev") == version
    left = {phase.name: phase.fields["files on disk"] for phase in phases}
    assert [left[name] for name in ("create", "stat", "read", "remove")] == [200, 200, 200, 0]


@pytest.mark.parametrize("version", ["3.3.0", "4.0.0", "4.1.0"])
@pytest.mark.parametrize(
    ("phase", "row"),
    [("create", "creation"), ("stat", "stat"), ("read", "read"), ("remove", "removal")],
)
def test_a_rate_is_the_mean_of_its_row(version, phase, row):
    # By another route: of the rows of this name in all launches, only one is not 0.
    rows = [line.replace(":", " ").split() for line in output(version).splitlines()]
    means = [float(words[4]) for words in rows if words[:2] == ["File", row]]
    # The control reads, too.
    assert rates(read_phases(output(version)), phase) == [mean for mean in means if mean][:1]


def test_a_version_that_cannot_verify_is_caught():
    # 3.3 reports wrong data only in the files of the first process.
    assert problems(output("3.3.0")) == [
        "verification: proves nothing, as mdtest does not report a spoilt file either"
    ]
    assert problems(output("3.3.0"), verified=False) == []


def test_wrong_data_is_reported():
    control, read = "== phase control 1", "== phase read 1"
    text = output("4.1.0").replace(read, "== phase other 1").replace(control, read)
    wanted = "read, repeat 1: verifying the data on read (1 errors)! "
    assert any(problem.startswith(wanted) for problem in problems(text))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tasks": 4}, "create, repeat 1: tasks requested: 4, in effect: 2"),
        ({"nodes": 2}, "stat, repeat 1: nodes requested: 2, in effect: 1"),
        ({"files": 400}, "read, repeat 1: files requested: 400, in effect: 200"),
        ({"files": 400}, "create, repeat 1: files on disk requested: 400, in effect: 200"),
        ({"repeats": 2}, "remove, repeat 2: not measured"),
    ],
)
def test_what_is_not_as_asked_is_named(changed, said):
    assert said in problems(output("4.0.0"), **changed)


def test_files_that_were_not_removed_are_reported():
    head, _, tail = output("4.0.0").rpartition("== files 0")
    assert problems(f"{head}== files 3{tail}") == [
        "remove, repeat 1: files on disk requested: 0, in effect: 3"
    ]


def test_no_output_proves_nothing():
    assert len(problems("")) == 4


def test_a_job_that_ended_because_of_the_version():
    assert is_too_old("iobands: this mdtest does not verify the files of all processes\n")
    assert not is_too_old(output("3.3.0"))


def test_a_program_of_another_mpi_is_named_at_once():
    # Its launcher is unknown to its MPI library, so every process is rank 0 of 1.
    alone = output("4.0.0").replace("launched with 2 total", "launched with 1 total")
    assert alone != output("4.0.0")
    with pytest.raises(ResultError, match="each process ran alone: "):
        problems(alone)
    assert not any("alone" in each for each in problems(alone, tasks=1))
