"""The layers of the simulation that appends its array: files, times, failures."""

import re
import time
from collections import Counter

import pytest

from tests.kernel.reference import stream

SEED = 1010
BOTH = ("snapshot", "snapshot-nonblocking")
IDLE = ("--compute=0", "--every=2")


def files(benchio):
    return {path.name: path.read_bytes() for path in (benchio.cwd / "unstriped").iterdir()}


def test_with_mpich(benchio_mpich):
    done = benchio_mpich.run(
        3, 5, 7, "local", *BOTH, "unstriped", *IDLE, "--steps=3", f"--seed={SEED}", "--keep",
        "--verify", ranks=4,
    )  # fmt: skip
    assert done.status == 0, done.err
    assert files(benchio_mpich) == {f"{layer}.dat": stream(8 * 105 * 4 * 3, SEED) for layer in BOTH}


def test_time_computed_is_told_from_time_waited(benchio):
    began = time.monotonic()
    done = benchio.run(
        8, 8, 8, "local", *BOTH, "unstriped", "fsync", "--steps=3", "--every=10", "--compute=0.05",
        "--read", "--result=result.jsonl", "--ranks=ranks.csv", ranks=2,
    )  # fmt: skip
    wall = time.monotonic() - began
    assert done.status == 0, done.err
    writes = [record for record in benchio.records() if record["operation"] == "write"]
    reads = [record for record in benchio.records() if record["operation"] == "read"]
    for record in writes:
        assert record["seconds_compute"] >= 3 * 10 * 0.05
        assert record["seconds"] > 0
        stages = [record[f"seconds_{stage}"] for stage in ("open", "transfer", "sync", "close")]
        assert min(stages) >= 0
        assert sum(stages) >= record["rank_seconds_max"] * 0.999
    # If the seconds included the 3 s computed, they would exceed the time of the run.
    assert sum(record["seconds"] + record["seconds_compute"] for record in writes) < wall
    blocking, nonblocking = writes
    assert blocking["seconds_hidden"] == 0
    # A write is pending until the first time step after it ends, at least. Nothing is pending
    # in the time steps before the first write, and none follow the last.
    assert nonblocking["seconds_hidden"] >= 2 * 0.05
    assert nonblocking["seconds_hidden"] <= nonblocking["seconds_compute"] - 10 * 0.05
    assert {record.get("seconds_compute") for record in reads} == {None}
    lines = re.findall(r"computing = ([\d.]+) s, ([\d.]+) s of it with I/O pending", done.out)
    assert [(float(computed), float(hidden)) for computed, hidden in lines] == [
        (
            pytest.approx(record["seconds_compute"], rel=1e-5),
            pytest.approx(record["seconds_hidden"], rel=1e-5),
        )
        for record in writes
    ]


def test_a_time_step_is_timed_without_io_and_beside_it(benchio):
    done = benchio.run(
        6, 4, 2, "local", *BOTH, "unstriped", "--steps=3", "--every=10", "--compute=0.01",
        "--exchange", "--verify", "--keep", f"--seed={SEED}", "--decomposition=block",
        "--result=result.jsonl", ranks=4,
    )  # fmt: skip
    assert done.status == 0, done.err
    # The exchange does not change the data written.
    assert files(benchio) == {f"{layer}.dat": stream(8 * 6 * 4 * 2 * 4 * 3, SEED) for layer in BOTH}
    blocking, *_ = records = benchio.records()
    nonblocking = records[2]
    for record in records:
        assert record["settings"]["exchange"] is True
        if record["operation"] == "read":
            assert record["seconds_step"] is record["seconds_step_beside"] is None
    assert blocking["seconds_step_beside"] is None
    assert min(blocking["seconds_step"], nonblocking["seconds_step"]) >= 0.01
    assert nonblocking["seconds_step_beside"] >= 0.01
    # Of 30 steps: no rank has a larger mean than the slowest.
    assert blocking["seconds_step"] >= blocking["seconds_compute"] / 30 * 0.999
    assert done.out.count("s without I/O, ") == 1


# Blocks of 6 x 8 x 4 elements: a face along the third axis has 48, one along the second 24.
@pytest.mark.parametrize(
    ("decomposition", "ranks", "sent"),
    [
        ("slab", 3, {(a, 48, b): 1 for a in range(3) for b in range(3) if a != b}),
        # In a grid of 1 x 2 x 2 the one before and the one after are the same.
        (
            "block",
            4,
            {
                **{(rank, 48, to): 2 for rank, to in ((0, 1), (1, 0), (2, 3), (3, 2))},
                **{(rank, 24, to): 2 for rank, to in ((0, 2), (2, 0), (1, 3), (3, 1))},
            },
        ),
        ("block", 1, {}),
    ],
)
def test_each_step_sends_faces_to_the_neighbours(benchio, preloaded, decomposition, ranks, sent):
    done = benchio.run(
        6, 8, 4, "local", "snapshot", "unstriped", "--steps=1", "--every=5", "--compute=0",
        "--exchange", f"--decomposition={decomposition}", ranks=ranks,
        wrapper=preloaded("messages"),
    )  # fmt: skip
    assert done.status == 0, done.err
    seen = Counter(
        tuple(map(int, each)) for each in re.findall(r"rank (\d+) sent (\d+) to (\d+)", done.err)
    )
    assert seen == {each: 5 * number for each, number in sent.items()}


def test_a_full_device_that_the_library_is_silent_about(benchio, tiny_file_system, roomy):
    done = benchio.run(
        64, 64, 4, "global", "snapshot", f"--directory={tiny_file_system}", *IDLE,
        "--result=result.jsonl", ranks=2, env={"OMPI_MCA_io": "ompio"}, wrapper=roomy,
    )  # fmt: skip
    refused(benchio, done, tiny_file_system, "snapshot")


@pytest.mark.parametrize("layer", BOTH)
def test_a_full_device_with_mpich(benchio_mpich, tiny_file_system, roomy, layer):
    done = benchio_mpich.run(
        64, 64, 4, "global", layer, f"--directory={tiny_file_system}", *IDLE,
        "--result=result.jsonl", ranks=2, wrapper=roomy,
    )  # fmt: skip
    refused(benchio_mpich, done, tiny_file_system, layer)


def refused(benchio, done, where, layer):
    assert done.status == 1, done.err
    assert f"{where}/{layer}.dat" in done.messages[0]
    assert "rate" not in done.out
    assert benchio.records() == []
    assert list(where.iterdir()) == []


def test_a_library_that_would_crash_is_refused(benchio, says):
    done = benchio.run(
        4, 4, 4, "local", "snapshot-nonblocking", "unstriped", ranks=2,
        env={"OMPI_MCA_io": "romio321"},
    )  # fmt: skip
    assert done.status == 1
    says(done)
    assert list((benchio.cwd / "unstriped").iterdir()) == []
