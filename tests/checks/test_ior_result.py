"""IOR's JSON of three versions is read alike, and a run that did not prove its rate is rejected.

The data was captured from IOR 3.3.0, 4.0.0 and 4.1.0+dev: two processes, a file of 4 MiB each, and
the options of the checks. In `ior-corrupt.*` 4 KiB of one file were then zeros.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from checks.base.proof import Phase, ResultError, misplaced_files, rates
from checks.tools.ior import result
from checks.tools.ior.result import wrong_data

DATA = Path(__file__).parent / "data" / "ior"
VERSIONS = ("3.3.0", "4.0.0", "4.1.0")

FIELDS = {
    "filePerProc": 1,
    "collective": 0,
    "nodes": 1,
    "tasks": 2,
    "segmentCount": 1,
    "blockSize": 4 * 2**20,
    "transferSize": 2**20,
}


def problems(run, interface="posix", fsync=True, volume=8 * 2**20, stonewall=False, **fields):
    """Return what a run fails to prove of what was requested."""
    asked = result.asked({**FIELDS, **fields}, interface, fsync)
    return result.unproven(run, asked, 1, volume, stonewall)


def text(version, name):
    return (DATA / version / name).read_text(encoding="utf-8")


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture
def run(version):
    return result.read_run(DATA / version, 1)


def test_a_whole_run_is_proven(version, run):
    assert problems(run) == []
    written = run[0].fields["bytes"]
    assert misplaced_files(text(version, "files.txt"), 2, written, grain=result.GRAIN) == []
    assert {phase.fields["version"].removesuffix("+dev") for phase in run} == {version}
    assert {phase.fields["bytes"] for phase in run} == {8 * 2**20}


def test_the_bandwidth_is_that_of_the_result(version, run):
    # By another route: the line `"bwMiB": 1234.5678, ` of the file, in MiB/s.
    (line,) = [line for line in text(version, "ior-write-1.json").splitlines() if "bwMiB" in line]
    mib_s = float(line.split(":")[1].strip(" ,"))
    assert rates(run, "write") == [pytest.approx(mib_s / 1024)]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"interface": "mpiio"}, "api requested: MPIIO, in effect: POSIX"),
        ({"collective": 1}, "collective requested: 1, in effect: 0"),
        ({"filePerProc": 0}, "filePerProc requested: 0, in effect: 1"),
        ({"transferSize": 2**19}, "transferSize requested: 524288, in effect: 1048576"),
        ({"volume": 2 * 8 * 2**20}, "bytes requested: 16777216, moved: 8388608"),
        ({"tasks": 4}, "tasks requested: 4, in effect: 2"),
        ({"nodes": 2}, "nodes requested: 2, in effect: 1"),
        # By IOR's sources NCMPI reads what the process's own rank wrote, whatever was asked.
        ({"interface": "pnetcdf"}, "reorderTasks requested: 0, in effect: 1"),
    ],
)
def test_what_is_not_as_asked_is_named(run, asked, said):
    assert [problem for problem in problems(run, **asked) if said in problem] == [
        f"{phase}, repeat 1: {said}" for phase in ("write", "read", "verify")
    ]


@pytest.mark.parametrize(
    ("version", "without"),
    # By IOR's sources: HDF5_Fsync and NCMPI_Fsync of 3.3 have nothing in their bodies.
    [("3.3.0", {"hdf5", "pnetcdf"}), ("4.0.0", set()), ("4.1.0+dev", set())],
)
def test_an_fsync_that_does_nothing_is_known(version, without):
    assert {api for api in result.APIS if not result.syncs(version, api)} == without


def test_fsync_is_asked_of_the_write_alone(run):
    assert problems(run, fsync=False) == ["write, repeat 1: fsync requested: 0, in effect: 1"]


def changed(phase: Phase, **parameters) -> Phase:
    return replace(phase, fields={**phase.fields, **parameters})


def test_a_verification_that_does_not_compare_is_caught(run):
    run[2] = changed(run[2], checkRead=0)
    assert problems(run) == ["verify, repeat 1: checkRead requested: 1, in effect: 0"]


def test_a_verification_against_another_signature_is_caught(run):
    seed = {"setTimeStampSignature/incompressibleSeed": 4712}
    run[2] = changed(run[2], **seed)
    assert problems(run) == ["repeat 1: verified against another signature than written"]


def test_a_verification_of_less_than_was_written_is_caught(run):
    run[2] = changed(run[2], bytes=4 * 2**20)
    assert problems(run) == [
        "verify, repeat 1: bytes requested: 8388608, moved: 4194304",
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
    assert not result.complains(text(version, "ior-verify-1.out"))


def test_a_wrong_signature_is_complained_of(version):
    assert result.complains(text(version, "ior-control-1.out"))


def test_an_end_without_a_word_is_no_verification():
    assert wrong_data("", "139") == "exit status 139"
    said = "ERROR: cannot read from file, (ior.c:1694)\n"
    assert wrong_data(said, "255") == "exit status 255: cannot read from file, (ior.c:1694)"
    assert wrong_data("", "") == "exit status "


def test_a_stonewall_ends_a_phase_early(version):
    found = result.read_phase(DATA / version / "stonewall-write-1.json", "write", 1)
    # 4000 MiB for each of two processes were asked for, and a second was given.
    volume, moved = 8000 * 2**20, found.fields["bytes"]
    assert 0 < moved < volume
    size = {"volume": volume, "filePerProc": 0, "blockSize": 4000 * 2**20}
    said = [problem for problem in problems([found], **size) if "not measured" not in problem]
    assert said == [f"write, repeat 1: bytes requested: {volume}, moved: {moved}"]
    walled = problems([found], **size, stonewall=True)
    assert [problem for problem in walled if "not measured" not in problem] == []


@pytest.mark.parametrize(
    ("listing", "said"),
    [
        (
            "4194304 a\n",
            ["files requested: 2, on disk: 1", "bytes written: 8388608, on disk: 4194304"],
        ),
        ("4194304 a\n4194303 b\n", []),  # IOR itself counts no finer than that
        ("4194304 a\n4193304 b\n", ["bytes written: 8388608, on disk: 8387608"]),
        ("4194304 a\n5194304 b\n", ["bytes written: 8388608, on disk: 9388608"]),
    ],
)
def test_bytes_on_disk(listing, said):
    assert misplaced_files(listing, 2, 8 * 2**20, grain=result.GRAIN) == said


def test_a_library_may_have_bytes_of_its_own():
    spare = result.spare_bytes("hdf5", 1)
    assert misplaced_files("8390656 a\n", 1, 8 * 2**20, spare) == []
    assert misplaced_files("9999999 a\n", 1, 8 * 2**20, spare) != []
    assert result.spare_bytes("mpiio", 1) == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "x.json: not JSON, IOR did not finish it"),
        ('{"tests": [', "x.json: not JSON, IOR did not finish it"),
        ("[]", "x.json: not a result of one test of IOR"),
        ('{"Version": "4.0.0", "tests": [], "summary": []}', "x.json: not a result of one test"),
    ],
)
def test_a_broken_file_is_reported(tmp_path, content, said):
    (tmp_path / "x.json").write_text(content, encoding="utf-8")
    with pytest.raises(ResultError, match=said):
        result.read_phase(tmp_path / "x.json", "write", 1)


def test_no_file_is_reported(tmp_path):
    with pytest.raises(ResultError, match=r"ior-write-1.json: no result file"):
        result.read_run(tmp_path, 1)


@pytest.mark.parametrize("said", ["ERROR: Unrecognized I/O API, (utilities.c:415)"])
def test_an_interface_that_was_not_built_in(said):
    assert result.lacks_api(said)
    assert not result.lacks_api("ERROR: open64 failed")


@pytest.mark.parametrize(
    ("said", "nodes", "pages"),
    [
        ("0\n0\nnode\n", 1, 0),
        ("12\n30\nnode\n0\n0\nnode\n", 2, 42),
        ("0\nnode\n", 2, None),  # one node reported nothing
        ("node\n", 1, None),  # the node has no command that counts
        ("", 1, None),
    ],
)
def test_pages_in_memory_are_counted_over_all_nodes(said, nodes, pages):
    assert result.resident_pages(said, nodes) == pages


def test_the_times_of_ranks_are_those_of_their_files():
    # captured from IOR 4.1.0+dev: three processes, each with a file
    times = result.rank_times(DATA / "ior-ranks.csv")
    assert [each.file for each in times] == [f"ior.dat.0000000{rank}" for rank in range(3)]
    assert all(0 < each.seconds < 10 and each.node is None for each in times)
