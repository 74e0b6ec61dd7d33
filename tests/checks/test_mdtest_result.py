"""mdtest's tables of three versions are read alike, and what a run did not prove is not believed.

The data was captured from mdtest 3.3.0, 4.0.0 and 4.1.0+dev: two processes with 100 files each, and
the options of the checks.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from checks import mdtest_result
from checks.mdtest_result import Expectation, phases_in, rates, unproven

DATA = Path(__file__).parent / "data" / "ior"
EXPECTED = Expectation(nodes=1, tasks=2, files=200, repeats=1, verified=True)


def output(version):
    return (DATA / version / "mdtest.out").read_text(encoding="utf-8")


@pytest.mark.parametrize("version", ["4.0.0", "4.1.0"])
def test_a_whole_run_is_proven(version):
    phases = phases_in(output(version))
    assert unproven(phases, EXPECTED) == []
    assert phases["create", 1].version.removesuffix("+dev") == version
    assert [phases[name, 1].files for name in ("create", "stat", "read", "remove")] == [
        *(200, 200, 200, 0)
    ]


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
    assert rates(phases_in(output(version)), phase) == [mean for mean in means if mean][:1]


def test_a_version_that_cannot_verify_is_caught():
    # 3.3 says nothing of wrong data in the files of any process but the first.
    assert unproven(phases_in(output("3.3.0")), EXPECTED) == [
        "verification: proves nothing, as mdtest does not complain of a spoilt file either"
    ]
    assert unproven(phases_in(output("3.3.0")), replace(EXPECTED, verified=False)) == []


def test_wrong_data_is_told():
    control, read = "== phase control 1", "== phase read 1"
    text = output("4.1.0").replace(read, "== phase other 1").replace(control, read)
    problems = unproven(phases_in(text), EXPECTED)
    wanted = "read, repeat 1: verifying the data on read (1 errors)! "
    assert any(problem.startswith(wanted) for problem in problems)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"tasks": 4}, "create, repeat 1: tasks asked: 4, in effect: 2"),
        ({"nodes": 2}, "stat, repeat 1: nodes asked: 2, in effect: 1"),
        ({"files": 400}, "read, repeat 1: files asked: 400, in effect: 200"),
        ({"files": 400}, "create, repeat 1: files on disk asked: 400, in effect: 200"),
        ({"repeats": 2}, "remove, repeat 2: not measured"),
    ],
)
def test_what_is_not_as_asked_is_named(asked, said):
    assert said in unproven(phases_in(output("4.0.0")), replace(EXPECTED, **asked))


def test_files_that_were_not_removed_are_told():
    head, _, tail = output("4.0.0").rpartition("== files 0")
    assert unproven(phases_in(f"{head}== files 3{tail}"), EXPECTED) == [
        "remove, repeat 1: files on disk asked: 0, in effect: 3"
    ]


def test_no_output_proves_nothing():
    assert len(unproven(phases_in(""), EXPECTED)) == 4


def test_a_job_that_ended_because_of_the_version():
    assert mdtest_result.is_too_old(f"{mdtest_result.TOO_OLD}\n")
    assert not mdtest_result.is_too_old(output("3.3.0"))
