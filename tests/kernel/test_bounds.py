"""How long a run takes, and how much it leaves free."""

import re

import pytest

from tests.kernel.conftest import injecting

RUN = (32, 32, 16, "local")


def seconds_of(records, layer, operation):
    return [
        record["seconds"]
        for record in records
        if (record["layer"], record["operation"]) == (layer, operation)
    ]


@pytest.mark.parametrize("more", [("--read",), ()], ids=["read", "write"])
def test_repeats_until_each_phase_took_long_enough(benchio, more):
    least = 0.05
    done = benchio.run(
        *RUN, "proc", "mpiio", "unstriped", *more, "--repeats=2", f"--min-seconds={least}",
        "--result=result.jsonl", ranks=2,
    )  # fmt: skip
    assert done.status == 0, done.err
    for layer in ("proc", "mpiio"):
        both = [seconds_of(benchio.records(), layer, name) for name in ("write", "read")]
        both = both if more else both[:1]
        assert len({len(times) for times in both}) == 1
        assert len(both[0]) >= 2
        assert all(sum(times) >= least for times in both)
        # No more repeats than needed: without the last one, one of the phases is too short.
        assert len(both[0]) == 2 or any(sum(times[:-1]) < least for times in both)
        repeats = [record["repeat"] for record in benchio.records() if record["layer"] == layer]
        assert sorted(set(repeats)) == list(range(1, len(both[0]) + 1))
    assert not list((benchio.cwd / "unstriped").iterdir())


def test_a_phase_of_less_than_a_second_is_said_to_be_short(benchio):
    benchio.run(*RUN, "proc", "unstriped", "--read", "--result=result.jsonl")
    # One call of the write is slow.
    slow = injecting("pwritev", "delay_enter=1100000:when=1")
    records = benchio.records()
    assert [record["short"] for record in records] == [record["seconds"] < 1 for record in records]
    done = benchio.run(
        *RUN, "proc", "unstriped", "--read", "--result=result.jsonl", wrapper=slow
    )  # fmt: skip
    assert done.status == 0, done.err
    wrote, got = benchio.records()
    assert (wrote["short"], got["short"]) == (False, got["seconds"] < 1)
    assert wrote["seconds"] >= 1.1
    said = [bool(short) for short in re.findall(r"GiB/s( \(short\))?", done.out)]
    assert said == [False, got["short"]]


def test_the_run_stops_between_phases_and_says_what_is_missing(benchio):
    done = benchio.run(
        *RUN, "proc", "mpiio", "serial", "unstriped", "striped", "--verify", "--repeats=1000000",
        "--max-seconds=1", "--result=result.jsonl", "--ranks=ranks.csv", ranks=2,
    )  # fmt: skip
    assert done.status == 3
    records = benchio.records()
    assert records
    assert {record["layer"] for record in records} == {"serial"}
    assert {record["path"] for record in records} == {"unstriped/serial.dat"}
    assert [record["repeat"] for record in records] == [at // 2 + 1 for at in range(len(records))]
    assert all(record["verified_bytes"] == record["bytes"] for record in records)
    # Each phase's line for each rank, below the names of the columns.
    assert len((benchio.cwd / "ranks.csv").read_text().splitlines()) == 1 + 2 * len(records)
    (message,) = done.messages
    found = re.search(r"(write|read) of unstriped/serial\.dat, repeat (\d+)", message)
    # A write without its verification was not reported.
    assert int(found[2]) == records[-1]["repeat"] + 1
    assert message.split("; ")[-5:] == [
        f"{layer} in {where}" for layer in ("serial", "proc", "mpiio")
        for where in ("unstriped", "striped")
    ][1:]  # fmt: skip
    assert "Finished" not in done.out
    assert not list(benchio.cwd.rglob("*.dat"))


def test_a_bound_that_is_not_reached_changes_nothing(benchio):
    done = benchio.run(*RUN, "proc", "unstriped", "--max-seconds=1000", "--result=result.jsonl")
    assert done.status == 0, done.err
    assert len(benchio.records()) == 1
    assert "Finished" in done.out


def test_a_file_that_an_earlier_run_kept_stays_where_time_is_up(benchio):
    arguments = (*RUN, "proc", "unstriped", "--seed=1")
    assert benchio.run(*arguments, "--keep").status == 0
    done = benchio.run(*arguments, "--no-write", "--read", "--max-seconds=0.000001")
    assert done.status == 3
    assert "unstriped/proc000000.dat, repeat 1" in done.messages[0]
    assert (benchio.cwd / "unstriped/proc000000.dat").stat().st_size == 32 * 32 * 16 * 8


@pytest.mark.parametrize("layer", ["serial", "proc", "node", "mpiio"])
def test_no_run_that_would_leave_too_little(benchio, tiny_file_system, layer, says):
    # 1 MiB, 256 KiB of it written: 768 KiB stay, less what directories need.
    def run(floor):
        return benchio.run(
            *RUN, layer, f"--directory={tiny_file_system}", f"--min-free={floor}", "--keep",
            "--result=result.jsonl", ranks=2,
        )  # fmt: skip

    done = run("800K")
    assert done.status == 1
    says(done)
    assert benchio.records() == []
    assert list(tiny_file_system.iterdir()) == []
    done = run("700K")
    assert done.status == 0, done.err
    assert len(benchio.records()) == 1
