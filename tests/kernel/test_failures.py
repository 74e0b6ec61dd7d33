"""A call that fails ends the run with a message, without a rate and without a file."""

import re

import pytest

from tests.kernel.conftest import mounted

LAYERS = ["serial", "proc", "node", "mpiio"]
# 1.5 MiB in all, for a file system of 1 MiB
TOO_LARGE = (64, 64, 48, "global")


def assert_no_figures(benchio, done):
    assert done.status == 1, done.out + done.err
    assert "rate" not in done.out
    assert "Finished" not in done.out
    assert benchio.records() == []


def run(benchio, layer, where, ranks=3):
    return benchio.run(
        *TOO_LARGE, layer, f"--directory={where}", "--result=result.jsonl", ranks=ranks
    )


# Full and read-only devices, and a file in place of the directory: tests/faults.


def test_what_was_measured_before_a_failure_stays_measured(benchio, tiny_file_system):
    done = benchio.run(
        *TOO_LARGE, "proc", "unstriped", f"--directory={tiny_file_system}",
        "--result=result.jsonl", ranks=3,
    )  # fmt: skip
    assert done.status == 1
    assert [record["path"] for record in benchio.records()] == ["unstriped/proc000000.dat"]
    assert done.out.count("rate") == 1
    assert "Finished" not in done.out


@pytest.mark.parametrize("layer", LAYERS)
def test_a_missing_directory(benchio, layer, says):
    done = run(benchio, layer, "nowhere")
    assert_no_figures(benchio, done)
    assert done.messages[0].startswith("rank 0 on host ")
    says(done)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_directory_in_place_of_the_file(benchio, layer, says):
    name = {"serial": "serial", "mpiio": "mpiio"}.get(layer, f"{layer}000000")
    (benchio.cwd / "unstriped" / f"{name}.dat").mkdir()
    done = run(benchio, layer, "unstriped")
    assert_no_figures(benchio, done)
    says(done)


def test_one_rank_that_fails_does_not_leave_the_others_waiting(benchio):
    (benchio.cwd / "unstriped/proc000002.dat").mkdir()
    done = run(benchio, "proc", "unstriped", ranks=4)
    assert_no_figures(benchio, done)
    assert done.messages[0].startswith("rank 2 on host ")
    assert [path.name for path in (benchio.cwd / "unstriped").iterdir()] == ["proc000002.dat"]


def test_a_result_file_that_cannot_be_made_stops_the_run_before_any_io(benchio, says):
    done = benchio.run(4, 4, 4, "local", "unstriped", "--keep", "--result=nowhere/r", ranks=2)
    assert done.status == 1
    says(done)
    assert list((benchio.cwd / "unstriped").iterdir()) == []


def test_a_result_file_on_a_full_device(benchio, full_file_system, says):
    result = full_file_system / "result.jsonl"
    done = benchio.run(4, 4, 4, "local", "proc", "unstriped", f"--result={result}", ranks=2)
    assert done.status == 1
    says(done)
    assert "rate" not in done.out
    assert list((benchio.cwd / "unstriped").iterdir()) == []


def test_a_writer_without_memory_for_the_blocks_of_others_ends_the_run(benchio, says):
    """One block of 1 GiB fits into the address space, but two do not."""
    done = benchio.run(
        1024, 1024, 128, "local", "proc", "unstriped", "--writers=1", "--halo=0", ranks=2,
        wrapper=["prlimit", f"--as={2560 * 2**20}"],
    )  # fmt: skip
    assert done.status == 1
    says(done)


def test_an_array_that_no_memory_holds(benchio, says):
    done = benchio.run(2**20, 2**20, 2**18, "local", "proc", "unstriped", ranks=2)
    assert done.status == 1
    says(done)


def test_a_hole_of_the_right_size_is_found(benchio, says):
    # Large enough for a file system to leave a hole, and not verified.
    arguments = (64, 64, 64, "local", "mpiio", "unstriped")
    assert benchio.run(*arguments, "--keep").status == 0
    path = benchio.cwd / "unstriped/mpiio.dat"
    data = path.read_bytes()
    with path.open("wb") as file:
        file.write(data[:65536])
        file.seek(1048576)
        file.write(data[1048576:])
    assert path.stat().st_size == len(data)
    if path.stat().st_blocks * 512 >= len(data):
        pytest.skip("the file system makes no holes")
    done = benchio.run(*arguments, "--no-write", "--read")
    assert done.status == 1
    says(done)


# 32 MiB of each of 4 processes, with twice as much room as 1 has.
@pytest.fixture
def file_system_of_80_mib(tmp_path):
    with mounted(tmp_path / "small", "size=80m") as where:
        yield where


@pytest.mark.parametrize(
    ("layer", "sizes"),
    [
        *((layer, (128, 128, 256)) for layer in ("mpiio", "group", "hdf5", "netcdf", "pnetcdf")),
        ("pnetcdf-nonblocking", (128, 128, 256)),
        ("snapshot", (64, 64, 64)),
        *((layer, (64, 64, 64)) for layer in ("btio", "btio-pnetcdf", "btio-pnetcdf-nonblocking")),
        *((layer, (2**22, 1, 1)) for layer in ("strided", "mapped")),
    ],
)
def test_a_collective_write_without_room_for_it_is_not_begun(
    benchio, file_system_of_80_mib, layer, sizes
):
    if layer not in benchio.layers():
        pytest.skip(f"{layer} is not compiled in")
    where = file_system_of_80_mib
    done = benchio.run(
        *sizes, "local", layer, f"--directory={where}", "fsync", "--result=result.jsonl", ranks=4
    )
    assert_no_figures(benchio, done)
    assert re.search(r"/small has \d+ bytes free, and \d+ are to be written$", done.messages[0])
    assert list(where.iterdir()) == []


ABORTED = r"after 60 s the other processes still wait in a call, .* aborted; removed: \S+\.dat"


@pytest.mark.parametrize("layer", ["mpiio", "group", "hdf5", "pnetcdf"])
def test_processes_that_wait_for_each_other_after_a_failure_are_ended(
    benchio, file_system_of_80_mib, roomy, layer
):
    """As when a quota is used up: the others never leave ROMIO's MPI_File_write_all."""
    if layer not in benchio.layers():
        pytest.skip(f"{layer} is not compiled in")
    where = file_system_of_80_mib
    done = benchio.run(
        128, 128, 256, "local", layer, f"--directory={where}", "fsync", "--result=result.jsonl",
        ranks=4, env={"OMPI_MCA_io": "romio321"}, wrapper=roomy,
    )  # fmt: skip
    assert_no_figures(benchio, done)
    assert re.match(r"rank \d on host \S+: MPI_File_write\S* .*failed: .+", done.messages[0])
    assert re.fullmatch(ABORTED, done.messages[1])
    assert list(where.iterdir()) == []


def test_processes_that_wait_for_each_other_are_ended_with_mpich(
    benchio_mpich, file_system_of_80_mib, roomy
):
    where = file_system_of_80_mib
    done = benchio_mpich.run(
        128, 128, 64, "local", "btio", f"--directory={where}", "fsync",
        "--result=result.jsonl", ranks=4, wrapper=roomy,
    )  # fmt: skip
    assert_no_figures(benchio_mpich, done)
    assert "MPI_File_write_at_all" in done.messages[0]
    assert list(where.iterdir()) == []


@pytest.mark.parametrize("layer", ["proc", "mpiio", "mpiio --writers=1"])
def test_a_limit_of_the_size_of_files(benchio, layer):
    """Open MPI's own MPI-IO would report nothing and wait forever."""
    done = benchio.run(
        128, 128, 128, "local", *layer.split(), "unstriped", "--result=result.jsonl", ranks=3,
        # Open MPI needs half of that for its own files.
        wrapper=["prlimit", f"--fsize={2**23}"],
    )  # fmt: skip
    assert_no_figures(benchio, done)
    assert f"unstriped/{layer.split()[0]}" in done.messages[0]
    assert done.messages[0].endswith("and a file may have 8388608 (ulimit -f)")
    assert list((benchio.cwd / "unstriped").glob("*.dat")) == []


def test_a_write_beyond_the_limit_fails_and_leaves_no_file(benchio):
    """It ends with a message and not by SIGXFSZ."""
    done = benchio.run(
        128, 128, 128, "local", "aligned", "unstriped", "--result=result.jsonl", ranks=2,
        wrapper=["prlimit", f"--fsize={2**23}"],
    )  # fmt: skip
    assert_no_figures(benchio, done)
    assert done.messages[0].endswith("aligned.dat failed: File too large (errno 27)")
    assert list((benchio.cwd / "unstriped").iterdir()) == []


def test_what_may_be_wrong_with_files_of_another_run_is_asked(benchio):
    def read(*sizes, ranks=2):
        arguments = ("proc", "unstriped", "--no-write", "--verify", "--seed=7")
        done = benchio.run(*sizes, "local", *arguments, ranks=ranks)
        assert done.status == 1
        return done.messages

    first, second = read(4, 4, 4)
    assert first.endswith("(errno 2); was it kept by a run of the same layer?")
    assert second == "and on 1 other rank"
    benchio.run(4, 4, 4, "local", "proc", "unstriped", "--seed=7", "--keep", ranks=2)
    assert read(4, 4, 8)[0].endswith(
        "has 512 bytes and should have 1024; was it written with other sizes or another number of "
        "processes?"
    )


def test_a_short_write_asks_for_room(benchio, tiny_file_system, roomy):
    done = benchio.run(
        *TOO_LARGE, "mpiio-independent", f"--directory={tiny_file_system}", ranks=2,
        env={"OMPI_MCA_io": "ompio"}, wrapper=roomy,
    )  # fmt: skip
    assert done.status == 1
    assert done.messages[0].endswith(" bytes; is the file system or a quota full?")
