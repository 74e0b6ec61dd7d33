"""Each fault that can happen to benchio, once: a message, no rate, no file, and then a good run.

Other files of this folder and of tests/kernel test each layer on each device.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.faults.test_layers_on_bad_devices import LARGE, SMALL, benchio, built, system
from tests.kernel.conftest import Benchio, injecting
from tests.mounts import in_memory, mounted

pytestmark = pytest.mark.needs("mounts", "fewer capabilities", "tracing")

__all__ = ["benchio", "built"]

SEED = "--seed=42"


@dataclass(frozen=True)
class Call:
    """The call of benchio while the fault is there."""

    layer: str = "proc"
    sizes: tuple[object, ...] = SMALL
    more: tuple[str, ...] = ("--verify",)
    ranks: int = 2
    wrapper: tuple[str, ...] = ()
    launcher: str = "mpirun"


ROWS = []


def row(fault: str, expected: str = "refused; no rate", status: int = 1):
    """Make a row from a generator function that injects a fault, yields a call, and lifts it."""

    def mark(function: Callable[[Path, Benchio], Iterator[Call]]):
        inject = contextlib.contextmanager(function)
        marks = pytest.mark.fault("kernel", fault, expected)
        ROWS.append(pytest.param(inject, status, id=fault, marks=marks))
        return function

    return mark


@row("directory missing")
def _(where, benchio):
    where.rmdir()
    yield Call()
    where.mkdir()


@row("read-only file system")
def _(where, benchio):
    with in_memory(where, "size=8m,ro"):
        yield Call()


@row("file system with too little room")
def _(where, benchio):
    with in_memory(where, "size=1m"):
        yield Call(sizes=LARGE)


@row("over quota")
def _(where, benchio):
    image = benchio.cwd / "image"
    with image.open("wb") as file:
        file.truncate(128 * 2**20)
    system("mkfs.btrfs", "-q", "--mixed", str(image))
    with mounted(where, "-o", "loop", str(image)):
        system("btrfs", "quota", "enable", str(where))
        system("btrfs", "qgroup", "limit", "1M", "0/5", str(where))
        yield Call(sizes=LARGE)


@row("no inode left")
def _(where, benchio):
    # inodes for the root only; with one more, either of two ranks might get it
    with in_memory(where, "size=8m,nr_inodes=1"):
        yield Call(ranks=1)


@row("no permission")
def _(where, benchio):
    os.chown(where, 1, 1)
    where.chmod(0o755)
    yield Call(wrapper=("setpriv", "--bounding-set=-dac_override,-dac_read_search"))
    os.chown(where, 0, 0)


@row("too little would be left free")
def _(where, benchio):
    yield Call(more=("--min-free=1000T",))


@row("O_DIRECT where files are in memory only")
def _(where, benchio):
    with in_memory(where, "size=8m"):
        yield Call(more=("--direct",))


@row("O_DIRECT for a size that it cannot move")
def _(where, benchio):
    image = benchio.cwd / "disk"
    with image.open("wb") as file:
        file.truncate(16 * 2**20)
    system("mkfs.ext4", "-q", str(image))
    with mounted(where, "-o", "loop", str(image)):
        yield Call(sizes=(31, 31, 15, "local"), more=("--direct",))


@row("a directory in place of the file")
def _(where, benchio):
    (where / "proc000001.dat").mkdir()
    yield Call()
    (where / "proc000001.dat").rmdir()


@row("a file in place of the directory")
def _(where, benchio):
    where.rmdir()
    where.write_text("mine")
    yield Call()
    assert where.read_text() == "mine"
    where.unlink()
    where.mkdir()


def kept(benchio: Benchio, where: Path) -> Path:
    """Keep the files of a run, and return that of the second rank."""
    done = benchio.run(*SMALL, "proc", f"--directory={where}", "--keep", SEED, ranks=2)
    assert done.status == 0, done.err
    return where / "proc000001.dat"


READ_BACK = Call(more=("--no-write", "--verify", SEED))
FOUND = "found and located; no rate"


@row("bit flipped between write and read", FOUND)
def _(where, benchio):
    path = kept(benchio, where)
    data = bytearray(path.read_bytes())
    data[4096] ^= 1
    path.write_bytes(data)
    yield READ_BACK


@row("blocks swapped", FOUND)
def _(where, benchio):
    path = kept(benchio, where)
    data = path.read_bytes()
    path.write_bytes(data[4096:8192] + data[:4096] + data[8192:])
    yield READ_BACK


@row("file cut off", FOUND)
def _(where, benchio):
    path = kept(benchio, where)
    os.truncate(path, path.stat().st_size - 5)
    yield READ_BACK


@row("block lost: a hole of the right size", FOUND)
def _(where, benchio):
    path = kept(benchio, where)
    subprocess.run(["fallocate", "-p", "-o", "4096", "-l", "4096", path], check=True)
    yield READ_BACK


@row("file lost", FOUND)
def _(where, benchio):
    kept(benchio, where).unlink()
    yield READ_BACK


@row("stale file of another run", FOUND)
def _(where, benchio):
    kept(benchio, where)
    yield Call(more=("--no-write", "--verify", "--seed=43"))


@row("fsync returns an error (EIO)")
def _(where, benchio):
    yield Call(more=("fsync",), wrapper=tuple(injecting("fsync", "error=EIO")))


@row("interrupted system call (EINTR)", "tried again", status=0)
def _(where, benchio):
    wrapper = injecting("pwrite64", "error=EINTR:when=1", "-P", f"{where}/proc000001.dat")
    yield Call(wrapper=tuple(wrapper))


@row(
    "slow: time is up between two phases", "what was measured is kept; what is missing is named", 3
)
def _(where, benchio):
    yield Call(more=("--repeats=100000", "--max-seconds=1"))


@row("memory too small")
def _(where, benchio):
    yield Call(sizes=(2**20, 2**20, 2**18, "local"))


@row("memory too small for the halo")
def _(where, benchio):
    yield Call(more=("--halo=100000",))


@row("an MPI-IO hint that is ignored, where it is required")
def _(where, benchio):
    yield Call(layer="mpiio", more=("--hint=no_such_hint=1", "--require-hints"))


@row("result file on a full device")
def _(where, benchio):
    full = benchio.cwd / "full"
    full.mkdir()
    with in_memory(full, "size=64k"):
        (full / "filling").write_bytes(bytes(2**16))
        yield Call(more=(f"--result={full}/result",))


@row("result file cannot be made", "refused before any write")
def _(where, benchio):
    yield Call(more=("--result=nowhere/result",))


@row("one rank is killed", "the job ends; no rate", status=128 + 9)
def _(where, benchio):
    # With --seccomp-bpf, strace 6.1 sends no signal.
    killing = "strace -f -o /dev/null -e inject=fsync:signal=KILL"
    kill = f'test "$OMPI_COMM_WORLD_RANK" = 1 && set -- {killing} "$@"; exec "$@"'
    yield Call(more=("fsync",), wrapper=("sh", "-c", kill, "sh"))


@row("a directory that others may write and that is not sticky", "refused before any write")
def _(where, benchio):
    where.chmod(0o777)
    yield Call()
    where.chmod(0o755)


@row("result file is a fifo that nobody reads", "refused, and not waited for")
def _(where, benchio):
    os.mkfifo(benchio.cwd / "pipe")
    yield Call(more=("--result=pipe",))


@row("`ROMIO_HINTS` is a fifo", "refused, and not waited for")
def _(where, benchio):
    os.mkfifo(benchio.cwd / "pipe")
    yield Call(layer="mpiio", wrapper=("env", "ROMIO_HINTS=pipe"))


@row("link planted in place of the file", "replaced; what it names stays as it is", status=0)
def _(where, benchio):
    victim = benchio.cwd / "victim"
    victim.write_text("mine")
    (where / "proc000001.dat").symlink_to(victim)
    yield Call()
    assert victim.read_text() == "mine"


def ended_by(benchio: Benchio, signal: str) -> str:
    """Return a launcher that sends mpirun this signal after three seconds."""
    launcher = benchio.cwd / "launcher"
    launcher.write_text(
        "#!/bin/sh\n"
        f'exec timeout --foreground --preserve-status -v -k 60 -s {signal} 3 mpirun "$@"\n',
        encoding="utf-8",
    )
    launcher.chmod(0o755)
    return str(launcher)


@row("one rank is stopped", "ended by the time limit; no rate, no file", status=1)
def _(where, benchio):
    stop = 'while [ "$OMPI_COMM_WORLD_RANK" = 1 ]; do kill -STOP $$; done; exec "$@"'
    yield Call(wrapper=("sh", "-c", stop, "sh"), launcher=ended_by(benchio, "TERM"))


def wait_for_ranks(benchio: Benchio) -> None:
    """Wait for ranks that clean up after mpirun has ended; any others would run forever."""
    deadline = time.monotonic() + 60
    while ranks := subprocess.run(
        ["pgrep", "-f", f"directory={benchio.cwd}/here"], capture_output=True, check=False
    ).stdout:
        assert time.monotonic() < deadline, ranks
        time.sleep(0.1)


@pytest.mark.parametrize(("inject", "status"), ROWS)
def test_it_says_so_and_the_next_run_is_right(benchio, observed, inject, status):
    where = benchio.cwd / "here"
    where.mkdir()
    with inject(where, benchio) as call:
        before = set(where.iterdir()) if where.is_dir() else set()
        result = [] if any(word.startswith("--result") for word in call.more) else ["--result=r"]
        done = replace(benchio, launcher=call.launcher).run(
            *call.sizes, call.layer, f"--directory={where}", *call.more, *result,
            ranks=call.ranks, wrapper=call.wrapper,
        )  # fmt: skip
        wait_for_ranks(benchio)
        left = (set(where.iterdir()) if where.is_dir() else set()) - before
    assert done.status == status, done.out + done.err
    if status not in (0, 3):
        assert "rate" not in done.out
        assert not (benchio.cwd / "r").exists() or benchio.records("r") == []
    assert not left or status > 128
    for path in where.iterdir():
        path.unlink()
    again = benchio.run(
        *SMALL, "proc", f"--directory={where}", "--verify", "--result=next", ranks=2
    )
    rates = [record["bandwidth_gib_s"] > 0 for record in benchio.records("next")]
    assert list(where.iterdir()) == []
    said = [*done.messages, *(line for line in done.err.splitlines() if "signal" in line)]
    observed(
        message=(said or [line for line in done.out.splitlines() if "correct" in line])[0],
        exit_status=done.status,
        left=left,
        next_run=again.status == 0 and rates == [True, True],
    )
