"""The pattern strided: records of any length, round robin."""

import re

import numpy as np
import pytest

from tests.kernel.conftest import injecting, strace, tracing
from tests.kernel.reference import values

LAYERS = ["strided", "strided-independent", "strided-posix"]
SEED = 11
RANKS = 3


def stream(length: int, seed: int = SEED) -> bytes:
    """The first bytes of the data."""
    return values(np.arange(length // 8 + 1), seed).tobytes()[:length]


def file_of(benchio, layer):
    return benchio.cwd / "unstriped" / f"{layer}.dat"


@pytest.mark.parametrize("record", [1, 7, 1009, None])
def test_every_way_makes_the_same_file(benchio, record):
    sizes, records = (5, 6, 4), 24 * RANKS
    more = [] if record is None else [f"--record={record}"]
    done = benchio.run(
        *sizes, "local", *LAYERS, "unstriped", "--verify", "--keep", f"--seed={SEED}", *more,
        "--result=result.jsonl", ranks=RANKS,
    )  # fmt: skip
    assert done.status == 0, done.err
    expected = stream(records * (record or 5 * 8))
    for layer in LAYERS:
        assert file_of(benchio, layer).read_bytes() == expected, layer
    assert len(benchio.records()) == 2 * len(LAYERS)
    for line in benchio.records():
        assert line["bytes"] == line["verified_bytes"] == len(expected)
        assert line["pattern"] == line["layer"].removesuffix("-posix")
        assert line["interface"] == ("posix" if line["layer"] == "strided-posix" else "mpiio")
        assert (line["files"], line["writers"]) == (1, RANKS)


def test_global_sizes_are_those_of_the_3_d_array_and_its_file(benchio):
    done = benchio.run(
        8, 6, 4, "global", *LAYERS, "mpiio", "unstriped", "--keep", f"--seed={SEED}", ranks=4
    )
    assert done.status == 0, done.err
    contents = {file_of(benchio, layer).read_bytes() for layer in [*LAYERS, "mpiio"]}
    assert contents == {stream(8 * 6 * 4 * 8)}


def test_one_call_a_record_by_the_rank_whose_turn_it_is(benchio):
    record, segments = 13, 4
    watch = strace("pwritev,preadv", "-y", "-o", "trace.$OMPI_COMM_WORLD_RANK")
    wrapper = ["sh", "-c", f'exec {" ".join(watch)} "$@"', "sh"]
    done = benchio.run(
        1, segments, 1, "local", "strided-posix", "unstriped", "--read", f"--record={record}",
        ranks=RANKS, wrapper=wrapper,
    )  # fmt: skip
    assert done.status == 0, done.err
    for rank in range(RANKS):
        trace = (benchio.cwd / f"trace.{rank}").read_text()
        for call in ("pwritev", "preadv"):
            seen = re.findall(rf"{call}\(\d+<.*strided-posix.*\], 1, (\d+)\) += (\d+)", trace)
            offsets = [(segment * RANKS + rank) * record for segment in range(segments)]
            assert [(int(at), int(n)) for at, n in seen] == [(at, record) for at in offsets]


def _kept(benchio, layer, sizes, record):
    """A file that a run kept, and a function that reads it, one call a record."""
    arguments = (*sizes, "local", layer, "unstriped", f"--record={record}", f"--seed={SEED}")
    assert benchio.run(*arguments, "--keep", ranks=RANKS).status == 0

    def read_back():
        return benchio.run(*arguments, "--no-write", "--verify", ranks=RANKS)

    return file_of(benchio, layer), read_back


@pytest.mark.parametrize("layer", LAYERS)
def test_a_corrupted_byte_is_named(benchio, layer):
    record = 101
    path, read_back = _kept(benchio, layer, (1, 5, 1), record)
    whole = path.read_bytes()
    data = bytearray(whole)
    at = record * (2 * RANKS + 1) + 50  # segment 2, rank 1
    data[at] ^= 255
    path.write_bytes(data)
    done = read_back()
    assert done.status == 1
    message = done.messages[0]
    assert message.startswith("rank 1 on host ")
    element = at // 8
    expected, found = (
        int.from_bytes((content + bytes(8))[element * 8 : element * 8 + 8], "little", signed=True)
        for content in (whole, data)
    )
    assert f"unstriped/{layer}.dat failed: at byte {at}, element {element} of" in message
    assert f"expected {expected} and found {found}; 1 elements differ" in message
    assert path.read_bytes() == data


def test_a_difference_in_an_element_that_two_records_share(benchio):
    # Records of 3 bytes: element 0 has bytes of ranks 0, 1 and 2.
    path, read_back = _kept(benchio, "strided-posix", (1, 1, 1), 3)
    data = bytearray(path.read_bytes())
    data[4] ^= 1
    path.write_bytes(data)
    message = read_back().messages[0]
    assert message.startswith("rank 1 on host ")
    assert "at byte 4, element 0 of" in message
    assert "; 1 elements differ" in message


def test_a_missing_byte_is_named(benchio):
    path, read_back = _kept(benchio, "strided-independent", (1, 1, 1), 3)
    path.write_bytes(path.read_bytes()[:-1])
    assert "has 8 bytes and should have 9" in read_back().messages[0]


def test_more_than_the_memory_holds_goes_round_by_round(benchio):
    # Seven records of 40 MiB: six fit.
    arguments = (1, 7, 1, "local", "strided-posix", "unstriped", "--record=40M", f"--seed={SEED}",
                 "--cache=none")  # fmt: skip
    done = benchio.run(*arguments, "--verify", "--keep", "--result=result.jsonl")
    assert done.status == 0, done.err
    assert [line["verified_bytes"] for line in benchio.records()] == [7 * 40 * 2**20] * 2
    path = file_of(benchio, "strided-posix")
    at = 6 * 40 * 2**20 + 5
    with path.open("r+b") as file:
        file.seek(at - 5)
        assert file.read(8) == values([at // 8], SEED).tobytes()
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 4]))
    done = benchio.run(*arguments, "--no-write", "--verify")
    path.unlink()
    assert done.status == 1
    assert f"at byte {at}, element {at // 8} of" in done.messages[0]


def test_a_read_that_reads_nothing_is_not_verified(benchio):
    wrapper = injecting("preadv", "retval=64")
    done = benchio.run(8, 5, 1, "local", "strided-posix", "unstriped", "--verify", wrapper=wrapper)
    assert done.status == 1
    assert "40 elements differ" in done.messages[0]
    assert "rate" not in done.out


def test_each_process_syncs_the_file_once(benchio):
    wrapper = tracing("fsync,fdatasync")
    done = benchio.run(
        8, 5, 1, "local", *LAYERS, "unstriped", "fsync", "--result=result.jsonl",
        ranks=RANKS, wrapper=wrapper,
    )  # fmt: skip
    assert done.status == 0, done.err
    assert all(line["fsync"] for line in benchio.records())
    calls = [
        (path, trace.name)
        for trace in benchio.cwd.glob("trace.*")
        for path in re.findall(r"f(?:data)?sync\(\d+<([^>]*)>\) += 0", trace.read_text())
    ]
    for layer in LAYERS:
        processes = [process for path, process in calls if path == str(file_of(benchio, layer))]
        assert len(processes) == len(set(processes)) == RANKS, layer


@pytest.mark.parametrize("io", ["ompio", "romio321"])
@pytest.mark.parametrize("layer", LAYERS)
def test_a_full_device_stops_all_and_leaves_no_file(benchio, tiny_file_system, layer, io):
    if layer == "strided-posix" and io == "romio321":
        return
    done = benchio.run(
        8192, 4, 2, "local", layer, f"--directory={tiny_file_system}", "--result=result.jsonl",
        ranks=RANKS, env={"OMPI_MCA_io": io},
    )  # fmt: skip
    assert done.status == 1
    assert f"{tiny_file_system}/{layer}.dat" in done.messages[0]
    assert "rate" not in done.out
    assert benchio.records() == []
    assert list(tiny_file_system.iterdir()) == []


def test_hints_in_effect_are_recorded(benchio_mpich):
    done = benchio_mpich.run(
        8, 5, 1, "local", "strided", "strided-independent", "unstriped", "--verify",
        "--hint=cb_buffer_size=65536", "--require-hints", "--result=result.jsonl", ranks=2,
    )  # fmt: skip
    assert done.status == 0, done.err
    lines = benchio_mpich.records()
    assert [line["hints"]["cb_buffer_size"] for line in lines] == ["65536"] * 4


def test_reads_past_the_page_cache(benchio):
    done = benchio.run(
        8, 50, 1, "local", "strided-posix", "unstriped", "--record=1009", "--cache=direct",
        "--verify", "--result=result.jsonl", ranks=2,
    )  # fmt: skip
    assert done.status == 0, done.err
    if "Note: pages of the files stay in memory" in done.out:
        pytest.skip("a file system in memory")
    assert benchio.records()[1]["cache"] in {"direct", "dropped"}
    if benchio.records()[1]["cache"] == "dropped":
        assert "Note: O_DIRECT is not possible here" in done.out


def test_a_failure_ends_all_rounds(benchio, tiny_file_system):
    # 8 TiB, which would take hours, in rounds of 256 MiB: all ranks stop after the first.
    for layer in ("strided-posix", "strided-independent"):
        done = benchio.run(
            1, 2**18, 1, "global", layer, f"--directory={tiny_file_system}", "--record=32M", ranks=2
        )
        assert done.status == 1
        assert f"{tiny_file_system}/{layer}.dat" in done.messages[0]
        assert list(tiny_file_system.iterdir()) == []


def test_what_makes_no_sense_is_refused(benchio):
    def refused(*arguments, ranks=1):
        arguments = (*arguments, "unstriped")
        done = benchio.run_alone(*arguments) if ranks == 1 else benchio.run(*arguments, ranks=ranks)
        assert done.status == 2, done.out
        assert list((benchio.cwd / "unstriped").iterdir()) == []
        return done.messages[0]

    assert (
        refused(9, 4, 2, "global", "strided", ranks=RANKS)
        == "N2*N3=8 records cannot be divided among the 3 processes"
    )
    assert "a record of 3221225472 bytes is too large: an MPI-IO call moves at most" in refused(
        1, 1, 1, "local", "strided-independent", "--record=3G"
    )
    assert "1073741824 x 8589934592 x 1 bytes cannot be counted in 64 bits" in refused(
        1, 2**31, 4, "local", "strided-posix", "--record=1G"
    )
