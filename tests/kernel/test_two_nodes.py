"""More than one node on one machine, simulated by a preloaded library or by numbers of Slurm."""

import pytest

from tests.kernel.conftest import Difference
from tests.kernel.reference import blocks

SEED = 7
BLOCK = (3, 2, 4)
NODES = [(0, 3, 4), (1, 2)]


@pytest.fixture(scope="module")
def two_nodes(preloaded):
    return preloaded("two_nodes")


def test_a_file_a_node_with_its_blocks_by_rank(benchio, two_nodes):
    done = benchio.run(
        *BLOCK, "local", "unstriped", "--verify", "--keep", f"--seed={SEED}",
        "--result=result.jsonl", ranks=5, wrapper=two_nodes,
    )  # fmt: skip
    assert done.status == 0, done.err
    records = benchio.records()
    if records[0]["nodes"] == 1:
        pytest.skip("this MPI library's mpi_f08 calls something else")
    for record in records:
        assert (record["nodes"], record["processes"], record["processes_per_node"]) == (2, 5, 3)
        assert record["files"] == {"proc": 5, "node": 2}.get(record["layer"], 1)

    parts = blocks((3, 2, 20), (1, 1, 5), SEED)
    for node, ranks in enumerate(NODES):
        content = (benchio.cwd / f"unstriped/node{node:06}.dat").read_bytes()
        assert content == b"".join(parts[rank] for rank in ranks)


def test_a_difference_is_placed_in_the_right_file(benchio, two_nodes):
    arguments = (*BLOCK, "local", "node", "unstriped", f"--seed={SEED}")
    benchio.run(*arguments, "--keep", ranks=5, wrapper=two_nodes)
    path = benchio.cwd / "unstriped/node000001.dat"
    if not path.exists():
        pytest.skip("this MPI library's mpi_f08 calls something else")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1  # the last element of rank 2, the second of its node
    path.write_bytes(data)
    done = benchio.run(*arguments, "--no-write", "--verify", ranks=5, wrapper=two_nodes)
    assert done.status == 1
    found = Difference.of(done.messages[0])
    assert (found.rank, found.path) == (2, "unstriped/node000001.dat")
    assert (found.byte, found.element) == (376, 71)


@pytest.mark.parametrize(("nodes", "largest"), [("1", 5), ("$((PMI_RANK / 3))", 3)])
def test_without_shared_memory_a_host_is_a_node(benchio_mpich, nodes, largest):
    done = benchio_mpich.run(
        *BLOCK, "local", "node", "unstriped", "--verify", "--keep", "--result=result.jsonl",
        ranks=5, env={"MPIR_CVAR_NOLOCAL": "1"},
        wrapper=["sh", "-c", f'SLURM_NODEID={nodes} exec "$@"', "sh"],
    )  # fmt: skip
    assert done.status == 0, done.err
    for record in benchio_mpich.records():
        assert record["nodes"] == record["files"] == (1 if largest == 5 else 2)
        assert (record["processes"], record["processes_per_node"]) == (5, largest)
