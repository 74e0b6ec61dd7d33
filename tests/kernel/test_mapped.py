"""The pattern mapped: records that a map places in the file, and one call for all of a process."""

import numpy as np
import pytest

from tests.kernel.conftest import Difference
from tests.kernel.reference import stream, values

LAYERS = ["mapped", "mapped-independent"]
SEED = 12
RANKS = 3


def owner(place: int) -> int:
    """The rank whose record lies at this place, in records from the start of the file."""
    segment, slot = divmod(place, RANKS)
    return (slot - (int(values([segment], 0)[0]) >> 32)) % RANKS


def file_of(benchio, layer):
    return benchio.cwd / "unstriped" / f"{layer}.dat"


def holds_all(benchio, done, length, ranks=RANKS):
    assert done.status == 0, done.err
    for layer in LAYERS:
        assert file_of(benchio, layer).read_bytes() == stream(length, SEED), layer
    assert [line["layer"] for line in benchio.records()] == [n for n in LAYERS for _ in "wr"]
    for line in benchio.records():
        assert line["bytes"] == line["verified_bytes"] == length
        assert (line["pattern"], line["interface"]) == (line["layer"], "mpiio")
        assert (line["files"], line["writers"]) == (1, ranks)
        assert line["latency"] is None


@pytest.mark.parametrize("io", ["ompio", "romio321"])
@pytest.mark.parametrize("record", [1, 7, 1009, None])
def test_every_record_is_in_its_place(benchio, record, io):
    more = [] if record is None else [f"--record={record}"]
    done = benchio.run(
        5, 6, 4, "local", *LAYERS, "unstriped", "--verify", "--keep", f"--seed={SEED}", *more,
        "--result=result.jsonl", ranks=RANKS, env={"OMPI_MCA_io": io},
    )  # fmt: skip
    holds_all(benchio, done, 24 * RANKS * (record or 5 * 8))
    assert {line["settings"]["record"] for line in benchio.records()} == {record or 5 * 8}


def test_with_mpich_by_one_call_each(benchio_mpich):
    done = benchio_mpich.run(
        1, 50, 1, "local", *LAYERS, "unstriped", "--verify", "--keep", f"--seed={SEED}",
        "--result=result.jsonl", ranks=4,
    )  # fmt: skip
    holds_all(benchio_mpich, done, 50 * 4 * 8, ranks=4)
    assert [line["calls"] for line in benchio_mpich.records()] == [
        *[{"collective": 4, "independent": 0}] * 2,
        *[{"collective": 0, "independent": 4}] * 2,
    ]


@pytest.mark.parametrize("layer", LAYERS)
def test_a_corrupted_byte_is_named_by_the_rank_of_its_record(benchio, layer):
    record = 16
    words = (2, 40, 1, "local", layer, "unstriped", f"--seed={SEED}")
    assert benchio.run(*words, "--keep", ranks=RANKS).status == 0
    whole = file_of(benchio, layer).read_bytes()
    # Where a record of each rank lies that is not its turn.
    places = {owner(place): place for place in range(40 * RANKS) if owner(place) != place % RANKS}
    assert len(places) == RANKS
    for rank, place in places.items():
        at = place * record + 8
        data = bytearray(whole)
        data[at] ^= 255
        file_of(benchio, layer).write_bytes(data)
        done = benchio.run(*words, "--no-write", "--verify", ranks=RANKS)
        assert done.status == 1
        found = Difference.of(done.messages[0])
        assert (found.rank, found.path) == (rank, f"unstriped/{layer}.dat")
        assert (found.byte, found.element, found.differing) == (at, at // 8, 1)


def test_the_map_is_irregular():
    turns = {tuple(owner(segment * RANKS + slot) for slot in range(RANKS)) for segment in range(40)}
    assert turns == {(0, 1, 2), (1, 2, 0), (2, 0, 1)}
    first = [place for place in range(40 * RANKS) if owner(place) == 0]
    assert len(set(np.diff(first))) > 3


def test_other_processes_can_read_it(benchio):
    words = (2, 6, 4, "global", *LAYERS, "unstriped", f"--seed={SEED}", "--result=result.jsonl")
    assert benchio.run(*words, "--keep", ranks=3).status == 0
    done = benchio.run(*words, "--no-write", "--verify", ranks=2)
    assert done.status == 0, done.err
    assert [line["verified_bytes"] for line in benchio.records()] == [2 * 6 * 4 * 8] * 2


def test_more_than_the_memory_holds_goes_round_by_round(benchio):
    # Seven records of 40 MiB: six fit, and the last is the second call.
    done = benchio.run(
        1, 7, 1, "local", "mapped", "unstriped", "--record=40M", f"--seed={SEED}", "--cache=none",
        "--verify", "--result=result.jsonl",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert [line["verified_bytes"] for line in benchio.records()] == [7 * 40 * 2**20] * 2


@pytest.mark.parametrize("io", ["ompio", "romio321"])
@pytest.mark.parametrize("layer", LAYERS)
def test_a_full_device_stops_all_and_leaves_no_file(benchio, tiny_file_system, roomy, layer, io):
    done = benchio.run(
        8192, 4, 2, "local", layer, f"--directory={tiny_file_system}", "--result=result.jsonl",
        ranks=RANKS, env={"OMPI_MCA_io": io}, wrapper=roomy,
    )  # fmt: skip
    assert done.status == 1
    assert f"{tiny_file_system}/{layer}.dat" in done.messages[0]
    assert "rate" not in done.out
    assert benchio.records() == []
    assert list(tiny_file_system.iterdir()) == []


def test_more_records_than_a_map_holds_are_refused(benchio, says):
    done = benchio.run_alone(1, 2**31, 1, "local", "mapped", "unstriped", "--record=1")
    assert done.status == 2
    says(done)
