"""The content of the files, byte for byte."""

import pytest

from tests.kernel.reference import blocks, values, whole_array

SEED = 20231009


def test_global_sizes_are_those_of_the_whole_array(benchio):
    benchio.run(6, 4, 8, "global", "mpiio", "unstriped", f"--seed={SEED}", "--keep", ranks=4)
    expected = whole_array((6, 4, 8), SEED).tobytes(order="F")
    assert (benchio.cwd / "unstriped/mpiio.dat").read_bytes() == expected


def test_rows_longer_than_one_call_takes(benchio):
    # More rows a process than IOV_MAX, not a multiple of it.
    done = benchio.run(
        2, 50, 83, "local", "proc", "unstriped", f"--seed={SEED}", "--keep", "--verify", ranks=2
    )
    assert done.status == 0, done.err
    expected = blocks((2, 50, 166), (1, 1, 2), SEED)
    assert [
        (benchio.cwd / f"unstriped/proc{rank:06}.dat").read_bytes() for rank in range(2)
    ] == expected


def test_more_than_the_leaders_buffer(benchio):
    # 300 MiB in planes of 7.5 MiB: two slabs, and the cut lies inside a block.
    done = benchio.run(1024, 960, 20, "local", "serial", "node", "unstriped", "--verify", ranks=2)
    assert done.status == 0, done.err


@pytest.mark.parametrize("index", [0, 1, 2**31 - 1, 2**31, 2**33 - 1, 2**60 - 1])
@pytest.mark.parametrize("seed", [0, 1, SEED, 2**63 - 1])
def test_values_at_large_indices(benchio, index, seed):
    expected = int(values([index], seed)[0])
    assert int(benchio.ask("value", index, seed)) % 2**64 == expected


def test_no_two_elements_or_seeds_share_a_value():
    for seed in (0, SEED):
        assert len(set(values(range(100_000), seed).tolist())) == 100_000
    assert len({int(values([12345], seed)[0]) for seed in range(10_000)}) == 10_000


@pytest.mark.parametrize(
    ("sizes", "grid"),
    [
        ((2048, 2048, 2048), (8, 16, 16)),
        ((4096, 4096, 8192), (1, 1, 1)),
        ((2**20, 2**20, 2**20 - 2), (2, 4, 2)),
    ],
)
def test_indices_beyond_31_bits(benchio, sizes, grid):
    rank = grid[0] * grid[1] * grid[2] - 1  # has the last element
    block = [length // parts for length, parts in zip(sizes, grid, strict=True)]
    start = [length - part for length, part in zip(sizes, block, strict=True)]
    first = start[0] + sizes[0] * (start[1] + sizes[1] * start[2])
    last = sizes[0] * sizes[1] * sizes[2] - 1
    assert benchio.ask("place", *sizes, *grid, rank) == f"{first} {last}"


def test_the_boxes_of_many_writers(benchio):
    """The product of processes and writers needs more than 31 bits."""
    ranks, writers = 2**17, 2**16
    last = benchio.ask("place", 1, 1, ranks, 1, 1, ranks, ranks - 1, writers)
    assert last == f"{ranks - 2} {ranks - 1}"


def test_seeds_are_drawn_anew_for_each_run(benchio):
    seeds = set()
    for _ in range(3):
        benchio.run(2, 2, 2, "local", "proc", "unstriped", "--result=result.jsonl", ranks=2)
        (record,) = benchio.records()
        assert 0 <= record["seed"] < 2**63
        seeds.add(record["seed"])
    assert len(seeds) == 3


def test_files_are_removed_unless_kept(benchio):
    benchio.run(4, 4, 4, "local", "--repeats=2", "--read", ranks=2)
    assert [path.name for path in benchio.cwd.rglob("*") if path.is_file()] == []


def test_long_paths_and_blanks_in_them(benchio):
    where = benchio.cwd / ("a long name " * 12).strip() / "ünïcode"
    where.mkdir(parents=True)
    done = benchio.run(
        2, 3, 4, "local", f"--directory={where}", "--result=result.jsonl", "--verify", ranks=2
    )
    assert done.status == 0, done.err
    assert {record["path"] for record in benchio.records()} == {
        f"{where}/{name}.dat"
        for name in ("serial", "proc000000", "node000000", "mpiio", "hdf5", "netcdf")
    }


def test_an_old_larger_file_leaves_nothing_behind(benchio):
    for name in ("serial", "proc000000", "node000000", "mpiio"):
        (benchio.cwd / "unstriped" / f"{name}.dat").write_bytes(b"x" * 100_000)
    layers = ("serial", "proc", "node", "mpiio")
    done = benchio.run(2, 3, 4, "local", *layers, "unstriped", "--verify", "--keep")
    assert done.status == 0, done.err
    assert {path.stat().st_size for path in (benchio.cwd / "unstriped").iterdir()} == {192}
