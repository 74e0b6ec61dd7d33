"""The pattern strided: records of any length, round robin."""

import re

import pytest

from tests.kernel.conftest import Difference, strace

RANKS = 3


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


def test_a_difference_in_an_element_that_two_records_share(benchio):
    # Records of 3 bytes: element 0 has bytes of ranks 0, 1 and 2.
    words = (1, 1, 1, "local", "strided-posix", "unstriped", "--record=3", "--seed=11")
    assert benchio.run(*words, "--keep", ranks=RANKS).status == 0
    path = benchio.cwd / "unstriped/strided-posix.dat"
    data = bytearray(path.read_bytes())
    data[4] ^= 1
    path.write_bytes(data)
    done = benchio.run(*words, "--no-write", "--verify", ranks=RANKS)
    assert done.status == 1
    found = Difference.of(done.messages[0])
    assert (found.rank, found.byte, found.element, found.differing) == (1, 4, 0, 1)


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


def test_a_failure_ends_all_rounds(benchio, tiny_file_system, roomy):
    # 8 TiB, which would take hours, in rounds of 256 MiB: all ranks stop after the first.
    for layer in ("strided-posix", "strided-independent"):
        done = benchio.run(
            1, 2**18, 1, "global", layer, f"--directory={tiny_file_system}", "--record=32M",
            ranks=2, wrapper=roomy,
        )  # fmt: skip
        assert done.status == 1
        assert f"{tiny_file_system}/{layer}.dat" in done.messages[0]
        assert list(tiny_file_system.iterdir()) == []
