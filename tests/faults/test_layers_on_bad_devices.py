"""Each layer on devices that are full, restricted, read-only or changed by others, and killed.

All of it is real: file systems on devices of their own, and signals. Whatever happens, a run ends
with a message, without a figure, and leaves no file that it can remove.
"""

import contextlib
import shutil
import subprocess
import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kernel.conftest import Benchio, injecting, plain_build
from tests.mounts import in_memory, mounted

pytestmark = pytest.mark.needs("mounts", "loop devices", "tracing")


@dataclass(frozen=True)
class Layer:
    """A layer to be tested, the last of its files, and a rank that syncs this file."""

    name: str
    file: str
    syncs: int
    more: tuple[str, ...] = ()


RANKS = 2
LAYERS = [
    Layer("serial", "serial.dat", 0),
    Layer("proc", "proc000001.dat", 1),
    Layer("node", "node000000.dat", 0),
    Layer("mpiio", "mpiio.dat", 1),
    Layer("mpiio-independent", "mpiio-independent.dat", 1),
    Layer("snapshot", "snapshot.dat", 1, ("--steps=2", "--compute=0")),
    Layer("snapshot-nonblocking", "snapshot-nonblocking.dat", 1, ("--steps=2", "--compute=0")),
]
#: One layer for each way to open files and to report errors.
WAYS = [LAYERS[0], LAYERS[1], LAYERS[2], LAYERS[3], LAYERS[5]]
# In total 3 MiB, and 128 KiB.
LARGE = (64, 64, 96, "global")
SMALL = (32, 32, 16, "global")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed")
    return plain_build(tmp_path_factory)


@pytest.fixture
def benchio(built, tmp_path):
    return Benchio(built, tmp_path)


def run(benchio, layer, where, sizes=LARGE, **how):
    return benchio.run(
        *sizes, layer.name, f"--directory={where}", "fsync", "--verify", *layer.more,
        "--result=result.jsonl", ranks=RANKS, **how,
    )  # fmt: skip


def system(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"


def on_a_device(where: Path, mebibytes: int, *make: str) -> AbstractContextManager[Path]:
    """A new file system in a file, on a loop device."""
    if shutil.which(make[0]) is None:
        pytest.skip(f"{make[0]} is not installed")
    image = where.with_suffix(".image")
    with image.open("wb") as file:
        file.truncate(mebibytes * 2**20)
    system(*make, str(image))
    return mounted(where, "-o", "loop", image)


@pytest.fixture(scope="module")
def full_tmpfs(tmp_path_factory):
    with in_memory(tmp_path_factory.mktemp("devices") / "tmpfs", "size=1m") as where:
        yield where


@pytest.fixture(scope="module")
def full_ext4(tmp_path_factory):
    where = tmp_path_factory.mktemp("devices") / "ext4"
    with on_a_device(where, 2, "mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal") as mount:
        (mount / "lost+found").rmdir()
        yield mount


@pytest.fixture(scope="module")
def quota(tmp_path_factory):
    """A directory that may hold 1 MiB, on a file system with much more, for root too."""
    where = tmp_path_factory.mktemp("devices") / "btrfs"
    with on_a_device(where, 128, "mkfs.btrfs", "-q", "--mixed") as mount:
        system("btrfs", "quota", "enable", str(mount))
        system("btrfs", "subvolume", "create", str(mount / "group"))
        system("btrfs", "qgroup", "limit", "1M", str(mount / "group"))
        yield mount / "group"


@pytest.fixture(scope="module")
def read_only(tmp_path_factory):
    with in_memory(tmp_path_factory.mktemp("devices") / "readonly", "size=8m,ro") as where:
        yield where


def assert_failed(benchio, done, layer, where):
    assert done.status == 1, done.out + done.err
    assert done.messages, done.err
    assert done.messages[0].startswith("rank ")
    assert " on host " in done.messages[0]
    assert str(where) in done.messages[0]
    assert "rate" not in done.out
    assert "Finished" not in done.out
    assert benchio.records() == []
    if where.is_dir():
        assert list(where.iterdir()) == []


def of_each_layer(test):
    return pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)(test)


def of_each_way(test):
    return pytest.mark.parametrize("layer", WAYS, ids=lambda layer: layer.name)(test)


DEVICES = ("full_tmpfs", "full_ext4", "quota")


@pytest.mark.parametrize(
    ("device", "layer"),
    [
        *(("full_tmpfs", layer) for layer in LAYERS),
        *((device, layer) for device in DEVICES[1:] for layer in WAYS[1:4]),
    ],
)
def test_no_room(benchio, request, layer, device):
    where = request.getfixturevalue(device)
    done = run(benchio, layer, where)
    assert_failed(benchio, done, layer, where)
    if layer.name in ("serial", "proc", "node"):
        said = "(errno 122)" if device == "quota" else " are to be written"
        assert done.messages[0].endswith(said)


@of_each_way
def test_no_inode(benchio, layer):
    with in_memory(benchio.cwd / "one", "size=8m,nr_inodes=1") as where:
        done = run(benchio, layer, where)
        assert_failed(benchio, done, layer, where)
    if layer.name in ("serial", "proc", "node"):
        # The path is not the problem, and the message does not ask about it.
        assert done.messages[0].endswith("failed: No space left on device (errno 28)")


@pytest.mark.parametrize("layer", LAYERS[3:5], ids=lambda layer: layer.name)
def test_no_room_under_romio(benchio, quota, layer):
    # MPI libraries differ in which errors they notice, and when.
    done = run(benchio, layer, quota, env={"OMPI_MCA_io": "romio321"})
    assert_failed(benchio, done, layer, quota)


@pytest.mark.parametrize("device", DEVICES)
def test_what_there_is_room_for(benchio, request, device):
    # No earlier failure still takes space, not even in the quota's accounts.
    where = request.getfixturevalue(device)
    names = [layer.name for layer in LAYERS]
    done = benchio.run(
        *SMALL, *names, f"--directory={where}", "fsync", "--verify", "--steps=2", "--compute=0",
        ranks=RANKS,
    )  # fmt: skip
    assert done.status == 0, done.err
    assert list(where.iterdir()) == []


@of_each_way
def test_a_read_only_file_system(benchio, read_only, layer):
    done = run(benchio, layer, read_only)
    assert_failed(benchio, done, layer, read_only)
    assert "Read-only file system (errno 30)" in done.messages[0]


@of_each_way
def test_a_file_in_the_way_of_a_directory(benchio, layer):
    where = benchio.cwd / "results"
    where.write_text("mine")
    done = run(benchio, layer, where / "below")
    assert_failed(benchio, done, layer, where / "below")
    assert "Not a directory (errno 20)" in done.messages[0]
    assert where.read_text() == "mine"


@of_each_layer
def test_a_file_that_another_removes_while_it_is_open(benchio, layer):
    where = benchio.cwd / "here"
    where.mkdir()
    is_over = threading.Event()

    def remove():
        # Only once it has data, and so all have it open: Open MPI's own MPI_File_open never ends
        # when one process no longer finds what another has just made.
        while not is_over.wait(0.02):
            with contextlib.suppress(FileNotFoundError):
                if (where / layer.file).stat().st_size > 0:
                    (where / layer.file).unlink()

    other = threading.Thread(target=remove)
    other.start()
    try:
        # Each file stays open for a second after it was written.
        done = run(
            benchio, layer, where, sizes=SMALL,
            wrapper=injecting("fsync", "delay_enter=1000000"),
        )  # fmt: skip
    finally:
        is_over.set()
        other.join()
    assert_failed(benchio, done, layer, where)
    assert f"{where / layer.file} failed: No such file or directory (errno 2)" in done.messages[0]


@of_each_layer
def test_a_rank_that_is_killed_stops_the_job(benchio, layer):
    where = benchio.cwd / "here"
    where.mkdir()
    # With --seccomp-bpf, strace 6.1 sends no signal.
    kill = (
        f'test "$OMPI_COMM_WORLD_RANK" = {layer.syncs} && set -- strace -f -o /dev/null '
        '-e inject=fsync:signal=KILL "$@"; exec "$@"'
    )
    done = run(benchio, layer, where, sizes=SMALL, wrapper=["sh", "-c", kill, "sh"])
    assert done.status == 128 + 9
    assert f"process rank {layer.syncs} " in done.err
    assert "exited on signal 9 (Killed)" in done.err
    assert "rate" not in done.out
    assert benchio.records() == []
