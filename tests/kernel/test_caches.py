"""How reads avoid the page cache, as seen in system calls."""

import re
import subprocess
from collections import defaultdict

import pytest

from tests.kernel.conftest import Difference, tracing

SEED = 31
RUN = (16, 8, 8, "local")
LAYERS = ("serial", "proc", "node", "mpiio")
# Two nodes of two ranks each: see two_nodes.c.
NODES = {0: 0, 1: 1, 2: 1, 3: 0}


@pytest.fixture(scope="module")
def two_nodes(preloaded):
    return preloaded("two_nodes")


def traces(benchio):
    return [trace.read_text() for trace in sorted(benchio.cwd.glob("trace.*"))]


def caches(benchio):
    """Return the cache fields of the reads' records: in effect, and requested."""
    found = {}
    for record in benchio.records():
        pair = (record["cache"], record["cache_asked"])
        if record["operation"] == "write":
            assert pair == (None, None)
        else:
            found[record["layer"]] = pair
    return found


def run(benchio, *more, where="unstriped", ranks=4, wrapper=()):
    done = benchio.run(
        *RUN, *LAYERS, f"--directory={where}", "--verify", f"--seed={SEED}",
        "--result=result.jsonl", *more, ranks=ranks, wrapper=wrapper,
    )  # fmt: skip
    assert done.status == 0, done.err
    return done


def is_in_memory(path):
    """Whether the directory of the test is on a file system in memory."""
    command = ["stat", "--file-system", "--format=%T", path]
    kind = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return kind in ("tmpfs", "ramfs")


def files(benchio):
    names = ["serial", *(f"proc{rank:06}" for rank in range(4)), "node000000", "mpiio"]
    return {str(benchio.cwd / f"unstriped/{name}.dat") for name in names}


@pytest.mark.parametrize("more", [(), ("--cache=drop",)], ids=["default", "drop"])
def test_dropped_pages(benchio, more):
    done = run(benchio, *more, wrapper=tracing("fadvise64"))
    if is_in_memory(benchio.cwd):
        pytest.skip("the file system is in memory")
    assert caches(benchio) == dict.fromkeys(LAYERS, ("dropped", "dropped"))
    assert "Note" not in done.out
    dropped = re.findall(
        r"fadvise64\(\d+<([^>]*)>, 0, 0, POSIX_FADV_DONTNEED\) = 0", "".join(traces(benchio))
    )
    assert sorted(dropped) == sorted(files(benchio))


def test_nothing_is_done_where_nothing_was_asked(benchio):
    done = run(benchio, "--cache=none", wrapper=tracing("fadvise64,openat"))
    assert caches(benchio) == dict.fromkeys(LAYERS, ("none", "none"))
    assert "Note" not in done.out
    calls = "".join(traces(benchio))
    assert "unstriped/mpiio.dat" in calls
    assert "POSIX_FADV_DONTNEED" not in calls
    assert not re.search(r"\bO_DIRECT\b", calls)


def test_pages_that_cannot_be_dropped(benchio, tiny_file_system, says):
    for mode in ("drop", "direct"):
        done = run(benchio, f"--cache={mode}", where=tiny_file_system)
        asked = {"drop": "dropped"}.get(mode, mode)
        assert caches(benchio) == dict.fromkeys(LAYERS, ("none", asked))
        assert len(done.notes) == len(LAYERS)
        says(done)


def test_direct_reads(benchio, says):
    done = run(benchio, "--cache=direct", wrapper=tracing("openat,preadv,fadvise64"))
    if is_in_memory(benchio.cwd):
        pytest.skip("the file system is in memory")
    # MPI-IO cannot use O_DIRECT: there the pages are dropped.
    assert caches(benchio) == {
        **dict.fromkeys(LAYERS, ("direct", "direct")),
        "mpiio": ("dropped", "direct"),
    }
    says(done)
    opened = []
    for trace in traces(benchio):
        for line in re.findall(r"openat\(.*\bO_DIRECT\b.*", trace):
            opened += re.findall(r"= \d+<([^>]*)>", line)
        # Every read of the data is from a file opened with O_DIRECT; the order of the calls shows
        # it, since descriptors are reused.
        is_direct = {}
        for line in trace.splitlines():
            if found := re.search(r"openat\(.*, (O_\S+)(?:, \d+)?\) = (\d+)<", line):
                is_direct[found[2]] = "O_DIRECT" in found[1].split("|")
            elif found := re.search(r"preadv\((\d+)<[^>]*\.dat>", line):
                assert is_direct[found[1]], line
    assert sorted(opened) == sorted(path for path in files(benchio) if "mpiio" not in path)


def test_what_one_node_wrote_another_reads(benchio, two_nodes):
    wrapper = [*tracing("openat,pwritev,preadv"), *two_nodes]
    done = run(benchio, "--cache=shift", wrapper=wrapper)
    if benchio.records()[0]["nodes"] == 1:
        pytest.skip("this MPI library's mpi_f08 calls something else")
    assert caches(benchio) == dict.fromkeys(LAYERS, ("shifted", "shifted"))
    assert "Note" not in done.out

    moved = []
    for trace in traces(benchio):
        files = defaultdict(set)
        for call, rank in re.findall(r"(pwritev|preadv)\(\d+<[^>]*/proc(\d+)\.dat>", trace):
            files[call].add(int(rank))
        if files:
            ((wrote,), (read,)) = files["pwritev"], files["preadv"]
            moved.append((wrote, read))
    assert sorted(wrote for wrote, _ in moved) == sorted(read for _, read in moved) == [0, 1, 2, 3]
    assert all(NODES[wrote] != NODES[read] for wrote, read in moved)
    # One process writes this file, and one of the other node reads it.
    for layer in ("serial", "node000000", "node000001"):
        (writer,) = [at for at, trace in enumerate(traces(benchio))
                     if re.search(rf"pwritev\(\d+<[^>]*/{layer}\.dat>", trace)]  # fmt: skip
        (reader,) = [at for at, trace in enumerate(traces(benchio))
                     if re.search(rf"preadv\(\d+<[^>]*/{layer}\.dat>", trace)]  # fmt: skip
        assert writer != reader


def test_shifting_where_it_cannot_be_done(benchio, two_nodes, says):
    # Three of five on one node: one of them would read what its own node wrote.
    for ranks, wrapper in ((5, two_nodes), (2, ())):
        done = run(benchio, "--cache=shift", ranks=ranks, wrapper=wrapper)
        assert caches(benchio) == dict.fromkeys(LAYERS, ("none", "shifted"))
        assert len(done.notes) == len(LAYERS)
        says(done)


def test_a_corrupted_byte_is_placed_in_the_shifted_ranks_file(benchio, two_nodes):
    arguments = (*RUN, "proc", "unstriped", f"--seed={SEED}")
    benchio.run(*arguments, "--keep", ranks=4)
    path = benchio.cwd / "unstriped/proc000002.dat"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    done = benchio.run(
        *arguments, "--no-write", "--verify", "--cache=shift", ranks=4, wrapper=two_nodes
    )
    assert done.status == 1
    # 1024 elements a block: the last one of the third.
    found = Difference.of(done.messages[0])
    assert (found.path, found.byte) == ("unstriped/proc000002.dat", 8184)
