"""IOR's JSON of three versions is read alike, and what a run did not prove is not believed.

The data was captured from IOR 3.3.0, 4.0.0 and 4.1.0+dev: two processes, a file of 4 MiB each, and
the options of the checks. In `ior-corrupt.*` 4 KiB of one file were then zeros.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from checks import ior_result
from checks.ior_result import Expectation, Phase, ResultError, misplaced_files, wrong_data

DATA = Path(__file__).parent / "data" / "ior"
VERSIONS = ("3.3.0", "4.0.0", "4.1.0")

EXPECTED = Expectation(
    interface="posix",
    file_per_process=True,
    collective=False,
    fsync=True,
    nodes=1,
    tasks=2,
    segments=1,
    block=4 * 2**20,
    transfer=2**20,
    repeats=1,
)


def text(version, name):
    return (DATA / version / name).read_text(encoding="utf-8")


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture
def run(version):
    return ior_result.read_run(DATA / version, 1)


def test_a_whole_run_is_proven(version, run):
    assert ior_result.unproven(run, EXPECTED) == []
    assert misplaced_files(text(version, "files.txt"), EXPECTED, run["write", 1].bytes) == []
    assert {phase.version.removesuffix("+dev") for phase in run.values()} == {version}
    assert {phase.bytes for phase in run.values()} == {8 * 2**20}


def test_the_bandwidth_is_that_of_the_result(version, run):
    # By another route: the line `"bwMiB": 1234.5678, ` of the file, in MiB/s.
    (line,) = [line for line in text(version, "ior-write-1.json").splitlines() if "bwMiB" in line]
    mib_s = float(line.split(":")[1].strip(" ,"))
    assert ior_result.bandwidths(run, "write") == [pytest.approx(mib_s / 1024)]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"interface": "mpiio"}, "api asked: MPIIO, in effect: POSIX"),
        ({"collective": True}, "collective asked: 1, in effect: 0"),
        ({"file_per_process": False}, "filePerProc asked: 0, in effect: 1"),
        ({"transfer": 2**19}, "transferSize asked: 524288, in effect: 1048576"),
        ({"segments": 2}, "bytes asked: 16777216, moved: 8388608"),
        ({"tasks": 4}, "tasks asked: 4, in effect: 2"),
        ({"nodes": 2}, "nodes asked: 2, in effect: 1"),
        # By IOR's sources NCMPI reads what the process's own rank wrote, whatever was asked.
        ({"interface": "pnetcdf"}, "reorderTasks asked: 0, in effect: 1"),
    ],
)
def test_what_is_not_as_asked_is_named(run, asked, said):
    problems = ior_result.unproven(run, replace(EXPECTED, **asked))
    assert [problem for problem in problems if said in problem] == [
        f"{phase}, repeat 1: {said}" for phase in ("write", "read", "verify")
    ]


@pytest.mark.parametrize(
    ("version", "without"),
    # By IOR's sources: HDF5_Fsync and NCMPI_Fsync of 3.3 have nothing in their bodies.
    [("3.3.0", {"hdf5", "pnetcdf"}), ("4.0.0", set()), ("4.1.0+dev", set())],
)
def test_an_fsync_that_does_nothing_is_known(version, without):
    assert {api for api in ior_result.APIS if not ior_result.syncs(version, api)} == without


def test_fsync_is_asked_of_the_write_alone(run):
    assert ior_result.unproven(run, replace(EXPECTED, fsync=False)) == [
        "write, repeat 1: fsync asked: 0, in effect: 1"
    ]


def changed(phase: Phase, **parameters) -> Phase:
    return replace(phase, parameters={**phase.parameters, **parameters})


def test_a_verification_that_does_not_compare_is_caught(run):
    run["verify", 1] = changed(run["verify", 1], checkRead=0)
    assert ior_result.unproven(run, EXPECTED) == [
        "verify, repeat 1: checkRead asked: 1, in effect: 0"
    ]


def test_a_verification_against_another_signature_is_caught(run):
    seed = {"setTimeStampSignature/incompressibleSeed": 4712}
    run["verify", 1] = changed(run["verify", 1], **seed)
    assert ior_result.unproven(run, EXPECTED) == [
        "repeat 1: verified against another signature than written"
    ]


def test_a_verification_of_less_than_was_written_is_caught(run):
    run["verify", 1] = replace(run["verify", 1], bytes=4 * 2**20)
    assert ior_result.unproven(run, EXPECTED) == [
        "verify, repeat 1: bytes asked: 8388608, moved: 4194304",
        "repeat 1: bytes written, read and verified differ: 8388608, 8388608, 4194304",
    ]


def test_wrong_data_is_seen_in_what_is_said(version):
    status = text(version, "ior-corrupt.status").strip()
    # 3.3 counts 512 words, 512 modulo 256 is 0; 4.x counts transfers, and each of them twice.
    assert status == {"3.3.0": "0", "4.0.0": "2", "4.1.0": "2"}[version]
    errors = {"3.3.0": "512"}.get(version, "1")
    said = f"incorrect data on read ({errors} errors found)"
    assert wrong_data(text(version, "ior-corrupt.out"), status) == said


def test_right_data_is_not_taken_for_wrong(version):
    assert wrong_data(text(version, "ior-verify-1.out"), "0") is None
    assert not ior_result.complains(text(version, "ior-verify-1.out"))


def test_a_wrong_signature_is_complained_of(version):
    assert ior_result.complains(text(version, "ior-control-1.out"))


def test_an_end_without_a_word_is_no_verification():
    assert wrong_data("", "139") == "exit status 139"
    assert wrong_data("", "") == "exit status "


def test_a_stonewall_ends_a_phase_early(version):
    path = DATA / version / "stonewall-write-1.json"
    found = ior_result.read_phase(path)
    # 4000 MiB for each of two processes were asked for, and a second was given.
    expected = replace(EXPECTED, file_per_process=False, block=4000 * 2**20)
    assert 0 < found.bytes < expected.bytes
    (problem,) = ior_result._phase_problems("write", found, expected)
    assert problem == f"bytes asked: {expected.bytes}, moved: {found.bytes}"
    assert ior_result._phase_problems("write", found, replace(expected, stonewall=True)) == []


@pytest.mark.parametrize(
    ("listing", "said"),
    [
        ("4194304 a\n", ["files asked: 2, on disk: 1", "bytes written: 8388608, on disk: 4194304"]),
        ("4194304 a\n4194303 b\n", []),  # IOR itself counts no finer than that
        ("4194304 a\n4193304 b\n", ["bytes written: 8388608, on disk: 8387608"]),
        ("4194304 a\n5194304 b\n", ["bytes written: 8388608, on disk: 9388608"]),
    ],
)
def test_bytes_on_disk(listing, said):
    assert misplaced_files(listing, EXPECTED, 8 * 2**20) == said


def test_a_library_may_have_bytes_of_its_own():
    expected = replace(EXPECTED, interface="hdf5", file_per_process=False)
    assert misplaced_files("8390656 a\n", expected, 8 * 2**20) == []
    assert misplaced_files("9999999 a\n", expected, 8 * 2**20) != []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "x.json: not JSON, IOR did not finish it"),
        ('{"tests": [', "x.json: not JSON, IOR did not finish it"),
        ("[]", "x.json: not a result of one test of IOR"),
        ('{"Version": "4.0.0", "tests": [], "summary": []}', "x.json: not a result of one test"),
    ],
)
def test_a_broken_file_is_told(tmp_path, content, said):
    (tmp_path / "x.json").write_text(content, encoding="utf-8")
    with pytest.raises(ResultError, match=said):
        ior_result.read_phase(tmp_path / "x.json")


def test_no_file_is_told(tmp_path):
    with pytest.raises(ResultError, match=r"ior-write-1.json: no result file"):
        ior_result.read_run(tmp_path, 1)


@pytest.mark.parametrize("said", ["ERROR: Unrecognized I/O API, (utilities.c:415)"])
def test_an_interface_that_was_not_built_in(said):
    assert ior_result.lacks_api(said)
    assert not ior_result.lacks_api("ERROR: open64 failed")


@pytest.mark.parametrize(
    ("said", "nodes", "pages"),
    [
        ("0\n0\nnode\n", 1, 0),
        ("12\n30\nnode\n0\n0\nnode\n", 2, 42),
        ("0\nnode\n", 2, None),  # one node said nothing
        ("node\n", 1, None),  # no command that counts
        ("", 1, None),
    ],
)
def test_pages_in_memory_are_counted_over_all_nodes(said, nodes, pages):
    assert ior_result.resident_pages(said, nodes) == pages
