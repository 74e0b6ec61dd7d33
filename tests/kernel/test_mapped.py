"""The pattern mapped: a map places records in the file, and a process moves all by one call."""

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


def test_with_mpich_by_one_call_each(benchio_mpich):
    done = benchio_mpich.run(
        1, 50, 1, "local", *LAYERS, "unstriped", "--verify", "--keep", f"--seed={SEED}",
        "--result=result.jsonl", ranks=4,
    )  # fmt: skip
    assert done.status == 0, done.err
    for layer in LAYERS:
        assert file_of(benchio_mpich, layer).read_bytes() == stream(50 * 4 * 8, SEED), layer
    records = benchio_mpich.records()
    assert [line["calls"] for line in records] == [
        *[{"collective": 4, "independent": 0}] * 2,
        *[{"collective": 0, "independent": 4}] * 2,
    ]
    assert [(line["latency"], line["settings"]["record"]) for line in records] == [(None, 8)] * 4


@pytest.mark.parametrize("layer", LAYERS)
def test_a_corrupted_byte_is_named_by_the_rank_of_its_record(benchio, layer):
    record = 16
    words = (2, 40, 1, "local", layer, "unstriped", f"--seed={SEED}")
    assert benchio.run(*words, "--keep", ranks=RANKS).status == 0
    whole = file_of(benchio, layer).read_bytes()
    # For each rank, a place of its records that round robin would give to another rank.
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


def test_more_records_than_a_map_holds_are_refused(benchio, says):
    done = benchio.run_alone(1, 2**31, 1, "local", "mapped", "unstriped", "--record=1")
    assert done.status == 2
    says(done)
