"""The layer adios, if benchio was built with ADIOS2: its data, its files and its failures.

The data that ADIOS2 wrote are checked in the bytes of its files, and with ADIOS2's own `bpls` if it
is on the PATH.
"""

import re
import shutil
import subprocess

import pytest

from tests.kernel import reference
from tests.kernel.conftest import SOURCES, Benchio, Difference, build_kernel, injecting, mounted

SEED = 42
SHAPE = (7, 10, 6)  # four ranks: blocks of (7, 5, 3)
GRID = (1, 2, 2)


@pytest.fixture(scope="module")
def adios_build(needs_tools, tmp_path_factory):
    """A second build, if a suitable ADIOS2 is installed."""
    where = tmp_path_factory.mktemp("kernel-adios") / "build"
    command = ["cmake", "-S", SOURCES, "-B", where, "-DBENCHIO_ADIOS=ON"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "The layer adios cannot be compiled" in done.stderr:
        pytest.skip("no ADIOS2 with Fortran and this MPI; CMAKE_PREFIX_PATH may say where one is")
    return build_kernel(where)


@pytest.fixture
def adios(adios_build, tmp_path):
    (tmp_path / "unstriped").mkdir()
    return Benchio(adios_build, tmp_path)


@pytest.fixture(scope="module")
def kept_directory(adios_build, tmp_path_factory):
    """The directory that four ranks wrote and kept."""
    where = tmp_path_factory.mktemp("kept")
    (where / "unstriped").mkdir()
    done = Benchio(adios_build, where).run(
        *SHAPE, "global", "adios", "unstriped", f"--seed={SEED}", "--keep", ranks=4
    )
    assert done.status == 0, done.err
    return where / "unstriped/adios.dat"


@pytest.fixture
def kept(adios, kept_directory):
    """A copy of the kept directory that a test may change."""
    where = adios.cwd / "unstriped/adios.dat"
    shutil.copytree(kept_directory, where)
    return where


def read_back(adios, *more, shape=SHAPE, ranks=2, seed=SEED):
    return adios.run(
        *shape, "global", "adios", "unstriped", "--no-write", "--verify", f"--seed={seed}",
        "--result=result.jsonl", *more, ranks=ranks,
    )  # fmt: skip


def write(adios, where, *more, sizes=(32, 32, 48, "global"), ranks=3):
    return adios.run(
        *sizes, "adios", f"--directory={where}", "--result=result.jsonl", *more, ranks=ranks
    )


def refused(adios, done):
    assert done.status == 1, done.out + done.err
    assert "rate" not in done.out
    assert adios.records() == []
    return done.messages


@pytest.mark.parametrize(
    ("ranks", "more"),
    [
        (1, ()),
        (2, ("--decomposition=slab",)),
        (3, ("--decomposition=pencil",)),
        (4, ("--cache=drop",)),
        (6, ("--decomposition=pencil", "--writers=2")),
        (8, ()),
    ],
)
def test_what_is_written_is_read(adios, ranks, more):
    done = write(adios, "unstriped", "--verify", "--repeats=2", *more,
                 sizes=(7, 5, 3, "local"), ranks=ranks)  # fmt: skip
    assert done.status == 0, done.err
    records = adios.records()
    assert [record["operation"] for record in records] == ["write", "read"] * 2
    for record in records:
        assert record["pattern"] == "subfiles"
        assert record["interface"] == "adios2"
        assert record["files"] == 1
        assert record["verified_bytes"] == record["bytes"] == ranks * 7 * 5 * 3 * 8
    assert list((adios.cwd / "unstriped").iterdir()) == []


def test_an_array_of_one_element(adios):
    assert write(adios, "unstriped", "--verify", sizes=(1, 1, 1, "local"), ranks=1).status == 0
    assert adios.records()[1]["verified_bytes"] == 8


def test_the_file_holds_the_block_of_each_rank(kept_directory):
    assert [path.name for path in kept_directory.glob("data.*")] == ["data.0"]
    data = (kept_directory / "data.0").read_bytes()
    places = [data.find(block) for block in reference.blocks(SHAPE, GRID, SEED)]
    assert min(places) >= 0
    assert len(set(places)) == 4


@pytest.mark.parametrize(
    ("layer", "pattern", "files", "writers"),
    [("adios-default", "subfiles-default", 1, 1), ("adios-process", "subfiles-process", 4, 4)],
)
def test_its_other_ways_to_divide_the_data(adios, layer, pattern, files, writers):
    words = (*SHAPE, "global", layer, "unstriped", f"--seed={SEED}", "--verify",
             "--result=result.jsonl")  # fmt: skip
    done = adios.run(*words, "--keep", ranks=4)
    assert done.status == 0, done.err
    for record in adios.records():
        assert (record["pattern"], record["interface"]) == (pattern, "adios2")
        assert (record["files"], record["writers"]) == (files, writers)
        assert record["verified_bytes"] == record["bytes"] == 7 * 10 * 6 * 8
    directory = adios.cwd / f"unstriped/{layer}.dat"
    data = [path.read_bytes() for path in sorted(directory.glob("data.*"))]
    assert len(data) == files
    for rank, block in enumerate(reference.blocks(SHAPE, GRID, SEED)):
        assert block in data[rank * files // 4]
    done = adios.run(*words, "--no-write", ranks=2)
    assert done.status == 0, done.err


def test_bpls_finds_the_array(kept_directory):
    if shutil.which("bpls") is None:
        pytest.skip("bpls is not on the PATH")
    command = ["bpls", "-d", str(kept_directory), "array", "-n", "1"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # The axes in C's order: the values then are in Fortran's.
    assert "int64_t  array  {6, 10, 7}" in printed
    found = [int(value) for value in re.findall(r"\)\s+(-?\d+)", printed)]
    assert found == reference.whole_array(SHAPE, SEED).ravel(order="F").view("int64").tolist()


def test_other_processes_can_read_it(adios, kept):
    # Blocks of (7, 10, 2), unlike the write's.
    done = read_back(adios, ranks=3)
    assert done.status == 0, done.err
    assert adios.records()[0]["verified_bytes"] == 7 * 10 * 6 * 8
    assert kept.is_dir()


def test_a_corrupted_byte_is_found_and_named(adios, kept):
    # (6, 9, 5) counted from 0, the last element: on the second of two ranks.
    expected = int(reference.values([419], SEED).view("int64")[0])
    data = (kept / "data.0").read_bytes()
    value = expected.to_bytes(8, "little", signed=True)
    assert data.count(value) == 1
    wrong = bytes([value[0] ^ 1]) + value[1:]
    (kept / "data.0").write_bytes(data.replace(value, wrong))
    found = int.from_bytes(wrong, "little", signed=True)
    message = refused(adios, read_back(adios))[0]
    assert Difference.of(message) == Difference(
        1, "unstriped/adios.dat", -1, 419, expected, found, 1
    )


def test_a_truncated_file_is_refused(adios, kept):
    with (kept / "data.0").open("r+b") as file:
        file.truncate(3359)
    message = refused(adios, read_back(adios))[0]
    assert "adios.dat has 3359 bytes in 1 files of data and should have 3360 or more" in message


def test_a_missing_index_is_an_error_on_every_rank(adios, kept):
    (kept / "md.idx").unlink()
    messages = refused(adios, read_back(adios))
    assert "adios2_open of unstriped/adios.dat failed: ADIOS2 returned " in messages[0]


def test_data_of_another_seed_or_shape_are_not_taken(adios, kept):
    messages = refused(adios, read_back(adios, seed=SEED + 1))
    assert Difference.of(messages[0]).differing == 420
    messages = refused(adios, read_back(adios, shape=(10, 7, 6)))
    assert "has an array of 7 x 10 x 6 elements, not of 10 x 7 x 6" in messages[0]


def test_fsync_is_not_claimed(adios):
    done = write(adios, "unstriped", "fsync", "--repeats=2", ranks=2)
    assert done.status == 0, done.err
    assert done.out.count("Write times do not include fsync: adios2 cannot call it") == 1
    assert [record["fsync"] for record in adios.records()] == [False, False]


def test_what_is_not_of_adios_is_left_alone(adios, kept):
    (kept / "notes.txt").write_text("mine")
    message = refused(adios, write(adios, "unstriped"))[0]
    assert (
        "unstriped/adios.dat is not removed: it has other files than the layer's, such as "
        "unstriped/adios.dat/notes.txt" in message
    )
    assert {"notes.txt", "data.0", "md.0"} < {path.name for path in kept.iterdir()}


def test_a_link_is_not_followed(adios, kept):
    kept.rename(adios.cwd / "elsewhere")
    kept.symlink_to(adios.cwd / "elsewhere")
    assert "unstriped/adios.dat failed: " in refused(adios, write(adios, "unstriped"))[0]
    assert (adios.cwd / "elsewhere/data.0").exists()


def test_a_file_in_place_of_the_directory(adios):
    path = adios.cwd / "unstriped/adios.dat"
    path.write_text("mine")
    message = refused(adios, write(adios, "unstriped"))[0]
    assert "unstriped/adios.dat failed: Not a directory (errno 20)" in message
    assert path.read_text() == "mine"


def test_a_read_only_file_system(adios, read_only_file_system):
    message = refused(adios, write(adios, read_only_file_system))[0]
    assert "adios.dat failed: Read-only file system (errno 30)" in message


def test_too_little_room_is_found_before_adios_is_called(adios, tiny_file_system):
    message = refused(adios, write(adios, tiny_file_system, sizes=(64, 64, 48, "global")))[0]
    # 64 KiB, and 8 KiB a rank, for the metadata of ADIOS2.
    needed = 64 * 64 * 48 * 8 + 65536 + 3 * 8192
    assert f"{tiny_file_system} has 1048576 bytes free, and {needed} are to be" in message
    assert list(tiny_file_system.iterdir()) == []


def test_an_error_inside_a_collective_call_ends_on_all_ranks(adios):
    # One inode is the root's; profiling.json is then one too many.
    with mounted(adios.cwd / "few", "size=8m,nr_inodes=6") as where:
        message = refused(adios, write(adios, where))[0]
        assert f"adios2_close of {where}/adios.dat failed: ADIOS2 returned " in message
        assert list(where.iterdir()) == []


def test_a_call_that_the_others_never_leave_ends_the_run(adios):
    # One inode is the root's; data.0 is then one too many, while the others wait for its creator.
    with mounted(adios.cwd / "few", "size=8m,nr_inodes=3") as where:
        messages = refused(adios, write(adios, where))
        assert f"adios2_open of {where}/adios.dat failed: ADIOS2 returned " in messages[0]
        assert messages[1].endswith("the run is aborted, and its files stay")


def test_a_quota_that_one_writer_meets_ends_the_run(adios):
    """As with a user's quota, which cannot be checked in advance: the others must not hang."""
    path = str(adios.cwd / "unstriped/adios.dat/data.0")
    fail = injecting("write,pwrite64,writev,pwritev", "error=EDQUOT", "-P", path)
    script = f'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then exec {" ".join(fail)} "$@"; fi; exec "$@"'
    done = adios.run(
        *SHAPE, "global", "adios", "unstriped", ranks=4, wrapper=["sh", "-c", script, "sh"]
    )
    assert done.status != 0
    assert "rate" not in done.out
    assert "rank 1 on host" in done.messages[0]
    assert "adios.dat failed: ADIOS2 returned" in done.messages[0]


def test_it_is_listed_and_runs_when_no_layer_is_named(adios):
    assert "adios" in adios.layers()
    done = adios.run(4, 4, 4, "local", "unstriped", "--result=result.jsonl")
    assert done.status == 0, done.err
    assert "adios" in [record["layer"] for record in adios.records()]


def test_long_paths_and_blanks_in_them(adios):
    name = " a b/" + "x" * 200
    (adios.cwd / name).mkdir(parents=True)
    done = write(adios, name, "--verify", "--keep", sizes=(3, 5, 7, "local"))
    assert done.status == 0, done.err
    assert (adios.cwd / name / "adios.dat/data.0").exists()


def test_an_adios_that_is_asked_for_must_be_found(needs_tools, tmp_path):
    command = ["cmake", "-S", SOURCES, "-B", tmp_path / "b", "-DBENCHIO_ADIOS=ON",
               "-DCMAKE_DISABLE_FIND_PACKAGE_adios2=ON"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "The layer adios cannot be compiled" in done.stderr


def test_an_adios2_of_another_mpi_is_refused(adios_build, tmp_path):
    if shutil.which("mpifort.mpich") is None:
        pytest.skip("MPICH is not installed beside Open MPI")
    # With the compiler wrapper only, as in the checks: CMake then has no list of MPI libraries.
    command = ["cmake", "-S", SOURCES, "-B", tmp_path, "-DBENCHIO_ADIOS=ON"]
    settings = ["-DCMAKE_C_COMPILER=mpicc.mpich", "-DCMAKE_Fortran_COMPILER=mpifort.mpich"]
    done = subprocess.run([*command, *settings], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "built with another MPI library" in " ".join(done.stderr.split())
