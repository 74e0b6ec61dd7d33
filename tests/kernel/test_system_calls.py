"""fsync and partial transfers, as seen in system calls."""

import re
import subprocess

import pytest

from tests.kernel.conftest import Difference, injecting, tracing
from tests.kernel.reference import blocks

RANKS = 3


def _synced(benchio, layer, *more):
    """The successful fsyncs of the run, as (process, path)."""
    wrapper = tracing("fsync,fdatasync")
    done = benchio.run(
        8, 8, 9, "global", layer, "unstriped", "--result=result.jsonl", *more,
        ranks=RANKS, wrapper=wrapper,
    )  # fmt: skip
    assert done.status == 0, done.err
    return [
        (trace.name, path)
        for trace in benchio.cwd.glob("trace.*")
        for path in re.findall(r"f(?:data)?sync\(\d+<([^>]*)>\) += 0", trace.read_text())
    ]


@pytest.mark.parametrize(
    ("layer", "files"),
    [
        ("serial", ["serial.dat"]),
        ("proc", [f"proc{rank:06}.dat" for rank in range(RANKS)]),
        ("node", ["node000000.dat"]),
    ],
)
def test_each_writer_syncs_its_file_once(benchio, layer, files):
    calls = _synced(benchio, layer, "fsync")
    assert sorted(path for _, path in calls) == [
        str(benchio.cwd / "unstriped" / name) for name in files
    ]
    assert len({process for process, _ in calls}) == len(files)
    assert all(record["fsync"] for record in benchio.records())


@pytest.mark.parametrize("io", ["ompio", "romio321"])
def test_every_process_syncs_the_shared_file(benchio, io, monkeypatch):
    monkeypatch.setenv("OMPI_MCA_io", io)
    calls = _synced(benchio, "mpiio", "fsync")
    assert {path for _, path in calls} == {str(benchio.cwd / "unstriped/mpiio.dat")}
    assert len({process for process, _ in calls}) == RANKS


@pytest.mark.parametrize("layer", ["serial", "proc", "node", "mpiio"])
def test_nothing_is_synced_that_was_not_asked_for(benchio, layer):
    assert _synced(benchio, layer) == []
    assert not any(record["fsync"] for record in benchio.records())


def test_repeats_are_synced_each(benchio):
    assert len(_synced(benchio, "proc", "fsync", "--repeats=2")) == 2 * RANKS


def test_an_fsync_that_fails_is_no_measurement(benchio, says):
    wrapper = injecting("fsync", "error=EIO")
    for layer in ("serial", "proc", "node"):
        done = benchio.run(
            8, 8, 9, "global", layer, "unstriped", "fsync", "--result=result.jsonl",
            ranks=RANKS, wrapper=wrapper,
        )  # fmt: skip
        assert done.status == 1
        says(done)
        assert "rate" not in done.out
        assert benchio.records() == []
        assert list((benchio.cwd / "unstriped").iterdir()) == []


@pytest.mark.parametrize("call", ["pwritev", "preadv"])
def test_calls_that_are_interrupted_are_made_again(benchio, call):
    wrapper = injecting(call, "error=EINTR:when=1..3")
    done = benchio.run(
        8, 8, 9, "global", "proc", "serial", "unstriped", "--verify", ranks=RANKS, wrapper=wrapper
    )
    assert done.status == 0, done.err


def test_calls_that_move_less_than_asked_are_continued(benchio, preloaded):
    # Rows of 72 bytes: each call ends in the middle of one.
    done = benchio.run(
        9, 4, 8, "global", "proc", "serial", "node", "unstriped", "--keep", "--seed=3", "--verify",
        ranks=2, wrapper=preloaded("short_calls"),
    )  # fmt: skip
    assert done.status == 0, done.err
    parts = blocks((9, 4, 8), (1, 1, 2), 3)
    for rank, part in enumerate(parts):
        assert (benchio.cwd / f"unstriped/proc{rank:06}.dat").read_bytes() == part
    assert (benchio.cwd / "unstriped/node000000.dat").read_bytes() == b"".join(parts)


@pytest.mark.parametrize("layer", ["proc", "serial", "node"])
def test_a_read_that_reads_nothing_is_not_verified(benchio, layer):
    # The call is faked: it returns the bytes of all 512 elements.
    wrapper = injecting("preadv", "retval=4096")
    done = benchio.run(8, 8, 8, "local", layer, "unstriped", "--verify", wrapper=wrapper)
    assert done.status == 1
    assert Difference.of(done.messages[0]).differing == 512
    assert "rate" not in done.out


@pytest.mark.parametrize("name", ["fsync", "pwritev", "preadv", "close", "unlink", "open"])
def test_benchio_defines_none_of_libcs_functions(kernel_build, name):
    command = ["nm", kernel_build / "benchio"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # With 64-bit offsets libc uses other names for some of them.
    kinds = re.findall(rf" ([A-Za-z]) {name}(?:64|64v2)?(?:@\S+)?$", listed, re.MULTILINE)
    assert kinds == ["U"]
