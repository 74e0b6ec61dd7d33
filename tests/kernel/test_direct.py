"""`--direct`, `--halo` and `--latency`: their effect on system calls and results."""

import filecmp
import re

import pytest

from tests.kernel.conftest import tracing
from tests.kernel.test_caches import is_in_memory, traces

# Blocks of 8 KiB.
RUN = (16, 8, 8, "local")
POSIX = ("serial", "proc", "node", "strided-posix", "aligned")


@pytest.fixture
def on_disk(benchio):
    if is_in_memory(benchio.cwd):
        pytest.skip("the file system is in memory")
    return benchio


def run(benchio, *arguments, where="unstriped", wrapper=()):
    return benchio.run(
        *RUN, *arguments, f"--directory={where}", "--seed=5", "--result=result.jsonl",
        ranks=4, wrapper=wrapper,
    )  # fmt: skip


def test_direct_moves_all_data_past_the_page_cache(on_disk):
    wrapper = tracing("openat,pwritev,preadv")
    # Records of 1 KiB instead of rows of 128 bytes.
    direct = ("--direct", "--record=1024", "--verify", "--keep")
    done = run(on_disk, *POSIX, *direct, wrapper=wrapper)
    assert done.status == 0, done.err
    records = on_disk.records()
    assert len(records) == 2 * len(POSIX)
    for record in records:
        assert record["direct"] is True
        assert record["halo"] == (0 if record["decomposition"] else None)
        if record["operation"] == "read":
            assert (record["cache"], record["cache_asked"]) == ("direct", "direct")
    moved = 0
    for trace in traces(on_disk):
        is_direct = {}
        for line in trace.splitlines():
            if found := re.search(r"openat\(.*, (O_\S+)(?:, \d+)?\) = (\d+)<", line):
                is_direct[found[2]] = "O_DIRECT" in found[1].split("|")
            elif found := re.search(r"(?:pwritev|preadv)\((\d+)<[^>]*\.dat>.* = (\d+)$", line):
                assert is_direct[found[1]], line
                moved += int(found[2])
    assert moved == sum(record["bytes"] for record in records)

    # The files are as after a run through the page cache.
    assert run(on_disk, *POSIX, "--keep", "--record=1024", where="striped").status == 0
    names = sorted(path.name for path in (on_disk.cwd / "striped").iterdir())
    same, _, _ = filecmp.cmpfiles(
        on_disk.cwd / "unstriped", on_disk.cwd / "striped", names, shallow=False
    )
    assert sorted(same) == names


def test_a_system_that_uses_the_page_cache_all_the_same_is_found_out(on_disk, preloaded, says):
    done = run(on_disk, "proc", "--direct", wrapper=preloaded("cached_open"))
    assert done.status == 1
    says(done)
    assert on_disk.records() == []
    assert list((on_disk.cwd / "unstriped").iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        "mpiio --direct",
        "proc --direct --halo=1",
        "snapshot --latency",
        "proc --direct --cache=drop --read",
        "proc --halo=-1",
        "proc --halo=2147483640",
        "proc --halo=1000000000",
    ],
)
def test_what_cannot_be_asked_for(benchio, words, says):
    done = benchio.run_alone(*RUN, *words.split())
    assert done.status == 2
    says(done)


def test_a_halo_of_any_width_leaves_the_files_as_they_are(benchio):
    layers = [
        name for name in benchio.layers()
        if name in {"serial", "proc", "node", "mpiio", "pnetcdf", "hdf5", "snapshot"}
    ]  # fmt: skip
    for halo, where in (0, "unstriped"), (1, "striped"), (3, "fullstriped"):
        done = run(
            benchio, *layers, f"--halo={halo}", "--steps=1", "--verify", "--keep", where=where
        )
        assert done.status == 0, done.err
        assert {record["halo"] for record in benchio.records()} == {halo}
    for path in (benchio.cwd / "striped").iterdir():
        # HDF5's header has the time.
        if path.name != "hdf5.dat":
            for other in ("unstriped", "fullstriped"):
                assert filecmp.cmp(path, benchio.cwd / other / path.name, shallow=False), path


def test_without_a_halo_a_block_is_one_contiguous_call(benchio):
    run(benchio, "proc", "--halo=0", wrapper=tracing("pwritev"))
    calls = re.findall(r"pwritev\(\d+<[^>]*/proc\d+\.dat>, \[(.*)\], (\d+), 0\) = (\d+)",
                       "\n".join(traces(benchio)))  # fmt: skip
    assert [(vectors, moved) for _, vectors, moved in calls] == [("1", "8192")] * 4


def test_gathered_blocks_have_the_halo_too(benchio):
    assert run(benchio, "proc", "--writers=2", "--halo=0", "--verify").status == 0


def test_latency_is_of_the_calls_that_moved_data(benchio):
    wrapper = tracing("pwritev,preadv")
    # By contract 1 the last three have none.
    layers = ("strided-posix", "mpiio", "group", "mapped", "snapshot")
    options = ("--steps=2", "--every=1", "--compute=0", "--latency", "--read")
    done = run(benchio, *layers, *options, wrapper=wrapper)
    assert done.status == 0, done.err
    assert done.out.count("calls, ms:") == 4
    calls = "\n".join(traces(benchio))
    for record in benchio.records():
        latency = record["latency"]
        if record["layer"] in layers[2:]:
            assert latency is None
            continue
        if record["layer"] == "mpiio":
            assert latency["calls"] == 4
        else:
            call = {"write": "pwritev", "read": "preadv"}[record["operation"]]
            moved = len(re.findall(rf"{call}\(\d+<[^>]*/strided-posix\.dat>", calls))
            assert latency["calls"] == moved == 8 * 8 * 4
        times = [latency[f"seconds_{which}"] for which in ("p50", "p95", "p99", "max")]
        assert 0 < times[0] <= times[1] <= times[2] <= times[3] <= record["seconds_transfer"]
    run(benchio, "proc")
    assert benchio.records()[0]["latency"] is None
