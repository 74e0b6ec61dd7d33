"""A run is rejected unless it proves that it did what was requested."""

import json

import pytest

from checks.base.proof import ResultError, misplaced_files, rates, unproven
from checks.tools.benchio.result import asked, cache_of_reads, call_seconds, phases, read_result

FIELDS = {
    "layer": "proc",
    "pattern": "fpp",
    "interface": "posix",
    "nodes": 1,
    "processes": 4,
    "bytes": 4096,
    "files": 4,
}


def problems(records):
    """Return what the records of two repeats fail to prove."""
    return unproven(phases(records), asked(FIELDS, fsync=True), 2)


def record(operation, repeat, **changes):
    fields = {
        "schema": "benchio/4",
        "version": "0.1.0",
        "layer": "proc",
        "pattern": "fpp",
        "interface": "posix",
        "operation": operation,
        "repeat": repeat,
        "nodes": 1,
        "processes": 4,
        "bytes": 4096,
        "files": 4,
        "fsync": operation == "write",
        "bandwidth_gib_s": 1.0,
        "verified_bytes": 4096 if operation == "read" else None,
        "hints": {},
    }
    return {**fields, **changes}


@pytest.fixture
def records():
    return [record(operation, repeat) for repeat in (1, 2) for operation in ("write", "read")]


def test_a_proven_run_has_no_problems(records):
    assert problems(records) == []


@pytest.mark.parametrize("missing", range(4))
def test_each_phase_must_be_there(records, missing):
    operation, repeat = records[missing]["operation"], records[missing]["repeat"]
    del records[missing]
    assert problems(records) == [f"{operation}, repeat {repeat}: not measured"]


def test_nothing_measured_is_nothing_proven():
    assert len(problems([])) == 4


def test_a_phase_that_was_not_asked_for_is_reported(records):
    (problem,) = problems([*records, record("write", 3)])
    assert "requested" in problem


@pytest.mark.parametrize(
    ("index", "changes", "problem"),
    [
        (
            1,
            {"verified_bytes": 4095},
            "read, repeat 1: verified_bytes requested: 4096, in effect: 4095",
        ),
        (1, {"verified_bytes": None}, "verified_bytes requested: 4096, in effect: None"),
        (0, {"fsync": False}, "write, repeat 1: fsync requested: True, in effect: False"),
        (2, {"bytes": 1}, "write, repeat 2: bytes requested: 4096, in effect: 1"),
        (2, {"files": 1}, "files requested: 4, in effect: 1"),
        (3, {"processes": 2}, "processes requested: 4, in effect: 2"),
        (3, {"nodes": 2}, "nodes requested: 1, in effect: 2"),
        (0, {"layer": "mpiio"}, "layer requested: proc, in effect: mpiio"),
        (0, {"bandwidth_gib_s": 0}, "rate is 0"),
        (0, {"bandwidth_gib_s": float("nan")}, "rate is nan"),
        (0, {"bandwidth_gib_s": "fast"}, "rate is fast"),
    ],
)
def test_what_differs_from_what_was_asked_is_named(records, index, changes, problem):
    records[index].update(changes)
    (found,) = problems(records)
    assert problem in found


def test_files_on_disk():
    assert misplaced_files("1024 a\n1024 b\n1024 c\n1024 d d\n", 4, 4096) == []
    assert misplaced_files("1024 a\n", 4, 4096) == [
        "files requested: 4, on disk: 1",
        "bytes written: 4096, on disk: 1024",
    ]
    assert len(misplaced_files("", 4, 4096)) == 2


def test_the_repeats_of_an_operation():
    bandwidths = [3.0, 1.0, 10.0]
    records = [record("write", n, bandwidth_gib_s=each) for n, each in enumerate(bandwidths, 1)]
    records.append(record("read", 1, bandwidth_gib_s=99.0))
    assert rates(phases(records), "write") == [3.0, 1.0, 10.0]
    assert rates(phases(records), "read") == [99.0]


@pytest.mark.parametrize(
    ("caches", "label"),
    [
        (["dropped", "dropped"], "dropped"),
        (["dropped", "none"], "none"),
        (["none", "none"], "none"),
        ([None, "dropped"], "none"),
        ([None, None], "none"),
        (["direct", "direct"], "direct"),
        (["direct", "dropped"], "none"),
        (["shifted", "shifted"], "shifted"),
    ],
)
def test_one_read_from_memory_labels_the_sample(records, caches, label):
    records[1]["cache"], records[3]["cache"] = caches
    assert cache_of_reads(records) == label


def test_percentiles_of_calls(records):
    """Writes: the medians of two repeats and the longest of all; reads: timed once."""
    assert call_seconds(records) is None
    for at, times in enumerate(
        [(0.001, 0.002, 0.003, 0.5), (0.004,) * 4, (0.003, 0.004, 0.005, 0.1)]
    ):
        names = ("p50", "p95", "p99", "max")
        seconds = {f"seconds_{name}": each for name, each in zip(names, times, strict=True)}
        records[at]["latency"] = {"calls": 8, **seconds}
    records[3]["latency"] = None
    assert call_seconds(records) == (
        "write_bw=p50:0.002,p95:0.003,p99:0.004,max:0.5;read_bw=p50:0.004,p95:0.004,p99:0.004,max:0.004"
    )


def test_reading_the_file(tmp_path, records):
    path = tmp_path / "result.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in records), encoding="utf-8")
    assert read_result(path) == records


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": "benchio/4"}\n{"schema": "ben', "line 2: not a record"),
        ("[1, 2]\n", "line 1: not a record"),
        ("write 1.2 GiB/s\n", "line 1: not a record"),
        ('{"schema": "benchio/5"}\n', "schema 'benchio/5', not 'benchio/4'"),
        ("{}\n", "line 1: not a record"),
    ],
)
def test_what_is_no_result_file_is_refused(tmp_path, text, message):
    path = tmp_path / "result.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ResultError, match=message):
        read_result(path)


def test_a_missing_result_file_is_refused(tmp_path):
    with pytest.raises(ResultError, match="no result file"):
        read_result(tmp_path / "result.jsonl")
