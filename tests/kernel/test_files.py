"""The content of the files, byte for byte."""

from tests.kernel.reference import blocks

SEED = 20231009


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
