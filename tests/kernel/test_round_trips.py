"""Every layer of the 3-D array in every decomposition: its files, and reads with other layouts."""

import pytest

from tests.kernel.conftest import Difference
from tests.kernel.reference import blocks, whole_array

SEED = 20231009

# The result of MPI_Dims_create, reversed as in benchio.
GRIDS = {
    "block": {1: (1, 1, 1), 2: (1, 1, 2), 3: (1, 1, 3), 4: (1, 2, 2), 6: (1, 2, 3), 8: (2, 2, 2)},
    "pencil": {1: (1, 1, 1), 2: (1, 1, 2), 3: (1, 1, 3), 4: (1, 2, 2), 6: (1, 2, 3), 8: (1, 2, 4)},
    "slab": {ranks: (1, 1, ranks) for ranks in (1, 2, 3, 4, 6, 8)},
}
ODD, PRIME, ONE = (3, 5, 9), (7, 2, 11), (1, 1, 1)


def layers_of_the_array(benchio):
    """The layers of this build in which each process has a block."""
    names = benchio.layers()
    return [name for name in names if not name.startswith(("aligned", "btio", "strided", "mapped"))]


def extents(block, grid):
    return tuple(length * parts for length, parts in zip(block, grid, strict=True))


# Each number of ranks, and each block with each decomposition. Up to 6 ranks, pencils are blocks.
@pytest.mark.parametrize(
    ("decomposition", "ranks", "block"),
    [
        ("block", 1, PRIME),
        ("block", 4, ODD),
        ("block", 6, PRIME),
        ("block", 8, ONE),
        ("pencil", 2, ONE),
        ("pencil", 6, ODD),
        ("pencil", 8, PRIME),
        ("slab", 2, ODD),
        ("slab", 3, PRIME),
        ("slab", 4, ONE),
        ("slab", 8, ODD),
    ],
)
def test_every_layer_writes_the_array_it_should(benchio, decomposition, ranks, block):
    grid = GRIDS[decomposition][ranks]
    layers = layers_of_the_array(benchio)
    done = benchio.run(
        *block, "local", "unstriped", *layers, f"--decomposition={decomposition}",
        f"--seed={SEED}", "--keep", "--verify", "--compute=0", "--result=result.jsonl",
        ranks=ranks,
    )  # fmt: skip
    assert done.status == 0, done.err
    assert [record["layer"] for record in benchio.records()] == [n for n in layers for _ in "wr"]
    assert {record["verified_bytes"] == record["bytes"] for record in benchio.records()} == {True}

    whole = whole_array(extents(block, grid), SEED).tobytes(order="F")
    parts = blocks(extents(block, grid), grid, SEED)
    expected = {
        "serial.dat": whole,
        "mpiio.dat": whole,
        "mpiio-independent.dat": whole,
        "group000000.dat": whole,
        "node000000.dat": b"".join(parts),
        **{f"proc{rank:06}.dat": part for rank, part in enumerate(parts)},
    }
    directory = benchio.cwd / "unstriped"
    assert {name: (directory / name).read_bytes() for name in expected} == expected


@pytest.mark.parametrize(
    ("decomposition", "writers"),
    [("block", 1), ("block", 3), ("pencil", 2), ("slab", 2), ("slab", 3), ("slab", 6)],
)
def test_a_subset_of_writers_makes_the_same_files(benchio, decomposition, writers):
    grid = GRIDS[decomposition][6]
    done = benchio.run(
        *ODD, "local", "unstriped", "mpiio", "mpiio-independent", "proc",
        f"--decomposition={decomposition}", f"--writers={writers}", f"--seed={SEED}", "--keep",
        "--verify", "--result=result.jsonl", ranks=6,
    )  # fmt: skip
    assert done.status == 0, done.err
    whole = whole_array(extents(ODD, grid), SEED).tobytes(order="F")
    directory = benchio.cwd / "unstriped"
    assert (directory / "mpiio.dat").read_bytes() == whole
    assert (directory / "mpiio-independent.dat").read_bytes() == whole
    assert {record["writers"] for record in benchio.records()} == {writers}
    files = sorted(directory.glob("proc*"))
    assert len(files) == writers
    assert sum(path.stat().st_size for path in files) == len(whole)


# The last axis is divided first, and of three parts the first group has two.
@pytest.mark.parametrize(
    ("decomposition", "files", "parts"),
    [
        ("block", 1, [(slice(0, 10), slice(0, 27))]),
        ("block", 2, [(slice(0, 10), slice(0, 18)), (slice(0, 10), slice(18, 27))]),
        ("block", 6, [(slice(a, a + 5), slice(b, b + 9)) for a in (0, 5) for b in (0, 9, 18)]),
        ("slab", 2, [(slice(0, 5), slice(0, 27)), (slice(0, 5), slice(27, 54))]),
    ],
)
def test_each_group_writes_its_part_of_the_array(benchio, decomposition, files, parts):
    words = (
        *ODD, "local", "unstriped", "group", f"--decomposition={decomposition}",
        f"--files={files}", f"--seed={SEED}", "--verify", "--result=result.jsonl",
    )  # fmt: skip
    done = benchio.run(*words, "--keep", "--repeats=2", ranks=6)
    assert done.status == 0, done.err
    whole = whole_array(extents(ODD, GRIDS[decomposition][6]), SEED)
    directory = benchio.cwd / "unstriped"
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == {
        f"group{number:06}.dat": whole[:, second, third].tobytes(order="F")
        for number, (second, third) in enumerate(parts)
    }
    for record in benchio.records():
        assert record["verified_bytes"] == record["bytes"] == whole.nbytes
        assert (record["files"], record["writers"]) == (files, 6)
        assert (record["pattern"], record["interface"]) == ("fpg", "mpiio")
        assert record["settings"] == {"files": files}

    # The last element of all, which is the last of the last file.
    path = directory / f"group{files - 1:06}.dat"
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    done = benchio.run(*words, "--no-write", ranks=6)
    assert done.status == 1
    element = whole.size - 1
    found = Difference.of(done.messages[0])
    assert (found.rank, found.path) == (5, f"unstriped/{path.name}")
    assert (found.byte, found.element) == (len(data) - 8, element)


def test_numbers_of_files_and_writers_that_do_not_fit(benchio, says):
    for words in ("group --files=5", "group --files=7", "mpiio --writers=5", "serial --writers=2"):
        done = benchio.run(*ODD, "local", "unstriped", *words.split(), ranks=6)
        assert done.status == 2
        says(done)


@pytest.mark.parametrize("layer", [("proc", "--writers=1"), ("group",)])
def test_repeats_keep_no_communicators(benchio, preloaded, layer):
    """MPICH has only about 2000 of them."""
    left = []
    for repeats in (1, 3):
        done = benchio.run(
            1, 1, 1, "local", "unstriped", *layer, "--cache=shift", "--read",
            f"--repeats={repeats}", wrapper=preloaded("communicators"),
        )  # fmt: skip
        assert done.status == 0, done.err
        left.append([line for line in done.err.splitlines() if "communicators left" in line])
    assert left[0] == left[1] != []


def test_readers_that_had_no_part_in_the_writing(benchio):
    """8 ranks write in blocks, and 3 read in slabs."""
    sizes = (6, 8, 12)
    shared = [
        name
        for name in layers_of_the_array(benchio)
        if name not in ("proc", "node", "adios") and not name.startswith("snapshot")
    ]
    words = (*sizes, "global", "unstriped", *shared, f"--seed={SEED}", "--result=result.jsonl")
    assert benchio.run(*words, "--keep", ranks=8).status == 0
    done = benchio.run(*words, "--no-write", "--verify", "--decomposition=slab", ranks=3)
    assert done.status == 0, done.err
    assert [record["operation"] for record in benchio.records()] == ["read"] * len(shared)
    assert {record["verified_bytes"] for record in benchio.records()} == {6 * 8 * 12 * 8}


def test_one_layer_reads_what_another_wrote(benchio):
    words = (6, 4, 8, "global", "unstriped", f"--seed={SEED}")
    assert benchio.run(*words, "serial", "--keep", ranks=4).status == 0
    directory = benchio.cwd / "unstriped"
    for name in ("mpiio", "mpiio-independent"):
        (directory / f"{name}.dat").write_bytes((directory / "serial.dat").read_bytes())
    done = benchio.run(
        *words, "mpiio", "mpiio-independent", "--no-write", "--verify", ranks=2
    )  # fmt: skip
    assert done.status == 0, done.err
