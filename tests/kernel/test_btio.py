"""NAS BT-IO: the points of each process, the content of the files, and wrong data."""

import re
import shutil
import subprocess

import numpy as np
import pytest

from tests.kernel.conftest import Benchio, injecting, tracing
from tests.kernel.reference import values

SEED = 1994
STEPS = 3
VALUES = 5  # of each grid point
MPIIO = ["btio", "btio-independent"]
PNETCDF = ["btio-pnetcdf", "btio-pnetcdf-nonblocking"]
PNETCDF_IS_THERE = shutil.which("pnetcdf-config") is not None
LAYERS = MPIIO + (PNETCDF if PNETCDF_IS_THERE else [])


def content(grid: tuple[int, int, int], steps: int = STEPS, seed: int = SEED):
    """All values, in the order of the file."""
    return values(np.arange(VALUES * grid[0] * grid[1] * grid[2] * steps), seed)


def data_of(path, grid, steps=STEPS):
    """The values in a file, and the byte where they begin."""
    count = VALUES * grid[0] * grid[1] * grid[2] * steps
    whole = path.read_bytes()
    start = len(whole) - 8 * count
    assert (start > 0) == ("pnetcdf" in path.name)
    return np.frombuffer(whole, dtype=">u8" if start else "<u8", offset=start), start


@pytest.mark.parametrize("ranks", [2, 8])
def test_a_number_of_ranks_that_is_no_square_is_a_usage_error(benchio, ranks):
    done = benchio.run(24, 24, 24, "global", "proc", "btio", "unstriped", ranks=ranks)
    assert done.status == 2
    assert "rate" not in done.out
    below, above = {2: (1, 4), 8: (4, 9)}[ranks]
    assert done.messages[0] == (
        f"btio needs a square number of processes, not {ranks}; {below} or {above} would do"
    )
    assert list((benchio.cwd / "unstriped").iterdir()) == []


@pytest.mark.parametrize(
    ("ranks", "grid", "io"),
    [
        (1, (5, 3, 7), "ompio"),
        (4, (2, 2, 2), "romio321"),
        (4, (7, 11, 13), "ompio"),
        (9, (7, 11, 13), "romio321"),
    ],
    ids=str,
)
def test_every_layer_writes_each_step_as_it_should(benchio, ranks, grid, io, monkeypatch):
    monkeypatch.setenv("OMPI_MCA_io", io)
    done = benchio.run(
        *grid, "global", *LAYERS, "unstriped", f"--steps={STEPS}", f"--seed={SEED}", "--keep",
        "--verify", "--repeats=2", "--result=result.jsonl", ranks=ranks,
    )  # fmt: skip
    assert done.status == 0, done.err
    expected = content(grid)
    for layer in LAYERS:
        found, _ = data_of(benchio.cwd / f"unstriped/{layer}.dat", grid)
        assert (found == expected).all(), layer
    records = benchio.records()
    assert [record["layer"] for record in records] == [name for name in LAYERS for _ in range(4)]
    for record in records:
        assert record["bytes"] == record["verified_bytes"] == 8 * expected.size
        assert record["writers"] == ranks


def test_five_steps_are_written_unless_told_otherwise(benchio):
    done = benchio.run(2, 3, 2, "local", *LAYERS, "unstriped", "--keep", f"--seed={SEED}", ranks=4)
    assert done.status == 0, done.err
    for layer in LAYERS:
        found, _ = data_of(benchio.cwd / f"unstriped/{layer}.dat", (4, 6, 2), 5)
        assert (found == content((4, 6, 2), 5)).all()


@pytest.mark.skipif(not PNETCDF_IS_THERE, reason="PnetCDF is not installed")
def test_pnetcdfs_own_tools_read_its_files(benchio):
    grid = (3, 4, 5)
    done = benchio.run(
        *grid, "global", *PNETCDF, "unstriped", f"--steps={STEPS}", f"--seed={SEED}", "--keep",
        ranks=4,
    )  # fmt: skip
    assert done.status == 0, done.err
    for layer in PNETCDF:
        path = benchio.cwd / f"unstriped/{layer}.dat"
        said = subprocess.run(["ncvalidator", path], capture_output=True, text=True, check=True)
        assert "valid NetCDF classic CDF-5" in said.stdout
        dump = subprocess.run(["ncmpidump", path], capture_output=True, text=True, check=True)
        assert "step = UNLIMITED ; // (3 currently)" in dump.stdout
        assert "int64 data(step, z, y, x, value)" in dump.stdout
        numbers = re.findall(r"-?\d+", dump.stdout.split("data =")[1])
        assert np.array(numbers, dtype=np.int64).tobytes() == content(grid).tobytes()


GRID = (4, 6, 5)  # on four ranks: cells of 2 x 3 x 3 and 2 x 3 x 2 points


@pytest.fixture(scope="module")
def kept_files(kernel_build, tmp_path_factory):
    """The files of every layer, as a run kept them."""
    where = tmp_path_factory.mktemp("kept")
    (where / "unstriped").mkdir()
    done = Benchio(kernel_build, where).run(
        *GRID, "global", *LAYERS, "unstriped", f"--seed={SEED}", f"--steps={STEPS}", "--keep",
        ranks=4,
    )  # fmt: skip
    assert done.status == 0, done.err
    return where / "unstriped"


@pytest.fixture(params=LAYERS)
def kept(request, benchio, kept_files):
    """A layer, and a copy of its file, to be changed."""
    shutil.copytree(kept_files, benchio.cwd / "unstriped", dirs_exist_ok=True)
    return request.param, benchio.cwd / "unstriped" / f"{request.param}.dat"


# One of those that find a file and read it alike.
of_each_way = pytest.mark.parametrize("kept", LAYERS[::2], indirect=True)


def read_back(benchio, layer, *more, ranks=4, seed=SEED, steps=STEPS):
    done = benchio.run(
        *GRID, "global", layer, "unstriped", "--no-write", f"--seed={seed}", f"--steps={steps}",
        "--result=result.jsonl", *(more or ["--verify"]), ranks=ranks,
    )  # fmt: skip
    if done.status:
        assert done.status == 1, done.err
        assert "rate" not in done.out
        assert benchio.records() == []
    return done


@pytest.mark.parametrize("ranks", [1, 9])
def test_other_numbers_of_ranks_read_what_four_wrote(benchio, kept_files, ranks):
    shutil.copytree(kept_files, benchio.cwd / "unstriped", dirs_exist_ok=True)
    done = read_back(benchio, *LAYERS, "--verify", ranks=ranks)
    assert done.status == 0, done.err
    for record in benchio.records():
        assert record["verified_bytes"] == 8 * content(GRID).size


def test_a_corrupted_byte_is_found_and_named(benchio, kept):
    layer, path = kept
    found, start = data_of(path, GRID)
    # Step 1 (from 0), point (3, 2, 4), value 2: the second layer, of whose cells the one with
    # x in 2..3 and y in 0..2 is the one that rank 2 came to from (0, 1).
    element = 2 + VALUES * (3 + 4 * (2 + 6 * (4 + 5 * 1)))
    whole = bytearray(path.read_bytes())
    whole[start + 8 * element + 6] ^= 64
    path.write_bytes(whole)
    expected = int(found[element].astype(np.int64))
    wrong = int(data_of(path, GRID)[0][element].astype(np.int64))
    message = read_back(benchio, layer).messages[0]
    assert message.startswith("rank 2 on host ")
    assert (
        f"verification of unstriped/{path.name} failed: at byte {start + 8 * element}, " in message
    )
    assert (
        f"element {element} of the whole array, expected {expected} and found {wrong};" in message
    )
    assert "1 elements differ" in message


@of_each_way
def test_swapped_steps_and_other_data_are_found(benchio, kept):
    layer, path = kept
    count = content(GRID).size
    assert f"{count} elements differ" in read_back(benchio, layer, seed=SEED + 1).messages[0]
    _, start = data_of(path, GRID)
    whole = path.read_bytes()
    step = (len(whole) - start) // STEPS
    first, second, third = (whole[at : at + step] for at in range(start, len(whole), step))
    path.write_bytes(whole[:start] + third + second + first)
    messages = read_back(benchio, layer).messages
    assert f"{2 * count // STEPS} elements differ" in messages[0]
    assert messages[1] == "and on 3 other ranks"


@of_each_way
def test_truncated_and_missing_files_are_refused(benchio, kept):
    layer, path = kept
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    message = read_back(benchio, layer, "--read").messages[0]
    assert f"{path.name} has {len(whole) - 5} bytes and should have {len(whole)}" in message
    path.write_bytes(whole)
    assert path.name in read_back(benchio, layer, steps=STEPS - 1).messages[0]
    path.unlink()
    message = read_back(benchio, layer).messages[0]
    assert f"unstriped/{path.name} failed: No such file or directory" in message


@of_each_way
def test_files_that_are_no_btio_files_do_not_hang(benchio, kept):
    layer, path = kept
    path.write_bytes(b"\x07" * (len(path.read_bytes())))
    assert path.name in read_back(benchio, layer).messages[0]


@pytest.mark.parametrize("io", ["ompio", "romio321"])
def test_every_process_syncs_the_file_once(benchio, io, monkeypatch):
    monkeypatch.setenv("OMPI_MCA_io", io)
    wrapper = tracing("fsync,fdatasync")
    done = benchio.run(
        4, 6, 5, "global", *LAYERS, "unstriped", "fsync", "--result=result.jsonl", ranks=4,
        wrapper=wrapper,
    )  # fmt: skip
    assert done.status == 0, done.err
    calls = [
        (path, trace.name)
        for trace in benchio.cwd.glob("trace.*")
        for path in re.findall(r"f(?:data)?sync\(\d+<([^>]*)>\) += 0", trace.read_text())
    ]
    for layer in LAYERS:
        mine = [trace for path, trace in calls if path.endswith(f"unstriped/{layer}.dat")]
        assert len(mine) == len(set(mine)) == 4, layer
    assert len(calls) == 4 * len(LAYERS)
    assert all(record["fsync"] for record in benchio.records())


@pytest.mark.parametrize("io", ["ompio", "romio321"])
def test_a_read_that_reads_nothing_is_not_verified(benchio, io, monkeypatch):
    """The second step's read is faked: its data must not be in memory."""
    monkeypatch.setenv("OMPI_MCA_io", io)
    path = str(benchio.cwd / "unstriped/btio.dat")
    wrapper = injecting("pread64,preadv", "retval=1600:when=2", "-P", path)
    done = benchio.run(
        2, 4, 5, "global", "btio", "unstriped", "--verify", "--steps=2", wrapper=wrapper
    )
    assert done.status == 1
    assert "element 200 of the whole array" in done.messages[0]
    assert "200 elements differ" in done.messages[0]


@pytest.mark.parametrize(
    ("layer", "io"), list(zip(LAYERS, ["ompio", "romio321"] * 2, strict=False))
)
def test_a_full_file_system_ends_the_run(benchio, tiny_file_system, layer, io, monkeypatch):
    monkeypatch.setenv("OMPI_MCA_io", io)
    done = benchio.run(
        32, 32, 32, "global", layer, f"--directory={tiny_file_system}", "--result=result.jsonl",
        ranks=4,
    )  # fmt: skip
    assert done.status == 1
    assert f"{layer}.dat" in done.messages[0]
    assert "rate" not in done.out
    assert benchio.records() == []
    assert list(tiny_file_system.iterdir()) == []


def test_a_directory_that_is_not_there_is_named(benchio):
    for layer in LAYERS[::2]:
        done = benchio.run(4, 4, 4, "global", layer, "--directory=nowhere", ranks=4)
        assert done.status == 1
        assert f"nowhere/{layer}.dat failed: No such file or directory" in done.messages[0]


@pytest.mark.parametrize("layer", LAYERS)
def test_a_failing_process_does_not_leave_the_others_waiting(benchio, layer, monkeypatch):
    """On one rank of four all writes of data fail, past the first: with ROMIO's locks, too."""
    monkeypatch.setenv("OMPI_MCA_io", "romio321")
    path = str(benchio.cwd / f"unstriped/{layer}.dat")
    fail = injecting("pwrite64", "error=EIO:when=2+", "-P", path)
    script = f'if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then exec {" ".join(fail)} "$@"; fi; exec "$@"'
    done = benchio.run(
        8, 8, 8, "global", layer, "unstriped", "--steps=4", ranks=4,
        wrapper=["sh", "-c", script, "sh"],
    )  # fmt: skip
    assert done.status == 1, done.out
    assert f"{layer}.dat" in done.messages[0]
    assert "rate" not in done.out
    assert list((benchio.cwd / "unstriped").iterdir()) == []
